"""What somebody deleted or damaged by hand in a store is made again, or the message says how to mend it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers import all_refs, assert_whole, git, on_disk, turn, write

from snapstore import Corrupt, Session, Store
from snapstore.timeline.history.history import History
from snapstore.timeline.maintenance.check import Check

CURSOR = "refs/snapstore/cursor/s"


@pytest.fixture
def session(root: Path, store: Store) -> Session:
    session = store.session("s")
    for number in (1, 2, 3):
        turn(session, root, f"Turn {number}", file=f"{number}\n")
    return session


def reopened(session: Session) -> Session:
    session.store.close()
    return Store.open(session.store.root).session("s")


def forget_the_cursor(session: Session) -> None:
    git(session.store.shadow.git_dir, "update-ref", "--no-deref", "-d", CURSOR)


def turns(session: Session) -> list[int | None]:
    return [node.turn for node in History(session).nodes()]


@pytest.mark.parametrize("undone", [0, 2])
def test_a_cursor_that_was_deleted_is_made_again_where_it_stood_G_17(session: Session, root: Path, undone: int) -> None:
    """At the tip of its branch, or where an undo left it."""
    if undone:
        session.move(session.plan_undo(undone))
    refs, disk = all_refs(session.store), on_disk(root)
    forget_the_cursor(session)
    session = reopened(session)
    assert "s" in session.store.sessions()
    assert turns(session) == [None, 1, 2, 3]
    assert all_refs(session.store) == refs
    value = session.store.shadow.refs.value(CURSOR)
    assert value == ("refs/heads/s/main" if not undone else bytes.fromhex(refs[CURSOR]))
    if undone:
        session.move(session.plan_redo(undone))
        assert on_disk(root) == {b"file": (b"100644", b"3\n")}
    else:
        session.move(session.plan_undo())
        session.move(session.plan_ops_undo())
        assert on_disk(root) == disk
    assert_whole(session.store)


def test_so_is_one_that_was_deleted_while_a_turn_was_open_G_17(session: Session, root: Path) -> None:
    said: list[str] = []
    session.begin("Turn 4")
    write(root / "file", "4\n")
    forget_the_cursor(session)
    session.store.close()
    with Store.open(root, say=said.append) as store:
        session = store.session("s")
        session.open_turn().end(scan=True)
        assert turns(session) == [None, 1, 2, 3, 4]
        assert said == ["the cursor of session s was gone; it is back on branch main"]
        assert [name for name in all_refs(store) if name.startswith("refs/heads/s/")] == ["refs/heads/s/main"]
        assert_whole(store)


def test_a_turn_after_it_goes_on_where_the_session_stood_G_17(session: Session, root: Path) -> None:
    forget_the_cursor(session)
    session = reopened(session)
    turn(session, root, "Turn 4", file="4\n")
    assert turns(session) == [None, 1, 2, 3, 4]


def test_a_cursor_of_zeros_is_mended_as_the_message_says(session: Session) -> None:
    Path(session.store.shadow.git_dir, CURSOR).write_bytes(b"\0" * 30)
    with pytest.raises(Corrupt) as caught:
        History(reopened(session)).nodes()
    path = re.search(r"Remove (\S+/cursor/s)\b", caught.value.hint)
    assert path is not None
    Path(path[1]).unlink()
    assert turns(session) == [None, 1, 2, 3]


@pytest.mark.parametrize("packed", [False, True])
def test_a_head_of_zeros_is_found_by_check_and_mended_as_the_message_says(session: Session, packed: bool) -> None:
    """git runs nothing in a store whose HEAD it cannot read, so the message must not ask for that."""
    git_dir = session.store.shadow.git_dir
    if packed:
        git(git_dir, "pack-refs", "--all")
    Path(git_dir, "HEAD").write_bytes(b"\0" * 30)
    session = reopened(session)
    (problem,) = Check(session.store).run().problems
    assert problem.where == "HEAD" and problem.refusal is not None
    advice = re.search(r"`(ref: [^`]+)`.* (\S+/HEAD)\b", problem.refusal.hint)
    assert advice is not None and advice[1] == "ref: refs/heads/s/main"
    Path(advice[2]).write_text(f"{advice[1]}\n")
    assert session.store.active_session() == "s"
    assert_whole(session.store)


@pytest.mark.parametrize("how", ["deleted", "packed-refs of zeros"])
def test_a_branch_that_is_gone_is_found_by_check_and_brought_back_as_the_message_says(
    session: Session, root: Path, how: str
) -> None:
    git_dir = session.store.shadow.git_dir
    if how == "deleted":
        git(git_dir, "update-ref", "-d", "refs/heads/s/main")
    else:
        git(git_dir, "pack-refs", "--all")
        Path(git_dir, "packed-refs").write_bytes(b"\0" * 200)
        session = reopened(session)
        with pytest.raises(Corrupt) as caught:
            History(session).nodes()
        damaged = re.search(r"(\S+/packed-refs)\b", caught.value.hint)
        assert damaged is not None
        Path(damaged[1]).rename(root.parent / "away")
    session = reopened(session)
    problems = Check(session.store).run().problems
    (problem,) = [one for one in problems if "refs/heads/s/main" in one.message]
    assert problem.refusal is not None
    found = git(git_dir, "fsck", "--lost-found", may_fail=True).decode()
    tips = [line.split()[2] for line in found.splitlines() if line.startswith("dangling commit")]
    lost = next(tip for tip in tips if b"Turn 3" in git(git_dir, "log", "-1", "--format=%B", tip))
    advice = re.search(r"`git --git-dir \S+ (update-ref [^`]+)`", problem.refusal.hint)
    assert advice is not None
    git(git_dir, *advice[1].replace("COMMIT", lost).split())
    assert turns(reopened(session)) == [None, 1, 2, 3]


def test_a_turn_that_begins_anew_because_its_branch_was_deleted_leaves_a_note(session: Session, root: Path) -> None:
    git(session.store.shadow.git_dir, "update-ref", "-d", "refs/heads/s/main")
    turn(session, root, "Turn 1 again", file="4\n")
    assert turns(session) == [None, 1]
    assert "refs/heads/s/main was deleted" in Path(session.store.folder, "log/errors").read_text()
