"""Files and folders with any time stamp that a file system holds, sizes at the borders of 31 and 32 bits, and clocks
that are far off. What the stat cache cannot hold is compared by content."""

from __future__ import annotations

import os
import struct
from calendar import timegm
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from file_systems import KINDS, mounted
from helpers import assert_equal, in_commit, on_disk

from snapstore import Store
from snapstore.base.text import ago, date_text, seconds_of, timestamp
from snapstore.cli.main import main
from snapstore.git.objects import commits
from snapstore.timeline.history.history import History
from snapstore.worktree.scan import stat_cache
from snapstore.worktree.scan.stat_cache import StatCache

SECOND = 1_000_000_000


def _moment(year: int) -> int:
    return timegm((year, 6, 1, 12, 0, 0)) * SECOND + 123_456_789


# Each in nanoseconds. What a file system cannot hold it keeps as the nearest that it can.
STAMPS = {
    "1850": _moment(1850),
    "1901": _moment(1901),
    "1901, the first of 32 bits": -(1 << 31) * SECOND,
    "1969, the last nanosecond": -1,
    "1970": 0,
    "2038, the last of 31 bits": ((1 << 31) - 1) * SECOND,
    "2038, the first beyond": (1 << 31) * SECOND,
    "2106, the last of 32 bits": ((1 << 32) - 1) * SECOND + 999_999_999,
    "2106, the first beyond": (1 << 32) * SECOND,
    "2262, the last of 63 bits": (1 << 63) - 1,
    "2262, the first beyond": 1 << 63,
    "2300": _moment(2300),
    "2446": _moment(2446),
    "2500": _moment(2500),
    "9999": _moment(9999),
    "12000": 316_529_337_600 * SECOND,
    "the far past": -(1 << 61) * SECOND,
    "the far future": (1 << 61) * SECOND,
}


def _stamp(path: Path, moment: int) -> None:
    os.utime(path, ns=(moment, moment), follow_symlinks=False)


def _write_stamped(root: Path, text: str) -> None:
    """A file, a link and a folder of each stamp."""
    for number, moment in enumerate(STAMPS.values()):
        folder = root / f"folder{number}"
        folder.mkdir(exist_ok=True)
        link = folder / "link"
        if not link.is_symlink():
            link.symlink_to(f"to {number}")
        (folder / "file").write_text(f"{text} {number}\n")
        for path in (folder / "file", link, folder):
            _stamp(path, moment)


