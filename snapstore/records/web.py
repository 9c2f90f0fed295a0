"""What the page asks for, and what only the page is answered. Requests are strict: a misspelt field is a mistake that
would make an undo another undo."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from snapstore.records.agents import CapabilityRecord, SessionRecord
from snapstore.records.base import Record, Text
from snapstore.records.branches import TreeRecord
from snapstore.records.nodes import NodeRecord

Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$", description="the cursor's commit as last seen")]
Address = Annotated[Text, Field(description="`5`, `#12`, a branch, a checkpoint, `name:5`, `@` or a commit")]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
MoveKind = Literal["undo", "redo", "goto", "switch", "revert", "apply", "restore"]


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Expecting(Request):
    """A change: refused as stale when the session stands elsewhere by now."""

    expected: Commit


class MoveRequest(Request):
    move: MoveKind
    expected: Commit | None = Field(default=None, description="may be left out of a preview only")
    count: Count | None = Field(default=None, description="for undo and redo; 1 when left out")
    all: bool = Field(default=False, description="for redo: all that is undone")
    address: Address | None = None
    paths: list[Text] = Field(default=[], max_length=1000, description="for restore; below the root")
    scope: Literal["both", "files", "conversation"] = "both"
    exact: bool = False
    on_conflict: Literal["refuse", "merge", "markers", "force", "skip"] = "refuse"
    ours: list[Text] = Field(default=[], max_length=10_000, description="conflicting files that stay as they are")
    theirs: list[Text] = Field(default=[], max_length=10_000, description="conflicting files that are replaced")


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


class PageNodeRecord(NodeRecord):
    """A node with its conversation, without its patch and its raw lines."""

    replies: list[Any]
    thinking: list[Any]
    tool_calls: list[Any]
    conversation: dict[str, Any] | None
    unknown: list[Any]


class PageNodesRecord(Record):
    nodes: list[PageNodeRecord]
