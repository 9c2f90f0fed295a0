"""The first snapshot of a checkout borrows from the user's repository, and is the disk all the same (P-04, G-34).

The index is full of half-truths: same-size edits in the tick of `git add`, files checked out under other attributes,
stats put back by hand. Whatever happened to the checkout before, the baseline is what lies on disk.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from helpers import assert_equal, assert_whole, git, git_in, line, on_disk, quick_folder, remove, touched, write
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from snapstore import Store
from snapstore.worktree.scan import borrow

NAMES = st.sampled_from(["a.txt", "b.txt", "sub/c.txt", "sub/deep/d.bin", "e"])
# of equal length, so that a size never gives a change away
CONTENTS = st.sampled_from([b"one\n1\n", b"two\n2\n", b"3\r\nx\r\n"[:6], b"$Id$\n\n", b"\0\1\2\3\4\5"])
ATTRIBUTES = st.sampled_from(
    ["", "* text=auto\n", "*.txt eol=crlf\n", "*.txt ident\n", "*.txt -text\n", "e text eol=crlf\n"]
)
STEPS = st.one_of(
    st.tuples(st.just("write"), NAMES, CONTENTS),
    st.tuples(st.just("write and put the time back"), NAMES, CONTENTS),
    st.tuples(st.just("remove"), NAMES),
    st.tuples(st.just("chmod"), NAMES),
    st.tuples(st.just("link"), NAMES),
    st.tuples(st.just("attributes"), ATTRIBUTES),
    st.tuples(st.just("config"), st.sampled_from(["core.autocrlf=true", "core.autocrlf=false", "core.filemode=false"])),
    st.tuples(
        st.just("git"),
        st.sampled_from(
            [
                ("add", "-A"),
                ("commit", "-qam", "x"),
                ("checkout", "-q", "--", "."),
                ("reset", "-q", "--hard"),
                ("stash", "-q"),
                ("rm", "-q", "--cached", "a.txt"),
                ("checkout", "-q", "-B", "other"),
                ("gc", "-q"),
                ("status",),
                ("update-index", "--assume-unchanged", "a.txt"),
                ("update-index", "--skip-worktree", "b.txt"),
                ("update-index", "--index-version", "4"),
                ("update-index", "--split-index"),
                ("add", "--renormalize", "."),
                ("read-tree", "HEAD"),
                ("sparse-checkout", "set", "sub"),
            ]
        ),
    ),
)


def take(root: Path, step: tuple[object, ...]) -> None:
    kind, *rest = step
    if kind == "git":
        git_in(root, *rest[0], may_fail=True)  # type: ignore[misc]
        return
    if kind == "attributes":
        write(root / ".gitattributes", str(rest[0]))
        return
    if kind == "config":
        key, _, value = str(rest[0]).partition("=")
        git_in(root, "config", key, value)
        return
    path = root / str(rest[0])
    if kind == "remove":
        remove(path)
    elif kind == "chmod":
        if path.is_file() and not path.is_symlink():
            path.chmod(path.stat().st_mode ^ 0o111)
    elif kind == "link":
        remove(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to("one\n1\n")
    else:
        seen = path.lstat() if os.path.lexists(path) else None
        if path.is_symlink():
            path.unlink()
        write(path, rest[1])  # type: ignore[arg-type]
        if kind == "write and put the time back" and seen is not None:
            os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def play(story: list[tuple[object, ...]]) -> None:
    with quick_folder() as folder:
        root = folder / "project"
        root.mkdir()
        git_in(root, "init", "--quiet")
        for step in story:
            take(root, step)
        files = on_disk(root)
        with Store.open(root, create=True, home=str(folder / "stores")) as store:
            assert_equal(store, line(store, "shell")[0]["commit"], files)
            assert on_disk(root) == files
            with store.session("s").turn("go on") as turn:
                write(root / "new", "x")
            assert turn.commit is not None
            assert touched(store, turn.commit) == {b"new": "A"}
            assert_equal(store, turn.commit, on_disk(root))
            # and nothing hangs on the user's repository any more
            remove(root / ".git")
            git(store.shadow.git_dir, "gc", "--quiet", "--prune=now")
            assert_equal(store, line(store, "shell")[0]["commit"], files)
            assert_whole(store)


CRLF = [
    ("write", "a.txt", b"one\n1\n"),
    ("attributes", "*.txt eol=crlf\n"),
    ("git", ("add", "-A")),
    ("git", ("commit", "-qam", "x")),
    ("remove", "a.txt"),
    ("git", ("checkout", "-q", "--", ".")),
    ("attributes", ""),
    ("git", ("gc", "-q")),
]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@example(CRLF)
@given(st.lists(STEPS, max_size=14))
def test_the_baseline_of_any_checkout_is_the_disk_P_04_G_34(story: list[tuple[object, ...]]) -> None:
    play(story)


@pytest.mark.deep
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, min_size=5, max_size=25))
def test_the_baseline_of_any_checkout_is_the_disk_over_long_stories_P_04(story: list[tuple[object, ...]]) -> None:
    play(story)


@pytest.mark.parametrize("round", range(15))
def test_a_write_in_the_tick_of_git_add_is_seen_G_33(root: Path, round: int) -> None:
    """The index holds the new stat and the old bytes: git itself calls such an entry racy."""
    git_in(root, "init", "--quiet")
    write(root / "file", b"%08d" % round)
    fd = os.open(root / "file", os.O_RDWR)
    git_in(root, "add", "file")
    os.pwrite(fd, b"%08d" % (round + 1), 0)
    os.close(fd)
    with Store.open(root, create=True) as store:
        assert_equal(store, line(store, "shell")[0]["commit"], on_disk(root))


def test_a_sync_that_fails_while_borrowing_gives_the_same_baseline(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are read instead, and nothing says that they were first seen: there is no earlier state."""
    write(root / "file", "a file")
    os.utime(root / "file", (1_700_000_000, 1_700_000_000))
    git_in(root, "init", "-q")
    git_in(root, "add", ".")
    tried: list[str] = []

    def failing(paths: list[str]) -> None:
        tried.extend(paths)
        raise OSError(errno.EIO, "an error of the disk")

    monkeypatch.setattr(borrow, "_sync_linked", failing)
    with Store.open(root, create=True, session="s") as store:
        store.session("s").take_baseline()
        assert tried, "nothing was borrowed"
        assert_whole(store)
        assert git(store.shadow.git_dir, "show", "s/main:file") == b"a file"
        assert list(store.shadow.refs.list("refs/notes/")) == []
