"""What the tests of transport share: a small history of turns in a repository of ours, and taking over what came in."""

from __future__ import annotations

import os
from pathlib import Path

from helpers import git

from snapstore.git.objects.commits import Identity, encode
from snapstore.git.objects.ids import BLOB, COMMIT, EMPTY_TREE, FILE
from snapstore.git.remote.incoming import FOLDER, Incoming
from snapstore.git.repository import Shadow, create

MAIN = "refs/heads/shell/main"
ADA = Identity("Ada", "ada@example.com")


def shadow_with(git_dir: Path) -> Shadow:
    """Make an empty shadow repository."""
    create(str(git_dir), MAIN)
    return Shadow(str(git_dir))


class History:
    """A repository of ours with turns on one branch, each in a pack of its own as `end` writes them."""

    def __init__(self, git_dir: Path, turns: int = 0, *, files: int = 20) -> None:
        self.git_dir = git_dir
        self.shadow = shadow_with(git_dir)
        self.ref = MAIN
        self.tip = b""
        self.tree = EMPTY_TREE
        self._count = 0
        first = {f"folder{n % 4}/file{n}": f"file {n}\n".encode() * 40 for n in range(files)}
        self._commit({path.encode(): data for path, data in first.items()}, "baseline")
        for _ in range(turns):
            self.turn()

    def turn(self, large: bytes | None = None, *, on: bytes | None = None, ref: str | None = None) -> bytes:
        """One more commit: on the branch's tip, or as another branch on another commit."""
        self._count += 1
        data = large if large is not None else f"turn {self._count}\n".encode() * 20
        name = f"folder{self._count % 4}/turn{self._count % 7}"
        if on is not None:
            self.tip, self.tree = on, self.shadow.commit(on).tree
        if ref is not None:
            self.ref = ref
        self._commit({name.encode(): data}, f"turn {self._count}")
        return self.tip

    def _commit(self, files: dict[bytes, bytes], message: str) -> None:
        objects = self.shadow.objects
        writer = objects.writer()
        changes = {path: (FILE, writer.add(BLOB, data)) for path, data in files.items()}
        self.tree = self.shadow.trees.rewrite(writer, self.tree, changes)
        seconds = 1_700_000_000 + self._count
        commit = encode(self.tree, [self.tip] if self.tip else [], ADA, ADA, seconds, message + "\n")
        self.tip = writer.add(COMMIT, commit)
        base = objects.finish(writer)
        self.shadow.refs.update(self.ref, self.shadow.refs.read(self.ref), self.tip)
        objects.release(base)


def received(shadow: Shadow, refs: dict[str, bytes], incoming: Incoming) -> None:
    """Takes over what came in, as pull does: objects, then refs."""
    bases = incoming.accept()
    for name, oid in refs.items():
        shadow.refs.update(name, shadow.refs.read(name), oid)
    for base in bases:
        shadow.objects.release(base)


def leftovers(shadow: Shadow) -> list[str]:
    """Return the files that a failed run must not leave behind."""
    found = [name for name in os.listdir(shadow.objects.folder) if name.startswith(FOLDER)]
    packs = os.listdir(shadow.objects.pack_folder)
    return found + [name for name in packs if not name.endswith((".pack", ".idx"))]


def objects_in(git_dir: str) -> set[str]:
    out = git(git_dir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return set(out.decode().split())
