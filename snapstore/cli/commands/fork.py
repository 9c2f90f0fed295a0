"""`snapstore fork`: continue the agent's conversation from an earlier turn."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from snapstore.agents.fork import ConversationFork, ForkResult
from snapstore.api import Session
from snapstore.cli.context import Context
from snapstore.cli.move_command import carry_out, move_sentence
from snapstore.cli.move_description import FollowUp, MoveDescription
from snapstore.cli.options import MoveCommand, common_options, travel_options
from snapstore.cli.output import BOLD, DIM, YELLOW, Output, safe
from snapstore.cli.param_types import TARGET
from snapstore.cli.paths import shell_word
from snapstore.errors import Failed, Usage

if TYPE_CHECKING:
    from snapstore.surface.records.moves import MoveRecord


@click.command(cls=MoveCommand)
@click.argument("target", metavar="[TARGET]", required=False, type=TARGET)
@click.option("--name", metavar="TITLE", help="Title of the new conversation.")
@click.option("--exec", "run", is_flag=True, help="Run the command instead of printing it.")
@click.option("--compacted", is_flag=True, help="Fork even from before a compaction, from the recorded lines.")
@travel_options
@common_options
def fork(context: Context, *, target: str | None, name: str | None, run: bool, compacted: bool, **options: Any) -> int:
    """Continue the agent's conversation from here in a new one.

    With TARGET, from there: the files go there too. The existing conversation stays untouched; the command that
    continues the new one is printed.
    """
    return fork_conversation(context, target=target, name=name, run=run, compacted=compacted, **options)


def fork_conversation(
    context: Context,
    *,
    target: str | None,
    name: str | None = None,
    run: bool = False,
    compacted: bool = False,
    **options: Any,
) -> int:
    """Move to the target and fork the conversation there."""
    if options["files_only"]:
        raise Usage("a fork concerns the conversation, which --files-only leaves alone", "Use `goto` for files alone.")
    made: list[_ForkFollowUp] = []

    def then(session: Session) -> FollowUp:
        made.append(_ForkFollowUp(ConversationFork(session, title=name, compacted=compacted).run(), session, run))
        return made[0]

    address = target if target is not None else "@"
    move = MoveDescription(
        ["fork", *([target] if target is not None else [])],
        lambda session, how: session.plan_goto(address, **how),
        ask=lambda plan: f"Fork the conversation after turn {plan.turn}? {move_sentence(plan)}",
        nothing="",
        then=then,
    )
    status = carry_out(context, move, options)
    if run and status == 0 and made and not options["preview"]:
        return _run(made[0].forked.command)
    return status


class _ForkFollowUp(FollowUp):
    def __init__(self, forked: ForkResult, session: Session, run: bool) -> None:
        self.forked = forked
        self._root = session.store.root
        self._run = run

    def add_to(self, record: MoveRecord) -> MoveRecord:
        return record.with_fork(self.forked)

    def tell(self, out: Output) -> None:
        forked = self.forked
        if forked.fresh:
            out.line("The first prompt is undone: the conversation starts from the beginning.")
        elif forked.known is not None:
            title = f": {safe(forked.known.title)}" if forked.known.title else ""
            out.line(f"Forked the conversation after turn {forked.turn}{title}")
            out.line(f"  The original stays as it is: {safe(forked.parent)}", DIM)
        for notice in forked.notices:
            out.line(f"Note: {safe(notice)}", YELLOW)
        if not self._run:
            command = " ".join(shell_word(word) for word in forked.command)
            out.line(f"Continue with: {out.paint(command, BOLD)}")


def _run(command: list[str]) -> int:
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise Failed(
            f"{command[0]}: {error.strerror}", f"The fork is ready. Continue with: {' '.join(command)}"
        ) from None
