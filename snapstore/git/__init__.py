"""The shadow repository, built on dulwich.

`repository.Shadow` is the entry point. A `Shadow` holds the objects, trees, refs and notes, and offers the whole
repository as dulwich's `Repo` (`dulwich_repo`). `remote` talks to other repositories, `maintenance` packs, `diff`
compares. Objects are read through dulwich's object store, and refs move through dulwich's ref container. This package
adds only what dulwich lacks, and each module states its reason: the streaming pack writer and reader, tree updates that
rewrite only the folders above changed paths, guards against git running in the store at the same time, and packing. No
other package reads or writes the repository or imports dulwich.

Object ids are 20 raw bytes. Paths are bytes with `/` between parts. Modes are bytes as in git's tree objects.
"""
