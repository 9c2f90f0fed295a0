"""`snapstore log`: list the turns of the session's current branch."""

from __future__ import annotations

import json
from tempfile import TemporaryFile

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options, rows_option
from snapstore.cli.output import BOLD, CYAN, DIM, YELLOW, Output, ago, file_rows, files_text, first_line, safe, shorten
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import Node

_AT_ONCE = 50  # rows


@click.command()
@rows_option
@click.option("--stat", is_flag=True, help="Also list the files, with lines added and removed.")
@common_options
def log(context: Context, *, number: int | None, stat: bool) -> int:
    """List what was recorded, newest first.

    Edits made between turns have rows of their own. `@` is where you are; rows above it are undone.
    """
    session = context.reading()
    with session.store as store:
        history = History(session)
        out = context.out
        limit = number or None
        if number is None and out.terminal and not context.json:
            limit = max(10, out.size()[1] - 4)  # newest first: more rows would scroll the newest out of sight
        if context.json:
            _document(context, history, limit, counts=stat)
            return 0
        at = history.cursor.hex() if history.cursor else ""
        now = store.clock()
        width = out.size()[0] if out.terminal else 0
        shown = 0
        for node in history.newest_first(limit, counts=stat):
            out.line(_row(out, node, now, width, here=node.commit == at))
            if stat:
                for row in file_rows(out, node.files, " " * 8):
                    out.line(row)
            shown += 1
            if shown <= _AT_ONCE:  # a reader of the first lines need not wait until the buffer is full
                out.flush()
        if node.parent is not None:
            out.line("… more with `snapstore log -n 0`", DIM)
        elif shown == 1:
            out.line("No turns yet. Record one: `snapstore run -- CMD…`", DIM)
    return 0


def _document(context: Context, history: History, limit: int | None, *, counts: bool) -> None:
    """Print the JSON document of a LogRecord, node by node.

    The nodes go through a temporary file: a long history does not fit into memory, the document lists the oldest node
    first, and an unreadable node must raise before anything is printed.
    """
    from snapstore.surface.records.base import document
    from snapstore.surface.records.nodes import LogRecord, NodeRecord

    indent = 2 if context.out.terminal else None
    ends = [0]
    with TemporaryFile() as file:
        for node in history.newest_first(limit, counts=counts):
            text = json.dumps(document(NodeRecord.of(node)), indent=indent)
            ends.append(ends[-1] + file.write(text.replace("\n", "\n    ").encode()))
        whole = document(LogRecord.of(history, []))
        head, tail = json.dumps(whole, indent=indent).rsplit("[]", 1)
        between = "\n    " if indent else ""
        context.out.raw(f"{head}[{between}".encode())
        for start, end in zip(ends[-2::-1], ends[:0:-1], strict=True):
            file.seek(start)
            context.out.raw(file.read(end - start))
            if start:
                context.out.raw(f",{between or ' '}".encode())
        closing = "\n  " if indent else ""
        context.out.raw(f"{closing}]{tail}\n".encode())


def _row(out: Output, node: Node, now: float, width: int, *, here: bool) -> str:
    """Return a row like `@  3  7492f9db  2m ago    2 files  Add a login function`."""
    changed = files_text(len(node.files)) if node.files else ""
    when = ago(node.ended_at or node.started_at, now)
    marks = []
    if node.undone:
        marks.append("undone")
    if node.status != "done":
        marks.append(node.status)
    if node.left_out:
        marks.append(f"{len(node.left_out):,} left out")
    if node.record.get("exit_status"):
        marks.append(f"exit {safe(str(node.record['exit_status']))}")
    note = f" [{', '.join(marks)}]" if marks else ""
    quiet = node.turn is None
    columns = f"{node.commit[:8]}  {when:<10}  {changed:>8}  "
    text = node.label.lower() if quiet else first_line(node.prompt) or "(no prompt)"
    if width:
        text = shorten(text, max(width - len(columns) - len(note) - 8, 20))
    mark = out.paint("@", CYAN, BOLD) if here else " "
    if quiet or node.undone:
        number = "·" if quiet else str(node.turn)
        return f"{mark} {out.paint(f'{number:>4}  {columns}{text}', DIM)}{out.paint(note, YELLOW)}"
    turn = out.paint(f"{node.turn:>4}", BOLD)
    return f"{mark} {turn}  {out.paint(columns, DIM)}{text}{out.paint(note, YELLOW)}"
