"""Where README and readme are one file: a rename of the case alone is captured, undone and redone as what it is, and
nobody's file is taken for another.

macOS folds cases; Linux does not without a file system made for it. There the calls that take a name are made to find
what is listed in other cases, as such a file system does.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import all_refs, assert_cache_adds_up, assert_whole, on_disk, remove, touched, turn, write

from snapstore import Conflict, Session, Store, Unsafe
from snapstore.surface.status import read_status
from snapstore.timeline.moves.plan import FORCE, Policy

CALLS = ["stat", "lstat", "open", "unlink", "rmdir", "mkdir", "readlink", "listdir", "scandir", "chmod", "access"]


def found(path: Any, dir_fd: int | None = None) -> Any:
    """The path as the file system has it: each part as it is listed, in whatever case it was asked for."""
    if not isinstance(path, (str, bytes)) and not hasattr(path, "__fspath__"):
        return path  # a descriptor
    raw = os.fsencode(path)
    full = raw if raw.startswith(b"/") or dir_fd is None else os.path.join(_real_folder(dir_fd), raw)
    if b"/project/" not in full:
        return path
    top, _, below = full.partition(b"/project/")
    at = top + b"/project"
    for part in below.split(b"/"):
        names = _listdir(at) if part and _isdir(at) else []
        same = [name for name in names if name.lower() == part.lower()]
        at += b"/" + (part if part in names or not same else same[0])
    return os.fsdecode(at) if isinstance(path, str) else at


_listdir, _isdir, _readlink = os.listdir, os.path.isdir, os.readlink


def _real_folder(fd: int) -> bytes:
    return os.fsencode(_readlink(f"/proc/self/fd/{fd}"))


@pytest.fixture(autouse=True)
def folding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "probe")
    if (tmp_path / "PROBE").exists():
        return  # the real thing
    # Plain calls of their own for what looks names up, which would otherwise be folded themselves.
    stat = os.stat
    monkeypatch.setattr(f"{__name__}._isdir", lambda path: _is_folder(stat, path))

    def folds(call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def folded(path: Any = ".", *more: Any, dir_fd: int | None = None, **options: Any) -> Any:
            real = found(path, dir_fd)
            if dir_fd is not None and real is path:
                options["dir_fd"] = dir_fd
            return call(real, *more, **options)

        return folded

    for name in CALLS:
        monkeypatch.setattr(os, name, folds(getattr(os, name)))
    rename = os.rename

    def renamed(old: Any, new: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        source, target = found(old, src_dir_fd), found(new, dst_dir_fd)
        if source == target:  # to another case of its own name
            target = os.path.join(os.path.dirname(os.fsencode(target)), os.path.basename(os.fsencode(new)))
        options = {"src_dir_fd": src_dir_fd} if source is old else {}
        rename(source, target, **options, **({"dst_dir_fd": dst_dir_fd} if target is new else {}))

    monkeypatch.setattr(os, "rename", renamed)


def _is_folder(stat: Callable[..., os.stat_result], path: bytes) -> bool:
    try:
        return (stat(path).st_mode & 0o170000) == 0o040000
    except OSError:
        return False


@pytest.fixture
def session(store: Store) -> Session:
    return store.session("s")


def names(root: Path) -> list[bytes]:
    return sorted(on_disk(root))


def changes(session: Session) -> list[str]:
    return [os.fsdecode(change.path) for change in read_status(session).edits]


def test_the_file_system_of_these_tests_folds_cases(root: Path) -> None:
    write(root / "Docs/Readme", "text")
    assert os.path.samestat(os.stat(root / "docs/README"), os.stat(root / "Docs/Readme"))
    assert names(root) == [b"Docs/Readme"]


@pytest.mark.parametrize("inodes", ["of files", "of spellings"])
def test_a_rename_of_the_case_alone_is_a_turn_and_goes_and_comes_back_G_35(
    root: Path, session: Session, monkeypatch: pytest.MonkeyPatch, inodes: str
) -> None:
    """On exFAT through FUSE every spelling of a name has an inode of its own."""
    if inodes == "of spellings":
        monkeypatch.setattr(os.path, "samestat", lambda one, other: False)
    write(root / "README", "precious\n")
    commit = turn_of(session, lambda: os.rename(root / "README", root / "readme"))
    assert touched(session.store, commit) == {b"README": "D", b"readme": "A"}

    moved = session.move(session.plan_undo())
    assert names(root) == [b"README"] and (root / "README").read_text() == "precious\n"
    assert moved.files_reverted == [b"README", b"readme"]
    assert changes(session) == []
    session.move(session.plan_redo())
    assert names(root) == [b"readme"] and (root / "readme").read_text() == "precious\n"
    assert changes(session) == []
    assert_cache_adds_up(session.store)
    assert_whole(session.store)


@pytest.mark.parametrize("inodes", ["of files", "of spellings"])
def test_so_does_a_folder_with_what_was_edited_and_made_in_it_G_35(
    root: Path, session: Session, monkeypatch: pytest.MonkeyPatch, inodes: str
) -> None:
    if inodes == "of spellings":
        monkeypatch.setattr(os.path, "samestat", lambda one, other: False)
    write(root / "Src/a", "a\n")
    write(root / "Src/deep/b", "b\n")
    before = on_disk(root)

    def rename() -> None:
        os.rename(root / "Src", root / "src")
        write(root / "src/a", "more\n")
        write(root / "src/new", "new\n")

    commit = turn_of(session, rename)
    after = on_disk(root)
    assert sorted(after) == [b"src/a", b"src/deep/b", b"src/new"]
    assert touched(session.store, commit) == {
        **dict.fromkeys((b"Src/a", b"Src/deep/b"), "D"),
        **dict.fromkeys(after, "A"),
    }
    for _ in range(2):
        session.move(session.plan_undo())
        assert on_disk(root) == before and changes(session) == []
        session.move(session.plan_redo())
        assert on_disk(root) == after and changes(session) == []
    assert_cache_adds_up(session.store)


def test_a_file_of_the_users_in_another_case_is_not_written_over_S0_46(root: Path, session: Session) -> None:
    write(root / "Note", "the agent's\n")
    turn_of(session, lambda: remove(root / "Note"))
    write(root / "note", "mine\n")
    for policy in (Policy(), Policy(FORCE)):
        with pytest.raises(Conflict):
            session.move(session.plan_undo(policy=policy))
        assert names(root) == [b"note"] and (root / "note").read_text() == "mine\n"


def test_a_file_that_the_user_gave_another_case_is_not_removed_with_its_turn_G_04(root: Path, session: Session) -> None:
    turn(session, root, "make", Made="text")
    os.rename(root / "Made", root / "made")
    moved = session.move(session.plan_undo())
    assert names(root) == [b"made"] and moved.files_reverted == []


def test_a_file_that_is_named_in_another_case_is_the_one_on_disk(root: Path, session: Session) -> None:
    write(root / "Docs/Readme", "one\n")
    with session.turn("write") as open_turn:
        open_turn.touch(root / "docs/README")
        write(root / "Docs/Readme", "two\n")
    assert open_turn.commit is not None
    assert touched(session.store, open_turn.commit) == {b"Docs/Readme": "M"}
    session.move(session.plan_undo())
    assert (root / "Docs/Readme").read_text() == "one\n" and names(root) == [b"Docs/Readme"]


def turn_of(session: Session, work: Callable[[], object]) -> bytes:
    with session.turn("work") as open_turn:
        work()
    assert open_turn.commit is not None
    return open_turn.commit


def test_sessions_that_differ_in_case_alone_are_not_mixed_on_a_store_that_folds_cases(root: Path) -> None:
    """One would write the refs of the other, and close its open turns."""
    write(root / "a", "a")
    home = str(root / "../other/project/stores")  # where these tests fold names
    with Store.open(root, create=True, home=home, session="Work") as store:
        work = store.session("Work")
        work.begin("stays open")
        before = all_refs(store)
        with pytest.raises(Unsafe, match=r"the session Work exists.* cannot tell work from Work") as caught:
            store.session("work")
        assert "--session Work" in caught.value.hint
        assert all_refs(store) == before
        store.session("other").begin("goes on").end()
        assert store.session("Work").open_turn() is not None
