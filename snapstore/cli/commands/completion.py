"""`snapstore completion`: print the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.param_types import SuggestingChoice

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", metavar="bash|zsh|fish", type=SuggestingChoice(SHELLS))
@common_options
def completion(context: Context, *, shell: str) -> int:
    """Print the completion script of a shell.

    For bash: eval "$(snapstore completion bash)" in ~/.bashrc.
    """
    program = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    # The base class's `source`, because the one for bash starts a bash process to ask for its version.
    script = ShellComplete.source(kind(program, {}, "snapstore", "_SNAPSTORE_COMPLETE"))
    if context.json:
        from snapstore.surface.records.setup import ScriptRecord

        context.document(ScriptRecord(shell=shell, script=script))
    else:
        context.out.line(script)
    return 0
