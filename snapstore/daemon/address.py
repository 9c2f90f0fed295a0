"""The address of the warm process: one socket per user and installation.

The socket lies in a folder that only the user can enter.
"""

from __future__ import annotations

import os
import socket

from snapstore.base import locks
from snapstore.base.files import remove_if_there
from snapstore.daemon import client
from snapstore.errors import Failed


class AddressUnavailable(Exception):
    """Another server holds the address, or the address cannot be created."""


def lock_path(path: str) -> str:
    """Return the path of the lock file that belongs to a socket."""
    return path.removesuffix(".sock") + ".lock"


class ServerAddress:
    """The server's socket, and the lock that the server holds while it is alive."""

    def __init__(self) -> None:
        folder = client.runtime_folder()
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise AddressUnavailable(str(error)) from error
        if not client.is_private(folder):
            raise AddressUnavailable(f"{folder} is not a private folder of this user")
        self.path = f"{folder}/{client.socket_name()}"
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self.lock = os.open(lock_path(self.path), flags, 0o600)
        except OSError as error:
            raise AddressUnavailable(str(error)) from error
        try:
            locked = locks.try_lock(self.lock)
        except (OSError, Failed) as error:
            os.close(self.lock)
            raise AddressUnavailable(str(error)) from error
        if not locked:
            os.close(self.lock)
            raise AddressUnavailable("another warm process is running")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._bind()
        except OSError as error:
            self.close()
            raise AddressUnavailable(f"{self.path}: {error.strerror or error}") from error

    def _bind(self) -> None:
        """Bind the socket without listening, replacing one that a dead server left behind."""
        remove_if_there(self.path)
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        self._bound = os.lstat(self.path)

    def is_kept(self) -> bool:
        """Return whether the address still leads to this socket.

        Programs that clean up /tmp may have removed the file.
        """
        try:
            return os.path.samestat(os.lstat(self.path), self._bound)
        except OSError:
            return False

    def leave(self) -> None:
        """Remove the address and release the lock.

        The address is removed first, so that a server that takes the lock finds the address free. If the runtime folder
        was removed and recreated, the address may belong to another server and is left alone.
        """
        if self.is_kept():
            os.unlink(self.path)
        self.close()

    def close(self) -> None:
        """Close the socket and the lock in this process only."""
        self.socket.close()
        os.close(self.lock)
