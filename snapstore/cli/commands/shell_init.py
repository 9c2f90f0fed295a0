"""`snapstore shell-init`: print the script that records each shell command."""

from __future__ import annotations

import click

from snapstore.agents.install.shell_rc import SCRIPTS, prepare
from snapstore.cli.commands.completion import SHELLS
from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.param_types import SuggestingChoice


@click.command()
@click.argument("shell", metavar="bash|zsh|fish", type=SuggestingChoice(SHELLS))
@common_options
def shell_init(context: Context, *, shell: str) -> int:
    """Print shell code that records each command as a turn.

    For interactive shells. In ~/.bashrc or ~/.zshrc, at the end: eval "$(snapstore shell-init bash)"; in config.fish:
    snapstore shell-init fish | source. With SNAPSTORE_SHELL=off nothing is recorded.
    """
    prepare()
    script = SCRIPTS[shell]
    if context.json:
        from snapstore.surface.records.setup import ScriptRecord

        context.document(ScriptRecord(shell=shell, script=script))
    else:
        context.out.line(script)
    return 0
