"""Records of agents: connections, sessions, imports."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from pydantic import Field

from snapstore.agents.capabilities import Capability, capability
from snapstore.base.text import timestamp
from snapstore.store.owners import owner_fields
from snapstore.surface.records.base import Change, PathRecord, Record, Text, patch_fields, path_texts
from snapstore.timeline.history.nodes import path_json

if TYPE_CHECKING:
    from snapstore.agents.import_session import Import, StoredConversation, TurnToImport
    from snapstore.agents.install.connect import Connected, Connection, Plan
    from snapstore.agents.install.safe_files import Change as FileChange
    from snapstore.timeline.history.agent_sessions import Conversation, SessionLine


class UnknownRecord(Record):
    """A change of an imported turn that is not known. Without a path: any file."""

    path: Text | None
    why: Text


class ImportedFileRecord(PathRecord):
    change: Change | None = Field(description="null if the turn did not change the file")


class ImportedTurnRecord(Record):
    turn: int
    prompt: Text
    files: list[ImportedFileRecord]
    unknown: list[UnknownRecord]
    commit: str | None

    @classmethod
    def of(cls, number: int, turn: TurnToImport, commit: bytes | None) -> Self:
        return cls(
            turn=number,
            prompt=turn.prompt,
            files=[
                ImportedFileRecord(**path_json(path), change=cast("Change | None", turn.letter(path)))
                for path in turn.changes
            ],
            unknown=[UnknownRecord(path=path, why=why) for path, why in turn.unknown],
            commit=commit.hex() if commit is not None else None,
        )


class ImportRecord(Record):
    session: Text
    agent: Text
    agent_session: Text
    turns: list[ImportedTurnRecord]
    verified: list[Text] = Field(description="files that are still as the last turn left them")
    moved_on: list[Text] = Field(description="files that have been changed since")
    left_out_branches: int
    left_out_turns: int
    warnings: list[Text]
    preview: bool

    @classmethod
    def of(
        cls,
        found: Import,
        session: str,
        commits: Sequence[bytes],
        *,
        verified: Iterable[bytes],
        moved_on: Iterable[bytes],
        preview: bool,
    ) -> Self:
        """Describe an import. `commits` are the new commits, one per turn.

        A preview has none.
        """
        return cls(
            session=session,
            agent=found.agent,
            agent_session=found.session_id,
            turns=[
                ImportedTurnRecord.of(number, turn, commits[number - 1] if commits else None)
                for number, turn in enumerate(found.turns, 1)
            ],
            verified=path_texts(verified),
            moved_on=path_texts(moved_on),
            left_out_branches=found.left_out_branches,
            left_out_turns=found.left_out_turns,
            warnings=found.warnings,
            preview=preview,
        )


class StoredConversationRecord(Record):
    """A conversation that an agent stored, and the session that recorded it."""

    sessionId: Text
    fullPath: Text
    firstPrompt: Text
    modified: Text
    messageCount: int | None
    session: Text | None

    @classmethod
    def of(cls, kept: StoredConversation) -> Self:
        return cls(
            sessionId=kept.id,
            fullPath=kept.path,
            firstPrompt=kept.prompt,
            modified=kept.modified,
            messageCount=kept.messages,
            session=kept.session,
        )


class ImportableRecord(Record):
    conversations: list[StoredConversationRecord]

    @classmethod
    def of(cls, found: Iterable[StoredConversation]) -> Self:
        return cls(conversations=[StoredConversationRecord.of(kept) for kept in found])


class ConnectedFileRecord(PathRecord):
    change: Literal["A", "M", "D"]
    backup: Text | None

    @classmethod
    def of(cls, change: FileChange) -> Self:
        return cls(
            **path_json(os.fsencode(change.found.path)),
            change="A" if change.found.data is None else "D" if change.after is None else "M",
            backup=change.backup,
        )


class ConnectRecord(Record):
    """What `connect` or `disconnect` changed, or with --dry-run would change."""

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

    @classmethod
    def of(cls, plan: Plan, after: str, patch: Iterable[bytes] | None = None) -> Self:
        """Describe a change of an agent's settings. `after` is what to do next.

        A preview has a patch instead of a change that was made.
        """
        more: dict[str, Any] = dict(patch_fields(patch)) if patch is not None else {}
        return cls(
            agent=plan.agent,
            scopes=list(plan.scopes),
            command=plan.command or None,
            changed=bool(plan.changes),
            dry_run=patch is not None,
            files=[ConnectedFileRecord.of(change) for change in plan.changes],
            notes=plan.notes,
            next=after,
            **more,
        )


class ConnectedRecord(PathRecord):
    scope: Text
    outdated: bool
    tells: bool
    problem: Text | None

    @classmethod
    def of(cls, place: Connected) -> Self:
        return cls(
            **path_json(os.fsencode(place.path)),
            scope=place.scope,
            outdated=place.outdated,
            tells=place.tells,
            problem=place.problem or None,
        )


class CapabilityRecord(Record):
    """What an agent's program can do with a conversation, and if not, why."""

    name: Text
    fork: str = Field(description="at-turn, whole, resume or none")
    transcripts: bool
    notice: Text | None

    @classmethod
    def of(cls, able: Capability) -> Self:
        return cls(name=able.name, fork=able.forks, transcripts=able.transcripts, notice=able.notice or None)


