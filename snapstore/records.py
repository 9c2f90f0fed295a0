"""The records that cross a border: what `--json` prints, and programs build on. Fields are added, never renamed.

A path that is not UTF-8 is text with surrogate escapes, and is given again in base64. pydantic's own text type refuses
such text, so `Text` only checks that it is text, and documents are dumped as Python objects and encoded as ASCII JSON.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("not text")
    return value


Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string"})]

Kind = Literal["baseline", "turn", "edits", "revert", "apply", "restore"]
Change = Literal["A", "M", "D", "T"]
FoundBy = Literal["named", "watched", "scanned"]


class Record(BaseModel):
    """What it does not know it keeps: a newer part of the program may have added it."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True, populate_by_name=True)


class PathRecord(Record):
    path: Text
    path_b64: str | None = Field(default=None, description="present when the path is not UTF-8")


class FileRecord(PathRecord):
    """One file's part in a node. Counts are null for binary files, and where nobody asked for them."""

    change: Change
    added: int | None
    removed: int | None
    binary: bool


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
    status: Literal["open", "cancelled"]
    turn: int | None = None
    before: str | None = None
    named: list[Text] = []
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
    recovery: Text | None
    pending_fork: bool
    conversation: ConversationRecord | None
    hook_errors: list[Text]


class LogRecord(Record):
    """Nodes oldest first."""

    session: Text
    branch: Text
    nodes: list[NodeRecord]


class LeafRecord(Record):
    """The end of a line: how many turns it has, and what was last asked for on it."""

    seq: int
    commit: str
    turns: int
    ended_at: Text
    age_seconds: int
    prompt: Text
    checkpoints: list[Text]


class BranchRecord(LeafRecord):
    """A branch with its tip. `parted_at` is the last turn that it shares with another branch, null when it is alone."""

    name: Text
    label: Text
    state: Literal["current", "listed", "archived"]
    own_turns: int
    parted_at: int | None
    parted_commit: str | None
    created_at: Text
    pinned_by: list[Text] = Field(description="checkpoints on its own part: it is not archived by itself")


class TreeNodeRecord(Record):
    """A node as its commit alone tells it, so that ten thousand cost little; `show` gives the rest. The prompt is its
    first line."""

    seq: int
    turn: int | None
    commit: str
    tree: str
    parent: str | None
    kind: Text
    session: Text
    branch: Text
    label: Text
    prompt: Text
    agent: Text
    ended_at: Text
    undone: bool
    checkpoints: list[Text]


class TreeRecord(Record):
    """Nodes in the order they were made: each after its parent. `cursor` is a commit, `branch` the one stood on."""

    session: Text
    cursor: str
    branch: Text
    nodes: list[TreeNodeRecord]
    branches: list[BranchRecord]


class UndolistLeafRecord(LeafRecord):
    """`branch` is null, and the state `pinned`, where only a checkpoint holds the leaf."""

    branch: Text | None
    label: Text
    state: Literal["current", "listed", "archived", "pinned"]


class UndolistRecord(Record):
    """Every leaf of the session's tree, oldest first."""

    session: Text
    cursor: str
    leaves: list[UndolistLeafRecord]


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


class ConflictRecord(PathRecord):
    """A file that held something else than the turns had left in it. States read `missing`, or `file 5f3a…`."""

    expected: str
    found: str
    wanted: str
    changed_by: Text
    settled_by: Literal["merge", "markers", "force", "skip"] | None
    why: Text | None


class ForkRecord(Record):
    """A conversation that goes on from an earlier turn, and the command that takes it up."""

    event: str | None
    agent: Text
    id: Text | None
    alias: Text | None
    title: Text | None
    parentSessionId: Text
    rewindFromTurn: int
    rewindedAt: Text | None
    created: Text | None
    fresh: bool
    path: Text | None
    command: list[Text]
    notices: list[Text]


class MoveRecord(Record):
    """What a move did; with `preview` what it would do."""

    move: str
    from_: NodeRecord = Field(alias="from")
    to: NodeRecord
    turn: int
    branch: Text
    turns_undone: int
    turns_redone: int
    messages_removed: int
    files_reverted: list[Text]
    snapshot_restored: str | None
    written: list[Text]
    removed: list[Text]
    kept: list[Text]
    skipped: list[Text]
    conflicts: list[ConflictRecord]
    safety_ref: Text | None
    prompt: Text | None
    paths_b64: dict[Text, str]
    notes: list[Text]
    preview: bool
    operation: int | None = Field(default=None, description="its number in `ops`")
    safety: str | None = Field(default=None, description="the commit of what was on disk")
    pending_fork: bool = Field(default=False, description="the agent's conversation now holds undone turns")
    fork: ForkRecord | None = None


class OperationRecord(Record):
    """One move or branch change. Refs and files as [name, old, new]."""

    op: int
    session: Text
    kind: str
    at: Text
    what: Text
    from_: dict[str, Any] | None = Field(alias="from")
    to: dict[str, Any] | None
    arguments: list[Text]
    refs: list[list[Text | None]]
    files: list[list[Text | None]]
    safety_ref: Text | None
    undoes: list[int]
    undone_by: int | None


class OperationsRecord(Record):
    """Newest first."""

    operations: list[OperationRecord]


class RecoveryFileRecord(PathRecord):
    old: str | None
    new: str | None


