"""What was recorded, read-only: nodes, lines, branches, operations.

`history.History` is the entry point for one session's line, `graph.Graph` for its whole tree. `nodes` says what a
commit means, `addresses` finds the node that a person means by `5`, `#12` or a name, `operations` is the log of moves
and branch changes. `compare`, `search` and `snapshots` answer questions; `agent_sessions` tells which agent session
went where. `commit_cache`, `turn_cache` and `turn_facts` only save time.

The package must not import `timeline.record` or anything above it.
"""
