"""Writing to the user's tree: every change there and back, failed at every call, killed at every call."""

from __future__ import annotations

import errno
import itertools
import os
import resource
import signal
import stat
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from helpers import Files, child, difference, on_disk, powerless, quick_folder, remove, write

from snapstore.base import platform
from snapstore.errors import Conflict, Interrupted
from snapstore.git.objects.ids import BLOB
from snapstore.git.objects.store import Objects
from snapstore.worktree.write import temp_files
from snapstore.worktree.write.safe_dirs import (
    FILE_IN_THE_WAY,
    FOLDER_THERE,
    LINK_IN_THE_WAY,
    SPECIAL_THERE,
    UNREADABLE_THERE,
)
from snapstore.worktree.write.writer import FileMove, Writer

FILE, EXECUTABLE, LINK = b"100644", b"100755", b"120000"
TAG = "12-5f3a"


class StageFile:
    """Remembers what the journal would: whether all temporaries of the move were on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.unknown = False  # as in a journal of an older version

    def is_staged(self) -> bool | None:
        return None if self.unknown else self._path.exists()

    def mark_staged(self, staged: bool) -> None:
        self.unknown = False
        if staged:
            self._path.touch()
        else:
            self._path.unlink(missing_ok=True)


class Place:
    """A root and a store that holds whatever contents are asked for."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        (folder / "store.git/objects/pack").mkdir(parents=True)
        self.git_dir = str(folder / "store.git")
        self.objects = Objects(self.git_dir)
        self.stage = StageFile(folder / "staged")

    def moves(self, old: Files, new: Files) -> list[FileMove]:
        writer = self.objects.writer()

        def entry(files: Files, path: bytes) -> tuple[bytes, bytes] | None:
            found = files.get(path)
            return found and (found[0], writer.add(BLOB, found[1]))

        moves = [FileMove(path, entry(old, path), entry(new, path)) for path in sorted(old.keys() | new.keys())]
        self.objects.release(self.objects.finish(writer))
        return moves

    def restore(self, **options: Any) -> Writer:
        return Writer(os.fsencode(self.root), self.objects, TAG, stage=self.stage, **options)

    def go(self, old: Files, new: Files, **options: Any) -> dict[bytes, os.stat_result | None]:
        moves = self.moves(old, new)
        mover = self.restore(**options)
        mover.check(moves)
        return mover.apply(moves)

    def lay_out(self, files: Files) -> None:
        self.stage.mark_staged(False)
        for name in os.listdir(self.root):
            remove(self.root / name)
        for path, (mode, data) in files.items():
            full = os.path.join(os.fsencode(self.root), path)
            if mode == LINK:
                os.makedirs(os.path.dirname(full), exist_ok=True)
                os.symlink(data, full)
            else:
                write(full, data, executable=mode == EXECUTABLE)

    def folders(self) -> set[str]:
        return {
            str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_dir() and not path.is_symlink()
        }

    def marks(self, paths: Iterable[bytes]) -> dict[bytes, tuple[int, ...]]:
        """What a rewrite or a chmod would change."""
        stats = {path: os.lstat(self.root / os.fsdecode(path)) for path in paths}
        return {path: (st.st_ino, st.st_mode, st.st_mtime_ns, st.st_ctime_ns) for path, st in stats.items()}

    def assert_is(self, files: Files) -> None:
        """These files, their folders, and nothing else: no temporary, no empty folder."""
        wrong = difference(files, on_disk(self.root))
        assert not wrong, f"path: (wanted, on disk)\n{wrong}"
        above = {str(parent) for path in files for parent in Path(os.fsdecode(path)).parents} - {"."}
        assert self.folders() == above


@pytest.fixture
def place() -> Iterator[Place]:
    with quick_folder() as folder:
        yield Place(folder)


KINDS: dict[str, Files] = {
    "missing": {},
    "file": {b"x": (FILE, b"one")},
    "executable": {b"x": (EXECUTABLE, b"two")},
    "same bytes executable": {b"x": (EXECUTABLE, b"one")},
    "link": {b"x": (LINK, b"neighbour")},
    "link to a folder": {b"x": (LINK, b"beside")},
    "dangling link": {b"x": (LINK, b"nowhere")},
    "folder": {b"x/a": (FILE, b"one"), b"x/b/c": (EXECUTABLE, b"three"), b"x/b/l": (LINK, b"../a")},
    "deeper folder": {b"x/b/c/d": (FILE, b"four")},
}
AROUND: Files = {b"neighbour": (FILE, b"n"), b"beside/a": (FILE, b"never written"), b"x-y": (FILE, b"-")}


