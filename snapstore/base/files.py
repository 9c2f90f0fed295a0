"""Durable writes of snapstore's own small files.

After `write` returns, the file holds the new data, even after a power cut. If `write` is interrupted, the file holds
either all of the old data or all of the new data. `write` does not handle concurrent writers; callers hold the store's
lock.
"""

from __future__ import annotations

import errno
import os

_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)  # possible results of syncing a folder
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


def write(path: str, data: bytes, *, make_folder: bool = False) -> None:
    temporary = f"{path}.new"
    try:
        fd = os.open(temporary, _FLAGS, 0o600)
    except FileNotFoundError:
        if not make_folder:
            raise
        make_folders(os.path.dirname(path))
        fd = os.open(temporary, _FLAGS, 0o600)
    try:
        write_all(fd, data)
        os.fsync(fd)
    except BaseException:
        os.close(fd)
        os.unlink(temporary)
        raise
    os.close(fd)
    os.rename(temporary, path)
    sync_folder(os.path.dirname(path))


def remove(path: str) -> None:
    """Remove a file durably: the file does not come back after a power cut."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    sync_folder(os.path.dirname(path))


def remove_if_there(path: str) -> bool:
    """Remove a file without syncing, and return whether the file existed.

    After a power cut the file may be back.
    """
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def remove_quietly(path: str) -> None:
    """Remove a file, ignoring errors."""
    try:
        os.unlink(path)
    except OSError:
        pass


def close_quietly(fd: int) -> None:
    """Close a descriptor, ignoring errors.

    Use this only if the data is already synced, or if the descriptor only held a lock. Linux frees the descriptor even
    if `close` reports an error.
    """
    try:
        os.close(fd)
    except OSError:
        pass


def sync_data(fd: int) -> None:
    """Sync bytes that overwrote existing bytes of a file.

    The file's size must not have changed. The file's times need not reach the disk.
    """
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:  # macOS
        os.fsync(fd)


def make_folders(path: str, mode: int = 0o700) -> None:
    """Make a folder and its missing parents durably.

    Each folder's name is on disk before anything is put into the folder.
    """
    if os.path.isdir(path):
        return
    parent = os.path.dirname(os.path.abspath(path))
    make_folders(parent, mode)
    try:
        os.mkdir(path, mode)
    except FileExistsError:  # another process made the folder first
        if not os.path.isdir(path):
            raise
    sync_folder(parent)


def sync_folder(path: str) -> None:
    """Make the names in a folder durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync_open_folder(fd)
    finally:
        os.close(fd)


def sync_open_folder(fd: int) -> None:
    """Sync an open folder, or everything if the file system cannot sync folders.

    Some network file systems cannot.
    """
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
        os.sync()


def write_all(fd: int, data: bytes | bytearray) -> None:
    """Write all of `data`; a single `os.write` may write only part of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
