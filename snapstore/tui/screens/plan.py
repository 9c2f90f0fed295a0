"""The plan, shown before a move that needs confirmation (C13).

Such a move undoes or redoes more than one turn, removes a file, resolves a conflict or is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Static

from snapstore.base.text import and_more, path_text
from snapstore.surface.wording import action_word, by_urgency, remark
from snapstore.timeline.moves.plan import CONFLICT, CONVERSATION, FILES, KEPT, REMOVE, SKIPPED, WRITE, Plan
from snapstore.tui.move_steps import PlannedMove
from snapstore.tui.screens.ask import AskingScreen
from snapstore.tui.tree_app import TreeApp
from snapstore.tui.widgets.lines import LinesView, styled

_COLOURS = {CONFLICT: "$error", REMOVE: "$error", SKIPPED: "$warning", KEPT: "$quiet", WRITE: "$success"}
MOST_ROWS = 1000
LOOK_EVERY = 0.2  # seconds


class PlanScreen(AskingScreen[bool]):
    """What a move would do, path by path."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,y", "go", "go"),
        Binding("escape,n,q,ctrl+c", "leave", "cancel"),
    ]
    DEFAULT_CSS = """
    PlanScreen { align: center middle; }
    PlanScreen .box {
        width: 90%; max-width: 110; height: auto; max-height: 90%;
        background: $surface; border: round $primary; padding: 0 1;
    }
    PlanScreen LinesView { height: auto; max-height: 45vh; margin: 1 0; background: $surface; }
    PlanScreen #notice { color: $error; height: auto; display: none; }
    PlanScreen #keys { height: auto; }
    PlanScreen.-tiny #what, PlanScreen.-tiny #notice { max-height: 2; }
    PlanScreen.-tiny.-stale #what { display: none; }
    PlanScreen Button { margin: 0 2 0 0; }
    """
    app: TreeApp

    def __init__(self, planned: PlannedMove) -> None:
        super().__init__()
        self._planned = planned

    def compose(self) -> ComposeResult:
        planned = self._planned
        with Vertical(classes="box"):
            yield Static(
                styled((planned.intent[:1].upper() + planned.intent[1:], "bold"), f" and end at {planned.place}."),
                id="what",
            )
            if planned.first:
                yield Static(styled((planned.first, "$quiet")), classes="roomy")
            yield LinesView(id="rows")
            yield Static("", id="notice")
            with Horizontal(id="keys"):
                yield Button("Go (Enter)", variant="primary", compact=True, id="go")
                yield Button("Cancel (Esc)", compact=True, id="leave")

    def on_mount(self) -> None:
        rows = self.query_one("#rows", LinesView)
        rows.show_lines(plan_lines(self._planned.plan))
        self.set_focus(rows)
        self.set_interval(LOOK_EVERY, self._check)

    def _check(self) -> None:
        """Warn if the session has moved since the plan was made (G-08)."""
        if self.app.snapshot.cursor != self._planned.plan.start:
            notice = self.query_one("#notice", Static)
            notice.update(styled("The session has moved meanwhile: close this and try again."))
            notice.display = True
            self.add_class("-stale")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "go")

    def action_go(self) -> None:
        self.dismiss(True)

    def action_leave(self) -> None:
        self.dismiss(False)


def plan_lines(plan: Plan) -> Iterator[Content]:
    """Yield a line per path (`remove  new.txt`), most important first, then notes."""
    if plan.scope != CONVERSATION:
        shown = [path for path in plan.paths if path.action in (WRITE, REMOVE, CONFLICT) or path.settled]
        for path in by_urgency(shown)[:MOST_ROWS]:
            colour = "$warning" if path.settled else _COLOURS[path.action]
            text = remark(path)
            more = (f"  {text}", "$quiet") if text else ""
            yield styled((f"{action_word(path):<11}", colour), path_text(path.path), more)
        if len(shown) > MOST_ROWS:
            yield styled((and_more(len(shown), MOST_ROWS), "$quiet"))
        if not shown:
            yield styled(("No file will change.", "$quiet"))
    if plan.undone and plan.scope != FILES:
        yield styled((f"Messages removed: {plan.messages_removed}", "$quiet"))
    if plan.saves:
        yield styled(("What is on disk is saved first.", "$quiet"))
    for note in plan.notes:
        yield styled((f"Note: {note}", "$warning"))
