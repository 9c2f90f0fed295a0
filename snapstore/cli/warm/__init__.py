"""Prepare the warm process, so that its children start with everything loaded and used once.

`preload` imports every command and agent, and says whether a store allows a warm process. `rehearsal` plays a small
turn in a folder of its own, because an interpreter's first time is slow and each child would have it again.

The package hands functions to `daemon`, which knows nothing of the command line.
"""
