"""Share stores between machines, through any git server.

`push` and `pull` are the entry points; `clone` makes a store from a remote, and `bundles` exports turns to a file.
`remotes` names addresses, `exchange_state` stores what was last exchanged, `record_sync` transfers records of turns,
`sending` and `chunked_push` send a push at once or in parts, and `auto_push` pushes after each turn.
`replace_forgotten` replaces forgotten commits on remotes. `server` finds the owner of each ref; `secrets` finds
secrets.

Refs on a server only ever advance. The package must not import `agents` or `transcripts`.
"""
