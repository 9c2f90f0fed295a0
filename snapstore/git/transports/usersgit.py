"""What the user has told git about the network: passwords by credential helper, proxies, ssh.

Asked of git itself, outside of every repository: the user's own configuration counts, a store's or a project's never.
A password travels through pipes only; it is in no argument, no message and no log.
"""

from __future__ import annotations

import os

from snapstore.errors import Remote
from snapstore.git.transports.local import outside_git
from snapstore.git.transports.stream import Broken, Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from snapstore.git.transports.urls import Address

_PATIENCE = 300.0  # a helper may wait for a person at a window of its own
_KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH")


class Credentials:
    """Who we are to a server, and whether git's helpers want to hear if that was right."""

    __slots__ = ("from_git", "password", "user")

    def __init__(self, user: str, password: str, *, from_git: bool) -> None:
        self.user = user
        self.password = password
        self.from_git = from_git

    def header(self) -> str:
        from base64 import b64encode

        return "Basic " + b64encode(f"{self.user}:{self.password}".encode("utf-8", "surrogateescape")).decode()

    def __repr__(self) -> str:
        return "Credentials(…)"


def fill(address: Address, environment: Mapping[str, str]) -> Credentials | None:
    """What a helper knows; None where there is none, or it knows nothing."""
    answer = _git(environment, ["credential", "fill"], _described(address))
    found = dict(line.split("=", 1) for line in (answer or "").splitlines() if "=" in line)
    if not found.get("password"):
        return None
    return Credentials(found.get("username", address.user), found["password"], from_git=True)


def tell(address: Address, credentials: Credentials, environment: Mapping[str, str], *, right: bool) -> None:
    """Lets helpers keep what was right and forget what was wrong."""
    said = _described(address, credentials)
    _git(environment, ["credential", "approve" if right else "reject"], said)


def settings(section: str, url: str | None, environment: Mapping[str, str]) -> dict[str, list[str]]:
    """The user's settings below a section, in lower case; for an address, those that git would use for it."""
    words = ["config", "--null", "--get-regexp", f"^{section}\\."]
    if url is not None:
        words = ["config", "--null", "--get-urlmatch", section, url]
    found: dict[str, list[str]] = {}
    for row in (_git(environment, words, "") or "").split("\0"):
        key, separator, value = row.partition("\n")
        if separator:
            found.setdefault(key.lower(), []).append(value)
    return found


def _described(address: Address, credentials: Credentials | None = None) -> str:
    rows = [("protocol", address.scheme), ("host", address.place), ("path", address.path.lstrip("/"))]
    if credentials is not None:
        rows += [("username", credentials.user), ("password", credentials.password)]
    elif address.user:
        rows.append(("username", address.user))
    for _, value in rows:
        if "\n" in value or "\0" in value:
            raise Remote("a user name or password has a line break in it")
    return "".join(f"{key}={value}\n" for key, value in rows) + "\n"


def _git(environment: Mapping[str, str], words: list[str], said: str) -> str | None:
    """What git answers, None where it fails or is not there."""
    kept = outside_git(environment)
    kept.update({key: environment[key] for key in _KEPT if key in environment})
    # No repository, no window, no question: helpers alone.
    kept.update(GIT_DIR=os.devnull, GIT_TERMINAL_PROMPT="0", GIT_ASKPASS="", SSH_ASKPASS="")
    try:
        process = Process(["git", *words], kept, "git", _PATIENCE)
    except Remote:
        return None
    try:
        process.write(said.encode("utf-8", "surrogateescape"))
        process.end_writing()
        answer = b""
        while piece := process.read_some():
            answer += piece
        return answer.decode("utf-8", "surrogateescape")
    except Broken:
        return None
    finally:
        process.close()
