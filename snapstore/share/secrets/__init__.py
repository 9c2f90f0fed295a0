"""Find what looks like a secret before a push publishes it.

`check` is the entry point: it looks through new files, records, messages and names. `rules` and `token_prefixes` say
what a secret looks like, `prefilter` finds the few places worth a pattern, `scanner` reads files in bounded memory, and
`finding` is what a person is told. `detect_secrets` and `gitleaks` ask those programs too where they are installed.

The package must not import `share.push` or `share.pull`.
"""
