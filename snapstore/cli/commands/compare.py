"""`snapstore compare`: show two branches side by side."""

from __future__ import annotations

import click

from snapstore.base.text import cells, clip, timestamp
from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.output import (
    BOLD,
    DIM,
    GREEN,
    LISTED,
    RED,
    YELLOW,
    Output,
    ago,
    files_text,
    first_line,
    path_text,
    safe,
)
from snapstore.cli.param_types import TARGET
from snapstore.cli.reports.patch import print_patch
from snapstore.errors import Usage
from snapstore.timeline.history.compare import Comparison, Side
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import FileChange
from snapstore.timeline.history.patches import patched

NARROW = 72  # columns; below this width the sides are printed one below the other
TURNS = 8  # turns listed per side
_COLOURS = {"A": GREEN, "D": RED}


@click.command()
@click.argument("a", metavar="A", type=TARGET)
@click.argument("b", metavar="B", type=TARGET)
@click.option("--stat", is_flag=True, help="List every file, however many there are.")
@click.option("--patch", is_flag=True, help="Show only how the files differ, as a patch from A to B.")
@common_options
def compare(context: Context, *, a: str, b: str, stat: bool, patch: bool) -> int:
    """Show two branches side by side.

    Shows where they diverged, what each has done since, and the files each changed. A and B are branches, or turns
    on them.
    """
    if stat and patch:
        raise Usage("--stat and --patch exclude each other", "Choose one.")
    session = context.reading()
    with session.store as store:
        history = History(session)
        found = Comparison(history, a, b)
        if patch or context.json:
            lines = patched(history, found.differing())[1] if patch else []
            if not context.json:
                print_patch(context.out, lines)
                return 0
            from snapstore.surface.records.branches import CompareRecord

            context.document(CompareRecord.of(found, lines if patch else None))
            return 0
        out = context.out
        _parted(out, found, store.clock())
        out.line()
        _sides(out, found)
        out.line()
        _files(out, found, None if stat else LISTED)
    return 0


def _parted(out: Output, found: Comparison, now: float) -> None:
    """Print the last node that both sides have in common (S1-41)."""
    place = f"after turn {found.fork_turn}" if found.fork_turn else "before the first turn"
    when = ago(timestamp(found.fork.seconds), now)
    names = f"{safe(found.a.address)} and {safe(found.b.address)}"
    if found.a.oid == found.b.oid:
        out.line(f"{names} are the same node.", BOLD)
        return
    width = out.size()[0] if out.terminal else 200
    more = f"  {found.fork.oid.hex()[:8]}  {when}"
    more = more if cells(f"{names} diverged {place}{more}") <= width else ""
    out.line(f"{names} diverged {out.paint(place, YELLOW, BOLD)}{out.paint(more, DIM)}")
    if found.fork_prompt:
        out.line(f"  {clip(first_line(found.fork_prompt), width - 2)}", DIM)


def _sides(out: Output, found: Comparison) -> None:
    width = out.size()[0] if out.terminal else 100
    if width < NARROW:
        for number, side in enumerate((found.a, found.b)):
            if number:
                out.line()
            for text, styles in _side(side, width):
                out.line(text, *styles)
        return
    half = (width - 3) // 2
    left, right = _side(found.a, half), _side(found.b, half)
    blank: tuple[str, tuple[str, ...]] = ("", ())
    for number in range(max(len(left), len(right))):
        (a, a_styles), (b, b_styles) = (side[number] if number < len(side) else blank for side in (left, right))
        padded = out.paint(a, *a_styles) + " " * (half - cells(a)) if a_styles else a + " " * (half - cells(a))
        out.line(f"{padded} {out.paint('│', DIM)} {out.paint(b, *b_styles) if b_styles else b}".rstrip())


def _side(side: Side, width: int) -> list[tuple[str, tuple[str, ...]]]:
    """Return one side's turns, changes and last message since the fork (S1-42)."""
    added, removed = side.counted()
    turns = "1 turn" if len(side.turns) == 1 else f"{len(side.turns):,} turns"
    lines = f", +{added:,} -{removed:,} lines" if added or removed else ""
    rows: list[tuple[str, tuple[str, ...]]] = [(safe(side.address), (BOLD,))]
    rows.append((f"{turns} since, {files_text(len(side.changes))}{lines}", (DIM,)))
    hidden = len(side.turns) - TURNS
    if hidden > 0:
        rows.append((f"   … {hidden:,} before", (DIM,)))
    for node in side.turns[-TURNS:]:
        rows.append((f"{node.turn:>4}  {first_line(node.subject) or '(no prompt)'}", ()))
    message = first_line(side.message)
    if message and side.turns:
        rows.append((f"   >  {message}", (DIM,)))
    return [(clip(text, width), styles) for text, styles in rows]


def _files(out: Output, found: Comparison, limit: int | None) -> None:
    rows = found.rows()
    if not rows:
        out.line("Neither has changed a file since.", DIM)
        return
    width = out.size()[0] if out.terminal else 100
    shown = rows if limit is None or len(rows) <= limit else rows[:limit]
    words = {"only a": f"only {safe(found.a.address)}", "only b": f"only {safe(found.b.address)}"}
    column = 12 if width >= NARROW else 10
    room = max(width - 2 * column - 2 - (12 if width >= NARROW else 0), 12) if out.terminal else 10_000
    names = [clip(path_text(path), room) for path, *_ in shown]
    names_width = max(cells(name) for name in names)
    head = "".join(f"{clip(safe(side.address), column - 2):<{column}}" for side in (found.a, found.b))
    out.line(f"  {'':<{names_width}}  {head}".rstrip(), BOLD)
    for name, (_, a, b, outcome) in zip(names, shown, strict=True):
        cell = "".join(_cell(out, change, column) for change in (a, b))
        text = out.paint(words.get(outcome, outcome), YELLOW if outcome == "different" else DIM)
        narrow = width < NARROW and outcome.startswith("only")
        out.line(f"  {name}{' ' * (names_width - cells(name))}  {cell}{'' if narrow else text}".rstrip())
    out.rest(len(rows), len(shown), after=": `--stat` lists all")
    if any(outcome != "same" for *_, outcome in rows):
        out.line("`--patch` shows how the files differ.", DIM)


def _cell(out: Output, change: FileChange | None, width: int) -> str:
    """Return `M +3 -1`, or a dot for a side that did not change the file."""
    if change is None:
        return out.paint("·", DIM) + " " * (width - 1)
    counts = "large" if change.large else "binary" if change.binary else ""
    if change.added or change.removed:
        counts = " ".join(f"{sign}{number}" for sign, number in (("+", change.added), ("-", change.removed)) if number)
    text = clip(f"{change.change} {counts}".rstrip(), width - 1)
    return out.paint(text, _COLOURS.get(change.change, YELLOW)) + " " * (width - cells(text))
