"""`snapstore recover`: show an interrupted change, and finish or undo it.

Every other command finishes an interrupted change automatically; this command shows the change first.
"""

from __future__ import annotations

from typing import Any

import click

from snapstore.api import Store
from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.output import BOLD, DIM, GREEN, LISTED, YELLOW, path_text, safe
from snapstore.errors import Usage
from snapstore.git.ref_names import HEADS
from snapstore.git.refs import unspell
from snapstore.store.journal import Recovery, unspell_entry


@click.command()
@click.option("--finish", is_flag=True, help="Finish it.")
@click.option("--back", is_flag=True, help="Undo it: files and branches as they were before it.")
@common_options
def recover(context: Context, *, finish: bool, back: bool) -> int:
    """Show an interrupted change, and choose how it ends.

    Every other command finishes it automatically.
    """
    if finish and back:
        raise Usage("--finish and --back exclude each other", "Choose one of them.")

    def say(text: str) -> None:
        if text.startswith("waiting"):  # everything else is reported below
            context.say(text)

    with Store.open(".", say=say, recover=False) as store:
        pending = store.journal.read()
        if back and pending and pending.get("then"):
            raise Usage(
                f"the interrupted change ({pending['what']}) cannot be undone",
                "`snapstore recover --finish` finishes it, as does any other command.",
            )
        obstacles = _obstacles(store, pending) if pending else []
        ended = store.recover(back=back) if pending and (finish or back) else None
    if context.json:
        from snapstore.surface.records.moves import RecoveryRecord

        context.document(RecoveryRecord.of(pending, obstacles, ended))
    elif pending is None:
        context.out.line("Nothing was interrupted.")
    elif finish or back:
        _tell(context, str(pending["what"]), ended)
    else:
        _show(context, pending, obstacles)
    return 0


def _obstacles(store: Store, pending: dict[str, Any]) -> list[str]:
    """List why the change cannot be finished: missing objects and moved refs."""
    found = []
    for name, old, new in pending["refs"]:
        if store.shadow.refs.value(name) not in (unspell(old), unspell(new)):
            found.append(f"{name} was moved by another program")
    for path, _, new, *_ in pending.get("tree", ()):
        entry = unspell_entry(new)
        if entry is not None and entry[1] and not store.shadow.objects.contains(entry[1]):
            found.append(f"the store lacks the content of {path_text(path)}")
    return found


def _show(context: Context, pending: dict[str, Any], obstacles: list[str]) -> None:
    out = context.out
    out.line(f"{out.paint('Interrupted:', YELLOW)} {out.paint(safe(str(pending['what'])), BOLD)}")
    tree = pending.get("tree", ())
    for path, _, new, *_ in tree[:LISTED]:
        out.line(f"  {'remove' if new is None else 'write ':<6}  {path_text(path)}")
    out.rest(len(tree))
    for name, old, new in pending["refs"]:
        out.line(f"  move    {safe(name)}  {out.paint(f'{_short(old)} → {_short(new)}', DIM)}")
    for text in obstacles:
        out.line(f"It cannot be finished: {safe(text)}.", YELLOW)
    if not obstacles:
        out.line("It can be finished: `snapstore recover --finish`, or any other command.")
    if pending.get("then"):
        out.line("It cannot be undone.", DIM)
    elif obstacles:
        out.line("`snapstore recover --back` undoes it.")
    else:
        out.line("`snapstore recover --back` undoes it instead.", DIM)


def _tell(context: Context, what: str, ended: Recovery | None) -> None:
    out = context.out
    if ended is None:
        out.line(f"Another process has already finished it: {safe(what)}")
        return
    out.line(f"{out.paint('✓', GREEN)} {'Finished' if ended.finished else 'Undone'}: {safe(ended.what)}")
    for path in ended.kept:
        out.line(f"  Kept, because it was edited since: {path_text(path)}", YELLOW)


def _short(value: str | None) -> str:
    if value is None:
        return "nothing"
    return value[:8] if len(value) == 40 else safe(value.removeprefix("ref: ").removeprefix(HEADS))
