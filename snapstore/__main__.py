"""The entry point of every `snapstore` process.

A command runs in the warm process if that is possible, otherwise in this process.
"""

from __future__ import annotations

import gc
import os
import sys

from snapstore.daemon import client


def main() -> int:
    """Run a command line and return its exit status."""
    arguments = sys.argv[1:]
    try:
        status = client.ask(arguments)
    except KeyboardInterrupt:  # the warm process has not received the command yet
        os._exit(130)
    if status is not None:
        os._exit(status)  # skip the interpreter's shutdown: this process has nothing to flush or clean up
    from snapstore.cli.main import main as run

    status = run()
    if client.leaves_warm_process(arguments):
        try:
            from snapstore.cli.warm import preload
        except ImportError:  # a library is missing, as the command has said
            return status
        from snapstore.daemon.server import fork_server

        if preload.is_wanted():
            fork_server(run, preload.load, preload.start_command)
    gc.freeze()  # at its end the interpreter would search all loaded modules for garbage: a bare start or more
    return status


if __name__ == "__main__":
    sys.exit(main())
