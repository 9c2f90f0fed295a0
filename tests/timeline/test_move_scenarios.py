"""The stories in which other tools lost their users' work, told again here with the ending they should have had."""

from __future__ import annotations

import os
import re
import shutil
from functools import partial
from pathlib import Path

import pytest
from commands import snap, snap_json
from helpers import (
    all_refs,
    assert_equal,
    assert_whole,
    bit_by_bit,
    git_in,
    in_commit,
    killed_at,
    line,
    on_disk,
    record,
    remove,
    turn,
    write,
)
from move_stories import (
    _size,
    locks_of_the_dead_are_known_at_once,
    marks,
    redo,
    refused,
    root,
    session,
    stands_at,
    texts,
    there_and_back,
    undo,
)

from snapstore import Conflict, Failed, Session, Store
from snapstore.base import platform
from snapstore.timeline.moves.plan import FORCE, MERGE, REFUSE, SKIP, Policy
from snapstore.worktree.write.writer import Writer

__all__ = ["locks_of_the_dead_are_known_at_once", "root", "session"]  # fixtures


# Scenarios that lost other tools' users their work.


def test_undo_leaves_untracked_and_ignored_files_of_the_user_G_04(root: Path, session: Session) -> None:
    """C12: a restore that ran `git clean` took .env, node_modules and notes with it."""
    git_in(root, "init", "--quiet")
    write(root / ".gitignore", ".env\nnode_modules/\n*.log\n")
    write(root / "src/main.py", "0")
    write(root / ".env", "SECRET=1")
    write(root / "node_modules/lib/index.js", "lib")
    git_in(root, "add", "src")
    git_in(root, "commit", "--quiet", "-m", "first")
    turn(session, root, "work", src__main__py="1", src__new="new", deep__made="x")
    write(root / "notes.txt", "the user's, untracked, written since")
    write(root / "src/scratch", "the user's, beside the turn's files")
    write(root / "deep/keep.log", "ignored, in a folder that the turn made")
    mine = marks(root, "src/main/py", "src/new", "deep/made")
    for plan in (session.plan_undo, session.plan_redo, session.plan_undo):
        session.move(plan())
        assert {name: marks(root)[name] for name in mine} == mine
    assert not (root / "src/new").exists() and not (root / "deep/made").exists()


def test_an_exact_move_leaves_ignored_files_alone_too_G_04(root: Path, session: Session) -> None:
    write(root / ".gitignore", ".env\nnode_modules/\n")
    write(root / ".env", "SECRET=1")
    write(root / "node_modules/lib/index.js", "lib")
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2", b="2")
    write(root / "untracked", "the user's")
    mine = marks(root, "a", "b", "untracked")
    moved = session.move(session.plan_goto("1", exact=True))
    assert texts(root).keys() == {".gitignore", ".env", "node_modules/lib/index.js", "a"}
    assert marks(root, "a") == mine
    assert moved.safety_ref is not None  # an exact move takes the new file away, and keeps it
    assert in_commit(session.store, all_refs(session.store)[moved.safety_ref])[b"untracked"][1] == b"the user's"


def test_a_session_started_in_a_subfolder_does_not_restore_other_folders_G_15(root: Path, store: Store) -> None:
    """Weeks lie between: what others did meanwhile, elsewhere, is not this session's to put back."""
    write(root / "backend/api.py", "0")
    write(root / "frontend/app.js", "0")
    old = store.session("old")
    turn(old, root, "weeks ago", backend__api="1", frontend__app="1")
    for name in ("frontend/app.js", "frontend/new.js", "docs/guide.md"):
        write(root / name, "weeks of work, never recorded")
    with Store.open(root / "backend") as below:
        assert os.fsdecode(below.root) == str(root)
        late = below.session("late")
        with late.turn("a small change"):
            write(root / "backend/api.py", "2")
        before = marks(root, "backend/api.py")
        late.move(late.plan_undo())
        assert marks(root, "backend/api.py") == before
        assert (root / "backend/api.py").read_text() == "0"
        late.move(late.plan_goto("0", exact=True))
        assert marks(root, "backend/api.py") == before
    old.move(old.plan_undo())
    assert {name: marks(root)[name] for name in ("frontend/app.js", "frontend/new.js", "docs/guide.md")} == {
        name: before[name] for name in ("frontend/app.js", "frontend/new.js", "docs/guide.md")
    }
    assert (root / "frontend/app.js").read_text() == "weeks of work, never recorded"


