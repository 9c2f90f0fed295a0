"""The small JSON documents of a store's state folder: its header, its sessions, its open turns."""

from __future__ import annotations

import json
import os
import time

from xxhash import xxh3_64_hexdigest

from snapstore.errors import Corrupt, Unsafe
from snapstore.git.refs import bad_part
from snapstore.store.settings import BY_NAME, SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

FORMAT = 1
_FIRST_SECOND = -62_135_596_800  # of the year 1; some file systems keep stamps of before
_LAST_SECOND = 253_402_300_799  # of the year 9999: a commit's time is text that anyone can write
LONGEST_NAME = 200
_UNITS = ("s", "m", "h", "d")
_CHECK = ', "check": "'  # the last field: a checksum of the text before it


# Plain classes on purpose: `import dataclasses` and making these with it cost a turn two interpreter starts (20 ms).


class Header:
    """What a store is for, and its settings as they were last read. Checked on every opening."""

    format: int
    id: str
    root: str
    root_hash: str
    user_name: str
    user_email: str
    config: list[int] | None  # the stat of the file that the settings were read from
    max_file_size: int
    max_branches: int
    warn_branches: int
    never_capture: list[str]
    max_store_size: int
    prune_after_days: int
    gc_auto: bool
    gc_grace: int
    save_every: int
    auto_push: bool
    machine_name: str
    daemon: bool

    __slots__ = ("config", "format", "id", "root", "root_hash", "user_email", "user_name", *BY_NAME)

    def __init__(
        self,
        *,
        format: int,
        id: str,
        root: str,
        root_hash: str,
        user_name: str = "",
        user_email: str = "",
        config: list[int] | None = None,
        **settings: Any,
    ) -> None:
        self.format = format
        self.id = id
        self.root = root
        self.root_hash = root_hash
        self.user_name = user_name
        self.user_email = user_email
        self.config = config
        for setting in SETTINGS:
            setattr(self, setting.name, settings.get(setting.name, setting.default))


class SessionState:
    """What a session remembers beside its refs. Lost, it is read again from them.

    Written only when the session starts or leaves a branch: while it stays on one, its last commit knows the number.
    """

    __slots__ = ("branch", "floor", "session")

    def __init__(self, *, session: str, branch: str, floor: int) -> None:
        self.session = session
        self.branch = branch  # the one last stood on
        self.floor = floor  # the highest sequence number of its other branches


class OpenTurn:
    """A turn between its begin and its end. It outlives the process that began it."""

    __slots__ = (
        "agent",
        "before",
        "captured_by_others",
        "empty_folders",
        "first_seen",
        "left_out",
        "modes",
        "named",
        "origin",
        "owner",
        "prompt",
        "saved_at",
        "scan",
        "session",
        "shell",
        "started_at",
        "user_git",
    )

    def __init__(
        self,
        *,
        session: str,
        prompt: str,
        agent: str,
        started_at: float,
        before: str,
        owner: list[Any] | None = None,
        shell: bool = False,
        scan: int = 0,
        named: list[str] | None = None,
        captured_by_others: list[Any] | None = None,
        empty_folders: list[str] | None = None,
        first_seen: list[str] | None = None,
        left_out: dict[str, str] | None = None,
        modes: dict[str, int] | None = None,
        user_git: dict[str, Any] | None = None,
        origin: dict[str, str] | None = None,
        saved_at: float = 0.0,
    ) -> None:
        self.session = session
        self.prompt = prompt
        self.agent = agent
        self.started_at = started_at
        self.before = before  # the commit it started from
        self.owner = owner  # process number and start mark, when one process holds the turn open
        self.shell = shell  # something ran that may have changed any file
        self.scan = scan  # the number of the scan it began with
        self.named = named or []
        # What other sessions did meanwhile: commits of turns that ended, and for each move its paths and their states.
        self.captured_by_others = captured_by_others or []
        self.empty_folders = empty_folders or []  # there before the files that were named in them
        self.first_seen = first_seen or []  # paths whose state before this turn nobody knows
        self.left_out = left_out or {}
        self.modes = modes or {}  # permission bits out of the ordinary that named files had before
        self.user_git = user_git
        self.saved_at = saved_at  # when what it had named by then was last saved; 0: never
        self.origin = origin or {}  # what an agent's hooks said of it: session, prompt_id, transcript


