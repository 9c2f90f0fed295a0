"""The stories in which other tools lost their users' work, told again here with the ending they should have had.

First TESTING's list, a test each; then what reading the code of the moves with ill will brought up; then the seeds'
requirements about moving through the tree of turns.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from commands import snap, snap_json
from helpers import (
    Files,
    all_refs,
    assert_cache_adds_up,
    assert_equal,
    assert_whole,
    bit_by_bit,
    difference,
    git,
    git_in,
    in_commit,
    killed_at,
    line,
    on_disk,
    quick_folder,
    record,
    remove,
    tip,
    touched,
    turn,
    write,
)

from snapstore import Conflict, Failed, Session, Store, Unknown
from snapstore.base import platform
from snapstore.git import refs as git_refs
from snapstore.surface.records.nodes import NodeRecord
from snapstore.surface.status import read_status
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import read_node
from snapstore.timeline.moves.branches import Branches
from snapstore.timeline.moves.plan import BOTH, CONVERSATION, FILES, FORCE, MARKERS, MERGE, REFUSE, SKIP, Plan, Policy
from snapstore.worktree.write.writer import Writer


@pytest.fixture(autouse=True)
def locks_of_the_dead_are_known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits the seconds after which a ref's lock is taken for a dead process's."""
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
    """What rewriting a file would change, for all files but some."""
    found = {}
    for path in on_disk(root):
        name = os.fsdecode(path)
        if name not in besides:
            st = os.lstat(root / name)
            found[name] = (st.st_ino, st.st_mtime_ns, st.st_ctime_ns, st.st_mode)
    return found


def refused(session: Session, root: Path, plan: object) -> Conflict:
    """The move is refused, and not one byte, time or ref has changed."""
    before, refs = bit_by_bit(root), all_refs(session.store)
    with pytest.raises(Conflict) as error:
        session.move(plan)  # type: ignore[arg-type]
    assert (bit_by_bit(root), all_refs(session.store)) == (before, refs)
    return error.value


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


def there_and_back(session: Session, root: Path, states: list[Files]) -> None:
    """Down to the first state and up to the last, one at a time, all at once, and exactly."""
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


def _size(store: Store) -> int:
    return sum(os.lstat(os.path.join(at, name)).st_size for at, _, names in os.walk(store.folder) for name in names)


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


# What ill will found (see each: what went wrong, or could).


def test_a_file_put_back_by_hand_before_the_undo_is_seen_when_it_changes_again(root: Path, session: Session) -> None:
    """Kept, since it was as wanted already; written once more with the undone turn's bytes: the next turn must see."""
    write(root / "a", "0")
    write(root / "b", "0")
    turn(session, root, "one", a="1", b="1")
    turn(session, root, "two", a="2", b="2")
    write(root / "a", "1")
    undo(session)
    assert_cache_adds_up(session.store)
    write(root / "a", "2")
    commit = turn(session, root, "three", c="3")
    assert_equal(session.store, commit, on_disk(root))
    assert touched(session.store, commit) == {b"c": "A"}


def test_a_file_moved_away_and_back_around_an_undo_is_not_forgotten(root: Path, session: Session) -> None:
    turn(session, root, "zero", z="z")
    turn(session, root, "one", a="1", b="1")
    os.rename(root / "a", root.parent / "aside")
    undo(session)
    assert_cache_adds_up(session.store)
    os.rename(root.parent / "aside", root / "a")
    commit = turn(session, root, "two", c="3")
    assert_equal(session.store, commit, on_disk(root))


@pytest.mark.parametrize("way", ["earlier", "goto", "undo"])
def test_edits_carried_to_before_them_are_still_seen(root: Path, session: Session, way: str) -> None:
    """Where a move leads past edits they stay on disk; the node stood on does not have them, and the disk does."""
    session.take_baseline()
    write(root / "a", "by hand")
    for number in range(1, 4):
        turn(session, root, f"turn {number}", a=str(number))
    plans: dict[str, Callable[[], Plan]] = {
        "earlier": lambda: session.plan_earlier(4),
        "goto": lambda: session.plan_goto("#0"),
        "undo": lambda: session.plan_undo(3),
    }
    session.move(plans[way]())
    assert texts(root) == {"a": "by hand"}
    assert_cache_adds_up(session.store)
    commit = turn(session, root, "another way", b="1")
    assert_equal(session.store, commit, on_disk(root))
    assert touched(session.store, commit) == {b"b": "A"}


@pytest.mark.parametrize("seen", ["by nobody", "on another branch", "by another session", "by status"])
def test_an_exact_move_never_removes_what_only_came_into_view_G_25(root: Path, store: Store, seen: str) -> None:
    write(root / ".gitignore", "secret\n")
    write(root / "secret", "there all along")
    one, two = store.session("one"), store.session("two")
    turn(one, root, "one", a="1")
    turn(two, root, "one", b="1")
    write(root / ".gitignore", "\n")
    if seen == "on another branch":
        turn(one, root, "two", a="2")
        one.move(one.plan_goto("#1"))
        turn(one, root, "another two", a="2b")
    elif seen == "by another session":
        turn(two, root, "two", b="2")
        turn(one, root, "two", a="2")
    elif seen == "by status":
        History(one).edits()
    one.move(one.plan_goto("1", exact=True))
    assert texts(root)["secret"] == "there all along"
    one.move(one.plan_goto("0", exact=True))
    assert texts(root)["secret"] == "there all along"


@pytest.mark.parametrize("how", ["undo", "revert", "restore", "exact", "redo of a delete"])
def test_a_folder_that_no_turn_made_stays_G_03(root: Path, session: Session, how: str) -> None:
    (root / "empty").mkdir()
    session.take_baseline()
    if how == "redo of a delete":
        write(root / "empty/x", "0")
        turn(session, root, "delete the file, leave the folder", empty__x=None)
        undo(session)
        redo(session)
    elif how == "exact":
        turn(session, root, "one", a="1")
        write(root / "empty/x", "mine")
        session.move(session.plan_goto("1", exact=True))
    else:
        turn(session, root, "one", empty__x="1", made__y="1")
        turn(session, root, "two", a="2")
        if how == "undo":
            undo(session, 2)
        elif how == "revert":
            session.move(session.plan_revert("1"))
        else:
            session.move(session.plan_restore("0", [b"empty/x", b"made/y"]))
        assert how == "restore" or not (root / "made").exists()
    assert (root / "empty").is_dir() and not os.listdir(root / "empty")