def test_undo_of_a_turn_that_changed_nothing_alters_nothing_G_26(root: Path, session: Session) -> None:
    turn(session, root, "one", a="1", b="1")
    turn(session, root, "just talk")
    write(root / "a", "mine")
    remove(root / "b")
    write(root / "c", "mine too")
    before = bit_by_bit(root)
    moved = session.move(session.plan_undo())
    assert bit_by_bit(root) == before
    assert (moved.turns_undone, moved.files_reverted, moved.snapshot_restored) == (1, [], None)
    session.move(session.plan_redo())
    assert bit_by_bit(root) == before


def test_redo_rewrites_no_other_file_and_no_mtime_G_32(root: Path, session: Session) -> None:
    for number in range(50):
        write(root / f"src/{number % 5}/{number}", str(number))
    turn(session, root, "one", src__0__0="changed", src__0__5="changed", made="new")
    names = ("src/0/0", "src/0/5", "made")
    before = marks(root, *names)
    undo(session)
    assert marks(root, *names) == before
    redo(session)
    assert marks(root, *names) == before
    session.move(session.plan_goto("0", exact=True))
    session.move(session.plan_goto("1", exact=True))
    assert marks(root, *names) == before


def test_a_nested_repository_without_commits_does_not_stop_the_clock_G_27_G_28(root: Path, session: Session) -> None:
    """`git add` fails on one, and an old tree was taken for the present: undo then wiped hours of work."""
    git_in(root, "init", "--quiet")
    turn(session, root, "one", a="1")
    (root / "vendor/lib").mkdir(parents=True)
    git_in(root / "vendor/lib", "init", "--quiet")
    write(root / "vendor/lib/code", "never committed")
    turn(session, root, "two", a="2", vendor__lib__more="by the turn")
    turn(session, root, "three", a="3", vendor__lib__code="changed by the turn")
    assert_equal(session.store, line(session.store, "s")[-1]["commit"], on_disk(root))
    own = bit_by_bit(root / "vendor/lib/.git")
    undo(session)
    assert texts(root) == {"a": "2", "vendor/lib/code": "never committed", "vendor/lib/more": "by the turn"}
    undo(session)
    assert texts(root) == {"a": "1", "vendor/lib/code": "never committed"}
    undo(session)
    assert texts(root) == {"vendor/lib/code": "never committed"}
    assert bit_by_bit(root / "vendor/lib/.git") == own


def test_undo_in_one_session_leaves_anothers_file_alone_G_31(root: Path, store: Store) -> None:
    one, two = store.session("one"), store.session("two")
    write(root / "a", "0")
    write(root / "b", "0")
    turn(one, root, "one's", a="one 1")
    turn(two, root, "two's", b="two 1")
    turn(one, root, "one's again", a="one 2")
    before = marks(root, "a")
    undo(one, 2)
    assert texts(root) == {"a": "0", "b": "two 1"} and marks(root, "a") == before
    undo(two)
    assert texts(root) == {"a": "0", "b": "0"}
    redo(one, 2)
    redo(two)
    turn(two, root, "over one's file", a="two on top")
    error = refused(one, root, one.plan_undo())
    assert error.details["conflicts"][0].changed_by == "turn 2 of session two"  # type: ignore[index]
    undo(two)
    undo(one)
    assert texts(root) == {"a": "one 1", "b": "two 1"}


def test_two_sessions_whose_turns_overlap_undo_only_their_own_G_31(root: Path, store: Store) -> None:
    one, two = store.session("one"), store.session("two")
    write(root / "shared", "0")
    first = one.begin("one at work")
    first.touch(root / "a")
    second = two.begin("two at work")
    second.touch(root / "b")
    write(root / "a", "one")
    write(root / "b", "two")
    second.end(scan=True)
    first.end(scan=True)
    undo(one)
    assert texts(root) == {"shared": "0", "b": "two"}
    undo(two)
    assert texts(root) == {"shared": "0"}


