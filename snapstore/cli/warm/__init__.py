"""Preparation of the warm process: import everything, and run it once.

`preload` imports every command and agent, and tells whether a store allows a warm process. `rehearsal` records a small
turn in a temporary folder, because the first run of any code is slow and each forked child would repeat that cost.

The package passes functions to `daemon`, which does not import the command line.
"""
