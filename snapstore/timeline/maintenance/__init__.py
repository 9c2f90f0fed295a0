"""Keep a store small, whole and known: gc, prune, check.

`gc` packs what is needed and removes what is not, `prune` decides what may go (C18), `check` proves that a store is
whole, and `auto` starts gc and prune when they pay. `manual_git` finds what people made in the store with git: work
trees and a detached HEAD.

The package must not import `timeline.forget`.
"""
