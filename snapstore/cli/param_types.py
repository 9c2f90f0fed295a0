"""Types of click parameters: what they accept, and how a shell completes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from snapstore.cli import completers
from snapstore.errors import Usage, similar
from snapstore.store.settings import BY_NAME, duration
from snapstore.surface.wording import count, count_or_duration


class AnyPath(click.Path):
    """A path, completed by the shell and checked by the command itself."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value


class Converted(click.ParamType[Any]):
    """A value with its own syntax.

    `function` raises ValueError or Usage for a value that it does not accept.
    """

    def __init__(self, name: str, function: Callable[[str], Any]) -> None:
        self.name = name
        self._function = function

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._function(value)
        except Usage as error:
            self.fail(f"{error.message}. {error.hint}", param, ctx)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class WholeNumber(click.IntRange):
    """A number in a range.

    `what` describes the expected value in the error message.
    """

    def __init__(self, what: str, min: int, max: int) -> None:
        super().__init__(min, max)
        self._what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
                raise click.BadParameter(value)  # int() also accepts " 1", "1_0" and the digits of all scripts
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"{value!r} is not {self._what}", param, ctx)


class Known(click.ParamType[str]):
    """A name that is completed from the store and looked up by the command itself."""

    def __init__(self, name: str, *lists: completers.Names, files: bool = False):
        self.name = name
        self._lists = lists
        self._files = files

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = {item.value: item for names in self._lists for item in completers.quietly(names, ctx)}
        matching = [item for name, item in found.items() if name.startswith(incomplete)]
        return [*matching, CompletionItem(incomplete, type="file")] if self._files else matching


class Misspelled(click.BadParameter):
    """A value that is not allowed, with similar allowed values."""

    def __init__(
        self, message: str, possibilities: list[str], param: click.Parameter | None, ctx: click.Context | None
    ):
        super().__init__(message, ctx, param)
        self.possibilities = possibilities


class SuggestingChoice(click.Choice[str]):
    """A choice that suggests similar values for one it does not accept."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            raise Misspelled(error.message, similar(str(value), self.choices), param, ctx) from None


class Step(NamedTuple):
    """How far `earlier` and `later` go, as typed and as the plan's arguments."""

    text: str
    far: dict[str, int]


def _age(text: str) -> int:
    try:
        return count_or_duration(text)["seconds"]
    except (Usage, KeyError):
        raise ValueError(f"{text!r} is not a time; give 12h or 30d") from None


FILE = AnyPath()
FOLDER = AnyPath(file_okay=False)

COUNT = Converted("count", count)
STEP = Converted("step", lambda text: Step(text, count_or_duration(text)))
AGE = Converted("age", _age)
ROWS = WholeNumber("a number of rows", 0, 999_999_999)
PORT = WholeNumber("a port", 1, 65535)
DURATION = Converted("time", duration)
MAX_FILE_SIZE = Converted("size", BY_NAME["max_file_size"].convert)
MAX_BRANCHES = Converted("number", BY_NAME["max_branches"].convert)

SESSION = Known("session", completers.sessions)
BRANCH = Known("branch", completers.branches)
CHECKPOINT = Known("checkpoint", completers.checkpoints)
TARGET = Known("target", completers.branches, completers.checkpoints, completers.turns)
TARGET_OR_FILE = Known("target", completers.turns, files=True)
REMOTE = Known("remote", completers.remotes)
SETTING = Known("setting", completers.settings)
TRANSCRIPT_AGENT = Known("agent", completers.transcript_agents)


class OperationNumber(WholeNumber):
    """The number of an operation, completed from the store."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        items = completers.quietly(completers.operations, ctx)
        return [item for item in items if item.value.startswith(incomplete)]


OPERATION = OperationNumber("the number of an operation; `snapstore ops` lists them", 1, 10**18)
