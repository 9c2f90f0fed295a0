"""Other repositories: their refs, fetch, push and bundles, by the git program.

`open_remote(url)` in `opening.py` gives a Connection. `git_driver.py` drives the git program, with the user's ssh,
credential helpers, proxies, certificates and `insteadOf`; `dulwich_driver.py` stands in where git is not installed, and
says what it lacks. `urls.py` refuses addresses that could run a program, `folders.py` protects repositories on this
machine. Whatever comes in lands in a quarantine folder and is checked there (`incoming.py`) before the store sees it.

Nothing here knows of stores, sessions or naming: that is `snapstore.share`.
"""
