"""`snapstore check`: verify that everything recorded is present and intact."""

from __future__ import annotations

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.output import DIM, GREEN, YELLOW, safe
from snapstore.errors import Corrupt
from snapstore.timeline.maintenance.check import Check

HINT = "What does not need the damaged parts still works."


@click.command()
@click.option("--read-data", is_flag=True, help="Also read every byte and verify its checksum.")
@common_options
def check(context: Context, *, read_data: bool) -> int:
    """Check that everything recorded is intact.

    Checks refs, commits, folders, files and state. Exits with status 14 if something is not intact.
    """
    with context.store() as store, context.progress("Checking") as progress:
        report = Check(store, read_data=read_data, progress=progress).run()
    problems = report.problems
    verdict = "1 problem" if len(problems) == 1 else f"{len(problems):,} problems"
    if context.json:
        from snapstore.surface.records.status import CheckRecord

        refusal = Corrupt(f"the store has {verdict}", HINT) if problems else None
        context.document(CheckRecord.of(report, refusal))
        return Corrupt.status if problems else 0
    out = context.out
    looked = f"{report.refs:,} refs, {report.commits:,} commits, {report.trees:,} folders, {report.blobs:,} files"
    out.line(f"Checked {looked}{', every byte read' if read_data else ''}.")
    if not problems:
        out.line("The store is intact.", GREEN)
        if not read_data:
            out.line("`snapstore check --read-data` also reads every byte.", DIM)
        return 0
    out.line(f"{verdict}:", YELLOW)
    for problem in problems:
        out.line(f"  {safe(problem.where)}: {safe(problem.message)}")
        hint = safe(problem.refusal.hint if problem.refusal is not None else "")
        if hint and "snapstore check" not in hint:  # the user is running that command already
            out.line(f"    {hint}", DIM)
    out.line(HINT, DIM)
    return Corrupt.status
