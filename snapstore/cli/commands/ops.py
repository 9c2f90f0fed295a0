"""`snapstore ops`: list every move and branch change, and undo any of them."""

from __future__ import annotations

from itertools import islice
from typing import Any

import click

from snapstore.cli.context import Context
from snapstore.cli.move_command import carry_out, move_sentence
from snapstore.cli.move_description import MoveDescription
from snapstore.cli.options import CommandGroup, MoveCommand, common_options, level_options, move_options, rows_option
from snapstore.cli.output import BOLD, DIM, Output, ago, safe, shorten
from snapstore.cli.param_types import OPERATION
from snapstore.timeline.history.operations import Operation, Operations


@click.group(cls=CommandGroup, default="list")
@level_options
def ops() -> None:
    """List every move and branch change, or undo one of them."""


@ops.command("list")
@rows_option
@common_options
def listed(context: Context, *, number: int | None) -> int:
    """List moves and branch changes, newest first.

    The same as `ops` alone. With --session, only those of that session.
    """
    out = context.out
    limit = number or None
    if number is None and out.terminal and not context.json:
        limit = max(10, out.size()[1] - 4)
    with context.store() as store:
        mine = context.session
        found = (one for one in Operations(store).newest_first() if mine is None or one.session == mine)
        operations = list(islice(found, limit))
        now = store.clock()
    undone = Operations.undone_by(operations)
    if context.json:
        from snapstore.surface.records.moves import OperationsRecord

        context.document(OperationsRecord.of(operations, undone))
        return 0
    several = len({one.session for one in operations}) > 1
    for one in operations:
        out.line(_row(out, one, now, undone.get(one.number), several=several))
    if not operations:
        out.line("No operations yet: nothing was undone, redone or moved.", DIM)
    elif limit and operations[-1].number > 1 and len(operations) == limit:
        out.line("… more with `snapstore ops -n 0`", DIM)
    return 0


def _row(out: Output, one: Operation, now: float, undone_by: int | None, *, several: bool) -> str:
    """Return a row like `   7  2m ago      undo of 2 turns`."""
    when = f"{ago(one.at, now):<10}"
    whose = f"  {safe(one.session)}" if several else ""
    note = f"  [undone by {undone_by}]" if undone_by is not None else ""
    what = safe(one.what)
    if out.terminal:
        what = shorten(what, max(out.size()[0] - len(when) - len(whose) - len(note) - 8, 20))
    if undone_by is not None:
        return out.paint(f"{one.number:>4}  {when}  {what}{whose}{note}", DIM)
    return f"{out.paint(f'{one.number:>4}', BOLD)}  {out.paint(when, DIM)}  {what}{out.paint(whose, DIM)}"


@ops.command(cls=MoveCommand)
@click.argument("operation", metavar="[ID]", required=False, type=OPERATION)
@move_options
@common_options
def undo(context: Context, *, operation: int | None, **options: Any) -> int:
    """Restore files, branches and position to before an operation.

    Without a number: the last operation that has not been undone. This is an operation too, and can itself be
    undone.
    """
    move = MoveDescription(
        ["ops", "undo", *([str(operation)] if operation else [])],
        lambda session, how: session.plan_ops_undo(operation, **how),
        ask=lambda plan: f"Undo operation {', '.join(map(str, plan.undoes))}? {move_sentence(plan)}",
        nothing="Nothing to undo: every operation has been undone already.",
    )
    return carry_out(context, move, options)
