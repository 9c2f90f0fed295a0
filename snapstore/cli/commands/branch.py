"""`snapstore branch rename|delete|archive|unarchive|promote`: change branches.

These commands change only names. No node and no file changes.
"""

from __future__ import annotations

import sys

import click

from snapstore.api import Session
from snapstore.base.text import counted, turns_text
from snapstore.cli.commands.branches import kept, rows
from snapstore.cli.context import Context
from snapstore.cli.options import CommandGroup, common_options, level_options
from snapstore.cli.output import BOLD, LISTED, Output
from snapstore.cli.param_types import AGE, BRANCH
from snapstore.cli.questions.confirm import agreed
from snapstore.cli.reports.change import tell
from snapstore.errors import Usage
from snapstore.timeline.history.branch import Branch
from snapstore.timeline.moves.branches import Branches


@click.group(cls=CommandGroup)
@level_options
def branch() -> None:
    """Rename, delete, archive or promote a branch."""


@branch.command()
@click.argument("old", metavar="OLD", type=BRANCH)
@click.argument("new", metavar="NEW")
@common_options
def rename(context: Context, *, old: str, new: str) -> int:
    """Rename a branch."""
    session = context.reading()
    with session.store:
        operation = Branches(session).rename(old, new)
        return tell(context, session, operation, f"Branch {old} is now called {new}.")


@branch.command()
@click.argument("names", metavar="[NAME…]", nargs=-1, type=BRANCH)
@click.option("--older", metavar="AGE", type=AGE, help="Delete branches last used longer ago than this.")
@click.option("--merged-into", metavar="NAME", type=BRANCH, help="Delete branches that end on this branch's line.")
@click.option("--all", is_flag=True, help="With a filter: also delete archived branches.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--preview", is_flag=True, help="Show what would be deleted, and change nothing.")
@common_options
def delete(
    context: Context,
    *,
    names: tuple[str, ...],
    older: int | None,
    merged_into: str | None,
    all: bool,
    yes: bool,
    preview: bool,
) -> int:
    """Delete branches, by name or by a filter.

    A filter never selects the current branch or a branch with a checkpoint. The turns stay in the store, and
    `snapstore ops undo` brings the branches back.
    """
    filtered = older is not None or merged_into is not None
    if bool(names) == filtered:
        raise Usage("name branches, or select them with --older or --merged-into", "Use one of the two, not both.")
    if all and not filtered:
        raise Usage("--all works only with --older or --merged-into", "Named branches are found in the archive too.")
    session = context.reading()
    with session.store:
        found = Branches(session)
        if filtered:
            going, staying = found.matching(older_seconds=older, merged_into=merged_into, archived=all)
        else:
            going, staying = found.named(names), []
        return _delete(context, session, going, staying, yes=yes, preview=preview)


def _delete(
    context: Context, session: Session, going: list[Branch], staying: list[Branch], *, yes: bool, preview: bool
) -> int:
    now = session.store.clock()
    if context.json and preview:
        from snapstore.surface.records.branches import DeletePreviewRecord

        context.document(DeletePreviewRecord.of(session, going, staying, now))
        return 0
    if not context.json:
        kept(context.out, staying)
    if preview:
        _name(context.out, going, "Would delete", now)
        context.out.line("Nothing was changed.")
        return 0
    if not going:
        return tell(context, session, None, "No branch to delete.")
    if not yes and not context.json and not _agreed(context, going, now):
        context.err.line("Nothing was changed.")
        return 1
    operation = Branches(session).delete_all(
        [branch.name for branch in going], tips={branch.name: branch.tip for branch in going}
    )
    names = ", ".join(branch.name for branch in going[:LISTED]) + (", …" if len(going) > LISTED else "")
    what = f"Deleted branch {names}." if len(going) == 1 else f"Deleted {len(going)} branches: {names}."
    pinned = [name for branch in going for name in branch.pinned]
    notes = [f"Still there: checkpoint {', '.join(pinned)}, and the turns up to it."] if pinned else []
    return tell(context, session, operation, what, *notes)


def _agreed(context: Context, going: list[Branch], now: float) -> bool:
    """Ask before deleting, and list the branches by name (S1-50).

    Without a terminal the answer is yes and no question is asked.
    """
    if not (context.err.terminal and sys.stdin.isatty()):
        return True
    _name(context.err, going, "Delete", now)
    return agreed(context.err, "Continue? [y/N] ")


def _name(out: Output, going: list[Branch], verb: str, now: float) -> None:
    number = counted(len(going), "branch", "branches") if going else "no branch"
    turns = sum(branch.own for branch in going)
    own = f", with {turns_text(turns)} on no other branch" if turns else ""
    out.line(f"{verb} {number}{own}{':' if going else '.'}", BOLD)
    for row in rows(out, going, now):
        out.line(row)


@branch.command()
@click.argument("name", metavar="NAME", type=BRANCH)
@common_options
def archive(context: Context, *, name: str) -> int:
    """Remove a branch from the list.

    Nothing of it is lost.
    """
    session = context.reading()
    with session.store:
        operation = Branches(session).archive(name)
        return tell(context, session, operation, f"Branch {name} is archived; nothing of it is lost.")


@branch.command()
@click.argument("name", metavar="NAME", type=BRANCH)
@click.option("--force", is_flag=True, help="Even if the limit of listed branches is exceeded.")
@common_options
def unarchive(context: Context, *, name: str, force: bool) -> int:
    """List an archived branch again."""
    session = context.reading()
    with session.store:
        operation = Branches(session).unarchive(name, force=force)
        return tell(context, session, operation, f"Branch {name} is listed again.")


@branch.command()
@click.argument("name", metavar="NAME", type=BRANCH)
@common_options
def promote(context: Context, *, name: str) -> int:
    """Make a branch the main line.

    The branch takes the name `main`, and the previous main branch is archived as `archive-main`. Only names change:
    nothing is merged, and you stay where you are.
    """
    return _promote(context, name)


@branch.command()
@click.argument("name", metavar="NAME", type=BRANCH)
@common_options
def merge(context: Context, *, name: str) -> int:
    """The same as promote."""
    return _promote(context, name)


def _promote(context: Context, name: str) -> int:
    session = context.reading()
    with session.store:
        found = Branches(session)
        operation = found.promote(name)
        if operation is None:
            return tell(context, session, None, f"Branch {name} is the main line already.")
        previous = found.previous_main(operation)
        notes = [f"The previous main is {previous}."] if previous else []
        return tell(context, session, operation, f"Branch {name} is now main.", *notes)
