"""Ask hunk by hunk what a move should do, as `git add --patch` does."""

from __future__ import annotations

import os
import sys

import click

from snapstore.cli.context import Context
from snapstore.cli.output import BOLD, RED, Output, path_text, safe
from snapstore.cli.reports.hunk import show_hunk
from snapstore.errors import Usage
from snapstore.timeline.moves.hunks import Hunk

_HELP = """\
y  {verb} this hunk
n  leave this hunk as it is
q  leave this hunk and all that follow
a  {verb} this hunk and all that follow in this file
d  leave this hunk and all that follow in this file
s  split this hunk into smaller ones
e  edit this hunk first
?  show this help"""
_GUIDE = """\
# Change or remove lines with `+`; these lines will be in the file.
# To keep a line with `-`, replace the `-` with a blank. Leave all other lines as they are.
# Lines with `#` are ignored. If nothing is left, the hunk is left as it is.
"""


def choose_hunks(context: Context, hunks: list[Hunk], verb: str) -> list[Hunk]:
    """Return the hunks that the person chose. At the end of the input the rest is left as it is."""
    out = context.err if context.err.terminal else context.out
    todo, chosen = list(hunks), list[Hunk]()
    for_file: dict[bytes, bool] = {}
    shown: bytes | None = None
    while todo:
        hunk = todo.pop(0)
        if hunk.path in for_file:
            chosen += [hunk] if for_file[hunk.path] else []
            continue
        if hunk.path != shown:
            shown = hunk.path
            out.line(path_text(hunk.path), BOLD)
        show_hunk(out, hunk)
        answer = _ask(out, hunk, verb)
        if answer == "q":
            break
        if answer in "ad":
            for_file[hunk.path] = answer == "a"
        if answer in "ya":
            chosen.append(hunk)
        elif answer == "s":
            todo[:0] = hunk.split()
        elif answer == "e":
            edited = _edit(out, hunk)
            if edited is None:
                todo.insert(0, hunk)  # ask again
            elif edited.blocks:
                chosen.append(edited)
    return chosen


def _ask(out: Output, hunk: Hunk, verb: str) -> str:
    answers = ["y", "n", "q", "a", "d", *(["s"] if len(hunk.blocks) > 1 else []), *(["e"] if hunk.blocks else []), "?"]
    while True:
        out.ask(f"{verb.capitalize()} this hunk? [{','.join(answers)}] ")
        line = sys.stdin.buffer.readline()
        if not line.endswith(b"\n"):
            out.line()
            return "q"
        answer = line.strip().lower().decode("ascii", "replace")
        if answer in answers and answer != "?":
            return answer
        for text in _HELP.format(verb=verb).splitlines():
            if text[0] in answers:
                out.line(text)


def _edit(out: Output, hunk: Hunk) -> Hunk | None:
    """Return the hunk as edited, or None to ask again."""
    text = b"".join(line.removesuffix(b"\n") + b"\n" for line in hunk.patch()).decode("utf-8", "surrogateescape")
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    try:
        result = click.edit(text + _GUIDE, editor=editor, extension=".diff", require_save=False)
    except click.ClickException as error:
        out.line(f"The editor failed: {safe(error.message)}", RED)
        return None
    lines = [line.encode("utf-8", "surrogateescape") for line in (result or "").split("\n")[:-1]]
    if all(line.startswith(b"#") or not line.strip() for line in lines):
        return hunk.without_changes()
    try:
        return hunk.edited(lines)
    except Usage as error:
        out.line(f"{error.message}. {error.hint}", RED)
        return None
