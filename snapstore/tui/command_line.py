"""Parse commands typed after `:`.

Commands are the long forms of keys, plus those that need a word or a number. As in Vim, an unambiguous prefix of a name
is enough.
"""

from __future__ import annotations

from collections.abc import Callable

from snapstore.base.text import shorten
from snapstore.errors import Usage
from snapstore.surface.wording import count, count_or_duration

LONGEST = 1000


class Command:
    """A parsed command: its name, and its operand converted to the right type."""

    __slots__ = ("name", "operand")

    def __init__(self, name: str, operand: object = None) -> None:
        self.name = name
        self.operand = operand


def _number(text: str | None) -> int:
    return count(text)


def _number_or_all(text: str | None) -> int | None:
    return None if text == "all" else count(text)


def _nothing(text: str | None) -> None:
    if text is not None:
        raise Usage(f"unexpected argument {shorten(text, 40)!r}", "This command takes no arguments.")


def _one_word(what: str) -> Callable[[str | None], str]:
    def word(text: str | None) -> str:
        if text is None or " " in text:
            raise Usage(
                f"{what} is missing" if text is None else f"{shorten(text, 40)!r} is not {what}", "Give one word."
            )
        return text

    return word


def _address_or_selected(text: str | None) -> str | None:
    return None if text is None else _one_word("a turn")(text)


COMMANDS: dict[str, tuple[Callable[[str | None], object], str, str]] = {
    "undo": (_number, "[N]", "undo the last turn, or the last N"),
    "redo": (_number_or_all, "[N|all]", "redo what was undone"),
    "earlier": (count_or_duration, "[N|90s|5m|2h|1d]", "go back in time, across all branches"),
    "later": (count_or_duration, "[N|90s|5m|2h|1d]", "go forward in time"),
    "goto": (_one_word("a turn, branch or checkpoint"), "TURN", "go to 5, #12, a branch, name:5, a checkpoint, a hash"),
    "switch": (_one_word("a branch"), "BRANCH", "go to the end of a branch"),
    "revert": (_address_or_selected, "[TURN]", "undo one turn, by default the selected one, and keep later ones"),
    "checkpoint": (_one_word("a name"), "NAME", "pin a name to the selected node"),
    "undolist": (_nothing, "", "list the last turn of every line"),
    "branches": (_nothing, "", "list branches; switch, rename, archive"),
    "sessions": (_nothing, "", "list sessions and their forks; show another"),
    "back": (_nothing, "", "undo the last move or branch change"),
    "cancel": (_nothing, "", "close the open turn, as interrupted"),
    "help": (_nothing, "", "show keys and commands"),
    "quit": (_nothing, "", "leave"),
}
_ALIASES = {"q": "quit", "q!": "quit", "quit!": "quit", "h": "help", "u": "undo", "red": "redo", "b": "branches"}


def parse(text: str) -> Command | None:
    """Parse a command, or return None for an empty text. Raises Usage."""
    words = text.strip().lstrip(":").strip()
    if not words:
        return None
    if len(words) > LONGEST:
        raise Usage("the command is too long", "`:help` lists the commands.")
    name, _, rest = words.partition(" ")
    found = _find(name)
    try:
        return Command(found, COMMANDS[found][0](rest.strip() or None))
    except Usage as error:
        usage = f":{found} {COMMANDS[found][1]}".strip()
        raise Usage(f":{found}: {error.message}", f"{error.hint} `{usage}`".strip()) from None


def _find(name: str) -> str:
    if name in COMMANDS or name in _ALIASES:
        return _ALIASES.get(name, name)
    close = [known for known in COMMANDS if known.startswith(name)]
    if len(close) == 1:
        return close[0]
    if close:
        raise Usage(f"`:{name}` may mean {' or '.join(f'`:{known}`' for known in close)}", "Type more letters.")
    raise Usage(f"there is no command `:{shorten(name, 40)}`", f"Commands: {', '.join(COMMANDS)}.")
