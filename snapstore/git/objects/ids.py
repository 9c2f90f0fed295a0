"""Object ids, kinds and modes, and the error for a missing object."""

from __future__ import annotations

import stat
from hashlib import sha1

from snapstore.errors import Corrupt

COMMIT, TREE, BLOB, TAG = b"commit", b"tree", b"blob", b"tag"
KIND_NUMBERS = {COMMIT: 1, TREE: 2, BLOB: 3, TAG: 4}
KIND_NAMES = {number: kind for kind, number in KIND_NUMBERS.items()}

FOLDER, FILE, EXECUTABLE, LINK, GITLINK = b"40000", b"100644", b"100755", b"120000", b"160000"

# The state of one file in a tree: its mode and the id of its blob.
Entry = tuple[bytes, bytes]

EMPTY_TREE = bytes.fromhex("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
CHUNK = 1 << 20


def object_id(kind: bytes, data: bytes) -> bytes:
    return sha1(b"%s %d\0%s" % (kind, len(data), data), usedforsecurity=False).digest()


class Missing(Corrupt):
    """An object that the store refers to does not exist."""

    def __init__(self, oid: bytes) -> None:
        super().__init__(
            f"object {oid.hex()} is missing from the store",
            "Run `snapstore check` to see what it belongs to; everything else still works.",
            object=oid.hex(),
        )


def file_mode(st_mode: int) -> bytes:
    return EXECUTABLE if st_mode & stat.S_IXUSR else FILE
