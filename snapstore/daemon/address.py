"""The address of the warm process: one socket per user and installation, in a folder that only the user can enter."""

from __future__ import annotations

import os
import socket

from snapstore.base import platform
from snapstore.daemon import client
from snapstore.errors import Failed


class Taken(Exception):
    """Another server has the place, or it cannot be had."""


class Place:
    """The socket's address, under a lock that says that its server lives."""

    def __init__(self) -> None:
        folder = client.runtime_folder()
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise Taken(str(error)) from error
        if not client.is_private(folder):
            raise Taken(f"{folder} is not a private folder of this user")
        self.path = f"{folder}/{client.socket_name()}"
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self.lock = os.open(self.path.removesuffix(".sock") + ".lock", flags, 0o600)
        except OSError as error:
            raise Taken(str(error)) from error
        try:
            locked = platform.try_lock(self.lock)
        except (OSError, Failed) as error:
            os.close(self.lock)
            raise Taken(str(error)) from error
        if not locked:
            os.close(self.lock)
            raise Taken("another warm process runs")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._bind()
        except OSError as error:
            self.close()
            raise Taken(f"{self.path}: {error.strerror or error}") from error

    def _bind(self) -> None:
        """Take the address, at which nobody is answered yet. What a dead server left there goes."""
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        self._bound = os.lstat(self.path)

    def is_kept(self) -> bool:
        """Tell whether the address still leads here. Somebody may clean up /tmp."""
        try:
            return os.path.samestat(os.lstat(self.path), self._bound)
        except OSError:
            return False

    def leave(self) -> None:
        """Give the place up for all. The address goes before the lock, so that the next server finds both free; it
        stays where it is another server's, because the runtime folder was removed and made again."""
        if self.is_kept():
            os.unlink(self.path)
        self.close()

    def close(self) -> None:
        """Give the place up, in this process."""
        self.socket.close()
        os.close(self.lock)
