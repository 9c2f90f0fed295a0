"""The top-level click group, whose commands load on use, and `run`."""

from __future__ import annotations

import os
from importlib import import_module

import click
from click.shell_completion import shell_complete

from snapstore import __version__
from snapstore.cli.context import CommonOptions
from snapstore.cli.errors import guarded
from snapstore.cli.options import CommandGroup, level_options
from snapstore.errors import Usage, did_you_mean

COMPLETE = "_SNAPSTORE_COMPLETE"  # set by a shell that asks for completions

# Every command, in the groups that `--help` shows. Each command has a module of its name in `commands`.
SECTIONS = {
    "Record": ("run", "turn", "import"),
    "Look": ("status", "log", "show", "diff", "tree", "tui", "ui", "undolist", "sessions"),
    "Move": (
        *("undo", "redo", "goto", "earlier", "later", "revert", "apply", "restore", "discard", "fork"),
        *("ops", "recover"),
    ),
    "Branches": ("branches", "branch", "switch", "compare", "checkpoint", "checkpoints"),
    "Share": ("remote", "push", "pull", "clone", "export"),
    "Keep": ("du", "stats", "check", "gc", "prune", "forget"),
    "Set up": ("init", "connect", "disconnect", "config", "shell-init", "completion", "daemon", "help", "version"),
    "For programs": ("hook", "mcp", "git"),
}
ALIASES = {"rewind": "goto"}


def command_modules() -> dict[str, str]:
    """Return the module name per command.

    Each module defines a command with the module's own name.
    """
    names = [name for section in SECTIONS.values() for name in section]
    modules = ["import_" if name == "import" else name.replace("-", "_") for name in names]
    return {name: f"snapstore.cli.commands.{module}" for name, module in zip(names, modules, strict=True)}


class Application(CommandGroup):
    """The group of all commands.

    A command's module is imported when the command is used or listed.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(command_modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        place = command_modules().get(name)
        if place is None:
            return None
        command: click.Command = getattr(import_module(place), place.rpartition(".")[2])
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self.list_commands(ctx)))
        for title, names in SECTIONS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            limit = formatter.width - 6 - widest
            rows = [(name.ljust(widest), command.get_short_help_str(limit)) for name, command in commands if command]
            with formatter.section(title):
                formatter.write_dl(rows)


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"snapstore {__version__}")
        ctx.exit()


@click.group(
    "snapstore",
    cls=Application,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@level_options
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version.",
)
def application() -> None:
    """Undo for coding agents: every turn is a commit in a shadow git repository, outside your project.

    \b
      snapstore connect claude  record every turn of an agent, through its own hooks
      snapstore run -- CMD…     record a turn around any command
      snapstore log             list the recorded turns
      snapstore show 3          show one turn, with its patch
      snapstore diff            show what changed since
      snapstore undo            undo the last turn; `redo` redoes it
      snapstore goto 3          go to any turn of any branch
    """


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit status."""
    if os.environ.get(COMPLETE):
        return _complete()
    common = CommonOptions()
    return guarded(lambda: _invoke(arguments or ["--help"], common), common)


def _invoke(arguments: list[str], common: CommonOptions) -> int:
    """Parse the arguments with click and call the command.

    click's own `main` is not used: it handles an interrupt and a closed pipe in its own way.
    """
    try:
        with application.make_context("snapstore", list(arguments), obj=common) as ctx:
            status = application.invoke(ctx)
    except click.exceptions.Exit as ended:  # after `--help` and `--version`
        return ended.exit_code
    except click.UsageError as error:
        common.note(arguments)
        raise _usage(error) from None
    return status if isinstance(status, int) else 0


def _complete() -> int:
    """Print the completions that a shell asks for, and return the exit status.

    On a failure nothing is printed, because a person is typing.
    """
    try:
        return shell_complete(application, {}, "snapstore", COMPLETE, os.environ[COMPLETE])
    except Exception:
        return 0


def _usage(error: click.UsageError) -> Usage:
    command = error.ctx.command_path if error.ctx is not None else "snapstore"
    similar: list[str] = getattr(error, "possibilities", None) or []
    hint = did_you_mean(similar, f"See `{command} --help`.")
    suggests_itself = isinstance(error, click.NoSuchOption | click.NoSuchCommand)  # format_message lists similar names
    message = error.message if suggests_itself else error.format_message()
    return Usage(" ".join(message.split()), hint)
