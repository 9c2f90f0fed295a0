"""The small parser: reads a command line by the descriptions, or gives up and leaves it to click to explain."""

from __future__ import annotations

from snapstore.cli.options import COMMON, Command, Family, Option, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Values = dict[str, Any]
    Request = tuple[Command, list[Values], Values]


class _NotUnderstood(Exception):
    pass


def parse(arguments: list[str]) -> Request | None:
    """The command, the common options as given at each word (outermost first), and the command's own values."""
    try:
        return _parse(arguments)
    except _NotUnderstood:
        return None


def separate(values: Values) -> tuple[Values, Values]:
    """Common options, and the command's own."""
    names = {option.name for option in COMMON}
    common = {name: value for name, value in values.items() if name in names}
    return common, {name: value for name, value in values.items() if name not in names}


def _parse(arguments: list[str]) -> Request:
    levels: list[Values] = []
    found: Command | Family | None = None
    at = 0
    while not isinstance(found, Command):
        if isinstance(found, Family) and found.default and not _one_is_named(found, arguments, at):
            found = found.commands[found.default]
            break
        common, words, at, _ = _read(COMMON, arguments, at, first_word_ends=True)
        levels.append(common)
        if not words:
            raise _NotUnderstood
        found = found.commands.get(words[0]) if isinstance(found, Family) else load(words[0])
        if found is None:
            raise _NotUnderstood
    if found.raw:
        return found, levels, {found.operands[0].name: tuple(arguments[at:])}
    values, words, _, dashed = _read((*COMMON, *found.options), arguments, at, first_word_ends=found.verbatim)
    if found.verbatim:
        words = [*words, *dashed]
        dashed = []
    common, own = separate(values)
    levels.append(common)
    own.update(_place(found, words, dashed))
    return found, levels, own


def _one_is_named(family: Family, arguments: list[str], at: int) -> bool:
    try:
        words = _read(COMMON, arguments, at, first_word_ends=True)[1]
    except _NotUnderstood:  # an option of the default command
        return False
    return bool(words) and words[0] in family.commands


def _read(
    options: Iterable[Option], arguments: list[str], at: int, *, first_word_ends: bool
) -> tuple[Values, list[str], int, list[str]]:
    """Option values, words, where to go on, and what came after `--` (or after the first word, if that ends it)."""
    values: Values = {option.name: () if option.many else None if option.metavar else False for option in options}
    by_flag = {flag: option for option in options for flag in option.flags}
    words: list[str] = []
    while at < len(arguments):
        argument = arguments[at]
        at += 1
        if argument == "--":
            return values, words, len(arguments), arguments[at:]
        if argument == "-" or not argument.startswith("-"):
            words.append(argument)
            if first_word_ends:
                return values, words, at, arguments[at:]
            continue
        flag, equals, value = argument.partition("=") if argument.startswith("--") else (argument, "", "")
        option = by_flag.get(flag)
        if option is None:
            raise _NotUnderstood
        if not option.metavar:
            if equals:
                raise _NotUnderstood
            values[option.name] = True
            continue
        if option.bare and not equals:
            values[option.name] = option.bare
            continue
        if not equals:
            if at == len(arguments):
                raise _NotUnderstood
            value = arguments[at]
            at += 1
        try:
            converted = option.convert(value)
        except ValueError:
            raise _NotUnderstood from None
        values[option.name] = (*values[option.name], converted) if option.many else converted
    return values, words, at, []


def _place(command: Command, words: list[str], dashed: list[str]) -> Values:
    """Words to operands, in order."""
    placed: Values = {}
    if not any(operand.dashed for operand in command.operands):
        words, dashed = [*words, *dashed], []
    for operand in command.operands:
        source = dashed if operand.dashed else words
        if operand.many:
            placed[operand.name] = tuple(source)
            source.clear()
        else:
            placed[operand.name] = source.pop(0) if source else None
        if operand.required and not placed[operand.name]:
            raise _NotUnderstood
        if operand.choices and placed[operand.name] not in operand.choices:
            raise _NotUnderstood
    if words or dashed:
        raise _NotUnderstood
    return placed