def test_undo_does_not_delete_a_file_too_large_to_be_captured_G_30(root: Path, session: Session) -> None:
    session.store.configure(max_file_size=1000)
    write(root / "grows", "small")
    turn(session, root, "zero", a="0")
    turn(session, root, "makes large ones", a="1", large="x" * 5000, grows="y" * 5000)
    assert {item["path"] for item in record(session.store, line(session.store, "s")[-1]["commit"])["left_out"]} == {
        "large",
        "grows",
    }
    before = marks(root, "a")
    for plan in (session.plan_undo, session.plan_redo, lambda: session.plan_goto("1", exact=True), session.plan_redo):
        session.move(plan())
        assert marks(root, "a") == before
    notes = session.plan_undo().notes
    assert any("large" in text for text in notes) and any("grows" in text for text in notes)


def test_a_file_deleted_then_recreated(root: Path, session: Session) -> None:
    write(root / "a", "0")
    states = [on_disk(root)]
    for texts_ in ({"a": None}, {"a": "recreated"}, {"a": None}, {"a": "0"}):
        turn(session, root, "again", **texts_)
        states.append(on_disk(root))
    with session.turn("deleted and recreated in one turn"):
        (root / "a").unlink()
        write(root / "a", "within one turn")
    states.append(on_disk(root))
    there_and_back(session, root, states)


def test_several_edits_of_one_file_in_one_turn_G_07_S0_02(root: Path, session: Session) -> None:
    """Swapping old and new strings back fails on repeated text; trees do not."""
    write(root / "a", "x = 1\nx = 1\nx = 1\n")
    states = [on_disk(root)]
    with session.turn("three edits") as open_turn:
        for old, new in (("x = 1", "y = 1"), ("y = 1", "x = 1"), ("x = 1\nx", "x = 2\nx")):
            open_turn.touch(root / "a")
            write(root / "a", (root / "a").read_text().replace(old, new, 1))
            open_turn.touch(root / "a", after=True)
    states.append(on_disk(root))
    assert (root / "a").read_text() != "x = 1\nx = 1\nx = 1\n"
    there_and_back(session, root, states)


def test_a_write_over_an_existing_file_brings_the_old_bytes_back_G_01(root: Path, session: Session) -> None:
    """A Write was undone by deleting the file."""
    write(root / "named", b"\0old bytes\r\n\xff")
    write(root / "scanned", b"also old")
    states = [on_disk(root)]
    with session.turn("Write") as open_turn:
        open_turn.touch(root / "named")
        write(root / "named", "new")
    states.append(on_disk(root))
    with session.turn("sh -c 'echo > scanned'"):
        write(root / "scanned", "new")
    states.append(on_disk(root))
    there_and_back(session, root, states)


def test_a_rename_goes_and_comes_back(root: Path, session: Session) -> None:
    write(root / "old/name", "same")
    write(root / "old/more", "more", executable=True)
    states = [on_disk(root)]
    with session.turn("rename a file"):
        os.rename(root / "old/name", root / "old/other")
    states.append(on_disk(root))
    with session.turn("rename the folder"):
        os.rename(root / "old", root / "new")
    states.append(on_disk(root))
    with session.turn("swap two files"):
        os.rename(root / "new/other", root / "t")
        os.rename(root / "new/more", root / "new/other")
        os.rename(root / "t", root / "new/more")
    states.append(on_disk(root))
    there_and_back(session, root, states)
    undo(session, 3)
    assert not (root / "new").exists()


def test_a_case_only_rename_goes_and_comes_back(root: Path, session: Session) -> None:
    write(root / "Readme", "text")
    write(root / "Docs/a", "a")
    states = [on_disk(root)]
    with session.turn("rename"):
        os.rename(root / "Readme", root / "README")
        os.rename(root / "Docs", root / "docs")
    states.append(on_disk(root))
    there_and_back(session, root, states)


