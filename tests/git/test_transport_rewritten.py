"""Addresses that the user's `insteadOf` leads to a folder: what protects folders holds there, too."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import remotes
from helpers import all_refs, git, write
from remotes import bare
from test_transport import pull_all, push_all
from test_transport_dulwich import without_git
from test_transport_program import REAL, configure, shim
from transporting import MAIN, History, leftovers, shadow_with

from snapstore.errors import Remote, SnapstoreError, Unsafe
from snapstore.git.remote.open import open_remote
from snapstore.git.remote.server_driver import rewritten

__all__ = ["without_git"]
URL = "https://turns.example/team/"


def lead(home: Path, target: str, *, by: str = "insteadOf", given: str = URL) -> None:
    configure(home, f'[url "{target}"]\n\t{by} = {given}')


def checkout(path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(path)], check=True)


def guarded(path: Path) -> None:
    write(bare(path) / "hooks" / "pre-receive", "#!/bin/sh\nexit 1\n", executable=True)


def store_in_use(path: Path) -> None:
    bare(path)
    write(path.parent / "state" / "format", "1\n")


FOLDERS = [
    (checkout, "turns", Unsafe, "is a checkout"),
    (guarded, "turns", Remote, "pre-receive hook"),
    (store_in_use, "store.git", Unsafe, "is a store that is in use"),
]


@pytest.mark.parametrize("spelling", ["", "file://"])
def test_a_folder_behind_an_address_takes_turns_as_a_folder_does(
    tmp_path: Path, nobodys_home: Path, spelling: str
) -> None:
    """It works, and the locks that a killed git left in the folder go."""
    server = bare(tmp_path / "a server" / "turns.git")
    lead(nobodys_home, f"{spelling}{tmp_path}/a%20server/" if spelling else f"{tmp_path}/a server/")
    history = History(tmp_path / "ours.git", turns=2)
    lock = server / "refs" / "heads" / "shell" / "main.lock"
    write(lock, "")
    os.utime(lock, (1, 1))
    with open_remote(f"{URL}turns.git") as remote:
        assert push_all(remote, history) == {MAIN: None}
        assert pull_all(remote, shadow_with(tmp_path / "other.git")) > 20
    assert all_refs(str(server)) == {MAIN: history.tip.hex()} and not lock.exists()


@pytest.mark.parametrize(("made", "name", "refusal", "words"), FOLDERS)
@pytest.mark.parametrize("by", ["insteadOf", "pushInsteadOf"])
def test_a_folder_behind_an_address_is_refused_as_a_folder_is(
    tmp_path: Path,
    nobodys_home: Path,
    made: Callable[[Path], None],
    name: str,
    refusal: type[SnapstoreError],
    words: str,
    by: str,
) -> None:
    made(tmp_path / "there" / name)
    lead(nobodys_home, f"{tmp_path}/there/", by=by)
    history = History(tmp_path / "ours.git", turns=1)
    with open_remote(f"{URL}{name}", timeout=5) as remote:
        if by == "insteadOf":
            with pytest.raises(refusal, match=words):
                remote.refs(push=True)
        with pytest.raises(refusal, match=words):
            remote.push({MAIN: (None, history.tip)}, [], history.shadow.objects)
    assert not any((tmp_path / "there").rglob("refs/heads/*")) and leftovers(history.shadow) == []


@pytest.mark.parametrize(("made", "name", "refusal", "words"), FOLDERS)
def test_without_git_as_well(
    tmp_path: Path,
    nobodys_home: Path,
    without_git: Path,
    made: Callable[[Path], None],
    name: str,
    refusal: type[SnapstoreError],
    words: str,
) -> None:
    made(tmp_path / "there" / name)
    lead(nobodys_home, f"{tmp_path}/there/")
    history = History(tmp_path / "ours.git", turns=1)
    with open_remote(f"{URL}{name}", environment={**os.environ, "PATH": str(without_git)}) as remote:
        with pytest.raises(refusal, match=words):
            remote.refs(push=True)
        with pytest.raises(refusal, match=words):
            remote.push({MAIN: (None, history.tip)}, [], history.shadow.objects)
    assert not any((tmp_path / "there").rglob("refs/heads/*"))


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    """Its name goes through a shell."""
    folder = bare(tmp_path / """it's a "$(touch x)" `touch y`;\\ %41 é""" / "turns.git")
    history = History(tmp_path / "ours.git", turns=1)
    with open_remote(str(folder)) as remote:
        assert push_all(remote, history) == {MAIN: None}
        assert pull_all(remote, shadow_with(tmp_path / "other.git")) > 20
    assert all_refs(str(folder)) == {MAIN: history.tip.hex()}