@pytest.mark.parametrize("after", KINDS)
@pytest.mark.parametrize("before", KINDS)
def test_every_kind_becomes_every_other_and_back(place: Place, before: str, after: str) -> None:
    """G-35, G-01, G-03: all transitions, there and back; G-32: what lies around keeps inode, times and mode."""
    old, new = KINDS[before], KINDS[after]
    place.lay_out(old | AROUND)
    around = place.marks(AROUND)
    after_stats = place.go(old, new)
    place.assert_is(new | AROUND)
    place.go(new, old)
    place.assert_is(old | AROUND)
    assert place.marks(AROUND) == around
    assert set(after_stats) == {path for path in old | new if old.get(path) != new.get(path)}
    assert {path for path, st in after_stats.items() if st is None} == old.keys() - new.keys()


def test_what_is_equal_is_not_touched(place: Place) -> None:
    """G-32: a move that ends where it began writes nothing, not even a new inode."""
    files: Files = {b"a": (FILE, b"1"), b"d/b": (EXECUTABLE, b"2"), b"l": (LINK, b"a")}
    place.lay_out(files)
    before = place.marks(files)
    assert place.go(files, files) == {}
    assert place.marks(files) == before


def test_the_stats_are_those_on_disk(place: Place) -> None:
    place.lay_out({b"a": (FILE, b"1")})
    stats = place.go({b"a": (FILE, b"1")}, {b"a": (FILE, b"2"), b"d/l": (LINK, b"x")})
    assert {path: st and st.st_ctime_ns for path, st in stats.items()} == {
        path: os.lstat(place.root / os.fsdecode(path)).st_ctime_ns for path in (b"a", b"d/l")
    }


def test_odd_names(place: Place) -> None:
    """G-36: any name that a file system holds."""
    names = [b"-rf", b"a b", b'"q"', b"new\nline", b"\xff\xfe", b"a\\b", b"n" * 255, b"$(x)", b".gitignore", b"\x1b[1m"]
    files: Files = {name + b"/" + name: (FILE, name) for name in names}
    place.go({}, files)
    place.assert_is(files)
    place.go(files, {})
    place.assert_is({})


def test_a_very_deep_path(place: Place) -> None:
    """Two hundred folders, a handful of descriptors."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files: Files = {b"d/" * 200 + b"f%d" % n: (FILE, b"deep") for n in range(3)} | {b"d/z": (FILE, b"shallow")}
    used = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 60
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 48, hard))
    try:
        place.go({}, files)
        place.assert_is(files)
        place.go(files, {})
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    place.assert_is({})


# Permissions.


@pytest.mark.parametrize(
    ("before", "mode", "after"),
    [
        (0o640, FILE, 0o640),
        (0o640, EXECUTABLE, 0o750),
        (0o600, EXECUTABLE, 0o700),
        (0o750, FILE, 0o640),
        (0o664, FILE, 0o664),
        (0o666, FILE, 0o666),
        (0o444, FILE, 0o444),
        (0o711, EXECUTABLE, 0o711),
        (0o4755, EXECUTABLE, 0o755),
    ],
)
def test_permissions_that_a_tree_does_not_say_stay(place: Place, before: int, mode: bytes, after: int) -> None:
    """G-32: who may read a file is the user's business; only the executable bits follow. Setuid never comes back."""
    was = EXECUTABLE if before & 0o100 else FILE
    place.lay_out({b"f": (was, b"old")})
    (place.root / "f").chmod(before)
    place.go({b"f": (was, b"old")}, {b"f": (mode, b"new")})
    assert stat.S_IMODE((place.root / "f").stat().st_mode) == after


