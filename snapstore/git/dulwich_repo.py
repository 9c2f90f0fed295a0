"""dulwich's repository on a store, and the store's git configuration.

The repository reads and writes through our object store and our refs (objectstore.py, container.py), so that what an
embedding program does with `Store.repo` is guarded in the same way as our own work.
"""

from __future__ import annotations

import os
import re
from typing import BinaryIO

import dulwich.worktree  # noqa: F401 - `Repo` would import it only when it is opened
from dulwich.config import ConfigFile
from dulwich.repo import Repo

from snapstore.base.files import sync_folder, write_all
from snapstore.git.objects.dulwich_store import ObjectStore
from snapstore.git.ref_container import Container

_THRESHOLD = re.compile(rb"^(\s*bigfilethreshold\s*=\s*)(\d{1,9})([kmg])(?=\s*$)", re.IGNORECASE | re.MULTILINE)


class Repository(Repo):
    """The shadow repository, as `Store.repo` gives it to others.

    How it is read does not depend on the configuration, which anybody may have changed: whatever that says, an undo
    works, and nothing that was planted there is followed. `check` tells of it.
    """

    def __init__(self, git_dir: str, objects: ObjectStore, refs: Container) -> None:
        self._is_open = False
        super().__init__(controldir=git_dir, commondir=git_dir, bare=True, object_store=objects)
        self._is_open = True
        self.refs = refs
        self.hooks.clear()  # a planted hook would run when an embedding program commits

    def get_config(self) -> ConfigFile:
        """The store's configuration, without files that it includes."""
        return read_config(self.controldir()) if self._is_open else ConfigFile()

    def get_named_file(self, path: str | bytes, basedir: str | None = None) -> BinaryIO | None:
        """A file of the repository; nothing while it is opened, when dulwich asks for planted ones."""
        return super().get_named_file(path, basedir) if self._is_open else None


def read_config(git_dir: str) -> ConfigFile:
    return ConfigFile.from_path(f"{git_dir}/config", expand_includes=False)


def has_units(git_dir: str) -> bool:
    """Whether the configuration gives a size with a unit, as stores did once: dulwich refuses to open such a one."""
    try:
        with open(f"{git_dir}/config", "rb") as file:
            return _THRESHOLD.search(file.read()) is not None
    except OSError:
        return False


def write_out_units(git_dir: str) -> None:
    """Write that size in bytes, and nothing else. By line, for dulwich's writer drops comments and quotes. Call under
    the store's lock."""
    path = f"{git_dir}/config"
    with open(path, "rb") as file:
        text = file.read()
    fd = os.open(f"{path}.snapstore", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, _THRESHOLD.sub(_in_bytes, text))
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(f"{path}.snapstore", path)
    sync_folder(git_dir)


def _in_bytes(line: re.Match[bytes]) -> bytes:
    return line[1] + str(int(line[2]) << {b"k": 10, b"m": 20, b"g": 30}[line[3].lower()]).encode()
