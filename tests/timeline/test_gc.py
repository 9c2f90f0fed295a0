"""gc: one pack of what is needed, nothing of what is not, beside turns that go on (G-16, G-17, S1-64)."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import assert_record, snap, snap_json
from helpers import (
    all_refs,
    assert_equal,
    assert_whole,
    bit_by_bit,
    git_in,
    living_child,
    on_disk,
    tip,
    turn,
    write,
)
from helpers import git as plain_git
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from snapstore import Session, Store
from snapstore.errors import Busy, Corrupt, Failed, Unsafe
from snapstore.git.maintenance import fold, pack_builder
from snapstore.git.maintenance import repack as git_repack
from snapstore.git.maintenance.repack import Repack
from snapstore.git.objects import pack_files
from snapstore.git.objects.ids import BLOB, object_id
from snapstore.git.program import environment
from snapstore.store import log as logbook
from snapstore.surface.records.keeping import GcRecord
from snapstore.timeline.maintenance import auto, gc

HOUR = 3600
WAYS = {"git": None, "ourselves": ""}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def way(request: pytest.FixtureRequest) -> str | None:
    """With git, and as though there were none."""
    found: str | None = request.param
    return found


@pytest.fixture
def session(store: Store) -> Session:
    return store.session("s")


def packs(store: Store, suffix: str = "pack") -> list[Path]:
    return sorted(Path(store.shadow.objects.pack_folder).glob(f"pack-*.{suffix}"))


def age(store: Store, seconds: float) -> None:
    """As though nothing had been written for so long."""
    then = time.time() - seconds
    for path in Path(store.shadow.objects.folder).rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def unreferenced(store: Store, data: bytes) -> bytes:
    """A blob in a pack of its own that nothing refers to."""
    writer = store.shadow.objects.writer()
    oid = writer.add(BLOB, data)
    base = store.shadow.objects.finish(writer)
    store.shadow.objects.release(base)
    return oid


def many_turns(session: Session, root: Path, number: int) -> dict[str, dict[bytes, tuple[bytes, bytes]]]:
    """Turns on a file that changes a little each time; gives what was on disk after each."""
    lines = [f"line {n} of a text that stays much the same" for n in range(200)]
    found = {}
    for n in range(number):
        lines[n * 7 % 200] = f"changed by turn {n}"
        commit = turn(session, root, f"turn {n}", text="\n".join(lines), **{f"sub__made_{n % 5}": str(n)})
        found[commit] = on_disk(root)
    return found


def repack(store: Store, way: str | None, grace: float = 0) -> Repack:
    packed_by = (
        pack_builder.without_git if way == "" else pack_builder.with_git("git", environment(store.shadow.git_dir))
    )
    return Repack(store.shadow.objects, older_than=time.time() - grace, packing=packed_by)


# What it does


def test_everything_is_in_one_small_pack_and_every_turn_restores(
    root: Path, store: Store, session: Session, way: str | None
) -> None:
    saved = many_turns(session, root, 40)
    refs = all_refs(store)
    done = gc.collect(store, git=way).packed
    assert (len(packs(store)), done.packs_after) == (1, 1)
    assert done.packs_before > 1
    assert done.bytes_after < done.bytes_before / 2
    assert all_refs(store) == refs
    for commit, files in saved.items():
        assert_equal(store, commit, files)
    assert_whole(store)
    session.begin("goes on").end()
    assert "goes on" in plain_git(store.shadow.git_dir, "log", "-1", "--format=%s", tip(store, "s")).decode()


def test_packed_without_git_it_is_hardly_larger(root: Path, store: Store, session: Session) -> None:
    """At most 1.2 times what `git repack -adF` makes of it."""
    many_turns(session, root, 200)
    gc.collect(store, git="")
    ours = sum(path.stat().st_size for path in packs(store))
    plain_git(store.shadow.git_dir, "repack", "-adFq")
    assert ours <= 1.2 * sum(path.stat().st_size for path in packs(store))


def test_what_git_made_small_does_not_grow_without_it(root: Path, store: Store, session: Session) -> None:
    """Large files are not compared by ourselves; what git found is taken over."""
    data = bytearray(os.urandom(3 << 20))
    saved = {}
    for number in range(5):
        data[number * 1000] ^= 255
        write(root / "large", bytes(data))
        saved[session.begin(f"turn {number}").end().hex()] = on_disk(root)
    gc.collect(store)
    small = sum(path.stat().st_size for path in packs(store))
    assert small < 4 << 20
    write(root / "large", bytes(data) + b"more")
    saved[session.begin("one more").end().hex()] = on_disk(root)
    gc.collect(store, git="")
    assert sum(path.stat().st_size for path in packs(store)) < small + (3 << 20) + 10_000
    for commit, files in saved.items():
        assert_equal(store, commit, files)
    assert_whole(store)


def test_again_it_changes_nothing(root: Path, store: Store, session: Session, way: str | None) -> None:
    many_turns(session, root, 5)
    gc.collect(store, git=way)
    before = packs(store)
    gc.collect(store, git=way)
    assert packs(store) == before
    assert_whole(store)


def test_loose_objects_are_packed(root: Path, store: Store, session: Session, way: str | None) -> None:
    """Ordinary git on the store writes them."""
    turn(session, root, "one", a="1")
    plain_git(store.shadow.git_dir, "tag", "-a", "-m", "mine", "s/mine", tip(store, "s"))
    loose = plain_git(store.shadow.git_dir, "hash-object", "-w", "--stdin", feed=b"young and unreferenced").decode()
    done = gc.collect(store, git=way).packed
    assert (done.loose, done.waiting) == (2, 1)
    left = os.stat(store.shadow.objects.loose_path(bytes.fromhex(loose.strip()))).st_blocks * 512
    assert done.bytes_after == left + sum(path.stat().st_blocks * 512 for path in packs(store, "*"))
    assert list(store.shadow.objects.loose_ids()) == [bytes.fromhex(loose.strip())]
    assert plain_git(store.shadow.git_dir, "cat-file", "-t", "s/mine").strip() == b"tag"
    assert_whole(store)


def test_a_dry_run_changes_nothing(root: Path, store: Store, session: Session, way: str | None) -> None:
    many_turns(session, root, 5)
    unreferenced(store, b"x")
    age(store, 30 * 86400)
    Path(store.state, "left.new").write_text("by a kill")
    before = {name: row for name, row in bit_by_bit(Path(store.folder)).items() if Path(store.folder, name).is_file()}
    done = gc.collect(store, git=way, dry_run=True)
    assert done.packed.dropped >= 1
    assert done.packed.bytes_after < done.packed.bytes_before
    after = {name: row for name, row in bit_by_bit(Path(store.folder)).items() if Path(store.folder, name).is_file()}
    assert {name: row for name, row in after.items() if name != "state/lock"} == {
        name: row for name, row in before.items() if name != "state/lock"
    }


def test_a_large_file_passes_through_in_pieces(root: Path, store: Store, session: Session) -> None:
    """Without git: memory is bounded, whatever a file's size."""
    with open(root / "large", "wb") as file:
        for number in range(40):
            file.write(os.urandom(64) * 16384 + str(number).encode())
    session.begin("large").end()
    done = gc.collect(store, git="").packed
    assert done.packs_after == 1
    assert_equal(store, tip(store, "s"), on_disk(root))
    assert_whole(store)


