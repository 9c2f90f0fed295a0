"""The JSON documents in a store's state folder: header, sessions, open turns."""

from __future__ import annotations

import json
import os
from typing import Any, TypeVar

from xxhash import xxh3_64_hexdigest

from snapstore.errors import Corrupt, Unsafe
from snapstore.git.refs import bad_part
from snapstore.store.settings import BY_NAME, SETTINGS

T = TypeVar("T")

FORMAT = 1
LONGEST_NAME = 200
_UNITS = ("s", "m", "h", "d")
_CHECK = ', "check": "'  # the last field: a checksum of the text before it


# These are plain classes, because importing dataclasses and building the classes would add 20 ms to every turn.


class Header:
    """The store's format, id and root, with its settings as last read."""

    format: int
    id: str
    root: str
    root_hash: str
    user_name: str
    user_email: str
    config: list[int] | None  # stat of `config.toml` when the settings were read
    max_file_size: int
    max_branches: int
    warn_branches: int
    never_capture: list[str]
    max_store_size: int
    prune_after_days: int
    gc_auto: bool
    gc_grace: int
    save_every: int
    auto_merge: bool
    tell_agents: bool
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
    """What a session stores besides its refs; if lost, rebuilt from the refs.

    The document is written only when the session starts or changes branches. In between, the branch's last commit has
    the highest sequence number.
    """

    __slots__ = ("branch", "floor", "session")

    def __init__(self, *, session: str, branch: str, floor: int) -> None:
        self.session = session
        self.branch = branch  # the current branch
        self.floor = floor  # the highest sequence number of its other branches


class OpenTurn:
    """A turn between begin and end, which outlives the process that began it."""

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
        self.before = before  # the commit that the turn started from
        self.owner = owner  # process id and start time, if one process holds the turn open
        self.shell = shell  # whether a command ran that may have changed any file
        self.scan = scan  # number of the scan at the begin of the turn
        self.named = named or []
        # What other sessions did meanwhile: the commits of ended turns, and the paths and states of moves.
        self.captured_by_others = captured_by_others or []
        self.empty_folders = empty_folders or []  # empty folders that existed before named files in them
        self.first_seen = first_seen or []  # paths whose state before this turn is unknown
        self.left_out = left_out or {}
        self.modes = modes or {}  # unusual permission bits that named files had before
        self.user_git = user_git
        self.saved_at = saved_at  # when the files named so far were last saved; 0: never
        self.origin = origin or {}  # what an agent's hooks reported: session, prompt_id, transcript


class Documents:
    """Reads the documents of a state folder; writing goes through the journal."""

    def __init__(self, state: str) -> None:
        self._state = state

    def header(self) -> Header:
        data = self._read("format", checked=False)
        if data is None:
            raise self._damaged("format", "it is missing")
        number = data.get("format")
        if isinstance(number, int) and number > FORMAT:
            raise Corrupt(
                f"this store has format {number}, but this snapstore only supports format {FORMAT}",
                "Nothing was written. Update snapstore, then run this again.",
                format=number,
            )
        self._read("format")
        return self._build(Header, data, "format")

    def session(self, name: str) -> SessionState | None:
        return self.read(SessionState, f"sessions/{name}.json")

    def sessions(self) -> list[str]:
        return self._names("sessions")

    def refuse_other_spelling(self, session: str) -> None:
        """Refuse a session name that differs from an existing one only in case.

        On a file system that ignores case, both sessions would share their refs and close each other's open turns.
        """
        folder, name = f"{self._state}/sessions", f"{session}.json"
        # Inodes cannot be compared: FUSE gives each spelling of a name its own inode.
        found = all(os.path.lexists(f"{folder}/{one}.json") for one in {session, session.swapcase()})
        names = os.listdir(folder) if found and session != session.swapcase() else [name]
        if name not in names:
            other = next((one[: -len(".json")] for one in names if one.casefold() == name.casefold()), session)
            raise Unsafe(
                f"the session {other} exists, and the store's file system cannot tell {session} from {other}",
                f"Use --session {other}, or another name.",
                session=other,
            )

    def open_turn(self, name: str) -> OpenTurn | None:
        return self.read(OpenTurn, f"open/{name}.json")

    def sessions_with_open_turns(self) -> list[str]:
        return self._names("open")

    def _names(self, folder: str) -> list[str]:
        try:
            return sorted(name[:-5] for name in os.listdir(f"{self._state}/{folder}") if name.endswith(".json"))
        except FileNotFoundError:
            return []

    def read(self, kind: type[T], name: str) -> T | None:
        """Read a document of any kind, None if there is none."""
        data = self._read(name)
        return self._build(kind, data, name) if data is not None else None

    def optional(self, name: str) -> dict[str, Any] | None:
        """Read a document that can be rebuilt; treat a damaged one as missing."""
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
            # A later version may have added fields: ignore them.
            fields: tuple[str, ...] = kind.__slots__  # type: ignore[attr-defined]
            return kind(**{key: value for key, value in data.items() if key in fields})
        except TypeError as error:
            raise self._damaged(name, str(error)) from None

    def _damaged(self, name: str, why: str) -> Corrupt:
        hint = "All turns are intact in store.git: keep that folder, and restore this file from a backup."
        if name.startswith("open/"):
            hint = f"Move {self._state}/{name} away; the turn's changes will be recorded as edits."
        elif name.startswith("sessions/"):
            hint = f"Move {self._state}/{name} away; the next command rebuilds it from the refs."
        elif name == "foreign":
            hint = f"Move {self._state}/{name} away, then run `snapstore pull`, which rebuilds it."
        elif name.startswith(("conversations/", "agents/")):
            hint = f"Move {self._state}/{name} away; no turn and no file depends on it."
        return Corrupt(f"the state file {name} is damaged: {why}", hint, file=name)


def encode(document: object) -> bytes:
    """Encode a document as JSON: its slots, and a checksum."""
    fields: tuple[str, ...] = document.__slots__  # type: ignore[attr-defined]
    body = json.dumps({name: getattr(document, name) for name in fields})
    return f'{body[:-1]}{_CHECK}{_checksum(body)}"}}'.encode()


def _checksum(body: str) -> str:
    return xxh3_64_hexdigest(body.encode())


def check_name(name: str, what: str = "session") -> str:
    """Check the name of a session or branch, which becomes part of file and ref names."""
    if bad_part(name) or not name.isprintable() or len(os.fsencode(name)) > LONGEST_NAME:
        shown = name if len(name) <= 40 else name[:40] + "…"
        raise Unsafe(
            f"{shown!r} cannot be a {what} name",
            f"Use at most {LONGEST_NAME} letters, digits, `.`, `_` and `-`, and begin with a letter or digit.",
        )
    return name


def reads_as_address(name: str) -> bool:
    """Return whether a name looks like a turn number, a time or a hash."""
    number = name[:-1] if name[-1:] in _UNITS else name
    hash_like = 7 <= len(name) <= 40 and not set(name.lower()) - set("0123456789abcdef")
    return number.isdecimal() or name.startswith("#") or hash_like


def readable(text: str) -> str:
    """Return text that another locale decoded with surrogates, decoded as UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:
        return text
