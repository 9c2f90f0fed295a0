"""Fork a Claude Code conversation into a new session file with its turns 1 to N.

`fork` is the entry point. `tree` finds the chain of lines that the fork keeps, `chain` puts the lines in an order that
the agent accepts, and `file` writes the new file. The old file is only read.

Only Claude Code can resume a file that another program wrote; other agents fork by their own commands.
"""
