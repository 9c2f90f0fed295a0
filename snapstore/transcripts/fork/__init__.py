"""Fork a Claude Code conversation: a new session file with turns 1 to N of an old one.

`fork` is the entry point. `tree` finds the chain of lines that the fork keeps, `chain` puts them in an order that the
agent accepts, and `file` writes the new file. The old file is only read.

Only Claude Code can resume a file that another program wrote; other agents fork by their own commands.
"""
