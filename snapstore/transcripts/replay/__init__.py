"""Replay a conversation's file changes, for turns that were not recorded.

`replay` is the entry point: for each turn it returns the files whose state before and after is known, and names what
cannot be known. `operations` determines what one tool call did to a file.

Nothing here reads the disk: only the content of the conversation counts.
"""
