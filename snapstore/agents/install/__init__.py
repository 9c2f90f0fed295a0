"""Connect agents: write our hooks into their settings, and remove them again.

`connect` is the entry point. `locations` lists the hook files of each agent. `hook_file`, `json_edit` and `jsonc` edit
such a file and leave everything else in it byte for byte unchanged. `own_file` writes files that are ours alone, and
`safe_files` writes a file completely or not at all. `shell_rc` does the same for shells.

The package must not import `agents.hooks.turns`: connecting records nothing.
"""
