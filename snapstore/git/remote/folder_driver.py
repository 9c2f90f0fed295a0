"""A repository in a local folder, through git, within the rules of `folders.py`."""

from __future__ import annotations

from collections.abc import Sequence

from snapstore.git.objects.store import Objects
from snapstore.git.remote import folders
from snapstore.git.remote.connection import NOT_THIS_ONE, Moves, Options
from snapstore.git.remote.git_driver import GitConnection
from snapstore.git.remote.git_runner import FOLDERS
from snapstore.git.remote.urls import Address


class FolderConnection(GitConnection):
    fence = FOLDERS

    def __init__(self, address: Address, options: Options, program: str) -> None:
        super().__init__(address, options, program)
        self._path = address.path

    def refs(self, *, push: bool = False) -> dict[str, bytes]:
        folders.refuse_missing(self._path, push=push)
        if push:
            folders.refuse_in_use(self._path)
        found = folders.plain_refs(self._path)
        if found is None:
            found = self._ls_remote()
        self._head, self._is_empty = folders.head(self._path), False
        return found

    def _push(
        self, going: Moves, objects: Sequence[bytes], source: Objects, *, atomic: bool, has_parts: bool
    ) -> dict[str, str | None]:
        folders.refuse_missing(self._path, push=True)
        folders.refuse_in_use(self._path)
        elsewhere = folders.redirected_refs(self._path, going)
        if elsewhere:
            return {name: elsewhere.get(name, NOT_THIS_ONE) for name in going}

        def pushed(moves: Moves) -> dict[str, str | None]:
            return super(FolderConnection, self)._push(moves, objects, source, atomic=atomic, has_parts=has_parts)

        results = pushed(going)
        if any(results.values()) and folders.clear_dead_locks(self._path):
            results |= pushed({name: going[name] for name, why in results.items() if why is not None})
        folders.sync(self._path, going)
        return results

    @property
    def _url(self) -> str:
        return self._path

    def _service(self, name: str) -> list[str]:
        return [f"--{name}={folders.service(name, self._path)}"]
