"""Write the file of a fork, and change fields of a line without touching the rest."""

from __future__ import annotations

import errno
import json
import os
import re

from snapstore.base.files import remove_quietly, write_all
from snapstore.errors import Conflict, Failed
from snapstore.transcripts.lines import parse
from snapstore.transcripts.locate import checked_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_BUFFER = 1 << 20
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_OPEN = re.compile(r"\{[ \t\r\n]*")
_COLON = re.compile(r"[ \t\r\n]*:[ \t\r\n]*")
_COMMA = re.compile(r"[ \t\r\n]*(?:,[ \t\r\n]*(?=\")|(?=\}))")
_AROUND = "\0 \t\r\n\ufeff"  # characters that a crash or an editor leaves around a line
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # strict: lines that others refuse are rewritten


class Line:
    """A JSON object written by another program, with the positions of its fields."""

    __slots__ = ("_end", "_places", "_text", "fields")

    def __init__(self, raw: bytes) -> None:
        self._text = raw.decode("utf-8", "surrogateescape").strip(_AROUND)
        self._places: dict[str, tuple[int, int]] | None = {}
        self.fields: dict[str, Any] = {}
        self._end = 0
        try:
            self._end = self._scan()
        except (ValueError, IndexError, StopIteration, RecursionError):
            self._places = None
            self.fields = parse(raw) or {}

    def _scan(self) -> int:
        """Find the fields and return the position where the object ends.

        Raises ValueError, IndexError, StopIteration or RecursionError if the text is not an object.
        """
        text, places = self._text, self._places
        assert places is not None
        at = _past(_OPEN, text, 0)
        while text[at] != "}":
            key, at = _scan(text, at)
            start = _past(_COLON, text, at)
            self.fields[key], end = _scan(text, start)
            places[key] = (start, end)
            at = _past(_COMMA, text, end)
        if at + 1 != len(text):
            raise ValueError("more than one value")
        return at

    def changed(self, values: dict[str, Any]) -> bytes:
        """Return the line with these fields changed, and a line ending.

        Everything else keeps its bytes.
        """
        changes = {key: value for key, value in values.items() if key not in self.fields or self.fields[key] != value}
        if self._places is None:
            return dumped({**self.fields, **changes}).encode() + b"\n"
        pieces = []
        at = 0
        for (start, end), key in sorted((self._places[key], key) for key in changes if key in self._places):
            pieces += [self._text[at:start], dumped(changes[key])]
            at = end
        pieces.append(self._text[at : self._end])
        for key in changes:
            if key not in self._places:
                pieces += ["," if self._places else "", f"{dumped(key)}:{dumped(changes[key])}"]
        pieces.append(self._text[self._end :])
        return "".join(pieces).encode("utf-8", "surrogateescape") + b"\n"


def _past(mark: re.Pattern[str], text: str, at: int) -> int:
    found = mark.match(text, at)
    if found is None:
        raise ValueError(f"not an object from {at} on")
    return found.end()


def dumped(value: Any) -> str:
    """Return JSON in the agent's format.

    Lone surrogates, which UTF-8 cannot express, stay escaped.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def write_fork(folder: str, new_id: str, lines: Iterable[bytes], check: Callable[[], object] | None = None) -> str:
    """Write the file of a new session and return its path.

    Even if the write is interrupted, the file is either absent or complete. `check` is called when everything is
    written, just before the file gets its name.

    Raises Conflict if the session exists, Unsafe for an id that leads elsewhere, and Failed if the file cannot be
    written.
    """
    path = os.path.join(folder, f"{checked_id(new_id)}.jsonl")
    # The name does not end in .jsonl, so that a temporary file left by a kill is not taken for a session.
    temporary = os.path.join(folder, f".{new_id}.{os.getpid()}-{os.urandom(4).hex()}.new")
    try:
        if os.path.lexists(path):
            raise FileExistsError
        _write(temporary, lines)
        try:
            if check is not None:
                check()
            _name(temporary, path)
        finally:
            remove_quietly(temporary)
        _sync(folder)
    except FileExistsError as error:
        raise Conflict(
            f"session {new_id} already exists", "Nothing was written. Choose another id.", session=new_id
        ) from error
    except OSError as error:
        raise Failed(f"cannot write a session into {folder!r}: {error.strerror}", "Nothing was written.") from error
    return path


def _write(path: str, lines: Iterable[bytes]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        waiting = bytearray()
        for line in lines:
            waiting += line
            if len(waiting) >= _BUFFER:
                write_all(descriptor, waiting)
                waiting = bytearray()
        write_all(descriptor, waiting)
        os.fsync(descriptor)
    except BaseException:
        remove_quietly(path)
        raise
    finally:
        os.close(descriptor)


def _name(temporary: str, path: str) -> None:
    """Give the file its name by a hard link, which never replaces an existing file.

    A rename could replace one, and is used only if the file system has no hard links.
    """
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError from error
        os.rename(temporary, path)


def _sync(folder: str) -> None:
    from snapstore.base.files import sync_folder

    sync_folder(folder)
