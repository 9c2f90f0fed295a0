"""`snapstore git`: run ordinary git on the shadow repository."""

from __future__ import annotations

import os
import signal
import sys

import click

from snapstore.cli.context import Context
from snapstore.cli.options import RawCommand, with_context
from snapstore.errors import Failed
from snapstore.git.program import environment, refuse_planted


@click.command(cls=RawCommand, add_help_option=False)
@click.argument("arguments", metavar="ARGS…", nargs=-1, type=click.UNPROCESSED)
@with_context
def git(context: Context, *, arguments: tuple[str, ...]) -> int:
    """Run ordinary git on the shadow repository.

    Every argument is passed to git unchanged: log, show, diff, blame, clone…
    """
    with context.store() as store:
        git_dir = store.shadow.git_dir
    refuse_planted(git_dir)
    sys.stdout.flush()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them; git must end quietly when its reader does
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe("git", ["git", *arguments], environment(git_dir))
    except FileNotFoundError:
        raise Failed("there is no git program here", "Install git; everything else works without it.") from None
