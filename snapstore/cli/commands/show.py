"""`snapstore show`: show everything about one turn."""

from __future__ import annotations

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.output import BOLD, DIM, LISTED, YELLOW, Output, file_rows, files_text, path_text, safe, safe_lines
from snapstore.cli.param_types import TARGET
from snapstore.cli.reports.patch import print_patch
from snapstore.surface.describe import FOUND_BY, calls, git_moves, listed, when, who
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import Node
from snapstore.timeline.history.patches import patched
from snapstore.timeline.moves.caveats import overlapping_turns


@click.command()
@click.argument("turn", metavar="[TURN]", required=False, type=TARGET)
@common_options
def show(context: Context, *, turn: str | None) -> int:
    """Show one turn, with its patch.

    Also shows its prompt and replies, and what was left out. TURN is a number (0 is before the first), `#12` by
    sequence, a branch, `branch:5`, a checkpoint, `@` where you are (the default), or a commit hash.
    """
    session = context.reading()
    with session.store as store:
        history = History(session)
        node = history.node(history.resolve("@" if turn is None else turn), lines=context.json)
        node.files, patch = patched(history, node.files)
        if context.json:
            from snapstore.surface.records.nodes import ShowRecord

            context.document(ShowRecord.with_patch(node, patch))
            return 0
        out = context.out
        _head(out, node, store.clock())
        _conversation(out, node)
        _files(out, node)
        _remarks(out, node)
        if patch:
            out.line()
            print_patch(out, patch)
    return 0


def _head(out: Output, node: Node, now: float) -> None:
    status = "" if node.status == "done" else out.paint(f"  [{safe(node.status)}]", YELLOW)
    out.line(f"{out.paint(safe(node.label), BOLD)}  {node.commit}{status}")
    out.line(who(node), DIM)
    out.line(when(node, now), DIM)


def _conversation(out: Output, node: Node) -> None:
    if node.prompt.strip():
        out.line()
        for line in safe_lines(node.prompt):
            out.line(f"    {line}".rstrip())
    done = calls(node)
    if done:
        out.line()
    for text in done[:LISTED]:
        out.line(f"  · {text}", DIM)
    out.rest(len(done), indent="  · ")
    for reply in listed(node, "replies"):
        out.line()
        for line in safe_lines(str(reply)):
            out.line(f"  > {line}".rstrip(), DIM)


def _files(out: Output, node: Node) -> None:
    out.line()
    if node.kind == "baseline":
        out.line("Where the session began.", DIM)
        return
    if not node.files:
        out.line("No file changed.", DIM)
        return
    found = FOUND_BY.get(node.found_by or "")
    out.line(f"{files_text(len(node.files))} changed{f', {found}' if found else ''}")
    for row in file_rows(out, node.files, "  "):
        out.line(row)


def _remarks(out: Output, node: Node) -> None:
    """Print what was left out or is unknown, and moves in the user's repository."""
    if node.left_out:
        out.line()
        out.line("Left out:", YELLOW)
        for item in node.left_out:
            out.line(f"  {path_text(item['path'])}  {out.paint(safe(item['why']), DIM)}")
    unknown = [item for item in listed(node, "unknown") if isinstance(item, dict)]
    if unknown:
        out.line()
        out.line("Not known from the conversation:", YELLOW)
        for item in unknown:
            about = f"{path_text(str(item['path']))}  " if item.get("path") else ""  # a program has no path
            out.line(f"  {about}{out.paint(safe(str(item.get('why'))), DIM)}")
    first_seen = listed(node, "first_seen") if node.kind != "baseline" else []
    if first_seen:
        out.line()
        out.line("First seen in this turn, earlier state unknown:", YELLOW)
        for path in first_seen:
            out.line(f"  {path_text(str(path))}")
    others = overlapping_turns(node)
    if others:
        out.line()
        out.line(f"Meanwhile {safe(others)}: its changes may be among these files.", YELLOW)
    moved = list(git_moves(node))
    if moved:
        out.line()
        out.line("Your own git repository changed meanwhile (snapstore never changes it):", YELLOW)
        for text in moved:
            out.line(f"  {text}")