def test_file_to_folder_to_file(root: Path, session: Session) -> None:
    write(root / "x", "file")
    states = [on_disk(root)]
    with session.turn("a folder"):
        remove(root / "x")
        write(root / "x/y/z", "deep")
        write(root / "x/a", "a")
    states.append(on_disk(root))
    with session.turn("a file deeper down"):
        remove(root / "x/y")
        write(root / "x/y", "file now")
    states.append(on_disk(root))
    with session.turn("a file again"):
        remove(root / "x")
        write(root / "x", "file again", executable=True)
    states.append(on_disk(root))
    there_and_back(session, root, states)


def test_a_symlink_in_the_way_is_not_followed_G_09(root: Path, session: Session, tmp_path: Path) -> None:
    """The folder that a turn wrote into is a link to somewhere else by now."""
    outside = tmp_path / "outside"
    write(outside / "a", "theirs")
    write(root / "d/a", "0")
    turn(session, root, "one", d__a="1", d__new="1")
    shutil.copytree(root / "d", outside / "copy")
    remove(root / "d")
    (root / "d").symlink_to(outside / "copy")
    before = bit_by_bit(outside)
    for policy in (REFUSE, MERGE, FORCE):
        with pytest.raises((Conflict, Exception), match=r"link|changed since|d/"):
            undo(session, policy=policy)
        assert bit_by_bit(outside) == before and os.readlink(root / "d") == str(outside / "copy")
    undo(session, policy=SKIP)
    assert bit_by_bit(outside) == before and os.readlink(root / "d") == str(outside / "copy")


def test_a_turn_s_own_symlinks_go_and_come_back(root: Path, session: Session, tmp_path: Path) -> None:
    write(tmp_path / "outside/a", "theirs")
    write(root / "d/a", "0")
    states = [on_disk(root)]
    with session.turn("link the folder away"):
        remove(root / "d")
        (root / "d").symlink_to(tmp_path / "outside")
    states.append(on_disk(root))
    with session.turn("and a file"):
        remove(root / "d")
        write(root / "d/a", "2")
        (root / "d/b").symlink_to("a")
    states.append(on_disk(root))
    there_and_back(session, root, states)
    assert (tmp_path / "outside/a").read_text() == "theirs" and len(os.listdir(tmp_path / "outside")) == 1


def test_an_executable_bit_goes_and_comes_back(root: Path, session: Session) -> None:
    write(root / "run.sh", "#!/bin/sh\n")
    states = [on_disk(root)]
    with session.turn("chmod +x"):
        os.chmod(root / "run.sh", 0o755)
    states.append(on_disk(root))
    with session.turn("chmod -x and edit"):
        write(root / "run.sh", "#!/bin/bash\n")
    states.append(on_disk(root))
    there_and_back(session, root, states)


def test_the_users_gc_prunes_borrowed_objects_and_every_turn_still_restores(root: Path) -> None:
    """The first snapshot reuses the user's own objects; then they amend, drop the reflog and prune."""
    git_in(root, "init", "--quiet")
    for number in range(20):
        write(root / f"f{number}", f"{number} as committed")
    git_in(root, "add", ".")
    git_in(root, "commit", "--quiet", "-m", "first")
    git_in(root, "gc", "--quiet")
    with Store.open(root, create=True) as store:
        session = store.session("s")
        with session.turn("change all"):
            for number in range(20):
                write(root / f"f{number}", f"{number} changed")
        git_in(root, "checkout", "--quiet", "--orphan", "other")
        git_in(root, "add", "-A")
        git_in(root, "commit", "--quiet", "-m", "another history")
        git_in(root, "branch", "--quiet", "-D", "main")
        git_in(root, "reflog", "expire", "--expire=now", "--all")
        git_in(root, "gc", "--quiet", "--prune=now")
    with Store.open(root) as store:
        session = store.session("s")
        undo(session)
        assert texts(root) == {f"f{number}": f"{number} as committed" for number in range(20)}
        redo(session)
        assert_whole(store)


