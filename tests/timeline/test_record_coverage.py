"""A path enters a turn's tree only together with its before-state; whatever is left out is named (G-25, G-30)."""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import (
    as_root,
    assert_cache_adds_up,
    assert_equal,
    assert_whole,
    child,
    git_in,
    in_commit,
    kinds,
    left_out,
    line,
    living_child,
    on_disk,
    powerless,
    record,
    remove,
    touched,
    write,
)

from snapstore import Store
from snapstore.errors import Failed

# Where a rule can stand, and how a turn takes it away again.


def _gitignore(root: Path, home: Path) -> Path:
    return root / ".gitignore"


def _nested_gitignore(root: Path, home: Path) -> Path:
    return root / "sub" / ".gitignore"


def _snapstoreignore(root: Path, home: Path) -> Path:
    return root / ".snapstoreignore"


def _info_exclude(root: Path, home: Path) -> Path:
    return root / ".git" / "info" / "exclude"


def _global_excludes(root: Path, home: Path) -> Path:
    return home / ".config" / "git" / "ignore"


def _configured_excludes(root: Path, home: Path) -> Path:
    (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/my-ignores\n")
    return home / "my-ignores"


PLACES = [_gitignore, _nested_gitignore, _snapstoreignore, _info_exclude, _global_excludes, _configured_excludes]


def lose_nothing(store: Store) -> None:
    pass


def delete_cache(store: Store) -> None:
    for name in ("stat", "stat.log"):
        Path(store.state, name).unlink(missing_ok=True)


def corrupt_cache(store: Store) -> None:
    path = Path(store.state, "stat")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def truncate_cache(store: Store) -> None:
    for name in ("stat", "stat.log"):
        path = Path(store.state, name)
        if path.exists():
            os.truncate(path, path.stat().st_size // 2)


LOSSES = [lose_nothing, delete_cache, corrupt_cache, truncate_cache]


@pytest.mark.parametrize("reopened", [False, True], ids=["kept open", "reopened"])
@pytest.mark.parametrize("lose", LOSSES)
@pytest.mark.parametrize("place", PLACES)
def test_older_ignored_files_that_come_into_view_are_not_the_turn_s_G_25(
    root: Path,
    nobodys_home: Path,
    place: Callable[[Path, Path], Path],
    lose: Callable[[Store], None],
    reopened: bool,
) -> None:
    """Undo of such a turn would otherwise delete the user's secrets and build results."""
    if place in (_info_exclude, _nested_gitignore):
        git_in(root, "init", "--quiet")
    rules = place(root, nobodys_home)
    write(rules, "secret*\nbuild/\n")
    for name in ("sub/secret.env", "sub/build/deep/result"):
        write(root / name, "older than the turn")
    write(root / "seen", "plain")
    store = Store.open(root, create=True)
    assert set(in_commit(store, line(store, "shell")[-1]["commit"])) & {b"sub/secret.env"} == set()

    turn = store.session("s").begin("Tidy up the ignore rules")
    lose(store)
    if reopened:
        store.close()
        store = Store.open(root)
    if rules.is_relative_to(root) and ".git" not in rules.parts:
        rules.write_text("# nothing is ignored\n")
    else:
        rules.unlink()
    write(root / "by the turn", "new")
    commit = store.session("s").end()
    assert turn.session.name == "s"

    came_into_view = {b"sub/secret.env", b"sub/build/deep/result"}
    changed = touched(store, commit)
    assert changed.keys() & came_into_view == set()
    # They are in an edits commit of its own, before the turn, so that nothing of the disk is missing either.
    assert_equal(store, commit, on_disk(root))
    edits = line(store, "s")[-2]
    assert edits["trailers"]["Kind"] == "edits"
    assert came_into_view <= touched(store, edits["commit"]).keys()
    assert came_into_view <= {os.fsencode(path) for path in record(store, commit)["first_seen"]}
    if lose is lose_nothing:
        assert b"by the turn" in changed
        assert record(store, commit)["first_seen"] == ["sub/build/deep/result", "sub/secret.env"]
    # The next turn knows them as well as any other file.
    following = store.session("s").begin("next")
    write(root / "sub/secret.env", "changed")
    assert touched(store, following.end()) == {b"sub/secret.env": "M"}
    assert_whole(store)
    store.close()


def test_a_cache_that_went_back_in_time_does_not_vouch_for_the_turn_s_begin_G_25(root: Path, store: Store) -> None:
    """Its log is never synced: after a power cut an older truth is back, from a time when other rules held."""
    ignore = root / ".gitignore"
    ignore.write_text("")
    store.session("s").begin("so far nothing is ignored").end()
    copies = {name: Path(store.state, name) for name in ("stat", "stat.log")}
    older = {name: path.read_bytes() for name, path in copies.items() if path.exists()}
    ignore.write_text("*.secret\n")
    write(root / "my.secret", "made by the user, never seen by a scan")
    turn = store.session("s").begin("while it is ignored")
    for name, path in copies.items():
        if name in older:
            path.write_bytes(older[name])
        else:
            path.unlink(missing_ok=True)
    with Store.open(root) as again:
        ignore.write_text("")
        write(root / "by the turn", "x")
        commit = again.session(turn.session.name).end()
        assert b"my.secret" not in touched(again, commit)
        assert "my.secret" in record(again, commit)["first_seen"]
        assert_equal(again, commit, on_disk(root))


def test_files_that_come_to_be_ignored_stay_tracked(root: Path, store: Store) -> None:
    """A tracked file stays tracked whatever the rules say: its later changes are still undoable."""
    write(root / "log.txt", "1")
    session = store.session("s")
    with session.turn("ignore it") as turn:
        write(root / ".gitignore", "log.txt\n")
    assert turn.commit is not None
    assert touched(store, turn.commit) == {b".gitignore": "A"}
    with session.turn("write it") as turn:
        write(root / "log.txt", "2")
    assert touched(store, turn.commit) == {b"log.txt": "M"}
    store.cache.drop()
    with session.turn("delete it") as turn:
        (root / "log.txt").unlink()
    assert touched(store, turn.commit) == {b"log.txt": "D"}


def test_what_the_user_s_git_tracks_is_captured_though_ignored(root: Path) -> None:
    git_in(root, "init", "--quiet")
    write(root / ".gitignore", "vendor/\n*.bin\n")
    write(root / "vendor/lib", "1")
    write(root / "a.bin", "1")
    write(root / "b.bin", "1")
    git_in(root, "add", "--force", ".gitignore", "vendor/lib", "a.bin")
    git_in(root, "commit", "--quiet", "-m", "with vendored files")
    with Store.open(root, create=True) as store:
        assert set(in_commit(store, line(store, "shell")[0]["commit"])) == {b".gitignore", b"vendor/lib", b"a.bin"}
        with store.session("s").turn("update the library") as turn:
            write(root / "vendor/lib", "2")
        assert turn.commit is not None
        assert touched(store, turn.commit) == {b"vendor/lib": "M"}


def test_an_ignored_file_made_by_the_turn_that_unignores_it_is_first_seen_G_25(root: Path, store: Store) -> None:
    """Nobody knows whether it was there before: undo must leave it alone."""
    write(root / ".gitignore", "*.log\n")
    turn = store.session("s").begin("write a log, then track logs")
    write(root / "a.log", "x")
    write(root / ".gitignore", "")
    commit = turn.end()
    assert touched(store, commit) == {b".gitignore": "M"}
    assert record(store, commit)["first_seen"] == ["a.log"]
    assert_equal(store, commit, on_disk(root))


def test_an_ignored_file_named_before_the_write_is_captured_with_its_before(root: Path, store: Store) -> None:
    write(root / ".gitignore", ".env\n")
    write(root / ".env", "before")
    turn = store.session("s").begin("set a variable")
    turn.touch(root / ".env")
    write(root / ".env", "after")
    commit = turn.end()
    assert touched(store, commit) == {b".env": "M"}
    before = line(store, "s")[-2]
    assert in_commit(store, before["commit"])[b".env"] == (b"100644", b"before")
    assert before["trailers"]["Kind"] == "edits"
    assert in_commit(store, commit)[b".env"] == (b"100644", b"after")
    assert record(store, commit)["first_seen"] == []
    # From now on it is tracked, also by scans.
    with store.session("s").turn("by a shell") as turn:
        write(root / ".env", "later")
    assert turn.commit is not None
    assert touched(store, turn.commit) == {b".env": "M"}


def test_an_ignored_file_named_before_it_exists_is_the_turn_s_own_creation(root: Path, store: Store) -> None:
    write(root / ".gitignore", ".env\nignored/\n")
    turn = store.session("s").begin("create a file that is ignored")
    turn.touch(root / ".env", root / "ignored/deep/file")
    write(root / ".env", "new")
    write(root / "ignored/deep/file", "new")
    write(root / "ignored/deep/not named", "unseen")
    commit = turn.end()
    assert touched(store, commit) == {b".env": "A", b"ignored/deep/file": "A"}
    assert record(store, commit)["first_seen"] == []


@pytest.mark.parametrize("shell", [False, True], ids=["named", "scanned"])
def test_an_ignored_file_first_named_after_the_write_is_first_seen(root: Path, store: Store, shell: bool) -> None:
    write(root / ".gitignore", ".env\n")
    write(root / ".env", "who knows")
    turn = store.session("s").begin("write it, then say so")
    write(root / ".env", "after")
    turn.touch(root / ".env", after=True, shell=shell)
    commit = turn.end()
    assert touched(store, commit) == {}
    assert record(store, commit)["first_seen"] == [".env"]
    assert in_commit(store, commit)[b".env"] == (b"100644", b"after")
    edits = line(store, "s")[-2]
    assert (edits["trailers"]["Kind"], touched(store, edits["commit"])) == ("edits", {b".env": "A"})


def test_a_covered_file_first_named_after_the_write_is_the_turn_s(root: Path, store: Store) -> None:
    """The last scan would have seen it: its absence there is knowledge."""
    turn = store.session("s").begin("create, then say so")
    write(root / "new", "x")
    turn.touch(root / "new", after=True)
    commit = turn.end()
    assert touched(store, commit) == {b"new": "A"}
    assert record(store, commit)["first_seen"] == []
    assert record(store, commit)["found_by"] == "named"


def test_a_user_s_edit_found_when_a_file_is_named_is_the_user_s(root: Path, store: Store) -> None:
    write(root / "file", "1")
    turn = store.session("s").begin("edit the file")
    write(root / "file", "2, by the user, while the agent was thinking")
    turn.touch(root / "file")
    write(root / "file", "3, by the agent")
    commit = turn.end()
    assert kinds(store, "s") == ["baseline", "edits", "turn"]
    edits = line(store, "s")[-2]["commit"]
    assert in_commit(store, edits)[b"file"][1] == b"2, by the user, while the agent was thinking"
    assert touched(store, commit) == {b"file": "M"}


# G-30: what cannot be taken in.


def test_files_too_large_are_left_out_and_named_G_30(root: Path, store: Store) -> None:
    store.configure(max_file_size=1000)
    session = store.session("s")
    turn = session.begin("make files")
    write(root / "small", b"s" * 1000)
    write(root / "sub/large", b"l" * 1001)
    commit = turn.end()
    assert touched(store, commit) == {b"small": "A"}
    assert left_out(store, commit) == {"sub/large": "larger than max_file_size"}
    # not again in a turn that had nothing to do with it
    assert left_out(store, session.begin("look").end()) == {}
    # but again when it changed
    turn = session.begin("change it")
    write(root / "sub/large", b"L" * 1002)
    commit = turn.end()
    assert left_out(store, commit) == {"sub/large": "larger than max_file_size"}
    # the limit survives reopening
    with Store.open(root) as again:
        assert again.header.max_file_size == 1000


def test_a_file_left_out_that_shrinks_is_first_seen_not_created_G_30(root: Path, store: Store) -> None:
    """Its state before was never known: undo must not delete the user's large file."""
    store.configure(max_file_size=1000)
    write(root / "large", b"l" * 5000)
    turn = store.session("s").begin("compress it")
    write(root / "large", b"small now")
    commit = turn.end()
    assert touched(store, commit) == {}
    assert record(store, commit)["first_seen"] == ["large"]
    assert_equal(store, commit, on_disk(root))


def test_raising_the_limit_brings_older_files_into_view_G_25_G_30(root: Path, store: Store) -> None:
    store.configure(max_file_size=1000)
    write(root / "large", b"l" * 5000)
    turn = store.session("s").begin("raise the limit")
    store.configure(max_file_size=0)
    commit = turn.end()
    assert touched(store, commit) == {}
    assert record(store, commit)["first_seen"] == ["large"]
    assert_equal(store, commit, on_disk(root))


def test_a_tracked_file_that_grows_too_large_is_named_and_kept_as_it_was_G_30(root: Path, store: Store) -> None:
    store.configure(max_file_size=1000)
    write(root / "grows", b"small")
    session = store.session("s")
    turn = session.begin("append to it")
    write(root / "grows", b"g" * 2000)
    commit = turn.end()
    assert left_out(store, commit) == {"grows": "larger than max_file_size"}
    assert touched(store, commit) == {}
    turn = session.begin("delete it")
    (root / "grows").unlink()
    commit = turn.end()
    assert touched(store, commit) == {b"grows": "D"}


@pytest.mark.parametrize("shell", [False, True], ids=["named", "scanned"])
def test_a_large_file_that_is_named_is_always_captured_G_30(root: Path, store: Store, shell: bool) -> None:
    store.configure(max_file_size=1000)
    write(root / "large", b"b" * 5000)
    turn = store.session("s").begin("edit the large file")
    turn.touch(root / "large", root / "new and large", shell=shell)
    write(root / "large", b"a" * 6000)
    write(root / "new and large", b"n" * 6000)
    commit = turn.end()
    assert touched(store, commit) == {b"large": "M", b"new and large": "A"}
    assert_equal(store, commit, on_disk(root))
    assert left_out(store, commit) == {}
    before = line(store, "s")[-2]["commit"]
    assert in_commit(store, before)[b"large"][1] == b"b" * 5000


@pytest.mark.parametrize("named", [False, True], ids=["scanned", "named"])
def test_special_files_are_left_out_and_named_G_30(root: Path, store: Store, named: bool) -> None:
    """Neither a fifo's reader nor a device's side effects: they are never opened."""
    write(root / "was a file", "x")
    turn = store.session("s").begin("make special files")
    names = ["fifo", "socket", "was a file"]
    if named:
        turn.touch(*(root / name for name in names))
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(root)  # the path of a socket has a short limit
        server.bind("socket")
        os.chdir(here)
    (root / "was a file").unlink()
    os.mkfifo(root / "was a file")
    commit = turn.end()
    assert left_out(store, commit) == dict.fromkeys(names, "not a file, link or folder")
    # the file itself is gone, and that is known
    assert touched(store, commit) == {b"was a file": "D"}
    assert_equal(store, commit, on_disk(root))


@as_root
def test_devices_are_left_out_and_named_G_30(root: Path, store: Store) -> None:
    turn = store.session("s").begin("make a device")
    os.mknod(root / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    commit = turn.end()
    assert left_out(store, commit) == {"zero": "not a file, link or folder"}


def test_names_that_git_folds_to_its_own_are_left_out_and_named_G_30_G_09(root: Path, store: Store) -> None:
    names = [".GIT", "git~1", ".git ", ".git.", ".Git::$INDEX_ALLOCATION", ".g\u200cit"]
    turn = store.session("s").begin("plant names")
    for name in names:
        write(root / "sub" / name / "config", "x")
        write(root / name, "x")
    write(root / "plain", "x")
    commit = turn.end()
    assert touched(store, commit) == {b"plain": "A"}
    assert set(left_out(store, commit)) == set(names) | {f"sub/{name}" for name in names}
    assert_whole(store)


def test_unreadable_files_and_folders_are_left_out_and_named_G_30(root: Path) -> None:
    code = """
import json, os, sys
from snapstore import Store
root = sys.argv[1]
with Store.open(root, create=True) as store:
    session = store.session("s")
    open(f"{root}/known", "w").write("readable so far")
    turn = session.begin("take rights away")
    os.mkdir(f"{root}/folder")
    for name in ("file", "known", "folder/inside", "fine"):
        open(f"{root}/{name}", "w").write("new")
    os.chmod(f"{root}/file", 0)
    os.chmod(f"{root}/known", 0)
    os.chmod(f"{root}/folder", 0)
    first = turn.end()
    turn = session.begin("give them back")
    os.chmod(f"{root}/folder", 0o755)
    for name in ("file", "known"):
        os.chmod(f"{root}/{name}", 0o644)
    second = turn.end()
    turn = session.begin("name one that cannot be read")
    os.chmod(f"{root}/fine", 0)
    session.touch([f"{root}/fine"])
    third = turn.end()
    os.chmod(f"{root}/fine", 0o644)
    print(json.dumps([first.hex(), second.hex(), third.hex()]))
"""
    done = child(code, root, under=powerless())
    assert done.returncode == 0, done.stderr.decode()
    first, second, third = json.loads(done.stdout)
    with Store.open(root) as store:
        reasons = left_out(store, first)
        assert set(reasons) == {"file", "known", "folder"}
        assert all("cannot be read" in why for why in reasons.values())
        assert touched(store, first) == {b"fine": "A"}
        assert in_commit(store, first)[b"known"][1] == b"readable so far"
        # What nobody could read before has no known before-state.
        assert touched(store, second) == {}
        assert record(store, second)["first_seen"] == ["file", "folder/inside", "known"]
        assert left_out(store, second) == {}
        assert set(left_out(store, third)) == {"fine"}
        assert_equal(store, third, on_disk(root))


def test_a_named_file_below_a_folder_that_lets_nobody_in_is_not_deleted_G_30(root: Path) -> None:
    """Recorded as gone, it would stay unseen whatever is written to it later: its own folder did not change."""
    code = """
import json, os, sys
from snapstore import Store
root = sys.argv[1]
with Store.open(root) as store:
    turn = store.session("s").begin("write, and close the door")
    turn.touch(f"{root}/a/b/c/file")
    open(f"{root}/a/b/c/file", "w").write("new")
    os.chmod(f"{root}/a", 0)
    first = turn.end()
    os.chmod(f"{root}/a", 0o755)
    print(json.dumps(first.hex()))
"""
    write(root / "a/b/c/file", "old")
    with Store.open(root, create=True) as store:
        session = store.session("s")
        session.take_baseline()
        done = child(code, root, under=powerless())
        assert done.returncode == 0, done.stderr.decode()
        first = json.loads(done.stdout)
        assert touched(store, first) == {}
        assert "cannot be read" in left_out(store, first)["a/b/c/file"]
        with session.turn("write again") as turn:
            write(root / "a/b/c/file", "newer")
        assert turn.commit is not None
        assert_equal(store, turn.commit, on_disk(root))


REWRITER = """
import os, sys
path, size = sys.argv[1], int(sys.argv[2])
fd = os.open(path, os.O_RDWR | os.O_CREAT)
round = 0
print("ready", flush=True)
while True:
    round += 1
    os.pwrite(fd, bytes([round % 256]) * size, 0)
"""


@pytest.mark.parametrize("named", [False, True], ids=["scanned", "named"])
@pytest.mark.parametrize("size", [1 << 20, 24 << 20], ids=["read whole", "streamed"])
def test_a_file_that_changes_while_it_is_read_is_never_stored_torn_G_30(
    root: Path, store: Store, size: int, named: bool
) -> None:
    """A writer fills it with one byte's value after the other. What is stored is one whole round, or nothing."""
    store.configure(max_file_size=0)
    write(root / "steady", "x")
    turn = store.session("s").begin("while a program writes")
    turn.touch(root / "busy", root / "steady", shell=not named)
    with living_child(REWRITER, root / "busy", size):
        write(root / "steady", "changed")
        commit = turn.end()
    stored = in_commit(store, commit)
    assert stored[b"steady"][1] == b"changed"
    if b"busy" in stored:
        data = stored[b"busy"][1]
        assert data in (b"", data[:1] * len(data))
    else:
        assert left_out(store, commit) == {"busy": "kept changing while it was read"}
    # When the writer rests, the file is taken.
    following = store.session("s").begin("after it")
    assert_equal(store, line(store, "s")[-1]["commit"], on_disk(root))
    following.end()
    assert_whole(store)


GROWER = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
print("ready", flush=True)
while os.lseek(fd, 0, os.SEEK_END) < 50_000_000:
    os.write(fd, b"one line more\\n" * 50)
"""


def test_a_growing_file_does_not_hold_up_the_turn_G_30(root: Path, store: Store) -> None:
    turn = store.session("s").begin("while a log grows")
    with living_child(GROWER, root / "log"):
        commit = turn.end()
    stored = in_commit(store, commit)
    if b"log" in stored:
        # A write may be seen by halves, where it goes on to another page.
        assert b"one line more\n".startswith(stored[b"log"][1].replace(b"one line more\n", b""))
    else:
        assert set(left_out(store, commit)) == {"log"}


def test_files_that_come_and_go_during_the_scan_are_no_error_G_27(root: Path, store: Store) -> None:
    code = """
import os, shutil, sys
root = sys.argv[1]
print("ready", flush=True)
while True:
    for number in range(20):
        os.makedirs(f"{root}/made/{number}/deep", exist_ok=True)
        open(f"{root}/made/{number}/deep/file", "w").write("x" * number)
        open(f"{root}/made/{number}/file", "w").write("x" * number)
    for number in range(20):
        shutil.rmtree(f"{root}/made/{number}", ignore_errors=True)
"""
    session = store.session("s")
    write(root / "steady", "x")
    with living_child(code, root):
        for number in range(8):
            with session.turn(f"turn {number}"):
                write(root / "steady", str(number))
    session.begin("at rest")
    assert_equal(store, line(store, "s")[-1]["commit"], on_disk(root))
    session.end()
    assert_whole(store)


def test_a_named_file_below_a_link_that_leads_to_itself_is_gone_G_35(root: Path, store: Store) -> None:
    session = store.session("s")
    write(root / "a/b/file", "old")
    with session.turn("a link in the place of its folder") as turn:
        turn.touch(root / "a/b/file", root / "a")
        remove(root / "a")
        os.symlink("a", root / "a")
    assert turn.commit is not None
    assert touched(store, turn.commit) == {b"a": "A", b"a/b/file": "D"}
    assert_equal(store, turn.commit, on_disk(root))
    assert_cache_adds_up(store)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE])
def test_a_named_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """What nobody may list is left out, and named; what could not be listed for a moment is a failure."""
    turn = store.session("s").begin("names a folder")
    turn.touch(root / "made")
    write(root / "made/closed/file", "new")
    write(root / "made/file", "new")
    real = os.scandir

    def fails(path: Any = ".") -> Any:
        if os.fsencode(path).endswith(b"/closed"):
            raise OSError(number, os.strerror(number), path)
        return real(path)

    monkeypatch.setattr(os, "scandir", fails)
    if number == errno.EMFILE:
        with pytest.raises(Failed):
            turn.end()
        monkeypatch.setattr(os, "scandir", real)
        assert set(in_commit(store, turn.end())) == {b"made/closed/file", b"made/file"}
    else:
        commit = turn.end()
        assert set(in_commit(store, commit)) == {b"made/file"}
        assert left_out(store, commit) == {"made/closed": "cannot be read: Permission denied"}


def test_the_case_of_ignored_names_counts_as_the_user_s_git_is_told(root: Path, store: Store) -> None:
    """`core.ignorecase` of the user's repository, also when it is set later."""
    git_in(root, "init", "-q")
    git_in(root, "config", "core.ignorecase", "true")
    write(root / ".gitignore", "build/\n*.log\n")
    write(root / "Build" / "made", "1")
    write(root / "a.LOG", "1")
    session = store.session("s")
    with session.turn("ignored in any case") as turn:
        pass
    assert turn.commit is not None and {b"Build/made", b"a.LOG"}.isdisjoint(in_commit(store, turn.commit))
    git_in(root, "config", "core.ignorecase", "false")
    with session.turn("only as spelt") as turn:
        pass
    assert turn.commit is not None and {b"Build/made", b"a.LOG"} <= set(in_commit(store, turn.commit))
