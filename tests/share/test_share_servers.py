"""P-05 over real servers on loopback: git daemon, git's own http backend behind a web server with a password, sshd with
a key. One story for each, through the commands; and the ways in which a server can be no help."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import PROGRAM
from helpers import git, on_disk
from machines import Machine, prompts, server_refs, sound
from remotes import PASSWORD, USER, bare, daemon, needs_lighttpd, needs_sshd, silence, ssh, web, wire

from snapstore.errors import Remote
from snapstore.git.remote.open import open_remote
from snapstore.share import pull as pulling
from snapstore.share.remotes import Remote as Address

Reached = tuple[str, dict[str, str]]  # an address, and the environment under which it is reached


@contextmanager
def by_daemon(base: Path) -> Iterator[Reached]:
    with daemon(base) as url:
        yield f"{url}/hub.git", {}


@contextmanager
def by_web(base: Path) -> Iterator[Reached]:
    """The password comes from a credential helper, as git's own users have it."""
    helper = base / "helper"
    helper.write_text(f'#!/bin/sh\ntest "$1" = get && printf "username=%s\\npassword=%s\\n" "{USER}" "{PASSWORD}"\n')
    helper.chmod(0o755)
    config = base / "gitconfig"
    config.write_text(f'[credential]\n\thelper = "{helper}"\n')
    with web(base, base / "web") as url:
        yield f"{url}/hub.git", {"GIT_CONFIG_GLOBAL": str(config)}


@contextmanager
def by_ssh(base: Path) -> Iterator[Reached]:
    with ssh(base / "ssh") as server:
        yield f"{server.url}{base}/hub.git", {"GIT_SSH_COMMAND": server.environment["GIT_SSH_COMMAND"]}


WAYS = [
    pytest.param(by_daemon, id="daemon"),
    pytest.param(by_web, id="http", marks=needs_lighttpd),
    pytest.param(by_ssh, id="ssh", marks=needs_sshd),
]


@pytest.mark.parametrize("way", WAYS)
def test_the_whole_story(tmp_path: Path, way: object) -> None:
    hub = str(bare(tmp_path / "hub.git"))
    ada = Machine(tmp_path, "ada").init(poem="roses\n")
    ada.turn("Add violets", poem="roses\nviolets\n")
    with way(tmp_path) as (url, environment):  # type: ignore[operator]
        ada.snap("remote", "add", "origin", url)
        ada.snap("push", **environment)
        assert prompts(hub) == {"Add violets"}
        bob = Machine(tmp_path, "bob")
        bob.root.parent.mkdir(parents=True)
        command = Machine(tmp_path, "bob")
        command.root = bob.root.parent
        answer = command.snap_json("clone", url, str(bob.root), "--json", **environment)
        assert answer["files"] == 1 and on_disk(bob.root) == on_disk(ada.root)
        bob.turn("Bob's", b="b\n")
        bob.snap("push", **environment)
        ada.turn("Ada's", a="a\n")
        ada.snap("push", **environment)
        assert ada.snap_json("pull", "--json", **environment)["updates"][0]["machine"] == "bob"
        bob.snap("pull", **environment)
        dee = Machine(tmp_path, "dee").init(poem="thistles\n")
        dee.snap("init", "--from", url, **environment)
    for machine in (ada, bob):
        assert machine.prompts() == {"Add violets", "Bob's", "Ada's"}
        machine.whole()
    assert dee.prompts() == {"Add violets", "Bob's", "Ada's"} and dee.read("poem") == "thistles\n"
    sound(hub)


def test_a_server_that_cannot_push_atomically(tmp_path: Path) -> None:
    """Branches go first, then records and the word whose they are."""
    hub = str(bare(tmp_path / "hub.git", receive__advertiseAtomic="false"))
    ada = Machine(tmp_path, "ada").init(f="0\n").remote(hub)
    ada.turn("One", f="1\n")
    ada.push()
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    bob.turn("Two", f="2\n")
    assert bob.push().attempts == 1
    ada.pull()
    assert ada.prompts() == bob.prompts() == {"One", "Two"}
    with ada.open() as store:
        assert [machine["name"] for machine in store.foreign().machines.values()] == ["bob"]
    sound(hub)


