"""Reflogs, as git writes and reads them: what a ref led to before stays reachable for a while, for git as well."""

from __future__ import annotations

import os
from collections.abc import Iterator

from dulwich.reflog import parse_reflog_line

from snapstore.base.files import sync_folder

Rows = list[tuple[int, bytes, bytes]]  # when, from what, to what

RENAMED = b"snapstore: renamed"  # says that a line only helps while a ref gets another name (`Refs.update_all`)


def read(git_dir: str) -> dict[str, Rows]:
    """The rows by ref. A line that cannot be read is passed over, and so is one that only helped while a ref got
    another name: a ref leads to the same, or is meant to do so no longer."""
    found: dict[str, Rows] = {}
    top = f"{git_dir}/logs"
    for path in files_below(top):
        rows = [_row(line) for line in _lines(path) if not _is_of_renaming(line)]
        found[path[len(top) + 1 :]] = [row for row in rows if row is not None]
    return found


def forget(git_dir: str, before: int) -> None:
    """Drops the lines from before a moment, and those that only helped while a ref got another name. Whoever reads the
    file meanwhile has the old or the new one. Synced: a gc then removes the objects, and a line that comes back after a
    power cut would name what is gone (test_powercut.py)."""
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
        return []  # a lock of somebody's git, which is done with it


def _is_over(line: bytes, before: int) -> bool:
    row = _row(line)
    return row is None or row[0] < before or _is_of_renaming(line)


def _is_of_renaming(line: bytes) -> bool:
    return line.rstrip().endswith(b"\t" + RENAMED)


def _row(line: bytes) -> tuple[int, bytes, bytes] | None:
    try:
        entry = parse_reflog_line(line if b"\t" in line else line.rstrip() + b"\t")  # git leaves out an empty reason
        return entry.timestamp, bytes.fromhex(entry.old_sha.decode()), bytes.fromhex(entry.new_sha.decode())
    except ValueError:
        return None


def files_below(top: str) -> Iterator[str]:
    """Every file below a folder, if it is there. One that cannot be listed is no empty one: a gc that took it for that
    would take what its refs lead to for garbage."""

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error

    for folder, _, names in os.walk(top, onerror=fail):
        for name in names:
            yield f"{folder}/{name}"
