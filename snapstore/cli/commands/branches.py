"""`snapstore branches`: list the branches of a session."""

from __future__ import annotations

import click

from snapstore.base.text import cells, clip, timestamp
from snapstore.cli.commands.sessions import whose
from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.output import BOLD, CYAN, DIM, YELLOW, Output, ago, first_line, safe
from snapstore.timeline.history.branch import ARCHIVED, Branch
from snapstore.timeline.moves.branches import Branches
from snapstore.timeline.record.branch_limit import is_crowded, warning

WIDEST_NAME = 24
NARROW = 60
LEAST_TEXT = 12  # columns for a prompt, however narrow the terminal is


@click.command()
@click.option("--all", is_flag=True, help="Include archived branches.")
@common_options
def branches(context: Context, *, all: bool) -> int:
    """List the branches, the current one (`@`) first.

    A turn that follows an undo starts a branch automatically. The line that was left is listed as `Branch from turn
    5` until it is renamed.
    """
    session = context.reading()
    with session.store as store:
        everything = Branches(session).list()
        archived = sum(branch.state == ARCHIVED for branch in everything)
        listed, limit, now = len(everything) - archived, store.header.max_branches, store.clock()
        shown = everything if all else everything[:listed]
        if context.json:
            from snapstore.surface.records.branches import BranchesRecord

            context.document(BranchesRecord.of(session, shown, listed=listed, archived=archived, now=now))
            return 0
        out = context.out
        for row in rows(out, shown, now):
            out.line(row)
        if archived and not all:
            number = "1 more is" if archived == 1 else f"{archived:,} more are"
            out.line(f"{number} archived: `snapstore branches --all`", DIM)
        own = sum(branch.owner is None for branch in everything[:listed])
        if is_crowded(store, own):
            context.say(warning(session.name, own, limit))
    return 0


def rows(out: Output, found: list[Branch], now: float) -> list[str]:
    """Return one row per branch.

    For example `@ main-2  3 turns  2m ago  Branch from turn 1 · Add a login function`.
    """
    width = out.size()[0] if out.terminal else 0
    widest = max((cells(safe(branch.name)) for branch in found), default=0)
    name_width = min(widest, WIDEST_NAME if width < 80 else 2 * WIDEST_NAME) if width else widest
    texts = []
    for branch in found:
        name = clip(safe(branch.name), name_width) if width else safe(branch.name)
        name += " " * (name_width - cells(name))
        turns = "1 turn" if branch.turns == 1 else f"{branch.turns:,} turns"
        columns = f"{turns:>8}  {ago(timestamp(branch.seconds), now):<10}  "
        text = _text(branch, narrow=0 < width < NARROW)
        if width:
            text = clip(text, max(width - name_width - len(columns) - 4, LEAST_TEXT))
        if branch.state == "archived":
            texts.append(out.paint(f"  {name}  {columns}{text}".rstrip(), DIM))
            continue
        here = branch.state == "current"
        mark, shown = (out.paint("@", CYAN, BOLD), out.paint(name, BOLD)) if here else (" ", name)
        texts.append(f"{mark} {shown}  {out.paint(columns, DIM)}{text}".rstrip())
    return texts


def _text(branch: Branch, *, narrow: bool) -> str:
    """Describe a branch: its origin, its checkpoints, its owner, its last prompt."""
    parts = []
    if branch.state == "archived":
        parts.append("archived")
    if branch.label != branch.name:
        parts.append(safe(branch.label.removeprefix("Branch ") if narrow else branch.label))
    if branch.pinned:
        parts.append("◆ " + ", ".join(safe(name) for name in branch.pinned))
    if branch.owner is not None:
        parts.append(whose(branch.owner).removeprefix(" · "))
    parts.append(first_line(branch.prompt) or ("(no prompt)" if branch.turns else "(no turns yet)"))
    return " · ".join(parts)


def kept(out: Output, found: list[Branch]) -> None:
    """Print the branches that matched a filter but are kept, and why."""
    for branch in found:
        why = "you are on it" if branch.state == "current" else f"checkpoint {', '.join(branch.pinned)}"
        if branch.owner is not None:
            why = f"belongs to {branch.owner['name']}"
        out.line(f"Kept: {safe(branch.name)} ({safe(why)})", YELLOW)
