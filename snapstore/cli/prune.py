"""`snapstore prune`: lets go of branches that nobody listed for long."""

from __future__ import annotations

from snapstore.cli.options import QUIET, Command, Option
from snapstore.cli.output import DIM, duration_text, safe, size_text
from snapstore.records.settings import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.cli.context import Context
    from snapstore.timeline.keeping import Pruned
    from snapstore.timeline.prune import Prunable


def prune(context: Context, *, dry_run: bool, older: int | None, keep: tuple[str, ...]) -> int:
    from snapstore.timeline import keeping
    from snapstore.timeline.prune import DAY, must_be_known

    with context.store() as store:
        must_be_known(store, keep)
        done = keeping.prune(store, older=older, keep=keep, dry_run=dry_run)
        limit = store.header.prune_after_days * DAY if older is None else older
        grace, now = store.header.gc_grace, store.clock()
    undo = f"snapstore ops undo {done.operations[-1].number}" if done.operations else None
    if context.json:
        from snapstore.records.base import dump
        from snapstore.records.keeping import PruneRecord

        document = {
            "dry_run": dry_run,
            "older_seconds": limit,
            "pruned": [one.as_json(now) for one in done.going],
            "kept": [one.as_json(now) for one in done.staying],
            "size_bytes": done.size,
            "operations": [one.number for one in done.operations],
            "undo": undo,
        }
        context.document(dump(PruneRecord, document))
    elif not context.quiet:
        _tell(context, done, limit, grace, now, dry_run=dry_run)
    return 0


def _tell(context: Context, done: Pruned, limit: int, grace: int, now: float, *, dry_run: bool) -> None:
    from snapstore.records.settings import spell_duration

    out = context.out
    for one in done.staying:
        out.line(f"  kept  {_row(one, now)}  {one.kept}", DIM)
    if not done.going:
        never = "prune_after_days is 0"
        why = f"no branch was archived or deleted more than {spell_duration(limit)} ago" if limit else never
        out.line(f"Nothing to prune: {why}.")
        return
    for one in done.going:
        out.line(f"  {_row(one, now)}  {size_text(one.size)}")
    number = "1 branch" if len(done.going) == 1 else f"{len(done.going):,} branches"
    if dry_run:
        out.line(f"Would prune {number}, and free {size_text(done.size)}. Nothing was changed.")
        return
    back = ", ".join(f"`snapstore ops undo {one.number} --session {safe(one.session)}`" for one in done.operations)
    out.line(f"Pruned {number}: {size_text(done.size)} are free after the `gc` in {spell_duration(grace)}.")
    out.line(f"Until then {back} brings {'it' if len(done.going) == 1 else 'them'} back.", DIM)


def _row(one: Prunable, now: float) -> str:

    return f"{safe(one.session)}/{safe(one.name)}  {one.state}, {duration_text(now - one.used)} ago"


COMMAND = Command(
    "prune",
    prune,
    "Let go of branches that were archived or deleted long ago. Never where a session stands, nor one with a "
    "checkpoint, nor one that a remote lacks. Runs by itself after prune_after_days.",
    options=(
        Option("dry_run", "--dry-run", "Only say what would go, and what that frees."),
        Option(
            "older",
            "--older",
            "Out of the list for longer than this: else the setting prune_after_days, 90 days unless set.",
            metavar="TIME",
            convert=duration,
        ),
        Option("keep", "--keep", "Keep this branch, or SESSION/BRANCH. May be said again.", metavar="NAME", many=True),
        QUIET,
    ),
)
