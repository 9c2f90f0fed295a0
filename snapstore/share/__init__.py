"""Share snapshot repositories across machines, through any git server.

`push` and `pull` are the entry points; `clone` makes a store from a remote and `bundles` carries turns in a file.
`remotes` names addresses, `exchange_state` remembers what was last exchanged, `record_sync` brings records of turns
across, `sending` and `chunked_push` send a push at once or in parts, and `auto_push` pushes after each turn.
`replace_forgotten` tells remotes what was forgotten. `server` knows whose each ref is; `secrets` looks for secrets.

Refs on a server only ever advance. The package must not import `agents` or `transcripts`.
"""
