"""`snapstore gc`: make the store as small as possible."""

from __future__ import annotations

import os

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options, quiet_option
from snapstore.cli.output import size_text
from snapstore.cli.param_types import DURATION
from snapstore.errors import Usage
from snapstore.store.settings import spell_duration
from snapstore.timeline.maintenance.auto import run
from snapstore.timeline.maintenance.gc import Collected, collect


@click.command()
@click.option(
    "--grace",
    metavar="TIME",
    type=DURATION,
    help="Drop only objects unused for at least this long. Default: the setting gc_grace (two weeks).",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option(
    "--auto",
    is_flag=True,
    help="Run as snapstore runs it in the background: also prune what is due, print nothing, write errors to the log.",
)
@quiet_option
@common_options
def gc(context: Context, *, grace: int | None, dry_run: bool, auto: bool) -> int:
    """Make the store smaller.

    Packs what is needed, drops unreferenced objects, and removes what killed processes left behind. Runs
    automatically when that saves enough space. Turns can continue meanwhile.
    """
    if auto and dry_run:
        raise Usage("--auto and --dry-run exclude each other", "Choose one.")
    if auto:
        os.nice(10)
        with context.store() as store:
            run(store)
        return 0
    with context.store() as store, context.progress("Packing") as progress:
        done = collect(store, grace=grace, dry_run=dry_run, progress=progress)
        window = store.header.gc_grace if grace is None else grace
    if context.json:
        from snapstore.surface.records.keeping import GcRecord

        context.document(GcRecord.of(done))
    elif not context.quiet:
        _tell(context, done, window)
    return 0


def _tell(context: Context, done: Collected, grace: int) -> None:
    out, packed = context.out, done.packed
    before, after = size_text(packed.bytes_before), size_text(packed.bytes_after)
    packs = "1 pack" if packed.packs_after == 1 else f"{packed.packs_after:,} packs"
    out.line(
        f"{'Would pack' if done.dry_run else 'Packed'} {packed.objects:,} objects into {packs}: {before} → {after}."
    )
    if packed.dropped:
        out.line(f"{'Would drop' if done.dry_run else 'Dropped'} {packed.dropped:,} unreferenced objects.")
    if packed.waiting:
        until = f" until they are {spell_duration(grace)} old" if grace else ": they were written just now"
        out.line(f"{packed.waiting:,} more unreferenced objects stay{until}.")
    if done.expired:
        number = "1 pruned branch or saved state is" if done.expired == 1 else f"{done.expired:,} that were pruned are"
        out.line(f"{number} gone for good.")
    if done.leftovers:
        out.line(f"Removed {done.leftovers:,} files left behind by killed processes.")
    if done.dry_run:
        out.line("Nothing was changed.")
