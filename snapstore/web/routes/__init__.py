"""The addresses of the page's server, one module per subject.

`read` gives sessions, trees and nodes, `diff` differences and search, `moves` plans and moves, `branches` changes of
branches and checkpoints, and `compat` the endpoints of the products before us (S0, S1, S2).

A route checks its request, calls the library and answers with a record; it holds no rules.
"""
