"""Git's index as git itself writes it, in every dress; `git ls-files` is the truth (G-34, P-04)."""

from __future__ import annotations

import hashlib
import os
import re
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snapstore.worktree.usergit.index import GitIndex, IndexUnreadable, entries_digest, read_index


class Checkout:
    """A real repository, made by a git that sees neither our environment nor our home."""

    def __init__(self, folder: Path, *init: str) -> None:
        self.folder = folder
        self.home = folder.parent / "home"
        self.home.mkdir(exist_ok=True)
        folder.mkdir()
        self.git("init", "-q", "-b", "main", *init)

    def git(self, *args: str, feed: bytes | None = None, may_fail: bool = False) -> bytes:
        done = subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always", *args],
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "GIT_CONFIG_NOSYSTEM": "1",
                "LC_ALL": "C",
            },
            input=feed,
            capture_output=True,
            check=False,
        )
        assert may_fail or done.returncode == 0, done.stderr.decode()
        return done.stdout

    def put(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    @property
    def index(self) -> bytes:
        return os.fsencode(self.folder / ".git" / "index")

    def read(self) -> GitIndex:
        return read_index(self.index)

    def staged(self) -> list[tuple[bytes, int, bytes, int]]:
        """(path, mode, id, stage), as `git ls-files` tells it."""
        found = []
        for line in self.git("ls-files", "-s", "-z").split(b"\0")[:-1]:
            head, path = line.split(b"\t", 1)
            mode, oid, stage = head.split(b" ")
            found.append((path, int(mode, 8), bytes.fromhex(oid.decode()), int(stage)))
        return found

    def agrees(self) -> GitIndex:
        """Our reading equals git's: paths, modes, ids, stat data, links and conflicts."""
        index = self.read()
        staged = self.staged()
        merged = {path: (mode, oid) for path, mode, oid, stage in staged if stage == 0 and mode != 0o160000}
        ours = {path: (struct.unpack_from(">I", e, 24)[0], e[40:60]) for path, e in index.entries.items()}
        assert ours == merged
        assert index.gitlinks == {path for path, mode, _, stage in staged if mode == 0o160000 and not stage}
        assert index.unmerged == {path for path, _, _, stage in staged if stage}
        for path, numbers in self.debug().items():
            if path in index.entries:
                ctime, ctime_ns, mtime, mtime_ns, dev, ino, _, uid, gid, size = struct.unpack_from(
                    ">10I", index.entries[path]
                )
                assert numbers == (ctime, ctime_ns, mtime, mtime_ns, dev, ino, uid, gid, size)
        assert index.mtime_ns <= os.stat(self.index).st_mtime_ns
        return index

    def debug(self) -> dict[bytes, tuple[int, ...]]:
        text = self.git("ls-files", "-z", "--debug")
        form = (
            rb"([^\0]+)\0  ctime: (\d+):(\d+)\n  mtime: (\d+):(\d+)\n  dev: (\d+)\tino: (\d+)\n"
            rb"  uid: (\d+)\tgid: (\d+)\n  size: (\d+)\tflags: [0-9a-f]+\n"
        )
        return {m[1]: tuple(int(m[n]) for n in range(2, 11)) for m in re.finditer(form, text)}


@pytest.fixture
def repo(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path / "repo")
    made.put("README.md", "hello\n")
    made.put("src/deep/er/one.py", "1\n")
    made.put("src/deep/two.py", "2\n")
    made.put("src/ünï códe.txt", "3\n")
    made.put("run.sh", "#!/bin/sh\n")
    (made.folder / "run.sh").chmod(0o755)
    (made.folder / "link").symlink_to("README.md")
    made.put("n" * 200 + "/" + "m" * 200, "long\n")
    made.git("add", "-A")
    made.git("commit", "-qm", "first")
    return made


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_each_version_is_read_as_git_reads_it(repo: Checkout, version: str) -> None:
    repo.git("update-index", "--index-version", version)
    if version == "3":
        repo.put("later.txt", "later\n")
        repo.git("add", "-N", "later.txt")
    index = repo.agrees()
    assert index.version == int(version)
    assert struct.unpack_from(">I", index.entries[b"run.sh"], 24)[0] == 0o100755
    assert struct.unpack_from(">I", index.entries[b"link"], 24)[0] == 0o120000


@pytest.mark.parametrize("version", ["2", "4"])
def test_names_too_long_for_the_length_field_are_whole(tmp_path: Path, version: str) -> None:
    """4,095 bytes and more do not fit the flags; version 4 needs several bytes to drop such a prefix."""
    made = Checkout(tmp_path / "repo")
    blob = made.git("hash-object", "-w", "--stdin", feed=b"x").strip()
    names = [
        b"a",
        b"d/" * 2046 + b"abc",
        b"d/" * 2047 + b"a",
        b"d/" * 2047 + b"ab",
        b"e/" * 9000 + b"f",
        b"z",
    ]
    lines = b"".join(b"100644 %b\t%b\n" % (blob, name) for name in names)
    made.git("update-index", "--index-info", feed=lines)
    made.git("update-index", "--index-version", version)
    assert set(made.agrees().entries) == set(names)


def test_thousands_of_names_with_shared_prefixes_in_version_4(tmp_path: Path) -> None:
    made = Checkout(tmp_path / "repo")
    blob = made.git("hash-object", "-w", "--stdin", feed=b"x").strip()
    names = [b"d%d/e%d/%s%d" % (n % 7, n % 31, b"f" * (n % 300), n) for n in range(5000)]
    made.git("update-index", "--index-info", feed=b"".join(b"100644 %b\t%b\n" % (blob, n) for n in names))
    made.git("-c", "index.threads=4", "update-index", "--index-version", "4")
    assert b"IEOT" in Path(os.fsdecode(made.index)).read_bytes()  # written in blocks, to be read by threads
    assert set(made.agrees().entries) == set(names)


def test_the_trees_git_has_written_are_offered(repo: Checkout) -> None:
    index = repo.agrees()
    assert index.trees[b""][1].hex() == repo.git("write-tree").decode().strip()
    assert index.trees[b""][0] == len(index.entries)
    for folder, (count, oid) in index.trees.items():
        if folder:
            assert oid.hex() == repo.git("rev-parse", f"HEAD:{os.fsdecode(folder)}").decode().strip()
            assert count == sum(path.startswith(folder + b"/") for path in index.entries)
    assert {b"src", b"src/deep", b"src/deep/er"} <= set(index.trees)


def test_a_folder_with_a_staged_change_offers_no_tree(repo: Checkout) -> None:
    before = repo.read().trees
    repo.put("src/deep/two.py", "changed\n")
    repo.git("add", "src/deep/two.py")
    after = repo.agrees().trees
    assert set(before) - set(after) == {b"", b"src", b"src/deep"}
    assert after[b"src/deep/er"] == before[b"src/deep/er"]


def test_intent_to_add_and_the_two_don_t_look_bits(repo: Checkout) -> None:
    repo.put("new.txt", "new\n")
    repo.git("add", "-N", "new.txt")
    repo.git("update-index", "--assume-unchanged", "README.md")
    repo.git("update-index", "--skip-worktree", "run.sh")
    index = repo.agrees()
    assert index.version == 3
    # No stat data of git's own: such an entry can never be taken for a clean file.
    assert not any(index.entries[b"new.txt"][:24])
    assert index.entries[b"README.md"][60] & 0x80
    for version in ("2", "4"):
        repo.git("update-index", "--index-version", version)
        assert repo.agrees().entries == index.entries


def test_a_conflicting_merge_leaves_its_paths_out(repo: Checkout) -> None:
    repo.git("checkout", "-qb", "side")
    repo.put("README.md", "side\n")
    repo.git("commit", "-qam", "side")
    repo.git("checkout", "-q", "main")
    repo.put("README.md", "main\n")
    repo.git("commit", "-qam", "main")
    repo.git("merge", "side", may_fail=True)
    index = repo.agrees()
    assert index.unmerged == {b"README.md"}
    assert b"README.md" not in index.entries
    assert b"run.sh" in index.entries


def test_a_submodule_is_a_link_not_a_file(repo: Checkout, tmp_path: Path) -> None:
    other = Checkout(tmp_path / "other")
    other.put("x", "x")
    other.git("add", "-A")
    other.git("commit", "-qm", "x")
    repo.git("submodule", "add", "-q", str(other.folder), "sub")
    index = repo.agrees()
    assert index.gitlinks == {b"sub"}
    assert b".gitmodules" in index.entries


@pytest.mark.parametrize("version", ["2", "4"])
def test_a_split_index_is_joined_again(repo: Checkout, version: str) -> None:
    """Given a shared index, when paths are replaced, deleted and added, then we see what git sees."""
    for n in range(300):
        repo.put(f"many/f{n:03}", f"{n}\n")
    repo.git("add", "-A")
    repo.git("update-index", "--index-version", version)
    repo.git("config", "splitIndex.maxPercentChange", "100")
    repo.git("update-index", "--split-index")
    assert list((repo.folder / ".git").glob("sharedindex.*"))
    repo.agrees()
    for n in (0, 5, 64, 65, 299):
        repo.put(f"many/f{n:03}", "replaced\n")
    repo.put("many/aaa", "added\n")
    repo.put("zzz", "added\n")
    repo.git("add", "-A")
    repo.git("rm", "-qf", *[f"many/f{n:03}" for n in range(100, 240)])
    repo.git("update-index", "--skip-worktree", "run.sh")
    repo.put("intended", "i\n")
    repo.git("add", "-N", "intended")
    index = repo.agrees()
    assert b"many/aaa" in index.entries and b"many/f150" not in index.entries
    split = entries_digest(repo.index)
    repo.git("update-index", "--no-split-index")
    assert entries_digest(repo.index) == split
    assert repo.agrees().entries == index.entries


def test_a_merge_conflict_in_a_split_index(repo: Checkout) -> None:
    repo.git("config", "splitIndex.maxPercentChange", "100")
    repo.git("update-index", "--split-index")
    test_a_conflicting_merge_leaves_its_paths_out(repo)


def test_a_split_index_without_its_shared_part_is_refused(repo: Checkout) -> None:
    repo.git("update-index", "--split-index")
    (shared,) = (repo.folder / ".git").glob("sharedindex.*")
    whole = shared.read_bytes()
    shared.write_bytes(whole[:-30])
    refused(repo.index)
    shared.unlink()
    refused(repo.index)
    # Another index under that name, sound in itself, is not the one that was meant.
    body = whole[:-20].replace(b"README", b"READMY")
    shared.write_bytes(body + hashlib.sha1(body).digest())
    refused(repo.index)


def test_a_sparse_index_gives_the_files_that_are_checked_out(repo: Checkout) -> None:
    repo.put("kept/a", "a\n")
    repo.put("away/b", "b\n")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "two folders")
    repo.git("sparse-checkout", "init", "--cone", "--sparse-index")
    repo.git("sparse-checkout", "set", "kept")
    collapsed = repo.git("ls-files", "--sparse", "-z").split(b"\0")
    assert b"away/" in collapsed
    index = repo.read()
    assert set(index.entries) == {path for path in collapsed if path and not path.endswith(b"/")}
    assert index.trees[b""][1].hex() == repo.git("write-tree").decode().strip()


