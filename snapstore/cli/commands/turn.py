"""`snapstore turn begin|touch|end|cancel`: a turn in pieces, for an agent's hooks.

Hooks run this at every step of an agent, so nothing is imported here that a turn does not need.
"""

from __future__ import annotations

from snapstore.cli.options import AGENT, QUIET, Command, Family, Operand, Option
from snapstore.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context
    from snapstore.timeline.documents import OpenTurn
    from snapstore.timeline.session import Session


def begin(context: Context, *, prompt: str | None, agent: str | None) -> int:
    session = context.recording(create=True)
    with session.store as store:
        session.begin(prompt or "", agent=agent or "agent")
        turn = store.open_turn(session.name)
        assert turn is not None
        if context.json:
            context.document(_document(session, turn))
        elif not context.quiet:
            before = store.shadow.commit(bytes.fromhex(turn.before))
            context.out.line(f"Turn {_number(session, turn)} of session {session.name} is open.")
            if before.trailers.get("Kind") == "edits" and before.seconds >= int(turn.started_at):
                context.out.line(f"What changed before it is recorded on its own: {before.subject}")
    return 0


def touch(context: Context, *, paths: tuple[str, ...], after: bool, shell: bool) -> int:
    if not paths and not shell:
        raise Usage("nothing to touch", "Name the files, or say --shell when a program may have changed any.")
    session = context.recording()
    with session.store as store:
        session.touch(paths, after=after, shell=shell)
        turn = store.open_turn(session.name)
        assert turn is not None
        if context.json:
            context.document(_document(session, turn))
    return 0


def end(context: Context, *, reply: str | None, scan: bool) -> int:
    session = context.recording()
    with session.store:
        record: dict[str, Any] = {"replies": [reply]} if reply else {}
        oid = session.end(scan=True if scan else None, **record)
        if context.json or not context.quiet:
            from snapstore.timeline.history import History

            node = History(session).node(oid)
            if context.json:
                context.document(node.as_json())
            else:
                from snapstore.cli.summary import summary

                summary(context.out, node)
    return 0


def cancel(context: Context) -> int:
    session = context.recording()
    with session.store as store:
        turn = store.open_turn(session.name)
        session.cancel()
        assert turn is not None
        if context.json:
            context.document({**_document(session, turn), "status": "cancelled"})
        elif not context.quiet:
            context.out.line("Cancelled. What it changed stays on disk, and will be recorded as edits.")
    return 0


def _document(session: Session, turn: OpenTurn) -> dict[str, Any]:
    from snapstore.timeline.documents import timestamp

    return {
        "session": turn.session,
        "turn": _number(session, turn),
        "prompt": turn.prompt,
        "agent": turn.agent,
        "started_at": timestamp(turn.started_at),
        "status": "open",
        "before": turn.before,
        "named": turn.named,
        "shell": turn.shell,
    }


def _number(session: Session, turn: OpenTurn) -> int:
    """The number the turn will have: one more than the last on its line, past a few edits at most."""
    shadow = session.store.shadow
    commit = shadow.commit(bytes.fromhex(turn.before))
    while (number := commit.number("Turn")) is None and commit.parents:
        commit = shadow.commit(commit.parents[0])
    return (number or 0) + 1


COMMAND = Family(
    "turn",
    "Bracket a turn by hand, or from an agent's hooks.",
    (
        Command(
            "begin",
            begin,
            "Begin a turn. What changed since the last one is recorded on its own first. Makes the store when there "
            "is none.",
            options=(Option("prompt", "-m --prompt", "What was asked for.", metavar="PROMPT"), AGENT, QUIET),
        ),
        Command(
            "touch",
            touch,
            "Name files the open turn is about to write. A turn whose files are all named need not scan.",
            options=(
                Option("after", "--after", "They are written already."),
                Option("shell", "--shell", "A program ran that may have changed anything: scan at the end."),
                QUIET,
            ),
            operands=(Operand("paths", "PATH…", many=True, complete="file"),),
        ),
        Command(
            "end",
            end,
            "End the open turn and record what it changed. That is the files named, or what a scan finds.",
            options=(
                Option("reply", "-m --reply", "What the agent answered.", metavar="TEXT"),
                Option("scan", "--scan", "Scan even though files were named."),
                QUIET,
            ),
        ),
        Command(
            "cancel",
            cancel,
            "Forget the open turn. What it changed stays on disk, and is recorded as edits.",
            options=(QUIET,),
        ),
    ),
)
