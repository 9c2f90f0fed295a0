"""Keep the shadow repository small without losing an object that is needed.

`fold` merges many small packs into one. `repack` makes one pack of everything reachable from refs. `pack_builder` packs
with or without the git program. `purge` removes everything that is not reachable from given objects. `rewrite` creates
history again without some content. `running_git` detects git processes at work in the store.

Every module states who may still need what the module deletes. The package must not import `git.remote`.
"""
