"""Documents in the formats of earlier products.

The formats are undo-state, file operations, rewind and revert.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field

from snapstore.api import Session
from snapstore.base.text import timestamp
from snapstore.surface.records.base import Record, Text
from snapstore.surface.records.moves import MoveRecord
from snapstore.surface.records.web import Commit, Count, Request
from snapstore.timeline.history.agent_sessions import view
from snapstore.timeline.history.branch import Branch
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.nodes import Node, read_node
from snapstore.timeline.moves.branches import Branches
from snapstore.timeline.moves.moved import Moved

_CALL = {"file_path": "filePath", "old_string": "oldString", "new_string": "newString", "content": "content"}


class ArchivedToolCallRecord(Record):
    type: Literal["Edit", "Write"]
    filePath: Text
    oldString: Text | None = None
    newString: Text | None = None
    content: Text | None = None

    @classmethod
    def of(cls, call: dict[str, Any]) -> Self:
        """Describe a tool call of a record, without fields that are not strings."""
        told: dict[str, Any] = {name: call[key] for key, name in _CALL.items() if isinstance(call.get(key), str)}
        return cls(type=call["type"], **told)


class ArchivedTurnRecord(Record):
    index: int | None
    userMessage: Text | None
    toolCalls: list[ArchivedToolCallRecord]
    thinkingBlocks: list[Text]
    assistantText: list[Text]
    commit: str

    @classmethod
    def of(cls, node: Node) -> Self:
        record = node.record
        calls = [call for call in record.get("tool_calls", []) if _changes_file(call)]
        return cls(
            index=node.turn,
            userMessage=node.prompt or None,
            toolCalls=[ArchivedToolCallRecord.of(call) for call in calls],
            thinkingBlocks=_texts(record.get("thinking", [])),
            assistantText=_texts(record.get("replies", [])),
            commit=node.commit,
        )


class UndoBranchRecord(Record):
    id: Text
    createdAt: Text
    branchPointTurnIndex: int
    label: Text
    turns: list[ArchivedTurnRecord]
    jsonlLines: list[Text]

    @classmethod
    def of(cls, graph: Graph, branch: Branch) -> Self:
        """Describe a branch with the turns that no other branch shares."""
        own: list[bytes] = []
        for node in graph.upwards(branch.tip):
            if node.oid == branch.fork:
                break
            if node.turn is not None:
                own.append(node.oid)
        nodes = [read_node(graph.store.shadow, oid, files=False, lines=True) for oid in reversed(own)]
        return cls(
            id=branch.name,
            createdAt=timestamp(branch.created),
            branchPointTurnIndex=branch.fork_turn or 0,
            label=branch.label,
            turns=[ArchivedTurnRecord.of(node) for node in nodes],
            jsonlLines=[line for node in nodes for line in _texts(node.record.get("lines", []))],
        )


class UndoStateRecord(Record):
    """The undo state. Turns count from 1, and 0 is before the first. A single line has no branches."""

    sessionId: Text
    currentTurnIndex: int
    totalTurns: int
    branches: list[UndoBranchRecord]
    activeBranchId: Text | None
    expected: str

    @classmethod
    def of(cls, session: Session, id: str) -> Self:
        """Describe a session under the id of the request.

        Everything is computed from the tree and the turns' records; nothing is stored.
        """
        graph = view(session)
        found = Branches(session).list(graph)
        several = len(found) > 1
        return cls(
            sessionId=id,
            currentTurnIndex=graph.turn_of(graph.cursor),
            totalTurns=graph.turn_of(graph.tip),
            branches=[UndoBranchRecord.of(graph, branch) for branch in found] if several else [],
            activeBranchId=graph.branch if several else None,
            expected=graph.here.hex(),
        )


class UndoStateRequest(Request):
    sessionId: Text = ""
    currentTurnIndex: int = 0
    totalTurns: int = 0
    branches: list[dict[str, Any]] = Field(default=[])
    activeBranchId: Text | None = None
    expected: Commit | None = None


class FileRequest(Request):
    filePath: Text = Field(description="relative to the root, or absolute")
    sessionId: Text | None = Field(
        default=None, description="the session that gets the turn; default: the active session"
    )
    expected: Commit | None = None


class EditRequest(FileRequest):
    oldString: Text
    newString: Text
    reverse: bool = False
    replaceAll: bool = False


class WriteFileRequest(FileRequest):
    content: Text


class DeleteFileRequest(FileRequest):
    content: Text | None = Field(default=None, description="the content that the file must have to be deleted")


class VerifyRequest(Request):
    filePath: Text
    content: Text | None = None
    contains: Text | None = None


class VerifiedRecord(Record):
    filePath: Text
    exists: bool
    matches: bool


class UndoRequest(Request):
    count: Count = 1
    allow_first: bool = False
    expected: Commit | None = None


class RevertRequest(Request):
    messageID: Text | None = None
    expected: Commit | None = None


class UndoneRecord(Record):
    turns_undone: int
    turns_redone: int
    messages_removed: int
    files_reverted: list[Text]
    snapshot_restored: str | None
    message: Text | None

    @classmethod
    def of(cls, moved: Moved) -> Self:
        record = MoveRecord.of(moved)
        return cls(
            turns_undone=record.turns_undone,
            turns_redone=record.turns_redone,
            messages_removed=record.messages_removed,
            files_reverted=record.files_reverted,
            snapshot_restored=record.snapshot_restored,
            message=None,
        )

    @classmethod
    def nothing(cls) -> Self:
        return cls(
            turns_undone=0,
            turns_redone=0,
            messages_removed=0,
            files_reverted=[],
            snapshot_restored=None,
            message="Nothing to undo",
        )


class RewindRequest(Request):
    type: Literal["rewind_session"]
    sessionId: Text
    rewindToTurn: Annotated[int, Field(ge=0, le=999_999_999)]
    expected: Commit | None = None


def _changes_file(call: object) -> bool:
    return isinstance(call, dict) and call.get("type") in ("Edit", "Write") and isinstance(call.get("file_path"), str)


def _texts(found: list[Any]) -> list[str]:
    """Return the strings in a list of a turn's record, a note that anyone can write."""
    return [text for text in found if isinstance(text, str)]
