"""Options and command classes that several commands use."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from snapstore.cli.context import CommonOptions
from snapstore.cli.param_types import FILE, FOLDER, ROWS, SESSION, SuggestingChoice

Callback = Callable[..., Any]


# Options of every command.


def _remember_folders(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    ctx.ensure_object(CommonOptions).folders.extend(value)


def _remember_session(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(CommonOptions).session = value


def _remember_json(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.ensure_object(CommonOptions).json |= value


def _remember_debug(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.ensure_object(CommonOptions).debug |= value


_COMMON = (
    click.option(
        "-C",
        "folder",
        metavar="DIR",
        type=FOLDER,
        multiple=True,
        expose_value=False,
        callback=_remember_folders,
        help="Work as if started in this folder.",
    ),
    click.option(
        "--session",
        metavar="NAME",
        type=SESSION,
        expose_value=False,
        callback=_remember_session,
        help="Which session. Default: $SNAPSTORE_SESSION; else `shell` to record, or the last active session to read.",
    ),
    click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=_remember_json,
        help="Print one JSON document, and nothing else, on standard output.",
    ),
    click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_remember_debug,
        help="Show where in the program an error happened.",
    ),
)


def level_options(function: Callback) -> Callback:
    """Add the common options to a group.

    The options may come before and after every command word. All levels write into one `CommonOptions`: folders add
    up, and the innermost session wins.
    """
    return _decorated(function, _COMMON)


def with_context(function: Callable[..., int]) -> Callback:
    """Call a command's function with a `Context` made from the common options."""

    @wraps(function)
    def call(*, quiet: bool = False, **values: Any) -> int:
        context = click.get_current_context().ensure_object(CommonOptions).start()
        context.quiet = quiet
        return function(context, **values)

    return call


def common_options(function: Callable[..., int]) -> Callback:
    """Add the common options to a command and pass its function a `Context`."""
    return level_options(with_context(function))


# Options of some commands.

quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print nothing on success.")
agent_option = click.option("--agent", metavar="NAME", help="Who makes the turn: the author of its commit.")
ascii_option = click.option("--ascii", is_flag=True, help="Draw with plain characters only.")
rows_option = click.option(
    "-n",
    "number",
    metavar="N",
    type=ROWS,
    help="Rows to show; 0: all. Default: all, or what fits on a terminal.",
)


class _OptionalValue(click.Option):
    """An option whose value may be left out, shown as `--merge[=markers]`."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return record and (record[0].replace(" [=", "[="), record[1])


_MOVE = (
    click.option("--preview", is_flag=True, help="Show what would happen, and change nothing."),
    click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    click.option(
        "--merge",
        cls=_OptionalValue,
        metavar="[=markers]",
        is_flag=False,
        flag_value="merge",
        type=SuggestingChoice(("merge", "markers")),
        help="Merge files that changed since. This is the default. `--merge=markers` also allows conflict markers "
        "where both sides changed the same lines.",
    ),
    click.option("--no-merge", is_flag=True, help="Refuse the move if any of its files changed since."),
    click.option("--force", is_flag=True, help="Overwrite files that changed since. They are saved first."),
    click.option("--skip", is_flag=True, help="Leave files that changed since as they are."),
    click.option(
        "--ours", metavar="PATH", type=FILE, multiple=True, help="If this file changed since, leave it as it is."
    ),
    click.option(
        "--theirs",
        metavar="PATH",
        type=FILE,
        multiple=True,
        help="If this file changed since, overwrite it. It is saved first.",
    ),
    click.option("--cancel", is_flag=True, help="First close a turn that is still open, as interrupted."),
)
_PATCH = (
    click.option(
        "-p", "--patch", is_flag=True, help="Ask for every hunk, as `git add --patch` does. With --preview: list them."
    ),
    click.option(
        "--hunk",
        "hunks",
        metavar="ID",
        multiple=True,
        help="Only this hunk, by the id that `--patch --preview` lists. Can be repeated.",
    ),
)
_TRAVEL = (
    *_MOVE,
    click.option("--files-only", is_flag=True, help="Move the files, and stay where you are in the conversation."),
    click.option(
        "--conversation-only", is_flag=True, help="Move in the conversation, and leave all files as they are."
    ),
    click.option(
        "--exact",
        is_flag=True,
        help="Restore the whole tree as it was, undoing edits made outside of turns too. Those are saved first.",
    ),
)


def move_options(function: Callback) -> Callback:
    """Add the options of every move.

    The command's class must be `MoveCommand`.
    """
    return _decorated(function, _MOVE)


def patch_options(function: Callback) -> Callback:
    """Add the options of a move that can be carried out in part."""
    return _decorated(function, _PATCH)


def travel_options(function: Callback) -> Callback:
    """Add the options of a move to another turn.

    The command's class must be `MoveCommand`.
    """
    return _decorated(function, _TRAVEL)


def _decorated(function: Callback, options: tuple[Callable[[Callback], Callback], ...]) -> Callback:
    for option in reversed(options):  # click lists the option added last at the top
        function = option(function)
    return function


# Commands whose arguments click alone would parse differently.


class MoveCommand(click.Command):
    """A move command.

    `--merge` takes a value only after `=`, so that `undo --merge 2` undoes two turns.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        options = ["--merge=merge" if arg == "--merge" else arg for arg in args[:end]]
        return super().parse_args(ctx, [*options, *args[end:]])


