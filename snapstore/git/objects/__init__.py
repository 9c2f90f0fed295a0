"""Objects of the shadow repository: read, write, validate, find reachable ones.

`store.Objects` is the entry point: it reads objects by id, loose or packed, and creates writers for new ones.
`pack_writer` streams new objects into one pack, which dulwich cannot do in bounded memory. `dulwich_store`, `pack` and
`pack_index` guard dulwich's object store against other git processes in the same folder. `trees` rewrites only the
trees above changed paths. `commits` and `notes` write what people read with git. `validate` checks objects that come
from other repositories. `reachability` finds the objects that a server lacks.

The package must not import `git.maintenance` or `git.remote`.
"""
