"""Forget files or turns: history is written again without them, and the old objects are purged.

`forget` is the entry point. `selection` says what a word after `forget` means, `path_selection` what is to go, `drop`
how commits change, `remap` what else names the old commits, and `redaction` takes the content out of records.
`rewritten_ids` maps old commit ids to new ones for remotes that have the old ones; `report` is what a person is told.
"""