class ConnectionRecord(Record):
    agent: Text
    connected: bool
    places: list[ConnectedRecord]
    fired_at: Text | None
    not_known: dict[Text, int] = Field(description="events and tools that are not known here, and how often seen")
    capabilities: CapabilityRecord

    @classmethod
    def of(cls, connection: Connection) -> Self:
        return cls(
            agent=connection.agent,
            connected=any(not place.problem for place in connection.places),
            places=[ConnectedRecord.of(place) for place in connection.places],
            fired_at=timestamp(connection.fired) if connection.fired is not None else None,
            not_known=connection.not_known,
            capabilities=CapabilityRecord.of(capability(connection.agent)),
        )


class ConnectionsRecord(Record):
    agents: list[ConnectionRecord]

    @classmethod
    def of(cls, connections: Iterable[Connection]) -> Self:
        return cls(agents=[ConnectionRecord.of(connection) for connection in connections])


class AgentSessionRecord(Record):
    """One agent session, with the field names of the agents' own indexes."""

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
    branch: Text | None = Field(description="the branch of its line, null if its turns are gone")
    turns: int = Field(description="the number of the last turn on its line")
    archived: bool = Field(description="its branch is in the archive")
    listedUnder: Text | None = Field(description="its parent, or the session that was promoted over it")

    @classmethod
    def of(cls, found: Conversation) -> Self:
        known = found.known
        return cls(
            sessionId=known.id,
            agent=known.agent,
            current=found.current,
            parentSessionId=known.parent,
            rewindFromTurn=known.fork_turn,
            rewindedAt=known.forked_at,
            created=known.created,
            modified=found.modified,
            messageCount=found.messages,
            firstPrompt=found.first_prompt,
            title=known.title,
            alias=known.alias,
            fullPath=known.transcript or None,
            branch=found.branch or None,
            turns=found.turns,
            archived=found.archived,
            listedUnder=found.listed_under,
        )


class SessionRecord(Record):
    session: Text
    active: bool
    agent: Text | None
    branch: Text
    turns: int
    firstPrompt: Text
    modified: Text
    conversations: list[AgentSessionRecord]
    machine: Text | None = Field(default=None, description="the machine that owns the session, null for this one")
    person: Text | None = None

    @classmethod
    def of(cls, line: SessionLine, active: str) -> Self:
        """Describe a session. `active` is the name of the last active session."""
        return cls(
            session=line.name,
            active=line.name == active,
            agent=line.agent or None,
            branch=line.branch,
            turns=line.turns,
            firstPrompt=line.prompt,
            modified=line.last_active,
            conversations=[AgentSessionRecord.of(found) for found in line.conversations],
            **owner_fields(line.owner),
        )


class SessionsRecord(Record):
    sessions: list[SessionRecord]

    @classmethod
    def of(cls, lines: Iterable[SessionLine], active: str) -> Self:
        return cls(sessions=[SessionRecord.of(line, active) for line in lines])
