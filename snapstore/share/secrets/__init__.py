"""Search for likely secrets before a push publishes them.

`check` is the entry point: it searches new files, records, messages and names. `rules` and `token_prefixes` describe
secrets, `prefilter` finds the few places worth a regular expression, `scanner` reads files in bounded memory, and
`finding` is what the user is shown. `detect_secrets` and `gitleaks` run these programs too if they are installed.

The package must not import `share.push` or `share.pull`.
"""
