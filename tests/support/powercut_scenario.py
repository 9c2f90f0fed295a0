"""What every scenario of a power cut has: a project to begin with, a command, and what must hold afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from commands import snap_json
from faults import NOW, age_locks

from snapstore import Store


class Scenario:
    """One command. `first` and `second` are folders, on one disk or on two."""

    moves_files = False  # so a file that the user saves before the cut may be in its way
    may_meet = False  # and one saved while the command is at work; it must not be one that replaces such files

    def __init__(self, first: Path, second: Path) -> None:
        self.home, self.root = first / "stores", second / "project"

    def prepare(self) -> None:
        """Put the starting state on the disks, durably."""

    def just_before(self) -> None:
        """Do what others do before the command without syncing."""

    def act(self) -> None:
        """Run the command."""
        raise NotImplementedError

    def confirm(self) -> None:
        """Assert that the command, when not cut, did what the test is about."""

    def state(self) -> object:
        """Return everything that the command changes, as one comparable value."""
        raise NotImplementedError

    def recover(self, *, program: bool) -> None:
        """Run the next command, as a user would."""
        age_locks(self.home)  # it takes a while to start a machine again
        if program:
            snap_json(self.root, "status", "--json", SNAPSTORE_HOME=str(self.home))
        else:
            self.opened().close()

    def check(self, old: object, new: object, *, done: bool, users: bytes | None, program: bool) -> str:
        """Raises AssertionError where something is lost; says on which side it came out."""
        self.recover(program=program)
        found = self.state()
        if users is not None:
            assert (self.root / "text").read_bytes() == users, "what the user saved was overwritten"
            found, old, new = (_without_text(state) for state in (found, old, new))
        assert found in (old, new), f"neither old nor new: {differing(old, found, new)}"
        side = "new" if found == new else "old"
        assert side == "new" or not done, f"reported as done, and not there: {differing(old, found, new)}"
        self.all_there(side)
        return side

    def all_there(self, side: str) -> None:
        """Assert that nothing recorded earlier is lost and that work can go on."""
        raise NotImplementedError

    def opened(self) -> Store:
        return Store.open(self.root, home=str(self.home), clock=lambda: NOW)


def differing(old: Any, found: Any, new: Any) -> object:
    """What keeps it from being the state that it is nearest to: part, name, expected, found."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return {"old": old, "found": found, "new": new}
    return min((list(_unlike(side, found)) for side in (old, new)), key=len)


def _unlike(expected: dict[str, Any], found: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    for part, value in found.items():
        if not isinstance(value, dict):
            if value != expected[part]:
                yield part, expected[part], value
            continue
        for name in value.keys() | expected[part].keys():
            if value.get(name) != expected[part].get(name):
                yield part, name, expected[part].get(name), value.get(name)


def _without_text(state: Any) -> Any:
    return {
        name: {key: one for key, one in part.items() if key != b"text"} if isinstance(part, dict) else part
        for name, part in state.items()
    }
