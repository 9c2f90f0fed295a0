"""Compression for what we store.

Small objects go through zlib level 1. From 16 KB on isal does the work: it compresses like zlib 1 at a quarter of the
time, but its import (2.4 ms) is more than a small turn's whole deflating.
"""

from __future__ import annotations

import zlib

ISAL_FROM = 16 * 1024

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def compress(data: bytes) -> bytes:
    if len(data) < ISAL_FROM:
        return zlib.compress(data, 1)
    try:
        from isal import isal_zlib
    except ImportError:  # a platform without a wheel: slower, the same format
        return zlib.compress(data, 1)
    return bytes(isal_zlib.compress(data, 1))


def compressor() -> Any:
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.compressobj(1)
    return isal_zlib.compressobj(1)


def bulk_compress() -> Any:
    """One function for thousands of objects in a row, where the import has long paid for itself."""
    try:
        from isal import isal_zlib
    except ImportError:
        return lambda data: zlib.compress(data, 1)
    return lambda data: isal_zlib.compress(data, 1)
