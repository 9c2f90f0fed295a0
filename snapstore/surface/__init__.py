"""Code shared by the command line, the terminal tree, the page and the MCP server.

`records` describes every document that leaves the program. `wording` has the sentences about plans and moves.
`describe` has the sentences about one turn. `status` and `stats` report the state and the use of a store.
`tree_layout`, `tree_rows` and `tree_document` draw the tree of turns. `undo_list` lists the ends of all lines.

The package never prints. No package below `surface` may import it.
"""
