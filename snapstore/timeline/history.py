"""A session's line of nodes, addresses on it, and differences between its states and the disk."""

from __future__ import annotations

import os

from snapstore.errors import Unknown
from snapstore.git.objects import LINK
from snapstore.timeline.capture import Capture
from snapstore.timeline.nodes import FileChange, Node, file_changes, read_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from snapstore.timeline.session import Session
    from snapstore.timeline.store import Store


class History:
    """What a session has recorded, read-only."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.store: Store = session.store
        self._shadow = session.store.shadow
        refs = self._shadow.refs
        self.cursor = refs.read(f"refs/snapstore/cursor/{session.name}")
        if self.cursor is None:
            raise Unknown(
                f"there is no session {session.name!r} in this store",
                f"Sessions here: {', '.join(self.store.sessions()) or 'none'}.",
                session=session.name,
            )
        value = refs.value(f"refs/snapstore/cursor/{session.name}")
        state = None if isinstance(value, str) else self.store.documents.session(session.name)
        self.branch = value.rpartition("/")[2] if isinstance(value, str) else state.branch if state else "main"
        self.tip = refs.read(f"refs/heads/{session.name}/{self.branch}") or self.cursor

    def line(self, limit: int | None = None) -> list[bytes]:
        """Commits of the current line, oldest first; with `limit` only the newest."""
        found: list[bytes] = []
        oid: bytes | None = self.tip
        while oid is not None and (limit is None or len(found) < limit):
            found.append(oid)
            parents = self._shadow.commit(oid).parents
            oid = parents[0] if parents else None
        return found[::-1]

    def nodes(self, limit: int | None = None, *, counts: bool = False) -> list[Node]:
        return [self.node(oid, counts=counts) for oid in self.line(limit)]

    def node(self, oid: bytes, *, counts: bool = False) -> Node:
        return read_node(self._shadow, oid, branch=self.branch, counts=counts)

    def resolve(self, address: str) -> bytes:
        """The commit an address stands for: `5`, `0`, `#12`, `@`, a hash."""
        if address == "@":
            assert self.cursor is not None
            return self.cursor
        if address.startswith("#") and address[1:].isdecimal():
            found = self._search("Seq", int(address[1:]))
        elif address.isdecimal() and len(address) < 10:
            number = int(address)
            found = self.line()[0] if number == 0 else self._search("Turn", number)
        else:
            found = self._by_hash(address)
        if found is None:
            raise Unknown(f"there is no {address!r} in session {self.session.name}", address=address)
        return found

    def _search(self, trailer: str, number: int) -> bytes | None:
        oid: bytes | None = self.tip
        while oid is not None:
            commit = self._shadow.commit(oid)
            if commit.number(trailer) == number:
                return oid
            oid = commit.parents[0] if commit.parents else None
        return None

    def _by_hash(self, prefix: str) -> bytes | None:
        text = prefix.lower()
        if not 4 <= len(text) <= 40 or any(c not in "0123456789abcdef" for c in text):
            return None
        seen: set[bytes] = set()
        for tip in self._shadow.refs.list("refs/heads/").values():
            oid: bytes | None = tip
            while oid is not None and oid not in seen:
                seen.add(oid)
                parents = self._shadow.commit(oid).parents
                oid = parents[0] if parents else None
        matches = [oid for oid in seen if oid.hex().startswith(text)]
        if len(matches) > 1:
            raise Unknown(f"{prefix} is the beginning of {len(matches)} commits", "Give more of the hash.")
        return matches[0] if matches else None

    def tree(self, address: str) -> bytes:
        return self._shadow.commit(self.resolve(address)).tree

    # Differences, recorded and on disk.

    def disk(self) -> bytes:
        """The tree of the disk now. Nothing is stored: its new blobs are known by id only."""
        with self.store.changing():
            capture = Capture(self.store, forget=True)
            return capture.scan(self._shadow.commit(self.cursor).tree if self.cursor else None)

    def edits(self) -> list[FileChange]:
        """What differs on disk from where the session stands."""
        assert self.cursor is not None
        return file_changes(self._shadow, self._shadow.commit(self.cursor).tree, self.disk())

    def patch(self, changes: list[FileChange]) -> Iterator[bytes]:
        """The changes as a patch that git can apply."""
        from snapstore.git import linediff

        for change in changes:
            yield from linediff.patch(
                change.path,
                change.old,
                change.new,
                self._data(change, change.old),
                self._data(change, change.new),
            )

    def _data(self, change: FileChange, entry: tuple[bytes, bytes] | None) -> bytes:
        from snapstore.git import linediff

        if entry is None:
            return b""
        if self._shadow.objects.contains(entry[1], fresh=False):
            if self._shadow.objects.header(entry[1])[1] > linediff.LARGEST:
                return b"\0"  # shown as binary
            return self._shadow.objects.read(entry[1])[1]
        full = os.path.join(self.store.root, change.path)  # on disk only
        if entry[0] == LINK:
            return os.readlink(full)
        if os.path.getsize(full) > linediff.LARGEST:
            return b"\0"
        with open(full, "rb") as file:
            return file.read()
