"""stats (S1-67): how often people go back, how many ways on there are, and how often a move was a mistake."""

from __future__ import annotations

from pathlib import Path

from commands import assert_record, snap, snap_json
from helpers import turn
from page_story import Open, chromium, opened

from snapstore import Store
from snapstore.surface.records.keeping import UseRecord

__all__ = ["chromium", "opened"]  # fixtures


def test_numbers_of_use_at_the_command_line(store: Store, root: Path) -> None:
    """S1-67: the share of sessions with a rewind, branches per session, the share of moves that were undone."""
    for name in ("a", "b"):
        session = store.session(name)
        turn(session, root, "One", **{name: "1\n"})
        turn(session, root, "Two", **{name: "2\n"})
    session.move(session.plan_undo())
    turn(session, root, "Another way", b="3\n")
    session.move(session.plan_goto("1"))
    session.move(session.plan_ops_undo())
    session.move(session.plan_undo())
    found = snap_json(root, "stats", "--json")
    assert_record(UseRecord, found)
    assert (found["sessions"], found["sessions_rewound"]) == (3, 1)  # the shell's first look is a session, too
    assert (found["rewound_percent"], found["branches"], found["branches_per_session"]) == (33.3, 4, 1.33)
    assert (found["moves"], found["moves_taken_back"], found["taken_back_percent"]) == (4, 1, 25.0)
    assert found["size_bytes"] > 0 and found["health"]["ok"] and found["health"]["hook_errors"] == []
    assert [" ".join(line.split()) for line in snap(root, "stats").stdout.splitlines()[:5]] == [
        "3 sessions",
        "33.3 % of them rewound 1 of 3",
        "1.33 branches per session 4 in all",
        "4 moves",
        "25 % of them undone 1 of 4",
    ]


def test_the_limit_of_the_store_is_told_with_its_size(store: Store, root: Path, opened: Open) -> None:
    """S1-64: at the command line and on the page."""
    turn(store.session("s"), root, "One", a="1\n")
    assert "in the store:" in snap(root, "stats").stdout
    snap(root, "config", "set", "max_store_size", "50MB")
    assert snap_json(root, "stats", "--json")["max_store_size"] == 50_000_000
    assert "in the store of 50 MB" in snap(root, "stats").stdout
    sight = opened()
    sight.says(sight.view("Statistics"), "store size of 50 MB")


def test_a_store_in_which_nothing_happened_yet(root: Path) -> None:
    snap(root, "init")
    found = snap_json(root, "stats", "--json")
    assert (found["sessions"], found["rewound_percent"], found["taken_back_percent"]) == (1, 0.0, 0.0)
    snap(root, "stats")
    assert snap_json(root.parent, "stats", "--json", status=13)["error"] == "no-store"
