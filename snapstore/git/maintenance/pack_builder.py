"""Two ways to pack: the git program, or Python code where git is not installed.

git is faster and makes smaller packs. dulwich's own packing holds whole blobs in memory, and limits no chain of deltas.
So without git, only the single deltas are dulwich's (test_gc.py).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterable

from dulwich.pack import create_delta

from snapstore.errors import Corrupt, Failed
from snapstore.git.maintenance.repack import Packing, Repack
from snapstore.git.objects.ids import BLOB, COMMIT, EMPTY_TREE, KIND_NUMBERS, TREE, object_id
from snapstore.git.objects.pack import OFFSET_DELTA, REF_DELTA, Pack
from snapstore.git.objects.pack_writer import PackWriter, entry_header
from snapstore.git.objects.reachability import commit_links, new_objects
from snapstore.git.objects.store import LARGE, Objects

_DEEPEST = 50  # length of a delta chain, as in git
_RECORD = re.compile(rb"(?:[0-9a-f]{2}/){0,3}[0-9a-f]{34,40}")
_COPIED = 1 << 24  # bytes; a larger delta is not copied
_DELTA_BELOW = 1 << 20  # bytes; a larger object is not compared, but copied or streamed


class NotPacked(Failed):
    """The git program could not pack."""


def with_git(program: str, environment: dict[str, str], *, threads: int = 0) -> Packing:
    """Return a function that packs with the git program."""

    def pack(repack: Repack, ids: Iterable[bytes], reach: bool) -> list[str]:
        # No reuse: git then looks for deltas between all objects and compresses everything again. snapstore compresses
        # for speed, and by default git looks for no deltas between objects of one pack.
        command = [program, "-c", f"pack.threads={threads}", "-c", "pack.writeReverseIndex=false", "pack-objects", "-q"]
        command += ["--no-reuse-object", "--no-reuse-delta", "--delta-base-offset", "--window-memory=256m"]
        command += ["--non-empty"]
        objects = repack.objects
        if reach:
            command += ["--revs"]
            command += [f"--keep-pack={os.path.basename(kept.base)}.pack" for kept in repack.kept]
        # git leaves half a pack behind when it fails, most likely because the disk is full. That half must lie in the
        # folder that the next gc empties, not among the store's packs.
        beside = {"GIT_OBJECT_DIRECTORY": repack.folder, "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(objects.folder)}
        try:
            done = subprocess.run(
                [*command, f"{repack.folder}/pack"],
                input=b"".join(oid.hex().encode() + b"\n" for oid in ids),
                capture_output=True,
                check=False,
                env=environment | beside,
                pass_fds=(repack.lock,),
            )
        finally:
            shutil.rmtree(f"{repack.folder}/pack", ignore_errors=True)
        if done.returncode != 0:
            why = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["git gave no reason"]
            raise NotPacked(f"git could not pack the store: {why[0]}", "Nothing was changed. Run `snapstore check`.")
        return [f"{repack.folder}/pack-{name}" for name in done.stdout.decode().split()]

    return pack


def _quoted(path: str) -> str:
    """Return a path quoted for git's path lists, in which a colon separates paths."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def without_git(repack: Repack, ids: Iterable[bytes], reach: bool) -> list[str]:
    """Pack without git; older versions of a path become deltas of newer ones.

    Memory holds the ids, and two versions.
    """
    objects = repack.objects
    kept = repack.kept
    groups: dict[tuple[bytes, bytes], list[bytes]] = {}
    if reach:
        for oid, kind, path, _ in new_objects(objects, sorted(ids, key=lambda oid: _age(objects, oid)), ()):
            if not any(pack.find(oid) is not None for pack in kept):
                if kind == TREE and not path:  # the root trees of files and of records have nothing in common
                    path = objects.read(oid)[1].partition(b"\0")[0]
                elif kind == BLOB and _RECORD.fullmatch(path):  # names differ, contents are similar
                    path = b""
                groups.setdefault((kind, path), []).append(oid)
    else:
        for oid in ids:
            groups.setdefault((objects.header(oid)[0], b""), []).append(oid)
    going = frozenset(oid for versions in groups.values() for oid in versions)
    # Large deltas that git made before are copied, but only from one pack: deltas from two packs could form a cycle.
    largest = max((pack for pack in objects.packs() if pack not in kept), key=Pack.count, default=None)
    writer = _DeltaWriter(repack.folder, objects, going, largest)
    try:
        done = 0
        for kind in (COMMIT, TREE, BLOB):  # git's order: objects that a walk reads lie together
            for (found, _), versions in groups.items():
                if found == kind or (kind == COMMIT and found not in (TREE, BLOB)):
                    writer.add_versions(versions, deltas=found != COMMIT)
                    done += len(versions)
                    if repack.progress is not None:
                        repack.progress(done)
        base = writer.finish()
    except BaseException:
        writer.abandon()
        raise
    return [base] if base is not None else []


