"""Reads the user's own git repository; nothing here ever writes to it.

`repository.find_repo` is the entry point: it finds the checkout around a root and where its HEAD points. `index` reads
git's index. `config` reads the relevant part of the user's git configuration. `conversions` answers whether git could
have changed a file's bytes between the disk and the blob.

The package has its own readers, because other libraries read some indexes and configurations differently from git
(docs/benchmarks.md). The package must not import the rest of `worktree`.
"""
