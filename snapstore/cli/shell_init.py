"""`snapstore shell-init`: what makes each command of an interactive shell a turn."""

from __future__ import annotations

from snapstore.cli.completion import SHELLS
from snapstore.cli.options import Command, Operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.cli.context import Context


def shell_init(context: Context, *, shell: str) -> int:
    from snapstore.agents.shells import SCRIPTS, prepare

    prepare()
    script = SCRIPTS[shell]
    if context.json:
        context.document({"shell": shell, "script": script})
    else:
        context.out.line(script)
    return 0


COMMAND = Command(
    "shell-init",
    shell_init,
    "Print what makes each command of an interactive shell a turn. In ~/.bashrc or ~/.zshrc, at the end: "
    'eval "$(snapstore shell-init bash)"; in config.fish: snapstore shell-init fish | source. With '
    "SNAPSTORE_SHELL=off nothing is recorded.",
    operands=(Operand("shell", "|".join(SHELLS), required=True, choices=SHELLS),),
)