@pytest.mark.parametrize("policy", [REFUSE, SKIP, FORCE])
def test_an_empty_folder_in_a_files_place_can_be_got_past_G_38(root: Path, session: Session, policy: str) -> None:
    write(root / "x", "0")
    turn(session, root, "one", x=None, y="1")
    (root / "x").mkdir()
    plan = session.plan_undo(policy=Policy(policy))
    if plan.conflicts:
        refused(session, root, plan)
        return
    session.move(plan)
    assert not (root / "y").exists()
    assert (root / "x").is_dir() if policy == SKIP and b"x" in plan.of("skipped") else (root / "x").is_file()


@pytest.mark.parametrize("way", ["file to folder", "folder to file"])
def test_force_settles_a_file_and_a_folder_that_changed_places_G_38(root: Path, session: Session, way: str) -> None:
    def file() -> None:
        remove(root / "x")
        write(root / "x", "file")

    def folder() -> None:
        remove(root / "x")
        write(root / "x/a", "a")
        write(root / "x/b", "b")

    first, then = (file, folder) if way == "file to folder" else (folder, file)
    first()
    start = on_disk(root)
    with session.turn("change places"):
        then()
    write(root / ("x/a" if way == "file to folder" else "x"), "mine")
    mine = on_disk(root)
    refused(session, root, session.plan_undo())
    moved = session.move(session.plan_undo(policy=Policy(FORCE)))
    assert on_disk(root) == start
    assert moved.safety_ref is not None
    session.move(session.plan_ops_undo())
    assert on_disk(root) == mine


def test_an_oversize_file_named_before_the_write_comes_back_after_a_scan(root: Path, session: Session) -> None:
    session.store.configure(max_file_size=1000)
    write(root / "big", "x" * 5000)
    start = on_disk(root)
    open_turn = session.begin("shrink it")
    open_turn.touch(root / "big")
    write(root / "big", "small")
    open_turn.end(scan=True)
    undo(session)
    assert on_disk(root) == start


def test_what_a_forced_ops_undo_overwrote_comes_back_by_its_number(root: Path, session: Session) -> None:
    """ops undo after turns, through edits: forced, and taken back, to the byte."""
    turn(session, root, "one", a="1\n", b="1")
    turn(session, root, "two", a="2\n", b="2")
    undo(session)
    write(root / "a", "mine\n")
    turn(session, root, "another two", a="2b\n", c="c")
    write(root / "b", "mine too")
    mine = on_disk(root)
    refused(session, root, session.plan_ops_undo())
    moved = session.move(session.plan_ops_undo(policy=Policy(FORCE)))
    assert texts(root) == {"a": "2\n", "b": "2"}
    session.move(session.plan_ops_undo(moved.operation))
    assert on_disk(root) == mine
    assert_whole(session.store)


@pytest.mark.parametrize("how", [MERGE, MARKERS])
def test_what_a_merge_made_is_held_by_a_ref_when_it_is_taken_back_G_17(root: Path, session: Session, how: str) -> None:
    """Merged, taken back, cleaned by git, and that taken back: the merged file must still be there to come back."""
    lines = [f"{number}\n" for number in range(20)]
    turn(session, root, "one", a="".join(lines))
    turn(session, root, "two", a="".join(["two\n", *lines[1:]]))
    write(root / "a", "".join(["two\n" if how == MERGE else "mine\n", *lines[1:19], "mine\n"]))
    mine = on_disk(root)
    session.move(session.plan_undo(policy=Policy(how)))
    merged = on_disk(root)
    assert merged != mine
    taken = session.move(session.plan_ops_undo())
    assert on_disk(root) == mine
    session.store.close()
    git(session.store.shadow.git_dir, "gc", "--quiet", "--prune=now")
    with Store.open(root) as store:
        again = store.session("s")
        again.move(again.plan_ops_undo(taken.operation))
        assert on_disk(root) == merged
        assert_whole(store)


def test_git_gc_between_any_two_moves_loses_nothing_G_17(root: Path, session: Session) -> None:
    """Forced, skipped, exact, each taken back and that taken back again, with a pruning gc after every step."""
    turn(session, root, "one", a="1", b="1")
    turn(session, root, "two", a="2", b="2", c="2")

    def clean() -> None:
        git(session.store.shadow.git_dir, "gc", "--quiet", "--prune=now")

    for how in ("forced", "skipped", "exact"):
        write(root / "b", f"by hand, before it is {how}")
        write(root / "new", f"new, before it is {how}")
        before = on_disk(root)
        clean()
        policy = Policy({"forced": FORCE, "skipped": SKIP}.get(how, REFUSE))
        session.move(session.plan_undo(policy=policy, exact=how == "exact"))
        after = on_disk(root)
        clean()
        taken = session.move(session.plan_ops_undo())
        assert on_disk(root) == before
        clean()
        again = session.move(session.plan_ops_undo(taken.operation))
        assert on_disk(root) == after
        clean()
        session.move(session.plan_ops_undo(again.operation))
        assert on_disk(root) == before and stands_at(session) == 2
    clean()
    assert_whole(session.store)


def test_undo_of_a_restore_of_a_restore(root: Path, session: Session) -> None:
    states = [on_disk(root)]
    for number in (1, 2):
        turn(session, root, f"turn {number}", a=str(number), b=str(number))
        states.append(on_disk(root))
    for address, path in (("1", b"a"), ("2", b"a"), ("1", b"b"), ("0", b"a")):
        session.move(session.plan_restore(address, [path]))
        states.append(on_disk(root))
    assert texts(root) == {"b": "1"}
    there_and_back(session, root, states)


def test_an_edit_in_the_same_tick_as_the_move_is_not_overwritten_G_33(root: Path, session: Session) -> None:
    """Same size, same clock tick, right after a move: the next move must see it, whatever the stat says."""
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    for number in range(25):
        session.move(session.plan_undo() if number % 2 == 0 else session.plan_redo())
        write(root / "a", "x")
        refused(session, root, session.plan_redo() if number % 2 == 0 else session.plan_undo())
        write(root / "a", "1" if number % 2 == 0 else "2")