def test_a_server_that_refuses_says_why(tmp_path: Path) -> None:
    """A protected branch: nothing is lost, and the server's own word is given."""
    hub = bare(tmp_path / "hub.git")
    hook = hub / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ncase "$1" in refs/heads/*) echo "branches are protected here" >&2; exit 1;; esac\n')
    hook.chmod(0o755)
    ada = Machine(tmp_path, "ada").init(f="0\n")
    ada.turn("One", f="1\n")
    with daemon(tmp_path) as url:
        ada.snap("remote", "add", "origin", f"{url}/hub.git")
        error = ada.snap_json("push", "--json", status=17)
    assert error["error"] == "remote" and "refs/heads/shell/main" in error["message"]
    assert not server_refs(str(hub)) and ada.prompts() == {"One"}


def test_a_connection_that_breaks_leaves_the_old_and_the_next_push_and_pull_do_the_rest(tmp_path: Path) -> None:
    hub = str(bare(tmp_path / "hub.git"))
    ada = Machine(tmp_path, "ada").init(f="0\n")
    ada.turn("Big", **{f"f{number}": os.urandom(2000).hex() for number in range(40)})
    with daemon(tmp_path) as url:
        port = int(url.rpartition(":")[2])
        for cut in (700, 60_000):
            with wire(port, up=cut) as broken:
                ada.snap("push", f"git://127.0.0.1:{broken}/hub.git", status=17)
            assert not server_refs(hub)
        ada.snap("remote", "add", "origin", f"{url}/hub.git")
        ada.snap("push")
        bob = Machine(tmp_path, "bob")
        bob.root.parent.mkdir(parents=True)
        here = Machine(tmp_path, "bob")
        here.root = bob.root.parent
        for cut in (900, 60_000):
            with wire(port, down=cut) as broken:
                here.snap("clone", f"git://127.0.0.1:{broken}/hub.git", str(bob.root), status=17)
            assert not bob.root.exists()
            left = os.listdir(bob.home) if bob.home.exists() else []
            assert not [name for name in left if not name.startswith(".")]
        here.snap("clone", f"{url}/hub.git", str(bob.root))
        ada.turn("More", **{f"g{number}": os.urandom(2000).hex() for number in range(40)})
        ada.snap("push")
        before = bob.refs("refs/")
        for cut in (10, 40_000):
            with wire(port, down=cut) as broken:
                bob.snap("pull", f"git://127.0.0.1:{broken}/hub.git", status=17)
            assert bob.refs("refs/") == before
        bob.snap("pull")
    assert bob.prompts() == {"Big", "More"}
    bob.whole()
    sound(hub)


@needs_lighttpd
def test_a_password_that_nobody_gives(tmp_path: Path) -> None:
    bare(tmp_path / "hub.git")
    ada = Machine(tmp_path, "ada").init(f="0\n")
    with web(tmp_path, tmp_path / "web") as url:
        ada.snap("remote", "add", "origin", f"{url}/hub.git")
        error = ada.snap_json("push", "--json", status=17)
        assert error["error"] == "remote" and PASSWORD not in str(error)


@needs_lighttpd
def test_a_password_that_a_person_types(tmp_path: Path) -> None:
    """Asked for once per command on the caller's own terminal, though two gits need it; never shown, never kept."""
    hub = str(bare(tmp_path / "hub.git"))
    ada = Machine(tmp_path, "ada").init(f="0\n")
    ada.turn("One", f="1\n")
    with web(tmp_path, tmp_path / "web") as url:
        ada.remote(f"{url}/hub.git")
        answers = {b"Username": USER, b"Password": PASSWORD}
        status, seen = typed(ada, answers, "push")
        assert status == 0 and "Pushed 1 turn" in seen, seen
    assert prompts(hub) == {"One"}
    assert seen.count("Username for") == seen.count("Password for") == 1 and PASSWORD not in seen
    kept = subprocess.run(["grep", "-rlF", PASSWORD, str(tmp_path / "ada")], capture_output=True, check=False)
    assert kept.stdout == b""


def typed(machine: Machine, answers: dict[bytes, str], *words: str) -> tuple[int, str]:
    """Runs a command at a terminal of its own, and answers each question when it is asked."""
    ours, theirs = os.openpty()
    environment = {**os.environ, **machine._environment()}
    process = subprocess.Popen(
        [*PROGRAM, *words],
        cwd=machine.root,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen, left = b"", dict(answers)
    try:
        while piece := os.read(ours, 65536):
            seen += piece
            for question in [question for question in left if question in seen and seen.endswith(b": ")]:
                os.write(ours, f"{left.pop(question)}\n".encode())
    except OSError:  # the terminal's other end is closed
        pass
    finally:
        os.close(ours)
    return process.wait(timeout=60), seen.decode(errors="replace")


def test_a_server_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = Machine(tmp_path, "ada").init(f="0\n")
    monkeypatch.setattr(pulling, "open_remote", lambda url, **options: open_remote(url, **options, timeout=0.5))
    with silence() as port, ada.open() as store, pytest.raises(Remote, match="did not answer in time"):
        pulling.pull(store, Address("", f"git://127.0.0.1:{port}/hub.git"))


def test_ordinary_git_clones_what_was_pushed(tmp_path: Path) -> None:
    hub = str(bare(tmp_path / "hub.git"))
    ada = Machine(tmp_path, "ada").init(f="0\n")
    ada.turn("One", f="1\n")
    with daemon(tmp_path) as url:
        ada.snap("push", f"{url}/hub.git")
        words = ["git", "clone", "-q", "-b", "shell/main", f"{url}/hub.git", str(tmp_path / "plain")]
        subprocess.run(words, check=True)
    assert (tmp_path / "plain" / "f").read_text() == "1\n"
    assert git(hub, "log", "--format=%s", "refs/heads/shell/main").decode().split("\n")[0] == "One"
