"""Connect an agent: write our hooks into its settings, and take exactly those out again.

`connect` is the entry point. `locations` says which file of each agent names hooks, `hook_file`, `json_edit` and
`jsonc` change such a file so that everything else keeps its bytes, `own_file` writes files that are ours alone, and
`safe_files` writes whole files or none. `shell_rc` is the same for shells.

The package must not import `agents.hooks.turns`: connecting records nothing.
"""
