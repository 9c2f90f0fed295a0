"""`snapstore stats`: show how the store is used, in numbers."""

from __future__ import annotations

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.output import BOLD, DIM, YELLOW, safe, size_text
from snapstore.surface.stats import Stats, read_stats


@click.command()
@common_options
def stats(context: Context) -> int:
    """Show how the store is used.

    How many sessions went back, branches per session, moves, and how many of them were undone.
    """
    with context.store() as store:
        found = read_stats(store)
    if context.json:
        from snapstore.surface.records.keeping import UseRecord

        context.document(UseRecord.of(found))
    else:
        _print(context, found)
    return 0


def _print(context: Context, found: Stats) -> None:
    out = context.out

    def row(number: str, text: str, more: str = "") -> None:
        out.line(f"{out.paint(f'{number:>10}', BOLD)}  {text}{out.paint(more, DIM)}")

    sessions, moves, taken_back = found.sessions, found.moves, found.moves_taken_back
    row(f"{sessions:,}", "session" if sessions == 1 else "sessions")
    row(f"{found.rewound_percent:g} %", "of them rewound", f"  {found.sessions_rewound:,} of {sessions:,}")
    row(f"{found.branches_per_session:g}", "branches per session", f"  {found.branches:,} in all")
    row(f"{moves:,}", "move" if moves == 1 else "moves")
    row(f"{found.taken_back_percent:g} %", "of them undone", f"  {taken_back:,} of {moves:,}")
    limit = f" of {size_text(found.max_store_size)}" if found.max_store_size else ""
    row(size_text(found.size_bytes), f"in the store{limit}", ": `snapstore du` shows what holds it")
    for text in found.health.hook_errors:
        out.line(f"{out.paint('hook', YELLOW)}  {safe(text)}")
    for problem in found.health.problems:
        out.line(f"{safe(problem.where)}: {safe(problem.message)}", YELLOW)
