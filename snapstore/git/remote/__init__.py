"""Other repositories: list refs, fetch, push, and read and write bundles.

`open_remote(url)` in `open.py` returns a Connection. `server_driver.py` talks to a server through the git program, with
the user's ssh, credential helpers, proxies, certificates and `insteadOf` (`git_driver.py`, `git_runner.py`).
`folder_driver.py` talks to a folder of this machine, which `folders.py` protects. `dulwich_driver.py` is used where git
is not installed, and states its limitations. `urls.py` refuses addresses that could run a program. Everything received
is written to a quarantine folder and checked there (`incoming.py`) before the store sees it.

This package knows nothing of stores, sessions or naming, which belong to `snapstore.share`.
"""
