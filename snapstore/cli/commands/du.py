"""`snapstore du`: show what takes up how much space in the store."""

from __future__ import annotations

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.output import BOLD, DIM, path_text, safe, size_text
from snapstore.store.disk_usage import DiskUse

_ROWS = 10


@click.command()
@common_options
def du(context: Context) -> int:
    """Show what takes up space in the store.

    By session, branch, folder and file.
    """
    with context.store() as store:
        found = DiskUse(store).measure()
        if context.json:
            from snapstore.surface.records.keeping import DiskUseRecord

            context.document(DiskUseRecord.of(found))
        else:
            _print(context, found, store.header.max_store_size)
    return 0


def _print(context: Context, found: DiskUse, limit: int) -> None:

    out = context.out

    def row(size: int, text: str, more: str = "") -> None:
        out.line(f"{size_text(size):>10}  {text}{out.paint(more, DIM)}")

    of = f", of at most {size_text(limit)}" if limit else ""
    out.line(f"{out.paint(f'{size_text(found.total):>10}', BOLD)}  in total{of}")
    row(found.files_size(), "files")
    row(found.records, "conversations")
    row(found.index, "indexes of packs")
    count, size = found.saved()
    if count:
        row(
            size,
            f"of that, saved before {count:,} forced moves" if count > 1 else "of that, saved before a forced move",
            ": `snapstore prune --safety`",
        )
    if found.unreferenced:
        row(found.unreferenced, "unreferenced", ": `snapstore gc` drops these objects once they are old enough")
    if found.borrowed:
        row(found.borrowed, "shared with your own repository", ": takes no extra space")
    out.line("By session", BOLD)
    for name, (exclusive, shared) in sorted(found.sessions.items(), key=lambda item: -sum(item[1])):
        row(exclusive, safe(name), f"  and {size_text(shared)} shared with others")
    out.line("By branch, not shared with others", BOLD)
    holders = sorted(found.holders, key=lambda holder: -holder.exclusive)
    for holder in holders[:_ROWS]:
        state = "" if holder.state == "listed" else f"  {holder.state}"
        row(holder.exclusive, f"{safe(holder.session)}/{safe(holder.name)}", state)
    out.rest(len(holders), _ROWS, indent=" " * 12, after=" (`--json`)")
    out.line("By folder, all versions", BOLD)
    for path, size in found.folders()[:_ROWS]:
        row(size, path_text(path) if path else "(the top)")
    out.line("Largest files, all versions", BOLD)
    for path, size, versions in found.largest()[:_ROWS]:
        row(size, path_text(path), f"  {versions:,} versions" if versions > 1 else "")
