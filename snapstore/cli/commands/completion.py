"""`snapstore completion`: the script that teaches a shell our commands."""

from __future__ import annotations

from snapstore.cli.options import Command, Operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.cli.context import Context

SHELLS = ("bash", "zsh", "fish")


def completion(context: Context, *, shell: str) -> int:
    from click.shell_completion import ShellComplete, get_completion_class

    from snapstore.cli.app import application

    kind = get_completion_class(shell)
    assert kind is not None
    # Not the class's own `source`: for bash it starts a bash to ask for its version.
    script = ShellComplete.source(kind(application(), {}, "snapstore", "_SNAPSTORE_COMPLETE"))
    if context.json:
        context.document({"shell": shell, "script": script})
    else:
        context.out.line(script)
    return 0


COMMAND = Command(
    "completion",
    completion,
    'Print the completion script of a shell. For bash: eval "$(snapstore completion bash)" in ~/.bashrc.',
    operands=(Operand("shell", "|".join(SHELLS), required=True, choices=SHELLS),),
)