class PathsCommand(MoveCommand):
    """A command whose last argument is the paths after `--`.

    click does not say where `--` was. With `paths_alone`, words without `--` are all paths.
    """

    paths_alone = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(ctx, args[:end])
        arguments = [str(param.name) for param in self.params if isinstance(param, click.Argument)]
        others, paths = arguments[:-1], arguments[-1]
        if end == len(args) and self.paths_alone and not ctx.resilient_parsing:
            words = [ctx.params[name] for name in others if ctx.params[name] is not None]
            ctx.params.update({**dict.fromkeys(others), paths: (*words, *ctx.params[paths])})
            return rest
        if ctx.resilient_parsing:  # completion: only paths can follow `--`
            for name in others if end < len(args) else ():
                ctx.set_parameter_source(name, ParameterSource.COMMANDLINE)
            return rest
        if ctx.params[paths]:
            extra = " ".join(ctx.params[paths])
            raise click.UsageError(f"Too many arguments ({extra}): paths come after `--`.", ctx)
        ctx.params[paths] = tuple(args[end + 1 :])
        return rest


class PathsAloneCommand(PathsCommand):
    """A command whose words are paths, unless `--` separates the paths from other words."""

    paths_alone = True


class RawCommand(click.Command):
    """A command without options, whose only argument takes every word unchanged."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.params[self.params[0].name] = tuple(args)
        return []


class CommandGroup(click.Group):
    """A group of subcommands, listed in the order of their definition.

    The group's name alone, or followed by options only, runs the `default` command: `ops` is `ops list`.
    """

    def __init__(self, *args: Any, default: str = "", **attributes: Any) -> None:
        super().__init__(*args, **{"subcommand_metavar": "COMMAND …", "no_args_is_help": False, **attributes})
        self.default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest similar names for an unknown command, including unloaded ones."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=self.list_commands(ctx), ctx=ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self.default and not ctx.resilient_parsing and self._means_default(ctx, args):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def _means_default(self, ctx: click.Context, args: list[str]) -> bool:
        """Return whether no subcommand follows the group's own options."""
        if set(ctx.help_option_names) & set(args):
            return False
        takes_value = {flag: not getattr(param, "is_flag", False) for param in self.params for flag in param.opts}
        words = iter(args)
        for word in words:
            if not word.startswith("-"):
                return False
            flag, value = (word.partition("=")[::2]) if word.startswith("--") else (word[:2], word[2:])
            if flag not in takes_value:  # an option of the default command, or an error that it will report
                return True
            if takes_value[flag] and not value:
                next(words, None)
        return True
