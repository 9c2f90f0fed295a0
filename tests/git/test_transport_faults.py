"""Fetch and push that break: the wire cut at many places, processes killed at every call, disks that are full. Nothing
is lost, nothing is half visible, and the next run goes through (TESTING, faults 1 to 3)."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import faults
import pytest
import remotes
from faults import age_locks
from helpers import all_refs, git, needs_strace, quick_folder
from remotes import bare, needs_lighttpd
from test_faults_disk import in_private_mounts
from transporting import MAIN, History, leftovers, objects_in, received, shadow_with

from snapstore.errors import SnapstoreError
from snapstore.git.objects import reachability
from snapstore.git.remote import git_driver, incoming
from snapstore.git.remote.open import open_remote
from snapstore.git.repository import Shadow

CHANGING = ("write", "pwrite64", "rename", "fsync", "mkdir", "unlink", "rmdir", "flock")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_driver, "PAUSES", ())


def push(url: str, history: History) -> dict[str, str | None]:
    with open_remote(url, timeout=20) as remote:
        there = remote.refs(push=True)
        new = [item[0] for item in reachability.new_objects(history.shadow.objects, [history.tip], there.values())]
        return remote.push({MAIN: (there.get(MAIN), history.tip)}, new, history.shadow.objects)


def pull(url: str, shadow: Shadow) -> None:
    with open_remote(url, timeout=20) as remote:
        refs = remote.refs()
        with remote.fetch(refs.values(), shadow.refs.list("refs/").values(), shadow.objects) as came:
            received(shadow, refs, came)


def places(total: int, count: int) -> list[int]:
    """Byte counts to cut after: every one at first, then spread."""
    return sorted({*range(1, 40, 13), *(round(total * at / count) for at in range(1, count))})


@pytest.mark.parametrize("way", ["git", pytest.param("http", marks=needs_lighttpd)])
def test_the_wire_is_cut_while_fetching(way: str, tmp_path: Path) -> None:
    history, folder = History(tmp_path / "ours.git", turns=12), tmp_path / "server"
    folder.mkdir()
    bare(folder / "turns.git")
    push(str(folder / "turns.git"), history)
    running = remotes.daemon(folder) if way == "git" else remotes.web(folder, tmp_path / "web", password=False)
    other = shadow_with(tmp_path / "other.git")
    broken = 0
    with running as url:
        port = int(url.removesuffix("/git").rpartition(":")[2])
        for after in places(7000, 24):
            with remotes.wire(port, down=after) as cut:
                try:
                    pull(url.replace(str(port), str(cut)) + "/turns.git", other)
                    break
                except SnapstoreError as error:
                    assert error.name in ("remote", "corrupt"), error
                    broken += 1
            assert all_refs(other.git_dir) == {} and objects_in(other.git_dir) == set() and leftovers(other) == []
        assert broken > 10
        pull(f"{url}/turns.git", other)
    assert all_refs(other.git_dir) == {MAIN: history.tip.hex()}
    git(other.git_dir, "fsck", "--strict")


@pytest.mark.parametrize("way", ["git", pytest.param("http", marks=needs_lighttpd)])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_the_wire_is_cut_while_pushing(way: str, direction: str, tmp_path: Path) -> None:
    """The server has all of it or none; and when it has all of it, though it could not say so, that is found out."""
    history, folder = History(tmp_path / "ours.git", turns=12), tmp_path / "server"
    folder.mkdir()
    git_dir = str(bare(folder / "turns.git"))
    running = remotes.daemon(folder) if way == "git" else remotes.web(folder, tmp_path / "web", password=False)
    broken = 0
    with running as url:
        port = int(url.removesuffix("/git").rpartition(":")[2])
        for after in places(6000 if direction == "up" else 700, 16):
            with remotes.wire(port, **{direction: after}) as cut:
                try:
                    push(url.replace(str(port), str(cut)) + "/turns.git", history)
                    break
                except SnapstoreError as error:
                    assert error.name == "remote", error
                    broken += 1
            assert all_refs(git_dir) in ({}, {MAIN: history.tip.hex()})
            git(git_dir, "fsck", "--strict", "--connectivity-only")
        assert broken > 5
        assert push(f"{url}/turns.git", history) == {MAIN: None}
    assert all_refs(git_dir) == {MAIN: history.tip.hex()}
    git(git_dir, "fsck", "--strict")


def strikes(work: Callable[[], object], check: Callable[[bool], None], most: int = 400) -> int:
    """The work, killed at each of its calls that change something, until none is left; counts the runs
    that came to nothing. Every git that it starts is under the same rule, so mostly it is one of those which dies."""
    struck = 0
    for call in CHANGING:
        for number in range(1, most):
            done = faults.strike(work, call, number, "signal=KILL")
            assert done.status in (-signal.SIGKILL, faults.DONE, faults.REFUSED), done
            check(done.status == faults.DONE)
            struck += done.status != faults.DONE
            if done.status == faults.DONE:
                break
    return struck


@needs_strace
def test_a_fetch_killed_anywhere_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    """SIGKILL at the Nth write, rename, fsync, … of a pull; then the next one goes through, and sweeps up."""
    with quick_folder() as quick:
        history = History(quick / "ours.git", turns=2)
        server = str(bare(quick / "server.git"))
        push(server, history)
        other = shadow_with(quick / "other.git")
        pull(server, other)
        old = history.tip
        new = history.turn()
        push(server, history)
        before = objects_in(other.git_dir)

        def check(done: bool) -> None:
            seen = Shadow(other.git_dir)
            assert all_refs(other.git_dir) in ({MAIN: old.hex()}, {MAIN: new.hex()})
            git(other.git_dir, "fsck", "--strict", "--connectivity-only")
            if done:
                assert all_refs(other.git_dir) == {MAIN: new.hex()}
            pull(server, seen)
            assert not [name for name in leftovers(seen) if name.startswith(incoming.FOLDER)]
            assert all_refs(other.git_dir) == {MAIN: new.hex()}
            git(other.git_dir, "fsck", "--strict", "--connectivity-only")
            reset(seen)

        def reset(seen: Shadow) -> None:
            seen.refs.update(MAIN, new, old)
            for name in os.listdir(seen.objects.pack_folder):
                if name not in packs:
                    os.unlink(f"{seen.objects.pack_folder}/{name}")
            assert objects_in(other.git_dir) == before

        packs = set(os.listdir(other.objects.pack_folder))
        assert strikes(lambda: pull(server, Shadow(other.git_dir)), check) > 10


@needs_strace
def test_a_push_killed_anywhere_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    """We, or one of the gits that push and receive, killed at the Nth call that changes something."""
    with quick_folder() as quick:
        history = History(quick / "ours.git", turns=2)
        server = bare(quick / "server.git")
        push(str(server), history)
        old = history.tip
        new = history.turn(large=os.urandom(150_000))
        ours = bits(history.git_dir)
        shutil.copytree(server, quick / "before")

        def check(done: bool) -> None:
            assert quiet(str(server)) in ({MAIN: old.hex()}, {MAIN: new.hex()})
            git(str(server), "fsck", "--strict", "--connectivity-only")
            if done:
                assert all_refs(str(server)) == {MAIN: new.hex()}
            age_locks(server)
            assert push(str(server), history) == {MAIN: None}
            assert all_refs(str(server)) == {MAIN: new.hex()}
            assert not list(server.rglob("*.lock"))
            assert bits(history.git_dir) == ours, "a push changes nothing here"
            shutil.rmtree(server)
            shutil.copytree(quick / "before", server)

        assert strikes(lambda: push(str(server), history), check) > 10


def test_a_lock_that_nobody_holds_is_cleared_and_a_fresh_one_is_not(tmp_path: Path) -> None:
    """git would wait for the locks of the dead for ever."""
    history = History(tmp_path / "ours.git", turns=2)
    server = bare(tmp_path / "server.git")
    push(str(server), history)
    old, new = history.tip, history.turn()
    for lock in (server / f"{MAIN}.lock", server / "packed-refs.lock"):
        lock.touch()
    assert "lock" in str(push(str(server), history)[MAIN])
    assert all_refs(str(server)) == {MAIN: old.hex()}
    age_locks(server)
    assert push(str(server), history) == {MAIN: None}
    assert all_refs(str(server)) == {MAIN: new.hex()}
    assert not list(server.rglob("*.lock"))


def quiet(server: str) -> dict[str, str]:
    """The server's refs, once the program that the dead one spoke to has come to its end. (It may leave a quarantine
    folder when it dies of the broken pipe; that is git's own, and git's gc takes it away.)"""
    end = time.monotonic() + 20
    while any(_works_in(process, server) for process in Path("/proc").glob("[0-9]*")):
        assert time.monotonic() < end
        time.sleep(0.01)
    return all_refs(server)


def _works_in(process: Path, folder: str) -> bool:
    try:
        return os.readlink(process / "cwd") == folder
    except OSError:
        return False


def bits(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_full_disk_here(tmp_path: Path) -> None:
    """A fetch that does not fit is refused and leaves nothing; when there is space it goes through."""
    history = History(tmp_path / "ours.git")
    history.turn(large=os.urandom(3 << 20))
    server = str(bare(tmp_path / "server.git"))
    push(server, history)
    found = in_private_mounts(
        """
