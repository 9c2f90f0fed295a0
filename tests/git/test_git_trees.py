"""Trees: rewritten along the spine as git would build them, compared as git compares them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from dulwich.diff_tree import tree_changes
from helpers import git, git_in, quick_folder
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from snapstore import Corrupt
from snapstore.git.objects.ids import BLOB, EMPTY_TREE, EXECUTABLE, FILE, LINK, TREE, Entry, object_id
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.objects.store import Objects
from snapstore.git.objects.trees import Trees, parse

# Names whose order is not that of plain bytes: a folder sorts as though it ended in a slash.
NAMES = [b"a", b"a.b", b"a-b", b"a0", b"a/", b"ab", b"b", b"A", b"\xff", b"a\nb", b" ", b"a\x01"]
PARTS = st.sampled_from([name for name in NAMES if b"/" not in name])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map(b"/".join)
ENTRIES = st.tuples(st.sampled_from([FILE, EXECUTABLE, LINK]), st.sampled_from([b"one", b"two", b"three", b""]))
CHANGES = st.dictionaries(PATHS, st.one_of(st.none(), ENTRIES, ENTRIES), max_size=12)


def without_clashes(paths: dict[bytes, tuple[bytes, bytes]]) -> dict[bytes, tuple[bytes, bytes]]:
    """A path cannot be a file and a folder at once: the deeper one wins."""
    folders = {b"/".join(path.split(b"/")[:count]) for path in paths for count in range(1, path.count(b"/") + 1)}
    return {path: entry for path, entry in paths.items() if path not in folders}


def apply(
    files: dict[bytes, tuple[bytes, bytes]], changes: dict[bytes, tuple[bytes, bytes] | None]
) -> dict[bytes, tuple[bytes, bytes]]:
    """What the changes mean: a new file takes the place of whatever is above or below it."""
    after = dict(files)
    for path, entry in changes.items():
        if entry is None:
            after.pop(path, None)
    for path, entry in changes.items():
        if entry is None:
            continue
        for other in list(after):
            if other.startswith(path + b"/") or path.startswith(other + b"/"):
                del after[other]
        after[path] = entry
    return after


class Bench:
    """The same tree built by us and by `git update-index` and `git write-tree`."""

    def __init__(self, folder: Path) -> None:
        git_in(folder, "init", "--quiet", "--bare", "x.git")
        self.git_dir = str(folder / "x.git")
        self.objects = Objects(self.git_dir)
        self.writer = PackWriter(f"{self.git_dir}/objects/pack")
        self.trees = Trees(self.objects)

    def entry(self, content: tuple[bytes, bytes]) -> Entry:
        mode, data = content
        return mode, self.writer.add(BLOB, data)

    def by_git(self, files: dict[bytes, tuple[bytes, bytes]]) -> str:
        index = f"{self.git_dir}/index"
        if os.path.exists(index):
            os.unlink(index)
        rows = [
            b"%s %s\t%s\0" % (mode, object_id(BLOB, data).hex().encode(), path) for path, (mode, data) in files.items()
        ]
        git(self.git_dir, "update-index", "-z", "--index-info", feed=b"".join(rows))
        return git(self.git_dir, "write-tree", "--missing-ok").decode().strip()

    def finish(self) -> None:
        self.writer.finish()
        self.objects.reload()


FOLDER_FROM_FILE: tuple[dict[bytes, tuple[bytes, bytes]], dict[bytes, tuple[bytes, bytes] | None]] = (
    {b"a": (FILE, b"one"), b"a.b": (FILE, b"two"), b"a0": (FILE, b"three")},
    {b"a": None, b"a/b": (FILE, b"one")},
)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@example(*FOLDER_FROM_FILE)
@example({b"a/b/c": (FILE, b"one")}, {b"a/b/c": None})
@example({b"a/b": (FILE, b"one"), b"a/c": (FILE, b"one")}, {b"a/b": None, b"a/c": None, b"a": (LINK, b"two")})
@given(st.dictionaries(PATHS, ENTRIES, max_size=12).map(without_clashes), CHANGES)
def test_a_rewritten_tree_is_the_tree_that_git_builds(
    files: dict[bytes, tuple[bytes, bytes]], changes: dict[bytes, tuple[bytes, bytes] | None]
) -> None:
    wanted = without_clashes({path: entry for path, entry in changes.items() if entry is not None})
    changes = {path: wanted.get(path) for path in changes if changes[path] is None or path in wanted}
    after = apply(files, changes)
    # Where a file takes a folder's place, or the other way round, the scan names what went away as well.
    changes |= {path: None for path in files if path not in after and path not in changes}
    with quick_folder() as folder:
        bench = Bench(folder)
        base = bench.trees.rewrite(
            bench.writer, EMPTY_TREE, {path: bench.entry(entry) for path, entry in files.items()}
        )
        assert base.hex() == bench.by_git(files)
        named = {path: entry and bench.entry(entry) for path, entry in changes.items()}
        result = bench.trees.rewrite(bench.writer, base, named)
        assert result.hex() == bench.by_git(after)
        # read back, walked and looked up, from a cold cache
        if EMPTY_TREE in (base, result):
            bench.writer.add(TREE, b"")
        bench.finish()
        cold = Trees(bench.objects)
        entries = {path: (mode, object_id(BLOB, data)) for path, (mode, data) in after.items()}
        assert dict(cold.walk(result)) == entries
        for path in {*files, *changes}:
            assert cold.file(result, path) == entries.get(path)
        # and rewritten from a cold cache as well
        assert Trees(bench.objects).rewrite(PackWriter(str(folder)), base, named) == result
        assert_diff_like_git(bench, base, result)
        assert_diff_like_git(bench, EMPTY_TREE, result)
        git(bench.git_dir, "fsck", "--strict", "--no-dangling")
        bench.objects.close()


def assert_diff_like_git(bench: Bench, old: bytes, new: bytes) -> None:
    for oid in (old, new):
        if oid == EMPTY_TREE:
            git(bench.git_dir, "hash-object", "-t", "tree", "-w", "--stdin", feed=b"")
    out = git(bench.git_dir, "diff-tree", "-r", "-z", "--no-renames", "--full-index", old.hex(), new.hex())
    parts = out.split(b"\0")
    expected = {}
    for head, path in zip(parts[::2], parts[1::2], strict=False):
        old_mode, new_mode, old_id, new_id, _ = head.lstrip(b":").split(b" ")
        expected[path] = (
            None if old_mode == b"000000" else (old_mode, bytes.fromhex(old_id.decode())),
            None if new_mode == b"000000" else (new_mode, bytes.fromhex(new_id.decode())),
        )
    found = {path: (before, after) for path, before, after in Trees(bench.objects).diff(old, new)}
    assert found == expected
    assert found == by_dulwich(bench, old, new)


def by_dulwich(bench: Bench, old: bytes, new: bytes) -> dict[bytes, tuple[Entry | None, Entry | None]]:
    """The same differences by dulwich."""
    found: dict[bytes, tuple[Entry | None, Entry | None]] = {}
    for change in tree_changes(bench.objects.store, old.hex().encode(), new.hex().encode()):
        for at, side in enumerate((change.old, change.new)):
            if side is not None and side.path is not None:
                pair = list(found.get(side.path, (None, None)))
                pair[at] = (b"%o" % side.mode, bytes.fromhex(side.sha.decode()))
                found[side.path] = (pair[0], pair[1])
    return found


def test_equal_folders_are_not_opened(tmp_path: Path) -> None:
    """The cost of a comparison is what differs: an untouched folder may even be missing."""
    bench = Bench(tmp_path)
    shared = object_id(TREE, b"not there at all")
    blob = bench.writer.add(BLOB, b"x")
    other = bench.writer.add(BLOB, b"y")
    old = bench.writer.add(TREE, b"40000 big\0" + shared + b"100644 f\0" + blob)
    new = bench.trees.rewrite(bench.writer, _finish(bench, old), {b"f": (FILE, other)})
    bench.finish()
    assert list(bench.trees.diff(old, new)) == [(b"f", (FILE, blob), (FILE, other))]
    assert bench.trees.lookup(new, b"big") == (b"40000", shared)


def test_a_folder_compared_before_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn compares the same folders several times: dulwich reads each of them every time."""
    bench = Bench(tmp_path)
    blob, other = bench.entry((FILE, b"x")), bench.entry((FILE, b"y"))
    old = bench.trees.rewrite(
        bench.writer, EMPTY_TREE, {b"d%d/f%d%d" % (a, a, b): blob for a in range(9) for b in range(9)}
    )
    _finish(bench, old)
    new = bench.trees.rewrite(bench.writer, old, {b"d3/f33": other, b"d4/f44": other})
    bench.finish()
    told: list[bytes] = []
    real = bench.objects.store.get_raw
    monkeypatch.setattr(bench.objects.store, "get_raw", lambda name: (told.append(name), real(name))[1])
    cold = Trees(bench.objects)
    found = {path: (before, after) for path, before, after in cold.diff(old, new)}
    assert found == {b"d3/f33": (blob, other), b"d4/f44": (blob, other)} and len(told) == 6
    assert len(list(cold.diff(old, new))) == 2 and len(told) == 6
    for reads in (12, 18):
        assert by_dulwich(bench, old, new) == found and len(told) == reads
    bench.objects.close()