def acl(*entries: tuple[int, int, int]) -> bytes:
    """An access control list as the kernel takes it: (kind, permissions, whose)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


OWNER, A_USER, GROUP, MASK, OTHERS, NOBODY = 0x01, 0x02, 0x04, 0x10, 0x20, 0xFFFFFFFF


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes in Python here")
def test_who_else_may_read_a_file_and_what_is_noted_on_it_stays(tmp_path: Path) -> None:
    """G-32: with an access control list the group's bits are a mask: taken for the group's own they would let it in."""
    place = Place(tmp_path)
    place.lay_out({b"f": (FILE, b"old"), b"plain": (FILE, b"old")})
    secret = (OWNER, 6, NOBODY), (A_USER, 6, 1000), (GROUP, 0, NOBODY), (MASK, 6, NOBODY), (OTHERS, 0, NOBODY)
    try:
        os.setxattr(place.root / "f", "user.note", b"mine")
        os.setxattr(place.root / "f", "system.posix_acl_access", acl(*secret))
    except OSError:
        pytest.skip("no extended attributes on this file system")
    # What is made here from now on is for everybody, but not what was there.
    os.setxattr(place.root, "system.posix_acl_default", acl(*secret[:2], (GROUP, 6, NOBODY), *secret[3:]))
    place.go(
        {b"f": (FILE, b"old"), b"plain": (FILE, b"old")},
        {b"f": (FILE, b"new"), b"plain": (EXECUTABLE, b"new")},
    )
    assert os.getxattr(place.root / "f", "user.note") == b"mine"
    assert os.getxattr(place.root / "f", "system.posix_acl_access") == acl(*secret)
    assert stat.S_IMODE((place.root / "f").stat().st_mode) == 0o660
    assert os.listxattr(place.root / "plain") == []
    assert stat.S_IMODE((place.root / "plain").stat().st_mode) == 0o755


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes in Python here")
def test_a_file_that_comes_back_with_its_folder_takes_nothing_from_another_of_its_name(tmp_path: Path) -> None:
    """Until its folder is there again it lies in the one above, where `f` is somebody else."""
    place = Place(tmp_path)
    before: Files = {b"f": (FILE, b"other"), b"folder/f": (FILE, b"old")}
    place.lay_out(before)
    try:
        os.setxattr(place.root / "f", "user.note", b"not yours")
    except OSError:
        pytest.skip("no extended attributes on this file system")
    moves = place.moves({b"folder/f": (FILE, b"old")}, {})
    mover = place.restore()
    mover.apply(moves)
    assert place.folders() == set()
    mover.roll_back(moves)
    place.assert_is(before)
    assert os.listxattr(place.root / "folder/f") == []


def test_new_files_follow_the_umask(place: Place) -> None:
    umask = os.umask(0o027)
    try:
        place.go({}, {b"f": (FILE, b"1"), b"e": (EXECUTABLE, b"2"), b"d/f": (FILE, b"3")})
    finally:
        os.umask(umask)
    modes = [stat.S_IMODE((place.root / name).stat().st_mode) for name in ("f", "e", "d")]
    assert modes == [0o640, 0o750, 0o750]


def test_a_hard_link_is_not_written_through(place: Place, tmp_path: Path) -> None:
    """G-09: the other name of the file keeps its bytes."""
    place.lay_out({b"f": (FILE, b"old"), b"gone": (FILE, b"old too")})
    os.link(place.root / "f", place.root.parent / "other")
    os.link(place.root / "gone", place.root.parent / "another")
    place.go({b"f": (FILE, b"old"), b"gone": (FILE, b"old too")}, {b"f": (EXECUTABLE, b"new")})
    assert (place.root.parent / "other").read_bytes() == b"old"
    assert stat.S_IMODE((place.root.parent / "other").stat().st_mode) == 0o644
    assert (place.root.parent / "another").read_bytes() == b"old too"


# Folders.


def test_a_folder_with_another_file_stays(place: Place) -> None:
    """G-04: an ignored file of the user's keeps its folder, and those above it."""
    place.lay_out({b"a/b/ours": (FILE, b"1"), b"a/b/cache.o": (FILE, b"theirs")})
    place.go({b"a/b/ours": (FILE, b"1")}, {})
    place.assert_is({b"a/b/cache.o": (FILE, b"theirs")})


def test_only_folders_that_we_emptied_go(place: Place) -> None:
    """G-03, G-04: an empty folder of the user's beside or above is not ours to remove."""
    place.lay_out({b"a/b/c/ours": (FILE, b"1")})
    (place.root / "a/empty").mkdir()
    place.go({b"a/b/c/ours": (FILE, b"1")}, {})
    assert place.folders() == {"a", "a/empty"}