def test_a_sha256_repository_is_refused_but_can_be_watched(tmp_path: Path) -> None:
    made = Checkout(tmp_path / "repo", "--object-format=sha256")
    made.put("a", "a\n")
    made.git("add", "-A")
    with pytest.raises(IndexUnreadable):
        read_index(made.index, hash_size=32)
    refused(made.index)  # taken for a sha1 one
    first = entries_digest(made.index, hash_size=32)
    made.put("a", "b\n")
    made.git("add", "-A")
    assert entries_digest(made.index, hash_size=32) != first


def test_an_index_without_a_checksum_is_read(repo: Checkout) -> None:
    """index.skipHash leaves twenty zeros (git 2.40 and later)."""
    expected = repo.read().entries
    whole = Path(os.fsdecode(repo.index)).read_bytes()
    Path(os.fsdecode(repo.index)).write_bytes(whole[:-20] + bytes(20))
    assert repo.read().entries == expected


def test_a_new_repository_has_no_index_and_an_emptied_one_no_entries(tmp_path: Path) -> None:
    made = Checkout(tmp_path / "repo")
    refused(made.index)
    made.git("read-tree", "--empty")
    index = made.agrees()
    assert (index.entries, index.gitlinks, index.unmerged) == ({}, set(), set())


def test_an_extension_git_must_understand_is_refused_and_others_are_passed_over(repo: Checkout) -> None:
    place = Path(os.fsdecode(repo.index))
    body = place.read_bytes()[:-20]
    entries = repo.read().entries
    for name, fine in ((b"QQQQ", True), (b"sdir", True), (b"qqqq", False), (b"\0\0\0\0", False)):
        longer = body + name + struct.pack(">I", 3) + b"abc"
        place.write_bytes(longer + hashlib.sha1(longer).digest())
        if fine:
            assert repo.read().entries == entries
        else:
            refused(repo.index)


