"""Read nodes: commits of the tree of turns, as people and programs see them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, NotRequired, TypedDict

from snapstore.base.text import timestamp
from snapstore.errors import Corrupt
from snapstore.git.diff import patch
from snapstore.git.diff import renames as git_renames
from snapstore.git.objects.ids import EMPTY_TREE, Entry
from snapstore.git.objects.trees import letter
from snapstore.git.ref_names import ARCHIVE, DELETED, HEADS, PRUNED, SAFETY, TAGS
from snapstore.git.repository import Shadow
from snapstore.store.handle import StoreHandle
from snapstore.timeline.history.raw_lines import with_lines

RENAMED = "R"


class PathFields(TypedDict):
    """The fields of a path, as `path_json` makes them."""

    path: str
    path_b64: NotRequired[str]


# The types of the fields of a turn's record. A field of another type is ignored.
_FIELD_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("prompt", "started_at", "ended_at", "status", "found_by", "agent"), str),
    **dict.fromkeys(("replies", "thinking", "tool_calls", "lines", "left_out", "first_seen"), list),
    **dict.fromkeys(("empty_folders", "left_folders", "beside"), list),
    "user_git": dict,
    "modes": dict,
    "exit_status": (int, type(None)),
}
_FIELD_VALUES = {
    "status": ("done", "open", "interrupted"),
    "found_by": ("named", "watched", "scanned", "replayed"),
}


class FileChange:
    """One file's change in a node.

    Counts are None for binary files, for files that are too large to compare, and if counts were not requested. A
    renamed file is one change, R, with its previous path and its total number of lines before and after.
    """

    __slots__ = (
        *("added", "binary", "change", "large", "lines", "new", "old", "path", "removed"),
        *("renamed_from", "similarity"),
    )

    def __init__(
        self,
        path: bytes,
        change: str,
        old: Entry | None,
        new: Entry | None,
        added: int | None = None,
        removed: int | None = None,
        binary: bool = False,
        large: bool = False,
        *,
        renamed_from: bytes | None = None,
        similarity: int | None = None,
        lines: tuple[int, int] | None = None,
    ) -> None:
        self.path = path
        self.change = change
        self.old = old
        self.new = new
        self.added = added
        self.removed = removed
        self.binary = binary
        self.large = large
        self.renamed_from = renamed_from
        self.similarity = similarity
        self.lines = lines

    def compared(self, counts: tuple[int, int] | None, *, large: bool, a: bytes, b: bytes) -> FileChange:
        """Return the change with its line counts; None means binary or too large."""
        lines = (patch.line_count(a), patch.line_count(b)) if counts and self.renamed_from is not None else None
        added, removed = counts or (None, None)
        return FileChange(
            self.path,
            self.change,
            self.old,
            self.new,
            added,
            removed,
            counts is None and not large,
            large,
            renamed_from=self.renamed_from,
            similarity=self.similarity,
            lines=lines,
        )

    def within(self, is_wanted: Callable[[bytes], bool]) -> list[FileChange]:
        """Return the part of this change that concerns the wanted paths.

        A file that was renamed into these paths counts as added, one renamed out of them as deleted.
        """
        parts = self.split_rename()
        wanted = [part for part in parts if is_wanted(part.path)]
        return [self] if len(wanted) == len(parts) else wanted

    def split_rename(self) -> list[FileChange]:
        """Return a rename as an addition and a deletion, any other change as it is."""
        if self.renamed_from is None:
            return [self]
        before, after = self.lines or (None, None)
        none = 0 if self.lines else None
        return [
            FileChange(self.path, "A", None, self.new, after, none, self.binary, self.large),
            FileChange(self.renamed_from, "D", self.old, None, none, before, self.binary, self.large),
        ]


class Node:
    """One commit of a session's tree, with its record."""

    __slots__ = (
        "agent",
        "branch",
        "checkpoints",
        "commit",
        "ended_at",
        "files",
        "found_by",
        "kind",
        "label",
        "left_out",
        "parent",
        "prompt",
        "record",
        "seq",
        "session",
        "started_at",
        "status",
        "tree",
        "turn",
        "undone",
    )
    seq: int
    turn: int | None
    commit: str
    tree: str
    parent: str | None
    kind: str
    session: str
    branch: str
    label: str
    prompt: str
    agent: str
    started_at: str
    ended_at: str | None
    status: str
    undone: bool
    checkpoints: list[str]
    files: list[FileChange]
    found_by: str | None
    left_out: list[dict[str, str]]
    record: dict[str, Any]

    def __init__(self, **fields: Any) -> None:
        for name in self.__slots__:
            setattr(self, name, fields[name])


def read_node(
    shadow: Shadow, oid: bytes, *, branch: str = "", files: bool = True, counts: bool = False, lines: bool = False
) -> Node:
    """Read the node of a commit.

    `files` costs a tree comparison, and `counts` a comparison of every file. The raw `lines` of the conversation are
    read only on request.
    """
    commit = shadow.commit(oid)
    note = shadow.note(oid)
    record = _known_fields(note) if note is not None else {}
    if lines:
        record = with_lines(shadow, oid, record)
    kind = commit.kind
    turn = commit.number("Turn")
    when = timestamp(commit.seconds)
    label = f"Turn {turn}" if turn is not None else kind.capitalize()
    return Node(
        seq=commit.number("Seq") or 0,
        turn=turn,
        commit=oid.hex(),
        tree=commit.tree.hex(),
        parent=commit.parents[0].hex() if commit.parents else None,
        kind=kind,
        session=commit.trailers.get("Session", ""),
        branch=branch,
        label=label,
        prompt=record.get("prompt", commit.subject if kind == "turn" else ""),
        agent=commit.trailers.get("Agent", ""),
        started_at=record.get("started_at", when),
        ended_at=record.get("ended_at", when),
        status=record.get("status", "done"),
        undone=False,
        checkpoints=[],
        found_by=record.get("found_by"),
        left_out=record.get("left_out", []),
        files=file_changes(shadow, parent_tree(shadow, commit.parents), commit.tree, counts=counts, renames=True)
        if files and kind != "baseline"
        else [],
        record=record,
    )


