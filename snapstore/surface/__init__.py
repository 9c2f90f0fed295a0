"""What the command line, the terminal tree, the page and the MCP server share.

`records/` describes every document that leaves the program. The package may import the rooms below it (`agents`,
`share`, `transcripts`, `timeline`), and nothing below it may import the package. It never prints.
"""
