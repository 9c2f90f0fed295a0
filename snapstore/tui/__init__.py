"""The terminal tree: every turn of a session on one screen, to look at and move through with the keyboard.

`app` is the entry point. Keys that only look are in `view_keys`, keys that change something in `move_keys`; every
change goes through `move_controller` and `move_steps`. `snapshot` is the tree at one moment, made on a thread; `folds`,
`search` and `search_index` work on it. `widgets`, `screens` and `terminal` are what is drawn, asked and written to.

The package needs the extra `tui`, and must not import `cli`, `web` or `mcp`.
"""
