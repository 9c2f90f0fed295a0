"""Saved at the ends of turns, and on a timer while one is open (S3-24)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import all_refs, assert_equal, assert_whole, git, killed_at, on_disk, tip, write

from snapstore import Session, Store
from snapstore.store import log
from snapstore.timeline.maintenance import gc

REF = "refs/snapstore/progress/s"


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def session(root: Path, clock: Clock) -> Iterator[Session]:
    """Saves every ten minutes."""
    for name in ("a", "b", "other"):
        write(root / name, "0")
    with Store.open(root, create=True, clock=clock) as store:
        store.configure(save_every=600)
        yield store.session("s")


def saved(session: Session, path: str) -> bytes | None:
    if REF not in all_refs(session.store):
        return None
    return git(session.store.shadow.git_dir, "show", f"{REF}:{path}")


def test_what_an_open_turn_has_named_is_saved_every_so_often(root: Path, session: Session, clock: Clock) -> None:
    session.begin("a long one")
    session.touch([root / "a"])
    write(root / "a", "1")
    write(root / "other", "not named")
    clock.now += 599
    session.touch([root / "a"], after=True)
    assert saved(session, "a") is None
    clock.now += 1
    session.touch([root / "b"])
    assert (saved(session, "a"), saved(session, "other")) == (b"1", b"0")
    write(root / "a", "2")
    clock.now += 300
    session.touch([root / "a"])
    assert saved(session, "a") == b"1"
    clock.now += 300
    session.touch([], shell=True)
    assert saved(session, "a") == b"2"
    assert "In progress: a long one" in git(session.store.shadow.git_dir, "log", "-1", "--format=%s", REF).decode()
    gc.collect(session.store, grace=0)
    assert saved(session, "a") == b"2"
    assert_whole(session.store)


@pytest.mark.parametrize("how", ["end", "cancel", "interrupted", "unchanged"])
def test_it_goes_with_the_turn_however_that_ends(root: Path, session: Session, clock: Clock, how: str) -> None:
    session.begin("x")
    session.touch([root / "a"])
    write(root / "a", "1")
    clock.now += 601
    session.touch([root / "a"], after=True)
    assert REF in all_refs(session.store)
    if how == "end":
        session.end()
    elif how == "cancel":
        session.cancel()
    elif how == "interrupted":
        session.begin("the next")
    else:
        write(root / "a", "0")
        assert session.end_if_changed() is None
    assert REF not in all_refs(session.store)
    if how == "end":
        assert_equal(session.store, tip(session.store, "s"), on_disk(root))
    assert_whole(session.store)


def test_unless_it_is_set_nothing_is_saved_on_the_way(root: Path, session: Session, clock: Clock) -> None:
    session.store.configure(save_every=0)
    session.begin("x")
    clock.now += 10**6
    write(root / "a", "1")
    session.touch([root / "a"], after=True)
    assert REF not in all_refs(session.store)


def test_a_save_that_fails_fails_no_touch(root: Path, session: Session, clock: Clock) -> None:
    store = session.store
    session.begin("x")
    session.touch([root / "a"])
    clock.now += 601
    Path(store.shadow.git_dir, "refs/snapstore/progress").write_text("in the way")
    session.touch([root / "a"])
    assert "could not be saved" in log.last(f"{store.folder}/log")[-1]
    write(root / "a", "1")
    session.end()
    assert_equal(store, tip(store, "s"), on_disk(root))


def test_killed_while_it_saves_the_turn_is_whole(root: Path, session: Session, clock: Clock) -> None:
    """G-37"""
    session.begin("x")
    session.touch([root / "a"])
    nth = 0
    while True:
        nth += 1
        clock.now += 601
        write(root / "a", str(nth))
        going_on = killed_at(nth, lambda: Store.open(root, clock=clock).session("s").touch([root / "a"], after=True))
        with Store.open(root, clock=clock) as after:
            assert after.open_turn("s") is not None
            assert_whole(after)
        if not going_on:
            break
    assert nth > 10
    assert saved(session, "a") == str(nth).encode()
    with Store.open(root, clock=clock) as after:
        after.session("s").end()
        assert REF not in all_refs(after)
        assert_equal(after, tip(after, "s"), on_disk(root))
