"""`snapstore diff`: compare two recorded states, or one with the disk."""

from __future__ import annotations

import os

import click

from snapstore.cli.context import Context
from snapstore.cli.options import PathsCommand, common_options
from snapstore.cli.output import DIM
from snapstore.cli.param_types import FILE, TARGET
from snapstore.cli.paths import below
from snapstore.cli.reports.patch import print_patch
from snapstore.errors import Unknown
from snapstore.timeline.history.history import DiffSide, History
from snapstore.timeline.history.patches import patched


@click.command(cls=PathsCommand)
@click.argument("a", metavar="[A", required=False, type=TARGET)
@click.argument("b", metavar="[B]]", required=False, type=TARGET)
@click.argument("paths", metavar="[-- PATH…]", nargs=-1, type=FILE)
@common_options
def diff(context: Context, *, a: str | None, b: str | None, paths: tuple[str, ...]) -> int:
    """Show differences as a patch.

    Without arguments from the current turn to the disk, with A from that turn to the disk, with A and B from one to
    the other. Turns are written as for `show`. Paths after `--` limit the output.
    """
    session = context.reading()
    with session.store as store:
        history = History(session)
        wanted = [below(store.root, path) for path in paths]
        old, new = _side(history, "@" if a is None else a), _side(history, b)
        changes = history.changes(old.tree, new.tree)
        if wanted:
            changes = [part for change in changes for part in change.within(lambda path: _named(path, wanted))]
        files, patch = patched(history, changes)
        if context.json:
            from snapstore.surface.records.base import patch_fields
            from snapstore.surface.records.nodes import DiffRecord

            context.document(DiffRecord.of(session.name, old, new, files, patch_fields(patch)))
        elif patch:
            print_patch(context.out, patch)
        elif context.out.terminal:
            context.out.line("No differences.", DIM)
    return 0


def _side(history: History, address: str | None) -> DiffSide:
    try:
        return history.side(address)
    except Unknown as error:
        if address is not None and os.path.lexists(address):
            error.hint = f"To name a file put it after two dashes: `snapstore diff -- {address}`."
        raise


def _named(path: bytes, wanted: list[bytes]) -> bool:
    return any(not top or path == top or path.startswith(top + b"/") for top in wanted)
