"""What can be worked out again, in a file that saves the work.

It is for data that never goes out of date. One that does not match its checksum, or was written by another Python, is
as good as none; losing it costs time only, so it is not synced.
"""

from __future__ import annotations

import marshal
import os
import sys
from _thread import get_ident

from xxhash import xxh3_64_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PYTHON = sys.implementation.cache_tag


def read(path: str, what: str) -> Any:
    """What was written, None for nothing that can be used."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    mark = _mark(what)
    body = data[len(mark) + 8 :]
    whole = data[: len(mark)] == mark and data[len(mark) : len(mark) + 8] == xxh3_64_digest(body)
    return marshal.loads(body) if whole else None


def write(path: str, what: str, found: Any) -> None:
    """Where it cannot be written, a full or read-only disk, it is worked out again next time."""
    body = marshal.dumps(found)
    replace(path, _mark(what) + xxh3_64_digest(body) + body)


def replace(path: str, data: bytes) -> bool:
    """Puts a file in the place of another, if that can be done."""
    temporary = f"{path}.{os.getpid()}.{get_ident()}"  # a server reads on several threads
    try:
        with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)
        os.rename(temporary, path)
    except OSError:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        return False
    return True


def _mark(what: str) -> bytes:
    return f"snapstore {what} {_PYTHON}\n".encode()