def _age(objects: Objects, oid: bytes) -> tuple[int, int]:
    """Return a sort key: commit time, then size of the tree.

    Notes commits have no parents. Their trees grow, and resemble each other in the order of creation. Of two commits in
    the same second, the one with the smaller tree is older.
    """
    if objects.header(oid)[0] != COMMIT:
        return 0, 0
    tree, _, seconds = commit_links(objects.read(oid)[1], oid)
    return seconds, objects.header(tree)[1] if tree != EMPTY_TREE else 0


class _DeltaWriter(PackWriter):
    def __init__(self, folder: str, objects: Objects, going: frozenset[bytes], largest: Pack | None) -> None:
        super().__init__(folder)
        self._objects = objects
        self._going = going
        self._largest = largest  # the old pack with the most objects, whose large deltas are copied
        self._ends: dict[int, int] = {}
        self._names: dict[int, bytes] = {}
        self._sums: dict[int, int] = {}

    def add_versions(self, versions: list[bytes], *, deltas: bool) -> None:
        """Add the versions of one path, given oldest first.

        The newest is written first and whole, since it is read most often.
        """
        base: bytes | None = None
        base_data = b""
        depth = 0
        for oid in reversed(versions):
            kind, size = self._objects.header(oid)
            if size > _DELTA_BELOW and self._is_copied(oid):
                continue
            if kind == BLOB and size > LARGE:
                self._stream(oid, size)
                continue
            data = self._read(oid, kind)
            if base is not None and depth < _DEEPEST and self._add_delta(oid, kind, data, base, base_data):
                depth += 1
            else:
                self._add_whole(oid, kind, data)
                depth = 0
            if deltas and size <= _DELTA_BELOW:
                base, base_data = oid, data

    def _is_copied(self, oid: bytes) -> bool:
        """Copy the existing delta of a large object, if its base is packed too."""
        pack = self._largest
        offset = pack.find(oid) if pack is not None else None
        if pack is None or offset is None:
            return False
        if not self._ends:
            self._names = {at: name for name, at in pack.offsets().items()}
            self._sums = pack.checksums()
            starts = sorted(self._names)
            self._ends = dict(zip(starts, [*starts[1:], pack.size() - 20], strict=True))
        number, size, start, base_offset, base = pack.entry(offset)
        if number == OFFSET_DELTA:
            base = self._names.get(base_offset, b"")
        end = self._ends[offset]
        if number not in (OFFSET_DELTA, REF_DELTA) or base not in self._going or end - offset > _COPIED:
            return False
        raw = pack.raw(offset, end)
        if zlib.crc32(raw) != self._sums[offset]:
            raise _mismatch(oid)
        self.add_packed(oid, entry_header(REF_DELTA, size, base) + raw[start - offset :])
        return True

    def _read(self, oid: bytes, kind: bytes) -> bytes:
        """Return an object's data. A damaged object must not get a new checksum."""
        data = self._objects.read(oid)[1]
        if object_id(kind, data) != oid:
            raise _mismatch(oid)
        return data

    def _stream(self, oid: bytes, size: int) -> None:
        pieces = self._objects.stream(oid)
        if self.add_stream(lambda _: next(pieces, b""), size, lambda _: False) != oid:
            raise _mismatch(oid)

    def _add_delta(self, oid: bytes, kind: bytes, data: bytes, base: bytes, base_data: bytes) -> bool:
        if len(data) > _DELTA_BELOW:
            return False
        delta = b"".join(create_delta(base_data, data))
        if len(delta) > len(data) // 2:
            return False
        self.add_delta(oid, base, delta)
        return True

    def _add_whole(self, oid: bytes, kind: bytes, data: bytes) -> None:
        """Add an object without a delta, compressed better than turns compress it."""
        self.add_packed(oid, entry_header(KIND_NUMBERS[kind], len(data)) + zlib.compress(data, 6))


def _mismatch(oid: bytes) -> Corrupt:
    return Corrupt(f"object {oid.hex()} does not match its id", object=oid.hex())
