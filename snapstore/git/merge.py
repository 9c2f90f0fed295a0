"""Three-way merges of text, by `git merge-file`: in a folder of its own, far from anybody's repository.

Nothing of the user's git has a say: no configuration (`merge.conflictStyle`), no attributes, no merge driver. Bytes
are kept as they are, whatever their encoding and line endings.
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

_MOST_CONFLICTS = 127  # git's status counts conflicts up to this; beyond it is an error of its own


def merge(
    base: bytes,
    mine: bytes,
    theirs: bytes,
    *,
    labels: tuple[str, str, str] = LABELS,
    markers: bool = False,
    folder: str | None = None,
) -> bytes | None:
    """What came of `base` on both sides, in one. None where both changed the same lines (unless they shall stand
    between `markers`), and for what is no text; `why_not` says which.

    git reads files, so they are written to a private folder inside `folder`, or the system's for temporary files.
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
    """Why `merge` gave None, to be read after "cannot be merged: "."""
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
        # A git folder that does not exist: git looks no further, and finds no repository above the folder.
        scrubbed = environment(f"{private}/none")
        words = [word for label in labels for word in ("-L", _one_line(label))]
        command = ["git", "merge-file", "-p", "-q", "--diff3", *words, *names]
        done = run(command, cwd=private, env=scrubbed, stdin=DEVNULL, capture_output=True, check=False)
    finally:
        # By hand: TemporaryDirectory's own way recurses for ever where no file can be opened.
        for name in names:
            with suppress(OSError):
                os.unlink(name)
        with suppress(OSError):
            os.rmdir(private)
    return done.returncode, done.stdout, done.stderr


def _one_line(label: str) -> str:
    """A label ends up in the file, on a marker's line: it must not be able to end that line."""
    return "".join(" " if c < " " or c in "\x7f\x85\u2028\u2029" else c for c in label)
