"""Notes: one record a commit, kept as git notes under `refs/notes/turns`.

The notes tree is split by the first two digits, so that adding one rewrites a folder of N/256 names, not of N.
`git notes` may rearrange it; every depth is read.
"""

from __future__ import annotations

from snapstore.git.objects import BLOB, EMPTY_TREE, FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from snapstore.git.objects import Entry
    from snapstore.git.odb import Objects
    from snapstore.git.packwriter import PackWriter
    from snapstore.git.trees import Trees

REF = "refs/notes/turns"


def add(trees: Trees, writer: PackWriter, tree: bytes | None, records: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The notes tree with a record for each of some commits."""
    base = tree or EMPTY_TREE
    changes: dict[bytes, Entry | None] = {}
    for commit, record in records:
        for path in _places(commit):
            if trees.file(base, path) is not None:
                changes[path] = None
        changes[_places(commit)[1]] = (FILE, writer.add(BLOB, record))
    return trees.rewrite(writer, base, changes)


def read(objects: Objects, trees: Trees, tree: bytes, commit: bytes) -> bytes | None:
    for path in _places(commit):
        entry = trees.file(tree, path)
        if entry is not None:
            return objects.read_kind(entry[1], BLOB)
    return None


def _places(commit: bytes) -> tuple[bytes, ...]:
    name = commit.hex().encode()
    return (
        name,
        b"%s/%s" % (name[:2], name[2:]),
        b"%s/%s/%s" % (name[:2], name[2:4], name[4:]),
        b"%s/%s/%s/%s" % (name[:2], name[2:4], name[4:6], name[6:]),
    )