@pytest.mark.parametrize("by", ["insteadOf", "pushInsteadOf"])
@pytest.mark.parametrize("target", ["folder", "https://nowhere.invalid/"])
def test_a_folder_is_not_left_for_another_place(tmp_path: Path, nobodys_home: Path, by: str, target: str) -> None:
    """The folder was looked at; the one that the configuration puts in its place was not."""
    named, other = bare(tmp_path / "named" / "turns.git"), bare(tmp_path / "other" / "turns.git")
    lead(nobodys_home, f"{tmp_path}/other/" if target == "folder" else target, by=by, given=f"{tmp_path}/named/")
    history = History(tmp_path / "ours.git", turns=1)
    with open_remote(str(named)) as remote:
        with pytest.raises(Unsafe, match=r"leads .* to another address"):
            remote.push({MAIN: (None, history.tip)}, [], history.shadow.objects)
        if by == "insteadOf":
            with pytest.raises(Unsafe, match=r"leads .* to another address"):
                remote.fetch([b"x" * 20], [], history.shadow.objects)
    assert all_refs(str(named)) == all_refs(str(other)) == {}


@pytest.mark.parametrize("target", ["ext::sh -c touch% {trap}% ", "fd::", "--upload-pack=touch {trap};"])
@pytest.mark.parametrize("with_git", [True, False])
def test_an_address_that_would_run_a_program_is_refused(
    tmp_path: Path, nobodys_home: Path, without_git: Path, target: str, with_git: bool
) -> None:
    trap = tmp_path / "trapped"
    lead(nobodys_home, target.format(trap=trap))
    configure(nobodys_home, '[protocol "ext"]\n\tallow = always\n[protocol "fd"]\n\tallow = always')
    environment = dict(os.environ) if with_git else {**os.environ, "PATH": str(without_git)}
    history = History(tmp_path / "ours.git", turns=1)
    for push in (False, True):
        with pytest.raises((Unsafe, Remote)) as refusal, open_remote(f"{URL}x", environment=environment) as remote:
            if push:
                remote.push({MAIN: (None, history.tip)}, [], history.shadow.objects)
            else:
                remote.refs()
        # A path that begins with a dash is one below the folder in which git runs.
        assert isinstance(refusal.value, Unsafe) or target.startswith("--")
    assert not trap.exists()


def test_nothing_more_is_run_for_an_ordinary_address(
    tmp_path: Path, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "server"
    bare(folder / "turns.git")
    history = History(tmp_path / "ours.git", turns=1)
    with remotes.daemon(folder) as url:
        lead(nobodys_home, f"{url}/", given="work:")
        runs = tmp_path / "runs"
        shim(tmp_path, monkeypatch, f'echo run >> {runs}\nexec {REAL} "$@"')
        for address in (f"{url}/turns.git", "work:turns.git"):
            with open_remote(address, timeout=20) as remote:
                remote.refs(push=True)
                assert runs.read_text() == "run\n"
            runs.unlink()
        with open_remote("work:turns.git", timeout=20) as remote:
            assert remote.push({MAIN: (None, history.tip)}, [], history.shadow.objects) == {MAIN: None}
            assert runs.read_text() == "run\n"


def test_addresses_are_rewritten_as_git_does(tmp_path: Path) -> None:
    rules = [
        ("https://a/", False, "/one/"),
        ("https://a/b", False, "/two/"),
        ("https://a/b", False, "/three/"),
        ("https://a/b/c", True, "/four/"),
        ("work:", False, "file:///five/"),
    ]
    git_dir = str(bare(tmp_path / "x.git"))
    for given, for_push, base in rules:
        git(git_dir, "config", "--add", f"url.{base}.{'pushInsteadOf' if for_push else 'insteadOf'}", given)
    for url in ("https://a/x", "https://a/b/x", "https://a/b/c/x", "work:y", "https://other/x", "https://a"):
        git(git_dir, "config", "remote.r.url", url)
        for push in (False, True):
            asked = git(git_dir, "remote", "get-url", *(["--push"] if push else []), "r").decode().strip()
            assert rewritten(url, rules, push=push) == asked, (url, push)
