"""Detect git processes at work in a repository.

`git gc` and `git repack` ignore snapstore's locks. Such a process keeps the old packs open while it runs, and copies
their objects into a new pack even if the old packs have been removed meanwhile (test_forget_byhand.py).
"""

from __future__ import annotations

import os
import time

from snapstore.base.locks import is_alive

_FRESH = 600  # seconds; a file that git is writing is younger
_TEMPORARY = ("tmp_", ".tmp-")


def git_at_work(git_dir: str) -> str | None:
    """Return a short description of a git process at work, or None."""
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
        return False  # the process has ended, or its owner cannot write here


def _by_its_files(git_dir: str) -> str | None:
    """Detect git by its files, if the list of processes is unavailable."""
    pid_file = f"{git_dir}/gc.pid"
    try:
        number, _, host = _read(pid_file).decode("ascii", "replace").strip().partition(" ")
        if host == os.uname().nodename and is_alive(number):
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
