"""Notes on commits: turn records and raw lines of conversations.

Readable records are in `refs/notes/turns`, raw lines in `refs/notes/transcripts`. dulwich can read both
(test_other_tools.py). dulwich's own `set_note` reads the whole tree to count the notes (test_git_records.py), and
writes the trees as loose objects without syncing them. Here the tree is always split by the first two digits, so that
adding a note rewrites a folder of N/256 names instead of N, and all objects go through the pack writer. `git notes` may
rearrange the tree, so every depth is read.
"""

from __future__ import annotations

from collections.abc import Iterable

from dulwich.notes import get_note_path

from snapstore.git.objects.ids import BLOB, EMPTY_TREE, FILE, Entry
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.objects.store import Objects
from snapstore.git.objects.trees import Trees
from snapstore.git.ref_names import TRANSCRIPT_NOTES, TURN_NOTES

REF = TURN_NOTES
TRANSCRIPTS = TRANSCRIPT_NOTES
REFS = (REF, TRANSCRIPTS)


def put(trees: Trees, writer: PackWriter, tree: bytes | None, blobs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the notes tree with notes added, whose blobs are already stored."""
    base = tree or EMPTY_TREE
    changes: dict[bytes, Entry | None] = {}
    for commit, blob in blobs:
        for path in _places(commit):
            if trees.file(base, path) is not None:
                changes[path] = None
        changes[_places(commit)[1]] = (FILE, blob)
    return trees.rewrite(writer, base, changes)


def drop(trees: Trees, writer: PackWriter, tree: bytes, commits: Iterable[bytes]) -> bytes:
    """Return the notes tree without the notes of some commits."""
    places = (path for commit in commits for path in _places(commit))
    return trees.rewrite(writer, tree, {path: None for path in places if trees.file(tree, path) is not None})


def read(objects: Objects, trees: Trees, tree: bytes, commit: bytes) -> bytes | None:
    blob = find(trees, tree, commit)
    return None if blob is None else objects.read_kind(blob, BLOB)


def find(trees: Trees, tree: bytes, commit: bytes) -> bytes | None:
    """Return the id of the blob that holds a commit's note."""
    for path in _places(commit):
        entry = trees.file(tree, path)
        if entry is not None:
            return entry[1]
    return None


def commit_of(path: bytes) -> bytes | None:
    """Return the commit that a path of a notes tree belongs to.

    Returns None for any other path, since anyone may have added files to the tree.
    """
    name = path.replace(b"/", b"")
    if len(name) != 40 or name.strip(b"0123456789abcdef") or path not in _places(bytes.fromhex(name.decode())):
        return None
    return bytes.fromhex(name.decode())


def _places(commit: bytes) -> tuple[bytes, ...]:
    name = commit.hex().encode()
    return tuple(get_note_path(name, depth) for depth in range(4))
