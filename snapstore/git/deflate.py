"""Compression for what we store.

Isal compresses like zlib 1 at a quarter of the time and inflates in half, but its import (2.4 ms) is more than a small
turn's whole deflating. So it is imported for the first object of 16 KB, and serves all from then on.
"""

from __future__ import annotations

import zlib

ISAL_FROM = 16 * 1024

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_isal: Any = None


def compress(data: bytes) -> bytes:
    if _isal is None and len(data) < ISAL_FROM:
        return zlib.compress(data, 1)
    return (_isal or load()).compress(data, 1)  # type: ignore[no-any-return]


def compressor() -> Any:
    return load().compressobj(1)


def inflate(data: bytes, size: int) -> bytes | None:
    """What begins `data`, when it is whole and of that size."""
    library = _isal or zlib
    stream = library.decompressobj()
    try:
        found: bytes = stream.decompress(data, size + 1)
    except library.error:
        return None
    return found if stream.eof and len(found) == size else None


def load() -> Any:
    """The faster library; zlib itself on a platform without a wheel of it: slower, the same format."""
    global _isal
    if _isal is None:
        try:
            from isal import isal_zlib as _isal
        except ImportError:
            _isal = zlib
    return _isal
