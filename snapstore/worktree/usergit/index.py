"""Reader for git's index file: which blob git believes each clean file to be.

Only what a first snapshot can borrow is kept: merged files and links, with the stat under which git last found them
clean, and the trees that git has already written for whole folders. dulwich's reader takes ten times as long, and fails
on split indexes, sparse indexes, and version 4 with long prefixes.

An index that cannot be read with certainty raises IndexUnreadable. The caller then hashes the files instead.
"""

from __future__ import annotations

import hashlib
import os
from itertools import islice
from operator import lt
from struct import Struct, unpack_from
from struct import error as struct_error

from snapstore.worktree.usergit.user_repo import UserRepo

TYPE_MASK = 0o170000
GITLINK = 0o160000
FOLDER = 0o040000  # in a sparse index, one such entry replaces a whole folder that is not checked out

EXTENDED = 0x4000
# The extended flags that `git add` and `git sparse-checkout` set and a mere refresh never sets.
SKIP_WORKTREE = 0x4000
INTENT_TO_ADD = 0x2000


class IndexUnreadable(Exception):
    """The index is damaged, truncated, or of an unknown kind."""


class GitIndex:
    """The parsed content of an index.

    `entries` maps a path to its 62 bytes in the layout of version 2. `trees` maps a folder to (entry count, tree id).
    """

    __slots__ = ("entries", "gitlinks", "mtime_ns", "trees", "unmerged", "version")

    def __init__(self, version: int, mtime_ns: int) -> None:
        self.version = version
        self.mtime_ns = mtime_ns
        self.entries: dict[bytes, bytes] = {}
        self.gitlinks: set[bytes] = set()
        self.unmerged: set[bytes] = set()
        self.trees: dict[bytes, tuple[int, bytes]] = {}


def read_index(path: bytes, hash_size: int = 20) -> GitIndex:
    """Return the content of the index at `path`, or raise IndexUnreadable."""
    if hash_size != 20:
        raise IndexUnreadable("the repository uses SHA-256")
    raw = _load(path, hash_size)
    index = GitIndex(raw.version, raw.mtime_ns)
    names, heads = raw.names, raw.heads
    entries = dict(zip(names, heads, strict=True))
    for at in raw.odd:
        name = names[at]
        (mode,) = unpack_from(">I", heads[at], 24)
        if raw.stage(at):
            index.unmerged.add(name)
        elif mode & TYPE_MASK == GITLINK:
            index.gitlinks.add(name)
        elif mode & TYPE_MASK != FOLDER:
            continue
        entries.pop(name, None)
    index.entries = entries
    index.trees = _trees(raw.extensions.get(b"TREE", b""))
    return index


def index_mark(repo: UserRepo) -> tuple[int, ...] | None:
    """Return a mark of the index file's state, without reading the file."""
    try:
        st = os.stat(os.path.join(repo.git_dir, b"index"))
    except OSError:
        return None
    return st.st_mtime_ns, st.st_size, st.st_ino


def entries_digest(path: bytes, hash_size: int = 20) -> bytes:
    """Return a digest that changes when staged content changes.

    A refresh of the stat data by `git status` does not change the digest.
    """
    raw = _load(path, hash_size)
    digest = hashlib.sha1(b"%d\0" % len(raw.names), usedforsecurity=False)
    digest.update(b"\0".join(raw.names))
    end = 40 + hash_size
    digest.update(b"".join([head[24:28] for head in raw.heads]))
    digest.update(b"".join([head[40:end] for head in raw.heads]))
    for at in raw.odd:
        staged = raw.flags.get(at, 0) & (SKIP_WORKTREE | INTENT_TO_ADD)
        if staged or raw.stage(at):
            digest.update(b"%d %d %d\0" % (at, raw.stage(at), staged))
    return digest.digest()