class RecoveryRefRecord(Record):
    ref: Text
    old: Text | None
    new: Text | None


class RecoveryRecord(Record):
    """A change that was cut short, and how it ended if it was asked to end."""

    pending: bool
    what: Text | None
    files: list[RecoveryFileRecord]
    refs: list[RecoveryRefRecord]
    obstacles: list[Text]
    ended: Literal["finished", "taken back"] | None
    kept: list[Text]


class BranchesRecord(Record):
    """The current one first, then by last use, then the archive."""

    session: Text
    branches: list[BranchRecord]
    listed: int
    archived: int
    max_branches: int


class DeletePreviewRecord(Record):
    session: Text
    deleting: list[BranchRecord]
    kept: list[BranchRecord]
    preview: Literal[True]


class ChangeRecord(Record):
    """A change of branches or checkpoints. Without an operation nothing had to be done."""

    session: Text
    what: Text
    operation: int | None
    refs: list[list[Text | None]]
    branch: Text
    commit: str
    notes: list[Text]


class CheckpointRecord(Record):
    name: Text
    seq: int
    turn: int
    commit: str
    branch: Text | None
    ended_at: Text
    prompt: Text


class CheckpointsRecord(Record):
    """Oldest turn first."""

    session: Text
    checkpoints: list[CheckpointRecord]


class PartedRecord(Record):
    """The last node that two lines share."""

    turn: int
    seq: int
    commit: str
    kind: Text
    ended_at: Text
    prompt: Text


class ComparedTurnRecord(Record):
    turn: int
    seq: int
    commit: str
    kind: Text
    prompt: Text


class ComparedSideRecord(Record):
    address: Text
    branch: Text
    commit: str
    turn: int
    ended_at: Text
    turns_since: list[ComparedTurnRecord]
    files_changed: int
    added: int
    removed: int
    prompt: Text
    last_message: Text


class ComparedChangeRecord(Record):
    change: Change
    added: int | None
    removed: int | None
    binary: bool
    blob: str | None


class ComparedFileRecord(PathRecord):
    """What each side did to a file, null for nothing."""

    a: ComparedChangeRecord | None
    b: ComparedChangeRecord | None
    outcome: Literal["only a", "only b", "same", "different"]


class CompareRecord(Record):
    session: Text
    parted_at: PartedRecord
    a: ComparedSideRecord
    b: ComparedSideRecord
    files: list[ComparedFileRecord]
    patch: Text | None = Field(default=None, description="from A's files to B's; with --patch")
    patch_b64: str | None = None


class UnknownRecord(Record):
    """What an imported turn may have changed besides. Without a path: any file."""

    path: Text | None
    why: Text


class ImportedFileRecord(PathRecord):
    change: Change | None = Field(description="null where the turn left it as it was")


class ImportedTurnRecord(Record):
    turn: int
    prompt: Text
    files: list[ImportedFileRecord]
    unknown: list[UnknownRecord]
    commit: str | None


class ImportRecord(Record):
    session: Text
    agent: Text
    agent_session: Text
    turns: list[ImportedTurnRecord]
    verified: list[Text] = Field(description="files that are on disk as the last turn left them")
    moved_on: list[Text] = Field(description="files that have been changed since")
    left_out_branches: int
    left_out_turns: int
    warnings: list[Text]
    preview: bool


class ConnectedFileRecord(PathRecord):
    change: Literal["A", "M", "D"]
    backup: Text | None


class ConnectRecord(Record):
    """What `connect` and `disconnect` changed, or would with --dry-run."""

    agent: Text
    scopes: list[Text]
    command: Text | None
    changed: bool
    dry_run: bool
    files: list[ConnectedFileRecord]
    notes: list[Text]
    next: Text
    patch: Text | None = Field(default=None, description="with --dry-run")
    patch_b64: str | None = None


class ConnectedRecord(PathRecord):
    scope: Text
    outdated: bool
    tells: bool
    problem: Text | None


class CapabilityRecord(Record):
    """What an agent's program can be asked to do with a conversation, and why not."""

    name: Text
    fork: str = Field(description="at-turn, whole, resume or none")
    transcripts: bool
    notice: Text | None


class ConnectionRecord(Record):
    agent: Text
    connected: bool
    places: list[ConnectedRecord]
    fired_at: Text | None
    capabilities: CapabilityRecord


class ConnectionsRecord(Record):
    agents: list[ConnectionRecord]


class AgentSessionRecord(Record):
    """One session of an agent, in the words of the agents' own indexes."""

    sessionId: Text
    agent: Text
    current: bool
    parentSessionId: Text | None
    rewindFromTurn: int | None
    rewindedAt: Text | None
    created: Text
    modified: Text
    messageCount: int
    firstPrompt: Text
    title: Text | None
    alias: Text | None
    fullPath: Text | None


class SessionRecord(Record):
    session: Text
    active: bool
    agent: Text | None
    branch: Text
    turns: int
    firstPrompt: Text
    modified: Text
    conversations: list[AgentSessionRecord]


class SessionsRecord(Record):
    sessions: list[SessionRecord]


class ErrorRecord(Record):
    error: str
    message: Text
    hint: Text


R = TypeVar("R", bound=Record)


def dump(kind: type[R], document: dict[str, Any]) -> dict[str, Any]:
    """A document, checked against its record, ready for json.dumps."""
    return kind.model_validate(document).model_dump(exclude_unset=True, by_alias=True)
