"""One root's store: where it lies, what its state files hold, and who may change it.

`handle.StoreHandle` is the entry point: it opens a store, finishes what a killed process left, and holds the lock
(`lock`) around every change. `journal` is the one commit point for files, refs and state documents. `state`, `config`,
`settings` and `conversations` describe the documents in the state folder; `locations` finds stores, `log` keeps what
hooks could not say aloud, and `background` starts what runs after a turn.

The package must not import `timeline`: it knows refs and documents, not turns.
"""
