"""A project in memory and the small steps that stories about moves are told in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import Files, all_refs, assert_cache_adds_up, assert_whole, bit_by_bit, difference, on_disk, quick_folder

from snapstore import Conflict, Session, Store
from snapstore.git import refs as git_refs
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.moves.plan import REFUSE, Policy


@pytest.fixture(autouse=True)
def locks_of_the_dead_are_known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat locks of dead processes as dead at once, without the usual seconds of waiting."""
    monkeypatch.setattr(git_refs, "STALE_AFTER", 0.02)


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project, and its store, in memory: moves sync a lot, and these stories are many."""
    with quick_folder() as folder:
        monkeypatch.setenv("SNAPSTORE_HOME", str(folder / "stores"))
        (folder / "project").mkdir()
        yield folder / "project"


@pytest.fixture
def session(store: Store) -> Session:
    return store.session("s")


def undo(session: Session, count: int = 1, policy: str = REFUSE) -> None:
    session.move(session.plan_undo(count, policy=Policy(policy)))


def redo(session: Session, count: int | None = 1) -> None:
    session.move(session.plan_redo(count))


def stands_at(session: Session) -> int:
    graph = Graph(session.store, session.name)
    return graph.turn_of(graph.cursor)


def texts(root: Path) -> dict[str, str]:
    return {os.fsdecode(path): data.decode() for path, (_, data) in on_disk(root).items()}


def marks(root: Path, *besides: str) -> dict[str, tuple[int, int, int, int]]:
    """Return the stats that rewriting would change, for all files but some."""
    found = {}
    for path in on_disk(root):
        name = os.fsdecode(path)
        if name not in besides:
            st = os.lstat(root / name)
            found[name] = (st.st_ino, st.st_mtime_ns, st.st_ctime_ns, st.st_mode)
    return found


def refused(session: Session, root: Path, plan: object) -> Conflict:
    """Assert that a move is refused without changing a byte, a time or a ref."""
    before, refs = bit_by_bit(root), all_refs(session.store)
    with pytest.raises(Conflict) as error:
        session.move(plan)  # type: ignore[arg-type]
    assert (bit_by_bit(root), all_refs(session.store)) == (before, refs)
    return error.value


def there_and_back(session: Session, root: Path, states: list[Files]) -> None:
    """Move to the first state and back: step by step, all at once, and exactly."""
    count = len(states) - 1
    for number in reversed(range(count)):
        undo(session)
        assert not (wrong := difference(states[number], on_disk(root))), (number, wrong)
    for number in range(1, count + 1):
        redo(session)
        assert not (wrong := difference(states[number], on_disk(root))), (number, wrong)
    undo(session, count)
    assert on_disk(root) == states[0]
    redo(session, None)
    assert on_disk(root) == states[count]
    for number in range(count + 1):
        session.move(session.plan_goto(str(number), exact=True))
        assert not (wrong := difference(states[number], on_disk(root))), (number, wrong)
    assert_cache_adds_up(session.store)
    assert_whole(session.store)


def _size(store: Store) -> int:
    return sum(os.lstat(os.path.join(at, name)).st_size for at, _, names in os.walk(store.folder) for name in names)
