"""`snapstore help`: show the help of the program or of one command."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from snapstore.cli.context import Context
from snapstore.cli.options import common_options


class _CommandWord(click.ParamType[str]):
    """The name of a command or subcommand."""

    name = "command"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = ctx.find_root()
        for word in ctx.params.get("words") or ():
            found = _below(found, word)
        command = found.command
        names = command.list_commands(found) if isinstance(command, click.Group) else []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command()
@click.argument("words", metavar="[COMMAND [SUBCOMMAND]]", nargs=-1, type=_CommandWord())
@common_options
def help(context: Context, *, words: tuple[str, ...]) -> int:
    """Show the help of the program, or of a command.

    `snapstore help COMMAND` shows the same as `snapstore COMMAND --help`.
    """
    found = click.get_current_context().find_root()
    for word in words:
        found = _below(found, word)
    text = found.get_help()
    if context.json:
        from snapstore.surface.records.setup import HelpRecord

        context.document(HelpRecord(command=found.command_path, help=text))
    else:
        context.out.line(text)
    return 0


def _below(ctx: click.Context, word: str) -> click.Context:
    """Return the click context of a subcommand, as if it had been called."""
    if not isinstance(ctx.command, click.Group):
        raise click.UsageError(f"`{ctx.command_path}` has no subcommands.", ctx)
    _, command, _ = ctx.command.resolve_command(ctx, [word])
    if command is None:
        raise click.NoSuchCommand(word, ctx=ctx)
    return click.Context(command, parent=ctx, info_name=word)
