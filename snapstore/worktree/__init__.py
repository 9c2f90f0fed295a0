"""The real folder: what is on disk, what of it is ours to keep, and how our own files are made durable.

Paths are bytes below the root with `/` between parts; states are tree entries (mode and blob id) as in `git/`.
"""
