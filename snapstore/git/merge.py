"""Three-way merges of text by `git merge-file`, run in a temporary folder.

The user's git setup has no influence: no config (`merge.conflictStyle`), no attributes, no merge driver, no repository.
Bytes are kept as they are, whatever their encoding and line endings (test_git_merge.py).
"""

from __future__ import annotations

import os
from contextlib import suppress
from shutil import which
from subprocess import DEVNULL, run
from tempfile import mkdtemp

from snapstore.errors import Failed
from snapstore.git.diff.patch import LARGEST, is_binary
from snapstore.git.program import environment

LABELS = ("mine", "before", "theirs")
SAME_LINES = "both sides changed the same lines"

_MOST_CONFLICTS = 127  # git's exit status counts conflicts up to this; a higher status is an error


def merge(
    base: bytes,
    mine: bytes,
    theirs: bytes,
    *,
    labels: tuple[str, str, str] = LABELS,
    markers: bool = False,
    folder: str | None = None,
) -> bytes | None:
    """Return `base` with the changes of both sides, or None if they do not merge.

    The result is None if both sides changed the same lines (unless `markers` asks for conflict markers), and for
    content that is not text. `why_not` tells the reason. git reads files, so the three versions are written to a
    private folder inside `folder`, by default inside the system's folder for temporary files.
    """
    if mine == theirs or theirs == base:
        return mine
    if mine == base:
        return theirs
    if any(is_binary(data) for data in (base, mine, theirs)) or not _program():
        return None
    status, merged, said = _merge_file(base, mine, theirs, labels, folder)
    if not 0 <= status <= _MOST_CONFLICTS:
        raise Failed(f"git could not merge: {said.decode('utf-8', 'replace').strip() or f'status {status}'}")
    return merged if markers or status == 0 else None


def why_not(base: bytes, mine: bytes, theirs: bytes) -> str:
    """Return why `merge` returned None, worded to follow "cannot be merged: "."""
    sides = (base, mine, theirs)
    if any(len(data) > LARGEST for data in sides):
        return f"larger than {LARGEST >> 20} MiB"
    if any(is_binary(data) for data in sides):
        return "not text"
    if not _program():
        return "there is no git program here"
    return SAME_LINES


def _program() -> str | None:
    return which("git")


def _merge_file(
    base: bytes, mine: bytes, theirs: bytes, labels: tuple[str, str, str], folder: str | None
) -> tuple[int, bytes, bytes]:
    private = mkdtemp(prefix="snapstore-merge-", dir=folder)
    names = [f"{private}/{name}" for name in ("mine", "base", "theirs")]
    try:
        for name, data in zip(names, (mine, base, theirs), strict=True):
            with open(name, "xb") as file:
                file.write(data)
        # GIT_DIR names a folder that does not exist, so git does not search the parent folders for a repository.
        scrubbed = environment(f"{private}/none")
        words = [word for label in labels for word in ("-L", _one_line(label))]
        command = ["git", "merge-file", "-p", "-q", "--diff3", *words, *names]
        done = run(command, cwd=private, env=scrubbed, stdin=DEVNULL, capture_output=True, check=False)
    finally:
        # Not TemporaryDirectory: its cleanup recurses forever when no file can be opened.
        for name in names:
            with suppress(OSError):
                os.unlink(name)
        with suppress(OSError):
            os.rmdir(private)
    return done.returncode, done.stdout, done.stderr


def _one_line(label: str) -> str:
    """Return a label without characters that could end a conflict marker's line."""
    return "".join(" " if c < " " or c in "\x7f\x85\u2028\u2029" else c for c in label)
