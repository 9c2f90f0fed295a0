"""Forget files or turns: rewrite history and purge the old objects.

`forget.Forget` is the entry point. `selection` resolves the arguments of `snapstore forget`, `path_selection` matches
paths, `drop` changes commits, `remap` updates documents that name the old commits, and `redaction` redacts the records.
`rewritten_ids` maps old commit ids to new ones for remotes that have the old ones; `report` is the result for the user.

Only `api` and the packages above may import this package.
"""
