"""The command line: it asks and shows, and holds no rules.

`main` is the entry point, `app` builds the click groups, and `commands` holds one file per command, loaded when the
command is used. `move_command` is the way of every move from its words to its report; `reports` has what is printed.
`output`, `errors`, `confirm` and `progress` are how the program speaks; `context`, `options` and `param_types` are how
it listens. `hook` is the short way that agents' hooks take; `warm` prepares the warm process.

Nothing may import the package but `__main__`.
"""
