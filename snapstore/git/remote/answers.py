"""Parse git's output of `ls-remote` and `push --porcelain`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from snapstore.errors import Remote
from snapstore.git.remote.connection import MOST_REFS, MOVED, NOT_THIS_ONE, Moves, is_ref

_LONGEST_COMMAND = 1 << 19  # bytes of refs; some systems do not allow a longer command line
_SYMREF = b"ref: "
RESULT = re.compile(rb"([ +*=!-])\t[^\t\n]*:([^\t\n]+)\t([^\n]*)")
_REASON = re.compile(r"\((.*)\)$")


def listed_refs(output: bytes) -> tuple[dict[str, bytes], str]:
    """Parse the output of `ls-remote --symref`.

    Returns the valid refs, and the ref that HEAD points to, if the server told.
    """
    found: dict[str, bytes] = {}
    head = ""
    for line in output.splitlines():
        digits, _, name = line.partition(b"\t")
        if digits.startswith(_SYMREF):
            if name == b"HEAD":
                head = digits.removeprefix(_SYMREF).decode("utf-8", "surrogateescape")
        elif len(digits) == 64:
            raise Remote("the other repository uses another hash", "Use a repository made with sha1.")
        elif len(digits) == 40 and is_ref(ref := name.decode("utf-8", "surrogateescape")):
            found[ref] = bytes.fromhex(digits.decode("ascii"))
    if len(found) > MOST_REFS:
        raise Remote(f"the other side has more than {MOST_REFS:,} refs", "Use a repository made for turns.")
    return found, head


def or_empty(oid: bytes | None) -> str:
    return oid.hex() if oid is not None else ""


def batches(going: Moves) -> Iterator[Moves]:
    """Split refs into batches that each fit on a command line: nearly always one."""
    batch: dict[str, tuple[bytes | None, bytes | None]] = {}
    size = 0
    for name, move in going.items():
        size += 2 * len(os.fsencode(name)) + 120
        if batch and size > _LONGEST_COMMAND:
            yield batch
            batch, size = {}, 0
        batch[name] = move
    yield batch


def push_results(output: bytes, going: Moves) -> dict[str, str | None]:
    results: dict[str, str | None] = dict.fromkeys(going, "the other side said nothing about it")
    for flag, name, summary in RESULT.findall(output):
        ref = name.decode("utf-8", "surrogateescape")
        if ref in results:
            results[ref] = _why(summary.decode("utf-8", "replace")) if flag == b"!" else None
    return results


def _why(summary: str) -> str:
    found = _REASON.search(summary)
    reason = found[1] if found is not None else summary
    if reason in ("stale info", "fetch first", "already exists"):
        return MOVED
    if reason == "atomic push failed":
        return NOT_THIS_ONE
    return reason[:300]
