"""Bundles, to and from the git program: the way for machines with no network between them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from helpers import all_refs, child, git, in_commit, quick_folder
from transporting import History, received, shadow_with

from snapstore.errors import Corrupt, Failed, Unknown, Unsafe, Usage
from snapstore.git.remote import bundles as bundle
from snapstore.git.repository import Shadow, create

MAIN = "refs/heads/shell/main"


def test_git_reads_a_bundle_of_ours(tmp_path: Path) -> None:
    """Issue 7, bundle: whatever reads bundles reads ours."""
    history = History(tmp_path / "ours.git", turns=5)
    path = tmp_path / "turns.bundle"
    written = bundle.write(path, history.shadow.objects, {MAIN: history.tip})
    assert written == len(git(str(history.git_dir), "rev-list", "--objects", MAIN).splitlines())
    assert (path.stat().st_mode & 0o777) == 0o600, "turns are private until someone decides otherwise"
    git(str(history.git_dir), "bundle", "verify", str(path))
    subprocess.run(["git", "clone", "-q", "--mirror", path, tmp_path / "clone.git"], check=True, capture_output=True)
    clone = str(tmp_path / "clone.git")
    git(clone, "fsck", "--strict")
    assert all_refs(clone) == {MAIN: history.tip.hex()}
    assert in_commit(clone, history.tip) == in_commit(str(history.git_dir), history.tip)


def test_a_bundle_of_what_is_new_builds_on_what_is_known(tmp_path: Path) -> None:
    history = History(tmp_path / "ours.git", turns=3)
    old = history.tip
    whole, rest = tmp_path / "whole", tmp_path / "rest"
    bundle.write(whole, history.shadow.objects, {MAIN: old})
    new = history.turn()
    assert bundle.write(rest, history.shadow.objects, {MAIN: new}, [old]) < 6
    git(str(history.git_dir), "bundle", "verify", str(rest))

    other = shadow_with(tmp_path / "other.git")
    with pytest.raises(Unknown, match="builds on 1 commits"):
        bundle.read(rest, other.objects, [])
    refs, incoming = bundle.read(whole, other.objects, [])
    received(other, refs, incoming)
    refs, incoming = bundle.read(rest, other.objects, [old])
    received(other, refs, incoming)
    assert all_refs(other.git_dir) == {MAIN: new.hex()}
    git(other.git_dir, "fsck", "--strict")
    git(other.git_dir, "fetch", "-q", str(rest), f"{MAIN}:refs/heads/again")


def test_we_read_bundles_of_git(tmp_path: Path) -> None:
    """Deltas, version 3, a HEAD line: as `git bundle create` makes them."""
    history = History(tmp_path / "ours.git", turns=30)
    git(str(history.git_dir), "repack", "-adfq")
    for version in ("2", "3"):
        path = tmp_path / f"v{version}"
        git(str(history.git_dir), "symbolic-ref", "HEAD", MAIN)
        git(str(history.git_dir), "bundle", "create", "-q", f"--version={version}", str(path), "--all", "HEAD")
        assert bundle.is_bundle(path)
        assert bundle.read_header(path).refs == {MAIN: history.tip}
        other = shadow_with(tmp_path / f"other{version}.git")
        refs, incoming = bundle.read(path, other.objects, [])
        received(other, refs, incoming)
        git(other.git_dir, "fsck", "--strict")
        assert in_commit(other.git_dir, history.tip) == in_commit(str(history.git_dir), history.tip)


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    other = shadow_with(tmp_path / "other.git")
    file = tmp_path / "file"
    for text in (b"", b"hello\n", b"# v2 git bundle\n", b"# v2 git bundle\nnonsense\n\n", b"# v9 git bundle\n\n"):
        file.write_bytes(text)
        with pytest.raises(Corrupt):
            bundle.read(file, other.objects, [])
    file.write_bytes(b"# v3 git bundle\n@filter=blob:none\n\n")
    with pytest.raises(Corrupt, match="filter"):
        bundle.read(file, other.objects, [])
    file.write_bytes(b"# v2 git bundle\n" + b"a" * 100_000)
    with pytest.raises(Corrupt):
        bundle.read(file, other.objects, [])
    with pytest.raises(Failed):
        bundle.read(tmp_path / "absent", other.objects, [])
    with pytest.raises(Usage):
        bundle.write(tmp_path / "x", other.objects, {})
    assert not bundle.is_bundle(tmp_path / "absent")


def test_a_bundle_cut_anywhere_leaves_nothing(tmp_path: Path) -> None:
    history = History(tmp_path / "ours.git", turns=4)
    path = tmp_path / "whole"
    bundle.write(path, history.shadow.objects, {MAIN: history.tip})
    data = path.read_bytes()
    with quick_folder() as folder:
        create(f"{folder}/other.git", MAIN)
        other = Shadow(f"{folder}/other.git")
        before = sorted(os.walk(other.git_dir))
        for size in range(0, len(data), 13):
            (folder / "cut").write_bytes(data[:size])
            with pytest.raises(Corrupt):
                bundle.read(folder / "cut", other.objects, [])
        for at in range(100, len(data), 17):  # a byte that is another one
            (folder / "cut").write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
            with pytest.raises((Corrupt, Unsafe)):
                bundle.read(folder / "cut", other.objects, [])
        assert sorted(os.walk(other.git_dir)) == before


def test_a_full_disk_leaves_no_half_a_bundle(tmp_path: Path) -> None:
    history = History(tmp_path / "ours.git", turns=1)
    with pytest.raises(Failed, match="No such file"):
        bundle.write(tmp_path / "nowhere" / "file", history.shadow.objects, {MAIN: history.tip})
    history.turn(large=os.urandom(3 << 20))
    code = """
import resource, signal, sys
from snapstore.git.remote import bundles as bundle
from snapstore.git.repository import Shadow
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
shadow = Shadow(sys.argv[1])
try:
    bundle.write(sys.argv[2], shadow.objects, {sys.argv[3]: shadow.refs.read(sys.argv[3])})
except Exception as error:
    print(type(error).__name__)
"""
    done = child(code, history.git_dir, tmp_path / "file", MAIN)
    assert done.stdout.strip() == b"Failed", done
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ours.git"]
