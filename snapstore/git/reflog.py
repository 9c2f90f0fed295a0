"""Reflogs in git's format, which keep old values of a ref reachable for a while.

git honors these reflogs too. Lines are read and formatted by dulwich, but its `expire_reflog` rewrites a file in
place, so that a kill would leave half of it (test_gc.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from dulwich.reflog import parse_reflog_line

from snapstore.base.files import sync_folder

Rows = list[tuple[int, bytes, bytes]]  # time, old id, new id

RENAMED = b"snapstore: renamed"  # marks a line that is needed only while a ref is renamed (`Refs.update_all`)


def read(git_dir: str) -> dict[str, Rows]:
    """Return the reflog rows per ref.

    Unreadable lines are skipped. Lines marked `RENAMED` are skipped as well: after the rename, the object is reachable
    from the new ref, or was given up on purpose.
    """
    found: dict[str, Rows] = {}
    top = f"{git_dir}/logs"
    for path in files_below(top):
        rows = [_row(line) for line in _lines(path) if not _is_of_renaming(line)]
        found[path[len(top) + 1 :]] = [row for row in rows if row is not None]
    return found


def forget(git_dir: str, before: int) -> None:
    """Drop reflog lines older than `before`, and all lines marked `RENAMED`.

    A concurrent reader sees either the old or the new file. The change is synced, because gc then removes the objects:
    a line that reappeared after a power cut would name a missing object (test_powercut.py).
    """
    for path in files_below(f"{git_dir}/logs"):
        lines = _lines(path)
        kept = [line for line in lines if not _is_over(line, before)]
        if len(kept) < len(lines):
            with open(f"{path}.lock", "wb", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
                file.writelines(kept)
                file.flush()
                os.fsync(file.fileno())
            os.rename(f"{path}.lock", path)
            sync_folder(os.path.dirname(path))


def _lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            return file.readlines()
    except FileNotFoundError:
        return []  # the lock file of a git process that has finished since


def _is_over(line: bytes, before: int) -> bool:
    row = _row(line)
    return row is None or row[0] < before or _is_of_renaming(line)


def _is_of_renaming(line: bytes) -> bool:
    return line.rstrip().endswith(b"\t" + RENAMED)


def _row(line: bytes) -> tuple[int, bytes, bytes] | None:
    try:
        entry = parse_reflog_line(line if b"\t" in line else line.rstrip() + b"\t")  # git omits an empty reason
        return entry.timestamp, bytes.fromhex(entry.old_sha.decode()), bytes.fromhex(entry.new_sha.decode())
    except ValueError:
        return None


def files_below(top: str) -> Iterator[str]:
    """Yield every file below a folder, if the folder exists.

    An unreadable folder raises an error. If gc treated such a folder as empty, gc would delete the objects that its
    refs keep reachable.
    """

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error

    for folder, _, names in os.walk(top, onerror=fail):
        for name in names:
            yield f"{folder}/{name}"
