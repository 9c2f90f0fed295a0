"""The user's folder: what is on disk, what is captured, how files are written.

`scan` finds changes, `ignore` decides which paths are left out, `write` is the only package that writes to the folder,
and `usergit` reads the user's own git repository.

Paths are bytes relative to the root, with `/` between parts. A file's state is a tree entry (mode and blob id), as in
`git`. The package must not import `store` or `timeline`: it knows about files, not turns.
"""
