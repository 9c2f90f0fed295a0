"""Git bundles: turns in a file.

The header is written here, because `git bundle create` writes only refs that the repository has, and omits refs that
did not move since the earlier bundle. A store's bundle always names its project and its machines
(test_share_bundles.py). The pack after the header is git's: `pack-objects` writes it, and `index-pack` reads it,
through the same quarantine and checks as a fetch. Without git, dulwich does both.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import BinaryIO

from snapstore.base.files import remove_quietly, sync_folder
from snapstore.errors import Corrupt, Failed, SnapstoreError, Unknown, Usage
from snapstore.git.objects import reachability
from snapstore.git.objects.ids import COMMIT
from snapstore.git.objects.store import Objects
from snapstore.git.program import environment, refuse_planted
from snapstore.git.remote import dulwich_driver, process
from snapstore.git.remote.connection import MOST_REFS, Progress, is_ref
from snapstore.git.remote.failures import summary
from snapstore.git.remote.git_runner import receive, refuse_unusable
from snapstore.git.remote.incoming import Incoming, Limits
from snapstore.git.remote.open import git_program
from snapstore.git.remote.process import Job

MAGIC = {b"# v2 git bundle\n": 2, b"# v3 git bundle\n": 3}
_LONGEST_LINE = 4096
_SILENCE = 600.0  # seconds; a disk may be slow, but not silent
_DISK = re.compile(r"(No space left on device|File too large|Disk quota exceeded|Read-only file system)")


class Header:
    """The header of a bundle: its refs, and the commits the reader must have."""

    __slots__ = ("prerequisites", "refs", "size")

    def __init__(self) -> None:
        self.refs: dict[str, bytes] = {}
        self.prerequisites: list[bytes] = []
        self.size = 0  # bytes before the pack


def is_bundle(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins like a bundle."""
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
    """Write refs and their objects to a bundle, and return the number of objects.

    Objects that the reader is `known` to have are omitted. The file appears complete, or not at all.
    """
    if not refs:
        raise Usage("there is nothing to export")
    needed = [oid for oid in dict.fromkeys(known) if objects.contains(oid) and objects.header(oid)[0] == COMMIT]
    ids = [item[0] for item in reachability.new_objects(objects, refs.values(), needed)]
    lines = [f"-{oid.hex()} \n" for oid in needed] + [f"{oid.hex()} {name}\n" for name, oid in refs.items()]
    head = "".join(lines).encode("utf-8", "surrogateescape")
    target = os.path.abspath(path)
    temporary = f"{target}.{os.urandom(6).hex()}.part"
    try:
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(b"# v2 git bundle\n" + head + b"\n")
            file.flush()
            _write_pack(file, objects, ids, progress)
            file.flush()
            os.fsync(fd)
        os.rename(temporary, target)
        sync_folder(os.path.dirname(target))
    except OSError as error:
        remove_quietly(temporary)
        raise _unwritten(error.strerror or str(error)) from error
    except BaseException:
        remove_quietly(temporary)
        raise
    return len(ids)


def read_header(path: str | os.PathLike[str]) -> Header:
    """Return the header of a bundle, without reading its objects."""
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
    """Return a bundle's refs, and its checked objects.

    The objects stay invisible until `Incoming.accept`. `haves` are local tips whose history is complete.
    """
    with _opened(path) as file:
        header = _header(file)
        haves = list(haves)
        held = reachability.reachable_from(into, haves, header.prerequisites)
        # A stored commit that no ref reaches may be incomplete. If complete, its objects are stored again, since
        # another gc may be about to remove them.
        held |= reachability.whole(into, (oid for oid in header.prerequisites if oid not in held), haves)
        lacking = [oid for oid in header.prerequisites if oid not in held]
        if lacking:
            raise Unknown(
                f"the bundle builds on {len(lacking)} commits that are not here, such as {lacking[0].hex()[:12]}",
                "Import the earlier bundle first, or ask for a complete one.",
            )
        os.lseek(file.fileno(), header.size, os.SEEK_SET)
        incoming = receive_pack(file, into, limits, progress)
    return header.refs, incoming.verify(header.refs.values(), haves)


def receive_pack(
    file: BinaryIO, into: Objects, limits: Limits | None = None, progress: Progress | None = None
) -> Incoming:
    """Read a pack from the file's position into a quarantine.

    Raises Corrupt if the pack is damaged.
    """
    incoming = Incoming(into, limits)
    try:
        program = git_program()
        if program is None:
            with os.fdopen(os.dup(file.fileno()), "rb") as pack:  # `file` has buffered beyond the header
                dulwich_driver.receive_pack(incoming, into, pack)
            return incoming
        refuse_planted(os.path.dirname(into.folder))
        words = ["index-pack", "--stdin", "--fix-thin", "-v"]
        job = Job(words, _SILENCE, feed=file, progress=progress)
        receive(_runner(program, os.path.dirname(into.folder)), incoming, job)
    except BaseException:
        incoming.discard()
        raise
    return incoming


def _runner(program: str, git_dir: str) -> process.Runner:
    """Return a runner of git on the store, for `receive`. Nothing uses a network."""

    def run(job: Job) -> process.Finished:
        done = process.run(job, program, environment(git_dir), who="git")
        refuse_unusable(done, program)
        if done.status:
            raise _unreadable(summary(done.said) or f"git ended with status {done.status}")
        return done

    return run


def _unreadable(words: str) -> SnapstoreError:
    full = _DISK.search(words)
    if full is not None:
        return Failed(f"the store cannot be written: {full[1]}")
    return Corrupt(f"the received pack is damaged: {words}", "Nothing was imported.")


def _write_pack(file: BinaryIO, objects: Objects, ids: list[bytes], progress: Progress | None) -> None:
    program = git_program()
    if program is None:
        dulwich_driver.write_pack(file, objects, ids)
        return
    git_dir = os.path.dirname(objects.folder)
    refuse_planted(git_dir)
    feed = "".join(f"{oid.hex()}\n" for oid in ids).encode()
    words = ["pack-objects", "--stdout", "--progress", "-q" if progress is None else "--all-progress"]
    job = Job(words, _SILENCE, feed=feed, progress=progress, output=file)
    done = process.run(job, program, environment(git_dir), who="git")
    refuse_unusable(done, program)
    if done.status:
        full = _DISK.search(summary(done.said))
        raise _unwritten(full[1] if full is not None else summary(done.said))


def _unwritten(why: str) -> Failed:
    return Failed(f"the bundle cannot be written: {why}", "No file was left behind. Fix the problem, then try again.")


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
        _parse_line(header, line[:-1], version)
    header.size = file.tell()
    return header


def _parse_line(header: Header, line: bytes, version: int) -> None:
    if line.startswith(b"@") and version == 3:
        if line != b"@object-format=sha1":
            raise Corrupt(f"the bundle needs {line[1:60].decode('ascii', 'replace')!r}", "Ask for one made without it.")
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
    elif is_ref(ref):  # HEAD and invalid names are ignored
        header.refs[ref] = oid
