"""Open a remote: with the git program if installed, otherwise with dulwich."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from snapstore.git.remote import urls
from snapstore.git.remote.connection import TIMEOUT, Ask, Connection, Options, Progress
from snapstore.git.remote.dulwich_driver import DulwichConnection
from snapstore.git.remote.folder_driver import FolderConnection
from snapstore.git.remote.incoming import Limits
from snapstore.git.remote.server_driver import ServerConnection


def open_remote(
    url: str,
    *,
    progress: Progress | None = None,
    environment: Mapping[str, str] | None = None,
    ask: Ask | None = None,
    timeout: float = TIMEOUT,
    limits: Limits | None = None,
) -> Connection:
    """Return a connection to a path or an https, http, ssh, git or file address.

    Raises Unsafe for an address that must not be followed. The remote is not contacted yet. `ask` is given only if a
    person is at a terminal.
    """
    address = urls.parse(url)
    options = Options(os.environ if environment is None else environment, progress, ask, timeout, limits)
    program = git_program(options.environment)
    if program is None:
        return DulwichConnection(address, options)
    kind = FolderConnection if address.scheme == "path" else ServerConnection
    return kind(address, options, program)


def git_program(environment: Mapping[str, str] | None = None) -> str | None:
    """Return the path of the git program, or None."""
    return shutil.which("git", path=(os.environ if environment is None else environment).get("PATH", os.defpath))
