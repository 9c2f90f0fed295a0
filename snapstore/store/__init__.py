"""One root's store: its location, its state files, and its lock.

`handle.StoreHandle` is the entry point: it opens a store, finishes what a killed process left behind, and holds the
lock (`lock`) around every change. `journal` is the one commit point for files, refs and state documents. `state`,
`config`, `settings`, `owners` and `conversations` describe the documents in the state folder. `locations` finds stores,
`log` keeps messages that hooks cannot print, and `background` starts what runs after a turn.

The package must not import `timeline`: it knows refs and documents, not turns.
"""