def test_many_turns_of_edits_in_between_are_all_carried_along_C16(root: Path, session: Session) -> None:
    """After each turn a person adds a line of their own elsewhere; undo of all turns loses none of it."""
    for number in range(1, 7):
        turn(session, root, f"turn {number}", agent=f"{number}", **{f"made{number}": "x"})
        write(root / f"mine{number}", f"mine {number}")
    undo(session, 6)
    assert texts(root) == {f"mine{number}": f"mine {number}" for number in range(1, 7)}
    redo(session, None)
    everything = {f"mine{number}": f"mine {number}" for number in range(1, 7)}
    assert texts(root) == {**everything, "agent": "6", **{f"made{number}": "x" for number in range(1, 7)}}


@pytest.mark.parametrize(
    "way", ["undo", "undo with a file kept", "force", "revert", "restore", "exact", "two sessions"]
)
def test_a_file_brought_back_stays_tracked_though_ignored_by_now(root: Path, session: Session, way: str) -> None:
    """Whoever ignores a file after it was deleted has it back by undo: a tracked file, whatever the rules say."""
    other = session.store.session("other")
    turn(session, root, "one", **{"a.log": "1", "b": "1"})
    turn(session, root, "two", **{"a.log": None, "b": "2"})
    if way == "two sessions":
        turn(other, root, "theirs", theirs="1")
    write(root / ".gitignore", "*.log\n")
    if way == "two sessions":
        turn(other, root, "theirs", theirs="2")
    if way == "file kept":
        write(root / "b", "1")
    elif way == "force":
        write(root / "b", "mine")
    if way == "revert":
        session.move(session.plan_revert("2"))
    elif way == "restore":
        session.move(session.plan_restore("1", [b"a.log"]))
    elif way == "exact":
        session.move(session.plan_goto("1", exact=True))
        write(root / ".gitignore", "*.log\n")
    else:
        undo(session, policy=FORCE if way == "force" else REFUSE)
    assert texts(root)["a.log"] == "1"
    commit = turn(session, root, "three", q="q")
    assert touched(session.store, commit) == {b"q": "A"}
    assert in_commit(session.store, commit)[b"a.log"] == (b"100644", b"1")
    commit = turn(session, root, "four", **{"a.log": "4"})
    assert touched(session.store, commit) == {b"a.log": "M"}
    undo(session)
    assert texts(root)["a.log"] == "1"


@pytest.mark.parametrize("kept", [False, True], ids=["plain", "file kept"])
def test_a_large_file_brought_back_is_not_recorded_as_deleted_G_30(root: Path, session: Session, kept: bool) -> None:
    turn(session, root, "one", big="x" * 3000, b="1")
    turn(session, root, "two", big=None, b="2")
    session.store.configure(max_file_size=1000)
    if kept:
        write(root / "b", "1")
    undo(session)
    assert len(texts(root)["big"]) == 3000
    commit = turn(session, root, "three", q="q")
    assert b"big" in in_commit(session.store, commit)
    assert not [node for node in line(session.store, "s") if touched(session.store, node["commit"]).get(b"big") == "D"]


def test_a_plan_whose_branch_was_renamed_meanwhile_is_stale_G_08(root: Path, session: Session) -> None:
    """Carried out all the same, the session would stand on a branch that is not there."""
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    undo(session)
    plan = session.plan_redo()
    Branches(session).rename("main", "other")
    refused(session, root, plan)
    redo(session)
    assert (texts(root), Graph(session.store, "s").branch) == ({"a": "2"}, "other")


@pytest.mark.parametrize("what", ["kept", "forced", "skipped", "merged", "plain", "exact"])
def test_a_plan_is_stale_once_one_of_its_files_changed_G_08(root: Path, session: Session, what: str) -> None:
    lines = [f"{number}\n" for number in range(12)]
    turn(session, root, "one", a="".join(lines), b="1")
    turn(session, root, "two", a="".join(["two\n", *lines[1:]]), b="2")
    how = {"forced": FORCE, "skipped": SKIP, "merged": MERGE}.get(what, REFUSE)
    if what == "kept":
        write(root / "a", "".join(lines))
    elif what not in ("plain", "exact"):
        write(root / "a", "".join(["two\n", *lines[1:11], "mine\n"]))
    plan = session.plan_undo(policy=Policy(how), exact=what == "exact")
    write(root / "a", "written since the plan was made")
    refused(session, root, plan)


@pytest.mark.parametrize("edited", ["rewritten", "deleted", "folder", "link"])
def test_what_is_edited_between_a_kill_and_the_next_command_is_kept_G_38(
    root: Path, session: Session, edited: str
) -> None:
    """The kill leaves a move half done; the user, who does not know, edits a file of it; then any command."""
    write(root / "z", "0")
    for number in ("1", "2"):
        turn(session, root, number, a=number, b=number, z=number, **{f"d__{number}": number})
    old = texts(root)
    new = {"a": "1", "b": "1", "z": "1", "d/1": "1"}
    store = session.store
    for nth in range(5, 150, 7):
        plan = session.plan_undo()
        killed = killed_at(nth, partial(session.move, plan))
        if not killed:
            break
        remove(root / "b")
        if edited == "rewritten":
            write(root / "b", "edited after the kill")
        elif edited == "folder":
            write(root / "b/c", "edited after the kill")
        elif edited == "link":
            (root / "b").symlink_to("a")
        mine = {path: entry for path, entry in on_disk(root).items() if path.split(b"/")[0] == b"b"}
        store.close()
        store = Store.open(root)
        session = store.session("s")
        here = on_disk(root)
        assert {path: entry for path, entry in here.items() if path.split(b"/")[0] == b"b"} == mine
        rest = {name: text for name, text in texts(root).items() if name.split("/")[0] != "b"}
        assert rest in [{name: text for name, text in side.items() if name != "b"} for side in (old, new)]
        assert (stands_at(session) == 1) == (rest["a"] == "1")
        assert_cache_adds_up(store)
        remove(root / "b")
        write(root / "b", "2" if stands_at(session) == 2 else "1")
        if stands_at(session) == 1:
            redo(session)
        assert texts(root) == old
    assert not killed
    assert_whole(store)


def test_moves_under_an_open_turn_of_another_session_are_not_its_doing_G_31(root: Path, store: Store) -> None:
    one, two = store.session("one"), store.session("two")
    turn(one, root, "one", a="1")
    turn(one, root, "two", a="2", b="2")
    open_turn = two.begin("at work all the while")
    undo(one)
    write(root / "c", "by two")
    redo(one)
    one.move(one.plan_revert("2"))
    undo(one)
    commit = open_turn.end().hex()
    assert touched(store, commit) == {b"c": "A"}
    undo(two)
    assert texts(root) == {"a": "2", "b": "2"}


