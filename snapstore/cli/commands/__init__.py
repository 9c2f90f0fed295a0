"""One file per command, named after the command.

A module defines one click command with the module's own name. `app` loads the file when its command is used, so a
command pays only for its own imports. To add a command, add a file here and its name to the groups in `app`
(CONTRIBUTING.md has the steps).

A command parses its arguments, calls the library and prints the result. A command holds no rules.
"""
