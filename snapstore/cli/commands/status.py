"""`snapstore status`: show the current turn and what changed since."""

from __future__ import annotations

import os

import click

from snapstore.agents.capabilities import NONE, capability
from snapstore.base.text import timestamp
from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.output import (
    BOLD,
    DIM,
    LISTED,
    YELLOW,
    Output,
    ago,
    file_rows,
    files_text,
    first_line,
    path_text,
    safe,
    shorten,
    size_text,
)
from snapstore.daemon.control import running_pid
from snapstore.errors import NoStore
from snapstore.store import log
from snapstore.store.locations import home_folder
from snapstore.surface.status import ConversationStatus, Status, read_status


@click.command()
@common_options
def status(context: Context) -> int:
    """Show where you are and what has changed since.

    Also shows open turns, files left out, and where the store is.
    """
    try:
        session = context.reading()
    except NoStore as error:
        raise _with_reason(error) from None
    with session.store as store:
        found = read_status(session, store.recovered)
        if context.json:
            from snapstore.surface.records.status import StatusRecord

            context.document(StatusRecord.of(found).with_warm_process(running_pid()))
        else:
            _print(context, found, store.clock())
    return 0


def _with_reason(error: NoStore) -> NoStore:
    """Add the reason why an agent's hook could not create the store, if it tried.

    The reason is in the log of the home folder.
    """
    noted = [line for line in log.last(f"{home_folder()}/log") if f" in {os.getcwd()}: " in line]
    if noted:
        error.hint = f"A hook could not create one: {noted[-1]}\n`snapstore init` says what to do."
        error.details["hook_errors"] = noted
    return error


def _print(context: Context, found: Status, now: float) -> None:
    out = context.out

    def row(name: str, text: str) -> None:
        out.line(f"{out.paint(f'{name:<9}', DIM)}{text}")

    row("root", out.paint(path_text(found.root), BOLD))
    others = [name for name in found.sessions if name != found.session]
    also = out.paint(f" (also: {', '.join(safe(name) for name in others)})", DIM) if others else ""
    row("session", f"{safe(found.session)}, branch {safe(found.branch)}{also}")
    node = found.cursor
    when = ago(node.ended_at or node.started_at, now)
    at = f"turn {found.turn}" if found.turn else safe(node.label.lower()) if node.turn is None else "turn 0"
    after = ", and edits after it" if found.turn and node.turn is None else ""
    prompt = first_line(node.prompt or found.prompt)
    if out.terminal:
        prompt = shorten(prompt, max(out.size()[0] - len(at + after) - len(when) - 24, 20))
    row("at", f"{at}{after}  {out.paint(f'{node.commit[:8]}  {when}', DIM)}  {prompt}".rstrip())
    if found.undone_turns:
        turns = "1 turn" if found.undone_turns == 1 else f"{found.undone_turns:,} turns"
        row("undone", f"{out.paint(turns, YELLOW)}{out.paint(': `snapstore redo`, or `redo --all`', DIM)}")
    if found.conversation is not None:
        row("agent", _conversation(out, found.conversation))
    if len(found.branches) > 1:
        row("branches", f"{len(found.branches):,}{out.paint(': `snapstore tree` draws them', DIM)}")
    for turn in found.open_turns:
        whose = "" if turn.session == found.session else f" of session {safe(turn.session)}"
        since = ago(timestamp(turn.started_at), now)
        text = f"{out.paint('a turn' + whose, YELLOW)} by {safe(turn.agent)}, {since}  {first_line(turn.prompt)}"
        row("open", text.rstrip())
    room, limit = size_text(found.size_bytes), found.max_store_size
    if limit:
        room = out.paint(f"{room} of {size_text(limit)}", *([YELLOW] if found.size_bytes * 100 >= limit * 80 else []))
    row("store", f"{room} in {path_text(found.store)}")
    pid = running_pid()
    if pid is not None:
        row("warm", f"process {pid}{out.paint(': `snapstore daemon`', DIM)}")
    if found.left_out:
        row("left out", out.paint(files_text(len(found.left_out)), YELLOW))
        for path, why in list(found.left_out.items())[:LISTED]:
            out.line(f"  {path_text(path)}  {out.paint(safe(why), DIM)}")
        out.rest(len(found.left_out))
    for text in found.hook_errors:
        row("hook", out.paint(safe(text), YELLOW))
    for text in found.not_known:
        row("not known", out.paint(safe(text), YELLOW))
    out.line()
    if found.edits:
        out.line(f"{files_text(len(found.edits))} changed since:")
        for line in file_rows(out, found.edits, "  ", LISTED):
            out.line(line)
        out.line("`snapstore diff` shows how. `snapstore discard` throws it away, after saving it.", DIM)
    else:
        out.line("Nothing changed since.")
        if found.tip.kind == "baseline":
            out.line("Record a turn: `snapstore run -- CMD…`", DIM)


def _conversation(out: Output, talk: ConversationStatus) -> str:
    """Describe a conversation's state and the next command for it.

    For example `claude 3f2a9c1d, holds undone turns: `snapstore fork``.
    """
    state, known = talk.state, talk.known
    text = f"{safe(state.agent)} {safe(state.id[:8])}"
    if talk.running:
        text += ", running"
    if known is not None and known.parent:
        text += out.paint(f", forked from {safe(known.parent[:8])} after turn {known.fork_turn or 0}", DIM)
    if state.awaiting is not None:
        return f"{text}, {out.paint('a fork is pending', YELLOW)}"
    if state.pending_fork or not state.materialized:
        what = "holds undone turns" if state.pending_fork else "completely undone"
        how = "`snapstore fork`" if state.pending_fork else "`snapstore fork` starts a new one"
        if capability(state.agent).forks == NONE:
            how = "rewind it in the agent, or start a new one"
        return f"{text}, {out.paint(what, YELLOW)}{out.paint(f': {how}', DIM)}"
    return text
