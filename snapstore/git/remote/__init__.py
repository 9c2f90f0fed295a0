"""Other repositories: their refs, fetch, push and bundles, by the git program.

`open_remote(url)` in `opening.py` gives a Connection. `server_driver.py` speaks to a server through the git program,
with the user's ssh, credential helpers, proxies, certificates and `insteadOf` (`git_driver.py`, `git_runner.py`),
`folder_driver.py` to a folder of this machine, which `folders.py` protects; `dulwich_driver.py` stands in where git is
not installed, and says what it lacks. `urls.py` refuses addresses that could run a program. Whatever comes in lands in
a quarantine folder and is checked there (`incoming.py`) before the store sees it.

Nothing here knows of stores, sessions or naming: that is `snapstore.share`.
"""
