"""Records of a whole store: status, check, init."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field

from snapstore.api import Store
from snapstore.base.text import timestamp
from snapstore.errors import SnapstoreError
from snapstore.store.state import OpenTurn
from snapstore.surface.records.base import Record, Text, path_texts, paths_b64
from snapstore.surface.records.errors import ErrorRecord
from snapstore.surface.records.nodes import LeftOutRecord, NodeRecord
from snapstore.surface.status import ConversationStatus, FirstUndoneTurn, Status

if TYPE_CHECKING:
    from snapstore.timeline.maintenance.check import Problem, Report


class OpenTurnRecord(Record):
    """A turn that has begun and not ended."""

    session: Text
    prompt: Text
    agent: Text
    started_at: Text
    status: Literal["open", "interrupted", "cancelled"]
    turn: int | None = None
    before: str | None = None
    named: list[Text] = Field(default=[])
    shell: bool = False

    @classmethod
    def of(cls, turn: OpenTurn, status: Literal["open", "interrupted", "cancelled"] = "open") -> Self:
        return cls(
            session=turn.session,
            prompt=turn.prompt,
            agent=turn.agent,
            started_at=timestamp(turn.started_at),
            status=status,
        )

    @classmethod
    def in_full(cls, turn: OpenTurn, number: int, status: Literal["open", "cancelled"] = "open") -> Self:
        """Describe a turn to its own agent: number, start and paths named so far."""
        return cls(
            session=turn.session,
            prompt=turn.prompt,
            agent=turn.agent,
            started_at=timestamp(turn.started_at),
            status=status,
            turn=number,
            before=turn.before,
            named=turn.named,
            shell=turn.shell,
        )


class RevertRecord(Record):
    """The first undone turn: the conversation counts as undone from there on."""

    turn: int | None
    commit: str
    message_id: Text | None
    prompt: Text
    turns: int = Field(description="the number of undone turns")

    @classmethod
    def of(cls, reverted: FirstUndoneTurn) -> Self:
        return cls(
            turn=reverted.turn,
            commit=reverted.commit,
            message_id=reverted.message_id,
            prompt=reverted.prompt,
            turns=reverted.turns,
        )


class ConversationRecord(Record):
    """The state of the agent's conversation."""

    agent: Text
    id: Text
    materialized: bool = Field(description="whether any turn of it is not undone")
    pending_fork: bool
    awaiting: bool = Field(description="a fork was requested, and the agent has not named it yet")
    parent: Text | None
    fork_turn: int | None
    title: Text | None
    transcript: Text | None
    running: bool
    revert: RevertRecord | None

    @classmethod
    def of(cls, found: ConversationStatus) -> Self:
        state, known = found.state, found.known
        return cls(
            agent=state.agent,
            id=state.id,
            materialized=state.materialized,
            pending_fork=state.pending_fork,
            awaiting=state.awaiting is not None,
            parent=known.parent if known else None,
            fork_turn=known.fork_turn if known else None,
            title=known.title if known else None,
            transcript=(known.transcript or None) if known else None,
            running=found.running,
            revert=RevertRecord.of(found.reverted) if found.reverted else None,
        )


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
    not_known: list[Text] = Field(description="events and tools of agents that are not known here, and how often")
    warm_process: int | None = Field(default=None, description="the process id of the warm process, if one runs")

    def with_warm_process(self, pid: int | None) -> Self:
        """Return the record with the warm process's pid, which only commands look up.

        The page never asks: its polling would keep the warm process alive.
        """
        return self.model_copy(update={"warm_process": pid})

    @classmethod
    def of(cls, status: Status, interrupted: frozenset[str] = frozenset()) -> Self:
        """Describe a store. `interrupted` are the sessions whose open turn is abandoned."""
        edited = [change.path for change in status.edits]
        talk = status.conversation
        return cls(
            root=os.fsdecode(status.root),
            store=status.store,
            git_dir=status.git_dir,
            session=status.session,
            branch=status.branch,
            cursor=NodeRecord.of(status.cursor),
            tip=NodeRecord.of(status.tip),
            turn=status.turn,
            undone_turns=status.undone_turns,
            open_turns=[
                OpenTurnRecord.of(turn, "interrupted" if turn.session in interrupted else "open")
                for turn in status.open_turns
            ],
            edits=path_texts(edited),
            paths_b64=paths_b64(edited),
            left_out=[LeftOutRecord.of(path, why) for path, why in status.left_out.items()],
            branches=status.branches,
            sessions=status.sessions,
            size_bytes=status.size_bytes,
            max_store_size=status.max_store_size,
            recovery=status.recovery,
            pending_fork=status.pending_fork,
            conversation=ConversationRecord.of(talk) if talk is not None else None,
            hook_errors=status.hook_errors,
            not_known=status.not_known,
        )


class ProblemRecord(Record):
    """A problem of a store, with the fields of the error that reported it, if one did."""

    where: Text
    message: Text

    @classmethod
    def of(cls, problem: Problem) -> Self:
        if problem.refusal is not None:
            return cls(where=problem.where, **dict(ErrorRecord.of(problem.refusal)))
        more: dict[str, Any] = {"error": problem.error} if problem.error else {}
        return cls(where=problem.where, message=problem.message, **more)


class CheckRecord(Record):
    ok: bool
    refs: int
    commits: int
    trees: int
    blobs: int
    read_data: bool
    problems: list[ProblemRecord]

    @classmethod
    def of(cls, report: Report, refusal: SnapstoreError | None = None) -> Self:
        """Describe a check. `refusal` is the error that a store with problems also raises."""
        more: dict[str, Any] = dict(ErrorRecord.of(refusal)) if refusal is not None else {}
        return cls(
            ok=not report.problems,
            refs=report.refs,
            commits=report.commits,
            trees=report.trees,
            blobs=report.blobs,
            read_data=report.read_data,
            problems=[ProblemRecord.of(problem) for problem in report.problems],
            **more,
        )


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

    @classmethod
    def of(cls, store: Store, *, created: bool, adopted_from: str | None, files: int) -> Self:
        return cls(
            root=os.fsdecode(store.root),
            store=store.folder,
            git_dir=store.shadow.git_dir,
            session=store.session(None).name,
            created=created,
            adopted_from=adopted_from,
            max_file_size=store.header.max_file_size,
            max_branches=store.header.max_branches,
            files=files,
            left_out=[LeftOutRecord.of(path, why) for path, why in store.left_out().items()],
        )
