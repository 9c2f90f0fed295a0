"""Records of nodes: log, show, diff."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from pydantic import Field

from snapstore.surface.describe import listed
from snapstore.surface.records.base import (
    Change,
    FoundBy,
    Kind,
    PatchFields,
    PathRecord,
    PlainPathRecord,
    Record,
    Text,
    patch_fields,
)
from snapstore.timeline.history.nodes import FileChange, Node, path_json

if TYPE_CHECKING:
    from snapstore.timeline.history.history import DiffSide, History


class RenameRecord(PathRecord):
    """The old path of a renamed file, and how the file changed."""

    similarity: int = Field(description="percent; 100 if the content is the same")
    added: int | None
    removed: int | None

    @classmethod
    def of(cls, path: bytes, change: FileChange) -> Self:
        return cls(**path_json(path), similarity=change.similarity or 0, added=change.added, removed=change.removed)


class FileRecord(PathRecord):
    """The change of one file in a node.

    Counts are null for binary files, for files too large to compare, and if they were not requested. A renamed file is
    two changes, one added (A) and one deleted (D), and each names the other.
    """

    change: Change
    added: int | None
    removed: int | None
    binary: bool
    large: bool
    renamed_from: RenameRecord | None = Field(default=None, description="present when the file was renamed to this")
    renamed_to: PlainPathRecord | None = Field(default=None, description="present when the file was renamed from this")

    @classmethod
    def of(cls, change: FileChange, **more: Any) -> Self:
        return cls(
            **path_json(change.path),
            change=cast("Change", change.change),
            added=change.added,
            removed=change.removed,
            binary=change.binary,
            large=change.large,
            **more,
        )

    @classmethod
    def all_of(cls, changes: Iterable[FileChange]) -> list[Self]:
        """Describe the files of a node or a diff, in the order of their paths."""
        found: list[tuple[list[bytes], Self]] = []
        for change in changes:
            if change.renamed_from is None:
                found.append((change.path.split(b"/"), cls.of(change)))
                continue
            came, went = change.split_rename()
            before = RenameRecord.of(change.renamed_from, change)
            found.append((came.path.split(b"/"), cls.of(came, renamed_from=before)))
            found.append((went.path.split(b"/"), cls.of(went, renamed_to=PlainPathRecord.of(change.path))))
        return [record for _, record in sorted(found, key=lambda item: item[0])]


class LeftOutRecord(PathRecord):
    why: Text

    @classmethod
    def of(cls, path: bytes, why: str) -> Self:
        return cls(**path_json(path), why=why)


class NodeRecord(Record):
    """One commit of a session's tree, such as a turn or edits between turns."""

    seq: int
    turn: int | None
    commit: str
    tree: str
    parent: str | None
    kind: Kind
    session: Text
    branch: Text
    label: Text
    prompt: Text
    agent: Text
    started_at: Text
    ended_at: Text | None
    status: Literal["done", "open", "interrupted"]
    undone: bool
    checkpoints: list[Text]
    files: list[FileRecord]
    found_by: FoundBy | None
    left_out: list[LeftOutRecord]
    first_seen: list[Text]
    user_git: dict[Text, Any]
    exit_status: int | None

    @classmethod
    def of(cls, node: Node) -> NodeRecord:
        return NodeRecord(
            seq=node.seq,
            turn=node.turn,
            commit=node.commit,
            tree=node.tree,
            parent=node.parent,
            kind=cast("Kind", node.kind),
            session=node.session,
            branch=node.branch,
            label=node.label,
            prompt=node.prompt,
            agent=node.agent,
            started_at=node.started_at,
            ended_at=node.ended_at,
            status=cast("Literal['done', 'open', 'interrupted']", node.status),
            undone=node.undone,
            checkpoints=node.checkpoints,
            files=FileRecord.all_of(node.files),
            found_by=cast("FoundBy | None", node.found_by),
            left_out=[LeftOutRecord.of(os.fsencode(item["path"]), item["why"]) for item in node.left_out],
            first_seen=node.record.get("first_seen", []),
            user_git=node.record.get("user_git", {}),
            exit_status=node.record.get("exit_status"),
        )


class ShowRecord(NodeRecord):
    """A node with its conversation and its patch."""

    replies: list[Any]
    thinking: list[Any]
    tool_calls: list[Any]
    lines: list[Text] = Field(default=[], description="the raw lines of the agent's conversation")
    conversation: dict[str, Any] | None = Field(default=None, description="the agent's ids for session and prompt")
    unknown: list[Any] = Field(
        default=[], description="for an imported turn, changes that the conversation does not show"
    )
    patch: Text
    patch_b64: str | None = Field(default=None, description="present when the patch is not UTF-8")

    @classmethod
    def with_patch(cls, node: Node, patch: Iterable[bytes]) -> Self:
        return cls(
            **dict(NodeRecord.of(node)),
            replies=listed(node, "replies"),
            thinking=listed(node, "thinking"),
            tool_calls=listed(node, "tool_calls"),
            lines=listed(node, "lines"),
            conversation=agent_ids(node),
            unknown=listed(node, "unknown"),
            **patch_fields(patch),
        )


def agent_ids(node: Node) -> dict[str, Any] | None:
    """Return the agent's ids for the session and the prompt of a turn.

    Anyone can write a turn's record (a git note), so the types are checked.
    """
    found = node.record.get("conversation")
    return found if isinstance(found, dict) else None


class LogRecord(Record):
    """The nodes of a line, oldest first."""

    session: Text
    branch: Text
    nodes: list[NodeRecord]

    @classmethod
    def of(cls, history: History, nodes: Iterable[Node]) -> Self:
        records = [NodeRecord.of(node) for node in nodes]
        return cls(session=history.session.name, branch=history.branch, nodes=records)


class SideRecord(Record):
    """One side of a diff: a node, or the disk, which has no commit."""

    address: Text | None
    turn: int | None
    commit: str | None
    tree: str

    @classmethod
    def of(cls, side: DiffSide) -> Self:
        commit = side.commit.hex() if side.commit is not None else None
        return cls(address=side.address, turn=side.turn, commit=commit, tree=side.tree.hex())


class DiffRecord(Record):
    session: Text
    from_: SideRecord = Field(validation_alias="from", serialization_alias="from")
    to: SideRecord
    files: list[FileRecord]
    patch: Text
    patch_b64: str | None = None

    @classmethod
    def of(cls, session: str, old: DiffSide, new: DiffSide, files: Iterable[FileChange], patch: PatchFields) -> Self:
        return cls(
            session=session,
            from_=SideRecord.of(old),
            to=SideRecord.of(new),
            files=FileRecord.all_of(files),
            **patch,
        )
