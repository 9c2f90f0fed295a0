"""Changing places: a new file and the one in its place are swapped in one step, and what came out is looked at before
it goes. A rename alone would destroy whatever was saved since the last look, and so would an unlink.

Linux and macOS have a call for it, which Python lacks; not every file system does. Where there is none, a new file is
put in place by a hard link, which replaces nothing; for the replacement of a file a plain rename right after the last
look is as near as one can get (test_poor_file_systems.py).
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable

# Whether what has come out of its place, in a folder by a name, is what was looked at there.
Unchanged = Callable[[int, bytes], bool]
_Call = Callable[[int, bytes, int, bytes, int], None]

# By the name of the call: the flags for "swap" and for "only where nothing is".
_CALLS = {"renameat2": (2, 1), "renameatx_np": (2, 4)}
_NOT_HERE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV)
_NO_LINKS = (*_NOT_HERE, errno.EPERM, errno.EMLINK)
_TRIES = 100  # of somebody who saves again and again in the very moment

_found: tuple[_Call, int, int] | bool | None = None


def replace(
    source: int, temporary: bytes, target: int, name: bytes, ours: os.stat_result, unchanged: Unchanged
) -> bool:
    """Puts a temporary, `ours`, where a file is. False: that was no longer the file that was looked at. Then it has its
    place again, or what was saved there even later has it, and the temporary is nobody's."""
    if not swap(source, temporary, target, name):
        os.rename(temporary, name, src_dir_fd=source, dst_dir_fd=target)
        return True
    same = False
    try:
        same = unchanged(source, temporary)
    finally:
        if not same:
            give_back(source, temporary, target, name, ours)
    if same:
        os.unlink(temporary, dir_fd=source)
    return same


def place(source: int, temporary: bytes, target: int, name: bytes) -> bool:
    """Puts a temporary where nothing is. False: something is there now."""
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
    """A link never replaces what is there, as a rename would. Where there are no links either, a last look must do."""
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
    """Removes a file by way of another name. False: it was no longer the one that was looked at, and has its place
    again, unless something was saved there even later."""
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
    """The two change places. False where that cannot be done here."""
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


def give_back(source: int, temporary: bytes, target: int, name: bytes, there: os.stat_result) -> None:
    """Somebody's file goes back to where it came out of. `there` is what is believed to have its place; where something
    else comes out, that was saved even later, and belongs there."""
    for _ in range(_TRIES):
        going = os.stat(temporary, dir_fd=source, follow_symlinks=False)
        try:
            if not swap(source, temporary, target, name):
                os.rename(temporary, name, src_dir_fd=source, dst_dir_fd=target)
                return
            out = os.stat(temporary, dir_fd=source, follow_symlinks=False)
        except FileNotFoundError:  # what had its place was removed meanwhile
            place(source, temporary, target, name)
            return
        if same_content(out, there):
            return
        there = going


def same_content(a: os.stat_result, b: os.stat_result) -> bool:
    """By stat. A rename changes the ctime, and nothing else."""
    return (a.st_mtime_ns, a.st_size, a.st_ino) == (b.st_mtime_ns, b.st_size, b.st_ino)


def _call() -> tuple[_Call, int, int] | None:
    """The system's call with its flags, looked for once."""
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
