"""Turns as a tree: how they are recorded, read, moved through, kept and forgotten.

From the lowest layer up: `capture` looks at the disk, `history` reads what was recorded, `record` records turns,
`moves` plans and carries out moves, `maintenance` keeps a store small and whole, and `forget` takes content out of
history. `snapstore.api` puts them together for everybody above.

Imports go down this list only, and nothing here prints or asks.
"""
