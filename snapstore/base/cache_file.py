"""Cache files for data that can be recomputed and never becomes stale.

A file with a wrong checksum, or one that another Python version wrote, counts as missing. Cache files are not synced,
because losing one costs only time.
"""

from __future__ import annotations

import marshal
import os
import sys
from _thread import get_ident
from typing import Any

from xxhash import xxh3_64_digest

from snapstore.base.files import remove_quietly

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
    """Write a cache file, ignoring failures such as a full or read-only disk."""
    body = marshal.dumps(found)
    replace(path, _mark(what) + xxh3_64_digest(body) + body)


def replace(path: str, data: bytes) -> bool:
    """Replace a file atomically and return whether the replacement succeeded."""
    temporary = f"{path}.{os.getpid()}.{get_ident()}"  # unique per thread: the web server has several
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
