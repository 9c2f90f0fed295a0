"""Atomic swaps of a new file with the file at its path.

The file that was swapped out is checked before it is deleted. A plain rename or unlink would destroy whatever another
program saved since the last check.

Linux and macOS have a system call for this, which Python lacks and some file systems do not support. Without the call,
a new file is put in place by a hard link, which never replaces a file. An existing file is then replaced by a plain
rename right after the last check (test_poor_file_systems.py).
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable

# Returns whether the file that was swapped out, given by folder and name, is still the one that was checked.
Unchanged = Callable[[int, bytes], bool]
_Call = Callable[[int, bytes, int, bytes, int], None]

# Per system call: the flags for "swap" and for "only if the target does not exist".
_CALLS = {"renameat2": (2, 1), "renameatx_np": (2, 4)}
_NOT_HERE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV)
_NO_LINKS = (*_NOT_HERE, errno.EPERM, errno.EMLINK)
_TRIES = 100  # limit for a program that saves again and again at the very moment of the swap

_found: tuple[_Call, int, int] | bool | None = None


def replace(
    source: int, temporary: bytes, target: int, name: bytes, ours: os.stat_result, unchanged: Unchanged
) -> bool:
    """Replace a file by a temporary one; return False if the file had changed.

    `ours` is the temporary file's stat. A changed file is put back, unless an even later save is there. The caller must
    then remove the temporary file.
    """
    if not swap(source, temporary, target, name):
        os.rename(temporary, name, src_dir_fd=source, dst_dir_fd=target)
        return True
    same = False
    try:
        same = unchanged(source, temporary)
    finally:
        if not same:
            put_back(source, temporary, target, name, ours)
    if same:
        os.unlink(temporary, dir_fd=source)
    return same


def place(source: int, temporary: bytes, target: int, name: bytes) -> bool:
    """Move a temporary file to a free name; return False if the name is taken."""
    call = _call()
    if call is not None:
        try:
            call[0](source, temporary, target, name, call[2])
            return True
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
    return _place_by_link(source, temporary, target, name)


def _place_by_link(source: int, temporary: bytes, target: int, name: bytes) -> bool:
    """Move a temporary file to a free name by hard link, which never replaces a file.

    Without hard links, check the name right before a rename.
    """
    try:
        os.link(temporary, name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if _is_there(target, name):
            return False
        os.rename(temporary, name, src_dir_fd=source, dst_dir_fd=target)
        return True
    os.unlink(temporary, dir_fd=source)
    return True


def _is_there(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def remove(folder: int, name: bytes, aside: bytes, unchanged: Unchanged) -> bool:
    """Rename a file to `aside` and delete it; return False if the file had changed.

    A changed file is put back, unless an even later save is there.
    """
    os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
    same = False
    try:
        same = unchanged(folder, aside)
    finally:
        if not same:
            place(folder, aside, folder, name)
    if same:
        os.unlink(aside, dir_fd=folder)
    return same


def swap(source: int, one: bytes, target: int, other: bytes) -> bool:
    """Swap two files; return False if that is not possible here."""
    call = _call()
    if call is None:
        return False
    try:
        call[0](source, one, target, other, call[1])
    except OSError as error:
        if error.errno in _NOT_HERE:
            return False
        raise
    return True


def put_back(source: int, temporary: bytes, target: int, name: bytes, there: os.stat_result) -> None:
    """Put another program's file back at its path.

    `there` is the file expected at that path. If another file is swapped out instead, that file was saved even later,
    and is put back in turn.
    """
    for _ in range(_TRIES):
        going = os.stat(temporary, dir_fd=source, follow_symlinks=False)
        try:
            if not swap(source, temporary, target, name):
                os.rename(temporary, name, src_dir_fd=source, dst_dir_fd=target)
                return
            out = os.stat(temporary, dir_fd=source, follow_symlinks=False)
        except FileNotFoundError:  # the file in its place was removed meanwhile
            place(source, temporary, target, name)
            return
        if same_content(out, there):
            return
        there = going


def same_content(a: os.stat_result, b: os.stat_result) -> bool:
    """Return whether two stats show the same content; a rename changes only the ctime."""
    return (a.st_mtime_ns, a.st_size, a.st_ino) == (b.st_mtime_ns, b.st_size, b.st_ino)


def _call() -> tuple[_Call, int, int] | None:
    """Return the system call with its flags, or None; searched only once."""
    global _found
    if _found is None:
        _found = _look_for_call() or False
    return _found if isinstance(_found, tuple) else None


def _look_for_call() -> tuple[_Call, int, int] | None:
    library = ctypes.CDLL(None, use_errno=True)
    for symbol, (swapping, placing) in _CALLS.items():
        function = getattr(library, symbol, None)
        if function is None:
            continue
        function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)

        def call(source: int, one: bytes, target: int, other: bytes, flags: int, function: object = function) -> None:
            if function(source, one, target, other, flags) != 0:  # type: ignore[operator]
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), os.fsdecode(other))

        return call, swapping, placing
    return None
