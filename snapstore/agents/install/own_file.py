"""Write files that are ours alone: scripts and plugins.

The second line says that the file is ours and has a checksum of all other lines. With the checksum, a file that
`connect` wrote can be distinguished from a foreign file of the same name and from one edited since.
"""

from __future__ import annotations

import json

from xxhash import xxh3_64_hexdigest

from snapstore import __version__
from snapstore.agents.install.jsonc import parse
from snapstore.errors import Conflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_SAYS = "Written by `snapstore connect`, removed by `snapstore disconnect`. Checksum: "
_PLUGIN: dict[str, object] = {
    "name": "snapstore",
    "description": "Undo for coding agents: every turn is recorded.",
    "author": {"name": "snapstore"},
    "license": "MIT",
}


def _sum(text: str) -> str:
    return xxh3_64_hexdigest(text.encode())


class OwnFile:
    """A file that is ours alone.

    `make` returns the text for a command, and `find` returns the command in such a text.
    """

    __slots__ = ("_comment", "_find", "_make")

    def __init__(self, make: Callable[[str], str], find: Callable[[str], str], *, comment: str) -> None:
        self._make = make
        self._find = find
        self._comment = comment

    def connected(self, text: str) -> str | None:
        """Return the command the file runs, or None for a foreign file."""
        plain, _ = self._opened(text)
        return None if plain is None else self._find(plain)

    def merged(self, text: str | None, command: str) -> str:
        if text is not None:
            self._refuse(text)
        first, rest = self._make(command).split("\n", 1)
        return f"{first}\n{self._comment} {_SAYS}{_sum(first + rest)}\n{rest}"

    def without(self, text: str) -> None:
        self._refuse(text)

    def _refuse(self, text: str) -> None:
        plain, whole = self._opened(text)
        if plain is None:
            raise Conflict(
                "the file already exists and was not written by snapstore", "Move it away, then run this again."
            )
        if not whole:
            raise Conflict(
                "the file was changed by hand since it was written",
                "Move it away if its changes matter, or delete it; then run this again.",
            )

    def _opened(self, text: str) -> tuple[str | None, bool]:
        """Return the text without our line, and whether the checksum matches.

        The text is None for a foreign file.
        """
        first, _, behind = text.partition("\n")
        says, _, rest = behind.partition("\n")
        if not says.startswith(f"{self._comment} {_SAYS}"):
            return None, False
        return f"{first}\n{rest}", says.rpartition(" ")[2] == _sum(first + rest)


class Manifest:
    """The manifest that makes a folder a plugin of Claude Code.

    A manifest with fields added by the user is kept as it is.
    """

    __slots__ = ()

    def connected(self, text: str) -> str | None:
        return "" if _read(text).get("name") == "snapstore" else None

    def merged(self, text: str | None, command: str) -> str:
        found = _PLUGIN if text is None else _read(text)
        if found.get("name") != "snapstore":
            raise Conflict("another plugin is in this folder", "Choose an empty folder, or a new one.")
        return self._plain() if text is None or _is_plain(found) else text

    def without(self, text: str) -> str | None:
        return None if _is_plain(_read(text)) else text

    def _plain(self) -> str:
        return json.dumps({**_PLUGIN, "version": __version__}, indent=2) + "\n"


def _is_plain(found: dict[str, object]) -> bool:
    return {**found, "version": ""} == {**_PLUGIN, "version": ""}


def _read(text: str) -> dict[str, object]:
    root = parse(text)
    return root.value if root is not None and isinstance(root.value, dict) else {}
