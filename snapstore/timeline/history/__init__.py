"""Read what was recorded: nodes, lines, branches, operations.

`history.History` is the entry point for one session's line, `graph.Graph` for its whole tree. `nodes` interprets a
commit, `addresses` finds the node of `5`, `#12` or a name, `operations` is the log of moves and branch
changes. `compare`, `search` and `snapshots` answer queries; `agent_sessions` lists sessions with their agent sessions.
`commit_cache`, `turn_cache` and `turn_facts` only save time.

The package must not import `timeline.record` or anything above it.
"""
