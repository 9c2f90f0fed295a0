"""dulwich's `Repo` for a store, as exposed by `Store.repo`.

The repository reads and writes through snapstore's object store and refs (`objects/dulwich_store`, `ref_container`). So
whatever an embedding program does with `Store.repo` has the same guards as snapstore's own work (test_repository.py).
snapstore itself uses only those two, and loads this module when a program asks for the repository.
"""

from __future__ import annotations

from typing import BinaryIO

from dulwich.config import ConfigFile
from dulwich.repo import Repo

from snapstore.git.config_file import read_config
from snapstore.git.objects.dulwich_store import ObjectStore
from snapstore.git.ref_container import Container


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