def test_what_an_open_turn_wrote_and_a_forced_move_overwrote_is_saved_G_31(root: Path, store: Store) -> None:
    one, two = store.session("one"), store.session("two")
    turn(one, root, "one", a="1")
    turn(one, root, "two", a="2")
    open_turn = two.begin("at work")
    write(root / "a", "two's first try")
    moved = one.move(one.plan_undo(policy=Policy(FORCE)))
    assert in_commit(store, all_refs(store)[moved.safety_ref or ""])[b"a"][1] == b"two's first try"
    write(root / "a", "two's second try")
    open_turn.end()
    undo(two)
    assert texts(root) == {"a": "1"}


def test_several_processes_undo_and_redo_at_once_G_08(root: Path, session: Session) -> None:
    """Whatever each of them gets to do: files and cursor agree in the end, and no turn is lost."""
    turn(session, root, "one", a="1", b="1", d__c="1")
    turn(session, root, "two", a="2", b="2", d__c="2")
    session.store.close()

    def hammer(number: int) -> None:
        for step in range(12):
            with Store.open(root) as store:
                mine = store.session("s")
                try:
                    mine.move(mine.plan_undo() if (step + number) % 2 else mine.plan_redo())
                except (Conflict, Unknown):
                    pass  # another was quicker

    children = []
    for number in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                hammer(number)
            except BaseException:
                os._exit(1)
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    with Store.open(root) as store:
        again = store.session("s")
        here = stands_at(again)
        assert set(texts(root).values()) == ({str(here)} if here else set())
        assert_cache_adds_up(store)
        again.move(again.plan_goto("2"))
        assert set(texts(root).values()) == {"2"} and len(texts(root)) == 3
        assert_whole(store)


@pytest.mark.parametrize("named", [False, True], ids=["scanned", "named"])
@pytest.mark.parametrize("way", ["undo", "exact", "revert", "restore", "two turns"])
def test_a_private_file_does_not_come_back_readable_to_all(root: Path, session: Session, way: str, named: bool) -> None:
    """A tree says no more than executable or not; ssh refuses a key that others may read, and rightly so."""
    for name, mode in (("key", 0o600), ("tool", 0o700)):
        write(root / name, name)
        os.chmod(root / name, mode)
    session.take_baseline()
    with session.turn("delete them") as open_turn:
        if named:
            open_turn.touch(root / "key", root / "tool")
        remove(root / "key")
        remove(root / "tool")
    if way == "undo":
        undo(session)
    elif way == "exact":
        session.move(session.plan_goto("0", exact=True))
    elif way == "revert":
        session.move(session.plan_revert("1"))
    elif way == "restore":
        session.move(session.plan_restore("0", [b"key", b"tool"]))
    else:
        turn(session, root, "more", a="1")
        undo(session, 2)
    assert [os.lstat(root / name).st_mode & 0o777 for name in ("key", "tool")] == [0o600, 0o700]


def test_a_private_file_that_a_turn_made_comes_back_private(root: Path, session: Session) -> None:
    with session.turn("make a key"):
        write(root / "key", "secret")
        os.chmod(root / "key", 0o600)
    turn(session, root, "more", key="changed in place")
    os.chmod(root / "key", 0o600)
    for plan in (lambda: session.plan_undo(2), lambda: session.plan_redo(1), session.plan_redo):
        session.move(plan())
        assert not (root / "key").exists() or os.lstat(root / "key").st_mode & 0o777 == 0o600


@pytest.mark.parametrize("back", ["redo", "ops undo", "restore"])
@pytest.mark.parametrize("gone", ["undo", "force", "revert", "restore"])
def test_a_file_made_private_after_its_turn_comes_back_private(
    root: Path, session: Session, gone: str, back: str
) -> None:
    """A chmod is no change that a tree could hold, so only the move that removes the file has seen it."""
    turn(session, root, "make a key", key="secret", tool="run")
    if gone == "force":
        write(root / "key", "my own")
    (root / "key").chmod(0o600)
    (root / "tool").chmod(0o640)
    text = (root / "key").read_text()
    if gone in ("undo", "force"):
        moved = session.move(session.plan_undo(policy=Policy(FORCE)))
    elif gone == "revert":
        moved = session.move(session.plan_revert("1"))
    else:
        moved = session.move(session.plan_restore("0", [b"key", b"tool"]))
    assert not (root / "key").exists()
    if back == "ops undo":
        session.move(session.plan_ops_undo())
    elif back == "redo" and gone in ("undo", "force"):
        session.move(session.plan_redo())
        text = "secret"
    elif back == "redo":
        session.move(session.plan_undo())
    else:
        session.move(session.plan_restore(moved.safety.hex() if moved.safety else "#1", [b"key", b"tool"]))
    assert (root / "key").read_text() == text
    assert [(root / name).stat().st_mode & 0o777 for name in ("key", "tool")] == [0o600, 0o640]


def test_a_file_that_came_again_for_all_to_read_stays_so(root: Path, session: Session) -> None:
    turn(session, root, "make a key", key="secret")
    (root / "key").chmod(0o600)
    undo(session)
    turn(session, root, "no key after all", key="public")
    undo(session)
    session.move(session.plan_redo())
    assert (root / "key").read_text() == "public" and (root / "key").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("named", [False, True], ids=["scanned", "named"])
def test_a_private_file_that_a_link_took_the_place_of_comes_back_private(
    root: Path, session: Session, named: bool
) -> None:
    write(root / "key", "secret")
    (root / "key").chmod(0o600)
    session.take_baseline()
    with session.turn("keep it elsewhere") as open_turn:
        if named:
            open_turn.touch(root / "key")
        remove(root / "key")
        os.symlink("elsewhere", root / "key")
    for back in (session.plan_undo, session.plan_undo, session.plan_ops_undo):
        session.move(back())
        assert (root / "key").read_text() == "secret" and (root / "key").lstat().st_mode & 0o777 == 0o600
        (root / "key").chmod(0o640)  # a chmod of one's own
        session.move(session.plan_redo())
        assert (root / "key").is_symlink()
        session.move(session.plan_undo())
        assert (root / "key").lstat().st_mode & 0o777 == 0o640
        (root / "key").chmod(0o600)
        session.move(session.plan_redo())