from transporting import MAIN, leftovers, objects_in, shadow_with
from test_transport_faults import pull
place, server = Path(sys.argv[1]), sys.argv[2]
mount(str(place), "size=8m")
other = shadow_with(place / "other.git")
refused = 0
for spare in range(0, 7 << 20, 1 << 19):
    fill(str(place / "filler"), spare)
    try:
        pull(server, other)
        break
    except SnapstoreError as error:
        assert error.status == 1, error
        assert all_refs(other.git_dir) == {} and objects_in(other.git_dir) == set() and leftovers(other) == []
        refused += 1
print(json.dumps({"refused": refused, "refs": all_refs(other.git_dir)}))
""",
        tmp_path / "small",
        server,
    )
    assert found == {"refused": found["refused"], "refs": {MAIN: history.tip.hex()}}
    assert int(str(found["refused"])) >= 5


def test_a_full_disk_there(tmp_path: Path) -> None:
    """The server's refusal comes back as such; it keeps what it had, and takes the push when there is space."""
    found = in_private_mounts(
        """
import subprocess
from transporting import History, MAIN
from remotes import bare
from test_transport_faults import push
place, ours = Path(sys.argv[1]), Path(sys.argv[2])
mount(str(place), "size=8m")
server = str(bare(place / "server.git"))
history = History(ours, turns=1)
old = history.tip
push(server, history)
new = history.turn(large=os.urandom(3 << 20))
fill(str(place / "filler"), 1 << 20)
try:
    result = push(server, history)
    words = str(result[MAIN])
except SnapstoreError as error:
    assert error.status == 17, error
    words = error.message
assert all_refs(server) == {MAIN: old.hex()}
os.unlink(place / "filler")
assert push(server, history) == {MAIN: None}
subprocess.run(["git", "-C", server, "fsck", "--strict"], check=True, capture_output=True)
print(json.dumps({"words": words}))
""",
        tmp_path / "small",
        tmp_path / "second.git",
    )
    assert found["words"] not in ("None", "")


