"""`snapstore ops`: every move and branch change, and back to before any of them."""

from __future__ import annotations

from itertools import islice

from snapstore.cli.moves import OPTIONS, Move, carry_out, travelling
from snapstore.cli.options import ROWS, Command, Family, Operand
from snapstore.cli.output import BOLD, DIM, Output, ago, safe, shorten
from snapstore.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context
    from snapstore.timeline.ops import Operation


def listed(context: Context, *, number: int | None) -> int:
    from snapstore.timeline.ops import Operations

    out = context.out
    limit = number or None
    if number is None and out.terminal and not context.json:
        limit = max(10, out.size()[1] - 4)
    with context.store() as store:
        mine = context.session
        found = (one for one in Operations(store).newest_first() if mine is None or one.session == mine)
        operations = list(islice(found, limit))
        now = store.clock()
    undone = Operations.taken_back(operations)
    if context.json:
        from snapstore.records.base import dump
        from snapstore.records.moves import OperationsRecord

        rows = [{**one.as_json(), "undone_by": undone.get(one.number)} for one in operations]
        context.document(dump(OperationsRecord, {"operations": rows}))
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
    """`   7  2m ago      undo of 2 turns`"""
    when = f"{ago(one.at, now):<10}"
    whose = f"  {safe(one.session)}" if several else ""
    note = f"  [taken back by {undone_by}]" if undone_by is not None else ""
    what = safe(one.what)
    if out.terminal:
        what = shorten(what, max(out.size()[0] - len(when) - len(whose) - len(note) - 8, 20))
    if undone_by is not None:
        return out.paint(f"{one.number:>4}  {when}  {what}{whose}{note}", DIM)
    return f"{out.paint(f'{one.number:>4}', BOLD)}  {out.paint(when, DIM)}  {what}{out.paint(whose, DIM)}"


def undo(context: Context, *, operation: str | None, **options: Any) -> int:
    number = None if operation is None else _number(operation)
    move = Move(
        ["ops", "undo", *([operation] if operation else [])],
        lambda session, how: session.plan_ops_undo(number, **how),
        ask=lambda plan: f"Undo operation {', '.join(map(str, plan.undoes))}? {travelling(plan)}",
        nothing="Nothing to undo: no operation is left that was not taken back.",
    )
    return carry_out(context, move, options)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or int(text) == 0:
        raise Usage(f"{text!r} is not the number of an operation", "`snapstore ops` lists them.")
    return int(text)


COMMAND = Family(
    "ops",
    "List every move and branch change; take any of them back.",
    (
        Command(
            "list",
            listed,
            "List moves and branch changes, newest first. The same as `ops` alone. With --session only its own.",
            options=(ROWS,),
        ),
        Command(
            "undo",
            undo,
            "Put files, branches and place back to before an operation. The last one not taken back yet, unless its "
            "number is given. That is an operation of its own, and can be taken back too.",
            options=OPTIONS,
            operands=(Operand("operation", "[ID]"),),
        ),
    ),
    default="list",
)
