"""What the page asks for, and what only the page is answered. Requests are strict: a misspelt field is a mistake that
would make an undo another undo."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from snapstore.records.agents import CapabilityRecord, SessionRecord
from snapstore.records.base import PathRecord, Record, Text
from snapstore.records.branches import TreeRecord
from snapstore.records.keeping import UseRecord
from snapstore.records.nodes import FileRecord, NodeRecord

Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$", description="the cursor's commit as last seen")]
Address = Annotated[Text, Field(description="`5`, `#12`, a branch, a checkpoint, `name:5`, `@` or a commit")]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
MoveKind = Literal["undo", "redo", "goto", "switch", "revert", "apply", "restore"]


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Expecting(Request):
    """A change: refused as stale when the session stands elsewhere by now."""

    expected: Commit


class MoveRequest(Request):
    move: MoveKind
    expected: Commit | None = Field(default=None, description="may be left out of a preview only")
    to: Commit | None = Field(default=None, description="where a preview said that it leads; refused as stale if not")
    branch: Text | None = Field(default=None, description="and on which branch")
    count: Count | None = Field(default=None, description="for undo and redo; 1 when left out")
    all: bool = Field(default=False, description="for redo: all that is undone")
    address: Address | None = None
    paths: list[Text] = Field(default=[], max_length=10_000, description="for restore; below the root")
    scope: Literal["both", "files", "conversation"] = "both"
    exact: bool = False
    on_conflict: Literal["refuse", "merge", "markers", "force", "skip"] = "refuse"
    ours: list[Text] = Field(default=[], max_length=10_000, description="conflicting files that stay as they are")
    theirs: list[Text] = Field(default=[], max_length=10_000, description="conflicting files that are replaced")
    merge: list[Text] = Field(default=[], max_length=10_000, description="conflicting files that are merged")
    markers: list[Text] = Field(default=[], max_length=10_000, description="and those that may get conflict markers")
    seen: dict[Text, Text] = Field(
        default={},
        max_length=10_000,
        description="as what a conflicting file was `found` when its way was chosen; now something else, it is refused",
    )


class MergeRequest(MoveRequest):
    path: Text


class PageSessionsRecord(Record):
    root: Text
    active: Text
    sessions: list[SessionRecord]
    agents: dict[Text, CapabilityRecord]


class PageTreeRecord(TreeRecord):
    expected: str = Field(description="to be sent with changes")
    turn: int = Field(description="the number of the last turn at or before the cursor")
    max_branches: int = Field(description="listed ones, 0 for any number; past it the oldest goes to the archive")
    warn_branches: int = Field(description="how many are worth a warning")


class PageNodeRecord(NodeRecord):
    """A node with its conversation, without its patch and its raw lines."""

    replies: list[Any]
    thinking: list[Any]
    tool_calls: list[Any]
    conversation: dict[str, Any] | None
    unknown: list[Any]


class CompactionRecord(Record):
    """The last turn after a node that came after a compaction; nulls where none did."""

    commit: str | None
    turn: int | None


class PageNodesRecord(Record):
    nodes: list[PageNodeRecord]


class DiffSideRecord(Record):
    oid: str
    size: int
    type: str = Field(description="text, binary, link, image/png, image/jpeg, image/gif or image/webp")
    stored: bool = Field(description="whether /api/blobs has it; a file that is on disk only has no blob yet")


class PageDiffRecord(Record):
    """With a path that file, its patch and its two sides; without one the files."""

    session: Text
    a: Text
    b: Text
    files: list[FileRecord] = Field(default=[])
    path: Text | None = None
    path_b64: str | None = None
    change: str | None = None
    added: int | None = None
    removed: int | None = None
    binary: bool = False
    large: bool = False
    patch: Text | None = None
    patch_b64: str | None = None
    old: DiffSideRecord | None = None
    new: DiffSideRecord | None = None


class HitRecord(Record):
    commit: str
    turn: int | None
    seq: int
    branch: Text | None
    where: Literal["prompt", "path", "reply"]
    text: Text


class SearchRecord(Record):
    """Newest first."""

    hits: list[HitRecord]


class MergeRecord(PathRecord):
    """A file's three sides, null where missing or no text; `merged` has markers unless it is clean."""

    base: Text | None
    mine: Text | None
    theirs: Text | None
    merged: Text | None
    clean: bool
    why: Text | None


class StatsRecord(UseRecord):
    refused_moves: int = Field(description="since this server started")


class RenameRequest(Expecting):
    to: Text


class DeleteRequest(Expecting):
    names: list[Text] = Field(min_length=1, max_length=1000)


class CheckpointRequest(Expecting):
    name: Text
    address: Address = "@"
    force: bool = Field(default=False, description="move a name that is taken")


class ForkRequest(Expecting):
    address: Address = "@"
    title: Text | None = None
    compacted: bool = Field(default=False, description="from before a compaction too, from the lines that were kept")


# The addresses of the products before us, in their own words.


class ArchivedToolCallRecord(Record):
    type: Literal["Edit", "Write"]
    filePath: Text
    oldString: Text | None = None
    newString: Text | None = None
    content: Text | None = None


class ArchivedTurnRecord(Record):
    index: int | None
    userMessage: Text | None
    toolCalls: list[ArchivedToolCallRecord]
    thinkingBlocks: list[Text]
    assistantText: list[Text]
    commit: str


class UndoBranchRecord(Record):
    id: Text
    createdAt: Text
    branchPointTurnIndex: int
    label: Text
    turns: list[ArchivedTurnRecord]
    jsonlLines: list[Text]


class UndoStateRecord(Record):
    """Turns are counted from 1; 0 is before the first. With one line only there are no branches."""

    sessionId: Text
    currentTurnIndex: int
    totalTurns: int
    branches: list[UndoBranchRecord]
    activeBranchId: Text | None
    expected: str


class UndoStateRequest(Request):
    sessionId: Text = ""
    currentTurnIndex: int = 0
    totalTurns: int = 0
    branches: list[dict[str, Any]] = []
    activeBranchId: Text | None = None
    expected: Commit | None = None


class FileRequest(Request):
    filePath: Text = Field(description="from the root, or in full")
    sessionId: Text | None = Field(default=None, description="whose turn it becomes; else the active session's")
    expected: Commit | None = None


class EditRequest(FileRequest):
    oldString: Text
    newString: Text
    reverse: bool = False
    replaceAll: bool = False


class WriteFileRequest(FileRequest):
    content: Text


class DeleteFileRequest(FileRequest):
    content: Text | None = Field(default=None, description="what it must hold to be deleted")


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


class RewindRequest(Request):
    type: Literal["rewind_session"]
    sessionId: Text
    rewindToTurn: Annotated[int, Field(ge=0, le=999_999_999)]
    expected: Commit | None = None
