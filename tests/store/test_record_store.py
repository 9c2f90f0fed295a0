"""The store itself: made whole or not at all, checked when it is opened, never trusted when it is damaged."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import (
    all_refs,
    as_root,
    assert_equal,
    assert_whole,
    bit_by_bit,
    child,
    in_commit,
    kinds,
    line,
    needs_strace,
    on_disk,
    quick_folder,
    tip,
    touched,
    write,
)

from snapstore import Corrupt, NoStore, SnapstoreError, Store, Unknown, Unsafe
from snapstore.cli.main import main
from snapstore.store import locations
from snapstore.surface.records.seeds import UndoStateRecord
from snapstore.surface.status import read_status
from snapstore.timeline.maintenance.check import Check
from snapstore.timeline.record import create_store as creation
from snapstore.timeline.record.create_store import adopt_store, create_store

CREATE = """
import sys
from snapstore import Store
with Store.open(sys.argv[1], create=True) as store:
    print(store.header.id)
"""


def rewrite_header(store: Store, **changes: object) -> None:
    """A header that is whole, but says something else."""
    from snapstore.store.state import encode

    for name, value in changes.items():
        setattr(store.header, name, value)
    Path(store.state, "format").write_bytes(encode(store.header))


# Which store belongs to which folder (S3-23, S3-25, S3-26).


def test_one_store_a_root_outside_it_found_from_below_S3_23_S3_25(root: Path, nobodys_home: Path) -> None:
    (root / "deep/er").mkdir(parents=True)
    with Store.open(root, create=True) as store:
        assert Path(store.folder).parent == nobodys_home / "stores"
        assert not Path(store.folder).is_relative_to(root)
        assert os.listdir(root) == ["deep"]
    for start in (root, root / "deep", root / "deep/er", root / "deep/../deep"):
        with Store.open(start) as again:
            assert again.header.id == store.header.id
            assert again.root == os.fsencode(root)
    (root.parent / "alias").symlink_to(root)
    with Store.open(root.parent / "alias" / "deep") as again:
        assert again.header.id == store.header.id


def test_without_a_store_nothing_is_made_unasked(root: Path, nobodys_home: Path) -> None:
    with pytest.raises(NoStore) as caught:
        Store.open(root)
    assert (caught.value.status, "init" in caught.value.hint) == (13, True)
    assert not (nobodys_home / "stores").exists()


@pytest.mark.parametrize("name", ["with space", "naïve", "-rf", "..x", "x" * 255, "new\nline", "$(touch x)"])
def test_roots_of_any_name_get_a_store_G_36(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    root.mkdir()
    write(root / "file", "x")
    with Store.open(root, create=True) as store:
        assert all(character.isprintable() for character in Path(store.folder).name)
        with store.session("s").turn("here too"):
            write(root / "file", "y")
        assert_equal(store, tip(store, "s"), on_disk(root))
    with Store.open(root) as again:
        assert_whole(again)


def test_a_root_whose_name_is_not_utf_8_gets_a_store_G_36(tmp_path: Path) -> None:
    root = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    os.mkdir(root)
    write(root + "/file", "x")
    with Store.open(root, create=True) as store, store.session("s").turn("bytes"):
        write(root + "/file", "y")
    with Store.open(root) as again:
        assert_equal(again, tip(again, "s"), on_disk(root))


def test_roots_that_would_take_in_everything_are_refused_G_16(nobodys_home: Path, root: Path) -> None:
    home = str(nobodys_home / "stores")
    above = nobodys_home.parent
    inside = nobodys_home / "stores" / "inside"
    inside.mkdir(parents=True)
    for folder in (Path("/"), nobodys_home, above, inside, nobodys_home / "stores"):
        with pytest.raises(Unsafe):
            create_store(home, os.fsencode(folder))
    with pytest.raises(SnapstoreError):
        create_store(home, os.fsencode(root / "missing"))
    shutil.rmtree(inside)
    assert os.listdir(home) == []
    with Store.open(root, create=True):
        (root / "sub").mkdir()
        with pytest.raises(Unsafe, match="inside"):
            create_store(home, os.fsencode(root / "sub"))


def test_a_store_inside_its_root_does_not_capture_itself(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNAPSTORE_HOME", str(root / "stores"))
    write(root / "file", "x")
    with Store.open(root, create=True) as store:
        for number in range(3):
            with store.session("s").turn("work"):
                write(root / "file", str(number))
        assert set(in_commit(store, tip(store, "s"))) == {b"file"}
        assert kinds(store, "s") == ["baseline", "turn", "turn", "turn"]


# What is the truth and what is only said of it.


def test_each_session_has_a_document_and_git_has_the_truth(root: Path, store: Store) -> None:
    """S0-04, C17: a JSON document each, in a folder of their own. What it says is read again from the refs where it is
    lost, and the state of undo is worked out from them."""
    for name in ("one", "two"):
        session = store.session(name)
        for number in (1, 2):
            with session.turn(f"turn {number}"):
                write(root / name, str(number))
        session.move(session.plan_undo(1 if name == "one" else 2))
    documents = Path(store.state, "sessions")
    kept = [path for path in sorted(documents.iterdir()) if path.stem in ("one", "two")]
    assert [path.name for path in kept] == ["one.json", "two.json"]
    assert [json.loads(path.read_text())["session"] for path in kept] == ["one", "two"]
    before = {name: UndoStateRecord.of(store.session(name), name) for name in ("one", "two")}
    assert [(state.currentTurnIndex, state.totalTurns) for state in before.values()] == [(1, 2), (0, 2)]
    assert all(state.expected == tip(store, name) for name, state in before.items())
    for path in kept:
        path.unlink()
    with Store.open(root) as again:
        assert {name: UndoStateRecord.of(again.session(name), name) for name in before} == before


# The header and the owner.


def test_a_newer_format_is_refused_and_nothing_written_S3_26(root: Path, store: Store) -> None:
    """S3-26, C17."""
    store.session("s").begin("old").end()
    rewrite_header(store, format=2)
    before = bit_by_bit(Path(store.folder))
    for create in (False, True):
        with pytest.raises(Corrupt, match="format 2") as caught:
            Store.open(root, create=create)
        assert caught.value.status == 14
        assert "Update" in caught.value.hint
    assert bit_by_bit(Path(store.folder)) == before


def test_a_header_of_another_root_is_refused_S3_26(root: Path, store: Store, tmp_path: Path) -> None:
    """S3-26, C17."""
    other = tmp_path / "other"
    other.mkdir()
    place = locations.store_folder(store.home, os.fsencode(other))
    shutil.copytree(store.folder, place, symlinks=True)
    os.chmod(place, 0o700)
    before = bit_by_bit(Path(place))
    with pytest.raises(Corrupt, match="another folder") as caught:
        Store.open(other)
    assert "adopt" in caught.value.hint
    assert bit_by_bit(Path(place)) == before


@as_root
def test_a_store_of_another_owner_is_refused(root: Path, store: Store) -> None:
    os.chown(store.folder, 65534, 65534)
    before = bit_by_bit(Path(store.folder))
    with pytest.raises(Unsafe, match="another user") as caught:
        Store.open(root)
    assert caught.value.status == 15
    assert bit_by_bit(Path(store.folder)) == before


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o702, 0o720])
def test_a_store_that_others_can_write_is_refused(root: Path, store: Store, mode: int) -> None:
    os.chmod(store.folder, mode)
    with pytest.raises(Unsafe, match="other users can write"):
        Store.open(root)
    assert stat.S_IMODE(os.stat(store.folder).st_mode) == mode


def test_no_store_is_made_where_permissions_are_not_kept(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on exfat, mounted for everybody. Nobody is told to mend a folder that is gone again."""
    mkdir = os.mkdir

    def open_to_all(path: str, *more: int, **named: int) -> None:
        mkdir(path, *more, **named)
        os.chmod(path, 0o777, **named)

    monkeypatch.setattr(os, "mkdir", open_to_all)
    home = tmp_path / "elsewhere"
    with pytest.raises(Unsafe, match="other users") as caught:
        create_store(str(home), os.fsencode(root))
    assert "SNAPSTORE_HOME" in caught.value.hint and creation._BUILDING not in str(caught.value) + caught.value.hint
    assert list(home.iterdir()) == []


