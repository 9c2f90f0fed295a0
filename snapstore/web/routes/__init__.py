"""The endpoints of the page's server, one module per subject.

`read` returns sessions, trees and nodes. `diff` returns diffs and search results. `moves` makes plans and moves.
`branches` changes branches and checkpoints. `compat` has the endpoints of earlier products (S0, S1, S2).

A route checks its request, calls the library and responds with a record. Routes hold no rules.
"""
