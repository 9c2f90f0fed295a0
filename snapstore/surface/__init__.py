"""Code shared by the command line, the terminal tree, the page and the MCP server.

Start with `move_request`: every surface plans and executes its moves through it. `wording` has the sentences about
plans and moves, `describe` those about one turn. `records` has every document that leaves the program. `status` and
`stats` report the state and the use of a store. `tree_layout`, `tree_rows` and `tree_document` draw the tree of turns.
`undo_list` lists the ends of all lines.

The package never prints, and must not import `cli`, `tui`, `web` or `mcp`.
"""
