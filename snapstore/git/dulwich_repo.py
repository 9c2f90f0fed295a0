"""dulwich's `Repo` for a store, and the store's git config.

The repository reads and writes through snapstore's object store and refs (`objects/dulwich_store`, `ref_container`). So
whatever an embedding program does with `Store.repo` has the same guards as snapstore's own work (test_repository.py).
"""

from __future__ import annotations

import os
import re
from typing import BinaryIO

import dulwich
import dulwich.worktree  # `Repo` would import it only when it is opened
from dulwich.config import ConfigFile
from dulwich.repo import Repo

from snapstore.base.files import sync_folder, write_all
from snapstore.git.objects.dulwich_store import ObjectStore
from snapstore.git.ref_container import Container

# pyproject.toml has the same bounds, but pip changes a library for another program's sake and only warns.
OLDEST, TOO_NEW = (1, 2, 18), (1, 3)
if not OLDEST <= dulwich.__version__[:3] < TOO_NEW:
    have, oldest, too_new = (".".join(map(str, version)) for version in (dulwich.__version__, OLDEST, TOO_NEW))
    raise ImportError(f"dulwich {have} is installed, but snapstore needs {oldest} or later, below {too_new}")

_THRESHOLD = re.compile(rb"^(\s*bigfilethreshold\s*=\s*)(\d{1,9})([kmg])(?=\s*$)", re.IGNORECASE | re.MULTILINE)


class Repository(Repo):
    """The shadow repository, as exposed by `Store.repo`.

    Reading does not depend on the git config, because anybody may have changed the config. Undo works whatever the
    config says, and planted settings are not followed. `check` reports them.
    """

    def __init__(self, git_dir: str, objects: ObjectStore, refs: Container) -> None:
        self._is_open = False
        super().__init__(controldir=git_dir, commondir=git_dir, bare=True, object_store=objects)
        self._is_open = True
        self.refs = refs
        self.hooks.clear()  # a planted hook would run when an embedding program commits

    def get_config(self) -> ConfigFile:
        """Return the store's git config, without the files it includes."""
        return read_config(self.controldir()) if self._is_open else ConfigFile()

    def get_named_file(self, path: str | bytes, basedir: str | None = None) -> BinaryIO | None:
        """Return a file of the repository, or None while the repository is being opened.

        While opening, dulwich asks for files that may have been planted.
        """
        return super().get_named_file(path, basedir) if self._is_open else None


def read_config(git_dir: str) -> ConfigFile:
    return ConfigFile.from_path(f"{git_dir}/config", expand_includes=False)


def has_units(git_dir: str) -> bool:
    """Return whether the config gives a size with a unit.

    Former versions wrote such a size, and dulwich refuses to open the repository.
    """
    try:
        with open(f"{git_dir}/config", "rb") as file:
            return _THRESHOLD.search(file.read()) is not None
    except OSError:
        return False


def write_out_units(git_dir: str) -> None:
    """Rewrite a size with a unit as a number of bytes, and change nothing else.

    The file is edited line by line, since dulwich's writer drops comments and quotes. Call under the store's lock.
    """
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
