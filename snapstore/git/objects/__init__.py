"""Objects of the shadow repository: reading, writing, checking, and what leads to what.

`store.Objects` is the entry point: objects by id, wherever they lie, and writers for new ones. `pack_writer` streams
new objects into one pack, which dulwich cannot do in bounded memory. `dulwich_store`, `pack` and `pack_index` guard
dulwich's object store for a folder in which anybody may run git. `trees` rewrites the spine above changed paths,
`commits` and `notes` write what people read with git, `validate` checks what comes from others, and `reachability`
finds what another side lacks.

The package must not import `git.maintenance` or `git.remote`.
"""