# What it keeps


def test_what_nothing_refers_to_stays_for_the_grace_time(
    root: Path, store: Store, session: Session, way: str | None
) -> None:
    turn(session, root, "one", a="1")
    oid = unreferenced(store, b"somebody may be about to refer to it")
    first = gc.collect(store, git=way).packed
    assert (first.dropped, first.waiting) == (0, 1)
    assert store.shadow.objects.contains(oid)
    turn(session, root, "two", a="2")
    age(store, 13 * 86400)
    assert gc.collect(store, git=way).packed.dropped == 0
    waiting = next(pack for pack in packs(store) if store.shadow.objects.contains(oid) and pack.stat().st_size < 100)
    assert time.time() - waiting.stat().st_mtime > 12 * 86400, "it does not grow younger by being kept"
    age(store, 15 * 86400)
    assert gc.collect(store, git=way).packed.dropped >= 1
    assert not store.shadow.objects.contains(oid)
    assert len(packs(store)) == 1
    assert_whole(store)


def test_young_ones_among_needed_ones_move_to_a_pack_that_keeps_their_age(
    root: Path, store: Store, session: Session, way: str | None
) -> None:
    turn(session, root, "one", a="1")
    refs = store.shadow.refs
    turn(session, root, "two", a="2")
    second = tip(store, "s")
    refs.update("refs/heads/s/main", bytes.fromhex(second), refs.read("refs/heads/shell/main"))  # lost by somebody
    age(store, 5 * 86400)
    done = gc.collect(store, git=way, grace=10 * 86400).packed
    assert done.waiting >= 3
    assert store.shadow.objects.contains(bytes.fromhex(second))
    ages = sorted(round((time.time() - pack.stat().st_mtime) / 86400) for pack in packs(store))
    assert ages == [0, 5]
    gc.collect(store, git=way, grace=4 * 86400)
    assert not store.shadow.objects.contains(bytes.fromhex(second))
    assert_whole(store)


def test_a_pack_that_somebody_keeps_is_left_alone(root: Path, store: Store, session: Session, way: str | None) -> None:
    turn(session, root, "one", a="1")
    mine = packs(store)[0]
    mine.with_suffix(".keep").write_text("mine\n")
    turn(session, root, "two", a="2")
    before = (mine.stat().st_ino, mine.stat().st_mtime_ns)
    gc.collect(store, git=way, grace=0)
    assert (mine.stat().st_ino, mine.stat().st_mtime_ns) == before
    assert_whole(store)


