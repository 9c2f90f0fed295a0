"""Forgetting of files or turns: history is rewritten, and old objects are purged.

`forget` is the entry point. `selection` resolves the words after `snapstore forget`, `path_selection` says which paths
go, `drop` how commits change, `remap` what else names the old commits, and `redaction` redacts the records.
`rewritten_ids` maps old commit ids to new ones for remotes that have the old ones; `report` is the result for the user.
"""