def test_folders_to_keep_are_kept(place: Place) -> None:
    place.lay_out({b"a/b/c/ours": (FILE, b"1")})
    place.go({b"a/b/c/ours": (FILE, b"1")}, {}, keep_folders=[b"a/b"])
    assert place.folders() == {"a", "a/b"}


def test_a_file_takes_the_place_of_a_folder_that_was_to_be_kept(place: Place) -> None:
    old: Files = {b"d/e/f": (FILE, b"1")}
    place.lay_out(old)
    place.go(old, {b"d": (FILE, b"2")}, keep_folders=[b"d", b"d/e"])
    place.assert_is({b"d": (FILE, b"2")})


def test_a_folder_in_the_place_of_a_file_must_hold_nothing_else(place: Place) -> None:
    """G-04: found before the first write, and named."""
    files: Files = {b"d/x": (FILE, b"1"), b"d/theirs": (FILE, b"2")}
    place.lay_out(files)
    (place.root / "d/empty").mkdir()
    moves = place.moves({b"d/x": (FILE, b"1")}, {b"d": (FILE, b"3")})
    with pytest.raises(Conflict) as refusal:
        place.restore().check(moves)
    assert refusal.value.details["paths"] == ["d/empty", "d/theirs"]
    with pytest.raises(Conflict):
        place.restore().apply(moves)  # nor does it go wrong unchecked
    assert on_disk(place.root) == files and place.folders() == {"d", "d/empty"}


# What is there.


def test_observe_tells_what_is_there(place: Place) -> None:
    """G-35: by content, and without following any link."""
    place.lay_out({b"f": (FILE, b"1"), b"e": (EXECUTABLE, b"1"), b"l": (LINK, b"d"), b"d/f": (FILE, b"2")})
    os.mkfifo(place.root / "fifo")
    expected = {move.path: move.old for move in place.moves(on_disk(place.root), {})}
    mover = place.restore()
    for path in (b"f", b"e", b"l", b"d/f"):
        assert mover.observe(path) == expected[path]
    assert mover.observe(b"none") is None
    assert mover.observe(b"none/none/none") is None
    assert mover.observe(b"n" * 200 + b"/x") is None
    odd = {b"d": FOLDER_THERE, b"fifo": SPECIAL_THERE, b"f/x": FILE_IN_THE_WAY, b"l/f": LINK_IN_THE_WAY}
    assert {path: mover.observe(path) for path in odd} == odd
    mover.close()


def test_observe_sees_a_rewrite_in_the_same_tick(place: Place) -> None:
    """G-33: same size, same inode, at once: the file was too young to be trusted by its stat."""
    mover = place.restore()
    one, two = (place.moves({b"f": (FILE, data)}, {})[0].old for data in (b"1", b"2"))
    for _ in range(100):
        for data, entry in ((b"1", one), (b"2", two)):
            with open(place.root / "f", "wb" if not (place.root / "f").exists() else "r+b") as file:
                file.write(data)
            assert mover.observe(b"f") == entry
    mover.close()


def test_an_unreadable_file_is_neither_old_nor_new(place: Place) -> None:
    place.lay_out({b"f": (FILE, b"1")})
    (place.root / "f").chmod(0)
    code = """
import os, sys
from snapstore.git.objects.store import Objects
from snapstore.worktree.write.writer import Writer
print(Writer(os.fsencode(sys.argv[1]), Objects(sys.argv[2]), "t").observe(b"f"))
"""
    done = child(code, place.root, place.git_dir, under=powerless())
    assert done.stdout.decode().strip() == UNREADABLE_THERE, done.stderr


# A move of everything at once, for what can go wrong.

OLD: Files = {
    b"changed": (FILE, b"old"),
    b"executable": (FILE, b"same"),
    b"file-to-folder": (FILE, b"file"),
    b"file-to-link": (FILE, b"f"),
    b"folder-to-file/a": (FILE, b"a"),
    b"folder-to-file/b/c": (LINK, b"../a"),
    b"link-to-file": (LINK, b"changed"),
    b"link-to-folder": (LINK, b"sub"),
    b"removed/deep/er": (FILE, b"bye"),
    b"removed/too": (EXECUTABLE, b"bye"),
    b"sub/changed": (EXECUTABLE, b"old"),
}
NEW: Files = {
    b"changed": (FILE, b"new"),
    b"created/deep/er": (FILE, b"hello"),
    b"executable": (EXECUTABLE, b"same"),
    b"file-to-folder/a/b": (FILE, b"in"),
    b"file-to-folder/c": (FILE, b"in too"),
    b"file-to-link": (LINK, b"f"),
    b"folder-to-file": (FILE, b"file"),
    b"link-to-file": (FILE, b"file"),
    b"link-to-folder/changed": (FILE, b"not through the link"),
    b"sub/changed": (FILE, b"new"),
    b"sub/created": (LINK, b"nowhere"),
}
THEIRS: Files = {b"sub/theirs": (FILE, b"untouched"), b"theirs": (FILE, b"untouched")}

