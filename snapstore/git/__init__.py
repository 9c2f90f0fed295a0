"""The shadow repository, on dulwich: read and written here and nowhere else.

`repository.Shadow` is the entry point: its objects, trees, refs and notes, and all of it as dulwich's `Repo`
(`dulwich_repo`). `remote` speaks to other repositories, `maintenance` packs, `diff` compares. Objects are read through
dulwich's object store and refs move through its container. Ours is what dulwich does not do, each module with its
reason: the streaming pack writer and reader, the spine of trees, guards against a git at work beside us, packing. Only
this package imports dulwich.

Object ids are 20 raw bytes, paths are bytes with `/` between parts, modes are the bytes of git's trees.
"""
