"""Line differences: the counts of `git diff --numstat`, a cost that grows with the file, readable blocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from helpers import git_in, write

from snapstore.git.diff import edit_script
from snapstore.git.diff.edit_script import changed_lines
from snapstore.git.diff.patch import blocks, count, hunks, lines_of, patch
from snapstore.git.diff.patch_lines import counts, walk
from snapstore.git.objects.ids import FILE

Pair = tuple[bytes, bytes]


def git_counts(folder: Path, pairs: list[Pair]) -> list[tuple[int, int]]:
    """What `git diff --numstat` says of each pair."""
    for side in (0, 1):
        for number, pair in enumerate(pairs):
            write(folder / "ab"[side] / str(number), pair[side])
    arguments = ("diff", "--no-index", "--no-renames", "--numstat", "-z", "a", "b")
    fields = git_in(folder, *arguments, may_fail=True).split(b"\0")
    found = [(0, 0)] * len(pairs)
    for row, name in zip(fields[::3], fields[1::3], strict=False):
        added, removed, _ = row.split(b"\t")
        found[int(name.rpartition(b"/")[2])] = (int(added), int(removed))
    return found


def edited(random: Random, lines: list[bytes], words: list[bytes], edits: int) -> list[bytes]:
    """Some lines deleted, some put in, known ones and new ones, some moved."""
    lines = list(lines)
    for _ in range(edits):
        at, length, kind = (
            random.randrange(len(lines) + 1),
            random.randrange(1, random.choice([2, 5, 40])),
            random.random(),
        )
        taken = lines[at : at + length]
        if kind < 0.65:
            new = [
                random.choice(words) if random.random() < 0.5 else b"%d new\n" % random.randrange(1 << 20)
                for _ in range(length)
            ]
            lines[at : at + length * (kind < 0.35)] = [] if kind < 0.35 else new
        else:
            del lines[at : at + length]
            to = random.randrange(len(lines) + 1)
            lines[to:to] = taken
    return lines


def generated(seed: int, amount: int) -> Iterator[Pair]:
    random = Random(seed)
    for _ in range(amount):
        words = [b"%d\n" % number for number in range(random.choice([2, 5, 20, 100, 1000]))]
        old = [random.choice(words) for _ in range(random.choice([3, 10, 50, 300, 1500]))]
        new = edited(random, old, words, random.choice([1, 3, 20, 200]))
        yield b"".join(old), b"".join(new)[: -1 if random.random() < 0.1 else None]


def lock_file(random: Random, packages: dict[int, int]) -> bytes:
    """A lock file like npm's: each package by number with its version. Many lines are the same in many packages."""
    return b"".join(_package(number, version) for number, version in packages.items())


def _package(number: int, version: int) -> bytes:
    random = Random(number * 1000 + version)
    rows = [
        f'    "node_modules/package-{number}": {{',
        f'      "version": "{version}.{number % 7}.{number % 5}",',
        f'      "resolved": "https://registry.example/package-{number}/-/package-{number}-{version}.tgz",',
        f'      "integrity": "sha512-{random.getrandbits(352):088x}",',
        *(['      "dev": true,'] if number % 3 else []),
        '      "dependencies": {',
        *(f'        "package-{random.randrange(300)}": "^{random.randrange(9)}.0.0",' for _ in range(number % 4)),
        "      },",
        f'      "engines": {{ "node": ">={random.randrange(10, 20)}" }}',
        "    },",
    ]
    return "".join(f"{row}\n" for row in rows).encode()


def updated(random: Random, packages: dict[int, int], changed: int, removed: int, added: int) -> dict[int, int]:
    """Some packages at another version, some gone, some new in between."""
    kept = dict(packages)
    for number in random.sample(sorted(packages), changed):
        kept[number] += 1
    for number in random.sample(sorted(packages), removed):
        del kept[number]
    for number in range(added):
        kept[random.randrange(len(packages)) * 1000 + 500 + number] = 0
    return dict(sorted(kept.items(), key=lambda item: item[0] / 1000 if item[0] >= 1_000_500 else item[0]))


def test_counts_are_git_s_on_generated_files(tmp_path: Path) -> None:
    pairs = list(generated(1, 300))
    assert [count(*pair) for pair in pairs] == git_counts(tmp_path, pairs)


@pytest.mark.deep
def test_counts_are_git_s_on_many_generated_files(tmp_path: Path) -> None:
    pairs = list(generated(2, 6000))
    assert [count(*pair) for pair in pairs] == git_counts(tmp_path, pairs)


def test_counts_are_git_s_on_lock_files(tmp_path: Path) -> None:
    random = Random(3)
    packages = dict.fromkeys(range(900), 0)
    changes = [
        (1, 0, 0),
        (60, 0, 0),
        (250, 0, 0),
        (40, 20, 20),
        (100, 80, 80),
        (0, 300, 0),
        (0, 0, 300),
        (400, 200, 200),
    ]
    pairs = [(lock_file(random, packages), lock_file(random, updated(random, packages, *change))) for change in changes]
    assert [count(*pair) for pair in pairs] == git_counts(tmp_path, pairs)


