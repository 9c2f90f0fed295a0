"""The small JSON documents of a store's state folder: its header, its sessions, its open turns."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field

from snapstore.errors import Corrupt, Unsafe
from snapstore.git.refs import bad_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

FORMAT = 1
DEFAULT_MAX_FILE_SIZE = 100 * 1000 * 1000
LONGEST_NAME = 200


@dataclass(slots=True)
class Header:
    """What a store is for. Checked on every opening."""

    format: int
    id: str
    root: str
    root_hash: str
    max_file_size: int = DEFAULT_MAX_FILE_SIZE
    user_name: str = ""
    user_email: str = ""


@dataclass(slots=True)
class SessionState:
    """What a session remembers beside its refs. Lost, it is read again from them.

    Written only when the session starts or leaves a branch: while it stays on one, its last commit knows the number.
    """

    session: str
    branch: str  # the one last stood on
    floor: int  # the highest sequence number of its other branches


@dataclass(slots=True)
class OpenTurn:
    """A turn between its begin and its end. It outlives the process that began it."""

    session: str
    prompt: str
    agent: str
    started_at: float
    before: str  # the commit it started from
    owner: list[Any] | None = None  # process number and start mark, when one process holds the turn open
    shell: bool = False  # something ran that may have changed any file
    named: list[str] = field(default_factory=list)
    captured_by_others: list[str] = field(default_factory=list)  # turns of other sessions that ended meanwhile
    first_seen: list[str] = field(default_factory=list)  # paths whose state before this turn nobody knows
    left_out: dict[str, str] = field(default_factory=dict)
    user_git: dict[str, Any] | None = None


class Documents:
    """Reads and encodes them. Writing goes through the journal."""

    def __init__(self, state: str) -> None:
        self._state = state

    def header(self) -> Header:
        data = self._read("format")
        if data is None:
            raise self._damaged("format", "it is missing")
        number = data.get("format")
        if isinstance(number, int) and number > FORMAT:
            raise Corrupt(
                f"this store has format {number}; this snapstore knows {FORMAT}",
                "Update snapstore; nothing was written.",
                format=number,
            )
        return self._build(Header, data, "format")

    def session(self, name: str) -> SessionState | None:
        data = self._read(f"sessions/{name}.json")
        return self._build(SessionState, data, f"sessions/{name}.json") if data is not None else None

    def open_turn(self, name: str) -> OpenTurn | None:
        data = self._read(f"open/{name}.json")
        return self._build(OpenTurn, data, f"open/{name}.json") if data is not None else None

    def sessions_with_open_turns(self) -> list[str]:
        try:
            return sorted(name[:-5] for name in os.listdir(f"{self._state}/open") if name.endswith(".json"))
        except FileNotFoundError:
            return []

    def optional(self, name: str) -> dict[str, Any] | None:
        """A document that only saves work: a damaged one is as good as none."""
        try:
            return self._read(name)
        except Corrupt:
            return None

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            with open(f"{self._state}/{name}", "rb") as file:
                data = json.loads(file.read())
        except FileNotFoundError:
            return None
        except ValueError:
            raise self._damaged(name, "it is not JSON") from None
        if not isinstance(data, dict):
            raise self._damaged(name, "it is not an object")
        return data

    def _build(self, kind: type[T], data: dict[str, Any], name: str) -> T:
        try:
            # A later version may have added fields; those are not ours to judge.
            fields = kind.__dataclass_fields__  # type: ignore[attr-defined]
            return kind(**{key: value for key, value in data.items() if key in fields})
        except TypeError as error:
            raise self._damaged(name, str(error)) from None

    def _damaged(self, name: str, why: str) -> Corrupt:
        hint = "Restore it from a backup, or remove the store and run `snapstore init` again."
        if name.startswith("open/"):
            hint = f"Move {self._state}/{name} away: what the turn changed is then recorded as edits."
        elif name.startswith("sessions/"):
            hint = f"Move {self._state}/{name} away: it is made again from the refs."
        return Corrupt(f"the state file {name} is damaged: {why}", hint, file=name)


def encode(document: Header | SessionState | OpenTurn) -> bytes:
    return json.dumps(asdict(document)).encode()


def check_name(name: str, what: str = "session") -> str:
    """Session and branch names become file and ref names: nothing that git or a file system could take amiss."""
    if bad_part(name) or not name.isprintable() or len(os.fsencode(name)) > LONGEST_NAME:
        shown = name if len(name) <= 40 else name[:40] + "…"
        raise Unsafe(
            f"{shown!r} cannot be a {what} name",
            f"Use letters, digits, `.`, `_` and `-`, at most {LONGEST_NAME}, not starting with `.` or `-`.",
        )
    return name
