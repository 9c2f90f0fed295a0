"""Detects changes of a store from the modification times of a few folders.

Every change of refs or state renames a file into one of these folders, so the folders' times tell whether the store
must be read again. Nothing is locked or opened.
"""

from __future__ import annotations

import os
import time

Stamp = tuple[int, int] | None

_YOUNG = 50_000_000  # ns: a folder changed this recently may change again without a new time
_STATE = ("", "open", "conversations", "agents", "sessions", "ops")


class Folders:
    """The folders of one store to watch, and when each last changed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._stamps: dict[str, Stamp] = {}
        self._again = True

    def changed(self) -> bool:
        """Return whether the store may have changed since the last call.

        Raise OSError if the store cannot be read at the moment.
        """
        stamps = {folder: stamp(folder) for folder in self._stamps}
        if stamps == self._stamps and not self._again and stamps:
            return False
        young = time.time_ns() - _YOUNG
        self._again = any(found is not None and found[0] > young for found in stamps.values()) or not stamps
        self._stamps = {folder: stamps[folder] if folder in stamps else stamp(folder) for folder in self._listed()}
        return True

    def look_again(self) -> None:
        """Make the next call of `changed` return True, because reading the store failed."""
        self._again = True

    def forget(self) -> None:
        self._stamps, self._again = {}, True

    def _listed(self) -> list[str]:
        git_dir = f"{self._folder}/store.git"
        state = [f"{self._folder}/state/{name}" for name in _STATE]
        state += [entry.path for entry in os.scandir(state[-1]) if entry.is_dir()] if os.path.isdir(state[-1]) else []
        return [git_dir, *(folder for folder, _, _ in os.walk(f"{git_dir}/refs")), *state]


def stamp(path: str) -> Stamp:
    try:
        st = os.stat(path)
    except OSError:
        return None
    return st.st_mtime_ns, st.st_ino
