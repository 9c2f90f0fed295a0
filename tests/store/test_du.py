"""du (G-16, S1-64): every byte of the store is somebody's, and is counted once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import assert_record, snap, snap_json
from helpers import git_in, turn, write
from machines import Machine

from snapstore import Store
from snapstore.store.disk_usage import DiskUse, Holder
from snapstore.surface.records.keeping import DiskUseRecord
from snapstore.timeline.maintenance import gc


def noise(size: int) -> bytes:
    """What no compression makes smaller."""
    return os.urandom(size)


def holder(use: DiskUse, name: str) -> Holder:
    return next(one for one in use.holders if f"{one.session}/{one.name}" == name)


@pytest.fixture
def forked(root: Path, store: Store) -> Store:
    """50 kB on the common line, 20 kB on one branch and 10 on the other."""
    session = store.session("s")
    for name, size in (("big/common", 50_000), ("left", 20_000)):
        with session.turn(name):
            write(root / name, noise(size))
    session.move(session.plan_undo(1))
    with session.turn("right"):
        write(root / "right", noise(10_000))
    return store


def test_branches_are_told_apart_by_what_they_alone_hold(forked: Store) -> None:
    use = DiskUse(forked).measure()
    left, right = holder(use, "s/main"), holder(use, "s/main-2")
    assert 20_000 < left.exclusive < 22_000
    assert 10_000 < right.exclusive < 12_000
    assert 50_000 < left.shared < 52_000
    assert left.shared == right.shared
    assert holder(use, "shell/main").exclusive < 1000


def test_sessions_add_up(forked: Store, root: Path) -> None:
    turn(forked.session("t"), root, "another session", x="1")
    use = DiskUse(forked).measure()
    exclusive, shared = use.sessions["s"]
    assert 20_000 < exclusive < 23_000
    assert 60_000 < shared < 63_000, "what was on disk is in the other session's baseline as well"


def test_paths_and_the_largest_files(forked: Store, root: Path) -> None:
    with forked.session("s").turn("another version"):
        write(root / "big/common", noise(30_000))
    use = DiskUse(forked).measure()
    path, size, versions = use.largest()[0]
    assert (path, versions) == (b"big/common", 2)
    assert 80_000 < size < 81_000
    folder, size = use.folders()[0]
    assert (folder, 80_000 < size < 81_000) == (b"big/", True)
    assert dict(use.folders())[b""] > 29_000


def test_every_byte_of_the_packs_is_somebodys(forked: Store) -> None:
    document = dict(DiskUseRecord.of(DiskUse(forked).measure()))
    packs = Path(forked.shadow.objects.pack_folder)
    size = sum(path.stat().st_size for path in packs.iterdir())
    told = sum(document[f"{what}_bytes"] for what in ("files", "records", "unreferenced", "index"))
    few = 32 * len(list(packs.glob("*.pack")))  # header and checksum of each
    assert size - few - 8192 < told <= size, "an object that lies twice counts once"


def test_packed_it_is_smaller_and_says_the_same(forked: Store) -> None:
    before = DiskUse(forked).measure()
    gc.collect(forked)
    after = DiskUse(forked).measure()
    assert abs(holder(before, "s/main").exclusive - holder(after, "s/main").exclusive) < 600
    assert [path for path, _, _ in before.largest()] == [path for path, _, _ in after.largest()]


def test_what_is_shared_with_the_users_repository_takes_no_room(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    write(root / "a", noise(50_000))
    os.utime(root / "a", (10**9, 10**9))  # long before the index, which then can be trusted
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["gc", "-q"]):
        git_in(root, *words)
    with Store.open(root, create=True) as store:
        use = DiskUse(store).measure()
        assert use.borrowed > 50_000
        assert use.files_size() < 5_000


def test_loose_objects_and_damage_do_not_stop_it(forked: Store, root: Path) -> None:
    snap(root, "git", "tag", "-a", "-m", "mine", "s/mine", "refs/heads/s/main")
    Path(forked.shadow.git_dir, "refs/heads/s/lost").write_text("12" * 20 + "\n")
    assert DiskUse(forked).measure().total > 80_000


def test_du_on_the_command_line(forked: Store, root: Path) -> None:
    snap(root, "config", "set", "max_store_size", "2GB", "-q")
    shown = snap(root, "du").stdout
    assert "in total, of at most 2.0 GB" in shown
    assert "big/common" in shown
    assert "s/main-2" in shown
    document = snap_json(root, "du", "--json")
    assert_record(DiskUseRecord, document)
    assert document["max_store_size"] == 2 * 10**9


def test_du_costs_what_is_stored_not_branches_times_that(root: Path, store: Store) -> None:
    """Two hundred branches on two thousand files: each tree is opened once, and not once a branch."""
    for number in range(2000):
        write(root / f"d{number % 40}/f{number}", str(number))
    session = store.session("s")
    session.begin("all").end()
    refs = store.shadow.refs
    tip = refs.read("refs/heads/s/main")
    for number in range(200):
        refs.update(f"refs/heads/s/b{number}", None, tip)
    opened = 0
    real = store.shadow.trees.read

    def counted(oid: bytes) -> dict[bytes, tuple[bytes, bytes]]:
        nonlocal opened
        opened += 1
        return real(oid)

    store.shadow.trees.read = counted  # type: ignore[method-assign]
    DiskUse(store).measure()
    assert opened < 200


def test_what_sharing_keeps_is_no_file_of_the_project(ada: Machine) -> None:
    ada.pull()
    with ada.open() as store:
        found = DiskUse(store).measure()
        assert set(found.files) == {b"poem", b"title"}
        assert found.records > 0
