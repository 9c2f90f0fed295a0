"""Find the lines that changed between two texts, as many as `git diff` finds.

The algorithm is Myers' "An O(ND) Difference Algorithm" in linear space, with the same cut-offs as git: lines that the
other text lacks are set aside first, and a search that finds no short path settles for a good one. Lines that are
unique in both texts (anchors) divide a large text into small ones.

difflib, which dulwich.patch uses too, takes time that grows with the cube of the changes, and its counts differ from
git's. tests/git/test_line_differences.py compares the counts with `git diff --numstat` and bounds the work.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, islice
from operator import eq

Lines = Sequence[bytes]
Box = tuple[int, int, int, int, bool]  # a1, a2, b1, b2: a part still to compare, and whether its answer must be minimal

STEPS = 8_000_000  # diagonals examined before the answer may differ from git's
_FIRST_STEPS = 400_000  # the same limit for the first attempt
_LONGEST_SEARCH = 256  # edits after which a search settles for a good path; grows with very large texts
_QUICK_SEARCH = 32  # the same limit once the work is divided
_GOOD_SNAKE = 20  # equal lines in a row that make a good place to split
_MOST_COMMON = 1024  # a line this frequent tells nothing about its place
_WINDOW = 100  # lines examined on each side of a frequent one
_FAR = 1 << 60

# How often the other text has a line: never, in a few places, or almost everywhere.
_LACKING, _PLACED, _FREQUENT = b"\x00", b"\x01", b"\x02"
_FLAGS = bytes((1, 0, 0)) + bytes(253)
_DOUBTFUL = re.compile(rb"[\x00\x02]+")
_FEW_LACKING = 6  # this many around a frequent line decide nothing: see _among_lacking
_CHUNK = 256  # lines compared at once
_CHOICE = 6  # unique lines to choose the end of a difference from


def changed_lines(a: Lines, b: Lines) -> tuple[bytearray, bytearray]:
    """Return a flag for each line of `a` (1: removed) and of `b` (1: added)."""
    removed, added = bytearray(len(a)), bytearray(len(b))
    start, end = _common_ends(a, b)
    a_end, b_end = len(a) - end, len(b) - end
    if start in (a_end, b_end):
        removed[start:a_end] = b"\1" * (a_end - start)
        added[start:b_end] = b"\1" * (b_end - start)
        return removed, added
    in_a, in_b = Counter(a), Counter(b)
    kept_a = _comparable(a, start, a_end, in_b, removed)
    kept_b = _comparable(b, start, b_end, in_a, added)
    search = _Search(list(compress(a[start:a_end], kept_a)), list(compress(b[start:b_end], kept_b)))
    unique = {line for line, times in in_a.items() if times == 1 and in_b.get(line) == 1}
    if not search.run_apart(_islands(search.a, search.b, unique), len(unique)):
        search.run()
    for at in compress(compress(range(start, a_end), kept_a), search.removed):
        removed[at] = 1
    for at in compress(compress(range(start, b_end), kept_b), search.added):
        added[at] = 1
    return removed, added


def _common_ends(a: Lines, b: Lines) -> tuple[int, int]:
    """Return how many lines are equal at the start and, of the rest, at the end."""
    shorter = min(len(a), len(b))
    start = next((at for at, equal in enumerate(map(eq, a, b)) if not equal), shorter)
    rest = shorter - start
    end = next((at for at, equal in enumerate(map(eq, reversed(a), reversed(b))) if not equal or at == rest), rest)
    return start, end


def _comparable(lines: Lines, start: int, end: int, others: Counter[bytes], flags: bytearray) -> bytearray:
    """Return which lines are worth comparing, and flag the others as changed.

    A line that the other text lacks is changed in any case. A very frequent line between such lines matches anywhere,
    which says nothing, so that line counts as changed too.
    """
    often = min(_rough_root(len(lines)), _MOST_COMMON)
    kind_of: dict[int | None, int] = {count: 1 + (count >= often) for count in set(others.values())}
    kind_of[None] = 0
    kinds = bytes(map(kind_of.__getitem__, map(others.get, lines[start:end])))
    kept = bytearray(kinds)
    for run in _DOUBTFUL.finditer(kinds):
        if run[0].count(_LACKING) > _FEW_LACKING and _FREQUENT in run[0]:
            for at in range(run.start(), run.end()):
                kept[at] = 0 if _among_lacking(kinds, at) else kinds[at]
    flags[start:end] = kept.translate(_FLAGS)
    return kept


def _among_lacking(kinds: bytes, at: int) -> bool:
    """Return whether lines that the other text lacks surround a frequent line."""
    before = kinds[max(at - _WINDOW, 0) : at].rpartition(_PLACED)[2]
    after = kinds[at + 1 : at + 1 + _WINDOW].partition(_PLACED)[0]
    lacking = before.count(_LACKING), after.count(_LACKING)
    frequent = len(before) + len(after) + 2 - sum(lacking)
    return all(lacking) and frequent * 3 < sum(lacking)


def _rough_root(number: int) -> int:
    """Return a power of two near the square root, as git computes it."""
    return 1 << ((number.bit_length() + 1) // 2)


class _Search:
    """Compares two lists of lines."""

    def __init__(self, a: list[bytes], b: list[bytes]) -> None:
        self.removed, self.added = bytearray(len(a)), bytearray(len(b))
        self.a, self.b = a, b
        self._steps, self._longest = _FIRST_STEPS, _LONGEST_SEARCH
        self._cut_off = False
        diagonals = len(a) + len(b) + 3
        # How far each diagonal is reached, from the start and from the end. Diagonals below 0 are at the end of the
        # list, where a negative index finds them.
        self._forward, self._backward = [0] * diagonals, [0] * diagonals

    def run(self) -> None:
        """Flag the lines that have no counterpart, as git finds them."""
        everything = (0, len(self.a), 0, len(self.b), False)
        self._unflag(everything)
        self._steps, self._longest = STEPS, max(_rough_root(len(self._forward)), _LONGEST_SEARCH)
        self._compare([everything])

    def run_apart(self, islands: Iterable[tuple[Box, int]], unique: int) -> bool:
        """Flag the changed lines island by island; return whether git finds as many.

        A path that skips a unique line costs two edits. So two differing parts are compared separately if no path
        through both can gain by skipping the unique lines between them, and otherwise as one part. The sum is then a
        shortest path. git finds a shortest path too, unless the path is so long that git's search gives up.
        """
        found: list[tuple[Box, int, int]] = []  # each part, its maximum of edits, and the unique lines before it
        for gap, number in islands:
            box = self._without_equal_ends(gap)
            if not self._compare([box]):
                return False
            edits = self._edits(box)
            joined = False
            while found and 2 * (number - found[-1][2]) < edits + found[-1][1]:
                first, more, _ = found.pop()
                box, edits, joined = (first[0], box[1], first[2], box[3], False), edits + more, True
            if joined:
                self._unflag(box)
                if not self._compare([box]):
                    return False
                edits = self._edits(box)
            found.append((box, edits, number))
        return sum(edits for _, edits, _ in found) <= max(2 * _LONGEST_SEARCH, unique)

    def _edits(self, box: Box) -> int:
        return self.removed.count(1, box[0], box[1]) + self.added.count(1, box[2], box[3])

    def _unflag(self, box: Box) -> None:
        self.removed[box[0] : box[1]] = bytes(box[1] - box[0])
        self.added[box[2] : box[3]] = bytes(box[3] - box[2])

    def _compare(self, todo: list[Box]) -> bool:
        """Compare the parts, and return whether every search was completed."""
        self._cut_off = False
        while todo:
            box = self._without_equal_ends(todo.pop())
            todo += self._parted(box) if self._steps > 0 or _is_thin(box) else self._divided(box)
        return not self._cut_off

    def _without_equal_ends(self, box: Box) -> Box:
        a1, a2, b1, b2, minimal = box
        a, b = self.a, self.b
        while a1 < a2 and b1 < b2 and a[a1] == b[b1]:
            a1, b1 = a1 + 1, b1 + 1
        while a1 < a2 and b1 < b2 and a[a2 - 1] == b[b2 - 1]:
            a2, b2 = a2 - 1, b2 - 1
        return a1, a2, b1, b2, minimal

    def _divided(self, box: Box) -> Iterator[Box]:
        """Split a box at its anchors; without any, finish the box quickly."""
        self._cut_off = True
        a1, a2, b1, b2, _ = box
        anchors = _anchors(self.a[a1:a2], self.b[b1:b2])
        if not anchors:
            self._longest = _QUICK_SEARCH
            todo = [box]
            while todo:
                todo += self._parted(self._without_equal_ends(todo.pop()))
            return
        for at_a, at_b in (*((a1 + at_a, b1 + at_b) for at_a, at_b in anchors), (a2, b2)):
            yield a1, at_a, b1, at_b, False
            a1, b1 = at_a + 1, at_b + 1

    def _parted(self, box: Box) -> tuple[Box, ...]:
        """Split a box where the searches from both its corners meet."""
        a1, a2, b1, b2, minimal = box
        if _is_thin(box):
            self.removed[a1:a2] = b"\1" * (a2 - a1)
            self.added[b1:b2] = b"\1" * (b2 - b1)
            return ()
        at_a, at_b, first, second = self._middle(a1, a2, b1, b2, minimal)
        return (a1, at_a, b1, at_b, first), (at_a, a2, at_b, b2, second)

    def _middle(self, a1: int, a2: int, b1: int, b2: int, minimal: bool) -> tuple[int, int, bool, bool]:
        """Return a point on the path, and whether each side of it must be minimal.

        A diagonal is a position in `a` minus the position in `b`. Each round allows one more edit from both corners.
        """
        a, b = self.a, self.b
        forward, backward = self._forward, self._backward
        lowest, highest = a1 - b2, a2 - b1
        low = high = start = a1 - b1
        back_low = back_high = end = a2 - b2
        odd = (start - end) & 1
        forward[start], backward[end] = a1, a2
        edits = 0
        while True:
            edits += 1
            snake = False
            if low > lowest:
                low -= 1
                forward[low - 1] = -1
            else:
                low += 1
            if high < highest:
                high += 1
                forward[high + 1] = -1
            else:
                high -= 1
            for diagonal in range(high, low - 1, -2):
                below, above = forward[diagonal - 1], forward[diagonal + 1]
                at = first = below + 1 if below >= above else above
                limit = b2 + diagonal
                limit = a2 if a2 < limit else limit
                while at < limit and a[at] == b[at - diagonal]:
                    at += 1
                if at - first > _GOOD_SNAKE:
                    snake = True
                forward[diagonal] = at
                if odd and back_low <= diagonal <= back_high and backward[diagonal] <= at:
                    return at, at - diagonal, True, True
            if back_low > lowest:
                back_low -= 1
                backward[back_low - 1] = _FAR
            else:
                back_low += 1
            if back_high < highest:
                back_high += 1
                backward[back_high + 1] = _FAR
            else:
                back_high -= 1
            for diagonal in range(back_high, back_low - 1, -2):
                below, above = backward[diagonal - 1], backward[diagonal + 1]
                at = first = below if below < above else above - 1
                limit = b1 + diagonal
                limit = a1 if a1 > limit else limit
                while at > limit and a[at - 1] == b[at - 1 - diagonal]:
                    at -= 1
                if first - at > _GOOD_SNAKE:
                    snake = True
                backward[diagonal] = at
                if not odd and low <= diagonal <= high and at <= forward[diagonal]:
                    return at, at - diagonal, True, True
            self._steps -= high - low + 2
            if minimal:
                continue
            if snake and edits > _LONGEST_SEARCH:
                found = self._good_place((a1, a2, b1, b2), edits, range(high, low - 1, -2), start, 1)
                if found:
                    return *found, True, False
                found = self._good_place((a1, a2, b1, b2), edits, range(back_high, back_low - 1, -2), end, -1)
                if found:
                    return *found, False, True
            if edits >= self._longest:
                return self._farthest((a1, a2, b1, b2), range(high, low - 1, -2), range(back_high, back_low - 1, -2))

    def _good_place(
        self, box: tuple[int, int, int, int], edits: int, diagonals: range, middle: int, step: int
    ) -> tuple[int, int] | None:
        """Return the farthest point behind a long run of equal lines, if it is far.

        Step 1 means the search from the start, step -1 the search from the end.
        """
        a1, a2, b1, b2 = box
        reached = self._forward if step > 0 else self._backward
        best, found = 4 * edits, None
        for diagonal in diagonals:
            at_a = reached[diagonal]
            at_b = at_a - diagonal
            from_a, from_b = (at_a - a1, at_b - b1) if step > 0 else (a2 - at_a, b2 - at_b)
            way = from_a + from_b - abs(diagonal - middle)
            inside = _GOOD_SNAKE <= from_a < a2 - a1 and _GOOD_SNAKE <= from_b < b2 - b1
            if way > best and inside and self._is_equal_run(at_a, at_b, step):
                self._cut_off = True
                best, found = way, (at_a, at_b)
        return found

    def _is_equal_run(self, at_a: int, at_b: int, step: int) -> bool:
        back = _GOOD_SNAKE if step > 0 else 0
        run_a = self.a[at_a - back : at_a - back + _GOOD_SNAKE]
        return run_a == self.b[at_b - back : at_b - back + _GOOD_SNAKE]

    def _farthest(self, box: tuple[int, int, int, int], forward: range, backward: range) -> tuple[int, int, bool, bool]:
        """Return the farthest point reached, and which side of it must be minimal."""
        self._cut_off = True
        a1, a2, b1, b2 = box
        best, best_a = -1, -1
        for diagonal in forward:
            at = min(self._forward[diagonal], a2, b2 + diagonal)
            if best < 2 * at - diagonal:
                best, best_a = 2 * at - diagonal, at
        back, back_a = _FAR, _FAR
        for diagonal in backward:
            at = max(self._backward[diagonal], a1, b1 + diagonal)
            if 2 * at - diagonal < back:
                back, back_a = 2 * at - diagonal, at
        if a2 + b2 - back < best - (a1 + b1):
            return best_a, best - best_a, True, False
        return back_a, back - back_a, False, True


def _is_thin(box: Box) -> bool:
    """Return whether one side of a box is empty: all of the other is changed."""
    return box[0] == box[1] or box[2] == box[3]


def _anchors(a: list[bytes], b: list[bytes]) -> list[tuple[int, int]]:
    """Return the longest series of unique lines in the same order on both sides."""
    in_a, in_b = Counter(a), Counter(b)
    place = {line: at for at, line in enumerate(b) if in_b[line] == 1}
    pairs = [(at, place[line]) for at, line in enumerate(a) if line in place and in_a[line] == 1]
    ends: list[int] = []  # by length of the series found so far: the lowest last position in b
    last: list[int] = []  # the pair that each of those series ends with
    before: list[int] = []
    for number, (_, at_b) in enumerate(pairs):
        length = bisect_left(ends, at_b)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [at_b]
        last[length : length + 1] = [number]
    found = []
    at = last[-1] if last else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _islands(a: list[bytes], b: list[bytes], unique: set[bytes]) -> Iterator[tuple[Box, int]]:
    """Yield the parts that differ, each ending before an anchor.

    Each part comes with the number of anchors before it. The Python loop visits only lines near a difference, since
    most lines of a large file are elsewhere.
    """
    place = dict(zip(b, range(len(b)), strict=True))
    number = at_a = at_b = 0
    while True:
        equal = _equal_run(a, b, at_a, at_b)
        number += sum(map(unique.__contains__, a[at_a : at_a + equal]))
        a1, b1 = at_a + equal, at_b + equal
        if a1 == len(a) and b1 == len(b):
            return
        known = ((at, place[a[at]]) for at in range(a1, len(a)) if a[at] in unique)
        after = islice((pair for pair in known if pair[1] >= b1), _CHOICE)
        at_a, at_b = min(after, key=sum, default=(len(a), len(b)))
        yield (a1, at_a, b1, at_b, False), number


def _equal_run(a: list[bytes], b: list[bytes], at_a: int, at_b: int) -> int:
    """Return how many lines are equal from two positions on."""
    length = 0
    most = min(len(a) - at_a, len(b) - at_b)
    while length < most:
        one, two = (side[at + length : at + length + _CHUNK] for side, at in ((a, at_a), (b, at_b)))
        if one != two:
            return length + next((at for at, same in enumerate(map(eq, one, two)) if not same), min(len(one), len(two)))
        length += len(one)
    return length