def _finish(bench: Bench, oid: bytes) -> bytes:
    bench.finish()
    bench.writer = PackWriter(f"{bench.git_dir}/objects/pack")
    return oid


def test_only_the_spine_is_written(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    blob = bench.entry((FILE, b"x"))
    files = {b"d%d/e%d/f%d" % (a, b, c): blob for a in range(6) for b in range(6) for c in range(6)}
    base = _finish(bench, bench.trees.rewrite(bench.writer, EMPTY_TREE, dict(files)))
    result = bench.trees.rewrite(bench.writer, base, {b"d3/e4/f5": (EXECUTABLE, blob[1]), b"d3/e4/f0": None})
    assert len(bench.writer) == 3  # d3/e4, d3 and the top
    unchanged = bench.trees.rewrite(bench.writer, result, {b"d3/e4/f0": None, b"nowhere/at/all": None})
    assert unchanged == result


@pytest.mark.parametrize(
    "data",
    [
        b"garbage",
        b"100644 x",
        b"100644 x\0short",
        b"100644 \0" + bytes(20),
        b"100644 x\0" + bytes(20) + b"100644 x\0" + bytes(20),
        b"9 x\0" + bytes(20),
        b"100644 x\0" + bytes(20) + b"tail",
        b"\n100644 x\0" + bytes(20),
    ],
)
def test_damaged_trees_are_refused(data: bytes) -> None:
    with pytest.raises(Corrupt):
        parse(data, object_id(TREE, data))


@given(st.binary(max_size=120))
def test_any_bytes_are_a_tree_or_refused(data: bytes) -> None:
    try:
        parse(data, bytes(20))
    except Corrupt:
        pass


def test_a_folder_whose_mode_begins_with_a_zero_is_a_folder() -> None:
    """Some programs of old wrote such trees; git reads them. The name that looks like a mode stays what it is."""
    data = b"100644 040000 x\0" + b"\1" * 20 + b"040000 y\0" + b"\2" * 20
    assert parse(data, bytes(20)) == {b"040000 x": (FILE, b"\1" * 20), b"y": (b"40000", b"\2" * 20)}
    with pytest.raises(Corrupt):
        parse(b"0100644 x\0" + b"\1" * 20 + b"040000 y\0" + b"\2" * 20, bytes(20))


def test_names_and_ids_may_hold_any_byte(tmp_path: Path) -> None:
    """Blob ids full of newlines, spaces and NULs must not confuse the reader."""
    nasty = [bytes([value]) * 20 for value in (0, 10, 32, 48, 49, 255)]
    names = [b"a\nb", b"100644 x", b"\xff", b" ", b"40000 y"]
    entries = sorted((name, oid) for name in names for oid in nasty[:1])
    data = b"".join(b"100644 %s\0%s" % (name, nasty[at % len(nasty)]) for at, (name, _) in enumerate(entries))
    parsed = parse(data, bytes(20))
    assert list(parsed) == [name for name, _ in entries]
    assert {oid for _, oid in parsed.values()} <= set(nasty)


def test_a_folder_of_many_thousand_files_is_like_git_s(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    content = (FILE, b"x")
    files = {b"file %05d" % number: content for number in range(20_000)}
    entry = bench.entry(content)
    base = bench.trees.rewrite(bench.writer, EMPTY_TREE, dict.fromkeys(files, entry))
    assert base.hex() == bench.by_git(files)
    files[b"file 10000/now a folder"] = content
    del files[b"file 10000"]
    result = bench.trees.rewrite(bench.writer, base, {b"file 10000": None, b"file 10000/now a folder": entry})
    assert result.hex() == bench.by_git(files)
