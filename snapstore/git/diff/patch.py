"""Line counts and patches of one file, as git prints them.

dulwich.patch compares lines with difflib: see `edit_script` (test_line_differences.py, test_git_records.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from snapstore.base.text import quote
from snapstore.git.diff.edit_script import Lines, changed_lines
from snapstore.git.objects.ids import Entry

CONTEXT = 3
SLIDE = 100  # maximum number of lines that a block is moved
LARGEST = 4 << 20  # bytes; a larger file is shown like a binary one

Block = tuple[int, int, int, int]  # a1, a2, b1, b2: lines a1 to a2 were replaced by lines b1 to b2


def is_binary(data: bytes) -> bool:
    return no_text(data) or len(data) > LARGEST


def no_text(data: bytes) -> bool:
    """Return whether data is binary, whatever its size."""
    return b"\0" in data[:8000]


def count(old: bytes, new: bytes) -> tuple[int, int]:
    """Return how many lines were added and removed."""
    if not old or not new:
        return line_count(new), line_count(old)
    removed, added = changed_lines(lines_of(old), lines_of(new))
    return added.count(1), removed.count(1)


def line_count(data: bytes) -> int:
    """Return the number of lines, including a last line without a line feed."""
    return data.count(b"\n") + (data[-1:] not in (b"", b"\n"))


def patch(
    path: bytes,
    old: Entry | None,
    new: Entry | None,
    before: bytes,
    after: bytes,
    *,
    renamed_from: bytes | None = None,
    similarity: int | None = None,
) -> Iterator[bytes]:
    """Yield one file's change as lines of a git patch."""
    a, b = quote(b"a/" + (path if renamed_from is None else renamed_from)).encode(), quote(b"b/" + path).encode()
    if old is not None and new is not None and old[0][:2] != new[0][:2]:  # file to link or back: remove, then add
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
    if renamed_from is not None:
        yield b"similarity index %d%%\n" % (similarity or 0)
        yield b"rename from %s\nrename to %s\n" % (quote(renamed_from).encode(), quote(path).encode())
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
    yield from hunks(lines_of(before), lines_of(after))


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines without line feeds. Only a line feed ends a line, as in git.

    A last line without a line feed gets one. No other line contains a line feed, so the two compare as different lines.
    """
    lines = data.split(b"\n")
    last = lines.pop()
    return [*lines, last + b"\n"] if last else lines


def blocks(a: Lines, b: Lines) -> list[Block]:
    """Return the changed blocks that lead from `a` to `b`, in order."""
    removed, added = changed_lines(a, b)
    found: list[Block] = []
    at_a = at_b = 0
    while True:
        a1, b1 = removed.find(1, at_a), added.find(1, at_b)
        if a1 < 0 and b1 < 0:
            return _slid(a, b, found)
        ahead = min(side for side in (a1 - at_a, b1 - at_b) if side >= 0)
        a1, b1 = at_a + ahead, at_b + ahead
        at_a, at_b = _run_end(removed, a1), _run_end(added, b1)
        found.append((a1, at_a, b1, at_b))


def _run_end(flags: bytearray, start: int) -> int:
    if start >= len(flags) or not flags[start]:
        return start
    end = flags.find(0, start)
    return len(flags) if end < 0 else end


def _slid(a: Lines, b: Lines, found: list[Block]) -> list[Block]:
    """Move blocks that only add or remove lines to where a reader expects them.

    A block whose first line equals the line after the block can move down by one, and vice versa. The best place starts
    and ends at the least indentation. Among equals, the lowest place wins.
    """
    result: list[Block] = []
    for number, (a1, a2, b1, b2) in enumerate(found):
        if a1 != a2 and b1 != b2:
            result.append((a1, a2, b1, b2))
            continue
        lines, start, end = (a, a1, a2) if a1 != a2 else (b, b1, b2)
        above = a1 - result[-1][1] if result else a1
        below = (found[number + 1][0] if number + 1 < len(found) else len(a)) - a2
        up = down = 0
        while up < min(above, SLIDE) and lines[start - up - 1] == lines[end - up - 1]:
            up += 1
        while down < min(below, SLIDE) and lines[start + down] == lines[end + down]:
            down += 1
        by = min(range(-up, down + 1), key=lambda by: (_depth(lines, start + by) + _depth(lines, end + by), -by))
        result.append((a1 + by, a2 + by, b1 + by, b2 + by))
    return result


def _depth(lines: Lines, at: int) -> int:
    """Return the indentation of a line; an empty line counts as the deepest."""
    if at >= len(lines):
        return 0
    text = lines[at].expandtabs(8)
    bare = text.lstrip()
    return len(text) - len(bare) if bare else SLIDE


def hunks(a: list[bytes], b: list[bytes]) -> Iterator[bytes]:
    """Yield the hunks of a patch, line by line, with some context."""
    for group in _groups(blocks(a, b)):
        lead = min(CONTEXT, group[0][0])
        tail = min(CONTEXT, len(a) - group[-1][1])
        (a1, _, b1, _), (_, a2, _, b2) = group[0], group[-1]
        yield b"@@ -%s +%s @@\n" % (_range(a1 - lead, a2 + tail), _range(b1 - lead, b2 + tail))
        at = a1 - lead
        for a1, a2, b1, b2 in group:
            yield from (_marked(b" ", line) for line in a[at:a1])
            yield from (_marked(b"-", line) for line in a[a1:a2])
            yield from (_marked(b"+", line) for line in b[b1:b2])
            at = a2
        yield from (_marked(b" ", line) for line in a[at : at + tail])


def _groups(found: list[Block]) -> Iterator[list[Block]]:
    """Group the blocks whose contexts touch."""
    group: list[Block] = []
    for block in found:
        if group and block[0] - group[-1][1] > 2 * CONTEXT:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _range(start: int, end: int) -> bytes:
    length = end - start
    if length == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + 1 if length else start, length)


def _marked(mark: bytes, line: bytes) -> bytes:
    """Return a line as it appears in a patch.

    See `lines_of` for a last line without a line feed.
    """
    return mark + line + (b"\\ No newline at end of file\n" if line.endswith(b"\n") else b"\n")
