"""Send large pushes over a network in parts, so that an interrupted push can resume.

A server keeps nothing of an incomplete pack. So the files of a large push go first, some megabytes at a time, below a
ref that only this machine uses. The ref holds a chain of commits. The tree of each commit lists the files of its part
by their ids and contains the tree of the previous part. History itself moves in one step at the end, with whatever the
server still lacks: git omits what the last part's tree contains (see `has_parts` in git/remote). Then the ref is
deleted. If the server refuses to delete refs, the ref stays, and holds only files that history has too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from snapstore.errors import Remote
from snapstore.git.objects import commits, reachability
from snapstore.git.objects.ids import COMMIT, FILE, FOLDER, TREE
from snapstore.git.objects.store import Objects
from snapstore.git.ref_names import PARTS
from snapstore.git.remote.connection import Connection
from snapstore.git.repository import SNAPSTORE, Shadow

Updates = Mapping[str, tuple[bytes | None, bytes | None]]

SIZE = 64 << 20  # bytes of files per part, uncompressed: a minute over a slow line

_SUBJECT = "A part of a push"
_EARLIER = b"parts"  # the name of the previous part's tree; it sorts after every id


def other_targets(refs: Mapping[str, bytes]) -> list[bytes]:
    """Return the targets of a server's refs except parts, which no history builds on."""
    return [oid for ref, oid in refs.items() if not ref.startswith(PARTS)]


def of(machine: str, refs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the refs of parts of one machine's unfinished pushes."""
    own = PARTS + machine
    return {ref: oid for ref, oid in refs.items() if ref == own or ref.startswith(f"{own}-")}


class Parts:
    """The parts of one push."""

    def __init__(self, shadow: Shadow, connection: Connection, machine: str, refs: Mapping[str, bytes]) -> None:
        self._shadow = shadow
        self._connection = connection
        self._machine = machine
        self._refs = of(machine, refs)
        self.there: set[bytes] = set()  # files that the server has from earlier parts
        for oid in self._refs.values():
            self.there.update(self._listed(oid))

    def _listed(self, oid: bytes) -> Iterator[bytes]:
        objects, trees = self._shadow.objects, self._shadow.trees
        if objects.contains(oid):
            commit = self._shadow.commit(oid)
            if commit.subject == _SUBJECT:  # a server may have other refs there
                yield from (entry[1] for _, entry in trees.walk(commit.tree))

    def send(self, files: Iterable[bytes], seconds: int, first: Updates) -> bool:
        """Send all files but the last part, which goes with history.

        `first` has the refs that identify the project, which must reach the server first. Return whether they were
        sent.
        """
        if self._connection.address.scheme == "path":
            return False  # for a local folder, reading the parts again takes as long as writing them
        sent = False
        for part in self._split(oid for oid in files if oid not in self.there):
            if not self._send(part, seconds, first if not sent else {}):
                break  # the server refuses parts, or another push of ours interferes: send the rest at once
            sent = True
            self.there.update(part)
        return sent

    def _split(self, files: Iterable[bytes]) -> Iterator[list[bytes]]:
        part: dict[bytes, None] = {}
        size = 0
        for oid in files:
            if size >= SIZE:
                yield list(part)
                part, size = {}, 0
            part[oid] = None
            size += self._shadow.objects.header(oid)[1]

    def _send(self, part: list[bytes], seconds: int, first: Updates) -> bool:
        objects = self._shadow.objects
        ref, old = self._next_ref()
        writer = objects.writer()
        try:
            rows = [(FILE, name, oid) for name, oid in sorted((oid.hex().encode(), oid) for oid in part)]
            if old is not None:
                rows.append((FOLDER, _EARLIER, self._shadow.commit(old).tree))
            tree = writer.add(TREE, b"".join(b"%s %s\0%s" % row for row in rows))
            parents = [old] if old is not None else []
            new = writer.add(COMMIT, commits.encode(tree, parents, SNAPSTORE, SNAPSTORE, seconds, f"{_SUBJECT}\n"))
            pack = objects.finish(writer)
        except BaseException:
            writer.abandon()
            raise
        try:
            tips = [oid for _, oid in first.values() if oid is not None]
            along = [oid for oid, _, _, _ in reachability.new_objects(objects, tips, ())]
            steps = [first, {ref: (old, new)}]
            results = self._connection.push_in_order(steps, [*along, *part, tree, new], objects)
        finally:
            objects.release(pack)
        if any(results.values()):
            return False
        self._refs[ref] = new
        return True

    def _next_ref(self) -> tuple[str, bytes | None]:
        """Return a ref for the next part, and the commit it points to, which must be here."""
        number = 1
        while True:
            ref = f"{PARTS}{self._machine}" + (f"-{number}" if number > 1 else "")
            old = self._refs.get(ref)
            if old is None or self._shadow.objects.contains(old):
                return ref, old
            number += 1

    def clear(self) -> None:
        """Delete the parts from the server, because history contains their files now."""
        if self._refs:
            try:
                drop(self._connection, self._machine, self._connection.refs(push=True), self._shadow.objects)
            except Remote:
                pass  # the push itself is done; the next large push tries again


def drop(connection: Connection, machine: str, refs: Mapping[str, bytes], objects: Objects) -> dict[str, str | None]:
    """Delete a machine's parts from a server; return None or the reason to keep per ref."""
    gone: dict[str, tuple[bytes | None, bytes | None]] = {ref: (oid, None) for ref, oid in of(machine, refs).items()}
    return connection.push(gone, [], objects, atomic=False)
