"""Drop paths or a turn from history, as changes for `git.maintenance.rewrite`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable

from snapstore.base.text import quote
from snapstore.errors import Corrupt, Usage
from snapstore.git.maintenance.rewrite import Finder, put
from snapstore.git.objects.commits import TRAILER
from snapstore.git.objects.ids import FOLDER, GITLINK, Entry
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.repository import Shadow

EMPTY_BLOB = bytes.fromhex("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
_LETTERS = (b"A ", b"M ", b"D ", b"T ")
_REPEATS = ("revert", "apply", "restore")  # kinds of nodes whose subject names another turn
_NAMES_TURN = re.compile(r"([Rr]evert|[Aa]pply) turn \d+\b")
_FROM_TURN = re.compile(r"( from) turn \d+$")


class DropPaths:
    """Drops paths from every tree.

    Call `collect` with every tree first, because a message can name paths of other commits.
    """

    def __init__(self, shadow: Shadow, writer: PackWriter, matches: Callable[[bytes, bool], bool]) -> None:
        self._trees = shadow.trees
        self._writer = writer
        self._finder = Finder(shadow.trees, lambda path, mode, _: matches(path, mode == FOLDER))
        self.scrub: Callable[[str], str] = str  # redacts the rest of a message
        self._new: dict[bytes, bytes] = {}
        self._seen: set[bytes] = set()
        self.paths: set[bytes] = set()
        self.blobs: dict[bytes, bytes] = {}  # the content of the dropped paths: each blob, and one path of it
        self._listed: set[bytes] = set()

    def collect(self, trees: Iterable[bytes]) -> None:
        """Find the paths to drop in all these trees, and their blobs."""
        for tree in trees:
            for path in self._finder.paths(tree):
                entry = self._trees.file(tree, path)
                if entry is not None and entry[0] != GITLINK and entry[1] not in self.blobs:
                    self.blobs[entry[1]] = path
                self.paths.add(path)
            self._seen.add(tree)
        self._listed = {quote(path).encode() for path in self.paths}

    def copies(self) -> set[bytes]:
        """Return other paths that have or had the same content, such as a renamed file."""
        wanted = self.blobs.keys() - {EMPTY_BLOB}
        finder = Finder(self._trees, lambda path, mode, oid: mode != FOLDER and oid in wanted)
        return {path for tree in self._seen for path in finder.paths(tree)} - self.paths

    def drops(self, commit: bytes) -> bool:
        return False

    def tree(self, commit: bytes, tree: bytes, parents: tuple[bytes, ...]) -> bytes:
        return self.filtered(tree)

    def filtered(self, tree: bytes) -> bytes:
        """Return the tree without the dropped paths."""
        new = self._new.get(tree)
        if new is None:
            gone: dict[bytes, Entry | None] = dict.fromkeys(self._finder.paths(tree))
            new = self._new[tree] = put(self._trees, self._writer, tree, gone)
        return new

    def message(self, commit: bytes, text: bytes) -> bytes:
        paragraphs = text.split(b"\n\n")
        if len(paragraphs) > 2:  # the list of files comes right before the trailers
            listed = paragraphs[-2].split(b"\n")
            kept = [line for line in listed if not (line[:2] in _LETTERS and line[2:] in self._listed)]
            if kept != listed:
                paragraphs[-2:-1] = [b"\n".join(kept)] if kept else []
        body, gap, trailers = b"\n\n".join(paragraphs).rpartition(b"\n\n")
        if not trailers.startswith(TRAILER.encode()):
            return self.redact_text(body + gap + trailers)
        return self.redact_text(body) + gap + trailers

    def drops_blob(self, blob: bytes) -> bool:
        return blob in self.blobs and blob != EMPTY_BLOB

    def redact_text(self, text: bytes) -> bytes:
        return self.scrub(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


class DropTurn:
    """Drops one commit.

    In later commits, a file that is still as the turn left it gets its state from before the turn. A file that changed
    since stays as it is. Later turns are renumbered without a gap.
    """

    def __init__(self, shadow: Shadow, writer: PackWriter, turn: bytes) -> None:
        self._shadow = shadow
        self._trees = shadow.trees
        self._writer = writer
        self.turn = turn
        commit = shadow.commit(turn)
        if not commit.parents:
            raise Usage(
                "the first snapshot of a session cannot be forgotten: every turn builds on it",
                "Forget single files: `snapstore forget PATH`.",
            )
        self.number = commit.number("Turn")
        self.parent = commit.parents[0]
        changes = list(self._trees.diff(shadow.commit(self.parent).tree, commit.tree))
        self.old: dict[bytes, Entry | None] = {path: old for path, old, _ in changes}
        self.left: dict[bytes, Entry | None] = {path: new for path, _, new in changes}
        # By commit after the turn: the files that are still as the turn left them.
        self._still: dict[bytes, frozenset[bytes]] = {turn: frozenset(self.old)}
        self._distances: dict[bytes, int | None] = {turn: 0}

    @property
    def paths(self) -> set[bytes]:
        return set(self.old)

    def drops(self, commit: bytes) -> bool:
        return commit == self.turn

    def comes_after(self, commit: bytes) -> bool:
        """Return whether a rewritten commit descends from the turn."""
        return commit in self._still and commit != self.turn

    def tree(self, commit: bytes, tree: bytes, parents: tuple[bytes, ...]) -> bytes:
        still = self._still.get(parents[0]) if parents else None
        if still is None:
            return tree
        if still:
            before = self._shadow.commit(parents[0]).tree
            still -= {path for path, _, _ in self._trees.diff(before, tree)}
        self._still[commit] = still
        return self._back(tree, still)

    def filtered(self, tree: bytes) -> bytes:
        """Return the tree without the turn's changes, for a tree that belongs to no commit."""
        return self._back(tree, {path for path, left in self.left.items() if self._trees.file(tree, path) == left})

    def drops_blob(self, blob: bytes) -> bool:
        return False

    def redact_text(self, text: bytes) -> bytes:
        return text

    def _back(self, tree: bytes, paths: Iterable[bytes]) -> bytes:
        taken = set(paths)
        states = {path: self.old[path] for path in taken if self._has_room(tree, path, taken)}
        return put(self._trees, self._writer, tree, states)

    def _has_room(self, tree: bytes, path: bytes, taken: set[bytes]) -> bool:
        """Return whether nothing newer blocks restoring `path`: no file below or above it."""
        if self.old[path] is None:
            return True
        entry = self._trees.lookup(tree, path)
        if entry is not None and entry[0] == FOLDER:
            return all(below in taken for below, _ in self._trees.walk(entry[1], path + b"/"))
        above = path.rpartition(b"/")[0]
        while above:
            if self._trees.file(tree, above) is not None:
                return above in taken and self.old[above] is None
            above = above.rpartition(b"/")[0]
        return True

    def surviving_files(self, commits: Iterable[bytes]) -> set[bytes]:
        """Return files with content from the turn that later commits still have.

        Somebody applied or restored such a file, or it has another name. Call after all commits were rewritten.
        """
        before: list[bytes] = []
        after: list[bytes] = []
        above = self._ancestors()
        for commit in commits:
            if commit != self.turn:
                (before if commit in above else after).append(commit)
        new = {entry[1] for entry in self.left.values() if entry is not None} - {EMPTY_BLOB}
        known: set[bytes] = set()
        finder = Finder(self._trees, lambda path, mode, oid: mode != FOLDER and oid in new)
        for commit in before:
            tree = self._shadow.commit(commit).tree
            known.update(entry[1] for path in finder.paths(tree) if (entry := self._trees.file(tree, path)) is not None)
        new -= known
        found: set[bytes] = set()
        finder = Finder(self._trees, lambda path, mode, oid: mode != FOLDER and oid in new)
        for commit in after:
            found.update(set(finder.paths(self._shadow.commit(commit).tree)) - self._still.get(commit, frozenset()))
        return found

    def _ancestors(self) -> set[bytes]:
        """Return the commits before the turn."""
        found: set[bytes] = set()
        waiting = [self.parent]
        while waiting:
            at = waiting.pop()
            if at not in found:
                found.add(at)
                waiting += self._shadow.commit(at).parents
        return found

    def distance(self, commit: bytes) -> int | None:
        """Return how many reverts, applies or restores lead from a node to the turn.

        A revert of the turn has distance 1, and a revert of that revert has 2. An unrelated node has None.
        """
        way: list[bytes] = []
        at: bytes | None = commit
        while at is not None and at not in self._distances:
            way.append(at)
            self._distances[at] = None  # also ends a cycle
            at = self._target(at)
        found = self._distances[at] if at is not None else None
        for one in reversed(way):
            found = found + 1 if found is not None else None
            self._distances[one] = found
        return found

    def _target(self, commit: bytes) -> bytes | None:
        """Return the commit that a node reverts, applies or restores from."""
        if self._shadow.commit(commit).kind not in _REPEATS:
            return None
        try:
            note = self._shadow.note(commit)
            return bytes.fromhex(json.loads(note)["of"]) if note is not None else None
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def reworded(self, commit: bytes, text: str) -> str:
        """Return the subject of a node or operation without the forgotten turn's prompt."""
        try:
            distance = self.distance(commit)
        except Corrupt:  # the node is gone, so only its subject can tell
            subject = self._shadow.commit(self.turn).subject
            distance = 1 if _NAMES_TURN.match(text) and text.endswith(f": {subject}") else None
        if not distance:
            return text
        parts = text.split(": ", distance - 1)
        if len(parts) < distance:
            return text
        match = _NAMES_TURN.match(parts[-1])
        parts[-1] = f"{match[1]} a forgotten turn" if match else _FROM_TURN.sub(r"\1 a forgotten turn", parts[-1])
        return ": ".join(parts)

    def message(self, commit: bytes, text: bytes) -> bytes:
        if self.distance(commit):
            subject, newline, rest = text.partition(b"\n")
            text = self.reworded(commit, subject.decode("utf-8", "replace")).encode() + newline + rest
        if self.number is None or not self.comes_after(commit):
            return text
        number = self._shadow.commit(commit).number("Turn")
        if number is None or number <= self.number:
            return text
        head, separator, trailers = text.rpartition(b"\n\n")
        mark = f"{TRAILER}Turn: ".encode()
        return head + separator + trailers.replace(mark + b"%d\n" % number, mark + b"%d\n" % (number - 1))
