"""`snapstore prune`: remove branches that were archived or deleted long ago."""

from __future__ import annotations

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options, quiet_option
from snapstore.cli.output import DIM, duration_text, safe, size_text
from snapstore.cli.param_types import BRANCH, DURATION
from snapstore.store.settings import spell_duration
from snapstore.timeline.maintenance import auto
from snapstore.timeline.maintenance.auto import Pruned
from snapstore.timeline.maintenance.prune import DAY, Prunable, refuse_unknown


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what would be pruned, and how much space that frees.")
@click.option(
    "--older",
    metavar="TIME",
    type=DURATION,
    help="Prune branches unlisted for longer than this. Default: the setting prune_after_days (90).",
)
@click.option(
    "--safety",
    is_flag=True,
    help="Instead prune what was saved before forced and exact moves. Never happens automatically.",
)
@click.option(
    "--keep",
    metavar="NAME",
    type=BRANCH,
    multiple=True,
    help="Keep this branch, or SESSION/BRANCH. May be given several times.",
)
@quiet_option
@common_options
def prune(context: Context, *, dry_run: bool, older: int | None, keep: tuple[str, ...], safety: bool) -> int:
    """Remove branches that were archived or deleted long ago.

    A branch stays if a session is on it, if it has a checkpoint, or if a remote lacks it. Runs automatically after
    prune_after_days.
    """
    with context.store() as store:
        refuse_unknown(store, keep)
        done = auto.prune(store, older=older, keep=keep, safety=safety, dry_run=dry_run)
        limit = store.header.prune_after_days * DAY if older is None else older
        grace, now = store.header.gc_grace, store.clock()
    undo = f"snapstore ops undo {done.operations[-1].number}" if done.operations else None
    if context.json:
        from snapstore.surface.records.keeping import PruneRecord

        context.document(PruneRecord.of(done, dry_run=dry_run, older_seconds=limit, undo=undo, now=now))
    elif not context.quiet:
        words = ("saved state", "saved states") if safety else ("branch", "branches")
        _tell(context, done, limit, grace, now, words, dry_run=dry_run, never=older is None and not limit)
    return 0


def _tell(
    context: Context,
    done: Pruned,
    limit: int,
    grace: int,
    now: float,
    words: tuple[str, str],
    *,
    dry_run: bool,
    never: bool,
) -> None:
    out = context.out
    for one in done.staying:
        out.line(f"  kept  {_row(one, now)}  {one.kept}", DIM)
    if not done.going:
        when = f" more than {spell_duration(limit)} ago" if limit else ""
        what = "branch was archived or deleted" if words[0] == "branch" else "state was saved before a move"
        why = "prune_after_days is 0" if never else f"no {'other ' if done.staying else ''}{what}{when}"
        out.line(f"Nothing to prune: {why}.")
        return
    for one in done.going:
        out.line(f"  {_row(one, now)}  {size_text(one.size)}")
    number = f"1 {words[0]}" if len(done.going) == 1 else f"{len(done.going):,} {words[1]}"
    if dry_run:
        out.line(f"Would prune {number}, and free {size_text(done.size)}. Nothing was changed.")
        return
    back = ", ".join(f"`snapstore ops undo {one.number} --session {safe(one.session)}`" for one in done.operations)
    out.line(f"Pruned {number}: {size_text(done.size)} are free after the `gc` in {spell_duration(grace)}.")
    out.line(f"Until then {back} brings {'it' if len(done.going) == 1 else 'them'} back.", DIM)


def _row(one: Prunable, now: float) -> str:

    return f"{safe(one.session)}/{safe(one.name)}  {one.state}, {duration_text(now - one.used)} ago"