def test_a_store_that_others_can_merely_read_is_closed_to_them(root: Path, store: Store) -> None:
    os.chmod(store.folder, 0o755)
    with Store.open(root):
        assert stat.S_IMODE(os.stat(store.folder).st_mode) == 0o700


# A root that moved.


def test_the_store_of_a_moved_root_is_adopted(root: Path, store: Store) -> None:
    write(root / "file", "1")
    with store.session("s").turn("before the move"):
        write(root / "file", "2")
    before = line(store, "s")
    store.close()
    moved = root.parent / "elsewhere" / root.name
    moved.parent.mkdir()
    root.rename(moved)
    with pytest.raises(NoStore):
        Store.open(moved)
    assert adopt_store(store.home, os.fsencode(moved)) == str(root)
    with Store.open(moved) as again:
        assert line(again, "s") == before
        with again.session("s").turn("after the move"):
            write(moved / "file", "3")
        assert touched(again, tip(again, "s")) == {b"file": "M"}
        assert kinds(again, "s")[-1] == "turn"
        assert_equal(again, tip(again, "s"), on_disk(moved))
        assert_whole(again)
    root.mkdir()
    with pytest.raises(NoStore):
        Store.open(root)


def test_adoption_asks_when_it_cannot_tell(tmp_path: Path, nobodys_home: Path) -> None:
    home = str(nobodys_home / "stores")
    for name in ("one", "two"):
        folder = tmp_path / name / "project"
        folder.mkdir(parents=True)
        write(folder / "file", name)
        Store.open(folder, create=True).close()
        shutil.rmtree(folder)
    new = tmp_path / "project"
    new.mkdir()
    with pytest.raises(Unknown, match="cannot tell"):
        adopt_store(home, os.fsencode(new))
    adopt_store(home, os.fsencode(new), str(tmp_path / "two/project"))
    with Store.open(new) as store:
        assert in_commit(store, tip(store, "shell"))[b"file"][1] == b"two"
    with pytest.raises(NoStore, match="project has a store already"):
        adopt_store(home, os.fsencode(new))


