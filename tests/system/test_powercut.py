"""TESTING fault 12, power cuts: what was reported as done is there, and whatever was cut short is exactly old or
exactly new, on every file system and wherever store and project lie.

`powercut.py` cuts, `powercut_scenarios.py` says what must hold, `powercut_lab.py` chooses where. A seed chooses the
calls: POWERCUT_SEED=7 tries others. The summary of the run says how many cuts there were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from powercut import KINDS, missing
from powercut_lab import AFTER_SUCCESS, FORMER, Cut, Tally, cut_here, cut_often
from powercut_scenarios import SCENARIOS
from powercut_story import tell

# How often each command is cut in the long run.
DEEP_CUTS = {
    "ext4": 20,
    "ext4-writeback": 8,
    "ext4-nodelalloc": 4,
    "ext4-nodelalloc-writeback": 8,
    "xfs": 6,
    "btrfs": 6,
}
DEEP_CUTS_OF_TWO = {"ext4": 6, "ext4-writeback": 3, "xfs": 3, "btrfs": 3}

Cutting = Callable[..., None]


def passed(tally: Tally, record_property: Callable[[str, object], None]) -> None:
    """None may fail. The counts go into the summary."""
    record_property("power cuts", (tally.kind, tally.command, dict(tally.ends), len(tally.failures)))
    assert not tally.failures, f"{tally}\n" + "\n\n".join(one[-3000:] for one in tally.failures)
    assert tally.cuts > 0


def needs(kind: str) -> None:
    reason = missing(kind)
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture
def cutting(record_property: Callable[[str, object], None]) -> Cutting:
    """Cuts a command so many times."""

    def cut(command: str, kind: str, most: int, *, two: bool = False) -> None:
        needs(kind)
        passed(cut_often(command, kind, most, two=two), record_property)

    return cut


DONE = Cut(AFTER_SUCCESS, 0, "nothing")
ONCE_LOST: dict[str, tuple[str, str, bool, list[Cut]]] = {
    "zeros counted as the recorded file": (
        "end of unsynced files",
        "ext4-nodelalloc-writeback",
        False,
        [replace(DONE, synced="some")] * 8,
    ),
    "the user's file became zeros": (
        "undo",
        "ext4-nodelalloc-writeback",
        False,
        [Cut("fadvise64", number, "unrelated") for number in (1, 2, 5)],
    ),
    "a finished undo was carried out again": ("undo", "ext4", False, [replace(DONE, saved=FORMER)]),
    "loose objects of a checkout were empty": ("init in a loose checkout", "ext4", False, [DONE]),
    "the pack of a checkout was empty": ("init in a packed checkout", "xfs", False, [DONE]),
    "pushed refs were gone": ("push", "ext4", True, [DONE]),
    "a pack stayed apart for ever": ("gc with git", "ext4-nodelalloc-writeback", False, [DONE]),
    "a file was not seen": ("undo beside an open turn", "btrfs", False, [Cut("mkdirat", 1, "unrelated")]),
    "a temporary came back": ("undo beside an open turn", "btrfs", False, [replace(DONE, saved=FORMER)]),
    "a push left locks behind": ("push", "ext4", True, [Cut("fsync", number, "nothing") for number in (9, 11, 13)]),
}


@pytest.mark.parametrize("what", ONCE_LOST)
def test_what_power_cuts_once_lost(what: str, record_property: Callable[[str, object], None]) -> None:
    """Each of these failed when it was found."""
    command, kind, two, places = ONCE_LOST[what]
    needs(kind)
    passed(cut_here(command, kind, places, two=two), record_property)


@pytest.mark.parametrize("command", ["end by scan", "exact goto", "gc with git", "forget", "pull", "connect"])
def test_a_power_cut_now_and_then_on_ext4(cutting: Cutting, command: str) -> None:
    cutting(command, "ext4", 3)


@pytest.mark.parametrize(
    ("command", "kind"), [("undo", "xfs"), ("init in a packed checkout", "btrfs"), ("redo", "ext4-writeback")]
)
def test_a_power_cut_now_and_then_elsewhere(cutting: Cutting, command: str, kind: str) -> None:
    cutting(command, kind, 3)


def test_a_power_cut_now_and_then_with_store_and_project_on_two_disks(cutting: Cutting) -> None:
    cutting("undo", "ext4", 3, two=True)


@pytest.mark.deep
@pytest.mark.parametrize("two", [False, True], ids=["one disk", "two disks"])
@pytest.mark.parametrize("kind", KINDS)
def test_power_cuts_after_every_command_of_a_day(
    kind: str, two: bool, record_property: Callable[[str, object], None]
) -> None:
    """The real program, which says that it is done, and exits, and then the power goes."""
    needs(kind)
    passed(tell(kind, two=two), record_property)


@pytest.mark.deep
@pytest.mark.parametrize("command", SCENARIOS)
@pytest.mark.parametrize("kind", KINDS)
def test_power_cuts(cutting: Cutting, kind: str, command: str) -> None:
    cutting(command, kind, DEEP_CUTS[kind])


@pytest.mark.deep
@pytest.mark.parametrize("command", SCENARIOS)
@pytest.mark.parametrize("kind", DEEP_CUTS_OF_TWO)
def test_power_cuts_of_two_disks(cutting: Cutting, kind: str, command: str) -> None:
    cutting(command, kind, DEEP_CUTS_OF_TWO[kind], two=True)
