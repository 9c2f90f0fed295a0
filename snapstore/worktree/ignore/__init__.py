"""Which paths are left out, and why.

`rules` answers as git would answer for nested `.gitignore` files, `info/exclude` and the user's global excludes; `glob`
turns git's patterns into regular expressions. `never_capture` holds the patterns of the setting of that name, and
`other_programs` the files that agents and git keep below a root.

The package knows patterns and names only. It must not import `worktree.scan` or `worktree.write`.
"""
