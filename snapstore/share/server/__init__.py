"""What stands on a server: whose each ref is, and what it is called there and here.

`view` looks at a server before anything is exchanged. `machine` reads and writes the small document in which each
machine says which refs are its own. `names_there` and `names_here` translate ref names and know neither a store nor a
network; `ancestry` answers what they ask of commits. `default_branch` is the branch that `git clone` checks out.

The package must not import `share.push` or `share.pull`.
"""