WRITING = ("open", "write", "fsync", "symlink", "rename", "unlink", "mkdir", "rmdir", "fchmod")
READING = ("stat", "fstat", "read", "readlink")


class Killed(BaseException):
    """What comes after this never happens."""


class Strike:
    """Stands before the os module: the nth call of the given kinds fails, and if so wished all that follow."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...]) -> None:
        self.at = 0
        self.calls = 0
        self.error: Callable[[], BaseException] = Killed
        self.for_ever = True
        self.after = False
        for name in kinds:
            monkeypatch.setattr(os, name, self._wrap(name, getattr(os, name)))

    def _wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if not self.at or (name == "open" and not arguments[1] & os.O_CREAT):
                return real(*arguments, **options)
            self.calls += 1
            if self.calls == self.at or (self.calls > self.at and self.for_ever):
                if self.after and self.calls == self.at:
                    with suppress(OSError):
                        done = real(*arguments, **options)
                        if name == "open":
                            os.close(done)
                raise self.error()
            return real(*arguments, **options)

        return call

    def arm(self, at: int) -> None:
        self.at, self.calls = at, 0

    def disarm(self) -> bool:
        """Whether it struck."""
        struck = self.calls >= self.at
        self.at = 0
        return struck


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("after", [False, True], ids=["undone", "done"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EINTR])
def test_a_call_that_fails_leaves_all_as_it_was(
    place: Place, monkeypatch: pytest.MonkeyPatch, number: int, after: bool
) -> None:
    """S0-47: whichever call fails, whether it had been carried out or not, every file is as before."""
    moves = place.moves(OLD, NEW)
    strike = Strike(monkeypatch, WRITING)
    strike.error, strike.for_ever, strike.after = lambda: OSError(number, os.strerror(number)), False, after
    for nth in itertools.count(1):
        place.lay_out(OLD | THEIRS)
        (place.root / "removed").chmod(0o711)
        (place.root / "removed/too").chmod(0o740)
        strike.arm(nth)
        failed = None
        try:
            place.restore().apply(moves)
        except OSError as error:
            failed = error.errno
        if not strike.disarm():
            break
        assert failed == number, nth
        place.assert_is(OLD | THEIRS)
        modes = [stat.S_IMODE((place.root / name).stat().st_mode) for name in ("removed", "removed/too")]
        assert modes == [0o711, 0o740]
    assert nth > 50
    place.assert_is(NEW | THEIRS)


def test_a_disk_that_stays_full_is_finished_or_taken_back_later(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-47: what cannot be taken back now is said to be unfinished, and is mended from any such state."""
    moves = place.moves(OLD, NEW)
    strike = Strike(monkeypatch, WRITING)
    strike.error = full_disk
    for nth in itertools.count(1):
        for recover, end in ((Writer.finish, NEW), (Writer.roll_back, OLD)):
            place.lay_out(OLD | THEIRS)
            strike.arm(nth)
            try:
                place.restore().apply(moves)
            except (OSError, Interrupted):
                with pytest.raises(OSError):
                    recover(place.restore(), moves)
            struck = strike.disarm()
            assert recover(place.restore(), moves) == []
            place.assert_is(end | THEIRS)
        if not struck:
            break


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_anywhere_then_finished_or_taken_back(
    place: Place, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """S0-47: killed at any call, the next process goes on to exactly new or back to exactly old, and once more changes
    nothing."""
    moves = place.moves(OLD, NEW)
    strike = Strike(monkeypatch, WRITING)
    strike.after = after
    for nth in itertools.count(1):
        for recover, end in ((Writer.finish, NEW), (Writer.roll_back, OLD)):
            place.lay_out(OLD | THEIRS)
            _killed(strike, nth, lambda: place.restore().apply(moves))
            struck = strike.calls >= nth
            assert recover(place.restore(), moves) == [], nth
            place.assert_is(end | THEIRS)
            assert recover(place.restore(), moves) == []
            place.assert_is(end | THEIRS)
        if not struck:
            break


def test_a_recovery_may_be_killed_too(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-47: killed in the move, killed again in the recovery, and the other way around at last."""
    moves = place.moves(OLD, NEW)
    strike = Strike(monkeypatch, WRITING)
    total = 60
    for first, second in itertools.product(range(1, total, 6), range(1, total, 5)):
        for one, other, end in (
            (Writer.finish, Writer.finish, NEW),
            (Writer.roll_back, Writer.roll_back, OLD),
            (Writer.roll_back, Writer.finish, NEW),
        ):
            place.lay_out(OLD | THEIRS)
            _killed(strike, first, lambda: place.restore().apply(moves))
            _killed(strike, second, lambda one=one: one(place.restore(), moves))
            assert other(place.restore(), moves) == [], (first, second)
            place.assert_is(end | THEIRS)


def _killed(strike: Strike, nth: int, work: Callable[[], object]) -> None:
    strike.arm(nth)
    try:
        work()
    except (Killed, Interrupted):
        pass
    strike.at = 0


def test_a_real_kill(place: Place) -> None:
    """S0-47: the same with a process that is truly killed."""
    moves = place.moves(OLD, NEW)
    for nth in range(1, 60, 4):
        place.lay_out(OLD | THEIRS)
        pid = os.fork()
        if pid == 0:
            with pytest.MonkeyPatch.context() as patch:
                strike = Strike(patch, WRITING)
                strike.error = lambda: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment,return-value]
                strike.arm(nth)
                Writer(os.fsencode(place.root), Objects(place.git_dir), TAG, stage=place.stage).apply(moves)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL
        assert place.restore().finish(moves) == []
        place.assert_is(NEW | THEIRS)


def test_interrupted_by_the_user(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-47: Ctrl-C in the middle takes everything back."""
    moves = place.moves(OLD, NEW)
    strike = Strike(monkeypatch, ("rename", *READING))
    strike.error, strike.for_ever, strike.after = KeyboardInterrupt, False, True
    for nth in itertools.count(1, 3):
        place.lay_out(OLD | THEIRS)
        strike.arm(nth)
        try:
            place.restore().apply(moves)
        except KeyboardInterrupt:
            pass
        if not strike.disarm():
            break
        place.assert_is(OLD | THEIRS)
    place.assert_is(NEW | THEIRS)


@pytest.mark.parametrize("recover", [Writer.finish, Writer.roll_back])
def test_what_cannot_be_read_is_not_taken_for_an_edit(
    place: Place, monkeypatch: pytest.MonkeyPatch, recover: Callable[..., list[bytes]]
) -> None:
    """S0-47: a read that fails ends the recovery, which the next command takes up; it leaves no file out for good."""
    moves = place.moves(OLD, NEW)
    end = NEW if recover is Writer.finish else OLD
    strike = Strike(monkeypatch, WRITING)
    reading = Strike(monkeypatch, READING)
    reading.error, reading.for_ever = lambda: OSError(errno.EIO, os.strerror(errno.EIO)), False
    for nth in itertools.count(1, 2):
        place.lay_out(OLD | THEIRS)
        _killed(strike, 30, lambda: place.restore().apply(moves))
        reading.arm(nth)
        try:
            assert recover(place.restore(), moves) == [], nth
        except OSError:
            pass
        if not reading.disarm():
            break
        assert recover(place.restore(), moves) == [], nth
        place.assert_is(end | THEIRS)
    place.assert_is(end | THEIRS)


def test_taken_back_in_the_same_process(place: Place) -> None:
    """S0-47: a step after the files failed (a ref): all goes back, an empty folder of the user's included."""
    place.lay_out({b"f": (FILE, b"1")})
    (place.root / "empty").mkdir()
    moves = place.moves({b"f": (FILE, b"1")}, {b"empty/x/y": (FILE, b"2")})
    mover = place.restore()
    mover.apply(moves)
    assert mover.roll_back(moves) == []
    assert on_disk(place.root) == {b"f": (FILE, b"1")} and place.folders() == {"empty"}


def test_folders_that_stood_are_kept_after_a_kill(place: Place) -> None:
    (place.root / "empty").mkdir()
    moves = place.moves({}, {b"empty/x/y": (FILE, b"2"), b"z": (FILE, b"3")})
    standing = place.restore().existing_folders(moves)
    assert standing == {b"empty", b""}
    place.restore().apply(moves)
    assert place.restore(keep_folders=standing).roll_back(moves) == []
    assert place.folders() == {"empty"}


# Third states.


@pytest.mark.parametrize("recover", [Writer.finish, Writer.roll_back])
def test_an_edit_since_the_crash_is_left_alone(place: Place, recover: Callable[..., list[bytes]]) -> None:
    """G-38, S0-47: neither old nor new: never overwritten, never removed, given back by name."""
    edits: Files = {
        b"changed": (FILE, b"edited"),
        b"created/deep/er": (EXECUTABLE, b"hello"),
        b"removed/too": (LINK, b"elsewhere"),
        b"file-to-folder": (FILE, b"edited as well"),
        b"folder-to-file/a": (FILE, b"edited, too"),
    }
    moves = place.moves(OLD, NEW)
    end = NEW if recover is Writer.finish else OLD
    place.lay_out({**{path: entry for path, entry in OLD.items() if path not in edits}, **edits, **THEIRS})
    astray = recover(place.restore(), moves)
    found = on_disk(place.root)
    assert {path: found[path] for path in edits} == edits
    in_the_way = {b"folder-to-file", b"file-to-folder/a/b", b"file-to-folder/c"} if recover is Writer.finish else set()
    assert set(astray) == edits.keys() | in_the_way
    for path, entry in end.items():
        if path not in astray:
            assert found[path] == entry, path
    assert not [path for path in found if b".snapstore-" in path]


def test_another_moves_temporaries_are_not_ours(place: Place) -> None:
    """Only names with our tag and a number go; a folder of such a name does not stop a recovery."""
    files: Files = {b"d/.snapstore-12-5f3a-0": (FILE, b""), b"d/.snapstore-12-5f3a-7": (LINK, b"/")}
    kept: Files = {b"d/.snapstore-12-5f3b-0": (FILE, b""), b"d/.snapstore-12-5f3a-x": (FILE, b"")}
    place.lay_out(files | kept)
    (place.root / "d/.snapstore-12-5f3a-1").mkdir()
    place.restore().finish(place.moves({}, {b"d/e/f": (FILE, b"1")}))
    assert on_disk(place.root) == {**kept, b"d/e/f": (FILE, b"1")}
    assert (place.root / "d/.snapstore-12-5f3a-1").is_dir()


# Edits during the move.


@pytest.mark.parametrize("target", [b"b", b"c", b"n"])
def test_an_edit_just_before_the_rename_is_a_conflict(
    place: Place, monkeypatch: pytest.MonkeyPatch, target: bytes
) -> None:
    """S0-44, S0-45, S0-46: an edit made during the move stops it, is kept, and the rest is as before."""
    old: Files = {b"a": (FILE, b"1"), b"b": (FILE, b"2"), b"c": (FILE, b"3")}
    new: Files = {b"a": (FILE, b"4"), b"b": (FILE, b"5"), b"n": (FILE, b"6")}
    place.lay_out(old)
    moves = place.moves(old, new)
    real = os.fsync
    fired = []

    def edit_then_sync(fd: int) -> None:
        if not fired:
            fired.append(fd)
            write(place.root / os.fsdecode(target), b"X")  # as long as what was there
        real(fd)

    monkeypatch.setattr(os, "fsync", edit_then_sync)
    with pytest.raises(Conflict, match="changed during the move"):
        place.restore().apply(moves)
    place.assert_is({**old, target: (FILE, b"X")})


def test_what_another_hand_made_the_same_is_not_taken_back(place: Place) -> None:
    """S0-46: a file that shows the new state before we came is a conflict, and not ours to turn back."""
    old: Files = {b"a": (FILE, b"1"), b"b": (FILE, b"2")}
    new: Files = {b"a": (FILE, b"3"), b"b": (FILE, b"4")}
    place.lay_out({b"a": (FILE, b"1"), b"b": (FILE, b"4")})
    with pytest.raises(Conflict):
        place.restore().apply(place.moves(old, new))
    place.assert_is({b"a": (FILE, b"1"), b"b": (FILE, b"4")})


def test_a_read_only_folder(place: Place) -> None:
    """G-09: what may not be written is an error of the system, and all is as before."""
    old: Files = {b"a": (FILE, b"1"), b"ro/b": (FILE, b"2"), b"ro/c": (FILE, b"3"), b"z": (FILE, b"4")}
    place.lay_out(old)
    (place.root / "ro").chmod(0o555)
    code = """
import os, sys
from snapstore.git.objects.store import Objects
from snapstore.worktree.write.writer import FileMove, Writer
moves = [FileMove(*move) for move in eval(sys.argv[3])]
try:
    Writer(os.fsencode(sys.argv[1]), Objects(sys.argv[2]), "t").apply(moves)
except PermissionError:
    print("refused")
"""
    for new in ({b"a": (FILE, b"5"), b"z": (FILE, b"6")}, {**old, b"ro/d": (FILE, b"7")}):
        moves = [(move.path, move.old, move.new) for move in place.moves(old, new)]
        done = child(code, place.root, place.git_dir, repr(moves), under=powerless())
        assert done.stdout.decode().strip() == "refused", done.stderr
        place.assert_is(old)
    (place.root / "ro").chmod(0o755)


# Many and large.


@pytest.mark.parametrize("syncfs", [True, False], ids=["syncfs", "fsync"])
def test_many_files(place: Place, monkeypatch: pytest.MonkeyPatch, syncfs: bool) -> None:
    """One sync of the file system instead of hundreds; without such a call, one for each."""
    if not syncfs:
        monkeypatch.setattr(temp_files, "file_system_sync", lambda number: None)
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(fd), real(fd)))
    count = platform.SYNC_AT_ONCE * 3
    old: Files = {b"d%d/f%d" % (n % 7, n): (FILE, b"old %d" % n) for n in range(count)}
    new: Files = {b"d%d/f%d" % (n % 9, n): (FILE, b"new %d" % n) for n in range(count)}
    place.lay_out(old)
    place.go(old, new)
    place.assert_is(new)
    assert len(synced) < 30 if syncfs else len(synced) > count


