"""The terminal tree: a screen that shows every turn of a session.

`app` is the entry point. Keys that only look are in `view_keys`, keys that change something in `move_keys`. Every
change goes through `move_controller` and `move_steps`. `snapshot` is a copy of the tree, read on a thread. `folds`,
`search` and `search_index` work on a snapshot. `command_line` parses what is typed after `:`. `widgets` are the parts
of the screen, `screens` the dialogs, and `terminal` has the driver, the themes and the paste handling.

The package needs the extra `tui`, and must not import `cli`, `web` or `mcp`.
"""
