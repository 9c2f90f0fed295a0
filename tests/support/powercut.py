"""Power cuts, for real: a file system in an image file is mounted, work on it is stopped at a chosen call, and then the
disk loses everything that was never made durable.

A kill leaves the page cache alive, so a kill can never show a missing sync. Here ext4 and xfs are shut down without
flushing their log (`FS_IOC_SHUTDOWN`); btrfs has no such call, so its image is copied as the loop device has it at that
moment, and the copy is used from then on. Journals are told to wait for a quarter of an hour, so only what was synced,
or what the test itself lets through, is there afterwards.

Everything happens in a child process with mounts of its own: when the child ends, for whatever reason, the kernel drops
the mounts and with them the loop devices.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import gc
import os
import pickle
import random
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import faults
from helpers import CHANGING_CALLS, quick_folder

from snapstore.base import platform

# How each is made and mounted. The numbers are seconds before the file system flushes by itself.
_EXT4 = "mkfs.ext4 -q -F -J size=4 -O ^resize_inode -E lazy_itable_init=1,lazy_journal_init=1,nodiscard -m 0"
_WAITS = "commit=1000,noauto_da_alloc"
KINDS: dict[str, tuple[str, str, str, int]] = {  # name -> how to make it, its type, mount options, MB
    "ext4": (_EXT4, "ext4", f"{_WAITS},data=ordered", 32),
    "ext4-writeback": (_EXT4, "ext4", f"{_WAITS},data=writeback", 32),
    "ext4-nodelalloc": (_EXT4, "ext4", f"{_WAITS},nodelalloc", 32),
    # The worst: the size of a file is written down by any sync of any file, its contents by none but its own.
    "ext4-nodelalloc-writeback": (_EXT4, "ext4", f"{_WAITS},nodelalloc,data=writeback", 32),
    "xfs": ("mkfs.xfs -q -f -K", "xfs", "nouuid", 300),
    "btrfs": ("mkfs.btrfs -q -f -K -m single -d single", "btrfs", "commit=300", 128),
}
CALLS = [
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "fsync", "fdatasync", "syncfs", "write"),
    *("pwrite64", "openat", "mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat", "ftruncate"),
    *("truncate", "fchmod", "copy_file_range", "utimensat", "fadvise64", "dup"),
]

_SHUTDOWN, _WITHOUT_FLUSH = 0x8004587D, 2
_NEW_MOUNTS, _DIE_WITH_PARENT = 0x20000, 1
_WRITE_OUT = 7  # SYNC_FILE_RANGE_WAIT_BEFORE | WRITE | WAIT_AFTER
_libc = ctypes.CDLL(None, use_errno=True)


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        said = " ".join((done.stderr + done.stdout).decode(errors="replace").split())
        raise OSError(f"{' '.join(map(str, command))}: {said}")


class Disk:
    """One file system in an image. What `keep` has put aside is what every later run begins with."""

    def __init__(self, kind: str, folder: Path, name: str) -> None:
        make, self._type, self._options, size = KINDS[kind]
        self.place = folder / name
        self._boot = folder / "boot_id"
        self._image, self._base = folder / f"{name}.img", folder / f"{name}.base"
        self.place.mkdir()
        with open(self._image, "wb") as file:
            file.truncate(size << 20)
        _run(*make.split(), self._image)

    def mount(self) -> None:
        _run("mount", "-t", self._type, "-o", f"loop,{self._options}", self._image, self.place)

    def umount(self) -> None:
        place = os.fsencode(self.place)
        if _libc.umount2(place, 0) != 0:
            gc.collect()  # a pack that nobody uses any more may still be mapped
            if _libc.umount2(place, 0) != 0:
                raise OSError(ctypes.get_errno(), f"umount {self.place}")

    def keep(self) -> None:
        _run("cp", "--sparse=always", self._image, self._base)

    def reset(self) -> None:
        _run("cp", "--sparse=auto", self._base, self._image)

    def cut(self) -> None:
        """Cut the power and mount the disk again. Nobody may be using it."""
        if self._type == "btrfs":
            left = self._image.with_suffix(".left")
            _run("cp", "--sparse=auto", self._image, left)
            self.umount()
            os.rename(left, self._image)
        else:
            fd = os.open(self.place, os.O_RDONLY)
            try:
                fcntl.ioctl(fd, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSH))
            finally:
                os.close(fd)
            self.umount()
        self.mount()
        start_machine(self._boot)

    def fill(self, spare: int) -> None:
        """Fill the disk except for some bytes."""
        fd = os.open(self.place / "filler", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            size, step = 0, 1 << 26
            while step >= 4096:
                try:
                    os.posix_fallocate(fd, size, step)
                    size += step
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    step //= 2
            os.ftruncate(fd, max(0, size - spare))
            os.fsync(fd)
        finally:
            os.close(fd)

    def make_room(self) -> None:
        (self.place / "filler").unlink(missing_ok=True)

    # What may reach the disk by itself before the power goes.

    def sync(self) -> None:
        fd = os.open(self.place, os.O_RDONLY)
        try:
            if _libc.syncfs(fd) != 0:
                raise OSError(ctypes.get_errno(), "syncfs")
        finally:
            os.close(fd)

    def sync_unrelated(self) -> None:
        """Sync an unrelated file: journaling file systems then write all names, but no contents."""
        with open(self.place / "unrelated", "ab") as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())

    def sync_some(self, dice: random.Random) -> None:
        """Any files and folders are written out, in any order; of some files only the contents."""
        found = [path for path in [self.place, *self.place.rglob("*")] if not path.is_symlink()]
        found = [path for path in found if stat.S_ISREG(path.lstat().st_mode) or path.is_dir()]
        for path in dice.sample(sorted(found), len(found) // 3):
            fd = os.open(path, os.O_RDONLY)
            try:
                if path.is_dir() or dice.random() < 0.4:
                    os.fsync(fd)
                else:
                    _libc.sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(0), _WRITE_OUT)
            finally:
                os.close(fd)


# The child process with mounts of its own.


def in_private_mounts(work: Callable[[Path], object]) -> object:
    """Does the work, given an empty folder, where nobody else sees its mounts. Gives what it gives."""
    with quick_folder() as folder:
        heard, say = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(heard)
            _live_alone(work, folder, say)
        os.close(say)
        try:
            with open(heard, "rb") as file:
                data = file.read()
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            raise
        finally:
            os.waitpid(pid, 0)
    worked, value = pickle.loads(data) if data else (False, "the child process was killed")
    if not worked:
        raise AssertionError(value)
    return value


def _live_alone(work: Callable[[Path], object], folder: Path, say: int) -> None:
    """The life of the child. It never returns: there must not be two of the test."""
    answer: tuple[bool, object] = False, ""
    try:
        _libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        if _libc.unshare(_NEW_MOUNTS) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        _run("mount", "--make-rprivate", "/")
        boot = folder / "boot_id"
        start_machine(boot)
        _run("mount", "--bind", boot, platform.BOOT_ID)
        answer = True, work(folder)
    except BaseException:
        answer = False, traceback.format_exc()
    finally:
        try:
            os.chdir("/")
            with open(say, "wb") as file:
                file.write(pickle.dumps(answer))
        finally:
            os._exit(0)


def start_machine(boot: Path) -> None:
    """Every start of a machine has an id of its own; a power cut is followed by one."""
    boot.write_text(f"{uuid.uuid4()}\n")


def forked(work: Callable[[], object]) -> str | None:
    """Does the work in a fork, which may crash and cannot leave anything open; gives what went wrong."""
    with tempfile.TemporaryFile() as file:
        pid = os.fork()
        if pid == 0:
            try:
                work()
            except BaseException:
                file.write(traceback.format_exc().encode("utf-8", "replace"))
                file.flush()
                os._exit(1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        file.seek(0)
        return None if status == 0 else file.read().decode() or f"ended with {status}"


@functools.cache
def missing(kind: str) -> str | None:
    """Why there can be no power cut with this file system here; found out by making one."""
    tools = ["strace", "mount", "umount", KINDS[kind][0].split()[0]]
    if os.geteuid() != 0:
        return "power cuts need root"
    absent = [tool for tool in tools if shutil.which(tool) is None]
    if absent:
        return f"power cuts on {kind} need {', '.join(absent)}"
    try:
        in_private_mounts(lambda folder: _lost(kind, folder))
    except AssertionError as error:
        return f"no power cut on {kind} here: {str(error).strip().splitlines()[-1]}"
    return None


def _lost(kind: str, folder: Path) -> None:
    """What was synced is there after a cut, and what was not is gone."""
    disk = Disk(kind, folder, "probe")
    disk.mount()
    disk.sync()
    (disk.place / "lost").write_text("never synced")
    disk.cut()
    assert not (disk.place / "lost").exists(), "a file that was never synced survived"
    disk.sync_unrelated()
    disk.cut()
    assert (disk.place / "unrelated").read_text() == "x", "a file that was synced is gone"


# One command, cut at a call.


def stopped_at(
    work: Callable[[], object], call: str, number: int, early: tuple[int, Callable[[], None]] | None = None
) -> faults.Struck:
    """The work and all its children, killed at its Nth call of one kind; with 0 it goes on to its end. `early` is what
    another process does meanwhile, and just before which change of the work."""
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(_other_process(early[1])) if early is not None else None

        def leading() -> None:
            os.setpgid(0, 0)
            if early is not None and other is not None:
                _interleave(early[0], other)
            work()

        rules = ["-e", "trace=none"]
        if number:
            rules = ["-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={number}"]
        struck = faults.Struck(leading, *rules)
        os.waitid(os.P_PID, struck.pid, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(struck.pid, signal.SIGKILL)  # also a git that it started
        return struck.wait()


@contextlib.contextmanager
def _other_process(action: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """A process that nobody traces. It acts when the function given is called, from any other process, which waits."""
    ask_out, ask_in = os.pipe()
    done_out, done_in = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ask_in)
            os.close(done_out)
            if os.read(ask_out, 1):
                action()
                os.write(done_in, b"!")
        finally:
            os._exit(0)
    os.close(ask_out)
    os.close(done_in)

    def call() -> None:
        os.writev(ask_in, [b"!"])  # not by write, nor by read: those may be what is struck
        poll = select.poll()
        poll.register(done_out, select.POLLIN)
        poll.poll()

    try:
        yield call
    finally:
        os.close(ask_in)
        os.close(done_out)
        os.waitpid(pid, 0)


def _interleave(nth: int, action: Callable[[], None]) -> None:
    """From now on this process does something else first, just before its Nth change."""
    left = [nth]

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def after(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                action()
            return real(*arguments, **named)

        return after

    for name in CHANGING_CALLS:
        setattr(os, name, wrap(getattr(os, name)))


def points(work: Callable[[], object], log: Path) -> list[tuple[str, int]]:
    """The calls at which the work can be stopped. It must succeed. strace counts for each process on its own, so a
    number may stand for calls of several. Of the files opened only those that are made count."""
    done = faults.Struck(work, "-e", f"trace={','.join(CALLS)}", log=str(log)).wait()
    assert done.status == faults.DONE, done
    made: dict[tuple[str, str], int] = {}
    found: set[tuple[str, int]] = set()
    for row in log.read_text(errors="replace").splitlines():
        name = re.match(r"(\d+)\s+(\w+)\(", row)
        if name:
            made[name[1], name[2]] = number = made.get((name[1], name[2]), 0) + 1
            if name[2] != "openat" or "O_CREAT" in row:
                found.add((name[2], number))
    return sorted(found)


@contextlib.contextmanager
def mounted(disks: Iterable[Disk]) -> Iterator[None]:
    """As they were kept."""
    with contextlib.ExitStack() as stack:
        for disk in disks:
            disk.reset()
            disk.mount()
            stack.callback(disk.umount)
        yield
