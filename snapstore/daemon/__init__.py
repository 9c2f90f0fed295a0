"""The warm process: a server with the program already imported.

`client` runs first in every `snapstore` process. If a warm process of this user and installation is running, `client`
passes the command on and exits with the status that comes back. `server` is the warm process, which forks for each
request. `child` runs in the fork, takes over the caller's streams, directory and environment, and runs the ordinary
command. Requests share no state. Without a warm process every command gives the same result, only more slowly.
`address` holds the server's socket, and `control` shows and stops the server.

The entry point is `snapstore/__main__.py`, which passes in the function that runs a command. Nothing in this package
imports the command line; `client` imports only modules built into the interpreter.
"""
