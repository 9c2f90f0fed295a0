"""Durable writes of our own small files.

`write` promises: after it returns the file holds all of `data`, also after a power cut, and whatever interrupts it the
file holds either all of the old or all of the new. It does not promise that two writers are kept apart: the lock does.
"""

from __future__ import annotations

import errno
import os

_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)  # what a sync of a folder may answer
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
    """Removes a file for good: after a power cut it does not come back."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    sync_folder(os.path.dirname(path))


def close_quietly(fd: int) -> None:
    """Close a descriptor of which nothing is left to be written: what it holds is synced, or it was only a lock.

    Linux frees the descriptor even where `close` reports an error, so the error says nothing about what was done.
    """
    try:
        os.close(fd)
    except OSError:
        pass


def sync_data(fd: int) -> None:
    """Syncs what was written over existing bytes of a file. Its times may be lost, its size must not have changed."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:  # macOS
        os.fsync(fd)


def make_folders(path: str, mode: int = 0o700) -> None:
    """Makes a folder and those above it that are missing, each with its name on disk before anything is put into it."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(os.path.abspath(path))
    make_folders(parent, mode)
    try:
        os.mkdir(path, mode)
    except FileExistsError:  # another process was quicker
        if not os.path.isdir(path):
            raise
    sync_folder(parent)


def sync_folder(path: str) -> None:
    """Makes the names in a folder durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync_open_folder(fd)
    finally:
        os.close(fd)


def sync_open_folder(fd: int) -> None:
    """Some network file systems cannot sync a folder. There everything is synced, which takes longer."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
        os.sync()


def write_all(fd: int, data: bytes | bytearray) -> None:
    """Write all of the data: `os.write` may take a part of it only."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
