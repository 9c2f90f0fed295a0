"""Foundations that every other package uses and that depend on no other package.

`files` writes, syncs and removes small files durably. `locks` wraps kernel locks. `platform` hides the differences
between Linux and macOS. `paths` recognizes names that are never captured. `text` makes text safe for a terminal.
`agent_folders` lists where agents keep conversations. `cache_file` holds caches that can be thrown away. `own_command`
builds the command line that starts snapstore again.

The package imports only `snapstore.errors`. Nothing here knows about git, stores or turns.
"""