@pytest.mark.parametrize("cut", ["undone", "taken back"])
def test_a_temporary_that_a_power_cut_brings_back_goes_after_the_next_boot(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    """Only what the store has goes; btrfs brings names back that were removed and synced (test_powercut.py)."""
    boot = tmp_path / "boot_id"
    boot.write_text("aaaaaaaa-1111\n")
    monkeypatch.setattr(platform, "BOOT_ID", str(boot))
    write(root / "d/a", "0")
    write(root / "d/b", "0")
    with Store.open(root, create=True) as store:
        session = store.session("s")
        with session.turn("change"):
            write(root / "d/a", "1")
            write(root / "d/b", "1")
        if cut == "taken back":
            with monkeypatch.context() as patched, pytest.raises(Failed, match="out of luck"):
                patched.setattr(Writer, "apply", _out_of_luck)
                undo(session)
        else:
            undo(session)
        found = re.search(rb'"tag": "([^"]+)"', Path(store.state, "journal").read_bytes())
    assert found is not None
    ours, other = (root / "d" / f".snapstore-{found[1].decode()}-{number}" for number in (2, 3))
    was = texts(root)
    write(ours, "1")
    write(other, "saved by somebody")
    with Store.open(root):
        assert ours.exists(), "the same boot: it may be of a move under way"
    boot.write_text("bbbbbbbb-2222\n")
    with Store.open(root) as store:
        assert not ours.exists()
        assert other.read_text() == "saved by somebody"
        write(ours, "1")
        assert not store.journal.is_of_another_boot()
    with Store.open(root):
        assert ours.exists(), "looked for once in each boot"
    ours.unlink()
    other.unlink()
    assert texts(root) == was


def _out_of_luck(*_: object) -> None:
    raise OSError("out of luck")


@pytest.mark.parametrize("state", ["rebase", "merge", "stash", "staged", "cherry-pick", "bisect"])
def test_the_users_git_in_the_middle_of_something_is_untouched_P_04(root: Path, state: str) -> None:
    """Every move there is, while a rebase, merge, stash, … of the user's own is under way."""
    git_in(root, "init", "--quiet")
    write(root / "a", "0\n")
    write(root / "b", "0\n")
    git_in(root, "add", ".")
    git_in(root, "commit", "--quiet", "-m", "first")
    git_in(root, "checkout", "--quiet", "-b", "side")
    write(root / "a", "side\n")
    git_in(root, "commit", "--quiet", "-am", "side")
    git_in(root, "checkout", "--quiet", "main")
    write(root / "a", "main\n")
    git_in(root, "commit", "--quiet", "-am", "main")
    if state == "rebase":
        git_in(root, "rebase", "side", may_fail=True)
        assert (root / ".git/rebase-merge").exists()
    elif state in ("merge", "cherry-pick"):
        git_in(root, state, "side", may_fail=True)
        assert (root / f".git/{state.upper().replace('-', '_')}_HEAD").exists()
    elif state == "stash":
        write(root / "a", "put away\n")
        git_in(root, "stash", "--quiet")
    elif state == "bisect":
        git_in(root, "bisect", "start", "HEAD", "HEAD~1")
    else:
        write(root / "b", "staged\n")
        git_in(root, "add", "b")
        write(root / "b", "and changed again\n")
    with Store.open(root, create=True) as store:
        session = store.session("s")
        before = bit_by_bit(root / ".git")
        turn(session, root, "one", f="1", b="by the turn\n")
        turn(session, root, "two", c="2", d__e="new")
        session.move(session.plan_undo(2))
        session.move(session.plan_redo(None))
        session.move(session.plan_goto("0", exact=True))
        session.move(session.plan_ops_undo())
        session.move(session.plan_revert("1"))
        session.move(session.plan_restore("1", [b"b"]))
        session.move(session.plan_earlier(2))
        write(root / "c", "mine")
        session.move(session.plan_later(2, policy=Policy(FORCE)))
        assert bit_by_bit(root / ".git") == before
        assert_whole(store)


def test_reverted_is_never_said_where_nothing_was_G_23(root: Path) -> None:
    write(root / "a.py", "0\n")
    snap(root, "init")
    snap(root, "turn", "begin", "-m", "one")
    (root / "a.py").write_text("1\n")
    snap(root, "turn", "end")
    (root / "a.py").write_text("0\n")  # the user has put it back already
    done = snap_json(root, "undo", "--json")
    assert (done["turns_undone"], done["files_reverted"], done["snapshot_restored"]) == (1, [], None)
    assert done["kept"] == ["a.py"] and done["written"] == [] and done["removed"] == []
    said = snap(root, "redo").stdout
    assert (root / "a.py").read_text() == "1\n" and "a.py" in said
    (root / "a.py").write_text("mine\n")
    told = snap(root, "undo", status=10)
    assert "Undone" not in told.stdout + told.stderr and "✓" not in told.stdout + told.stderr
    assert (root / "a.py").read_text() == "mine\n"


def test_the_store_grows_by_what_is_new_and_not_by_moving(root: Path, session: Session) -> None:
    """100 GB: one copy of a big binary each turn. Ten turns beside one, undone and redone, exactly and back."""
    big = os.urandom(2_000_000)
    write(root / "big.bin", big)
    turn(session, root, "zero", a="0")
    size = _size(session.store)
    for number in range(10):
        turn(session, root, f"turn {number}", a=f"{number + 1}")
    for _ in range(3):
        undo(session, 8)
        redo(session, None)
        session.move(session.plan_goto("1", exact=True))
        session.move(session.plan_goto("11", exact=True))
    assert _size(session.store) - size < 200_000
    with session.turn("touch it"):
        os.utime(root / "big.bin")
    with session.turn("rename it"):
        os.rename(root / "big.bin", root / "large.bin")
    undo(session, 2)
    redo(session, 2)
    assert _size(session.store) - size < 300_000
    for number in range(3):
        with session.turn("append to it"), open(root / "large.bin", "ab") as file:
            file.write(b"%d" % number)
    grown = _size(session.store)
    for _ in range(4):
        undo(session, 3)
        redo(session, 3)
    assert _size(session.store) - grown < 100_000
    assert_whole(session.store)


def test_forcing_again_and_again_stores_each_content_once(root: Path, session: Session) -> None:
    write(root / "big.bin", os.urandom(1_000_000))
    turn(session, root, "one", a="1")
    with session.turn("two"):
        write(root / "big.bin", os.urandom(1_000_000))
    mine = os.urandom(1_000_000)
    size = _size(session.store)
    for _ in range(5):
        write(root / "big.bin", mine)
        session.move(session.plan_undo(policy=Policy(FORCE)))
        write(root / "big.bin", mine)
        session.move(session.plan_redo(policy=Policy(FORCE)))
    assert _size(session.store) - size < 1_500_000
    assert len([name for name in all_refs(session.store) if name.startswith("refs/snapstore/safety/")]) == 10


def test_kills_leave_nothing_behind_in_the_root_or_in_the_store_G_16(root: Path, session: Session) -> None:
    """Temporary packs and half-written files of killed moves: swept by themselves, and the store does not grow."""
    write(root / "kept/big", os.urandom(300_000))
    turn(session, root, "one", a="1", d__b="1")
    one = on_disk(root)
    with session.turn("two"):
        write(root / "a", "2")
        write(root / "kept/big", os.urandom(300_000))
        remove(root / "d")
    store = session.store
    write(root / "a", "mine")
    mine = on_disk(root)
    ends = set()
    for nth in range(2, 240, 6):
        plan = session.plan_undo(policy=Policy(FORCE))
        killed = killed_at(nth, partial(session.move, plan))
        store.close()
        store = Store.open(root)
        session = store.session("s")
        assert not store.journal.pending()
        assert not [path for path in os.listdir(root) if path.startswith(".snapstore")]
        ends.add(stands_at(session))
        assert on_disk(root) == (mine if stands_at(session) == 2 else one)
        if stands_at(session) == 1:
            session.move(session.plan_ops_undo())
            assert on_disk(root) == mine
        if not killed:
            break
    assert ends == {1, 2} and not killed
    for number in range(34):  # enough for the packs to be folded, which sweeps
        turn(session, root, "more", a=str(number))
    left = [name for _, _, names in os.walk(store.folder) for name in names if "tmp" in name or name.endswith(".lock")]
    assert not left, left
    assert _size(store) < 3_000_000  # three contents of the big file, and small change
    assert_whole(store)
