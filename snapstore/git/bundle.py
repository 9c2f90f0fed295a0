"""Bundles: refs and a pack in one file, for machines with no network between them.

Version 2 as git writes it, so `git bundle verify` and `git clone` read ours; we read git's, version 3 too as long as it
asks for nothing unusual. What is in one passes the same door as everything else that comes from others.
"""

from __future__ import annotations

import os

from snapstore.errors import Corrupt, Failed, Unknown, Usage
from snapstore.git import missing, outgoing
from snapstore.git.objects import COMMIT
from snapstore.git.packwriter import sync_folder, write_all
from snapstore.git.receive import Incoming
from snapstore.git.transports.pktline import MOST_REFS, is_ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import BinaryIO

    from snapstore.git.odb import Objects
    from snapstore.git.receive import Limits, Progress

MAGIC = {b"# v2 git bundle\n": 2, b"# v3 git bundle\n": 3}
_LONGEST_LINE = 4096
_PIECE = 1 << 18


class Header:
    """What a bundle says of itself: the refs in it, and the commits that one must have already."""

    __slots__ = ("prerequisites", "refs")

    def __init__(self) -> None:
        self.refs: dict[str, bytes] = {}
        self.prerequisites: list[bytes] = []


def is_bundle(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as bundles do."""
    try:
        with open(path, "rb") as file:
            return file.readline(32) in MAGIC
    except OSError:
        return False


def write(
    path: str | os.PathLike[str],
    objects: Objects,
    refs: Mapping[str, bytes],
    known: Iterable[bytes] = (),
    *,
    progress: Progress | None = None,
) -> int:
    """Writes refs, and the objects they need beyond what the reader is `known` to have; gives how many objects. The
    file is in place when it is whole, or not at all."""
    if not refs:
        raise Usage("there is nothing to put into a bundle")
    needed = [oid for oid in dict.fromkeys(known) if objects.contains(oid) and objects.header(oid)[0] == COMMIT]
    ids = [item[0] for item in missing.between(objects, refs.values(), needed)]
    lines = [f"-{oid.hex()} \n" for oid in needed] + [f"{oid.hex()} {name}\n" for name, oid in refs.items()]
    head = "".join(lines).encode("utf-8", "surrogateescape")
    total = len(ids)
    count = (lambda done: progress("writing", done, total)) if progress is not None else None
    target = os.path.abspath(path)
    temporary = f"{target}.{os.urandom(6).hex()}.part"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write_all(fd, b"# v2 git bundle\n" + head + b"\n")
            for piece in outgoing.pack(objects, ids, count=count):
                write_all(fd, piece)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, target)
        sync_folder(os.path.dirname(target))
    except OSError as error:
        _forget(temporary)
        raise Failed(
            f"the bundle cannot be written: {error.strerror}", "Nothing is left of it; mend the cause."
        ) from error
    except BaseException:
        _forget(temporary)
        raise
    return total


def read_header(path: str | os.PathLike[str]) -> Header:
    """The refs of a bundle, without reading its objects."""
    with _opened(path) as file:
        return _header(file)


def read(
    path: str | os.PathLike[str],
    into: Objects,
    haves: Iterable[bytes],
    *,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> tuple[dict[str, bytes], Incoming]:
    """The refs, and what came with them: checked, and invisible until `Incoming.accept`. `haves` are tips of ours,
    whole with all their history."""
    with _opened(path) as file:
        header = _header(file)
        haves = list(haves)
        held = missing.reached(into, haves, header.prerequisites)
        # What is stored and no ref leads to may lack parts. Where it does not, it is stored again: a gc of somebody's
        # may be about to remove it.
        held |= missing.whole(into, (oid for oid in header.prerequisites if oid not in held), haves)
        lacking = [oid for oid in header.prerequisites if oid not in held]
        if lacking:
            raise Unknown(
                f"the bundle builds on {len(lacking)} commits that are not here, such as {lacking[0].hex()[:12]}",
                "Import the earlier bundle first, or have this one made whole.",
            )
        return header.refs, Incoming(into, limits, progress).receive(_pieces(file), header.refs.values(), haves)


def _opened(path: str | os.PathLike[str]) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as error:
        raise Failed(f"the bundle cannot be read: {error.strerror}", "Check the file's name.") from error


def _header(file: BinaryIO) -> Header:
    version = MAGIC.get(file.readline(32))
    if version is None:
        raise Corrupt("this is not a git bundle", "Make one with `snapstore export`, or `git bundle create`.")
    header = Header()
    while (line := file.readline(_LONGEST_LINE)) != b"\n":
        if not line.endswith(b"\n") or len(header.refs) + len(header.prerequisites) > MOST_REFS:
            raise Corrupt("the bundle is cut short or damaged in its list of refs")
        _understand(header, line[:-1], version)
    return header


def _understand(header: Header, line: bytes, version: int) -> None:
    if line.startswith(b"@") and version == 3:
        if line != b"@object-format=sha1":
            raise Corrupt(f"the bundle needs {line[1:60].decode('ascii', 'replace')!r}", "Have it made without.")
        return
    digits, _, name = line.removeprefix(b"-").partition(b" ")
    try:
        oid = bytes.fromhex(digits.decode("ascii"))
    except ValueError:
        oid = b""
    if len(oid) != 20:
        raise Corrupt("the bundle is damaged in its list of refs")
    ref = name.decode("utf-8", "surrogateescape")
    if line.startswith(b"-"):
        header.prerequisites.append(oid)
    elif is_ref(ref):  # HEAD and what git would not call a ref say nothing to us
        header.refs[ref] = oid


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _forget(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
