"""Read the lines of a file that another program is writing, one at a time."""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import contextmanager

from snapstore.errors import Corrupt, Unknown, Unsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    Ref = tuple[int, int] | bytes  # a line's position (offset, size), or the line itself if it has no position

LONGEST_LINE = 256 << 20  # real lines reach 50 MB (pasted images); anything longer is a broken file
_BOM = b"\xef\xbb\xbf"
# Not strict: some agents write control characters inside strings, which are harmless here. The inner scanner is used
# because lines are short and many, and the code around it in `decode` takes as long as the scanner itself.
_scan = json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined]


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading; refuse anything but a regular file.

    A pipe or a device would block or never end.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | getattr(os, "O_NOCTTY", 0))
    except ValueError as error:  # a NUL in the name
        raise Unsafe(f"not the name of a file: {_shown(path)}") from error
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise Unknown(f"there is no transcript {_shown(path)}", "Check its path.") from error
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO):
            raise Unsafe(f"not a transcript: {_shown(path)}: {error.strerror}") from error
        raise Corrupt(f"cannot read {_shown(path)}: {error.strerror}", "Check its permissions.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Unsafe(f"not a regular file: {_shown(path)}", "Give the path of the agent's transcript file.")
    return open(descriptor, "rb", buffering=1 << 20)


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file like `open_file` and close it; convert read errors to Corrupt.

    The disk or the network can fail while the file is read.
    """
    with open_file(path) as file:
        try:
            yield file
        except OSError as error:
            raise Corrupt(f"cannot read {_shown(path)}: {error.strerror}", "Try again, or copy the file.") from error


def lines(file: BinaryIO, start: int = 0) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Yield each line with its position, starting at an offset.

    A line that is too long is returned as empty bytes.
    """
    offset = start
    file.seek(start)
    while raw := file.readline(LONGEST_LINE):
        size = len(raw)
        if size == LONGEST_LINE and raw[-1:] != b"\n":
            while raw[-1:] != b"\n" and (raw := file.readline(1 << 20)):
                size += len(raw)
            raw = b""
        yield (offset, size), raw
        offset += size


class Source:
    """A file that is read twice.

    Parsed lines of the first reading are cached within a size limit, so that they are not parsed again. Other lines are
    read again from their positions.
    """

    def __init__(self, file: BinaryIO, room: int = 0) -> None:
        self.file = file
        self._room = room
        self._kept: dict[Ref, tuple[bytes, dict[str, Any]]] = {}

    def keep(self, ref: tuple[int, int], raw: bytes, record: dict[str, Any]) -> None:
        if ref[1] <= self._room:
            self._room -= ref[1]
            self._kept[ref] = raw, record

    def take(self, ref: Ref) -> tuple[bytes, dict[str, Any] | None]:
        """Return a line and its object, and drop it from the cache.

        Each turn is read only once.
        """
        if isinstance(ref, bytes):
            return ref, parse(ref)
        kept = self._kept.pop(ref, None)
        if kept is not None:
            return kept
        self.file.seek(ref[0])
        raw = self.file.read(ref[1])
        return raw, parse(raw)


def parse(raw: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, or None; never raise."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace")
    try:
        found, end = _scan(text, 0)
    except RecursionError:
        return None
    except (ValueError, StopIteration):
        end = -1
    if end < 0 or not (end == len(text) or text[end:].isspace()):
        # A crash or an editor may leave these around a line: NULs from a hole, a byte order mark, blanks.
        stripped = raw.strip(b"\0 \t\r\n").removeprefix(_BOM)
        return parse(stripped) if len(stripped) < len(raw.rstrip()) else None
    return found if isinstance(found, dict) else None


def clean(text: str) -> str:
    """Replace lone surrogates, which JSON can express and UTF-8 cannot.

    A lone surrogate would break any code that prints or stores the text.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def is_blank(raw: bytes) -> bool:
    return not raw.strip(b"\0 \t\r\n").removeprefix(_BOM)


def document(file: BinaryIO, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a file that is one JSON object; raise Corrupt if it is not.

    A half-written or broken document cannot be used at all.
    """
    size = os.fstat(file.fileno()).st_size
    if size > LONGEST_LINE:
        raise Corrupt(f"{_shown(path)} is too large for one document ({size} bytes)")
    file.seek(0)
    raw = file.read()
    found = parse(raw)
    if found is None and not is_blank(raw):
        raise Corrupt(f"{_shown(path)} is not a JSON document", "It may still be being written; try again.")
    return found or {}


def dump(record: Any) -> bytes:
    """Return a part of a document as a line."""
    try:
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"
    except RecursionError:  # parsed at a shallower stack depth than it is written at
        return b""


def _shown(path: str | os.PathLike[str]) -> str:
    return repr(os.fspath(path))[:200]