def read_regular(path: bytes, limit: int) -> tuple[bytes, os.stat_result]:
    """Return a regular file's bytes and stat, or raise OSError.

    A fifo in the file's place does not block the caller.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, "rb", buffering=0) as file:
        stat = os.fstat(fd)
        if stat.st_mode & TYPE_MASK != 0o100000:
            raise OSError("not a regular file")
        if stat.st_size > limit:
            raise OSError("larger than such a file ever is")
        return file.read(), stat


class _Raw:
    """An index as stored in its file.

    `odd` lists the positions of entries that are not plain merged files.
    """

    __slots__ = ("extensions", "flags", "heads", "mtime_ns", "names", "odd", "trailer", "version")

    def __init__(self, version: int, mtime_ns: int, trailer: bytes) -> None:
        self.version = version
        self.mtime_ns = mtime_ns
        self.trailer = trailer
        self.names: list[bytes] = []
        self.heads: list[bytes] = []
        self.odd: list[int] = []
        self.flags: dict[int, int] = {}  # extended flags, by position
        self.extensions: dict[bytes, bytes] = {}

    def stage(self, at: int) -> int:
        return self.heads[at][-2] >> 4 & 3

    def check_order(self) -> None:
        """Refuse an index out of order, as git does; an index may have no checksum."""
        names = self.names
        if names and not names[0]:
            raise IndexUnreadable("a path without a name")
        if all(map(lt, names, islice(names, 1, None))):
            return
        keys = [(name, self.stage(at)) for at, name in enumerate(names)]
        if not all(map(lt, keys, islice(keys, 1, None))):
            raise IndexUnreadable("entries out of order")


def _load(path: bytes, hash_size: int) -> _Raw:
    try:
        raw = _parse(path, hash_size)
        link = raw.extensions.get(b"link")
        if link is not None and any(link[:hash_size]):
            raw = _join_shared(raw, link, path, hash_size)
        raw.check_order()
        return raw
    except (OSError, ValueError, IndexError, struct_error, MemoryError, OverflowError) as error:
        raise IndexUnreadable(f"cannot read the index: {error}") from error


def _parse(path: bytes, hash_size: int) -> _Raw:
    data, stat = read_regular(path, 1 << 32)
    end = len(data) - hash_size
    if end < 12 or data[:4] != b"DIRC":
        raise IndexUnreadable("not an index")
    trailer = data[end:]
    # index.skipHash leaves zeros in place of the checksum.
    if any(trailer):
        algorithm = hashlib.sha1 if hash_size == 20 else hashlib.sha256
        if algorithm(memoryview(data)[:end], usedforsecurity=False).digest() != trailer:
            raise IndexUnreadable("the checksum does not match")
    version, count = unpack_from(">II", data, 4)
    if version not in (2, 3, 4):
        raise IndexUnreadable(f"version {version} is unknown")
    if count * (42 + hash_size) > end:
        raise IndexUnreadable("cut short")
    raw = _Raw(version, stat.st_mtime_ns, trailer)
    read = _read_compressed if version == 4 else _read_padded
    pos = read(data, count, end, 42 + hash_size, raw)
    while pos < end:
        name = data[pos : pos + 4]
        (size,) = unpack_from(">I", data, pos + 4)
        pos += 8 + size
        if pos > end:
            raise IndexUnreadable("an extension is cut short")
        if not 0x41 <= name[0] <= 0x5A and name not in (b"link", b"sdir"):
            raise IndexUnreadable(f"needs the extension {name!r}")
        raw.extensions[name] = data[pos - size : pos]
    if pos != end:
        raise IndexUnreadable("cut short")
    return raw


def _read_padded(data: bytes, count: int, end: int, head_size: int, raw: _Raw) -> int:
    """Read the entries of versions 2 and 3.

    The loop is bare because a first snapshot waits for 60,000 iterations.
    """
    add_name, add_head, find = raw.names.append, raw.heads.append, data.find
    peek = Struct(f">26xB{head_size - 29}xH").unpack_from  # the mode's upper byte, and the flags
    pos = 12
    for at in range(count):
        start = pos + head_size
        kind, flags = peek(data, pos)
        if flags & 0x7000 or not 0x80 <= kind < 0xE0:
            raw.odd.append(at)
            if flags & EXTENDED:
                (raw.flags[at],) = unpack_from(">H", data, start)
                start += 2
        stop = start + (flags & 0xFFF)
        if flags & 0xFFF == 0xFFF:  # the length did not fit
            stop = find(b"\0", stop)
        if stop >= end or stop < 0 or data[stop]:
            raise IndexUnreadable("cut short")
        add_head(data[pos : pos + head_size])
        add_name(data[start:stop])
        # An entry takes a multiple of 8 bytes, including 1 to 8 zeros after its name.
        pos += (stop - pos + 8) & ~7
    return pos


def _read_compressed(data: bytes, count: int, end: int, head_size: int, raw: _Raw) -> int:
    """Read the entries of version 4.

    Each name gives the number of bytes to drop from the previous name, then the bytes to add.
    """
    add_name, add_head, find = raw.names.append, raw.heads.append, data.find
    peek = Struct(f">26xB{head_size - 29}xH").unpack_from
    pos, name = 12, b""
    for at in range(count):
        start = pos + head_size
        kind, flags = peek(data, pos)
        if flags & 0x7000 or not 0x80 <= kind < 0xE0:
            raw.odd.append(at)
            if flags & EXTENDED:
                (raw.flags[at],) = unpack_from(">H", data, start)
                start += 2
        drop = data[start]
        start += 1
        if drop & 0x80:  # git's offset encoding: each further byte adds one before it shifts
            more, drop = drop, drop & 0x7F
            while more & 0x80:
                more = data[start]
                start += 1
                drop = (drop + 1) << 7 | more & 0x7F
        kept = len(name) - drop
        stop = find(b"\0", start, end)
        if kept < 0 or stop < 0:
            raise IndexUnreadable("a name is cut short")
        name = name[:kept] + data[start:stop]
        add_head(data[pos : pos + head_size])
        add_name(name)
        pos = stop + 1
    return pos


def _trees(data: bytes) -> dict[bytes, tuple[int, bytes]]:
    """Return the valid nodes of the TREE extension.

    The extension is only git's own cache: a damaged one is ignored.
    """
    found: dict[bytes, tuple[int, bytes]] = {}
    above: list[tuple[bytes, int]] = []  # folders whose children follow: (prefix, number of children left)
    pos = 0
    try:
        while pos < len(data):
            stop = data.index(b"\0", pos)
            line = data.index(b"\n", stop)
            count_text, children_text = data[stop + 1 : line].split(b" ")
            count, children = int(count_text), int(children_text)
            path = data[pos:stop]
            if above:
                prefix, left = above.pop()
                path = prefix + path
                if left > 1:
                    above.append((prefix, left - 1))
            elif found or pos or path:
                return {}  # more than one top
            pos = line + 1
            if count >= 0:
                if pos + 20 > len(data):
                    return {}
                found[path] = (count, data[pos : pos + 20])
                pos += 20
            if children > 0:
                above.append((path + b"/" if path else b"", children))
    except ValueError:
        return {}
    return {} if above else found


def _join_shared(raw: _Raw, link: bytes, path: bytes, hash_size: int) -> _Raw:
    """Merge a split index with its shared index.

    A split index lists differences from the shared one: deleted positions, replaced positions, and new entries.
    """
    shared_path = os.path.join(os.path.dirname(path), b"sharedindex." + link[:hash_size].hex().encode())
    shared = _parse(shared_path, hash_size)
    if shared.trailer != link[:hash_size] or b"link" in shared.extensions:
        raise IndexUnreadable("the shared index does not belong to this index")
    size = len(shared.names)
    deleted: list[int] = []
    replaced: list[int] = []
    if len(link) > hash_size:
        deleted, pos = _bitmap(link, hash_size, size)
        replaced, pos = _bitmap(link, pos, size)
        if pos != len(link) or not set(deleted).isdisjoint(replaced):
            raise IndexUnreadable("the link to the shared index is damaged")
    gone = {*deleted, *replaced}
    found = [
        (shared.names[at], shared.stage(at), shared.heads[at], shared.flags.get(at, 0))
        for at in range(size)
        if at not in gone
    ]
    for at, (name, head) in enumerate(zip(raw.names, raw.heads, strict=True)):
        if at < len(replaced):  # stored without a name: it has the name of the entry that it replaces
            if name:
                raise IndexUnreadable("the link to the shared index is damaged")
            name = shared.names[replaced[at]]
            head = head[:-2] + bytes((head[-2] | min(len(name), 0xFFF) >> 8, min(len(name), 0xFFF) & 0xFF))
        elif not name:
            raise IndexUnreadable("a path without a name")
        found.append((name, raw.stage(at), head, raw.flags.get(at, 0)))
    if len(raw.names) < len(replaced):
        raise IndexUnreadable("the link to the shared index is damaged")
    found.sort(key=lambda entry: entry[:2])
    # An entry must not be racy with respect to either file, so the older time counts.
    joined = _Raw(raw.version, min(raw.mtime_ns, shared.mtime_ns), raw.trailer)
    joined.extensions = raw.extensions
    for at, (name, stage, head, flags) in enumerate(found):
        joined.names.append(name)
        joined.heads.append(head)
        if flags:
            joined.flags[at] = flags
        if flags or stage or not 0x80 <= head[26] < 0xE0:
            joined.odd.append(at)
    return joined


def _bitmap(data: bytes, pos: int, limit: int) -> tuple[list[int], int]:
    """Return the positions set in an EWAH bitmap (each below `limit`), and its end."""
    _, words = unpack_from(">II", data, pos)
    pos += 8
    end = pos + 8 * words
    found: list[int] = []
    here = 0
    while pos < end:
        (marker,) = unpack_from(">Q", data, pos)
        pos += 8
        run = (marker >> 1 & 0xFFFFFFFF) * 64
        if marker & 1:
            if here + run > limit:
                raise IndexUnreadable("a bitmap goes past the entries")
            found.extend(range(here, here + run))
        here += run
        for _ in range(marker >> 33):
            if pos >= end:
                raise IndexUnreadable("a bitmap is cut short")
            (word,) = unpack_from(">Q", data, pos)
            pos += 8
            found.extend(here + bit for bit in range(64) if word >> bit & 1)
            here += 64
    if found and found[-1] >= limit:
        raise IndexUnreadable("a bitmap goes past the entries")
    if pos != end or end + 4 > len(data):
        raise IndexUnreadable("a bitmap is cut short")
    return found, end + 4