def test_what_was_borrowed_is_neither_stored_again_nor_lost(tmp_path: Path, way: str | None) -> None:
    """ENGINE: dulwich's gc deleted a kept, hard-linked pack, and 28.6 MB became 175."""
    root = tmp_path / "checkout"
    write(root / "a", "a" * 5000)
    write(root / "b/c", "c" * 5000)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["gc", "-q"]):
        git_in(root, *words)
    with Store.open(root, create=True) as store:
        linked = [pack for pack in packs(store) if pack.stat().st_nlink > 1]
        assert linked, "nothing was borrowed: there is nothing to test"
        saved = many_turns(store.session("s"), root, 5)
        done = gc.collect(store, git=way).packed
        assert linked[0].exists()
        assert done.packs_after == 1
        # The user packs again: what was shared takes room of ours from then on, with all their history in it.
        write(root / "a", "more")
        git_in(root, "commit", "-qam", "two")
        git_in(root, "repack", "-adFq")
        git_in(root, "reflog", "expire", "--expire=now", "--all")
        assert linked[0].stat().st_nlink == 1
        age(store, 30 * 86400)
        gc.collect(store, git=way)
        assert len(packs(store)) == 1
        assert not linked[0].exists()
        assert not linked[0].with_suffix(".keep").exists()
        for commit, files in saved.items():
            assert_equal(store, commit, files)
        assert_whole(store)


def test_everything_that_refers_to_objects_counts(root: Path, store: Store, session: Session, way: str | None) -> None:
    """G-17: refs of every kind, open turns, the tree of the last scan."""
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    snap(root, "undo", "--session", "s", "--yes")
    write(root / "a", "by hand")
    snap(root, "redo", "--session", "s", "--force", "--yes")
    snap(root, "checkpoint", "here", "--session", "s")
    other = store.session("t")
    other.begin("open")
    other.touch([root / "theirs"])
    write(root / "theirs", "half done")
    session.begin("meanwhile")
    write(root / "mine", "1")
    session.end(scan=True)
    age(store, 99 * 86400)
    before = all_refs(store)
    gc.collect(store, git=way, grace=0)
    assert all_refs(store) == before
    assert_whole(store)
    other.end()
    assert_equal(store, tip(store, "t"), on_disk(root))


# Beside turns


def test_a_turn_that_counts_on_an_object_about_to_go_keeps_it(
    root: Path, store: Store, session: Session, way: str | None
) -> None:
    """The race that git answers with a grace time: here even none is safe."""
    turn(session, root, "one", a="1")
    text = b"the very same bytes" * 100
    oid = unreferenced(store, text)
    loose = plain_git(store.shadow.git_dir, "hash-object", "-w", "--stdin", feed=b"loose" + text).decode().strip()
    with repack(store, way) as work:
        with store.changing():
            work.survey(gc.roots(store))
        work.build()
        assert work.result.dropped == 2
        with Store.open(root) as beside:
            commit = turn(beside.session("s"), root, "two", b=text.decode(), c=(b"loose" + text).decode())
        with store.changing():
            work.install(gc.roots(store))
    assert store.shadow.objects.contains(oid)
    assert store.shadow.objects.contains(bytes.fromhex(loose))
    assert_equal(store, commit, on_disk(root))
    assert_whole(store)


def test_a_turn_may_begin_and_end_at_any_time(root: Path, store: Store, session: Session, way: str | None) -> None:
    many_turns(session, root, 3)
    open_turn = session.begin("open all the while")
    write(root / "a", "1")
    session.touch([root / "a"])
    with repack(store, way) as work:
        with store.changing():
            work.survey(gc.roots(store))
        write(root / "a", "2")
        session.touch([root / "a"], after=True)
        work.build()
        write(root / "b", "3")
        session.touch([root / "b"], after=True)
        with store.changing():
            work.install(gc.roots(store))
    open_turn.end()
    assert_equal(store, tip(store, "s"), on_disk(root))
    assert_whole(store)