class Documents:
    """Reads and encodes them. Writing goes through the journal."""

    def __init__(self, state: str) -> None:
        self._state = state

    def header(self) -> Header:
        data = self._read("format", checked=False)
        if data is None:
            raise self._damaged("format", "it is missing")
        number = data.get("format")
        if isinstance(number, int) and number > FORMAT:
            raise Corrupt(
                f"this store has format {number}; this snapstore knows {FORMAT}",
                "Update snapstore; nothing was written.",
                format=number,
            )
        self._read("format")
        return self._build(Header, data, "format")

    def session(self, name: str) -> SessionState | None:
        return self.read(SessionState, f"sessions/{name}.json")

    def open_turn(self, name: str) -> OpenTurn | None:
        return self.read(OpenTurn, f"open/{name}.json")

    def sessions_with_open_turns(self) -> list[str]:
        try:
            return sorted(name[:-5] for name in os.listdir(f"{self._state}/open") if name.endswith(".json"))
        except FileNotFoundError:
            return []

    def read(self, kind: type[T], name: str) -> T | None:
        """A document of any kind, None where there is none."""
        data = self._read(name)
        return self._build(kind, data, name) if data is not None else None

    def optional(self, name: str) -> dict[str, Any] | None:
        """A document that only saves work: a damaged one is as good as none."""
        try:
            return self._read(name, checked=False)
        except Corrupt:
            return None

    def _read(self, name: str, checked: bool = True) -> dict[str, Any] | None:
        try:
            with open(f"{self._state}/{name}", "rb") as file:
                text = file.read().decode("utf-8")
            data = json.loads(text)
        except FileNotFoundError:
            return None
        except ValueError:
            raise self._damaged(name, "it is not JSON") from None
        if not isinstance(data, dict):
            raise self._damaged(name, "it is not an object")
        if checked:
            self._check(text, name)
        return data

    def _check(self, text: str, name: str) -> None:
        body, _, check = text.rpartition(_CHECK)
        if check != f'{_checksum(body + "}")}"}}':
            raise self._damaged(name, "it does not match its checksum")

    def _build(self, kind: type[T], data: dict[str, Any], name: str) -> T:
        try:
            # A later version may have added fields; those are not ours to judge.
            fields: tuple[str, ...] = kind.__slots__  # type: ignore[attr-defined]
            return kind(**{key: value for key, value in data.items() if key in fields})
        except TypeError as error:
            raise self._damaged(name, str(error)) from None

    def _damaged(self, name: str, why: str) -> Corrupt:
        hint = "Every turn is whole in store.git beside it: keep that, and restore this file from a backup."
        if name.startswith("open/"):
            hint = f"Move {self._state}/{name} away: what the turn changed is then recorded as edits."
        elif name.startswith("sessions/"):
            hint = f"Move {self._state}/{name} away: it is made again from the refs."
        elif name == "foreign":
            hint = f"Move {self._state}/{name} away, then `snapstore pull`: the server knows whose each branch is."
        elif name.startswith(("conversations/", "agents/")):
            hint = f"Move {self._state}/{name} away: turns and files are whole without it."
        return Corrupt(f"the state file {name} is damaged: {why}", hint, file=name)


def encode(document: object) -> bytes:
    """Any of these documents as it is written: its slots, and a checksum."""
    fields: tuple[str, ...] = document.__slots__  # type: ignore[attr-defined]
    body = json.dumps({name: getattr(document, name) for name in fields})
    return f'{body[:-1]}{_CHECK}{_checksum(body)}"}}'.encode()


def _checksum(body: str) -> str:
    return xxh3_64_hexdigest(body.encode())


def check_name(name: str, what: str = "session") -> str:
    """Session and branch names become file and ref names: nothing that git or a file system could take amiss."""
    if bad_part(name) or not name.isprintable() or len(os.fsencode(name)) > LONGEST_NAME:
        shown = name if len(name) <= 40 else name[:40] + "…"
        raise Unsafe(
            f"{shown!r} cannot be a {what} name",
            f"Use letters, digits, `.`, `_` and `-`, at most {LONGEST_NAME}, not starting with `.` or `-`.",
        )
    return name


def reads_as_address(name: str) -> bool:
    """Whether a name would be taken for a turn, a time or a hash (as `log` prints them)."""
    number = name[:-1] if name[-1:] in _UNITS else name
    hash_like = 7 <= len(name) <= 40 and not set(name.lower()) - set("0123456789abcdef")
    return number.isdecimal() or name.startswith("#") or hash_like


def timestamp(seconds: float) -> str:
    """UTC, to the millisecond."""
    seconds = min(max(seconds, _FIRST_SECOND), _LAST_SECOND)
    whole = int(seconds // 1)
    year, *rest = time.gmtime(whole)[:6]
    return "{:04d}-{:02d}-{:02d}T{:02d}:{:02d}:{:02d}".format(year, *rest) + f".{int((seconds - whole) * 1000):03d}Z"


def readable(text: str) -> str:
    """Text as it was meant: what a narrow locale could not decode is UTF-8 after all."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:
        return text
