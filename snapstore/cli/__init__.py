"""The command line: it parses, asks and prints, and holds no rules.

`main` is the entry point, `app` builds the click groups, and `commands` holds one file per command, loaded when the
command is used. `move_command` carries out every move, from the parsed options to the report. `reports` prints results.
`output`, `errors`, `confirm` and `progress` produce output; `context`, `options` and `param_types` handle input. `hook`
is the fast path for agents' hooks; `warm` prepares the warm process.

Only `__main__` may import this package.
"""