def private_folder(root: Path, name: str) -> None:
    """A folder that keeps everybody else away from files which anybody could read."""
    write(root / name / "deep/key", "secret")
    (root / name / "deep").chmod(0o750)
    (root / name).chmod(0o700)


def folder_modes(root: Path, name: str) -> list[int]:
    return [(root / path).stat().st_mode & 0o777 for path in (name, f"{name}/deep")]


@pytest.mark.parametrize("way", ["undo", "exact", "revert", "restore"])
def test_a_private_folder_does_not_come_back_open_to_all(root: Path, session: Session, way: str) -> None:
    private_folder(root, "mine")
    session.take_baseline()
    turn(session, root, "something else", a="1")
    with session.turn("clean up"):
        remove(root / "mine")
    if way == "undo":
        undo(session)
    elif way == "exact":
        session.move(session.plan_goto("1", exact=True))
    elif way == "revert":
        session.move(session.plan_revert("2"))
    else:
        session.move(session.plan_restore("1", [b"mine"]))
    assert folder_modes(root, "mine") == [0o700, 0o750]


@pytest.mark.parametrize("made", ["by the turn", "after it"])
def test_a_folder_that_a_turn_made_comes_back_as_private_as_it_was(root: Path, session: Session, made: str) -> None:
    with session.turn("make it"):
        write(root / "made/deep/key", "secret")
        if made == "by the turn":
            private_folder(root, "made")
    private_folder(root, "made")
    for back in (session.plan_redo, session.plan_ops_undo):
        undo(session)
        assert not (root / "made").exists()
        session.move(back())
        assert folder_modes(root, "made") == [0o700, 0o750]
    (root / "made").chmod(0o755)
    undo(session)
    session.move(session.plan_redo())
    assert (root / "made/deep/key").read_text() == "secret"


# The seeds' requirements about moving through the tree of turns.


def prompts(session: Session, *names: str) -> None:
    """Turns that each write their name into `file` and make a file of their own."""
    for name in names:
        turn(session, Path(os.fsdecode(session.store.root)), f"Do {name}", file=name, **{name: name})


def state(*names: str) -> dict[str, str]:
    return {**{name: name for name in names}, **({"file": names[-1]} if names else {})}


def log(session: Session) -> list[tuple[int | None, bool]]:
    return [(node.turn, node.undone) for node in History(session).nodes() if node.turn is not None]


