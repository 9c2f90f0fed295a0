"""`snapstore sessions`: list the sessions and their agent sessions."""

from __future__ import annotations

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.output import BOLD, CYAN, DIM, Output, ago, first_line, safe, shorten
from snapstore.timeline.history.agent_sessions import SessionLine, describe, fork_tree, read_sessions


@click.command()
@common_options
def sessions(context: Context) -> int:
    """List the sessions recorded here.

    Each with its agent sessions: which was forked from which, and after which turn.
    """
    with context.store() as store:
        active = store.active_session()
        found = read_sessions(store)
        if context.json:
            from snapstore.surface.records.agents import SessionsRecord

            context.document(SessionsRecord.of(found, active))
            return 0
        for line in found:
            _session(context.out, line, line.name == active, store.clock())
    return 0


def _session(out: Output, line: SessionLine, active: bool, now: float) -> None:
    """Print a session, and below it its agent sessions as a tree of forks."""
    turns = "1 turn" if line.turns == 1 else f"{line.turns:,} turns"
    mark = out.paint("@", CYAN) if active else " "
    about = "cannot be read: `snapstore check`"
    if line.last_active:
        about = f"{turns}, {ago(line.last_active, now)}{whose(line.owner)}"
    head = f"{mark} {out.paint(safe(line.name), BOLD)}  {out.paint(about, DIM)}  "
    plain = 2 + len(line.name) + 2 + len(about) + 2
    prompt = first_line(line.prompt)
    out.line((head + (shorten(prompt, max(out.size()[0] - plain, 12)) if out.terminal else prompt)).rstrip())
    _conversations(out, line)


def whose(owner: dict[str, str] | None) -> str:
    """Return the owning machine and person as ` · laptop, Ada`, "" if owned here."""
    if owner is None:
        return ""
    return " · " + ", ".join(safe(text) for text in (owner["name"], owner.get("person", "")) if text)


def _conversations(out: Output, line: SessionLine) -> None:
    for lead, one in fork_tree(line):
        name, text = safe(one.known.id), describe(one)
        if out.terminal:
            text = shorten(text, max(out.size()[0] - len(lead) - len(name) - 6, 12))
        painted = out.paint(name, CYAN) if one.current else name
        out.line(f"    {lead}{painted}  {out.paint(text, DIM)}".rstrip())
