"""The page with agents that can do less: what they cannot do is off, and says why (G-21)."""

from __future__ import annotations

from pathlib import Path

from agents import Cursor
from helpers import turn
from page_story import Open, chromium, files, opened

from snapstore import Store

__all__ = ["chromium", "opened"]  # fixtures


def test_what_an_agent_cannot_do_is_off_and_says_why(store: Store, root: Path, opened: Open) -> None:
    """G-21, G-13: Cursor's chats cannot be undone from outside. Its files can."""
    agent = Cursor(root)
    agent.whole_turn("One", [("a.txt", "1\n")])
    agent.whole_turn("Two", [("a.txt", "2\n")])
    sight = opened()
    dialog = sight.menu(1, "Rewind to this turn")
    sight.says(dialog.get_by_role("alert"), "cannot be undone from outside")
    assert sight.button("Create Branch", dialog).is_disabled()
    sight.button("Cancel", dialog).click()
    assert files(root) == {"a.txt": "2\n"}
    sight.button("Undo", sight.restore(1)).click()
    sight.toast("Undone 1 turn")
    assert files(root) == {"a.txt": "1\n"}


def test_a_session_without_a_conversation_has_none_to_fork(store: Store, root: Path, opened: Open) -> None:
    """G-21: a person at a shell."""
    turn(store.session("shell"), root, "One", **{"a.txt": "1\n"})
    sight = opened()
    dialog = sight.menu(1, "Rewind to this turn")
    sight.says(dialog.get_by_role("alert"), "This session has no agent's conversation, so there is nothing to fork.")
    assert "This will create" not in sight.text(dialog), "it will not"
    assert sight.button("Create Branch", dialog).is_disabled()
