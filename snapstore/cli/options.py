"""How a command is described: once, for the small parser, for click and for the completion of shells."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Function = Callable[..., int]
    Convert = Callable[[str], Any]


class Option:
    """`--agent NAME`, or without a metavar a flag. `convert` raises ValueError with a sentence for people. With `bare`
    the value may be left out, and comes after `=` only: `--merge` is what `bare` says, `--merge=markers` another."""

    __slots__ = ("bare", "complete", "convert", "flags", "help", "many", "metavar", "name")

    def __init__(
        self,
        name: str,
        flags: str,
        help: str,
        *,
        metavar: str = "",
        convert: Convert = str,
        many: bool = False,
        complete: str = "",
        bare: str = "",
    ) -> None:
        self.name = name
        self.flags = tuple(flags.split())
        self.help = help
        self.metavar = metavar
        self.convert = convert
        self.many = many
        self.complete = complete
        self.bare = bare


class Operand:
    """A word that is not an option. `many` takes all that is left; `dashed` only what comes after `--`."""

    __slots__ = ("choices", "complete", "dashed", "many", "metavar", "name", "required")

    def __init__(
        self,
        name: str,
        metavar: str,
        *,
        required: bool = False,
        many: bool = False,
        dashed: bool = False,
        choices: tuple[str, ...] = (),
        complete: str = "",
    ) -> None:
        self.name = name
        self.metavar = metavar
        self.required = required
        self.many = many
        self.dashed = dashed
        self.choices = choices
        self.complete = complete


class Command:
    """What a command is called, takes and does. With `verbatim` its operands end its options (`run`); with `raw` it
    has no options at all and gets every word as it came (`git`)."""

    __slots__ = ("function", "help", "name", "operands", "options", "raw", "verbatim")

    def __init__(
        self,
        name: str,
        function: Function,
        help: str,
        *,
        options: tuple[Option, ...] = (),
        operands: tuple[Operand, ...] = (),
        verbatim: bool = False,
        raw: bool = False,
    ) -> None:
        self.name = name
        self.function = function
        self.help = help
        self.options = options
        self.operands = operands
        self.verbatim = verbatim
        self.raw = raw


class Family:
    """Commands below one word: `turn begin`, `turn end`. The word alone is the `default` one of them: `ops` is
    `ops list`."""

    __slots__ = ("commands", "default", "help", "name")

    def __init__(self, name: str, help: str, commands: tuple[Command, ...], *, default: str = "") -> None:
        self.name = name
        self.help = help
        self.commands: Mapping[str, Command] = {command.name: command for command in commands}
        self.default = default


FOLDER = Option("folder", "-C", "Work as if started in this folder.", metavar="DIR", many=True, complete="folder")
SESSION = Option(
    "session",
    "--session",
    "Which session: else $SNAPSTORE_SESSION, else `shell` to record, and the last active one to read.",
    metavar="NAME",
    complete="session",
)
JSON = Option("json", "--json", "Print one JSON document, and nothing else, on standard output.")
DEBUG = Option("debug", "--debug", "Show where in the program an error happened.")
COMMON = (FOLDER, SESSION, JSON, DEBUG)

QUIET = Option("quiet", "-q --quiet", "Say nothing when all went well.")
AGENT = Option("agent", "--agent", "Who does the turn: the author of its commit.", metavar="NAME")


def _rows(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise ValueError(f"{text!r} is not a number of rows")
    return int(text)


ROWS = Option(
    "number",
    "-n",
    "Rows to show; 0 for all. Without it all, or on a terminal what fits.",
    metavar="N",
    convert=_rows,
)

# Where each command is described. They are loaded one at a time: a hook pays for its own only.
PLACES = {
    "init": "snapstore.cli.commands.init",
    "connect": "snapstore.cli.commands.connect",
    "disconnect": "snapstore.cli.commands.disconnect",
    "status": "snapstore.cli.commands.status",
    "run": "snapstore.cli.commands.run",
    "turn": "snapstore.cli.commands.turn",
    "sessions": "snapstore.cli.commands.sessions",
    "log": "snapstore.cli.commands.log",
    "show": "snapstore.cli.commands.show",
    "diff": "snapstore.cli.commands.diff",
    "tree": "snapstore.cli.commands.tree",
    "undolist": "snapstore.cli.commands.undolist",
    "undo": "snapstore.cli.commands.undo",
    "redo": "snapstore.cli.commands.redo",
    "fork": "snapstore.cli.commands.fork",
    "goto": "snapstore.cli.commands.goto",
    "earlier": "snapstore.cli.commands.earlier",
    "later": "snapstore.cli.commands.later",
    "switch": "snapstore.cli.commands.switch",
    "revert": "snapstore.cli.commands.revert",
    "apply": "snapstore.cli.commands.apply",
    "restore": "snapstore.cli.commands.restore",
    "branches": "snapstore.cli.commands.branches",
    "branch": "snapstore.cli.commands.branch",
    "compare": "snapstore.cli.commands.compare",
    "checkpoint": "snapstore.cli.commands.checkpoint",
    "checkpoints": "snapstore.cli.commands.checkpoints",
    "ops": "snapstore.cli.commands.ops",
    "recover": "snapstore.cli.commands.recover",
    "check": "snapstore.cli.commands.check",
    "config": "snapstore.cli.commands.config",
    "du": "snapstore.cli.commands.du",
    "stats": "snapstore.cli.commands.stats",
    "gc": "snapstore.cli.commands.gc",
    "prune": "snapstore.cli.commands.prune",
    "forget": "snapstore.cli.commands.forget",
    "remote": "snapstore.cli.commands.remote",
    "push": "snapstore.cli.commands.push",
    "pull": "snapstore.cli.commands.pull",
    "clone": "snapstore.cli.commands.clone",
    "export": "snapstore.cli.commands.export",
    "import": "snapstore.cli.commands.import_",
    "shell-init": "snapstore.cli.commands.shell_init",
    "mcp": "snapstore.cli.commands.mcp",
    "hook": "snapstore.cli.hook",
    "daemon": "snapstore.cli.commands.daemon",
    "git": "snapstore.cli.commands.git",
    "completion": "snapstore.cli.commands.completion",
    "tui": "snapstore.cli.commands.tui",
    "ui": "snapstore.cli.commands.ui",
}

ALIASES = {"rewind": "goto"}


def load(name: str) -> Command | Family | None:
    name = ALIASES.get(name, name)
    if name not in PLACES:
        return None
    from importlib import import_module

    described: Command | Family = import_module(PLACES[name]).COMMAND
    return described
