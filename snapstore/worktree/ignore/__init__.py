"""Decides which paths may be captured or written, and which a scan leaves out.

`policy` is the entry point: it decides whether a path may be captured or written, and if not, why. `rules` answers as
git does for nested `.gitignore` files, `info/exclude` and the user's global excludes. `glob` translates git's patterns
into regular expressions. `never_capture` holds the patterns of the setting of that name. `other_programs` lists files
below a root that belong to agents or to git.

The package knows only patterns and names, and must not import `worktree.scan` or `worktree.write`.
"""
