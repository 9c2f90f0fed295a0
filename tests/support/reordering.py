"""The states of a disk that POSIX allows after a power cut, built from the trace of a command.

A trace tells every change of files and folders below some top folders, and every sync. From it a model of the disk is
kept twice: as programs see it (the page cache), and as what must have reached the disk. What lies between may have
reached it or not:

- what is written to a file is durable after a sync of that file. Before, nothing of it may be there, or all, the size
  without the bytes (zeros), a part of the blocks, or the first half;
- a change of names is durable after a sync of a folder it concerns. Before, it may be there or not; but changes of one
  name come in their order, a rename happens as a whole, and a folder is removed only after what was in it;
- a sync that fails may lose the bytes for good: the kernel takes the pages for clean, and a later sync says nothing of
  them.

The model is checked against the real disk: after the whole trace both must be equal to the byte.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from recording import Change, Node, Recording

BLOCK = 512

NONE, ALL, SIZE, BLOCKS, HALF = "none", "all", "size only", "some blocks", "half"
FATES = (NONE, ALL, SIZE, BLOCKS, HALF)


class Trace(Recording):
    """A recording, and the states of the disk that it allows."""

    lossy = True  # a sync that failed has lost the bytes for good; else they may still arrive

    def not_synced(self, folder: bytes) -> None:
        """Call it first: the files below a folder were written just before, and their writer did not sync them."""
        place = self._node(folder)
        assert place is not None and not self.changes
        todo = [place]
        while todo:
            number = todo.pop()
            node = self.nodes[number]
            todo.extend(node.entries.values())
            if node.kind == "f":
                self.changes.append(Change("write", node=number, data=node.data))
                node.data = b""

    def end(self) -> int:
        return len(self.changes)

    def cuts(self) -> list[int]:
        """The moments that differ: after each change."""
        return list(range(1, len(self.changes) + 1))

    def durable_names(self, cut: int) -> set[int]:
        """The changes of names that must have reached the disk."""
        durable: set[int] = set()
        waiting: set[int] = set()
        for number, change in enumerate(self.changes[:cut]):
            if change.names:
                waiting.add(number)
            elif change.what == "syncfs" and not change.failed:
                durable |= waiting
                waiting.clear()
            elif change.what == "fsync" and not change.failed:
                done = {at for at in waiting if any(name[0] == change.node for name in self.changes[at].names)}
                durable |= done
                waiting -= done
        return self.closed(durable)

    def closed(self, chosen: Iterable[int]) -> set[int]:
        """Return a set of changes with everything that must have happened before them."""
        found: set[int] = set()
        todo = list(chosen)
        while todo:
            number = todo.pop()
            if number not in found:
                found.add(number)
                todo.extend(self.changes[number].needs)
        return found

    def loose_names(self, cut: int) -> list[int]:
        """The changes of names that may or may not have reached the disk."""
        durable = self.durable_names(cut)
        return [n for n, change in enumerate(self.changes[:cut]) if change.names and n not in durable]

    def contents(self, cut: int) -> dict[int, tuple[bytes, bytes, int, int]]:
        """Of each file: its durable bytes, those that programs see, and its modes, likewise."""
        durable = {n: node.data for n, node in self.nodes.items() if node.kind == "f"}
        seen = dict(durable)
        modes = {n: node.mode for n, node in self.nodes.items()}
        seen_modes = dict(modes)
        pending: dict[int, list[Change]] = {}
        for change in self.changes[:cut]:
            if change.what in ("write", "truncate"):
                seen[change.node] = _written(seen[change.node], change)
                pending.setdefault(change.node, []).append(change)
            elif change.what == "chmod":
                seen_modes[change.node] = change.mode or 0
            elif change.what in ("fsync", "syncfs"):
                if change.failed and not self.lossy:
                    continue
                for node in [change.node] if change.what == "fsync" else list(seen):
                    for write in () if change.failed else pending.get(node, ()):
                        durable[node] = _written(durable[node], write)
                    pending.pop(node, None)  # after a failed sync nobody writes it any more
                    if not change.failed:
                        modes[node] = seen_modes[node]
        return {n: (durable[n], seen[n], modes[n], seen_modes[n]) for n in seen}

    def build(
        self, cut: int, names: Iterable[int], fate: Callable[[int], str], dice: random.Random
    ) -> dict[bytes, Node]:
        """A state of the disk, path by path: the changes of names given (and what is durable), each file by its fate.
        Folders are there too; what no folder leads to is gone."""
        happened = self.closed(set(names) | self.durable_names(cut))
        folders = {number: dict(node.entries) for number, node in self.nodes.items() if node.kind == "d"}
        for number in sorted(happened):
            for folder, name, node in self.changes[number].names:
                if node is None:
                    folders[folder].pop(name, None)
                else:
                    folders[folder][name] = node
        contents = self.contents(cut)
        found: dict[bytes, Node] = {}

        def walk(path: bytes, number: int) -> None:
            node = self.nodes[number]
            if node.kind == "d":
                found[path] = Node("d", node.mode)
                for name, below in sorted(folders[number].items()):
                    walk(path + b"/" + name, below)
            elif node.kind == "l":
                found[path] = node
            elif path not in found:
                durable, seen, mode, seen_mode = contents[number]
                kind = fate(number)
                found[path] = Node("f", mode if kind == NONE else seen_mode, _torn(durable, seen, kind, dice))

        for top, number in self.tops.items():
            walk(top, number)
        return found

    def seen(self) -> dict[bytes, Node]:
        """Return the state that programs see in the end."""
        everything = [n for n, change in enumerate(self.changes) if change.names]
        return self.build(self.end(), everything, lambda _: ALL, random.Random(0))

    def assert_true(self) -> None:
        """Assert that the model equals the real folders."""
        model = self.seen()
        for top in self.tops:
            real = look(top)
            mine = {path: node for path, node in model.items() if path == top or path.startswith(top + b"/")}
            wrong = [
                path
                for path in sorted(real.keys() | mine.keys())
                if path not in real
                or path not in mine
                or (real[path].kind, real[path].data) != (mine[path].kind, mine[path].data)
                or (real[path].kind == "f" and real[path].mode != mine[path].mode)
            ]
            assert not wrong, f"the model differs from the disk: {[(p, real.get(p), mine.get(p)) for p in wrong][:5]}"

    def describe(self, numbers: Iterable[int]) -> list[str]:
        """Describe changes of names for a person."""
        paths = {number: path for path, number in self._paths().items()}
        return [
            f"{number} {self.changes[number].what} "
            + " ".join(os.fsdecode(paths.get(folder, b"?") + b"/" + name) for folder, name, _ in names)
            for number in numbers
            if (names := self.changes[number].names)
        ]

    def _paths(self) -> dict[bytes, int]:
        found: dict[bytes, int] = {}

        def walk(path: bytes, number: int) -> None:
            found[path] = number
            for name, below in self._seen.get(number, {}).items():
                walk(path + b"/" + name, below)

        for top, number in self.tops.items():
            walk(os.path.basename(top), number)
        return found


def look(top: bytes) -> dict[bytes, Node]:
    """A real folder with all below it."""
    found: dict[bytes, Node] = {}
    for folder, folders, names in os.walk(top):
        found[folder] = Node("d", stat.S_IMODE(os.lstat(folder).st_mode))
        for name in [*names, *(name for name in folders if os.path.islink(os.path.join(folder, name)))]:
            path = os.path.join(folder, name)
            mode = stat.S_IMODE(os.lstat(path).st_mode)
            if os.path.islink(path):
                found[path] = Node("l", mode, os.readlink(path))
            else:
                with open(path, "rb") as file:
                    found[path] = Node("f", mode, file.read())
    return found


def lay_down(state: dict[bytes, Node], tops: Iterable[Path]) -> None:
    """Make the real folders match a state."""
    for top in tops:
        shutil.rmtree(top)
    modes: list[tuple[bytes, int]] = []
    for path, node in state.items():
        if node.kind == "d":
            os.makedirs(path, exist_ok=True)
            modes.append((path, node.mode))
        elif node.kind == "l":
            os.symlink(node.data, path)
        else:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
            os.write(fd, node.data) if node.data else None
            os.fchmod(fd, node.mode)
            os.close(fd)
    for path, mode in reversed(modes):
        os.chmod(path, mode)


def _written(data: bytes, change: Change) -> bytes:
    if change.what == "truncate":
        return data[: change.at].ljust(change.at, b"\0")
    end = change.at + len(change.data)
    return data[: change.at].ljust(change.at, b"\0") + change.data + data[end:]


def _torn(durable: bytes, seen: bytes, kind: str, dice: random.Random) -> bytes:
    """A file whose last changes may not have reached the disk."""
    if durable == seen or kind == ALL:
        return seen
    if kind == NONE:
        return durable
    old = durable[: len(seen)].ljust(len(seen), b"\0")
    if kind == SIZE:
        return old
    if kind == HALF:
        half = len(seen) // 2
        return seen[:half] + durable[half : len(seen)]
    return b"".join(dice.choice((old, seen))[at : at + BLOCK] for at in range(0, len(seen), BLOCK))
