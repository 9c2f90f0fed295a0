"""`snapstore git`: ordinary git on the shadow repository."""

from __future__ import annotations

import os
import signal
import sys

from snapstore.cli.options import Command, Operand
from snapstore.errors import Failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.cli.context import Context


def git(context: Context, *, arguments: tuple[str, ...]) -> int:
    from snapstore.git.program import environment, refuse_planted

    with context.store() as store:
        git_dir = store.shadow.git_dir
    refuse_planted(git_dir)
    sys.stdout.flush()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by Python; git must end quietly when its reader does
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe("git", ["git", *arguments], environment(git_dir))
    except FileNotFoundError:
        raise Failed("there is no git program here", "Install git; everything else works without it.") from None


COMMAND = Command(
    "git",
    git,
    "Run ordinary git on the shadow repository. Every argument goes to git as it is: log, show, diff, blame, clone…",
    operands=(Operand("arguments", "ARGS…", many=True),),
    raw=True,
)