def test_a_living_root_s_store_is_not_taken_from_it(tmp_path: Path, nobodys_home: Path) -> None:
    """A folder of the same name elsewhere, its store in use: not a move."""
    first = tmp_path / "a" / "project"
    first.mkdir(parents=True)
    Store.open(first, create=True).close()
    second = tmp_path / "b" / "project"
    second.mkdir(parents=True)
    with pytest.raises(Unknown):
        adopt_store(str(nobodys_home / "stores"), os.fsencode(second))
    Store.open(first).close()


@needs_strace
@pytest.mark.parametrize("syscall", ["rename", "fsync"])
def test_an_adoption_killed_at_any_point_is_mended_by_the_next(tmp_path: Path, syscall: str) -> None:
    code = """
import os, sys
from snapstore.timeline.record.create_store import adopt_store
adopt_store(sys.argv[1], os.fsencode(sys.argv[2]))
"""
    for number in range(1, 9):
        with quick_folder() as folder:
            home, old, new = folder / "stores", folder / "old/project", folder / "new/project"
            old.mkdir(parents=True)
            write(old / "file", "x")
            Store.open(old, create=True, home=str(home)).close()
            new.parent.mkdir()
            old.rename(new)
            under = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={syscall}"]
            under += ["-e", f"inject={syscall}:signal=SIGKILL:when={number}"]
            done = child(code, home, new, under=under)
            if done.returncode == 0:
                assert number > 1
                return
            try:
                store = Store.open(new, home=str(home))
            except NoStore:
                adopt_store(str(home), os.fsencode(new))
                store = Store.open(new, home=str(home))
            with store:
                assert in_commit(store, tip(store, "shell")) == on_disk(new)
                assert_whole(store)
    raise AssertionError("it never got through")


# Making one.


