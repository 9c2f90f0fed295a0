"""Replay a conversation's work on files, for turns that nobody recorded.

`replay` is the entry point: for each turn it gives the files whose state before and after is known, and names what
cannot be known. `operations` says what one tool call did to a file, `apply_patch` reads patches of the form
`*** Update File: path`.

Nothing here reads the disk: only what the conversation says counts.
"""
