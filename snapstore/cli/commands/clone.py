"""`snapstore clone`: copy a shared project with all its turns to this machine."""

from __future__ import annotations

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options, quiet_option
from snapstore.cli.output import BOLD, DIM, files_text, path_text
from snapstore.cli.param_types import FOLDER
from snapstore.cli.reports.transfer import Transfer, asking, tell_pull
from snapstore.share import clone as attach
from snapstore.share.clone import CloneResult
from snapstore.store import locations


@click.command()
@click.argument("url", metavar="URL")
@click.argument("directory", metavar="[DIR]", required=False, type=FOLDER)
@quiet_option
@common_options
def clone(context: Context, *, url: str, directory: str | None) -> int:
    """Make a folder from the project shared at URL.

    The folder gets the files of the newest turn, and its store everything that was pushed. Without DIR, the folder
    is named after the repository.
    """
    home = locations.home_folder()
    folder = directory if directory is not None else attach.folder_of(url)
    with Transfer(context) as progress:
        done = attach.clone(home, url, folder, say=context.say, progress=progress, ask=asking(context))
    told(context, done)
    return 0


def told(context: Context, done: CloneResult) -> None:
    """Report the result of `clone` or `init --from`."""
    if context.json:
        from snapstore.surface.records.sharing import AttachRecord

        context.document(AttachRecord.of(done, locations.store_folder(locations.home_folder(), done.root)))
        return
    if context.quiet:
        return
    out = context.out
    if done.pulled is not None:
        tell_pull(out, done.pulled, "")
    shown = out.paint(path_text(done.root), BOLD)
    if done.written:
        out.line(f"Wrote {files_text(done.written)} into {shown}, as the newest turn left them.")
    elif done.joined:
        out.line(f"{shown} belongs to the shared project from now on.")
    else:
        out.line(f"Watching over {shown} from now on. No file was changed.")
    out.line("Next: `snapstore sessions` shows whose turns are here.", DIM)
