"""Whether somebody's git is at work in a repository.

A `git gc` or `git repack` knows nothing of our locks. It has the old packs open for as long as it takes, and writes
what it found in them into a new one, whatever became of them meanwhile.
"""

from __future__ import annotations

import os
import socket
import time

from snapstore.base.locks import lives

_FRESH = 600  # seconds that a file which git is writing is younger than
_TEMPORARY = ("tmp_", ".tmp-")


def git_at_work(git_dir: str) -> str | None:
    """Which one is, in a few words."""
    place = os.path.realpath(git_dir)
    try:
        processes = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        processes = []
    if processes:
        return next((f"process {name}" for name in processes if _is_git_in(name, os.fsencode(place))), None)
    return _by_its_files(place)


def _is_git_in(process: str, place: bytes) -> bool:
    folder = f"/proc/{process}"
    try:
        if not _read(f"{folder}/comm").startswith(b"git"):
            return False
        if any(place in _read(f"{folder}/{name}") for name in ("cmdline", "environ", "maps")):
            return True
        links = [f"{folder}/cwd", *(entry.path for entry in os.scandir(f"{folder}/fd"))]
        return any(os.readlink(os.fsencode(link)).startswith(place) for link in links)
    except OSError:
        return False  # it has ended, or is somebody's who cannot write here


def _by_its_files(git_dir: str) -> str | None:
    """Where no list of processes can be had."""
    pid_file = f"{git_dir}/gc.pid"
    try:
        number, _, host = _read(pid_file).decode("ascii", "replace").strip().partition(" ")
        if host == socket.gethostname() and lives(number):
            return f"process {number}"
    except OSError:
        pass
    packs = f"{git_dir}/objects/pack"
    now = time.time()
    for name in os.listdir(packs):
        try:
            if name.startswith(_TEMPORARY) and now - os.stat(f"{packs}/{name}").st_mtime < _FRESH:
                return f"it writes {name}"
        except FileNotFoundError:
            continue
    return None


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