def test_the_digest_ignores_a_refresh_and_notices_what_is_staged(repo: Checkout) -> None:
    """`git status` rewrites stat data; `add`, `rm`, `chmod`, `add -N` change what is staged (G-29)."""
    start = entries_digest(repo.index)
    before = Path(os.fsdecode(repo.index)).read_bytes()
    os.utime(repo.folder / "README.md", ns=(10**18, 10**18))
    repo.git("status")
    assert Path(os.fsdecode(repo.index)).read_bytes() != before
    assert entries_digest(repo.index) == start
    for version in ("4", "2"):
        repo.git("update-index", "--index-version", version)
        assert entries_digest(repo.index) == start
    seen = {start}

    def moved(*args: str) -> None:
        repo.git(*args)
        digest = entries_digest(repo.index)
        assert digest not in seen
        seen.add(digest)

    repo.put("README.md", "edited\n")
    moved("add", "README.md")
    moved("update-index", "--chmod=+x", "README.md")
    moved("rm", "-q", "--cached", "run.sh")
    repo.put("fresh", "")
    moved("add", "-N", "fresh")
    moved("add", "fresh")
    moved("update-index", "--skip-worktree", "fresh")
    repo.git("update-index", "--no-skip-worktree", "fresh")
    repo.git("reset", "-q", "--hard")
    assert entries_digest(repo.index) == start


