"""Remotes where git is not installed: dulwich's client, through the same checks, and what it lacks is said."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import pytest
import remotes
from helpers import all_refs, git, in_commit
from machines import Machine, prompts, server_refs, sound
from remotes import PASSWORD, USER, bare, needs_lighttpd, needs_sshd
from test_transport import pull_all, push_all
from transporting import MAIN, History, leftovers, objects_in, received, shadow_with

from snapstore.errors import Remote, Unsafe
from snapstore.git.remote import bundles
from snapstore.git.remote.connection import MOVED, ConnectionFailed
from snapstore.git.remote.dulwich_driver import DulwichConnection
from snapstore.git.remote.open import open_remote

WAYS = ["path", "git", pytest.param("http", marks=needs_lighttpd), pytest.param("ssh", marks=needs_sshd)]


@pytest.fixture
def without_git(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PATH that leads to ssh, and to no git. The servers of a test are started with another one."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("ssh", "sh"):
        real = next(f"{p}/{name}" for p in os.environ["PATH"].split(":") if os.access(f"{p}/{name}", os.X_OK))
        (folder / name).symlink_to(real)
    return folder


@pytest.fixture(params=WAYS)
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    folder = tmp_path / "server"
    bare(folder / "turns.git")
    with ExitStack() as stack:
        if request.param == "path":
            yield str(folder / "turns.git")
        elif request.param == "git":
            yield stack.enter_context(remotes.daemon(folder)) + "/turns.git"
        elif request.param == "http":
            url = stack.enter_context(remotes.web(folder, tmp_path / "web"))
            yield url.replace("http://", f"http://{USER}:{quote(PASSWORD, safe='')}@") + "/turns.git"
        else:
            running = stack.enter_context(remotes.ssh(tmp_path / "ssh"))
            monkeypatch.setenv("GIT_SSH_COMMAND", running.environment["GIT_SSH_COMMAND"])
            yield f"{running.url}{folder}/turns.git"


def test_there_and_back_again(address: str, tmp_path: Path, without_git: Path) -> None:
    environment = {**os.environ, "PATH": str(without_git)}
    server = str(tmp_path / "server" / "turns.git")
    history, other = History(tmp_path / "ours.git", turns=6), shadow_with(tmp_path / "other.git")
    with open_remote(address, environment=environment, timeout=20) as remote:
        assert isinstance(remote, DulwichConnection) and "git is not installed" in remote.lacks
        assert push_all(remote, history) == {MAIN: None}
        assert all_refs(server) == {MAIN: history.tip.hex()}
        old = history.tip
        history.turn()
        assert remote.push({MAIN: (None, history.tip)}, [], history.shadow.objects) == {MAIN: MOVED}
        assert push_all(remote, history) == {MAIN: None}
        assert pull_all(remote, other) > 25
        assert pull_all(remote, other) == 0
        assert remote.push({MAIN: (history.tip, old)}, [], history.shadow.objects)[MAIN] == "it is not a fast-forward"
    git(server, "fsck", "--strict")
    git(other.git_dir, "fsck", "--strict")
    assert all_refs(other.git_dir) == all_refs(server) == {MAIN: history.tip.hex()}
    assert in_commit(other.git_dir, history.tip) == in_commit(str(history.git_dir), history.tip)
    assert leftovers(other) == []


def test_a_hostile_tree_does_not_come_in(tmp_path: Path, without_git: Path) -> None:
    server = str(bare(tmp_path / "server.git"))
    here = shadow_with(tmp_path / "here.git")
    blob = git(server, "hash-object", "-w", "--stdin", feed=b"x").decode().strip()
    data = b"100644 .git\0" + bytes.fromhex(blob)
    top = git(server, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", feed=data).decode().strip()
    git(server, "update-ref", MAIN, git(server, "commit-tree", top, "-m", "x").decode().strip())
    with open_remote(server, environment={"PATH": str(without_git)}) as remote, pytest.raises(Unsafe):
        remote.fetch(remote.refs().values(), [], here.objects)
    assert objects_in(here.git_dir) == set() and leftovers(here) == []


def test_refusals_are_of_the_family(tmp_path: Path, without_git: Path) -> None:
    environment = {"PATH": str(without_git)}
    with open_remote(str(tmp_path / "absent"), environment=environment) as remote, pytest.raises(Remote):
        remote.refs()
    (tmp_path / "empty").mkdir()
    with (
        open_remote(str(tmp_path / "empty"), environment=environment) as remote,
        pytest.raises(Remote, match="no repo"),
    ):
        remote.refs()
    port = remotes.free_port()
    for url in (f"git://127.0.0.1:{port}/x", f"http://127.0.0.1:{port}/x"):
        with (
            open_remote(url, environment=environment, timeout=5) as remote,
            pytest.raises(ConnectionFailed, match="cannot be reach"),
        ):
            remote.refs()
    with remotes.silence() as quiet:
        for url in (f"git://127.0.0.1:{quiet}/x", f"http://127.0.0.1:{quiet}/x"):
            with (
                open_remote(url, environment=environment, timeout=0.5) as remote,
                pytest.raises(ConnectionFailed, match="in time"),
            ):
                remote.refs()


@needs_lighttpd
def test_a_password_is_asked_of_a_person(tmp_path: Path, without_git: Path) -> None:
    bare(tmp_path / "server" / "turns.git")
    answers = iter([USER, "wrong", USER, PASSWORD])
    environment = {"PATH": str(without_git)}
    with remotes.web(tmp_path / "server", tmp_path / "web") as url:
        with (
            open_remote(f"{url}/turns.git", environment=environment) as remote,
            pytest.raises(Remote, match="asks for"),
        ):
            remote.refs()
        with open_remote(
            f"{url}/turns.git", environment=environment, ask=lambda question, secret: next(answers)
        ) as remote:
            assert remote.refs() == {}


def test_the_commands_work_and_say_what_is_missing(
    tmp_path: Path, without_git: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Push, clone, pull, a bundle, all without git; and the user is told."""
    hub = str(bare(tmp_path / "hub.git"))
    with_git = os.environ["PATH"]
    ada, bob = Machine(tmp_path, "ada").init(poem="roses\n"), Machine(tmp_path, "bob")
    ada.turn("Add violets", poem="roses\nviolets\n")
    monkeypatch.setenv("PATH", str(without_git))
    ada.remote(hub)
    assert "git is not installed" in ada.snap("push").stderr
    bob.clone(hub)
    bob.turn("Bob's", b="b\n")
    bob.push()
    ada.pull()
    ada.snap("export", str(tmp_path / "all.bundle"))
    assert "Nothing new" in bob.snap("import", str(tmp_path / "all.bundle")).stdout
    monkeypatch.setenv("PATH", with_git)
    assert ada.prompts() == bob.prompts() == prompts(hub) == {"Add violets", "Bob's"}
    assert "git is not installed" not in ada.snap("push").stderr
    assert len(server_refs(hub)) == 2
    git(hub, "bundle", "verify", str(tmp_path / "all.bundle"))
    sound(hub)


def test_bundles_of_git_are_read_without_it(tmp_path: Path, without_git: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path / "ours.git", turns=30)
    old = history.shadow.commit(history.tip).parents[0]
    path, rest = tmp_path / "whole", tmp_path / "rest"
    git(str(history.git_dir), "repack", "-adfq")
    git(str(history.git_dir), "update-ref", "refs/heads/old", old.hex())
    git(str(history.git_dir), "bundle", "create", "-q", str(path), "refs/heads/old")
    git(str(history.git_dir), "bundle", "create", "-q", str(rest), MAIN, f"^{old.hex()}")
    other = shadow_with(tmp_path / "other.git")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(without_git))
        for bundle, known in ((path, []), (rest, [old])):  # the second is a thin pack
            refs, incoming = bundles.read(bundle, other.objects, known)
            received(other, refs, incoming)
    git(other.git_dir, "fsck", "--strict")
    assert in_commit(other.git_dir, history.tip) == in_commit(str(history.git_dir), history.tip)
