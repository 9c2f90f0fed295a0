"""When capture fails no commit is made and the caller is told; an older tree never stands in for the present (G-27)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers import (
    all_refs,
    as_root,
    assert_equal,
    assert_whole,
    child,
    line,
    needs_strace,
    on_disk,
    powerless,
    tip,
    touched,
    write,
)

from snapstore import SnapstoreError, Store

END = """
import json, os, sys
from snapstore import SnapstoreError, Store
root, step, spoil = sys.argv[1:4]
store = Store.open(root)
session = store.session("s")
exec(spoil)
try:
    if step == "begin":
        session.begin("never")
    elif step == "touch":
        session.touch([root + "/file", root + "/sub/other"])
    elif step == "named end":
        session.end(scan=False)
    else:
        session.end()
    print(json.dumps({"error": None}))
except SnapstoreError as error:
    print(json.dumps({"error": error.name, "message": error.message, "hint": error.hint, **error.details}))
"""


def snapshot(store: Store) -> tuple[object, ...]:
    state = Path(store.state)
    documents = {path.name: path.read_bytes() for path in sorted(state.rglob("*.json"))}
    return all_refs(store), documents, Path(store.shadow.git_dir, "HEAD").read_bytes()


def try_step(root: Path, step: str, spoil: str, under: list[str] | None = None) -> dict[str, object]:
    done = child(END, root, step, spoil, under=under)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture
def open_turn(root: Path, store: Store) -> Store:
    """A turn is open, and has changed things."""
    write(root / "file", "before")
    write(root / "sub/other", "before")
    store.session("s").begin("the turn")
    write(root / "file", "after")
    write(root / "sub/other", "after")
    write(root / "sub/new", "after")
    return store


@pytest.mark.parametrize("step", ["end", "begin"])
def test_an_unreadable_root_is_an_error_not_an_empty_or_an_old_tree_G_27(
    root: Path, open_turn: Store, step: str
) -> None:
    before = snapshot(open_turn)
    under = powerless()
    os.chmod(root, 0o000)
    try:
        said = try_step(root, step, "", under)
        assert said["error"] == "failed"
        os.chmod(root, 0o100)  # may be entered, not listed
        said = try_step(root, step, "", under)
        assert said["error"] == "failed"
    finally:
        os.chmod(root, 0o755)
    assert snapshot(open_turn) == before
    with Store.open(root) as store:
        commit = store.session("s").end()
        assert touched(store, commit) == {b"file": "M", b"sub/other": "M", b"sub/new": "A"}
        assert_equal(store, commit, on_disk(root))


@pytest.mark.parametrize("step", ["end", "begin"])
def test_a_root_that_is_gone_is_an_error_not_a_deletion_of_everything_G_27(
    root: Path, open_turn: Store, step: str
) -> None:
    """Unmounted, moved, or replaced by a file: nobody knows what became of the files."""
    before = snapshot(open_turn)
    away = root.with_name("away")
    root.rename(away)
    for replace in (lambda: None, lambda: root.write_text("a file"), lambda: root.symlink_to("nowhere")):
        replace()
        with pytest.raises(SnapstoreError):
            if step == "end":
                open_turn.session("s").end()
            else:
                open_turn.session("s").begin("next")
        if os.path.lexists(root):
            root.unlink()
    assert snapshot(open_turn) == before
    away.rename(root)
    commit = open_turn.session("s").end()
    assert_equal(open_turn, commit, on_disk(root))
    assert touched(open_turn, commit) == {b"file": "M", b"sub/other": "M", b"sub/new": "A"}


def test_everything_deleted_inside_the_root_is_a_deletion(root: Path, open_turn: Store) -> None:
    """`rm -rf *` is one of the accidents to undo."""
    for name in os.listdir(root):
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    commit = open_turn.session("s").end()
    assert touched(open_turn, commit) == {b"file": "D", b"sub/other": "D"}
    assert_whole(open_turn)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Takes all rights to write away, below as well."""
    modes = {path: path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")]}
    for path, mode in modes.items():
        path.chmod(mode & 0o555)
    try:
        yield
    finally:
        for path, mode in modes.items():
            if path.exists():
                path.chmod(mode)


@pytest.mark.parametrize("step", ["begin", "touch", "end", "named end"])
@pytest.mark.parametrize("what", ["store.git/objects/pack", "state", "store.git/refs", "store.git", "."])
def test_a_store_that_cannot_be_written_is_an_error_G_27(root: Path, open_turn: Store, step: str, what: str) -> None:
    if step == "named end":
        open_turn.session("s").touch([root / "file"], after=True)
    before = snapshot(open_turn)
    under = powerless()
    with read_only(Path(open_turn.folder, what)):
        said = try_step(root, step, "", under)
    assert said["error"] == "failed", said
    assert said["message"]
    with Store.open(root) as store:
        # Whatever was durable before the failure is finished by now; what was not never happened.
        if snapshot(store)[0] == before[0] and step.endswith("end"):
            assert snapshot(store) == before
            store.session("s").end()
        store.session("s").begin("go on").end()
        assert_equal(store, tip(store, "s"), on_disk(root))
        assert_whole(store)


@needs_strace
@pytest.mark.parametrize("step", ["begin", "end", "touch"])
def test_an_input_output_error_of_the_store_is_an_error_G_27(root: Path, open_turn: Store, step: str) -> None:
    before = snapshot(open_turn)
    under = ["strace", "-f", "-o", "/dev/null", "-e", "trace=fsync", "-e", "inject=fsync:error=EIO"]
    said = try_step(root, step, "", under)
    assert said["error"] == "failed"
    assert "Input/output error" in str(said["message"])
    assert snapshot(open_turn) == before
    with Store.open(root) as store:
        commit = store.session("s").end()
        assert_equal(store, commit, on_disk(root))
        assert touched(store, commit) == {b"file": "M", b"sub/other": "M", b"sub/new": "A"}
        assert_whole(store)


@needs_strace
@pytest.mark.parametrize("error", ["EIO", "EACCES", "EMFILE", "ENOMEM"])
@pytest.mark.parametrize("call", ["openat", "getdents64"])
def test_a_root_that_cannot_be_listed_is_an_error_G_27(root: Path, open_turn: Store, call: str, error: str) -> None:
    before = snapshot(open_turn)
    under = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-P", str(root)]
    said = try_step(root, "end", "", [*under, "-e", f"inject={call}:error={error}"])
    assert said["error"] == "failed", said
    assert snapshot(open_turn) == before
    assert_equal(open_turn, open_turn.session("s").end(), on_disk(root))


@needs_strace
@pytest.mark.parametrize("error", ["EMFILE", "ENFILE", "ENOMEM"])
@pytest.mark.parametrize("path", ["sub", "file"])
def test_a_want_of_the_machine_is_not_a_property_of_a_file_G_27(
    root: Path, open_turn: Store, error: str, path: str
) -> None:
    """Out of descriptors or memory the whole capture fails: a file must not be left out for that."""
    before = snapshot(open_turn)
    under = ["strace", "-f", "-o", "/dev/null", "-e", "trace=openat", "-P", str(root / path)]
    said = try_step(root, "end", "", [*under, "-e", f"inject=openat:error={error}"])
    assert said["error"] == "failed", said
    assert snapshot(open_turn) == before


@needs_strace
def test_one_bad_sector_in_a_user_s_file_leaves_that_file_out_and_says_so_G_27_G_30(
    root: Path, open_turn: Store
) -> None:
    under = ["strace", "-f", "-o", "/dev/null", "-e", "trace=read", "-P", str(root / "file")]
    said = try_step(root, "end", "", [*under, "-e", "inject=read:error=EIO"])
    assert said["error"] is None
    last = line(open_turn, "s")[-1]
    assert [item["path"] for item in last["record"]["left_out"]] == ["file"]
    assert touched(open_turn, last["commit"]) == {b"sub/other": "M", b"sub/new": "A"}


@as_root
def test_a_failed_first_snapshot_leaves_no_store_G_27(root: Path, nobodys_home: Path) -> None:
    """An unreadable root when the store is made: nothing to be found afterwards."""
    write(root / "file", "x")
    under = powerless()
    os.chmod(root, 0o000)
    code = """
import sys
from snapstore import SnapstoreError, Store
try:
    Store.open(sys.argv[1], create=True)
except SnapstoreError as error:
    print(error.name)
"""
    try:
        done = child(code, root, under=under)
    finally:
        os.chmod(root, 0o755)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.strip() == b"failed"
    stores = nobodys_home / "stores"
    assert not stores.exists() or os.listdir(stores) == []
    with Store.open(root, create=True) as store:
        assert_equal(store, line(store, "shell")[0]["commit"], on_disk(root))
