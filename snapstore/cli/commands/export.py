"""`snapstore export`: everything that is recorded, in one file."""

from __future__ import annotations

from snapstore.cli.options import QUIET, Command, Operand, Option
from snapstore.cli.output import BOLD, DIM, path_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.cli.context import Context


def export(context: Context, *, file: str, since: str | None, allow: tuple[str, ...]) -> int:
    from snapstore.cli.sharing import Transfer
    from snapstore.share.bundles import export as write

    with context.store() as store:
        if allow:
            from snapstore.share import secrets

            secrets.allow(store, allow)
        with Transfer(context) as progress:
            done = write(store, file, since=since, progress=progress)
        if context.json:
            from snapstore.records.base import dump
            from snapstore.records.sharing import ExportRecord

            context.document(dump(ExportRecord, done.as_json()))
        elif not context.quiet:
            out = context.out
            shown = out.paint(path_text(done.path), BOLD)
            out.line(f"Wrote {shown}: {size_text(done.size)}, {done.objects:,} objects.")
            out.line("Next, where it arrives: `snapstore import FILE`, or `snapstore clone FILE DIR`.", DIM)
    return 0


COMMAND = Command(
    "export",
    export,
    "Write everything that is recorded into a file. It is a git bundle with everybody's turns, for a machine with no "
    "network between. `import FILE` takes it in there, `clone FILE DIR` makes a folder of it. "
    "Searched for secrets as a push is.",
    options=(
        Option(
            "since",
            "--since",
            "Only what is new after an earlier export, which the reader has.",
            metavar="FILE",
            complete="file",
        ),
        Option(
            "allow",
            "--allow",
            "Allow a finding that is no secret, by the word that the refused export printed.",
            metavar="WORD",
            many=True,
        ),
        QUIET,
    ),
    operands=(Operand("file", "FILE", required=True, complete="file"),),
)
