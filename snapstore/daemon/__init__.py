"""The warm process: the program, imported and ready, for the commands and hooks to come.

`client` runs first in every `snapstore` process. It hands the command to the warm process of this user and
installation, if there is one, and exits with the status that comes back. `server` is that process: it forks for each
request, and `child` takes over the caller's streams, directory and environment and runs the ordinary command. Nothing
is shared between requests, and nothing depends on the server: without it every command gives the same result, later.
`address` is the server's address, and `control` shows and stops it.

The entry point is `snapstore/__main__.py`, which hands in the function that runs a command. Nothing here imports the
command line; `client` imports nothing but what the interpreter has built in.
"""
