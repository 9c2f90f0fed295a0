"""Search for likely secrets before a push publishes them.

`check` is the entry point: it searches new files, records, messages and names. `rules` and `token_prefixes` describe
secrets, `prefilter` finds the few places worth a regular expression, `scanner` reads files in bounded memory, and
`finding` describes a finding to the user. `detect_secrets` and `gitleaks` also use these programs if installed.

The package must not import `share.push` or `share.pull`.
"""