def _known_fields(note: bytes) -> dict[str, Any]:
    """Parse a record and drop fields of the wrong type.

    Users can put other notes on a commit with git.
    """
    try:
        found = json.loads(note)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    record: dict[str, Any] = {
        key: value for key, value in found.items() if isinstance(value, _FIELD_TYPES.get(key, object))
    }
    for key, words in _FIELD_VALUES.items():
        if record.get(key, words[0]) not in words:
            del record[key]
    record["left_out"] = [
        item
        for item in record.get("left_out", [])
        if isinstance(item, dict) and is_path(item.get("path")) and isinstance(item.get("why"), str)
    ]
    record["first_seen"] = [path for path in record.get("first_seen", []) if is_path(path)]
    return record


def paths_in(record: dict[str, Any], field: str) -> set[bytes]:
    """Return the valid paths in a field of a record."""
    return {os.fsencode(path) for path in record.get(field, []) if is_path(path)}


def is_path(text: object) -> bool:
    """Return whether a value could have come from `os.fsdecode`."""
    try:
        return isinstance(text, str) and bool(os.fsencode(text))
    except UnicodeEncodeError:
        return False


def parent_tree(shadow: Shadow, parents: tuple[bytes, ...]) -> bytes:
    return shadow.commit(parents[0]).tree if parents else EMPTY_TREE


def file_changes(
    shadow: Shadow,
    old: bytes,
    new: bytes,
    *,
    counts: bool = False,
    renames: bool = False,
    read: Callable[[bytes, Entry], bytes | None] | None = None,
) -> list[FileChange]:
    """Return the changes between two trees, with line counts if `counts` is set.

    With `renames`, a moved file is one change. `read` returns the content of files that are on disk only.
    """
    found = list(shadow.trees.diff(old, new))
    moved = git_renames.find(found, read or (lambda _, entry: stored(shadow, entry))) if renames else []
    known = {rename.new[0]: rename for rename in moved}
    gone = {rename.old[0] for rename in moved}
    changes = []
    for change in found:
        rename = known.get(change[0]) if change[1] is None else None
        if rename is not None:
            changes.append(renamed(change[0], rename.old[0], rename.old[1], change[2], rename.similarity))
        elif change[2] is not None or change[0] not in gone:
            changes.append(FileChange(change[0], letter(change), change[1], change[2]))
    return [counted(shadow, change) for change in changes] if counts else changes


def renamed(path: bytes, before: bytes, old: Entry | None, new: Entry | None, similarity: int) -> FileChange:
    """Return the change of a file that was renamed."""
    return FileChange(path, RENAMED, old, new, renamed_from=before, similarity=similarity)


def stored(shadow: Shadow, entry: Entry) -> bytes | None:
    """Return the content of a stored file, None if it is large or not stored."""
    objects = shadow.objects
    if not objects.contains(entry[1], fresh=False) or objects.header(entry[1])[1] > git_renames.LARGEST:
        return None
    return objects.read(entry[1])[1]


def counted(shadow: Shadow, change: FileChange) -> FileChange:
    """Return a file's change with its numbers of added and removed lines."""
    sides = (change.old, change.new)
    if any(entry and shadow.objects.header(entry[1])[1] > patch.LARGEST for entry in sides):
        return change.compared(None, large=True, a=b"", b=b"")
    a, b = (shadow.objects.read(entry[1])[1] if entry else b"" for entry in sides)
    binary = patch.is_binary(a) or patch.is_binary(b)
    return change.compared(None if binary else patch.count(a, b), large=False, a=a, b=b)


def path_json(path: bytes) -> PathFields:
    """Return the JSON fields of a path: text, and base64 if it is not UTF-8.

    The text of a path that is not UTF-8 has surrogate escapes.
    """
    text = os.fsdecode(path)
    try:
        path.decode("utf-8")
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"path": text, "path_b64": b64encode(path).decode()}
    return {"path": text}


# Prefixes of refs that hold a session's nodes: `<prefix><session>/…`. Archived and deleted nodes keep their numbers.
_HELD_BY = (HEADS, TAGS, ARCHIVE, DELETED, PRUNED, SAFETY)


def highest_seq(store: StoreHandle, session: str) -> int:
    """Return the highest sequence number that the session ever used, -1 for none."""
    found = -1
    for tip in set(held_refs(store.shadow, session).values()):
        try:
            found = max(found, store.shadow.commit(tip).number("Seq") or 0)
        except Corrupt:
            pass  # somebody's own tag, or damage that `check` reports: no reason to refuse a turn
    return found


def held_refs(shadow: Shadow, session: str) -> dict[str, bytes]:
    return {name: oid for place in _HELD_BY for name, oid in shadow.refs.list(f"{place}{session}/").items()}


def git_parts(node: Node) -> str:
    """Name what changed in the user's repository: `HEAD, the index, branches`."""
    moved = node.record.get("user_git")
    names = {"head": "HEAD", "head_commit": "HEAD", "index": "the index", "branches_digest": "branches"}
    parts = [names.get(str(key), str(key)) for key in moved] if isinstance(moved, dict) else []
    return ", ".join(dict.fromkeys(parts))
