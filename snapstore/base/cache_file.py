"""Cache files for data that can be computed again and never becomes stale.

A file whose checksum does not match, or that another Python version wrote, counts as missing. Losing a cache file costs
only time, so cache files are not synced.
"""

from __future__ import annotations

import marshal
import os
import sys
from _thread import get_ident

from xxhash import xxh3_64_digest

from snapstore.base.files import remove_quietly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PYTHON = sys.implementation.cache_tag


def read(path: str, what: str) -> Any:
    """Return the cached data, or None if the file is missing or unusable."""
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
    """Write a cache file, ignoring failures.

    After a failure (a full or read-only disk) the data is computed again next time.
    """
    body = marshal.dumps(found)
    replace(path, _mark(what) + xxh3_64_digest(body) + body)


def replace(path: str, data: bytes) -> bool:
    """Replace a file atomically and return whether that worked."""
    temporary = f"{path}.{os.getpid()}.{get_ident()}"  # unique per thread: a server reads on several threads
    try:
        with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)
        os.rename(temporary, path)
    except OSError:
        remove_quietly(temporary)
        return False
    return True


def _mark(what: str) -> bytes:
    return f"snapstore {what} {_PYTHON}\n".encode()
