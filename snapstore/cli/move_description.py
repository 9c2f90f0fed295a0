"""The description of one move command: its arguments, its plan and its messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from snapstore.api import Session
from snapstore.cli.output import Output
from snapstore.cli.paths import shell_word
from snapstore.surface.move_request import MakePlan
from snapstore.timeline.moves.plan import Plan

if TYPE_CHECKING:
    from snapstore.surface.records.moves import MoveRecord


class MoveDescription:
    """The arguments of a move command, the function that makes its plan, and its messages."""

    __slots__ = (
        "ask",
        "cancel",
        "differing",
        "done",
        "nothing",
        "patch",
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
        nothing: str = "Nothing to do: everything is already in that state.",
        reverts: bool = False,
        then: Callable[[Session], FollowUp] | None = None,
    ) -> None:
        self.words = words
        self.plan = plan
        self.ask = ask  # makes the confirmation question
        self.nothing = nothing  # the message when there is nothing to do
        self.reverts = reverts  # whether the report calls files "reverted" instead of "changed"
        self.then = then  # runs after the move
        self.verb = words[0] if words[0] != "ops" else "ops undo"
        self.root = b""
        self.differing: dict[bytes, list[str]] = {}  # lines that differ in files with conflicts
        self.program = "snapstore"
        self.preview = self.yes = self.cancel = self.done = self.patch = False

    def command(self, *more: str) -> str:
        """Return this command with more options, as a line to type in a shell."""
        words = [shell_word(word) for word in self.words]
        end = words.index("--") if "--" in words else len(words)
        return " ".join((self.program, *words[:end], *more, *words[end:]))


class FollowUp:
    """The result of the action that followed a move, reported with the move."""

    def add_to(self, record: MoveRecord) -> MoveRecord:
        """Return the move's record with this result added."""
        raise NotImplementedError

    def tell(self, out: Output) -> None:
        """Print this result after the report of the move."""
        raise NotImplementedError
