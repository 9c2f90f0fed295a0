"""What is said of agents: connections, sessions, imports."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from snapstore.records.base import Change, PathRecord, Record, Text


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


class KeptConversationRecord(Record):
    """A conversation that an agent has kept, and the session that has recorded it."""

    sessionId: Text
    fullPath: Text
    firstPrompt: Text
    modified: Text
    messageCount: int | None
    session: Text | None


class ImportableRecord(Record):
    conversations: list[KeptConversationRecord]


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
    machine: Text | None = Field(default=None, description="the machine that it is of, null for our own")
    person: Text | None = None


class SessionsRecord(Record):
    sessions: list[SessionRecord]