WORKER = """
import sys
from snapstore import Store
root = sys.argv[1]
print("ready", flush=True)
for number in range(int(sys.argv[2])):
    with Store.open(root) as store:
        session = store.session("w")
        session.begin(f"{number}")
        for name in ("one", "two"):
            session.touch([f"{root}/{name}"])
            with open(f"{root}/{name}", "w") as file:
                file.write(f"{name} {number // 2}")
        session.end()
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("rounds", [12, pytest.param(200, marks=pytest.mark.deep)])
def test_turns_go_on_while_gc_after_gc_runs(root: Path, store: Store, way: str | None, rounds: int) -> None:
    """With no grace at all, and a store that is opened anew for each turn."""
    with living_child(WORKER, root, rounds) as worker:
        collected = 0
        os.set_blocking(worker.stdout.fileno(), False)
        while worker.stdout.readline() != b"done\n":
            gc.collect(store, git=way, grace=0)
            collected += 1
            assert worker.poll() is None
    assert collected
    numbers = plain_git(store.shadow.git_dir, "log", "--reverse", "--format=%s", tip(store, "w")).decode().split("\n")
    assert [name for name in numbers if name.isdecimal()] == [str(number) for number in range(rounds)]
    assert_whole(store)
    assert_equal(store, tip(store, "w"), on_disk(root))


@pytest.mark.parametrize("place", ["refs/heads/s", "logs/refs/notes"])
def test_refs_that_cannot_be_listed_are_not_taken_for_none(
    root: Path, store: Store, session: Session, monkeypatch: pytest.MonkeyPatch, way: str | None, place: str
) -> None:
    """A folder that could not be opened for a moment (EMFILE, EIO) is no empty one: its turns would be garbage."""
    many_turns(session, root, 3)
    commit, real = tip(store, "s"), os.scandir

    def fails(path: str = ".") -> Iterator[os.DirEntry[str]]:
        if str(path).endswith(place):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        return real(path)

    monkeypatch.setattr(os, "scandir", fails)
    with pytest.raises(Failed):
        gc.collect(store, grace=0, git=way)
    monkeypatch.setattr(os, "scandir", real)
    assert store.shadow.objects.contains(bytes.fromhex(commit))
    assert_whole(store)


def test_turns_do_not_wait_for_the_length_of_history(
    root: Path, store: Store, session: Session, way: str | None
) -> None:
    """What is done under the lock costs what came since, not what was there: each turn ever has a line in a reflog."""
    many_turns(session, root, 150)
    asked: list[bytes] = []
    objects = store.shadow.objects
    with repack(store, way) as work:
        known = gc.roots(store)
        work.survey(known)
        work.build()
        many_turns(session, root, 12)
        for name in ("read", "header", "contains"):
            real = getattr(objects, name)

            def counted(oid: bytes, *, real: Callable[..., object] = real, **options: bool) -> object:
                asked.append(oid)
                return real(oid, **options)

            setattr(objects, name, counted)
        work.install(gc.roots(store, known))
    assert len(known) > 150
    assert len(asked) < 12 * 10, "a commit, two folders and the records of each"
    for name in ("read", "header", "contains"):
        delattr(objects, name)
    assert_whole(store)


def test_somebodys_git_that_packs_while_the_old_packs_go_loses_nothing(
    root: Path, store: Store, session: Session, way: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G-17. It would make again the pack that is about to go, and find the new one superfluous."""
    saved = many_turns(session, root, 5)
    plain_git(store.shadow.git_dir, "repack", "-adfq")
    remove = git_repack.remove_if_there

    def slowly(path: str) -> None:
        if path.endswith(".idx"):
            plain_git(store.shadow.git_dir, "repack", "-adfq")
        remove(path)

    monkeypatch.setattr(git_repack, "remove_if_there", slowly)
    gc.collect(store, git=way, grace=0)
    for commit, files in saved.items():
        assert_equal(store, commit, files)
    assert_whole(store)
    assert not list(Path(store.shadow.objects.pack_folder).glob("*.keep"))


