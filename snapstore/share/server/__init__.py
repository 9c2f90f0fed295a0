"""Interpret a server's refs: who owns which, and their names there and here.

`view` reads a server before anything is exchanged. `machine` reads and writes the small document in which each machine
claims its refs. `names_there` and `names_here` translate ref names and use neither a store nor a network; `ancestry`
answers their questions about commits. `default_branch` is the branch that `git clone` checks out.

The package must not import `share.push` or `share.pull`.
"""
