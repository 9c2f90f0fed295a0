"""`snapstore export`: write everything recorded into one file."""

from __future__ import annotations

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options, quiet_option
from snapstore.cli.output import BOLD, DIM, path_text, size_text
from snapstore.cli.param_types import FILE
from snapstore.cli.reports.transfer import Transfer, tell_remarks
from snapstore.share.bundles import export as write
from snapstore.share.secrets import check


@click.command()
@click.argument("file", metavar="FILE", type=FILE)
@click.option(
    "--since", metavar="FILE", type=FILE, help="Only what is new since an earlier export, which the recipient has."
)
@click.option(
    "--allow",
    metavar="WORD",
    multiple=True,
    help="Allow a finding that is not a secret, by the code that the refused export printed.",
)
@quiet_option
@common_options
def export(context: Context, *, file: str, since: str | None, allow: tuple[str, ...]) -> int:
    """Write everything recorded into a file.

    The file is a git bundle with everybody's turns, for a machine without a connection. There, `import FILE`
    imports it, and `clone FILE DIR` makes a folder from it. The content is searched for secrets, as for a push.
    """
    with context.store() as store:
        if allow:
            check.allow(store, allow)
        with Transfer(context) as progress:
            done = write(store, file, since=since, progress=progress)
        if context.json:
            from snapstore.surface.records.sharing import ExportRecord

            context.document(ExportRecord.of(done))
        elif not context.quiet:
            out = context.out
            tell_remarks(out, done.remarks)
            shown = out.paint(path_text(done.path), BOLD)
            out.line(f"Wrote {shown}: {size_text(done.size)}, {done.objects:,} objects.")
            out.line("Next, where it arrives: `snapstore import FILE`, or `snapstore clone FILE DIR`.", DIM)
    return 0
