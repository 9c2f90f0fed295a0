"""Two ways to pack: the git program, the quicker and smaller one, and our own where there is no git."""

from __future__ import annotations

import os

from snapstore.errors import Corrupt, Failed
from snapstore.git.extents import Extents
from snapstore.git.missing import between
from snapstore.git.objects import BLOB, COMMIT, TREE, object_id
from snapstore.git.odb import LARGE
from snapstore.git.packwriter import PackWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from snapstore.git.odb import Objects
    from snapstore.git.repack import Packing, Repack

_DEEPEST = 50  # deltas on top of each other, as with git
_DELTA_BELOW = 1 << 20  # bytes: what is larger is not compared, but copied or streamed


def with_git(program: str, environment: dict[str, str], *, threads: int = 0) -> Packing:
    """Packing by the git program: the quickest, and the smallest."""

    def pack(repack: Repack, ids: Iterable[bytes], reach: bool) -> list[str]:
        import subprocess

        # -F: deltas are looked for between all of them, and everything is deflated anew. Ours are deflated in a hurry,
        # and git does not look for deltas between objects that lie in one pack without them.
        command = [program, "-c", f"pack.threads={threads}", "-c", "pack.writeReverseIndex=false", "pack-objects", "-q"]
        command += ["--no-reuse-object", "--no-reuse-delta", "--delta-base-offset", "--window-memory=256m"]
        command += ["--non-empty"]
        if reach:
            command += ["--revs"]
            command += [f"--keep-pack={os.path.basename(kept.base)}.pack" for kept in repack.kept]
        done = subprocess.run(
            [*command, f"{repack.folder}/pack"],
            input=b"".join(oid.hex().encode() + b"\n" for oid in ids),
            capture_output=True,
            check=False,
            env=environment,
            pass_fds=(repack.lock,),
        )
        if done.returncode != 0:
            why = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it gave no reason"]
            raise Failed(f"git could not pack the store: {why[0]}", "Run `snapstore check`; nothing was changed.")
        return [f"{repack.folder}/pack-{name}" for name in done.stdout.decode().split()]

    return pack


def by_ourselves(repack: Repack, ids: Iterable[bytes], reach: bool) -> list[str]:
    """Packing without git. Versions of one path become deltas of the one before; everything else is copied as it lies.
    Memory holds the ids, and two versions."""
    objects = repack.objects
    kept = repack.kept
    groups: dict[tuple[bytes, bytes], list[bytes]] = {}
    if reach:
        for oid, kind, path, _ in between(objects, ids, ()):
            if not any(pack.find(oid) is not None for pack in kept):
                groups.setdefault((kind, path if kind != COMMIT else b""), []).append(oid)
    else:
        for oid in ids:
            groups.setdefault((objects.header(oid)[0], b""), []).append(oid)
    writer = _DeltaWriter(repack.folder, objects)
    try:
        done = 0
        for kind in (COMMIT, TREE, BLOB):  # as git has them: what a walk reads lies together
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


class _DeltaWriter(PackWriter):
    def __init__(self, folder: str, objects: Objects) -> None:
        super().__init__(folder)
        self._objects = objects
        self._extents: dict[str, Extents] = {}

    def add_versions(self, versions: list[bytes], *, deltas: bool) -> None:
        """Of one path, oldest first: written from the newest back, so that what is read most is whole."""
        base: bytes | None = None
        base_data = b""
        depth = 0
        for oid in reversed(versions):
            kind, size = self._objects.header(oid)
            if kind == BLOB and size > LARGE:
                self._stream(oid, size)
                continue
            data = self._read(oid, kind)
            if base is not None and depth < _DEEPEST and self._add_delta(oid, data, base, base_data):
                depth += 1
            else:
                self._add_whole(oid, kind, data)
                depth = 0
            if deltas and size <= _DELTA_BELOW:
                base, base_data = oid, data

    def _read(self, oid: bytes, kind: bytes) -> bytes:
        """What was damaged must not get a new checksum."""
        data = self._objects.read(oid)[1]
        if object_id(kind, data) != oid:
            raise _not_itself(oid)
        return data

    def _stream(self, oid: bytes, size: int) -> None:
        pieces = self._objects.stream(oid)
        if self.add_stream(lambda _: next(pieces, b""), size, lambda _: False) != oid:
            raise _not_itself(oid)

    def _add_delta(self, oid: bytes, data: bytes, base: bytes, base_data: bytes) -> bool:
        from dulwich.pack import create_delta

        if len(data) > _DELTA_BELOW:
            return False
        delta = b"".join(create_delta(base_data, data))
        if len(delta) > len(data) // 2:
            return False
        self.add_delta(oid, base, delta)
        return True

    def _add_whole(self, oid: bytes, kind: bytes, data: bytes) -> None:
        raw = self._as_it_lies(oid)
        if raw is not None:
            self.add_packed(oid, raw)
        else:
            self.add(kind, data, oid)

    def _as_it_lies(self, oid: bytes) -> bytes | None:
        """Its entry in a pack, where it is whole there."""
        for pack in self._objects.packs():
            offset = pack.find(oid)
            if offset is not None and not pack.is_delta(offset):
                if pack.base not in self._extents:
                    self._extents[pack.base] = Extents(pack)
                return pack.raw(offset, self._extents[pack.base].end(offset))
        return None


def _not_itself(oid: bytes) -> Corrupt:
    return Corrupt(f"object {oid.hex()} does not match its id", object=oid.hex())
