"""The user's folder: what is on disk, what of it is captured, and how it is written to.

`scan` finds what changed, `ignore` says which paths are left out, `write` is the only package that writes to the
folder, and `usergit` reads the user's own git repository.

Paths are bytes below the root with `/` between parts; a file's state is a tree entry (mode and blob id) as in `git`.
The package must not import `store` or `timeline`: it knows files, not turns.
"""
