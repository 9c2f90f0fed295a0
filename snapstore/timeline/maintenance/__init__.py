"""Maintain a store: gc, prune, check.

`gc` packs what is needed and removes the rest, `prune` removes old branches (C18), `check` verifies that a store is
intact, and `auto` starts gc and prune when they are worth their cost. `manual_git` finds what users made in the store
with git: work trees and a detached HEAD.

The package must not import `timeline.forget`.
"""