def test_old_packs_stay_where_the_new_one_is_not(
    root: Path, store: Store, session: Session, way: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever took it away."""
    saved = many_turns(session, root, 5)
    before = packs(store)
    show = git_repack.show

    def shown_and_gone(base: str, target: str) -> None:
        show(base, target)
        os.unlink(f"{target}.pack")

    monkeypatch.setattr(git_repack, "show", shown_and_gone)
    gc.collect(store, git=way, grace=0)
    assert set(before) <= set(packs(store))
    for path in Path(store.shadow.objects.pack_folder).glob("*.idx"):
        if not path.with_suffix(".pack").exists():
            path.unlink()
    for commit, files in saved.items():
        assert_equal(store, commit, files)


def test_packs_that_somebodys_git_takes_away_meanwhile_fail_nothing(
    root: Path, store: Store, session: Session, way: str | None
) -> None:
    saved = many_turns(session, root, 5)
    with repack(store, way) as work:
        with store.changing():
            roots = gc.roots(store)
            store.shadow.objects.close()  # so that none of them has been looked into
            work.survey(roots)
        plain_git(store.shadow.git_dir, "repack", "-adfq")
        work.build()
        plain_git(store.shadow.git_dir, "repack", "-adfq")
        with store.changing():
            work.install(gc.roots(store))
    for commit, files in saved.items():
        assert_equal(store, commit, files)
    assert_whole(store)


def test_small_packs_put_together_are_kept_until_the_old_ones_are_gone(
    root: Path, store: Store, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = pack_files.remove_if_there

    def slowly(path: str) -> None:
        if path.endswith(".idx"):
            plain_git(store.shadow.git_dir, "repack", "-adq")
        remove(path)

    monkeypatch.setattr(pack_files, "remove_if_there", slowly)
    saved = many_turns(session, root, fold.FOLD_AT + 4)
    for commit, files in saved.items():
        assert_equal(store, commit, files)
    assert_whole(store)


def test_two_at_once_are_one_too_many(root: Path, store: Store, session: Session) -> None:
    with repack(store, "") as _, pytest.raises(Busy, match="another gc"):
        gc.collect(store)
    gc.collect(store)


def test_small_packs_are_not_put_together_while_a_gc_reads_them(root: Path, store: Store, session: Session) -> None:
    with repack(store, ""):
        for number in range(40):
            turn(session, root, str(number), a=str(number))
        assert len(packs(store)) > 32
    turn(session, root, "last", a="last")
    assert len(packs(store)) < 32


# Leftovers


def test_leftovers_of_killed_processes_go(root: Path, store: Store, session: Session, tmp_path: Path) -> None:
    """G-16: temporary packs of ours and of git, half-made stores, `.new` files, stale locks; young ones of git stay."""
    turn(session, root, "one", a="1")
    folder = Path(store.shadow.objects.pack_folder)
    old = time.time() - 2 * HOUR
    nobody = 2**22 + 1  # more than any process can have for a number
    dead = [
        folder / f"snapstore_{nobody}_abc.part",
        folder / "tmp_pack_abcdef",
        folder / "pack-1234.pack",
        folder / "pack-1234.rev",
        folder / "pack-5678.keep",
        folder / "pack-9abc.keep",
        folder.parent / "17" / "tmp_obj_abc",
        folder.parent / "snapstore_gc" / "pack-1.pack",
        folder.parent / "snapstore_purge" / "pack-1.pack",
        Path(store.state, "open", "x.json.new"),
        Path(store.folder, "config.toml.new"),
        Path(store.shadow.git_dir, "refs/heads/s/main.lock"),
        Path(store.shadow.git_dir, "packed-refs.lock"),
        Path(store.home, ".building-0123", "state"),
    ]
    for path in dead:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"snapstore {nobody}\n" if path.name == "pack-9abc.keep" else "x")
        os.utime(path, (old, old))
        if path.parent.name.startswith(".building"):
            os.utime(path.parent, (old, old))
    living = folder / "tmp_pack_at_work"
    living.write_text("x")
    done = gc.collect(store)
    assert done.leftovers >= 8
    assert [path for path in dead if path.exists()] == []
    assert living.exists()
    assert_whole(store)


WRITER = """
import sys
from snapstore import Store
from snapstore.git.objects.ids import BLOB, object_id
store = Store.open(sys.argv[1])
objects = store.shadow.objects
writer = objects.writer()
writer.add(BLOB, b"to be sent")
objects.finish(writer)
half = objects.writer()
half.add(BLOB, b"half")
half._flush()
print("ready", flush=True)
sys.stdin.readline()
"""


def test_what_a_living_process_writes_without_the_lock_is_no_leftover(
    root: Path, store: Store, session: Session, way: str | None
) -> None:
    """A push writes what it is about to send, and moves refs to it once that is done."""
    turn(session, root, "one", a="1")
    folder = Path(store.shadow.objects.pack_folder)
    sent = object_id(BLOB, b"to be sent")
    with living_child(WRITER, root):
        age(store, 2 * HOUR)
        assert gc.collect(store, git=way, grace=0).leftovers == 0
        assert store.shadow.objects.contains(sent)
        assert (len(list(folder.glob("*.keep"))), len(list(folder.glob("snapstore_*")))) == (1, 1)
    age(store, 2 * HOUR)
    assert gc.collect(store, git=way, grace=0).leftovers == 2
    assert not store.shadow.objects.contains(sent)


def test_reflogs_of_records_do_not_keep_old_ones_for_ever(root: Path, store: Store, session: Session) -> None:
    many_turns(session, root, 6)
    log = Path(store.shadow.git_dir, "logs/refs/notes/turns")
    lines = log.read_text().splitlines(keepends=True)
    assert len(lines) >= 6
    day_before = str(int(time.time()) - 2 * 86400)
    log.write_text("".join(line.replace(line.split("> ")[1].split()[0], day_before) for line in lines[:-1]) + lines[-1])
    done = gc.collect(store, grace=0).packed
    assert log.read_text() == lines[-1]
    assert done.dropped >= 8
    assert_whole(store)


def test_files_of_git_that_tell_of_old_packs_go(root: Path, store: Store, session: Session) -> None:
    many_turns(session, root, 3)
    plain_git(store.shadow.git_dir, "multi-pack-index", "write")
    plain_git(store.shadow.git_dir, "commit-graph", "write", "--reachable")
    gc.collect(store)
    assert_whole(store)
    plain_git(store.shadow.git_dir, "log", "--all")


# Refusals


def test_where_the_disk_would_be_full_nothing_is_begun(
    root: Path, store: Store, session: Session, way: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_turns(session, root, 3)
    before = packs(store)
    monkeypatch.setattr(fold, "SPARE", 1 << 60)
    with pytest.raises(Failed, match="MB are free on the disk"):
        gc.collect(store, git=way)
    assert packs(store) == before
    auto.run(store)
    assert "MB are free on the disk" in logbook.last(f"{store.folder}/log")[-1]
    session.begin("goes on").end()


def test_what_a_git_that_failed_leaves_takes_no_room(
    root: Path, store: Store, session: Session, tmp_path: Path
) -> None:
    """Half a pack on a full disk: every turn after it would be lost. A git that was killed leaves it to the next gc."""
    many_turns(session, root, 3)
    failing = tmp_path / "git"
    write(failing, '#!/bin/sh\ncd "$GIT_OBJECT_DIRECTORY" && mkdir pack && echo half > pack/tmp_pack_half\nexit 1\n')
    failing.chmod(0o755)
    before = sorted(path for path in Path(store.shadow.objects.folder).rglob("*"))
    with pytest.raises(Failed, match="git could not pack"):
        gc.collect(store, git=str(failing))
    assert sorted(path for path in Path(store.shadow.objects.folder).rglob("*")) == before
    half = Path(store.shadow.objects.folder, fold.WORK, "pack", "tmp_pack_half")
    write(half, "of one that was killed")
    gc.collect(store)
    assert not half.exists()


def test_a_planted_configuration_runs_no_program(root: Path, store: Store, session: Session, tmp_path: Path) -> None:
    turn(session, root, "one", a="1")
    with open(f"{store.shadow.git_dir}/config", "a") as file:
        file.write(f'[core]\n\tfsmonitor = "touch {tmp_path}/ran"\n')
    with pytest.raises(Unsafe, match="fsmonitor"):
        gc.collect(store)
    assert not (tmp_path / "ran").exists()


def test_a_damaged_store_is_left_as_it_is(root: Path, store: Store, session: Session, way: str | None) -> None:
    turn(session, root, "one", a="1")
    blob = store.shadow.trees.file(store.shadow.commit(bytes.fromhex(tip(store, "s"))).tree, b"a")
    assert blob is not None
    pack = next(pack for pack in store.shadow.objects.packs() if pack.find(blob[1]) is not None)
    data = bytearray(Path(f"{pack.base}.pack").read_bytes())
    at = pack.find(blob[1])
    assert at is not None
    data[at + 5] ^= 0xFF  # in the deflated bytes
    os.chmod(f"{pack.base}.pack", 0o644)
    Path(f"{pack.base}.pack").write_bytes(data)
    before = packs(store)
    with Store.open(root) as again, pytest.raises((Failed, Corrupt)):
        gc.collect(again, git=way)
    assert packs(store) == before
    assert not os.path.exists(f"{store.shadow.objects.folder}/snapstore_gc")


# On the command line


def test_gc_says_what_it_did(root: Path) -> None:
    for number in range(5):
        snap(root, "run", "--", "sh", "-c", f"echo {number} > file")
    would = snap(root, "gc", "--dry-run").stdout
    assert would.startswith("Would pack ")
    assert would.endswith("Nothing was changed.\n")
    assert snap(root, "gc").stdout.startswith("Packed ")
    assert snap(root, "gc", "-q").stdout == ""
    document = snap_json(root, "gc", "--grace", "1d", "--json")
    assert_record(GcRecord, document)
    assert document["packed_by"] == "git"
    assert snap(root, "gc", "--grace", "soon", status=2).stderr
    assert "intact" in snap(root, "check", "--read-data").stdout


def test_without_git_in_the_path_we_pack_ourselves(root: Path, tmp_path: Path) -> None:
    snap(root, "run", "--", "sh", "-c", "echo 1 > file")
    assert snap_json(root, "gc", "--json", PATH=str(tmp_path))["packed_by"] == "snapstore"


# By itself


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gc pays from the first byte on."""
    monkeypatch.setattr(auto, "PAYS_FROM", 1)


def till_packs_are_put_together(session: Session, root: Path) -> None:
    for _ in range(2):
        write(root / "noise", os.urandom(1_100_000))
        session.begin("large").end()
    for number in range(34):
        turn(session, root, str(number), a=str(number))


def eventually(what: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def quiet(store: Store) -> bool:
    try:
        with repack(store, ""):
            return os.path.exists(f"{store.state}/kept")
    except Busy:
        return False


def test_it_runs_by_itself_when_it_pays_and_no_turn_waits(
    root: Path, store: Store, session: Session, eager: None
) -> None:
    """In the background, at the end of a turn that found many packs."""
    till_packs_are_put_together(session, root)
    eventually(lambda: quiet(store))
    eventually(lambda: len(packs(store)) < 10)
    store.shadow.objects.reload()
    assert_whole(store)
    assert logbook.last(f"{store.folder}/log") == []


def test_it_does_not_where_it_was_turned_off_or_has_just_run(
    root: Path, store: Store, session: Session, eager: None
) -> None:
    store.configure(gc_auto=False)
    till_packs_are_put_together(session, root)
    assert auto.is_due(store, auto._pack_sizes(store))
    assert not os.path.exists(f"{store.state}/kept")
    store.configure(gc_auto=None)
    auto.run(store)
    before = os.stat(f"{store.state}/kept").st_mtime_ns
    till_packs_are_put_together(session, root)
    assert auto.is_due(store, auto._pack_sizes(store))
    assert os.stat(f"{store.state}/kept").st_mtime_ns == before


def test_what_goes_wrong_by_itself_is_in_the_log(root: Path, store: Store, session: Session) -> None:
    with open(f"{store.shadow.git_dir}/config", "a") as file:
        file.write("[alias]\n\tx = y\n")
    auto.run(store)
    assert "alias.x" in logbook.last(f"{store.folder}/log")[-1]


@pytest.fixture
def full(root: Path, store: Store, session: Session) -> Iterator[Session]:
    """A store of some 300 kB that may take 100."""
    for number in range(3):
        write(root / "noise", os.urandom(100_000))
        turn(session, root, str(number), a=str(number))
    yield session


def test_a_store_that_grows_full_is_told_of(root: Path, full: Session) -> None:
    """S1-64: from 80 % on, at the end of turns, in the log once, and in `status`."""
    store = full.store
    said: list[str] = []
    store.say = said.append
    store.configure(max_store_size=10_000_000)
    turn(full, root, "room", a="x")
    assert said == []
    store.configure(max_store_size=440_000)
    write(root / "noise", os.urandom(100_000))
    turn(full, root, "more", a="y")
    assert any("% of max_store_size" in text for text in said)
    assert sum("max_store_size" in text for text in logbook.last(f"{store.folder}/log")) == 1
    turn(full, root, "again", a="z")
    assert sum("max_store_size" in text for text in logbook.last(f"{store.folder}/log")) == 1
    shown = snap(root, "status").stdout
    assert "of 440 kB" in shown
    assert snap_json(root, "status", "--json")["max_store_size"] == 440_000


def test_a_full_store_lets_go_of_what_it_may_and_says_what_it_cannot(root: Path, full: Session) -> None:
    """S1-64: never the current line; a turn is recorded all the same."""
    store = full.store
    store.configure(max_store_size=100_000)
    write(root / "noise", os.urandom(100_000))
    commit = turn(full, root, "over the limit", a="x")
    eventually(lambda: quiet(store))
    eventually(lambda: any("nothing is left to prune" in text for text in logbook.last(f"{store.folder}/log")))
    store.shadow.objects.reload()
    assert_equal(store, commit, on_disk(root))
    assert_whole(store)


def test_what_was_let_go_of_just_now_is_not_said_to_be_all(root: Path, full: Session) -> None:
    """It is too young to go, and goes by itself: nobody has to set the limit higher for it."""
    store = full.store
    store.configure(max_store_size=100_000)
    unreferenced(store, os.urandom(50_000))
    auto.run(store)
    last = logbook.last(f"{store.folder}/log")[-1]
    assert "freed within hours" in last and "raise max_store_size" not in last
    age(store, 7200)
    auto.run(store)
    assert "nothing is left to prune" in logbook.last(f"{store.folder}/log")[-1]


def test_what_lies_beside_the_packs_counts_for_the_limit(root: Path, full: Session) -> None:
    store = full.store
    packed = sum(auto._pack_sizes(store))
    said: list[str] = []
    store.say = said.append
    Path(store.state, "stat").write_bytes(bytes(2_000_000))
    store.configure(max_store_size=packed + 1_000_000)
    auto.check_size(store, folded=False)
    assert any("% of max_store_size" in text for text in said)


@pytest.mark.parametrize("file", ["shallow", "info/grafts"])
def test_a_history_that_was_cut_short_for_git_is_not_taken_for_garbage(
    root: Path, store: Store, session: Session, file: str
) -> None:
    """A line in one of these, and git sees no parents: everything before would go."""
    many_turns(session, root, 3)
    Path(store.shadow.git_dir, file).write_text(tip(store, "s") + "\n")
    with pytest.raises(Unsafe, match=file):
        gc.collect(store, grace=0)
    gc.collect(store, grace=0, git="")
    Path(store.shadow.git_dir, file).unlink()
    assert_whole(store)


def test_a_work_tree_that_somebody_made_with_git_keeps_its_commits(
    root: Path, store: Store, session: Session, tmp_path: Path, way: str | None
) -> None:
    turn(session, root, "one", a="1")
    there = tmp_path / "there"
    plain_git(store.shadow.git_dir, "worktree", "add", "-q", "--detach", str(there), tip(store, "s"))
    write(there / "mine", "x")
    git_in(there, "add", ".")
    git_in(there, "commit", "-qm", "nobody else's")
    write(there / "staged", "not yet committed")
    git_in(there, "add", "staged")
    plain_git(store.shadow.git_dir, "--work-tree", str(there), "add", "mine")
    git_in(
        there, "update-ref", "refs/bisect/bad", git_in(there, "commit-tree", "-m", "b", "HEAD^{tree}").decode().strip()
    )
    age(store, 99 * 86400)
    gc.collect(store, grace=0, git=way)
    assert git_in(there, "log", "-1", "--format=%s") == b"nobody else's\n"
    assert git_in(there, "status", "--porcelain") == b"A  staged\n"
    assert git_in(there, "show", ":staged") == b"not yet committed"
    assert git_in(there, "log", "-1", "--format=%s", "refs/bisect/bad") == b"b\n"
    assert plain_git(store.shadow.git_dir, "show", ":mine") == b"x"
    assert_whole(store)


def test_a_git_that_cannot_say_what_it_made_costs_nothing(
    root: Path, store: Store, session: Session, tmp_path: Path
) -> None:
    """It ends well when its last write fails; without a grace time everything would have gone (strace found it)."""
    saved = many_turns(session, root, 3)
    age(store, 99 * 86400)
    real = shutil.which("git")
    for script in (f'{real} "$@" >/dev/null', "exit 0", f'{real} "$@" </dev/null'):
        door = tmp_path / "git"
        door.write_text(f"#!/bin/sh\n{script}\n")
        door.chmod(0o755)
        before = packs(store)
        with pytest.raises(Failed, match="left out"):
            gc.collect(store, grace=0, git=str(door))
        assert packs(store) == before
    for commit, files in saved.items():
        assert_equal(store, commit, files)


LINES = some.lists(some.sampled_from([b"a line of some length\n", b"another one, longer yet\n", b"\n", b"}\n", b"x"]))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some.lists(LINES, min_size=2, max_size=4, unique_by=tuple))
def test_any_versions_packed_without_git_are_read_back(
    root: Path, store: Store, session: Session, versions: list[list[bytes]]
) -> None:
    for number, lines in enumerate(versions):
        write(root / "text", b"".join([b"a first line that stays\n"] * 9 + lines).decode())
        session.turn(f"version {number}").end(scan=True)
    gc.collect(store, git="")
    assert_whole(store)


def test_a_version_packed_without_git_takes_what_is_new_in_it(root: Path, store: Store, session: Session) -> None:
    lines = [f"line {number} of a text {os.urandom(8).hex()}\n" for number in range(400)]
    write(root / "text", "".join(lines))
    session.turn("one").end(scan=True)
    write(root / "text", "".join([*lines[200:], "new here\n", *lines[:100], "and there\n", *lines[100:150]]))
    session.turn("two").end(scan=True)
    gc.collect(store, git="")
    [index] = Path(store.shadow.objects.pack_folder).glob("*.idx")
    rows = [
        row.split() for row in plain_git(store.shadow.git_dir, "verify-pack", "-v", str(index)).decode().splitlines()
    ]
    # Of a delta there are also its depth and its base.
    assert [row for row in rows if row[1:2] == ["blob"] and len(row) == 7 and int(row[3]) < 200]


def test_a_link_where_it_works_leads_nowhere(root: Path, store: Store, session: Session, tmp_path: Path) -> None:
    """Somebody's folder must not be emptied."""
    turn(session, root, "one", a="1")
    write(tmp_path / "precious/file", "x")
    folder = Path(store.shadow.objects.folder)
    (folder / "snapstore_gc").symlink_to(tmp_path / "precious")
    with pytest.raises(Unsafe, match="not a folder"):
        gc.collect(store)
    (folder / "snapstore_gc").unlink()
    write(tmp_path / "precious/tmp_old", "x")
    os.utime(tmp_path / "precious/tmp_old", (1, 1))
    (folder / "zz").symlink_to(tmp_path / "precious")
    gc.collect(store)
    assert sorted(os.listdir(tmp_path / "precious")) == ["file", "tmp_old"]


@pytest.mark.parametrize("folder", ["00", "ff", "pack", "info"])
def test_a_link_among_the_folders_of_objects_is_not_emptied(
    root: Path, store: Store, session: Session, tmp_path: Path, way: str | None, folder: str
) -> None:
    """Somebody's files behind it may have names like those that gc removes."""
    many_turns(session, root, 3)
    place, mine = Path(store.shadow.objects.folder, folder), tmp_path / "mine"
    if place.exists():
        place.rename(mine)
    write(mine / ("1" * 38), "mine")
    write(mine / "empty.keep", "")
    write(mine / "pack-1.pack", "mine")
    place.symlink_to(mine)
    for path in mine.iterdir():
        os.utime(path, (1, 1))
    before = {path: path.stat().st_ino for path in mine.iterdir()}
    with pytest.raises(Unsafe, match="is a link"):
        gc.collect(store, git=way, grace=0)
    assert {path: path.stat().st_ino for path in mine.iterdir()} == before


def test_what_is_only_called_like_a_head_of_gits_is_no_hindrance(root: Path, store: Store, session: Session) -> None:
    turn(session, root, "one", a="1")
    os.mkfifo(f"{store.shadow.git_dir}/FIFO_HEAD")
    Path(store.shadow.git_dir, "DIR_HEAD").mkdir()
    Path(store.shadow.git_dir, "LINK_HEAD").symlink_to("FIFO_HEAD")
    gc.collect(store)
    assert_whole(store)