def test_many_files_with_few_descriptors(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a sync of the whole file system files wait for theirs in batches: a process may have 256 descriptors."""
    monkeypatch.setattr(temp_files, "file_system_sync", lambda number: None)
    new: Files = {b"d/f%d" % n: (FILE, b"new %d" % n) for n in range(300)}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(len(os.listdir("/dev/fd")) + 150, hard), hard))
    try:
        place.go({}, new)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    place.assert_is(new)


def test_a_large_file_in_bounded_memory(place: Place) -> None:
    """G-40: written from the store and compared with it in pieces."""
    code = """
import os, sys
from snapstore.git.objects.store import Objects
from snapstore.worktree.write.writer import FileMove, Writer
root, git_dir, size = os.fsencode(sys.argv[1]), sys.argv[2], int(sys.argv[3])
objects = Objects(git_dir)
left = size
def read(count):
    global left
    count = min(count, left)
    left -= count
    return bytes(count)
writer = objects.writer()
entry = (b"100644", writer.add_stream(read, size, lambda oid: False))
objects.release(objects.finish(writer))
moves = [FileMove(b"large", None, entry)]
mover = Writer(root, objects, "t")
mover.check(moves)
mover.apply(moves)
assert mover.observe(b"large") == entry
assert mover.roll_back(moves) == []
assert mover.observe(b"large") is None
# Not ru_maxrss: that has the peak of the process it was started from as well.
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    done = child(code, place.root, place.git_dir, 300 << 20)
    assert int(done.stdout) < 100_000, done.stderr


@pytest.mark.parametrize("before", ["with holes", "without", "gone"])
def test_a_file_of_holes_does_not_fill_the_disk(tmp_path: Path, before: str) -> None:
    place, size = Place(tmp_path), 32 << 20
    old, new = b"old" + bytes(size) + b"end", b"new" + bytes(size) + b"end" + bytes(size)
    target = place.root / "disk.img"
    if before != "gone":
        target.write_bytes(old)
        if before == "with holes":
            with open(target, "r+b") as file:
                file.truncate(3)
                file.seek(len(old) - 3)
                file.write(b"end")
    here = {} if before == "gone" else {b"disk.img": (FILE, old)}
    place.go(here, {b"disk.img": (FILE, new)})
    assert target.read_bytes() == new
    if before == "without":  # somebody may have wanted the room to be there
        assert target.stat().st_blocks * 512 >= len(new)
    else:
        assert target.stat().st_blocks * 512 < size