@pytest.fixture(params=KINDS)
def stamped(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    with mounted(request.param, tmp_path) as place:
        root = place / "project"
        root.mkdir()
        _write_stamped(root, "first")
        yield root


def test_turns_and_moves_of_files_and_folders_with_any_time_stamp(
    stamped: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Recorded, seen again as unchanged, undone, redone, with every command's exit status: in a process that keeps the
    cache in memory and in those that read it from disk."""
    first = on_disk(stamped)
    with Store.open(stamped, create=True) as store:
        session = store.session()
        assert_equal(store, store.shadow.refs.read("refs/heads/shell/main") or b"", first)
        turn = session.begin("Write all of them again")
        _write_stamped(stamped, "second")
        commit = turn.end()
        second = on_disk(stamped)
        assert_equal(store, commit, second)
    monkeypatch.chdir(stamped)
    for words in (["status"], ["diff"], ["undo", "-y"], ["status"], ["redo", "-y"], ["log"], ["check"], ["gc"]):
        assert main(words) == 0, (words, capsys.readouterr())
        if words == ["undo", "-y"]:
            assert on_disk(stamped) == first
    monkeypatch.chdir(stamped.parent.parent)  # a file system in use cannot be unmounted
    assert on_disk(stamped) == second
    with Store.open(stamped) as store:
        assert History(store.session()).edits() == []
        assert os.listdir(f"{store.folder}/log") == [], "nothing failed that could not be said aloud"


def test_a_change_that_leaves_a_stamp_beyond_the_cache_as_it_was_is_seen(tmp_path: Path) -> None:
    """What the cache cannot hold is not taken for known: the content decides, in this process and in the next."""
    with mounted("tmpfs", tmp_path) as place:
        root = place / "project"
        root.mkdir()
        files = {name: root / f"{number}" for number, name in enumerate(STAMPS)}
        for name, path in files.items():
            path.write_text("before")
            _stamp(path, STAMPS[name])
        Store.open(root, create=True).close()
        for name, path in files.items():
            path.write_text("behind")  # as long as before
            _stamp(path, STAMPS[name])
        for _ in range(2):
            with Store.open(root) as store:
                assert len(History(store.session()).edits()) == len(STAMPS)
        with Store.open(root) as store:
            session = store.session()
            commit = session.begin("Look").end(scan=True)
            assert_equal(store, commit, on_disk(root))


def test_the_cache_keeps_what_it_can_hold_and_asks_again_for_the_rest(tmp_path: Path) -> None:
    cache = StatCache(str(tmp_path))
    kind, blob = b"100644", b"x" * 20
    held = {
        b"old": (1, -(1 << 63), -1, 5, 0o100644, kind, blob),
        b"new": ((1 << 63) - 1, (1 << 63) - 1, 0, (1 << 64) - 1, 0o100600, kind, blob),
    }
    beyond = {
        b"later": (1, 1 << 63, 0, 5, 0o100600, kind, blob),
        b"earlier": (1, -(1 << 63) - 1, 0, 5, 0o100600, kind, blob),
        b"changed later": (1, 0, 1 << 70, 5, 0o100600, kind, blob),
    }
    cache.replace(blob, {**held, **beyond}, {b"": (1 << 80, -(1 << 80), 1)}, {"left_out": {}})
    again = StatCache(str(tmp_path))
    again.load()
    assert {path: again.files[path] for path in held} == held
    for path in beyond:
        assert again.files[path] == (stat_cache.YOUNG, 0, 0, 0, 0o100600, kind, blob)  # no stat has that size
    assert again.folders == {b"": (1 << 80, -(1 << 80), 1)}
    assert cache.files == again.files, "what is in memory is what is on disk"


def test_a_folder_that_is_too_young_to_trust_matches_no_stat(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even that of a folder with the last time stamp before 1970."""
    monkeypatch.setattr("snapstore.worktree.scan.walk.is_young", lambda st, now: True)  # however slow the machine is
    (root / "folder").mkdir()
    _stamp(root / "folder", -1)
    session = store.session()
    session.begin("Look").end(scan=True)
    store.cache.load()
    st = os.lstat(root / "folder")
    assert store.cache.folders[b"folder"] != (st.st_mtime_ns, st.st_ctime_ns, st.st_ino)


def test_a_recorded_turn_is_not_reported_as_failed_when_the_cache_cannot_be_written(root: Path, store: Store) -> None:
    """Of whatever kind the failure is: here something in the cache that cannot be put into a file at all."""
    session = store.session()
    (root / "kept").write_text("kept\n")
    turn = session.begin("Write")
    (root / "file").write_text("written\n")
    st = os.lstat(root / "kept")
    marks = (st.st_size, st.st_mtime_ns, st.st_ctime_ns, st.st_ino, st.st_mode)
    store.cache.load()
    store.cache.files[b"kept"] = (*marks, b"100644", object())  # type: ignore[assignment]
    store.cache._generation = b""  # all of it is to be written
    commit = turn.end(scan=True)
    assert in_commit(store, commit)[b"file"] == (b"100644", b"written\n")
    assert store.open_turn(session.name) is None
    with Store.open(root) as again:
        assert again.session().begin("Go on").end(scan=True) != commit
        assert History(again.session()).edits() == []


# The user's own git index keeps 32 bits of each.


def test_a_first_snapshot_reads_what_the_index_of_the_user_cannot_tell(tmp_path: Path, git: Callable[..., str]) -> None:
    """Seconds and sizes are cut to 32 bits there: what fits only by that is read."""
    with mounted("tmpfs", tmp_path) as place:
        root = place / "project"
        root.mkdir()
        git(root, "init", "-q")
        _write_stamped(root, "as committed")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "all")
        for number, moment in enumerate(STAMPS.values()):
            path = root / f"folder{number}" / "file"
            path.write_text(path.read_text().replace("as", "so"))  # as long, in the same tick at best
            _stamp(path, moment)
        with Store.open(root, create=True) as store:
            head = store.shadow.refs.read("refs/heads/shell/main")
            assert head is not None
            assert_equal(store, head, on_disk(root))


def test_seconds_that_are_equal_only_in_32_bits_are_not_equal(tmp_path: Path, git: Callable[..., str]) -> None:
    """An index entry whose seconds are those of the file modulo 2^32, and whose other fields are right."""
    with mounted("tmpfs", tmp_path) as place:
        root = place / "project"
        root.mkdir()
        git(root, "init", "-q")
        (root / "file").write_text("on disk!")
        _stamp(root / "file", ((1 << 32) + 1000) * SECOND)
        blob = git(root, "hash-object", "-w", "--stdin", stdin=b"in index").strip()
        _write_index(root, b"file", bytes.fromhex(blob))
        assert git(root, "status", "--porcelain").startswith("A  file"), "git takes it for unchanged"
        with Store.open(root, create=True) as store:
            head = store.shadow.refs.read("refs/heads/shell/main")
            assert in_commit(store, head or b"")[b"file"] == (b"100644", b"on disk!")


def _write_index(root: Path, path: bytes, blob: bytes) -> None:
    """An index of one entry, with the stat of the file as git cuts it."""
    from hashlib import sha1

    st = os.lstat(root / os.fsdecode(path))
    seconds = [moment // SECOND & 0xFFFFFFFF for moment in (st.st_ctime_ns, st.st_mtime_ns)]
    parts = [moment % SECOND for moment in (st.st_ctime_ns, st.st_mtime_ns)]
    numbers = (seconds[0], parts[0], seconds[1], parts[1], st.st_dev & 0xFFFFFFFF, st.st_ino & 0xFFFFFFFF)
    head = struct.pack(">10I", *numbers, 0o100644, st.st_uid, st.st_gid, st.st_size & 0xFFFFFFFF)
    entry = head + blob + struct.pack(">H", len(path)) + path
    entry += b"\0" * (8 - len(entry) % 8)
    data = struct.pack(">4sII", b"DIRC", 2, 1) + entry
    index = root / ".git" / "index"
    index.write_bytes(data + sha1(data).digest())
    os.utime(index, ns=(st.st_ctime_ns + 3600 * SECOND,) * 2)  # written long after the file: not racy


# Sizes. The files are sparse.

SIZES = [(1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 32) + 1]


def _make_sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)
        file.write(b"begins")
        file.seek(size - 4)
        file.write(b"ends")


def test_files_of_31_and_32_bits_are_left_out_by_their_size(root: Path, store: Store) -> None:
    """Without being read: with the limit that is set from the beginning, and with one at each border."""
    session = store.session()
    for size in SIZES:
        _make_sparse(root / f"sparse-{size}", size)
    commit = session.begin("Make them").end(scan=True)
    assert in_commit(store, commit) == {}
    assert len(store.left_out()) == len(SIZES)


@pytest.mark.deep
@pytest.mark.parametrize("size", SIZES)
def test_named_files_of_31_and_32_bits_go_in_and_out(
    size: int, root: Path, store: Store, git: Callable[..., str]
) -> None:
    """Captured whatever the limit says, to the byte; removed by undo, and back with redo."""
    path = root / "sparse"
    session = store.session()
    turn = session.begin("Make it")
    turn.touch(path)
    _make_sparse(path, size)
    commit = turn.end()
    listed = git(store.shadow.git_dir, "ls-tree", "-l", commit.hex()).split()
    assert listed[3] == str(size)
    assert git(root, "hash-object", "--no-filters", "sparse").strip() == listed[2]
    session.move(session.plan_undo())
    assert not path.exists()
    session.move(session.plan_redo())
    assert path.stat().st_size == size
    assert git(root, "hash-object", "--no-filters", "sparse").strip() == listed[2]


# Clocks that are far off.


@pytest.mark.parametrize("now", [-5_000_000_000.25, -1.5, 0.0, 4_294_967_296.5, 9_300_000_000.0, 16_738_272_000.75])
def test_a_clock_that_is_far_off(now: float, root: Path, git: Callable[..., str]) -> None:
    """1811, 1969, 1970, 2106, 2264, 2500: turns, moves in time, checks by git."""
    moments = iter(range(1000))

    def clock() -> float:
        return now + next(moments)

    with Store.open(root, create=True, clock=clock) as store:
        session = store.session()
        for number in range(3):
            with session.begin(f"Turn {number}"):
                (root / "file").write_text(f"{number}\n")
        nodes = History(session).nodes()
        assert [node.turn for node in nodes] == [None, 1, 2, 3]
        for node in nodes[1:]:
            assert seconds_of(node.started_at) == pytest.approx(now, abs=1000)
            assert ago(node.started_at, clock()) and date_text(node.started_at)
        session.move(session.plan_earlier(count=2))
        assert (root / "file").read_text() == "0\n"
        session.move(session.plan_later(count=1))
        session.move(session.plan_earlier(seconds=10.0**9))
        assert not (root / "file").exists()
        git(store.shadow.git_dir, "fsck", "--strict")
        seconds = int(git(store.shadow.git_dir, "log", "-1", "--format=%ct", "refs/heads/shell/main"))
        assert seconds == pytest.approx(max(0, now), abs=1000)


@pytest.mark.parametrize("moment", [-1e18, -1e11, -1.5, 0.0, 1e10, 2.6e11, 1e18])
def test_any_moment_has_a_time_stamp_that_can_be_read(moment: float) -> None:
    text = timestamp(moment)
    assert len(text) == 24 and text.endswith("Z")
    found = seconds_of(text)
    assert found is not None
    if -62_135_596_800 <= moment <= 253_402_300_799:
        assert found == pytest.approx(moment, abs=0.002)
    assert date_text(text) and ago(text, 0.0)


@pytest.mark.parametrize("seconds", [-(1 << 31), 0, 1 << 31, 1 << 32, 1 << 33, 1 << 62])
def test_commits_of_any_time_are_read(seconds: int, store: Store, git: Callable[..., str]) -> None:
    """Those of before 1970 count as of 1970, and those of after 9999 as of then."""
    tree = git(store.shadow.git_dir, "hash-object", "-t", "tree", "-w", "--stdin", stdin=b"").strip()
    text = f"tree {tree}\nauthor A <a@b> {seconds} +0000\ncommitter A <a@b> {seconds} +0000\n\nsubject\n"
    oid = git(
        store.shadow.git_dir, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=text.encode()
    ).strip()
    found = commits.read(store.shadow.objects, bytes.fromhex(oid))
    assert found.seconds == min(max(seconds, 0), 253_402_300_799)
    assert timestamp(found.seconds)


def test_a_store_whose_own_files_have_odd_stamps_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Packs, refs, locks and documents, of the far future and the far past."""
    with mounted("tmpfs", tmp_path) as place:
        root = place / "project"
        root.mkdir()
        monkeypatch.setenv("SNAPSTORE_HOME", str(place / "stores"))
        monkeypatch.chdir(root)
        assert main(["init"]) == 0
        for name in ("2300", "12000", "1901", "the far past"):
            for folder, _, names in os.walk(place / "stores"):
                for file in [*names, "."]:
                    _stamp(Path(folder, file), STAMPS[name])
            assert main(["turn", "begin", "-m", name]) == 0
            (root / "file").write_text(f"{name}\n")
            for words in (["turn", "end"], ["undo", "-y"], ["redo", "-y"], ["gc"], ["status"], ["log"]):
                assert main(words) == 0, (name, words, capsys.readouterr())
        assert main(["check"]) == 0, capsys.readouterr()
        monkeypatch.chdir(tmp_path)
