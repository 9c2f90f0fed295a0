"""Line by line: how many lines came and went, and the patch as git would print it."""

from __future__ import annotations

from difflib import SequenceMatcher

from snapstore.git.commits import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from snapstore.git.objects import Entry

CONTEXT = 3
LARGEST = 4 << 20  # beyond this a file is shown like a binary one

Op = tuple[str, int, int, int, int]


def is_binary(data: bytes) -> bool:
    return no_text(data) or len(data) > LARGEST


def no_text(data: bytes) -> bool:
    """Whatever its size."""
    return b"\0" in data[:8000]


def count(old: bytes, new: bytes) -> tuple[int, int]:
    """Lines added and removed."""
    added = removed = 0
    for tag, a1, a2, b1, b2 in _operations(_lines(old), _lines(new)):
        if tag != "equal":
            removed += a2 - a1
            added += b2 - b1
    return added, removed


def patch(path: bytes, old: Entry | None, new: Entry | None, before: bytes, after: bytes) -> Iterator[bytes]:
    """One file's change as lines of a git patch."""
    a, b = quote(b"a/" + path).encode(), quote(b"b/" + path).encode()
    if old is not None and new is not None and old[0][:2] != new[0][:2]:  # a link is no edited file: out and in again
        yield from patch(path, old, None, before, b"")
        yield from patch(path, None, new, b"", after)
        return
    yield b"diff --git %s %s\n" % (a, b)
    if old is None and new is not None:
        yield b"new file mode %s\n" % new[0]
    elif new is None and old is not None:
        yield b"deleted file mode %s\n" % old[0]
    elif old is not None and new is not None and old[0] != new[0]:
        yield b"old mode %s\nnew mode %s\n" % (old[0], new[0])
    ids = [(entry[1].hex() if entry else "0" * 40).encode() for entry in (old, new)]
    if ids[0] == ids[1]:
        return
    same_mode = b" " + old[0] if old and new and old[0] == new[0] else b""
    yield b"index %s..%s%s\n" % (ids[0], ids[1], same_mode)
    names = (a if old else b"/dev/null", b if new else b"/dev/null")
    if is_binary(before) or is_binary(after):
        yield b"Binary files %s and %s differ\n" % names
        return
    if not before and not after:
        return
    yield b"--- %s\n+++ %s\n" % names
    yield from _hunks(_lines(before), _lines(after))


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    last = lines.pop()
    lines = [line + b"\n" for line in lines]
    return [*lines, last] if last else lines


def _operations(a: list[bytes], b: list[bytes]) -> list[Op]:
    """Like SequenceMatcher, which is quadratic on repeated lines, but only over what differs."""
    start, end = 0, 0
    shorter = min(len(a), len(b))
    while start < shorter and a[start] == b[start]:
        start += 1
    while end < shorter - start and a[-1 - end] == b[-1 - end]:
        end += 1
    a_mid, b_mid = a[start : len(a) - end], b[start : len(b) - end]
    ops: list[Op] = [("equal", 0, start, 0, start)] if start else []
    large = len(a_mid) * len(b_mid) > 4_000_000
    for tag, a1, a2, b1, b2 in SequenceMatcher(None, a_mid, b_mid, autojunk=large).get_opcodes():
        ops.append((tag, a1 + start, a2 + start, b1 + start, b2 + start))
    if end:
        ops.append(("equal", len(a) - end, len(a), len(b) - end, len(b)))
    return ops


def _hunks(a: list[bytes], b: list[bytes]) -> Iterator[bytes]:
    groups: list[list[Op]] = [[]]
    for tag, a1, a2, b1, b2 in _operations(a, b):
        if tag != "equal":
            groups[-1].append((tag, a1, a2, b1, b2))
            continue
        if groups[-1]:
            keep = min(CONTEXT, a2 - a1)
            groups[-1].append((tag, a1, a1 + keep, b1, b1 + keep))
            if a2 - a1 <= 2 * CONTEXT and (a2, b2) != (len(a), len(b)):
                groups[-1][-1] = (tag, a1, a2, b1, b2)
                continue
            groups.append([])
        lead = min(CONTEXT, a2 - a1)
        groups[-1].append((tag, a2 - lead, a2, b2 - lead, b2))
    for group in groups:
        if not any(op[0] != "equal" for op in group):
            continue
        a1, a2, b1, b2 = group[0][1], group[-1][2], group[0][3], group[-1][4]
        yield b"@@ -%s +%s @@\n" % (_range(a1, a2), _range(b1, b2))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (_marked(b" ", line) for line in a[i1:i2])
            else:
                yield from (_marked(b"-", line) for line in a[i1:i2])
                yield from (_marked(b"+", line) for line in b[j1:j2])


def _range(start: int, end: int) -> bytes:
    length = end - start
    if length == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + 1 if length else start, length)


def _marked(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + b"\n\\ No newline at end of file\n"
