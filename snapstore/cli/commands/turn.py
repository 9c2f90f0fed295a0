"""`snapstore turn begin|touch|end|cancel`: record a turn step by step, for hooks.

Hooks run these commands at every step of an agent, so this module imports only what a turn needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from snapstore.api import Session
from snapstore.cli.context import Context
from snapstore.cli.options import CommandGroup, agent_option, common_options, level_options, quiet_option
from snapstore.cli.param_types import FILE
from snapstore.cli.reports.summary import summary
from snapstore.errors import Usage
from snapstore.store.state import OpenTurn
from snapstore.timeline.history.history import History

if TYPE_CHECKING:
    from snapstore.surface.records.status import OpenTurnRecord


@click.group(cls=CommandGroup)
@level_options
def turn() -> None:
    """Record a turn step by step, by hand or from an agent's hooks."""


@turn.command()
@click.option("-m", "--prompt", metavar="PROMPT", help="What was asked for.")
@agent_option
@quiet_option
@common_options
def begin(context: Context, *, prompt: str | None, agent: str | None) -> int:
    """Begin a turn.

    What changed since the last turn is recorded separately first. Creates the store if there is none.
    """
    session = context.recording(create=True)
    with session.store as store:
        session.begin(prompt or "", agent=agent or "agent")
        turn = store.open_turn(session.name)
        assert turn is not None
        if context.json:
            context.document(_record(session, turn))
        elif not context.quiet:
            before = store.shadow.commit(bytes.fromhex(turn.before))
            context.out.line(f"Turn {_number(session, turn)} of session {session.name} is open.")
            if before.trailers.get("Kind") == "edits" and before.seconds >= int(turn.started_at):
                context.out.line(f"Changes from before the turn are recorded separately: {before.subject}")
    return 0


@turn.command()
@click.argument("paths", metavar="PATH…", nargs=-1, type=FILE)
@click.option("--after", is_flag=True, help="The files have been written already.")
@click.option("--shell", is_flag=True, help="A program ran that may have changed anything: scan at the end.")
@quiet_option
@common_options
def touch(context: Context, *, paths: tuple[str, ...], after: bool, shell: bool) -> int:
    """Name files that the open turn is about to write.

    A turn whose files are all named needs no scan.
    """
    if not paths and not shell:
        raise Usage("nothing to touch", "Name the files, or use --shell if a program may have changed any.")
    session = context.recording()
    with session.store as store:
        session.touch(paths, after=after, shell=shell)
        turn = store.open_turn(session.name)
        assert turn is not None
        if context.json:
            context.document(_record(session, turn))
    return 0


@turn.command()
@click.option("-m", "--reply", metavar="TEXT", help="What the agent answered.")
@click.option("--scan", is_flag=True, help="Scan even though files were named.")
@quiet_option
@common_options
def end(context: Context, *, reply: str | None, scan: bool) -> int:
    """End the open turn and record what it changed.

    It records the named files, or what a scan finds.
    """
    session = context.recording()
    with session.store:
        record: dict[str, Any] = {"replies": [reply]} if reply else {}
        oid = session.end(scan=True if scan else None, **record)
        if context.json or not context.quiet:
            node = History(session).node(oid)
            if context.json:
                from snapstore.surface.records.nodes import NodeRecord

                context.document(NodeRecord.of(node))
            else:
                summary(context.out, node)
    return 0


@turn.command()
@quiet_option
@common_options
def cancel(context: Context) -> int:
    """Drop the open turn.

    What it changed stays on disk, and is recorded as edits.
    """
    session = context.recording()
    with session.store as store:
        turn = store.open_turn(session.name)
        session.cancel()
        assert turn is not None
        if context.json:
            context.document(_record(session, turn, "cancelled"))
        elif not context.quiet:
            context.out.line("Cancelled. What it changed stays on disk, and will be recorded as edits.")
    return 0


def _record(session: Session, turn: OpenTurn, status: Literal["open", "cancelled"] = "open") -> OpenTurnRecord:
    from snapstore.surface.records.status import OpenTurnRecord

    return OpenTurnRecord.in_full(turn, _number(session, turn), status)


def _number(session: Session, turn: OpenTurn) -> int:
    """Return the number that the open turn will have.

    The number is one more than the last turn's on the same branch. At most a few edits lie between the two.
    """
    shadow = session.store.shadow
    commit = shadow.commit(bytes.fromhex(turn.before))
    while (number := commit.number("Turn")) is None and commit.parents:
        commit = shadow.commit(commit.parents[0])
    return (number or 0) + 1
