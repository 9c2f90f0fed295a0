"""What a command asks of a move: the words that plan it, and how to speak of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from snapstore.api import Session
from snapstore.cli.output import Output
from snapstore.cli.paths import shell_word
from snapstore.timeline.moves.plan import Plan

if TYPE_CHECKING:
    from snapstore.surface.records.moves import MoveRecord

MakePlan = Callable[[Session, dict[str, Any]], Plan]


class Move:
    """One request for a move: the words that ask for it, and how to speak of it."""

    __slots__ = (
        "ask",
        "cancel",
        "nothing",
        "over",
        "plan",
        "preview",
        "program",
        "reverts",
        "root",
        "then",
        "verb",
        "words",
        "yes",
    )

    def __init__(
        self,
        words: list[str],
        plan: MakePlan,
        *,
        ask: Callable[[Plan], str],
        nothing: str = "Nothing to do: everything is as wanted already.",
        reverts: bool = False,
        then: Callable[[Session], Then] | None = None,
    ) -> None:
        self.words = words
        self.plan = plan
        self.ask = ask  # the question that a person is asked first
        self.nothing = nothing  # what to say where nothing was to be done
        self.reverts = reverts  # whether its files are "reverted", or "changed"
        self.then = then  # what follows the move
        self.verb = words[0] if words[0] != "ops" else "ops undo"
        self.root = b""
        self.program = "snapstore"
        self.preview = self.yes = self.cancel = self.over = False

    def command(self, *more: str) -> str:
        """The command again, to be typed, with more options."""
        words = [shell_word(word) for word in self.words]
        end = words.index("--") if "--" in words else len(words)
        return " ".join((self.program, *words[:end], *more, *words[end:]))


class Then:
    """What follows a move, told with it."""

    def told_in(self, record: MoveRecord) -> MoveRecord:
        """Return the record of the move with what followed it."""
        raise NotImplementedError

    def tell(self, out: Output) -> None:
        raise NotImplementedError