def refused(path: bytes) -> None:
    with pytest.raises(IndexUnreadable):
        read_index(path)
    with pytest.raises(IndexUnreadable):
        entries_digest(path)


def dresses(repo: Checkout) -> dict[str, bytes]:
    """The same tree as versions 2, 3, 4 and split."""
    place = Path(os.fsdecode(repo.index))
    found = {"2": place.read_bytes()}
    repo.git("update-index", "--index-version", "4")
    found["4"] = place.read_bytes()
    repo.git("update-index", "--index-version", "2")
    repo.git("config", "splitIndex.maxPercentChange", "100")
    repo.git("update-index", "--split-index")
    repo.put("README.md", "edited\n")
    repo.git("add", "-A")
    repo.git("rm", "-qf", "run.sh")
    repo.git("update-index", "--skip-worktree", "src/deep/two.py")
    found["split"] = place.read_bytes()
    return found


def test_an_index_cut_at_any_size_is_refused(repo: Checkout) -> None:
    place = Path(os.fsdecode(repo.index))
    for whole in dresses(repo).values():
        for size in range(0, len(whole), 3):
            place.write_bytes(whole[:size])
            refused(repo.index)


def test_any_flipped_byte_is_noticed(repo: Checkout) -> None:
    place = Path(os.fsdecode(repo.index))
    for whole in dresses(repo).values():
        for at in range(0, len(whole), 3):
            place.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
            refused(repo.index)


def test_damage_that_no_checksum_guards_raises_nothing_else(repo: Checkout) -> None:
    """With index.skipHash garbage may read as some index, but never as a crash."""
    place = Path(os.fsdecode(repo.index))
    shapes = dresses(repo)

    @settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        shape=st.sampled_from(sorted(shapes)),
        edits=st.lists(st.tuples(st.integers(0, 10**6), st.binary(min_size=1, max_size=8)), max_size=4),
        cut=st.integers(0, 60),
    )
    def mangled(shape: str, edits: list[tuple[int, bytes]], cut: int) -> None:
        body = bytearray(shapes[shape][:-20])
        for at, patch in edits:
            at %= len(body)
            body[at : at + len(patch)] = patch
        place.write_bytes(bytes(body[: len(body) - cut]) + bytes(20))
        for read in (read_index, entries_digest):
            try:
                read(repo.index)
            except IndexUnreadable:
                pass

    mangled()


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=st.binary(max_size=400), count=st.integers(0, 5), version=st.sampled_from([2, 3, 4]))
def test_noise_behind_a_right_header_raises_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, body: bytes, count: int, version: int
) -> None:
    place = tmp_path_factory.getbasetemp() / "noise"
    text = b"DIRC" + struct.pack(">II", version, count) + body
    place.write_bytes(text + hashlib.sha1(text).digest())
    try:
        read_index(os.fsencode(place))
    except IndexUnreadable:
        pass


def test_a_fifo_or_a_folder_in_the_index_s_place_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    refused(os.fsencode(tmp_path / "fifo"))
    refused(os.fsencode(tmp_path))
    refused(b"/nowhere\0")


def test_reading_leaves_the_repository_bit_identical(repo: Checkout) -> None:
    """P-04: not a byte, not a time stamp of .git changes."""
    dresses(repo)

    def picture() -> dict[str, tuple[int, int, bytes]]:
        return {
            str(path): (s.st_mtime_ns, s.st_ino, path.read_bytes() if path.is_file() else b"")
            for path in sorted((repo.folder / ".git").rglob("*"))
            for s in [path.lstat()]
        }

    before = picture()
    repo.read()
    entries_digest(repo.index)
    assert picture() == before
