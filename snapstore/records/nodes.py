"""What is said of nodes: status, log, show, diff, check, init."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from snapstore.records.base import Change, FoundBy, Kind, PathRecord, Record, Text


class FileRecord(PathRecord):
    """One file's part in a node. Counts are null for binary files, for those that are too large to compare, and where
    nobody asked for them."""

    change: Change
    added: int | None
    removed: int | None
    binary: bool
    large: bool


class LeftOutRecord(PathRecord):
    why: Text


class NodeRecord(Record):
    """One commit of a session's tree: a turn, or what other hands changed between two."""

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


class ShowRecord(NodeRecord):
    """A node with its conversation and its patch."""

    replies: list[Any]
    thinking: list[Any]
    tool_calls: list[Any]
    lines: list[Text] = Field(default=[], description="the raw lines of the agent's conversation")
    conversation: dict[str, Any] | None = Field(default=None, description="the agent's ids for session and prompt")
    unknown: list[Any] = Field(default=[], description="of an imported turn: what the conversation could not tell")
    patch: Text
    patch_b64: str | None = Field(default=None, description="present when the patch is not UTF-8")


class OpenTurnRecord(Record):
    """A turn between its begin and its end."""

    session: Text
    prompt: Text
    agent: Text
    started_at: Text
    status: Literal["open", "interrupted", "cancelled"]
    turn: int | None = None
    before: str | None = None
    named: list[Text] = Field(default=[])
    shell: bool = False


class RevertRecord(Record):
    """From where on the conversation is taken back: its first undone turn."""

    turn: int | None
    commit: str
    message_id: Text | None
    prompt: Text
    turns: int = Field(description="how many are undone")


class ConversationRecord(Record):
    """Where the agent's conversation stands."""

    agent: Text
    id: Text
    materialized: bool = Field(description="whether it holds anything that is not undone")
    pending_fork: bool
    awaiting: bool = Field(description="a fork was asked for, and the agent has yet to name it")
    parent: Text | None
    fork_turn: int | None
    title: Text | None
    transcript: Text | None
    running: bool
    revert: RevertRecord | None


class StatusRecord(Record):
    root: Text
    store: Text
    git_dir: Text
    session: Text
    branch: Text
    cursor: NodeRecord
    tip: NodeRecord
    turn: int
    undone_turns: int
    open_turns: list[OpenTurnRecord]
    edits: list[Text]
    paths_b64: dict[Text, str]
    left_out: list[LeftOutRecord]
    branches: list[Text]
    sessions: list[Text]
    size_bytes: int
    max_store_size: int = Field(description="0 for no limit")
    recovery: Text | None
    pending_fork: bool
    conversation: ConversationRecord | None
    hook_errors: list[Text]


class LogRecord(Record):
    """Nodes oldest first."""

    session: Text
    branch: Text
    nodes: list[NodeRecord]


class SideRecord(Record):
    """One side of a difference: a node, or the disk (then without a commit)."""

    address: Text | None
    turn: int | None
    commit: str | None
    tree: str


class DiffRecord(Record):
    session: Text
    from_: SideRecord = Field(alias="from")
    to: SideRecord
    files: list[FileRecord]
    patch: Text
    patch_b64: str | None = None


class ProblemRecord(Record):
    where: Text
    message: Text


class CheckRecord(Record):
    ok: bool
    refs: int
    commits: int
    trees: int
    blobs: int
    read_data: bool
    problems: list[ProblemRecord]


class InitRecord(Record):
    root: Text
    store: Text
    git_dir: Text
    session: Text
    created: bool
    adopted_from: Text | None
    max_file_size: int
    max_branches: int
    files: int
    left_out: list[LeftOutRecord]
