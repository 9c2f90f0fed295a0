"""One writer at a time: dead, living, stopped holders, and lock files that somebody left (G-08)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from helpers import assert_equal, assert_whole, git, living_child, on_disk, plain_environment, tip, write

from snapstore import Busy, Store
from snapstore.git.refs import STALE_AFTER

HOLD = """
import sys
from snapstore import Store
store = Store.open(sys.argv[1])
with store.lock:
    print("ready", flush=True)
    sys.stdin.readline()
print("released", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNAPSTORE_LOCK_TIMEOUT", "0.7")


def test_a_killed_holder_s_lock_is_gone_with_it(root: Path, store: Store) -> None:
    with living_child(HOLD, root) as holder:
        with pytest.raises(Busy):
            store.session("s").begin("while it is held")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        write(root / "file", "x")
        store.session("s").begin("at once").end()
    assert_equal(store, tip(store, "s"), on_disk(root))
    assert_whole(store)


def test_a_living_holder_is_waited_for_then_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store.open(root, create=True).close()
    said: list[str] = []
    with living_child(HOLD, root) as holder, Store.open(root, say=said.append) as store:
        for action in (
            lambda: store.session("s").begin("x"),
            lambda: store.session("s").touch([root / "x"]),
            lambda: store.session("s").end(),
            lambda: store.session("s").cancel(),
            lambda: store.configure(max_file_size=1),
        ):
            with pytest.raises(Busy, match=rf"process {holder.pid}\b") as caught:
                action()
            assert caught.value.status == 11
            monkeypatch.setenv("SNAPSTORE_LOCK_TIMEOUT", "0.05")  # long enough once
        assert said
        assert all(str(holder.pid) in text for text in said)
        holder.stdin.write(b"\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == b"released\n"
        store.session("s").begin("now").end()


def test_a_holder_that_lets_go_in_time_costs_only_the_wait(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNAPSTORE_LOCK_TIMEOUT", "30")
    with living_child(HOLD, root) as holder:
        done: list[bytes] = []

        def work() -> None:
            with Store.open(root) as mine:
                done.append(mine.session("s").begin("patient").end())

        waiting = threading.Thread(target=work)
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        holder.stdin.write(b"\n")
        holder.stdin.flush()
        waiting.join(20)
        assert not waiting.is_alive()
    assert tip(store, "s") == done[0].hex()


def test_a_stopped_holder_is_named_and_its_turn_comes_when_it_goes_on(root: Path, store: Store) -> None:
    """SIGSTOP, as Ctrl-Z does it: it still holds the lock, and nobody may take it away."""
    with living_child(HOLD, root) as holder:
        holder.send_signal(signal.SIGSTOP)
        with pytest.raises(Busy, match=rf"process {holder.pid}\b"):
            store.session("s").begin("while it is stopped")
        holder.send_signal(signal.SIGCONT)
        holder.stdin.write(b"\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == b"released\n"
        store.session("s").begin("it went on").end()
    assert_whole(store)


@pytest.mark.parametrize("value", ["", "soon", "nan", "-1", "1e3"])
def test_a_senseless_patience_does_no_harm(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("SNAPSTORE_LOCK_TIMEOUT", value)
    store.session("s").begin("free").end()


def test_the_holder_s_name_is_shown_safely(root: Path, store: Store) -> None:
    """Its command line is anybody's text."""
    nasty = "\x1b[31m\u202e\nred"
    with living_child("import sys\nsys.argv[0] = sys.argv[2]\n" + HOLD, root, nasty):
        with pytest.raises(Busy) as caught:
            store.session("s").begin("x")
        assert str(caught.value).isprintable()


def test_the_lock_file_itself_may_hold_anything(root: Path, store: Store) -> None:
    for data in (b"", b"\xff\xfe\x00", b"999999999999999999999 x", b"x" * 100_000):
        Path(store.state, "lock").write_bytes(data)
        store.session("s").begin("x").end()
    Path(store.state, "lock").unlink()
    with Store.open(root) as again:
        again.session("s").begin("x").end()


REFS = [
    "HEAD.lock",
    "packed-refs.lock",
    "refs/heads/s/main.lock",
    "refs/heads/t/main.lock",
    "refs/snapstore/cursor/s.lock",
    "refs/snapstore/cursor/t.lock",
    "refs/snapstore/disk.lock",
    "refs/notes/turns.lock",
]


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_old_lock_files_planted_everywhere_are_cleared_at_once(root: Path, store: Store, packed: bool) -> None:
    with store.session("s").turn("before"):
        write(root / "file", "1")
    if packed:
        git(store.shadow.git_dir, "pack-refs", "--all", "--prune")
    for name in REFS:
        write(Path(store.shadow.git_dir, name), "left by a dead process\n")
        os.utime(Path(store.shadow.git_dir, name), (1, 1))
    started = time.monotonic()
    with Store.open(root) as again:
        with again.session("s").turn("after"):
            write(root / "file", "2")
        again.session("t").begin("a new session").end()
        assert_equal(again, tip(again, "s"), on_disk(root))
    assert time.monotonic() - started < STALE_AFTER
    for name in REFS:
        Path(store.shadow.git_dir, name).unlink(missing_ok=True)
    assert_whole(store)


def test_a_fresh_lock_file_that_nobody_gives_up_is_cleared_in_the_end(root: Path, store: Store) -> None:
    """No stale lock file ever needs a person: after some seconds its owner is dead, or not what it claims."""
    with store.session("s").turn("before"):
        write(root / "file", "1")
    path = Path(store.shadow.git_dir, "refs/heads/s/main.lock")
    path.write_text("just now\n")
    os.utime(path, (time.time() + 3600, time.time() + 3600))  # and a clock that went backwards
    with store.session("s").turn("after"):
        write(root / "file", "2")
    assert_equal(store, tip(store, "s"), on_disk(root))
    assert not path.exists()


def test_a_lock_held_by_a_living_git_is_respected(root: Path, store: Store) -> None:
    """A transaction of git's own holds the branch: our move waits until it is given up, and neither is lost."""
    with store.session("s").turn("before"):
        write(root / "file", "1")
    ref = "refs/heads/s/main"
    oid = tip(store, "s")
    holder = subprocess.Popen(
        ["git", "--git-dir", store.shadow.git_dir, "update-ref", "--stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=plain_environment(),
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write(f"start\nupdate {ref} {oid} {oid}\nprepare\n".encode())
    holder.stdin.flush()
    assert holder.stdout.readline() == b"start: ok\n"
    assert holder.stdout.readline() == b"prepare: ok\n"
    turn = store.session("s").begin("while git holds the branch")
    write(root / "file", "2")
    code = "import sys; from snapstore import Store; print(Store.open(sys.argv[1]).session('s').end().hex())"
    ours = subprocess.Popen([sys.executable, "-c", code, str(root)], stdout=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        ours.wait(0.8)
    holder.stdin.write(b"abort\n")
    holder.stdin.close()
    holder.wait()
    holder.stdout.close()
    out, _ = ours.communicate(timeout=20)
    assert ours.returncode == 0
    assert tip(store, turn.session.name) == out.decode().strip()
    assert_equal(store, tip(store, "s"), on_disk(root))
    assert_whole(store)


def test_readers_do_not_wait_for_a_writer(root: Path, store: Store) -> None:
    """Opening the store and reading its history need no lock."""
    from snapstore.timeline.history.history import History

    with store.session("s").turn("before"):
        write(root / "file", "1")
    with living_child(HOLD, root), Store.open(root) as again:
        nodes = History(again.session("s")).nodes()
        assert [node.kind for node in nodes] == ["baseline", "turn"]


RETAKER = """
import os, sys, time
path = sys.argv[1]
print("ready", flush=True)
stolen = 0
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        time.sleep(0.001)
        continue
    mine = os.fstat(fd).st_ino
    os.close(fd)
    time.sleep(0.1)
    try:
        stolen += os.stat(path).st_ino != mine
        os.unlink(path)
    except FileNotFoundError:
        stolen += 1
print(stolen, flush=True)
sys.stdin.readline()
"""


def test_a_lock_that_changes_hands_is_never_taken_from_a_living_holder(root: Path, store: Store) -> None:
    """Others take and give the branch's lock all the time, each for a moment: a long wait makes none of them dead."""
    with store.session("s").turn("before"):
        write(root / "file", "1")
    lock = Path(store.shadow.git_dir, "refs/heads/s/main.lock")
    with living_child(RETAKER, lock, STALE_AFTER + 1.5) as holder:
        with store.session("s").turn("in the crowd"):
            write(root / "file", "2")
        assert holder.stdout.readline() == b"0\n"
    assert_equal(store, tip(store, "s"), on_disk(root))


def test_threads_that_share_a_store_are_one_writer_at_a_time(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program with an agent a thread: a lock that the process has is not yet the thread's."""
    monkeypatch.setenv("SNAPSTORE_LOCK_TIMEOUT", "30")
    failures: list[BaseException] = []

    def work(name: str) -> None:
        session = store.session(name)
        try:
            for number in range(5):
                with session.turn(f"{name} {number}") as turn:
                    turn.touch(root / name)
                    write(root / name, f"{number}")
            session.move(session.plan_undo(2))
        except BaseException as error:
            failures.append(error)

    names = ["a", "b", "c", "d"]
    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert {name: len(store.session(name).snapshots()) - 1 for name in names} == dict.fromkeys(names, 3)
    assert [(root / name).read_text() for name in names] == ["2"] * 4
    assert_whole(store)


def test_a_thread_that_holds_the_store_is_waited_for_and_told_of(root: Path, store: Store) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            store.session("s").begin("meanwhile")
        except BaseException as error:
            failures.append(error)

    with store.lock:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        store.session("s").begin("its holder's own").end()
    assert [type(error) for error in failures] == [Busy]
    assert "another thread" in str(failures[0])
    work()
    assert len(failures) == 1
