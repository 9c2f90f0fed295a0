"""What a command did to the files below some folders, read from strace: each change of data and names, each sync.

Every change refers to files and folders by number, not by path, so that it means the same after renames.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import faults

NAMES = (
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat"),
    *("link", "linkat", "symlink", "symlinkat"),
)
DATA = ("write", "pwrite64", "writev", "ftruncate", "truncate", "lseek", "sendfile", "copy_file_range")
MODES = ("chmod", "fchmod", "fchmodat")
SYNCS = ("fsync", "fdatasync", "syncfs", "sync")
OPENS = ("open", "openat", "creat", "close", "dup", "dup2", "dup3", "fcntl")
TRACED = ",".join((*NAMES, *DATA, *MODES, *SYNCS, *OPENS))


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


UMASK = _umask()


@dataclass
class Node:
    """A file, folder or link as it was before the traced command."""

    kind: str  # d, f, l
    mode: int = 0o600
    data: bytes = b""  # of a link: where it leads to
    entries: dict[bytes, int] = field(default_factory=dict)


@dataclass
class Change:
    """One change in the trace. `names` are set all at once: (folder, name, what it names from then on)."""

    what: str
    names: list[tuple[int, bytes, int | None]] = field(default_factory=list)
    needs: set[int] = field(default_factory=set)  # changes that must have happened before
    node: int = -1  # whose data or mode changes, or what is synced
    at: int = 0
    data: bytes = b""
    mode: int | None = None
    failed: bool = False


class Recording:
    """What a command did to some folders."""

    def __init__(self, tops: Iterable[Path]) -> None:
        self.nodes: dict[int, Node] = {}
        self.tops = {os.fsencode(top): self._load(os.fsencode(top), {}) for top in tops}
        self.changes: list[Change] = []
        self._seen = {number: dict(node.entries) for number, node in self.nodes.items()}  # folders as programs see them
        self._sizes = {number: len(node.data) for number, node in self.nodes.items()}
        self._last: dict[tuple[int, bytes], int] = {}  # the latest change of a name
        self._inside: dict[int, set[int]] = {}  # the changes in a folder
        self._positions: dict[tuple[str, str], int] = {}
        self._appending: set[tuple[str, str]] = set()

    def _load(self, path: bytes, known: dict[tuple[int, int], int]) -> int:
        st = os.lstat(path)
        if (st.st_dev, st.st_ino) in known:
            return known[st.st_dev, st.st_ino]
        mode = stat.S_IMODE(st.st_mode)
        if stat.S_ISDIR(st.st_mode):
            number = self._new(Node("d", mode))
            self.nodes[number].entries = {
                name: self._load(os.path.join(path, name), known) for name in sorted(os.listdir(path))
            }
        elif stat.S_ISLNK(st.st_mode):
            number = self._new(Node("l", mode, os.readlink(path)))
        else:
            with open(path, "rb") as file:
                number = self._new(Node("f", mode, file.read()))
        known[st.st_dev, st.st_ino] = number
        return number

    def _new(self, node: Node) -> int:
        number = len(self.nodes) + 1
        self.nodes[number] = node
        return number

    # Reading strace's log.

    def record(self, work: Callable[[], object], log: Path, *rules: str) -> faults.Struck:
        """Run the work and record what it does."""
        done = faults.Struck(
            work, "-y", "-xx", "-s", "100000000", "-e", f"trace={TRACED}", "-e", "signal=none", *rules, log=str(log)
        ).wait()
        self.read(log)
        return done

    def read(self, log: Path) -> None:
        begun: dict[str, str] = {}
        with open(log, encoding="ascii", errors="replace") as file:
            for row in file:
                process, _, text = row.rstrip("\n").partition(" ")
                text = text.strip()
                if text.endswith("<unfinished ...>"):
                    begun[process] = text.removesuffix("<unfinished ...>")
                    continue
                if text.startswith("<... "):
                    text = begun.pop(process) + text.partition(" resumed>")[2]
                call = re.fullmatch(r"(\w+)\((.*)\)\s+= (-?\d+|\?)(.*)", text)
                if call:
                    self._call(process, call[1], list(_arguments(call[2])), call[3], call[4])

    def _call(self, process: str, name: str, given: list[str], result: str, rest: str) -> None:
        value = int(result) if result != "?" else -1
        if name in SYNCS:
            self._sync(name, given, failed=value < 0)
        elif value < 0:
            return
        elif name in OPENS:
            self._descriptor(process, name, given, result, rest)
        elif name in NAMES:
            self._name(name, given)
        elif name in MODES:
            path = self._path(given, 0 if name != "fchmodat" else 1) if name != "fchmod" else _descriptor_path(given[0])
            self._add_mode(path, int(given[2 if name == "fchmodat" else 1], 8))
        else:
            self._write(process, name, given, value)

    def _descriptor(self, process: str, name: str, given: list[str], result: str, rest: str) -> None:
        if name in ("open", "openat", "creat"):
            flags = given[1 if name == "open" else 2] if name != "creat" else "O_CREAT|O_TRUNC"
            self._positions[process, result] = 0
            self._appending.discard((process, result))
            if "O_APPEND" in flags:
                self._appending.add((process, result))
            path = _unescape(rest[rest.index("<") + 1 : rest.rindex(">")])
            place = self._place(path)
            if place is None or "O_TMPFILE" in flags:
                return
            folder, last = place
            node = self._seen[folder].get(last)
            if node is None and "O_CREAT" in flags:
                # The umask is taken off; programs here run with an ordinary one.
                node = self._new(Node("f", int(given[-1], 8) & ~UMASK))
                self._sizes[node] = 0
                self._add_names("create", [(folder, last, node)])
            elif node is not None and "O_TRUNC" in flags and self.nodes[node].kind == "f":
                self._add_size(node, 0)
        elif name in ("dup", "dup2", "dup3") or (name == "fcntl" and "F_DUPFD" in given[1]):
            old = (process, given[0].partition("<")[0])
            self._positions[process, result] = self._positions.get(old, 0)

    def _name(self, name: str, given: list[str]) -> None:
        if name in ("rename", "link"):
            one, two = _string(given[0]), _string(given[1])
        elif name in ("renameat", "renameat2", "linkat"):
            one, two = self._path(given, 1), self._path(given, 3)
        elif name in ("symlink", "symlinkat"):
            one, two = _string(given[0]), self._path(given, 1 if name == "symlink" else 2)
        else:
            one, two = self._path(given, 1 if name.endswith("at") else 0), b""
        if name.startswith("symlink"):
            place = self._place(two)
            if place is not None:
                self._add_names("symlink", [(*place, self._new(Node("l", 0o777, one)))])
            return
        here, there = self._place(one), self._place(two) if two else None
        if two and (here is None) != (there is None):
            assert name.startswith("link"), f"a rename into or out of the watched folders: {one!r} {two!r}"
            if there is not None:  # a file of somebody else's: what it holds is durable, or not, by their doing
                st = os.stat(two)
                number = self._new(Node("f", stat.S_IMODE(st.st_mode), Path(os.fsdecode(two)).read_bytes()))
                self._add_names("link", [(*there, number)])
            return
        if here is None:
            return
        node = self._seen[here[0]].get(here[1])
        if name.startswith("mkdir"):
            made = self._new(Node("d", int(given[-1], 8) & ~UMASK))
            self._seen[made] = {}
            self._add_names("mkdir", [(*here, made)])
        elif name == "rmdir" or (name == "unlinkat" and "AT_REMOVEDIR" in given[-1]):
            assert node is not None
            self._add_names("rmdir", [(*here, None)], self._inside.get(node, set()))
        elif name.startswith("unlink"):
            self._add_names("unlink", [(*here, None)])
        elif name.startswith("link"):
            assert there is not None
            self._add_names("link", [(*there, node)])
        elif there is not None and "RENAME_EXCHANGE" in given[-1]:
            other = self._seen[there[0]][there[1]]
            self._add_names("exchange", [(*here, other), (*there, node)])
        else:
            assert there is not None
            replaced = self._seen[there[0]].get(there[1])
            needs = self._inside.get(replaced, set()) if replaced in self._seen else set()
            if replaced != node:
                self._add_names("rename", [(*here, None), (*there, node)], needs)

    def _write(self, process: str, name: str, given: list[str], value: int) -> None:
        if name == "truncate":
            place = self._node(_string(given[0]))
            if place is not None:
                self._add_size(place, int(given[1]))
            return
        key = (process, given[0].partition("<")[0])
        if name == "lseek":
            self._positions[key] = value
            return
        node = self._node(_descriptor_path(given[0]))
        if node is None or self.nodes[node].kind != "f":
            return
        if name == "ftruncate":
            self._add_size(node, int(given[1]))
            return
        assert name in ("write", "pwrite64"), f"{name} into a file is not in the model"
        at = int(given[3]) if name == "pwrite64" else self._positions.get(key, 0)
        if key in self._appending:
            at = self._sizes[node]
        data = _string(given[1])[:value]
        assert len(data) == value, "strace cut the data short"
        if name == "write":
            self._positions[key] = at + value
        self._sizes[node] = max(self._sizes[node], at + value)
        self.changes.append(Change("write", node=node, at=at, data=data))

    def _sync(self, name: str, given: list[str], *, failed: bool) -> None:
        if name in ("sync", "syncfs"):
            self.changes.append(Change("syncfs", failed=failed))
            return
        node = self._node(_descriptor_path(given[0]))
        if node is not None:
            self.changes.append(Change("fsync", node=node, failed=failed))

    def _add_names(self, what: str, names: list[tuple[int, bytes, int | None]], needs: Iterable[int] = ()) -> None:
        number = len(self.changes)
        change = Change(what, names, set(needs))
        for folder, name, node in names:
            if (folder, name) in self._last:
                change.needs.add(self._last[folder, name])
            self._last[folder, name] = number
            self._inside.setdefault(folder, set()).add(number)
            if node is None:
                self._seen[folder].pop(name, None)
            else:
                self._seen[folder][name] = node
        self.changes.append(change)

    def _add_size(self, node: int, size: int) -> None:
        self._sizes[node] = size
        self.changes.append(Change("truncate", node=node, at=size))

    def _add_mode(self, path: bytes, mode: int) -> None:
        node = self._node(path)
        if node is not None:
            self.changes.append(Change("chmod", node=node, mode=mode))

    def _path(self, given: list[str], index: int) -> bytes:
        """The path of a call, from the folder's descriptor before it where there is one."""
        path = _string(given[index])
        if not path.startswith(b"/") and index > 0:
            return os.path.join(_descriptor_path(given[index - 1]), path)
        return path

    def _place(self, path: bytes) -> tuple[int, bytes] | None:
        """The folder and the name that a path means now; None outside of what is watched."""
        path = os.path.normpath(path)
        for top, number in self.tops.items():
            if path.startswith(top + b"/"):
                folder = number
                *above, last = path[len(top) + 1 :].split(b"/")
                for part in above:
                    if folder not in self._seen or part not in self._seen[folder]:
                        return None  # deleted meanwhile
                    folder = self._seen[folder][part]
                return (folder, last) if folder in self._seen else None
        return None

    def _node(self, path: bytes) -> int | None:
        if path in self.tops:
            return self.tops[path]
        place = self._place(path)
        return self._seen[place[0]].get(place[1]) if place is not None else None


_ARGUMENT = re.compile(r'"(?:[^"])*"(?:\.\.\.)?|<[^>]*>|\{[^}]*\}|\[[^\]]*\]|[^,"<{\[]+|,')


def _arguments(text: str) -> Iterator[str]:
    parts: list[str] = []
    for found in _ARGUMENT.finditer(text):
        if found[0] == ",":
            yield "".join(parts).strip()
            parts = []
        else:
            parts.append(found[0])
    yield "".join(parts).strip()


def _unescape(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", "")) if text.startswith("\\x") else text.encode()


def _string(text: str) -> bytes:
    return _unescape(text[1:-1])


def _descriptor_path(text: str) -> bytes:
    return _unescape(text[text.index("<") + 1 : text.rindex(">")]) if "<" in text else b""