def test_counts_are_git_s_where_a_search_is_long(tmp_path: Path) -> None:
    """Few words, all lines mixed: git's own search gives up and settles for less than the best, and so must ours."""
    random = Random(4)
    pairs = []
    for words in (2, 9, 60, 700):
        sides = (b"".join(b"%d\n" % random.randrange(words) for _ in range(2500)) for _ in "ab")
        pairs.append((next(sides), next(sides)))
    assert [count(*pair) for pair in pairs] == git_counts(tmp_path, pairs)


def test_blocks_lead_from_one_to_the_other() -> None:
    for old, new in generated(5, 100):
        a, b = lines_of(old), lines_of(new)
        found = blocks(a, b)
        built, at = [], 0
        for a1, a2, b1, b2 in found:
            assert at <= a1 and (a1 < a2 or b1 < b2)
            built += a[at:a1] + b[b1:b2]
            at = a2
        assert built + a[at:] == b
        removed, added = sum(a2 - a1 for a1, a2, _, _ in found), sum(b2 - b1 for _, _, b1, b2 in found)
        assert (added, removed) == count(old, new)


def test_past_its_steps_the_search_still_gives_a_true_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_script, "STEPS", 1)
    monkeypatch.setattr(edit_script, "_FIRST_STEPS", 1)
    test_blocks_lead_from_one_to_the_other()


class Counted(bytes):
    """A line that counts how often it is compared or looked up."""

    looked = 0

    def __eq__(self, other: object) -> bool:
        Counted.looked += 1
        return bytes.__eq__(self, other)

    def __hash__(self) -> int:
        Counted.looked += 1
        return bytes.__hash__(self)


def _looks(packages: int) -> int:
    random = Random(6)
    known = dict.fromkeys(range(packages), 0)
    old = lock_file(random, known)
    new = lock_file(random, updated(random, known, packages // 10, packages // 50, packages // 50))
    sides = [[Counted(line) for line in lines_of(data)] for data in (old, new)]
    Counted.looked = 0
    changed_lines(*sides)
    return Counted.looked


def test_the_cost_grows_with_the_file_and_not_with_its_square() -> None:
    small, large = _looks(200), _looks(1600)
    assert large < 16 * small  # 8 times the file and 8 times the changes: difflib took 500 times as long


OLD = b"""\
def first():
    one()

def last():
    three()
"""


def test_a_new_function_is_shown_whole() -> None:
    new = OLD.replace(b"def last", b"def middle():\n    two()\n\ndef last")
    added = [line for line in hunks(lines_of(OLD), lines_of(new)) if line.startswith(b"+")]
    assert added == [b"+def middle():\n", b"+    two()\n", b"+\n"]


def test_a_new_branch_starts_with_its_own_line() -> None:
    old = b"if a:\n    x()\n    end()\nif c:\n    y()\n    end()\n"
    new = old.replace(b"if c", b"if b:\n    z()\n    end()\nif c")
    added = [line for line in hunks(lines_of(old), lines_of(new)) if line.startswith(b"+")]
    assert added == [b"+if b:\n", b"+    z()\n", b"+    end()\n"]


def test_every_line_of_a_patch_is_told_with_its_places() -> None:
    """The one walker that terminal, tree and page paint from: numbers lead to the lines of both files."""
    for old, new in generated(7, 60):
        a, b = lines_of(old), lines_of(new)
        found = list(walk(patch(b"f", (FILE, bytes(20)), (FILE, b"1" * 20), old, new)))
        assert [line.kind for line in found[:4]] == ["head"] * 4  # diff, index, ---, +++
        assert all(line.kind != "head" for line in found[4:])
        for line in found:
            for number, side in ((line.old, a), (line.new, b)):
                assert number is None or side[number - 1].removesuffix(b"\n") == line.text
        kinds = [line.kind for line in found]
        assert (kinds.count("new"), kinds.count("old")) == count(old, new)


def test_lines_that_look_like_a_patch_s_head_are_content() -> None:
    old, new = b"-- a\n++ b\nx\n", b"@@ -1 +1 @@\ndiff --git a b\nx"
    found = [(line.kind, line.text) for line in walk(hunks(lines_of(old), lines_of(new)))]
    assert found == [
        ("hunk", b"@@ -1,3 +1,3 @@"),
        ("old", b"-- a"),
        ("old", b"++ b"),
        ("old", b"x"),
        ("new", b"@@ -1 +1 @@"),
        ("new", b"diff --git a b"),
        ("new", b"x"),
        ("note", b"No newline at end of file"),
    ]


def test_counts_of_a_patch_are_those_of_its_lines() -> None:
    old, new = (FILE, bytes(20)), (FILE, b"1" * 20)
    odd = [(b"-- a\n++ b\nd\n@@ -1 +1 @@\n", b"++ b\n-- c\nd"), (b"", b"diff\n@@\n"), (b"x", b""), (b"\0", b"a\n")]
    for before, after in (*odd, *generated(5, 200)):
        lines = list(patch(b"f", old, new, before, after))
        walked = list(walk(lines))
        kinds = [line.kind for line in walked]
        binary = any(line.is_binary_remark for line in walked)
        assert counts(lines) == (None if binary else (kinds.count("new"), kinds.count("old"))), (before, after)
    link = list(patch(b"f", new, (b"120000", b"2" * 20), b"one\n", b"two"))  # out and in again
    assert counts(link) == (1, 1)