def test_where_a_session_stands_survives_a_restart_S0_16_S0_21_G_05(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2", "t3", "t4")
    for move, stands, undone in (("undo 3", 1, 3), ("redo 1", 2, 2), ("redo 2", 4, 0), ("undo 1", 3, 1)):
        verb, _, count = move.partition(" ")
        with Store.open(root) as store:  # each in a process of its own, so to speak
            one = store.session("s")
            one.move((one.plan_undo if verb == "undo" else one.plan_redo)(int(count)))
        with Store.open(root) as store:
            status = read_status(store.session("s"))
            assert (status.turn, status.undone_turns) == (stands, undone)
            assert texts(root) == state(*("t1", "t2", "t3", "t4")[:stands])


def test_undone_turns_are_shown_as_such_and_redone_ones_are_not_S0_17_S0_22_S1_04(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2", "t3")
    assert log(session) == [(1, False), (2, False), (3, False)]
    undo(session, 2)
    assert log(session) == [(1, False), (2, True), (3, True)]
    shown = snap(root, "log", "--session", "s").stdout
    assert shown.count("[undone]") == 2 and shown.count("@") == 1
    redo(session)
    assert log(session) == [(1, False), (2, False), (3, True)]
    redo(session)
    assert log(session) == [(1, False), (2, False), (3, False)]
    assert "undone" not in snap(root, "log", "--session", "s").stdout


def test_the_count_of_undone_turns_is_at_hand_for_a_redo_bar_S0_18(root: Path, session: Session) -> None:
    """7 turns undone [Redo next] [Redo all]: the number, one step, and all of them."""
    prompts(session, *(f"t{number}" for number in range(1, 9)))
    undo(session, 7)
    status = snap_json(root, "status", "--session", "s", "--json")
    assert status["undone_turns"] == 7
    redo(session)
    assert snap_json(root, "status", "--session", "s", "--json")["undone_turns"] == 6
    redo(session, None)
    assert snap_json(root, "status", "--session", "s", "--json")["undone_turns"] == 0
    assert texts(root) == state(*(f"t{number}" for number in range(1, 9)))


def test_redo_offers_the_next_turn_or_a_chosen_one_S0_19(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2", "t3", "t4")
    undo(session, 4)
    redo(session)
    assert texts(root) == state("t1")
    session.move(session.plan_goto("3"))  # a chosen one of the dimmed
    assert texts(root) == state("t1", "t2", "t3")
    assert log(session) == [(1, False), (2, False), (3, False), (4, True)]


def test_a_prompt_at_turn_5_of_12_archives_the_rest_whole_S0_23_S0_24_S0_26(root: Path, session: Session) -> None:
    """S0-23, S0-24, S0-26, C1: nothing is cut off any file; the lines of turns 6 to 12 stay with their turns, on their
    branch, and the line gone on with does without them."""
    for number in range(1, 13):
        open_turn = session.begin(f"prompt {number}", agent="poet")
        write(root / "file", str(number))
        open_turn.end(
            replies=[f"reply {number}"],
            thinking=[f"thought {number}"],
            tool_calls=[{"type": "Write", "filePath": "file", "content": str(number)}],
            lines=[json.dumps({"uuid": number})],
        )
    session.move(session.plan_goto("5"))
    turn(session, root, "another way", file="6b")
    graph = Graph(session.store, "s")
    assert graph.turn_of(graph.cursor) == 6 and graph.branch == "main-2"
    current = [node.prompt for node in History(session).nodes() if node.turn is not None]
    assert current == [*(f"prompt {number}" for number in range(1, 6)), "another way"]
    archived = [graph.node(oid) for oid in graph.line(graph.branches["main"])]
    assert [node.turn for node in archived if node.turn is not None] == list(range(1, 13))
    for node in archived:
        if node.turn is not None:
            kept = record(session.store, node.oid)
            assert (kept["prompt"], kept["replies"]) == (f"prompt {node.turn}", [f"reply {node.turn}"])
            assert kept["thinking"] == [f"thought {node.turn}"] and kept["lines"] == [json.dumps({"uuid": node.turn})]
            assert kept["tool_calls"][0]["content"] == str(node.turn)
    assert graph.label("main") == "Branch from turn 5"


def test_the_branch_and_its_turns_are_at_hand_at_the_fork_S0_28_S1_07(root: Path, session: Session) -> None:
    """What a modal at turn 1 shows: the turns after it on the other line, each with its prompt and files."""
    prompts(session, "t1", "t2", "t3")
    undo(session, 2)
    prompts(session, "b2")
    graph = Graph(session.store, "s")
    assert graph.parted("main") is not None and graph.turn_of(graph.parted("main") or b"") == 1
    future = graph.path(graph.parted("main") or b"", graph.branches["main"])[1]
    nodes = [read_node(session.store.shadow, oid) for oid in future]
    assert [(node.turn, node.prompt) for node in nodes] == [(2, "Do t2"), (3, "Do t3")]
    assert [change.path for change in nodes[0].files] == [b"file", b"t2"]
    assert [branch.name for branch in Branches(session).list()] == ["main-2", "main"]


def test_switching_goes_to_a_turn_of_a_branch_and_keeps_what_is_left_S0_29_S0_31_S0_32(
    root: Path, session: Session
) -> None:
    prompts(session, "t1", "t2", "t3", "t4")
    undo(session, 3)
    prompts(session, "b2", "b3")
    session.move(session.plan_switch("main:3"))  # undoes b3, b2; does t2, t3; t4 stays undone
    assert texts(root) == state("t1", "t2", "t3")
    assert log(session) == [(1, False), (2, False), (3, False), (4, True)]
    assert Graph(session.store, "s").branches.keys() == {"main", "main-2"}
    session.move(session.plan_switch("main-2"))
    assert texts(root) == state("t1", "b2", "b3")
    prompts(session, "b4")
    session.move(session.plan_switch("main"))
    assert texts(root) == state("t1", "t2", "t3", "t4")
    session.move(session.plan_goto("main-2:4"))
    assert texts(root) == state("t1", "b2", "b3", "b4")


def test_the_conversation_goes_on_from_where_it_was_rewound_to_S1_02_S1_11(root: Path, session: Session) -> None:
    """S1-02, S1-03, S1-10, S1-11: rewind, continue, rewind again, continue: each time on a branch of its own, and none
    is lost."""
    prompts(session, "t1", "t2", "t3")
    seen = {"main": texts(root)}
    for depth, name in ((2, "x"), (1, "y"), (2, "z")):
        session.move(session.plan_goto(str(depth)))
        prompts(session, f"{name}1", f"{name}2")
        assert stands_at(session) == depth + 2
        graph = Graph(session.store, "s")
        assert record(session.store, graph.cursor)["prompt"] == f"Do {name}2"
        seen[graph.branch] = texts(root)
    assert len(seen) == 4
    for branch, files in seen.items():
        session.move(session.plan_switch(branch))
        assert texts(root) == files
    leaves = snap(root, "undolist", "--session", "s").stdout
    assert all(f"Do {name}2" in leaves for name in "xyz") and "Do t3" in leaves
    assert_whole(session.store)


def test_one_action_goes_back_to_where_it_all_stood_S1_08_S1_03_G_14(root: Path, session: Session) -> None:
    """S1-03, S1-08, G-14: fast-forward, unrevert: after any number of undos one move brings files and place back."""
    prompts(session, *(f"t{number}" for number in range(1, 6)))
    full = on_disk(root)
    for count in (1, 2, 1):
        undo(session, count)
    redo(session, None)
    assert on_disk(root) == full and stands_at(session) == 5
    undo(session, 4)
    session.move(session.plan_ops_undo())
    assert on_disk(root) == full and stands_at(session) == 5


def test_a_transcript_is_never_written_S1_09(root: Path, session: Session, tmp_path: Path) -> None:
    """An agent's own file, in the root or outside: identical to the bit after every move there is."""
    outside = tmp_path / "projects/session.jsonl"
    write(outside, '{"type": "user"}\n')
    write(root / ".gitignore", "*.jsonl\n")
    write(root / "session.jsonl", '{"type": "user"}\n')
    before = bit_by_bit(tmp_path), marks(root)["session.jsonl"]
    prompts(session, "t1", "t2", "t3")
    session.move(session.plan_goto("1"))
    session.move(session.plan_redo(None))
    session.move(session.plan_undo(2, scope=CONVERSATION))
    prompts(session, "t2b")
    session.move(session.plan_switch("main", policy=Policy(FORCE)))
    session.move(session.plan_goto("0", exact=True))
    assert (bit_by_bit(tmp_path), marks(root)["session.jsonl"]) == before


def test_messages_leave_the_active_path_with_their_turn_S2_02_S2_09(root: Path, session: Session) -> None:
    """S2-02, S2-09, C2: a turn is a prompt and all that was answered to it. It leaves the active path whole, its prompt
    is handed back to be sent again or not, and stays in the store."""
    for number, replies in ((1, ["a"]), (2, ["b", "c"]), (3, [])):
        open_turn = session.begin(f"prompt {number}")
        write(root / "file", str(number))
        open_turn.end(replies=replies)
    moved = session.move(session.plan_undo(2))
    assert moved.messages_removed == 1 + 2 + 1
    assert moved.plan.prompt == "prompt 2"
    nodes = [node for node in History(session).nodes() if node.turn is not None]
    assert [(node.prompt, node.undone) for node in nodes] == [
        ("prompt 1", False),
        ("prompt 2", True),
        ("prompt 3", True),
    ]
    assert nodes[1].record["replies"] == ["b", "c"]


def test_the_prompt_stays_in_the_conversation_where_only_files_are_undone_S2_03(root: Path, session: Session) -> None:
    """S2-03: whether the prompting message leaves is chosen with the scope of the undo; the files are the same."""

    def undone(scope: str) -> tuple[int, str | None, list[bool]]:
        moved = session.move(session.plan_undo(scope=scope))
        assert (root / "file").read_text() == "0"
        turns = [node for node in History(session).nodes() if node.turn is not None]
        return moved.messages_removed, moved.plan.prompt, [node.undone for node in turns]

    write(root / "file", "0")
    open_turn = session.begin("prompt 1")
    write(root / "file", "1")
    open_turn.end(replies=["a"])
    assert undone(FILES) == (0, None, [False])
    assert undone(BOTH) == (2, "prompt 1", [True])


def test_only_that_turns_changes_are_reverted_S2_04_S2_18(root: Path, session: Session) -> None:
    """S2-04, C12: no other file is written. S2-18: further back than there are snapshots there is none, and that is
    said."""
    write(root / "other", "0")
    prompts(session, "t1")
    write(root / "other", "edited since")
    prompts(session, "t2")
    before = marks(root, "file", "t2")
    moved = session.move(session.plan_undo())
    assert sorted(moved.files_reverted) == [b"file", b"t2"]
    assert marks(root, "file", "t2") == before
    with pytest.raises(Unknown, match="only 1 turn"):  # not that many snapshots
        session.plan_undo(2)


def test_undos_in_sequence_and_their_limit_S2_06_S2_15(root: Path, session: Session) -> None:
    """S2-06: down to the start; S2-15: more than there are is refused, with how many there are."""
    prompts(session, "t1", "t2", "t3")
    for left in (2, 1, 0):
        undo(session)
        assert stands_at(session) == left
    assert session.plan_undo().nothing_to_do
    redo(session, None)
    before = bit_by_bit(root)
    with pytest.raises(Unknown) as error:
        session.plan_undo(10**9)
    assert error.value.details["turns"] == 3 and bit_by_bit(root) == before


def test_the_first_turn_can_be_undone_and_is_the_last_one_S2_14_S2_27(root: Path, session: Session) -> None:
    """C3: the root is a node that can be stood on. That one turn must remain (S2-14) holds at the seed's own address
    only: `test_the_second_seeds_undo`."""
    prompts(session, "t1")
    undo(session)
    assert (texts(root), stands_at(session)) == ({}, 0)
    done = snap(root, "undo", "--session", "s")
    assert "Nothing to undo" in done.stdout
    redo(session)
    assert texts(root) == state("t1")


@pytest.mark.parametrize("count", ["0", "-1", "x", "1e9", "10x"])
def test_a_count_that_is_none_is_refused_at_the_command_line_S2_08(root: Path, session: Session, count: str) -> None:
    """S2 would count it as 1; a typing error must not undo a turn. Without a number it is one."""
    prompts(session, "t1", "t2")
    snap(root, "undo", "--session", "s", "--", count, status=2)
    assert stands_at(session) == 2
    snap(root, "undo", "--session", "s")
    assert stands_at(session) == 1


def test_undo_goes_together_with_revert_and_its_undoing_S2_10(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2")
    full = on_disk(root)
    session.move(session.plan_revert("1", policy=Policy(SKIP)))
    assert "t1" not in texts(root) and stands_at(session) == 3
    undo(session)
    assert on_disk(root) == full
    redo(session)
    undo(session, 2)
    assert texts(root) == state("t1")
    redo(session, None)
    session.move(session.plan_revert("3"))  # unrevert: a revert of the revert
    assert on_disk(root) == full


def test_every_turn_has_its_snapshot_before_and_after_S2_17(root: Path, session: Session) -> None:
    """S2-17: history[0] is the initial one and history[i+1] the one after turn i, each with the turn it follows, its id
    and its time."""
    states = [texts(root)]
    for number in range(1, 4):
        prompts(session, f"t{number}")
        states.append(texts(root))
    nodes = [node for node in History(session).nodes() if node.kind in ("baseline", "turn")]
    assert len(nodes) == 4
    for node, files in zip(nodes, states, strict=True):
        kept = {os.fsdecode(path): data.decode() for path, (_, data) in in_commit(session.store, node.commit).items()}
        assert kept == files and NodeRecord.of(node).commit == node.commit
    assert [node.turn for node in nodes] == [None, 1, 2, 3] and all(node.ended_at for node in nodes[1:])


def test_the_library_gives_what_an_undo_did_S2_23_S2_24(root: Path, session: Session) -> None:
    """S2-23, S2-24."""
    prompts(session, "t1", "t2")
    moved = session.move(session.plan_undo())
    found = (moved.turns_undone, moved.messages_removed, sorted(moved.files_reverted), moved.snapshot_restored)
    assert found == (1, 1, [b"file", b"t2"], Graph(session.store, "s").cursor.hex())


def test_without_files_to_move_the_conversation_still_moves_S2_26_G_13(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2")
    moved = session.move(session.plan_undo(scope=CONVERSATION))
    assert (moved.turns_undone, moved.files_reverted, moved.snapshot_restored) == (1, [], None)
    assert any("left as they are" in text for text in moved.plan.notes)
    assert texts(root) == state("t1", "t2") and stands_at(session) == 1


def test_a_turn_of_which_no_file_was_recorded_is_undone_without_files(root: Path, session: Session) -> None:
    """S2-26, G-13, G-30: the conversation goes back, nothing is claimed, and the file that stays is named."""
    session.store.configure(max_file_size=1000)
    prompts(session, "t1")
    turn(session, root, "Fetch the data", data="x" * 5000)
    moved = session.move(session.plan_undo())
    assert (moved.turns_undone, moved.files_reverted, moved.snapshot_restored) == (1, [], None)
    assert moved.plan.prompt == "Fetch the data" and stands_at(session) == 1
    assert moved.plan.notes == ["turn 2 could not record data (larger than max_file_size): it stays as it is."]
    assert texts(root) == {**state("t1"), "data": "x" * 5000}


def test_what_was_never_recorded_and_a_turn_took_away_is_named_G_30(root: Path, session: Session) -> None:
    """ "Undone" alone would say that all is as it was."""
    session.store.configure(max_file_size=1000)
    write(root / "large", "x" * 5000)
    write(root / "grown", "small")
    write(root / "by hand", "x" * 5000)
    turn(session, root, "Grow", grown="x" * 5000)
    remove(root / "by hand")
    turn(session, root, "Clean up", large=None, grown=None, a="1")
    assert [(item["path"], item["why"]) for item in record(session.store, tip(session.store, "s"))["left_out"]] == [
        ("grown", "removed; larger than max_file_size"),
        ("large", "removed; larger than max_file_size"),
    ]
    assert session.move(session.plan_undo()).plan.notes == [
        "turn 2 removed grown (larger than max_file_size): only what was recorded of it before comes back.",
        "turn 2 removed large (larger than max_file_size): it cannot be brought back.",
    ]
    assert texts(root) == {"grown": "small"}


def test_what_only_came_into_view_in_a_turn_is_named_when_it_stays_G_30(root: Path, session: Session) -> None:
    session.store.configure(max_file_size=1000)
    write(root / "data", "x" * 5000)
    turn(session, root, "Look at it")
    turn(session, root, "Shrink it", data="small")
    assert session.move(session.plan_undo()).plan.notes == [
        "data came into view in turn 2, the state before is not known: it stays as it is."
    ]
    write(root / ".gitignore", "*.log\n")
    for number in range(5):
        write(root / f"{number}.log", "old")
    turn(session, root, "No rules", **{".gitignore": None})
    assert session.move(session.plan_undo()).plan.notes == [
        "0.log, 1.log, 2.log and 2 more came into view in turn 2, the state before is not known: they stay as they are."
    ]


def test_a_node_says_what_changed_from_what_to_what_S3_11(root: Path, session: Session) -> None:
    """S3-11: range, old text and new text, worked out from the two trees."""
    write(root / "a", "one\ntwo\n")
    commit = turn(session, root, "change a line", a="one\nTWO\n")
    node = read_node(session.store.shadow, bytes.fromhex(commit), counts=True)
    [change] = node.files
    assert (change.path, change.added, change.removed) == (b"a", 1, 1)
    patch = b"".join(History(session).patch(node.files)).decode()
    assert "@@ -1,2 +1,2 @@\n" in patch and "-two\n+TWO\n" in patch


def test_undo_moves_to_the_parent_and_redo_to_the_preferred_child_S3_12_S3_13(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2")
    undo(session)
    prompts(session, "b2")
    graph = Graph(session.store, "s")
    undo(session)
    assert Graph(session.store, "s").cursor == graph.node(graph.cursor).parent
    redo(session)
    assert Graph(session.store, "s").cursor == graph.cursor
    assert texts(root) == state("t1", "b2")


def test_a_jump_across_the_tree_is_one_transaction_S3_21(root: Path, session: Session) -> None:
    """Many turns left and entered, each path written once; killed anywhere in between it is all or nothing."""
    prompts(session, "t1", "t2", "t3", "t4")
    undo(session, 3)
    prompts(session, "b2", "b3")
    start = texts(root)
    store = session.store
    ends = set()
    for nth in range(3, 200, 9):
        plan = session.plan_goto("main:4")
        assert [move.path for move in plan.changing] == sorted({move.path for move in plan.changing})
        killed = killed_at(nth, partial(session.move, plan))
        store.close()
        store = Store.open(root)
        session = store.session("s")
        ends.add(stands_at(session))
        assert texts(root) == (state("t1", "t2", "t3", "t4") if stands_at(session) == 4 else start)
        if not killed:
            break
        if stands_at(session) == 4:
            session.move(session.plan_switch("main-2"))
    assert ends == {3, 4}


def test_the_difference_to_a_node_is_shown_before_going_there_S3_22(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2", "t3")
    shown = snap(root, "diff", "1", "--session", "s").stdout
    assert "t2" in shown and "t3" in shown and "t1" not in shown.replace("-t1", "").replace("+t1", "")
    preview = snap_json(root, "goto", "1", "--preview", "--session", "s", "--json")
    assert (preview["removed"], preview["written"], preview["preview"]) == (["t2", "t3"], ["file"], True)
    assert texts(root) == state("t1", "t2", "t3")


def test_a_move_is_done_when_it_returns_S3_28_S3_29(root: Path, session: Session) -> None:
    """S3-28: files, cursor and what another process sees agree at once. S3-29 would let the saving come later; it does
    not."""
    prompts(session, "t1", "t2")
    for number in (1, 2, 1):
        session.move(session.plan_goto(str(number)))
        with Store.open(root) as other:
            assert stands_at(other.session("s")) == number
            assert History(other.session("s")).edits() == []
        assert texts(root) == state(*("t1", "t2")[:number])


def test_losing_what_only_saves_time_does_not_harm_the_tree_S3_33(root: Path, session: Session) -> None:
    """S3-33, C17: the session document, the caches: gone, and the tree, the place and the numbers are as they were."""
    prompts(session, "t1", "t2", "t3")
    undo(session, 2)
    prompts(session, "b2")
    undo(session)
    graph = Graph(session.store, "s")
    known = [(node.oid, node.seq) for node in graph.by_seq()]
    folder = session.store.state
    session.store.close()
    for name in ("stat", "stat.log", "graph-s", "sessions/s.json"):
        Path(folder, name).unlink(missing_ok=True)
    with Store.open(root) as store:
        again = store.session("s")
        assert [(node.oid, node.seq) for node in Graph(store, "s").by_seq()] == known
        assert stands_at(again) == 1
        prompts(again, "c2")
        graph = Graph(store, "s")
        assert len({node.seq for node in graph.by_seq()}) == len(known) + 1
        for branch, files in (("main", ("t1", "t2", "t3")), ("main-2", ("t1", "b2")), (graph.branch, ("t1", "c2"))):
            again.move(again.plan_switch(branch))
            assert texts(root) == state(*files)
        assert_whole(store)


def test_nested_branches_stay_attached_when_undoing_past_their_point_G_11(root: Path, session: Session) -> None:
    """G-11."""
    prompts(session, "t1", "t2", "t3")
    undo(session)
    prompts(session, "b3", "b4")
    undo(session)
    prompts(session, "c4")
    undo(session, 4)  # past every fork
    prompts(session, "d1")
    for branch, files in (
        ("main", ("t1", "t2", "t3")),
        ("main-2", ("t1", "t2", "b3", "b4")),
        ("main-3", ("t1", "t2", "b3", "c4")),
        ("main-4", ("d1",)),
    ):
        session.move(session.plan_switch(branch))
        assert texts(root) == state(*files)
    graph = Graph(session.store, "s")
    assert [graph.turn_of(graph.parted(name) or b"") for name in ("main", "main-2", "main-3", "main-4")] == [2, 3, 3, 0]


def test_a_new_line_starts_from_the_snapshot_of_its_fork_point_G_24(root: Path, session: Session) -> None:
    prompts(session, "t1", "t2", "t3")
    session.move(session.plan_goto("1", exact=True))
    prompts(session, "b2")
    graph = Graph(session.store, "s")
    parent = graph.node(graph.cursor).parent
    assert parent is not None and graph.node(parent).turn == 1
    assert in_commit(session.store, parent).keys() == {b"file", b"t1"}
    assert in_commit(session.store, graph.cursor).keys() == {b"file", b"t1", b"b2"}
