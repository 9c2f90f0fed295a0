"""Find renamed files as `git diff -M` does, with dulwich's rename detector.

Only added and removed files are compared. Equal content is found however many files there are. Similar content (half or
more) is found only among files of ordinary size and not in large changes, since each pair must be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dulwich.diff_tree import CHANGE_RENAME, RenameDetector
from dulwich.object_store import MemoryObjectStore
from dulwich.objects import Blob, ObjectID, RawObjectID, ShaFile, Tree

from snapstore.git.objects.ids import LINK, Entry
from snapstore.git.objects.trees import Change

LEAST_SIMILAR = 50  # percent, as in git
MOST_PAIRS = 64  # files on each side: git's limit is higher, but git compares faster
LARGEST = 256 << 10  # bytes; a larger file is not compared


class Rename(NamedTuple):
    """One renamed file."""

    old: Change
    new: Change
    similarity: int  # percent; 100 if the content is the same


def find(changes: Sequence[Change], read: Callable[[bytes, Entry], bytes | None]) -> list[Rename]:
    """Return the renames among changes.

    `read` returns the content of a file, or None if the content is unavailable or too large.
    """
    went = [change for change in changes if change[2] is None]
    came = [change for change in changes if change[1] is None]
    if not went or not came:
        return []
    found = [Rename(old, new, 100) for old, new in _detect(went, came, {}, 0)]
    went = _without(went, [rename.old for rename in found])
    came = _without(came, [rename.new for rename in found])
    if not went or not came or len(went) * len(came) > MOST_PAIRS**2:
        return found
    contents: dict[bytes, bytes] = {}
    for path, before, after in (*went, *came):
        entry = before or after
        if entry is not None and entry[0] != LINK and entry[1] not in contents:
            data = read(path, entry)
            if data is not None and len(data) <= LARGEST:
                contents[entry[1]] = data
    went = [change for change in went if change[1] is not None and change[1][1] in contents]
    came = [change for change in came if change[2] is not None and change[2][1] in contents]
    for old, new in _detect(went, came, contents, MOST_PAIRS):
        assert old[1] is not None and new[2] is not None
        found.append(Rename(old, new, similarity(contents[old[1][1]], contents[new[2][1]])))
    return found


def similarity(a: bytes, b: bytes) -> int:
    """Return how much of the larger content both share, in percent."""
    if a == b:
        return 100
    common = Counter(a.splitlines(keepends=True)) & Counter(b.splitlines(keepends=True))
    share = sum(len(line) * times for line, times in common.items()) * 100 // max(len(a), len(b))
    return min(max(share, LEAST_SIMILAR), 99)


def _detect(
    went: Sequence[Change], came: Sequence[Change], contents: dict[bytes, bytes], most: int
) -> list[tuple[Change, Change]]:
    """Run the detector on two flat trees whose names are the indexes in the lists."""
    store = _Contents()
    for data in contents.values():
        store.add_object(Blob.from_string(data))
    trees: list[ObjectID] = []
    for mark, entries in ((b"-", [old for _, old, _ in went]), (b"+", [new for _, _, new in came])):
        tree = Tree()
        for number, entry in enumerate(entries):
            assert entry is not None
            tree.add(b"%s%08d" % (mark, number), int(entry[0], 8), ObjectID(entry[1].hex().encode()))
        store.add_object(tree)
        trees.append(tree.id)
    detector = RenameDetector(store, LEAST_SIMILAR - 1, most, rewrite_threshold=None)
    return [
        (went[int(change.old.path[1:])], came[int(change.new.path[1:])])
        for change in detector.changes_with_renames(trees[0], trees[1])
        if change.type == CHANGE_RENAME and change.old and change.new and change.old.path and change.new.path
    ]


class _Contents(MemoryObjectStore):
    """The contents to compare, with an empty blob for anything else.

    The detector also reads removed files that have nothing left to be compared with, and files of which only the ids
    matter. Those contents are not loaded.
    """

    def __getitem__(self, name: ObjectID | RawObjectID) -> ShaFile:
        try:
            return super().__getitem__(name)
        except KeyError:
            return Blob()


def _without(changes: list[Change], taken: list[Change]) -> list[Change]:
    paths = {path for path, _, _ in taken}
    return [change for change in changes if change[0] not in paths]
