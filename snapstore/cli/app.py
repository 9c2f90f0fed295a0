"""The same commands for click: help, mistakes explained, completion."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from snapstore import __version__
from snapstore.cli.context import carry_out
from snapstore.cli.errors import guarded
from snapstore.cli.options import COMMON, PLACES, Command, Family, Operand, Option, load
from snapstore.cli.parser import separate
from snapstore.errors import Usage

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

HELP = """Undo for coding agents: every turn is a commit in a shadow git repository, outside your project.

\b
  snapstore connect claude  record every turn of an agent, through its own hooks
  snapstore run -- CMD…     record a turn around any command
  snapstore log             what was recorded
  snapstore show 3          one turn, with its patch
  snapstore diff            what changed since
  snapstore undo            take the last turn back; `redo` brings it again
  snapstore goto 3          any turn, of any branch
"""


def run(arguments: list[str]) -> int:
    """Reads a command line with click and does what it says."""
    json = "--json" in arguments[: arguments.index("--")] if "--" in arguments else "--json" in arguments
    debug = "--debug" in arguments

    def action() -> int:
        try:
            status = application().main(arguments or ["--help"], prog_name="snapstore", standalone_mode=False)
        except click.exceptions.UsageError as error:
            raise _usage(error) from None
        except click.Abort:
            raise KeyboardInterrupt from None
        return status if isinstance(status, int) else 0

    return guarded(action, json=json, debug=debug)


def application() -> click.Group:
    return _Top(
        "snapstore",
        help=HELP,
        params=[*_params(COMMON), _version()],
        callback=lambda **_: None,
        no_args_is_help=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        subcommand_metavar="COMMAND …",
        options_metavar="[OPTIONS]",
    )


class _Top(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        described = load(cmd_name)
        return None if described is None else _built(described)


class _Below(click.Group):
    default = ""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The word alone, or with nothing but options, is its default command."""
        plain = not args or (args[0].startswith("-") and not any(arg in self.commands for arg in args))
        if self.default and plain and not {"-h", "--help"} & set(args) and not ctx.resilient_parsing:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order they are used, not of the alphabet


class _Described(click.Command):
    """A click command made from a description."""

    def __init__(self, described: Command) -> None:
        self._described = described
        options = () if described.raw else (*described.options, *COMMON)
        super().__init__(
            described.name,
            help=described.help,
            params=[*_operands(described.operands), *_params(options)],
            callback=self._carry_out,
            add_help_option=not described.raw,
            context_settings={"allow_interspersed_args": not described.verbatim},
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """click forgets where `--` stood; for some commands it means something."""
        operands = self._described.operands
        if self._described.raw:
            ctx.params[operands[0].name] = tuple(args)
            return []
        behind: list[str] = []
        if any(operand.dashed for operand in operands) and "--" in args and not ctx.resilient_parsing:
            at = args.index("--")
            args, behind = args[:at], args[at + 1 :]
        rest = super().parse_args(ctx, _with_values(self._described.options, args))
        for operand in operands:
            if operand.dashed:
                if ctx.params[operand.name] and not ctx.resilient_parsing:
                    words = " ".join(ctx.params[operand.name])
                    raise click.UsageError(f"Too many words ({words}): paths come after `--`.", ctx)
                ctx.params[operand.name] = tuple(behind)
        return rest

    def _carry_out(self, **values: Any) -> int:
        common, own = separate(values)
        levels: list[dict[str, Any]] = [common]
        parent = click.get_current_context().parent
        while parent is not None:
            levels.insert(0, separate(parent.params)[0])
            parent = parent.parent
        return carry_out(self._described, levels, own)


def _built(described: Command | Family) -> click.Command:
    if isinstance(described, Command):
        return _Described(described)
    below = _Below(
        described.name,
        help=described.help,
        commands=[_Described(command) for command in described.commands.values()],
        params=_params(COMMON),
        callback=lambda **_: None,
        no_args_is_help=False,
        subcommand_metavar="COMMAND …",
    )
    below.default = described.default
    return below


def help_of(described: Command) -> str:
    """For a command that gets every word as it came."""
    command = _built(described)
    return command.get_help(click.Context(command, info_name=f"snapstore {described.name}"))


def _with_values(options: tuple[Option, ...], args: list[str]) -> list[str]:
    """click would take the next word for a value that was left out: `undo --merge 2`."""
    bare = {flag: f"{flag}={option.bare}" for option in options if option.bare for flag in option.flags}
    end = args.index("--") if "--" in args else len(args)
    return [*(bare.get(arg, arg) for arg in args[:end]), *args[end:]]


def _params(options: tuple[Option, ...]) -> list[click.Parameter]:
    return [_param(option) for option in options]


def _param(option: Option) -> click.Option:
    names = [*option.flags, option.name]
    if not option.metavar:
        return click.Option(names, is_flag=True, help=option.help)
    kind = _Optional if option.bare else click.Option
    return kind(
        names,
        metavar=option.metavar,
        type=_Type(option),
        multiple=option.many,
        help=option.help,
        shell_complete=_sessions if option.complete == "session" else None,
    )


class _Optional(click.Option):
    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return record and (record[0].replace(" [=", "[="), record[1])


def _operands(operands: tuple[Operand, ...]) -> list[click.Parameter]:
    return [
        click.Argument(
            [operand.name],
            metavar=operand.metavar,
            required=operand.required and not operand.dashed,
            nargs=-1 if operand.many else 1,
            type=_operand_type(operand),
        )
        for operand in operands
    ]


def _operand_type(operand: Operand) -> click.ParamType[Any]:
    if operand.choices:
        return click.Choice(operand.choices)
    if operand.complete:
        return click.Path(file_okay=operand.complete == "file")
    return click.UNPROCESSED if operand.many else click.STRING


class _Type(click.ParamType[Any]):
    """An option's own conversion, as click wants it."""

    def __init__(self, option: Option) -> None:
        self._option = option
        self.name = option.metavar

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._option.convert(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        if self._option.complete == "folder":
            return click.Path(file_okay=False).shell_complete(ctx, param, incomplete)
        return []


def _sessions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    from click.shell_completion import CompletionItem

    from snapstore.errors import SnapstoreError
    from snapstore.timeline.store import Store

    try:
        with Store.open(".") as store:
            return [CompletionItem(name) for name in store.sessions() if name.startswith(incomplete)]
    except (SnapstoreError, OSError):
        return []


def _version() -> click.Option:
    def show(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            sys.stdout.write(f"snapstore {__version__}\n")
            ctx.exit()

    return click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=show, help="Show the version."
    )


def _usage(error: click.exceptions.UsageError) -> Usage:
    command = error.ctx.command_path if error.ctx is not None else "snapstore"
    return Usage(" ".join(error.format_message().split()), f"See `{command} --help`.")
