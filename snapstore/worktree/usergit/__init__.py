"""The user's own git repository, seen from outside. Nothing here ever writes to it.

`repository.find_repo` is the entry point: it finds the checkout around a root and tells where its HEAD stands. `index`
reads git's index, `config` the user's git configuration as far as it matters here, and `conversions` answers whether
git could have changed a file's bytes on their way to its blob.

The package has its own readers because they answer as git does where other readers are wrong (docs/benchmarks.md).
"""
