"""Three-way merges: exact bytes, nobody's configuration, and a plain no where there is no answer."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from helpers import bit_by_bit, git_in

from snapstore.errors import Failed
from snapstore.git.diff.patch import LARGEST
from snapstore.git.merge import merge, why_not

BASE = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
MINE = BASE.replace(b"one", b"ONE")
THEIRS = BASE.replace(b"seven", b"SEVEN")
CLASH = BASE.replace(b"one", b"eins")


def test_changes_apart_from_each_other_are_both_kept() -> None:
    """G-38: never loses either side."""
    assert merge(BASE, MINE, THEIRS) == MINE.replace(b"seven", b"SEVEN")
    assert merge(BASE, THEIRS, MINE) == merge(BASE, MINE, THEIRS)


def test_one_side_alone_needs_no_merge_even_where_there_is_no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert merge(BASE, BASE, THEIRS) == THEIRS
    assert merge(BASE, MINE, BASE) == MINE
    assert merge(BASE, MINE, MINE) == MINE
    assert merge(b"\0a", b"\0a", b"\0b") == b"\0b"


def test_the_same_lines_changed_on_both_sides_are_no_merge() -> None:
    assert merge(BASE, MINE, CLASH) is None
    assert why_not(BASE, MINE, CLASH) == "both sides changed the same lines"


def test_markers_show_all_three_under_their_labels() -> None:
    marked = merge(BASE, MINE, CLASH, markers=True, labels=("yours, on disk", "after turn 3", "turn 2"))
    head = b"<<<<<<< yours, on disk\nONE\n||||||| after turn 3\none\n=======\neins\n>>>>>>> turn 2\n"
    assert marked == head + BASE.removeprefix(b"one\n")


def test_a_label_cannot_end_its_line() -> None:
    marked = merge(BASE, MINE, CLASH, markers=True, labels=("a\nONE\n=======", "-p", "caf\udce9"))
    assert marked is not None
    lines = marked.split(b"\n")
    assert lines[0] == b"<<<<<<< a ONE ======="
    assert (lines[2], lines[6]) == (b"||||||| -p", b">>>>>>> caf\xe9")


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "merged"),
    [
        (b"a\r\nb\r\nc\r\nd\r\n", b"A\r\nb\r\nc\r\nd\r\n", b"a\r\nb\r\nc\r\nD\r\n", b"A\r\nb\r\nc\r\nD\r\n"),
        (b"a\nb\r\nc\nd", b"A\nb\r\nc\nd", b"a\nb\r\nc\nd\n", b"A\nb\r\nc\nd\n"),
        (b"a\nb\nc\nd\n", b"A\nb\nc\nd\n", b"a\nb\nc\nd", b"A\nb\nc\nd"),
        (b"\xe9\nb\nc\nd\n", b"\xff\nb\nc\nd\n", b"\xe9\nb\nc\n\x80\xfe\n", b"\xff\nb\nc\n\x80\xfe\n"),
        (b"\xef\xbb\xbfa\nb\nc\n", b"\xef\xbb\xbfa\nb\nC", b"\xef\xbb\xbfA\nb\nc\n", b"\xef\xbb\xbfA\nb\nC"),
        (b"a\nb\nc\n", b"\nb\nc\n", b"a\nb\n", b"\nb\n"),
    ],
    ids=["CRLF", "mixed", "no newline at the end", "no UTF-8", "mark of order", "an end cut off"],
)
def test_bytes_are_exact(base: bytes, mine: bytes, theirs: bytes, merged: bytes) -> None:
    """G-34."""
    assert merge(base, mine, theirs) == merged


def test_what_is_no_text_is_not_merged() -> None:
    for at in range(3):
        sides = [BASE, MINE, THEIRS]
        sides[at] += b"\0"
        assert merge(*sides) is None
        assert merge(*sides, markers=True) is None
        assert why_not(*sides) == "not text"
    far = b"x" * 8000 + b"\n\0\n"  # git looks at the first 8000 bytes
    assert merge(far + BASE, far + MINE, far + THEIRS) == far + MINE.replace(b"seven", b"SEVEN")


def test_what_is_large_counts_as_no_text() -> None:
    large = b"x" * LARGEST
    assert merge(BASE, MINE, large + b"y") is None
    assert why_not(BASE, MINE, large + b"y") == "larger than 4 MiB"


def test_without_a_git_program_there_is_no_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert merge(BASE, MINE, THEIRS) is None
    assert why_not(BASE, MINE, THEIRS) == "there is no git program here"


def test_a_git_that_fails_is_not_taken_for_a_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for status, text in ((255, "out of memory"), (128, "fatal"), (129, "usage")):
        door = tmp_path / "git"
        door.write_text(f"#!/bin/sh\necho half a file; echo {text} >&2; exit {status}\n")
        door.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        with pytest.raises(Failed, match=text):
            merge(BASE, MINE, THEIRS, markers=True)


def test_many_conflicts_are_still_conflicts() -> None:
    """git's status counts them, up to 127."""
    base = b"".join(b"%d\nsame\n" % n for n in range(400))
    mine, theirs = base.replace(b"\nsame", b"m\nsame"), base.replace(b"\nsame", b"t\nsame")
    assert merge(base, mine, theirs) is None
    marked = merge(base, mine, theirs, markers=True)
    assert marked is not None and marked.count(b"<<<<<<< mine\n") == 400


def test_nobodys_configuration_attributes_or_driver_has_a_say(
    root: Path, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G-34: neither a global one, nor that of a repository around us or named by the environment."""
    git_in(root, "init", "-q")
    evil = f"touch {root}/ran; false"
    (nobodys_home / ".gitconfig").write_text(
        f'[merge]\n conflictStyle = merge\n default = evil\n[merge "evil"]\n driver = {evil}\n[core]\n eol = crlf\n'
    )
    git_in(root, "config", "merge.evil.driver", evil)
    git_in(root, "config", "merge.conflictStyle", "merge")
    (root / ".gitattributes").write_text("* merge=evil eol=crlf\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("GIT_DIR", str(root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(root))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'merge.conflictstyle=merge'")
    before = bit_by_bit(root)
    assert merge(BASE, MINE, THEIRS) == MINE.replace(b"seven", b"SEVEN")
    assert b"||||||| before\n" in (merge(BASE, MINE, CLASH, markers=True) or b"")
    monkeypatch.setattr(tempfile, "tempdir", str(root))  # even where the files must lie inside that repository
    assert b"||||||| before\n" in (merge(BASE, MINE, CLASH, markers=True) or b"")
    assert not (root / "ran").exists()
    after = bit_by_bit(root)
    assert [path for path in before if path != "." and before[path] != after[path]] == []


def test_the_private_folder_is_ours_alone_and_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    door = tmp_path / "bin" / "git"
    door.parent.mkdir()
    door.write_text(f"#!/bin/sh\nstat -c '%a %n' . > {tmp_path}/seen; pwd >> {tmp_path}/seen; exit 255\n")
    door.chmod(0o755)
    monkeypatch.setenv("PATH", f"{door.parent}:{os.environ['PATH']}")
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(Failed):
        merge(BASE, MINE, THEIRS, folder=str(place))
    mode, where = (tmp_path / "seen").read_text().splitlines()
    assert mode == "700 ."
    assert Path(where).parent == place
    assert list(place.iterdir()) == []
