"""Strict validation of trees, commits and tags from other repositories.

The rules are as strict as for objects that snapstore writes. A name that some file system treats as `.git`, a mode that
is neither file, folder nor link, or a duplicate entry attacks whoever checks out the tree, with any tool. So such a
tree is refused (test_incoming_hostile.py).
"""

from __future__ import annotations

import os
import re

from snapstore.base.paths import GIT_BEGINNINGS, has_unsafe_part
from snapstore.errors import Corrupt, Unsafe
from snapstore.git.objects.ids import COMMIT, EXECUTABLE, FILE, FOLDER, LINK, TAG, TREE
from snapstore.git.objects.reachability import commit_links, tag_target
from snapstore.git.objects.store import Objects

_MODES = frozenset((FILE, EXECUTABLE, LINK, FOLDER))
_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)
_STAMP = re.compile(rb"[^\n<>]* ?<[^\n<>]*> -?\d{1,18} [+-]\d{4}")
LONGEST_LINK = 4095  # bytes
_HINT = "Nothing was imported. git itself makes no such object: ask the owner of the other repository about it."


def check_object(kind: bytes, data: bytes, oid: bytes) -> None:
    """Raise Unsafe for a dangerous object, Corrupt for a malformed one."""
    if kind == TREE:
        _check_tree(data, oid)
    elif kind == COMMIT:
        _check_commit(data, oid)
    elif kind == TAG:
        tag_target(data, oid)


def links_in(tree: bytes) -> set[bytes]:
    """Return the ids of the blobs that hold a tree's link targets."""
    return {oid for mode, _, oid in _ENTRY.findall(tree) if mode == LINK} if LINK in tree else set()


def check_link(objects: Objects, oid: bytes) -> None:
    """Raise Unsafe for a link whose target is not a path, as no disk can hold."""
    size = objects.header(oid)[1]
    if not 0 < size <= LONGEST_LINK or b"\0" in objects.read(oid)[1]:
        raise Unsafe(f"a tree has a link whose target ({size:,} bytes) is not a path", _HINT, object=oid.hex())


def _check_tree(data: bytes, oid: bytes) -> None:
    size = 0
    names: set[bytes] = set()
    last = b""
    for mode, name, _ in _ENTRY.findall(data):
        size += len(mode) + len(name) + 22
        if mode not in _MODES:
            raise Unsafe(f"a tree has an entry of mode {mode.decode()}: {_shown(name)}", _HINT, object=oid.hex())
        # Fast path: most names need only a look at their first byte.
        if b"/" in name or ((name[0] in GIT_BEGINNINGS or len(name) > 255) and has_unsafe_part(name)):
            raise Unsafe(f"a tree has a name that must not be followed: {_shown(name)}", _HINT, object=oid.hex())
        key = name + b"/" if mode == FOLDER else name
        if key <= last or name in names:
            raise Corrupt(f"a tree is out of order or has a name twice: {_shown(name)}", _HINT, object=oid.hex())
        names.add(name)
        last = key
    if size != len(data):
        raise Corrupt(f"tree {oid.hex()} is damaged", _HINT, object=oid.hex())


def _check_commit(data: bytes, oid: bytes) -> None:
    commit_links(data, oid)
    head, separator, _ = data.partition(b"\n\n")
    lines = head.split(b"\n")
    keys = [line.partition(b" ")[0] for line in lines]
    parents = keys.count(b"parent")
    wanted = [b"tree", *[b"parent"] * parents, b"author", b"committer"]
    if (
        keys[: len(wanted)] != wanted
        or (not separator and not data.endswith(b"\n"))
        or b"\0" in head
        or any(len(line) != 45 for line in lines[:1])
        or any(not _STAMP.fullmatch(line.partition(b" ")[2]) for line in lines[parents + 1 : parents + 3])
    ):
        raise Corrupt(f"commit {oid.hex()} is damaged", _HINT, object=oid.hex())


def _shown(name: bytes) -> str:
    return repr(os.fsdecode(name[:80]))[1:-1]
