"""Report the conflicts that stop a move: who changed the file, the lines that differ, and the ways on."""

from __future__ import annotations

from snapstore.api import Session
from snapstore.cli.move_description import MoveDescription
from snapstore.cli.output import DIM, GREEN, LISTED, RED, YELLOW, Output, path_text, safe, shorten
from snapstore.cli.paths import from_here
from snapstore.errors import SnapstoreError
from snapstore.git.diff.patch import hunks, lines_of
from snapstore.surface.wording import NOT_SAVABLE, mergeable
from snapstore.timeline.moves.plan import PathMove, Plan
from snapstore.timeline.moves.three_way import three_way

_FILES = 3  # files whose lines are shown
_LINES = 6  # lines shown per file
_NAMED = 3  # files that a command on offer names one by one


def differing_lines(session: Session, plan: Plan) -> dict[bytes, list[str]]:
    """Return, for the first files in conflict, lines with `-` (on disk) and `+` (what the move wants).

    Where the move wants no file, the lines show what changed since the turns instead.
    """
    found: dict[bytes, list[str]] = {}
    for move in plan.conflicts[:_FILES]:
        sides = three_way(session, plan, move.path)
        old, new = (sides.mine, sides.theirs) if sides.theirs is not None else (sides.base, sides.mine)
        if old is None or new is None:
            continue
        patch = hunks(lines_of(old.encode()), lines_of(new.encode()))
        lines = [line.decode("utf-8", "replace").rstrip("\n") for line in patch if line[:1] in b"-+"]
        more = [f"… and {len(lines) - _LINES:,} more lines"] if len(lines) > _LINES else []
        found[move.path] = lines[:_LINES] + more
    return found


def refuse(out: Output, move: MoveDescription, error: SnapstoreError, conflicts: list[PathMove]) -> None:
    """Print the conflicts that made a move fail, and the commands that resolve them."""
    out.line(f"{out.paint('snapstore:', RED)} {safe(error.message)}")
    explain(out, move, conflicts)
    out.line("Nothing was written. To resolve:")
    choices(out, move, conflicts)


def explain(out: Output, move: MoveDescription, conflicts: list[PathMove]) -> None:
    """Print who changed each file, what the move wants to do with it, and the lines that differ."""
    width = out.size()[0] - 6
    for item in conflicts[:LISTED]:
        by = f"changed by {item.changed_by}" if item.changed_by else "changed since"
        if item.wanted is None:
            by += "; the move would remove it"
        elif item.found is None:
            by += "; it is missing now"
        out.line(f"  {path_text(item.path)}  {out.paint(safe(by), DIM)}")
        if item.why:
            what = "overwritten" if NOT_SAVABLE in item.why else "merged"
            out.line(f"      cannot be {what}: {safe(item.why)}", YELLOW)
        for line in move.differing.get(item.path, []):
            text = shorten(safe(line), width) if out.terminal else safe(line)
            out.line(f"      {text}", {"-": RED, "+": GREEN}.get(line[:1], DIM))
    if len(conflicts) > LISTED:
        out.line(f"  … and {len(conflicts) - LISTED:,} more", DIM)
    if any(item.wanted is not None for item in conflicts if item.path in move.differing):
        out.line("      (- on disk now, + what the move would write)", DIM)


def choices(out: Output, move: MoveDescription, conflicts: list[PathMove]) -> None:
    """Print the commands that would resolve the conflicts.

    Few files are named one by one, so that the others are still merged. The command that merges leaves alone the files
    that cannot be merged.
    """
    names = {item.path: from_here(move.root, item.path) for item in conflicts}
    hopeless = [item.path for item in conflicts if not mergeable(item)]
    few = len(conflicts) <= _NAMED
    ways = []
    if len(hopeless) < len(conflicts) and len(hopeless) <= _NAMED:
        flag, what = "--merge", "merge both versions"
        if any(item.why for item in conflicts if mergeable(item)):
            flag, what = "--merge=markers", "merge, with conflict markers around clashes"
        ways.append((" ".join([flag, *(f"--ours {names[path]}" for path in hopeless)]), what))
    each = [f"--ours {name}" for name in names.values()] if few else ["--skip"]
    ways.append((" ".join(each), "keep your version"))
    if not any(NOT_SAVABLE in item.why for item in conflicts):
        each = [f"--theirs {name}" for name in names.values()] if few else ["--force"]
        ways.append((" ".join(each), "overwrite your version, which is saved first"))
    commands = [move.command(flags) for flags, _ in ways]
    commands.append(f"{out.program} tui")
    ways.append(("", f"choose for each file, with all versions in view (or `{out.program} ui`, in a browser)"))
    width = max(len(command) for command in commands)
    for command, (_, what) in zip(commands, ways, strict=True):
        out.line(f"  {command:<{width}}  {out.paint(what, DIM)}")
