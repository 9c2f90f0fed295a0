"""One file per command, named after it.

A module defines one click command with the module's own name. `app` loads the file when its command is used, so a
command pays only for what it imports. To add one, add a file here and its name to the groups in `app`
(CONTRIBUTING.md has the steps).

A command parses its words, calls the library and prints. It holds no rules.
"""
