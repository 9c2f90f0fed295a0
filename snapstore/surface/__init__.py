"""What the command line, the terminal tree, the page and the MCP server share.

`records` describes every document that leaves the program. `wording` has the sentences about plans and moves,
`describe` those about one turn, `status` and `stats` answer how a store is doing, and `tree_layout`, `tree_rows` and
`tree_document` draw the tree of turns.

The package never prints, and nothing below it may import it.
"""
