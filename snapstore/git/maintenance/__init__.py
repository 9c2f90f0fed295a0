"""Keep the shadow repository small without losing an object that somebody may need.

`fold` puts many small packs into one, `repack` makes one pack of everything that refs reach, `pack_builder` packs with
the git program or without it, and `purge` leaves nothing but what some objects reach. `rewrite` makes history again
without something. `running_git` tells whether somebody's git is at work.

Every module says who may still need what it deletes. The package must not import `git.remote`.
"""