def test_four_processes_that_make_the_store_at_once_make_one(root: Path, nobodys_home: Path) -> None:
    for number in range(200):
        write(root / f"d{number % 10}/f{number}", str(number))
    code = """
import sys
from snapstore import Store
print("ready", flush=True)
sys.stdin.readline()
with Store.open(sys.argv[1], create=True) as store:
    with store.session(sys.argv[2]).turn("at once") as turn:
        turn.touch(f"{sys.argv[1]}/by-{sys.argv[2]}")
        open(f"{sys.argv[1]}/by-{sys.argv[2]}", "w").write("x")
    print(store.header.id)
"""
    names = ["a", "b", "c", "d"]
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(root), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    ids = set()
    for worker in workers:
        out, err = worker.communicate(timeout=60)
        assert worker.returncode == 0, err
        ids.add(out.strip())
    assert len(ids) == 1
    assert len(os.listdir(nobodys_home / "stores")) == 1
    with Store.open(root) as store:
        for name in names:
            assert touched(store, tip(store, name)) == {f"by-{name}".encode(): "A"}
        assert_whole(store)


@needs_strace
def test_a_creation_is_not_swept_away_by_another_that_starts_just_then(root: Path, nobodys_home: Path) -> None:
    """One process is held up between making its lock file and locking it, while another begins and sweeps."""
    write(root / "file", "x")
    slow = ["strace", "-f", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:delay_enter=700000:when=1"]
    first = subprocess.Popen(
        [*slow, sys.executable, "-c", CREATE, str(root)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    stores = nobodys_home / "stores"
    while first.poll() is None and not list(stores.glob(".building-*/building")):
        pass
    second = child(CREATE, root)
    out, err = first.communicate(timeout=60)
    assert second.returncode == 0, second.stderr.decode()
    assert first.returncode == 0, err.decode()
    assert out == second.stdout
    assert len(os.listdir(stores)) == 1


@needs_strace
@pytest.mark.parametrize("syscall", ["mkdir", "rename", "unlink", "fsync", "pwrite64", "ftruncate", "link"])
def test_a_killed_creation_leaves_nothing_that_hinders_the_next(syscall: str) -> None:
    """Killed at each call in turn (every third fsync): the next creation works and cleans up."""
    with quick_folder() as folder:
        root = folder / "project"
        for number in range(5):
            write(root / f"f{number}", str(number))
        fired = 0
        for number in range(1, 100, 3 if syscall in ("fsync", "mkdir") else 1):
            home = folder / f"stores{number}"
            under = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={syscall}"]
            under += ["-e", f"inject={syscall}:signal=SIGKILL:when={number}"]
            done = child(CREATE, root, under=under, environment={"SNAPSTORE_HOME": str(home)})
            if done.returncode == 0:
                break
            fired += 1
            for leftover in home.glob(".building-*") if home.exists() else ():
                os.utime(leftover, (0, 0))  # a minute later
            with Store.open(root, create=True, home=str(home)) as store:
                assert_equal(store, line(store, "shell")[0]["commit"], on_disk(root))
                with store.session("s").turn("go on"):
                    write(root / "f0", str(number + 1))
                assert_equal(store, tip(store, "s"), on_disk(root))
                assert_whole(store)
                assert os.listdir(home) == [Path(store.folder).name]
        else:
            raise AssertionError("it never got through")
        assert fired > 0 or syscall in ("link", "ftruncate", "pwrite64")


def test_a_failed_creation_leaves_nothing(root: Path, nobodys_home: Path) -> None:
    write(root / "file", "x")
    stores = nobodys_home / "stores"
    stores.write_text("a file where the folder should be")
    with pytest.raises(SnapstoreError):
        Store.open(root, create=True)
    stores.unlink()
    Store.open(root, create=True).close()


# Damage.


Damage = Callable[[bytes], bytes]
DAMAGES: dict[str, Damage] = {
    "empty": lambda data: b"",
    "cut in half": lambda data: data[: len(data) // 2],
    "last byte lost": lambda data: data[:-1],
    "first byte lost": lambda data: data[1:],
    "zeros": lambda data: bytes(len(data)),
    "another document": lambda data: b"[]",
    "text": lambda data: b"null",
    "noise": lambda data: bytes(range(256)),
    "doubled": lambda data: data + data,
}


@pytest.fixture
def with_open_turn(root: Path, store: Store) -> Store:
    write(root / "file", "0")
    with store.session("s").turn("ended"):
        write(root / "file", "1")
    turn = store.session("s").begin("open")
    turn.touch(root / "file")
    write(root / "file", "2")
    return store


def assert_refused(root: Path, store: Store, name: str, path: Path) -> None:
    """Whatever needs the document says which one is damaged, and writes nothing."""
    refs, data = all_refs(store), path.read_bytes()
    for action in ("begin", "end", "touch"):
        with pytest.raises(Corrupt) as caught, Store.open(root) as again:
            session = again.session("s")
            if action == "begin":
                session.begin("again")
            elif action == "end":
                session.end()
            else:
                session.touch([root / "file"])
        assert caught.value.status == 14
        assert name in str(caught.value) or caught.value.details.get("file") == name
        assert caught.value.hint
    assert all_refs(store) == refs
    assert path.read_bytes() == data


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["format", "open/s.json", "sessions/s.json"])
def test_a_damaged_document_is_refused_by_name_S3_26(root: Path, with_open_turn: Store, name: str, damage: str) -> None:
    path = Path(with_open_turn.state, name)
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[damage](whole))
    assert_refused(root, with_open_turn, name, path)
    if name != "format":
        with Store.open(root) as again:
            problems = Check(again).run().problems
        assert [problem.refusal and problem.refusal.details.get("file") for problem in problems] == [name]
    path.write_bytes(whole)
    with Store.open(root) as again:
        assert_equal(again, again.session("s").end(), on_disk(root))
        assert_whole(again)


@pytest.mark.parametrize("name", ["format", "open/s.json", "sessions/s.json"])
def test_a_flipped_bit_anywhere_in_a_document_is_noticed_S3_26(root: Path, with_open_turn: Store, name: str) -> None:
    """A changed digit is as bad as a lost brace: a wrong number, path or commit must not be believed."""
    path = Path(with_open_turn.state, name)
    whole = path.read_bytes()
    unnoticed = []
    for at in range(len(whole)):
        data = bytearray(whole)
        data[at] ^= 1 << (at % 7)
        path.write_bytes(data)
        try:
            documents = Store.open(root).documents
            documents.open_turn("s")
            documents.session("s")
        except Corrupt as error:
            assert name in str(error) or error.details.get("file") == name or name == "format"
        else:
            unnoticed.append(bytes(data[max(0, at - 10) : at + 10]))
    assert unnoticed == []


@pytest.mark.parametrize("name", ["open/s.json", "sessions/s.json"])
def test_the_advice_for_a_damaged_document_works(root: Path, with_open_turn: Store, name: str) -> None:
    """Move it away, the message says: then nothing is lost but the turn's bracket."""
    path = Path(with_open_turn.state, name)
    path.write_bytes(b"{")
    with pytest.raises(Corrupt) as caught, Store.open(root) as again:
        again.session("s").begin("next")
    assert str(path) in caught.value.hint
    path.rename(path.with_suffix(".away"))
    with Store.open(root) as again:
        again.session("s").begin("next").end()
        assert_equal(again, tip(again, "s"), on_disk(root))
        numbers = [int(commit["trailers"]["Seq"]) for commit in line(again, "s")]
        assert numbers == list(range(len(numbers)))
        assert_whole(again)


def test_a_damaged_journal_that_is_done_or_torn_changes_nothing(root: Path, with_open_turn: Store) -> None:
    """What a torn write leaves is no journal: nothing had been moved yet. The old state is whole, and work goes on."""
    path = Path(with_open_turn.state, "journal")
    if not path.exists():
        path.write_bytes(b"")
    whole = path.read_bytes()
    refs = all_refs(with_open_turn)
    for damage in DAMAGES.values():
        path.write_bytes(damage(whole))
        try:
            Store.open(root).close()
        except Corrupt as error:
            assert "journal" in str(error)
        assert all_refs(with_open_turn) == refs
    path.write_bytes(whole)
    with Store.open(root) as again:
        assert_equal(again, again.session("s").end(), on_disk(root))
        assert_whole(again)


def damaged_caches(whole: bytes) -> dict[str, bytes]:
    found = {name: damage(whole) for name, damage in DAMAGES.items()}
    for at in range(0, len(whole), max(1, len(whole) // 25)):
        flipped = bytearray(whole)
        flipped[at] ^= 0x10
        found[f"flipped at {at}"] = bytes(flipped)
        found[f"cut at {at}"] = whole[:at]
    return found


@pytest.mark.parametrize("name", ["stat", "stat.log"])
@pytest.mark.parametrize("reopened", [False, True], ids=["kept open", "reopened"])
def test_a_damaged_stat_cache_is_rebuilt_silently_and_right(
    root: Path, store: Store, name: str, reopened: bool
) -> None:
    for number in range(12):
        write(root / f"d{number % 3}/f{number}", f"{number}\n" * 10)
    write(root / ".gitignore", "*.ignored\n")
    write(root / "x.ignored", "never captured")
    said: list[str] = []
    session = store.session("s")
    session.begin("first").end()
    path = Path(store.state, name)
    rounds = 0
    while True:
        with session.turn("fill the cache and its log"):
            write(root / "d0/f0", f"before round {rounds}")
            write(root / f"d1/new{rounds}", "x")
        assert path.exists(), "the log is written by small turns"
        variants = list(damaged_caches(path.read_bytes()).values())
        if rounds >= len(variants):
            break
        path.write_bytes(variants[rounds])
        if reopened:
            store.close()
            store = Store.open(root, say=said.append)
            session = store.session("s")
        # A turn right after the damage: its changes to known files are its own, and the tree is the disk.
        turn = session.begin("after the damage")
        assert_equal(store, tip(store, "s"), {p: e for p, e in on_disk(root).items() if p != b"x.ignored"})
        write(root / "d0/f0", f"round {rounds}")
        (root / f"d1/new{rounds}").unlink()
        commit = turn.end()
        assert touched(store, commit) == {b"d0/f0": "M", f"d1/new{rounds}".encode(): "D"}
        rounds += 1
    assert "edits" not in kinds(store, "s")
    assert said == []
    assert_whole(store)
    store.close()


def test_a_stat_cache_damaged_between_begin_and_end_is_right_too(root: Path, store: Store) -> None:
    for number in range(6):
        write(root / f"f{number}", str(number))
    session = store.session("s")
    for lose in ("stat", "stat.log"):
        turn = session.begin("damage in the middle")
        write(root / "f0", lose)
        (root / "f1").unlink(missing_ok=True)
        path = Path(store.state, lose)
        path.write_bytes(path.read_bytes()[:-3] if path.exists() else b"noise")
        commit = turn.end()
        assert_equal(store, commit, on_disk(root))
        assert b"f0" in touched(store, commit)
        write(root / "f1", "back")


def test_an_older_stat_cache_put_back_is_right_too(root: Path, store: Store) -> None:
    """As after a power cut: it was never synced."""
    session = store.session("s")
    olds: list[dict[str, bytes | None]] = []
    for number in range(4):
        with session.turn("work"):
            write(root / f"f{number}", str(number))
            write(root / "common", str(number))
            (root / f"f{number - 2}").unlink(missing_ok=True)
        paths = {name: Path(store.state, name) for name in ("stat", "stat.log")}
        olds.append({name: path.read_bytes() if path.exists() else None for name, path in paths.items()})
    states = [olds[0], olds[2], {"stat": olds[3]["stat"], "stat.log": olds[1]["stat.log"]}]
    states.append({"stat": olds[0]["stat"], "stat.log": olds[3]["stat.log"]})
    for old in states:
        for name, data in old.items():
            if data is None:
                Path(store.state, name).unlink(missing_ok=True)
            else:
                Path(store.state, name).write_bytes(data)
        with Store.open(root) as again:
            turn = again.session("s").begin("look")
            assert_equal(again, tip(again, "s"), on_disk(root))
            write(root / "common", "again")
            assert_equal(again, turn.end(), on_disk(root))
            assert_whole(again)


def test_a_damaged_memo_of_the_user_s_repository_is_as_good_as_none(root: Path, store: Store) -> None:
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    write(root / "a", "1")
    subprocess.run(["git", "add", "a"], cwd=root, check=True)
    session = store.session("s")
    session.begin("first").end()
    path = Path(store.state, "user-git.json")
    whole = path.read_bytes()
    for name, damage in DAMAGES.items():
        path.write_bytes(damage(whole))
        turn = session.begin(name)
        commit = turn.end()
        assert line(store, "s")[-1]["record"]["user_git"] == {}, name
        assert tip(store, "s") == commit.hex()


def test_a_store_without_its_parts_says_so(root: Path, store: Store) -> None:
    store.session("s").begin("x").end()
    for name in ("store.git/objects", "store.git/refs", "state/format"):
        path = Path(store.folder, name)
        path.rename(path.with_name("away"))
        with pytest.raises(Corrupt):
            Store.open(root).session("s").begin("y")
        path.with_name("away").rename(path)
    with Store.open(root) as again:
        again.session("s").begin("y").end()
        assert_whole(again)


def test_what_does_not_need_the_damaged_pack_works_and_check_names_the_rest(root: Path, store: Store) -> None:
    """A middle turn's pack is lost: recording goes on, other turns read, and the report says what is missing."""
    commits = []
    for number in range(4):
        with store.session("s").turn(f"turn {number}") as turn:
            write(root / f"f{number}", os.urandom(100).hex())
        assert turn.commit is not None
        commits.append(turn.commit)
    packs = Path(store.shadow.git_dir, "objects/pack")
    lost = None
    for pack in packs.glob("*.idx"):
        listing = subprocess.run(["git", "verify-pack", "-v", str(pack)], capture_output=True, text=True, check=True)
        if commits[1].hex() in listing.stdout:
            lost = pack
    assert lost is not None
    lost.unlink()
    lost.with_suffix(".pack").unlink()
    with Store.open(root) as again:
        problems = Check(again).run().problems
        assert problems
        assert any(commits[1].hex() in str(problem) for problem in problems)
        with again.session("s").turn("go on") as turn:
            write(root / "f3", "changed")
        assert turn.commit is not None
        entry = again.shadow.trees.file(again.shadow.commit(turn.commit).tree, b"f3")
        assert entry is not None
        assert again.shadow.objects.read(entry[1]) == (b"blob", b"changed")


# Large ones.


def test_a_root_so_large_that_it_may_not_be_meant_is_told(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """G-16: to whoever makes the store, or in `status` where an agent's hook made it; once, and nothing is refused."""
    monkeypatch.setattr(creation, "MANY_FILES", 3)
    told: list[str] = []
    for name in ("two", "three", "by-hand", "hook"):
        (root / name).mkdir()
        for number in range(2 if name == "two" else 3):
            write(root / name / f"f{number}", "x")
    Store.open(root / "two", create=True, say=told.append).close()
    assert not [text for text in told if "is large" in text]
    Store.open(root / "three", create=True, say=told.append).close()
    [warning] = [text for text in told if "is large" in text]
    assert warning.startswith(f"{root / 'three'} is large: 3 files, ") and ".snapstoreignore" in warning
    told.clear()
    Store.open(root / "three", create=True, say=told.append).close()
    assert told == []
    assert main(["init", str(root / "by-hand")]) == 0
    assert "by-hand is large: 3 files" in capsys.readouterr().err
    with Store.open(root / "hook", create=True) as store:
        [noted] = read_status(store.session()).hook_errors
        assert "hook is large: 3 files" in noted
    monkeypatch.setattr(creation, "MANY_FILES", 10)
    monkeypatch.setattr(creation, "MANY_BYTES", 1)
    (root / "bytes").mkdir()
    Store.open(root / "bytes", create=True, say=told.append).close()
    assert any("bytes is large: 0 files" in text for text in told)