def test_two_fetches_at_once_do_not_sweep_each_other(tmp_path: Path) -> None:
    history = History(tmp_path / "ours.git", turns=4)
    server = str(bare(tmp_path / "server.git"))
    push(server, history)
    other = shadow_with(tmp_path / "other.git")
    with open_remote(server) as first, open_remote(server) as second:
        wants = first.refs().values()
        one = first.fetch(wants, [], other.objects)
        two = second.fetch(wants, [], Shadow(other.git_dir).objects)
        assert len(leftovers(other)) == 2
        received(other, {MAIN: history.tip}, one)
        received(other, {MAIN: history.tip}, two)
    assert leftovers(other) == []
    git(other.git_dir, "fsck", "--strict")


def test_many_hands_on_one_server(tmp_path: Path) -> None:
    """Four processes push turns of their own, and all try to move one common ref: each move is one of theirs, none is
    lost, nothing is overwritten (TESTING, fault 9)."""
    server = str(bare(tmp_path / "server.git"))
    context = multiprocessing.get_context("fork")
    first = History(tmp_path / "first.git")
    push(server, first)
    common = "refs/heads/shared/common"

    def work(number: int) -> None:
        own = f"refs/heads/s{number}/main"
        history = History(tmp_path / f"ours{number}.git")
        history.ref, history.tip = own, b""
        for _ in range(6):
            tip = history.turn()
            for _ in range(40):
                with open_remote(server, timeout=20) as remote:
                    there = remote.refs(push=True)
                    new = [item[0] for item in reachability.new_objects(history.shadow.objects, [tip], there.values())]
                    moves = {own: (there.get(own), tip)}
                    if number == 0 or common not in there:
                        moves[common] = (there.get(common), tip)
                    results = remote.push(moves, new, history.shadow.objects, atomic=True)
                    if not any(results.values()):
                        break
                    moved = remote.refs()
                    assert moved.get(own) == there.get(own), "all or none"
            else:
                os._exit(7)
        os._exit(0)

    workers = [context.Process(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode in (0, 7) for worker in workers] == [True] * 4
    refs = all_refs(server)
    git(server, "fsck", "--strict")
    for number in range(1, 4):
        assert len(git(server, "rev-list", refs[f"refs/heads/s{number}/main"]).split()) == 6
    assert common in refs


def test_what_a_killed_fetch_left_is_swept_by_the_next(tmp_path: Path) -> None:
    history = History(tmp_path / "ours.git", turns=1)
    server = str(bare(tmp_path / "server.git"))
    push(server, history)
    other = shadow_with(tmp_path / "other.git")

    def die() -> None:
        with open_remote(server) as remote:
            remote.fetch(remote.refs().values(), [], other.objects)
            os.kill(os.getpid(), signal.SIGKILL)

    process = multiprocessing.get_context("fork").Process(target=die)
    process.start()
    process.join()
    assert len(leftovers(other)) == 1
    assert objects_in(other.git_dir) == set()
    pull(server, other)
    assert leftovers(other) == []


@needs_strace
def test_what_is_fetched_is_on_the_disk_before_it_is_seen(tmp_path: Path) -> None:
    """TESTING, fault 4: pack and index are synced before the rename, the folder after it."""
    history = History(tmp_path / "ours.git", turns=1)
    server = str(bare(tmp_path / "server.git"))
    push(server, history)
    other = shadow_with(tmp_path / "other.git")
    code = "import sys; from test_transport_faults import pull, incoming, Shadow; incoming.SMALL = 0;"
    code += "pull(sys.argv[1], Shadow(sys.argv[2]))"
    trace = tmp_path / "trace"
    command = ["strace", "-y", "-e", "trace=fsync,rename", "-o", str(trace), sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([*command, server, other.git_dir], check=True, env=environment, capture_output=True)
    order = []
    for row in trace.read_text().splitlines():
        for name in (".pack", ".idx", "objects/pack>", "refs/heads"):
            if name in row and (name not in (".pack", ".idx") or incoming.FOLDER in row):
                order.append((row.split("(")[0], name))
    moved = [at for at, (call, name) in enumerate(order) if call == "rename" and name in (".pack", ".idx")]
    assert len(moved) == 2, order
    synced = [name for call, name in order[: moved[0]] if call == "fsync"]
    assert {".pack", ".idx"} <= set(synced), order
    assert ("fsync", "objects/pack>") in order[moved[1] :], order
    first_ref = next(at for at, (_, name) in enumerate(order) if name == "refs/heads")
    assert order.index(("fsync", "objects/pack>")) < first_ref, order
