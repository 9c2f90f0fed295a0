"""Remotes of every kind, on real servers: git daemon, lighttpd and git http-backend, sshd, folders (issue 7, S3-24)."""

from __future__ import annotations

import itertools
import os
import re
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import remotes
from helpers import all_refs, git, git_in, in_commit, plain_environment, write
from remotes import PASSWORD, USER, bare, needs_lighttpd, needs_sshd
from transporting import MAIN, History, leftovers, objects_in, received, shadow_with

from snapstore.errors import Corrupt, Remote, Unsafe
from snapstore.git.objects import reachability
from snapstore.git.remote import folders
from snapstore.git.remote.connection import MOVED, Connection, ConnectionFailed
from snapstore.git.remote.open import open_remote
from snapstore.git.repository import Shadow
from snapstore.surface.records.base import document
from snapstore.surface.records.errors import ErrorRecord

SIDE = "refs/heads/shell/side"


class Server:
    """Repositories in one folder, reached in one way."""

    def __init__(self, folder: Path, address: Callable[[str], str], environment: dict[str, str]) -> None:
        self.folder = folder
        self.address = address
        self.environment = environment

    def make(self, name: str = "turns", **settings: str) -> str:
        bare(self.folder / f"{name}.git", **settings)
        return str(self.folder / f"{name}.git")

    def open(self, name: str = "turns", **options: object) -> Connection:
        return open_remote(self.address(name), environment=self.environment, timeout=20, **options)  # type: ignore[arg-type]


WAYS = [
    "path",
    "git",
    pytest.param("http", marks=needs_lighttpd),
    pytest.param("ssh", marks=needs_sshd),
]


@pytest.fixture(params=WAYS)
def server(request: pytest.FixtureRequest, tmp_path: Path, nobodys_home: Path) -> Iterator[Server]:
    folder = tmp_path / "server"
    folder.mkdir()
    with ExitStack() as stack:
        environment = dict(os.environ)
        if request.param == "path":
            base = str(folder)
        elif request.param == "git":
            base = stack.enter_context(remotes.daemon(folder))
        elif request.param == "http":
            base = stack.enter_context(remotes.web(folder, tmp_path / "web"))
            helper(nobodys_home, PASSWORD)
        else:
            running = stack.enter_context(remotes.ssh(tmp_path / "ssh"))
            base, environment = running.url + str(folder), running.environment
        yield Server(folder, lambda name: f"{base}/{name}.git", environment)


def helper(home: Path, password: str | None) -> Path:
    """A credential helper of the user's, which keeps a diary of what it is asked."""
    diary = home / "diary"
    answer = f"echo username={USER}; echo 'password={password}'" if password else "true"
    write(
        home / "helper",
        f'#!/bin/sh\necho "== $1" >> {diary}\ncat >> {diary}\n[ "$1" = get ] && {answer}\n',
        executable=True,
    )
    (home / ".gitconfig").write_text(f"[credential]\n\thelper = {home}/helper\n")
    return diary


def push_all(remote: Connection, history: History, *refs: str) -> dict[str, str | None]:
    """As share does it: what is there, what it lacks, and off it goes."""
    there = remote.refs(push=True)
    refs = refs or (MAIN,)
    updates = {name: (there.get(name), history.shadow.refs.read(name)) for name in refs}
    tips = [new for _, new in updates.values() if new]
    new = [item[0] for item in reachability.new_objects(history.shadow.objects, tips, there.values())]
    return remote.push(updates, new, history.shadow.objects)


def pull_all(remote: Connection, shadow: Shadow) -> int:
    refs = remote.refs()
    with remote.fetch(refs.values(), shadow.refs.list("refs/").values(), shadow.objects) as incoming:
        count = len(incoming.ids)
        received(shadow, refs, incoming)
    return count


# What every way can do.


def test_there_and_back_again(server: Server, tmp_path: Path) -> None:
    """Turns go there and come back elsewhere, to the byte; the second time only what is new travels."""
    git_dir = server.make()
    history = History(tmp_path / "ours.git", turns=6)
    told: list[tuple[str, int, int]] = []
    with server.open(progress=lambda what, done, total: told.append((what, done, total))) as remote:
        assert remote.refs() == {}
        assert push_all(remote, history) == {MAIN: None}
    total = next(total for what, _, total in told if what == "sending")
    assert ("sending", total, total) in told and total > 25
    assert all_refs(git_dir) == {MAIN: history.tip.hex()}
    git(git_dir, "fsck", "--strict")

    other = shadow_with(tmp_path / "other.git")
    with server.open() as remote:
        first = pull_all(remote, other)
    assert first > 25
    assert in_commit(other.git_dir, history.tip) == in_commit(str(history.git_dir), history.tip)

    history.turn()
    with server.open() as remote:
        assert push_all(remote, history) == {MAIN: None}
        assert push_all(remote, history) == {MAIN: None}, "nothing to do is no failure"
        assert pull_all(remote, other) == 4, "a blob, two trees, a commit"
        assert pull_all(remote, other) == 0
    assert all_refs(other.git_dir) == all_refs(git_dir) == {MAIN: history.tip.hex()}
    for place in (other.git_dir, git_dir):
        git(place, "fsck", "--strict")
    assert leftovers(other) == []


def test_no_repository_there(server: Server, tmp_path: Path) -> None:
    """The other side's own words, on one line, with what to do next."""
    (server.folder / "empty.git").mkdir()
    write(server.folder / "file.git", "no repository")
    for name in ("absent", "empty", "file"):
        with server.open(name) as remote:
            for push in (False, True):
                with pytest.raises(Remote) as refused:
                    remote.refs(push=push)
                assert refused.value.message.isprintable() and refused.value.hint
                assert PASSWORD not in refused.value.message


def test_a_branch_only_advances(server: Server, tmp_path: Path) -> None:
    """Nothing is ever forced: neither over what we know, nor over what moved meanwhile."""
    git_dir = server.make()
    history = History(tmp_path / "ours.git", turns=3)
    third = history.tip
    with server.open() as remote:
        push_all(remote, history)
        first = history.shadow.commit(third).parents[0]
        assert remote.push({MAIN: (third, first)}, [], history.shadow.objects) == {MAIN: "it is not a fast-forward"}
        new = history.turn()
        stale = {MAIN: (first, new)}
        assert remote.push(stale, [], history.shadow.objects) == {MAIN: MOVED}
        foreign = {MAIN: (None, new)}
        assert remote.push(foreign, [], history.shadow.objects) == {MAIN: MOVED}
        assert all_refs(git_dir) == {MAIN: third.hex()}
        assert remote.push({MAIN: (third, first)}, [], history.shadow.objects, forced=[MAIN]) == {MAIN: None}
        assert remote.push({MAIN: (first, None)}, [], history.shadow.objects) == {MAIN: None}
    assert all_refs(git_dir) == {}


def test_all_or_none_and_each_by_itself(server: Server, tmp_path: Path) -> None:
    git_dir = server.make()
    history = History(tmp_path / "ours.git", turns=2)
    with server.open() as remote:
        push_all(remote, history)
        old, side = history.tip, history.turn(on=history.tip, ref=SIDE)
        ids = [item[0] for item in reachability.new_objects(history.shadow.objects, [side], [old])]
        mixed = {SIDE: (None, side), MAIN: (history.shadow.commit(old).parents[0], side)}
        results = remote.push(mixed, ids, history.shadow.objects)
        assert results[MAIN] == MOVED and results[SIDE] is not None
        assert all_refs(git_dir) == {MAIN: old.hex()}
        results = remote.push(mixed, ids, history.shadow.objects, atomic=False)
        assert results == {SIDE: None, MAIN: MOVED}
    assert all_refs(git_dir) == {MAIN: old.hex(), SIDE: side.hex()}
    git(git_dir, "fsck", "--strict")


def test_the_server_decides_last(server: Server, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A server's own refusal comes back per ref, in its words; with `atomic` nothing moved there at all."""
    git_dir = server.make(receive__denyDeletes="true")
    history = History(tmp_path / "ours.git", turns=2)
    with server.open() as remote:
        push_all(remote, history)
        side = history.turn(on=history.tip, ref=SIDE)
        main = history.shadow.refs.read(MAIN)
        ids = [item[0] for item in reachability.new_objects(history.shadow.objects, [side], [main or b""])]
        results = remote.push({SIDE: (None, side), MAIN: (main, None)}, ids, history.shadow.objects)
        assert None not in results.values(), results
        assert all_refs(git_dir) == {MAIN: (main or b"").hex()}
        results = remote.push({SIDE: (None, side), MAIN: (main, None)}, ids, history.shadow.objects, atomic=False)
        assert results[SIDE] is None and "deletion" in str(results[MAIN])


def test_a_large_file_streams_both_ways(server: Server, tmp_path: Path) -> None:
    server.make()
    history = History(tmp_path / "ours.git")
    history.turn(large=os.urandom(9 << 20))
    other = shadow_with(tmp_path / "other.git")
    with server.open() as remote:
        assert push_all(remote, history) == {MAIN: None}
        pull_all(remote, other)
    git(other.git_dir, "fsck", "--strict")
    assert in_commit(other.git_dir, history.tip) == in_commit(str(history.git_dir), history.tip)


def test_a_history_that_git_has_repacked(server: Server, tmp_path: Path) -> None:
    """Deltas on both sides: taken over as they lie, and resolved as they come."""
    git_dir = server.make()
    history = History(tmp_path / "ours.git", turns=60)
    git(str(history.git_dir), "repack", "-adfq", "--depth=50")
    ours = Shadow(str(history.git_dir))
    ids = [item[0] for item in reachability.new_objects(ours.objects, [history.tip], [])]
    with server.open() as remote:
        assert remote.push({MAIN: (None, history.tip)}, ids, ours.objects) == {MAIN: None}
    git(git_dir, "fsck", "--strict")
    git(git_dir, "repack", "-adfq")
    other = shadow_with(tmp_path / "other.git")
    with server.open() as remote:
        assert pull_all(remote, other) == len(ids)
    git(other.git_dir, "fsck", "--strict")
    assert objects_in(other.git_dir) == objects_in(git_dir)


def test_two_lines_that_parted(server: Server, tmp_path: Path) -> None:
    """What both have is found though neither's tip is known to the other."""
    server.make()
    ours = History(tmp_path / "ours.git", turns=100)
    with server.open() as remote:
        push_all(remote, ours)
        other = shadow_with(tmp_path / "other.git")
        pull_all(remote, other)
    theirs = History(tmp_path / "theirs.git", turns=0)
    git(str(theirs.git_dir), "fetch", "-q", other.git_dir, f"{MAIN}:{SIDE}")
    theirs.shadow.objects.reload()
    for _ in range(3):
        theirs.turn(on=theirs.shadow.refs.read(SIDE), ref=SIDE)
    with server.open() as remote:
        there = remote.refs(push=True)
        new = [item[0] for item in reachability.new_objects(theirs.shadow.objects, [theirs.tip], there.values())]
        assert len(new) == 12
        assert remote.push({SIDE: (None, theirs.tip)}, new, theirs.shadow.objects) == {SIDE: None}
        for _ in range(40):
            ours.turn()
        refs = remote.refs()
        with remote.fetch(refs.values(), ours.shadow.refs.list("refs/").values(), ours.shadow.objects) as incoming:
            assert len(incoming.ids) == 12


# Servers that are odd.


def line(text: bytes) -> bytes:
    return b"%04x%s" % (len(text) + 4, text)


def test_the_refs_of_a_plain_folder_are_as_git_lists_them(tmp_path: Path) -> None:
    """They are read without git; whatever is special about a folder is left to it."""
    git_dir = str(bare(tmp_path / "server.git"))
    history = History(tmp_path / "ours.git", turns=3)
    with open_remote(git_dir) as remote:
        push_all(remote, history)
    tip = history.tip.hex()
    for ref in ("refs/heads/a/b/c", "refs/tags/plain", "refs/notes/turns", "refs/snapstore/x"):
        git(git_dir, "update-ref", ref, tip)
    git(git_dir, "tag", "-a", "-m", "x", "annotated", tip)
    git(git_dir, "symbolic-ref", "refs/heads/other", MAIN)
    git(git_dir, "pack-refs", "--all")
    git(git_dir, "update-ref", "refs/heads/a/b/c", f"{tip}~1")
    git(git_dir, "update-ref", "-d", "refs/snapstore/x")
    Path(git_dir, "refs/heads/a/b/c.lock").touch()
    listed = git_in(tmp_path, "ls-remote", "--refs", git_dir).decode().splitlines()
    expected = {name: bytes.fromhex(oid) for oid, name in (line.split("\t") for line in listed)}
    assert len(expected) == 6 and folders.plain_refs(git_dir) == expected
    git(git_dir, "config", "transfer.hideRefs", "refs/notes")
    assert folders.plain_refs(git_dir) is None
    with open_remote(git_dir) as remote:
        assert expected.keys() - remote.refs().keys() == {"refs/notes/turns"}


def test_thousands_of_refs(tmp_path: Path) -> None:
    git_dir = str(bare(tmp_path / "server.git"))
    history = History(tmp_path / "ours.git")
    with open_remote(git_dir) as remote:
        push_all(remote, history)
        rows = "".join(f"{history.tip.hex()} refs/heads/s{n // 100}/b{n}\n" for n in range(30_000))
        Path(git_dir, "packed-refs").write_text(f"# pack-refs with: peeled fully-peeled sorted\n{rows}")
        start = time.monotonic()
        assert len(remote.refs()) == 30_001
        history.turn()
        assert push_all(remote, history) == {MAIN: None}
        assert time.monotonic() - start < 10


def test_invented_and_impossible_refs_are_left_out() -> None:
    """TESTING: a remote that invents refs. What git would not call a ref never reaches a path of ours."""
    oid = b"1" * 40
    names = [b"HEAD", b"refs/heads/../../x", b"refs/heads/x.lock", b"refs/heads/a b", b"refs/heads/\x1b[31m", b"x"]
    names += [b"refs/heads/-rf", b"refs/heads/a\\b", b"refs/heads/ok", b"refs/heads/ok^{}", b"refs//x", b"/etc/passwd"]
    said = b"".join(line(oid + b" " + name + b"\n") for name in names)
    said = line(oid + b" refs/heads/first\0report-status\n") + said + b"0000"
    with remotes.saying(said) as port, open_remote(f"git://127.0.0.1:{port}/x", timeout=5) as remote:
        assert sorted(remote.refs()) == ["refs/heads/first", "refs/heads/ok"]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"0003",
        b"fffg",
        b"ffff" + b"x" * 70_000,
        line(b"ERR access denied or \x1b[2J repository not exported: /x"),
        line(b"not an id refs/heads/x\0caps") + b"0000",
        line(b"1" * 40 + b" refs/heads/x\0object-format=sha256") + b"0000",
    ],
)
def test_nonsense_is_a_refusal(said: bytes) -> None:
    with remotes.saying(said) as port, open_remote(f"git://127.0.0.1:{port}/x", timeout=5) as remote:
        with pytest.raises(Remote) as refused:
            remote.refs()
        assert refused.value.message.isprintable()


def test_a_server_with_only_the_end_of_its_history(tmp_path: Path) -> None:
    """A shallow clone cannot give what it lacks, and does not make a shallow store."""
    history = History(tmp_path / "ours.git", turns=3)
    shallow = tmp_path / "server.git"
    subprocess.run(
        ["git", "clone", "-q", "--bare", "--depth=1", f"file://{history.git_dir}", "-b", "shell/main", str(shallow)],
        check=True,
        env=plain_environment(),
    )
    other = shadow_with(tmp_path / "other.git")
    with open_remote(str(shallow)) as remote, pytest.raises((Remote, Corrupt)):
        pull_all(remote, other)
    assert objects_in(other.git_dir) == set() and leftovers(other) == []
    assert not Path(other.git_dir, "shallow").exists()


def test_unreachable_and_silent(tmp_path: Path) -> None:
    port = remotes.free_port()
    for url in (f"git://127.0.0.1:{port}/x", f"http://127.0.0.1:{port}/x", f"ssh://127.0.0.1:{port}/x"):
        with open_remote(url, timeout=5) as remote, pytest.raises(ConnectionFailed) as refused:
            remote.refs()
        assert str(port) in refused.value.message
    with remotes.silence() as port:
        for url in (f"git://127.0.0.1:{port}/x", f"http://127.0.0.1:{port}/x"):
            start = time.monotonic()
            with open_remote(url, timeout=0.5) as remote, pytest.raises(ConnectionFailed, match="answer"):
                remote.refs()
            assert time.monotonic() - start < 3, "a silent server is not asked again and again"


# http by itself.


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "server"
    folder.mkdir()
    bare(folder / "turns.git")
    with remotes.web(folder, tmp_path / "web") as url:
        yield f"{url}/turns.git"


@needs_lighttpd
def test_a_password_by_helper_by_hand_and_in_the_address(web: str, tmp_path: Path, nobodys_home: Path) -> None:
    """The user's helper is asked, told what was right, and told to forget what was wrong."""
    with open_remote(web) as remote, pytest.raises(Remote, match="asks for a password") as refused:
        remote.refs()
    assert "credential helper" in refused.value.hint

    diary = helper(nobodys_home, PASSWORD)
    with open_remote(web) as remote:
        assert remote.refs() == {}
    asked = diary.read_text()
    assert re.findall("== (.*)", asked) == ["get", "store"] * 2, "an empty repository is asked twice"
    assert "protocol=http" in asked and f"password={PASSWORD}" in asked

    diary = helper(nobodys_home, "wrong")
    diary.unlink()
    with open_remote(web) as remote, pytest.raises(Remote, match="refused the password") as refused:
        remote.refs()
    assert "wrong" not in refused.value.message
    assert re.findall("== (.*)", diary.read_text()) == ["get", "erase"]

    answers = iter([USER, "not this one", USER, PASSWORD])
    questions: list[tuple[str, bool]] = []

    def ask(question: str, secret: bool) -> str:
        questions.append((question, secret))
        return next(answers)

    with open_remote(web, ask=ask) as remote:
        assert remote.refs() == {}
    assert [secret for _, secret in questions] == [False, True, False, True]

    (nobodys_home / ".gitconfig").unlink()
    from urllib.parse import quote

    full = web.replace("http://", f"http://{USER}:{quote(PASSWORD, safe='')}@")
    with open_remote(full) as remote:
        assert remote.refs() == {}
        assert remote.shown == web.replace("http://", f"http://{USER}@")
    with open_remote(full.replace(quote(PASSWORD, safe=""), "mistaken")) as remote, pytest.raises(Remote) as refused:
        remote.refs()
    assert "mistaken" not in str(document(ErrorRecord.of(refused.value)))


@needs_lighttpd
def test_a_password_is_in_no_process_list_and_no_environment(
    web: str, tmp_path: Path, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every program that is started writes down how it was called."""
    helper(nobodys_home, PASSWORD)
    shim = nobodys_home / "bin" / "git"
    real = next(f"{p}/git" for p in os.environ["PATH"].split(":") if os.access(f"{p}/git", os.X_OK))
    called = tmp_path / "called"
    write(shim, f'#!/bin/sh\necho "$@" >> {called}\nenv >> {called}\nexec {real} "$@"\n', executable=True)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    history = History(tmp_path / "ours.git", turns=1)
    with open_remote(web) as remote:
        assert push_all(remote, history) == {MAIN: None}
    diary = called.read_text()
    assert "ls-remote" in diary and "push" in diary
    assert PASSWORD not in diary


@needs_lighttpd
def test_a_project_s_configuration_has_no_say(web: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper, proxy or ssh command in the repository one stands in is not the user's: nothing of it runs."""
    project = tmp_path / "project"
    trap = tmp_path / "trapped"
    git_in(tmp_path, "init", "-q", str(project))
    for key in ("credential.helper", "core.sshCommand", "core.askPass", "core.gitProxy"):
        git(str(project / ".git"), "config", key, f"!touch {trap}" if key == "credential.helper" else f"touch {trap}")
    git(str(project / ".git"), "config", "http.proxy", "http://127.0.0.1:9")
    monkeypatch.chdir(project)
    monkeypatch.setenv("GIT_DIR", str(project / ".git"))
    monkeypatch.setenv("GIT_ASKPASS", f"{tmp_path}/no")
    with open_remote(web) as remote, pytest.raises(Remote, match="asks for a password"):
        remote.refs()
    with open_remote(f"ssh://127.0.0.1:{remotes.free_port()}/x", timeout=3) as remote, pytest.raises(ConnectionFailed):
        remote.refs()
    assert not trap.exists()


@needs_lighttpd
def test_a_moved_repository_is_followed_and_a_login_page_is_not(web: str, nobodys_home: Path) -> None:
    helper(nobodys_home, PASSWORD)
    with open_remote(web.replace("/git/", "/moved/")) as remote:
        assert remote.refs(push=True) == {}
    with open_remote(web.replace("/git/", "/astray/")) as remote, pytest.raises(Remote, match="no repository"):
        remote.refs()


@needs_lighttpd
def test_a_password_does_not_follow_to_another_place(web: str, nobodys_home: Path) -> None:
    helper(nobodys_home, PASSWORD)
    seen: list[bytes] = []
    with remotes.saying(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", heard=seen) as thief:
        away = f"http://127.0.0.1:{thief}/x/info/refs?service=git-upload-pack"
        said = f"HTTP/1.1 302 Go\r\nLocation: {away}\r\nContent-Length: 0\r\n\r\n".encode()
        with remotes.saying(said) as port:
            url = f"http://{USER}:secret@127.0.0.1:{port}/x"
            (nobodys_home / ".gitconfig").unlink()
            with open_remote(url, timeout=5) as remote, pytest.raises(Remote):
                remote.refs()
    assert seen and all(b"authorization" not in request.lower() for request in seen)


@needs_lighttpd
def test_through_a_proxy(web: str, tmp_path: Path, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that only the proxy knows, by git's setting and by the environment."""
    helper(nobodys_home, PASSWORD)
    port = int(web.split(":")[2].split("/")[0])
    beyond = "http://beyond.invalid/git/turns.git"
    with remotes.wire(port) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy}")
        with open_remote(beyond) as remote:
            assert remote.refs() == {}
        monkeypatch.setenv("no_proxy", "other.example,.invalid")
        with open_remote(beyond, timeout=5) as remote, pytest.raises(ConnectionFailed):
            remote.refs()
        monkeypatch.delenv("http_proxy")
        monkeypatch.delenv("no_proxy")
        with (nobodys_home / ".gitconfig").open("a") as file:
            file.write(f'[http "http://beyond.invalid"]\n\tproxy = 127.0.0.1:{proxy}\n')
        with open_remote(beyond) as remote:
            assert remote.refs() == {}
        assert PASSWORD not in (tmp_path / "web" / "access.log").read_text()


@needs_lighttpd
def test_through_a_socks_proxy(web: str, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By git's setting and by the environment, with a password and without; whoever is to look names up does."""
    helper(nobodys_home, PASSWORD)
    port = int(web.split(":")[2].split("/")[0])
    heard: list[bytes] = []

    def refs(url: str) -> dict[str, bytes]:
        with open_remote(url, timeout=5) as remote:
            return remote.refs()

    with remotes.socks(port, heard) as proxy, remotes.socks(port, heard, b"se:cret") as locked:
        monkeypatch.setenv("all_proxy", f"socks5h://127.0.0.1:{proxy}")
        assert refs("http://beyond.invalid/git/turns.git") == {}
        assert set(heard) == {b"beyond.invalid"}
        monkeypatch.setenv("all_proxy", f"socks5://127.0.0.1:{proxy}")
        assert refs(f"http://localhost:{port}/git/turns.git") == {}
        assert heard[-1] in (bytes((127, 0, 0, 1)), bytes(15) + b"\1")
        monkeypatch.setenv("all_proxy", f"socks5h://ada:se%3acret@127.0.0.1:{locked}")
        assert refs("http://beyond.invalid/git/turns.git") == {}
        for text in (
            f"socks5h://ada:wrong@127.0.0.1:{locked}",
            f"socks5h://127.0.0.1:{locked}",
            f"socks5h://127.0.0.1:{port}",
            "socks5h://127.0.0.1:1",
        ):
            monkeypatch.setenv("all_proxy", text)
            with pytest.raises(ConnectionFailed, match="cannot be reached") as error:
                refs("http://beyond.invalid/git/turns.git")
            assert "wrong" not in str(error.value)
        monkeypatch.delenv("all_proxy")
        with (nobodys_home / ".gitconfig").open("a") as file:
            file.write(f'[http "http://beyond.invalid"]\n\tproxy = socks5h://127.0.0.1:{proxy}\n')
        assert refs("http://beyond.invalid/git/turns.git") == {}


def test_a_busy_server_is_asked_again() -> None:
    said = b"HTTP/1.1 503 Later\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    heard: list[bytes] = []
    with remotes.saying(said, heard=heard) as port, pytest.raises(ConnectionFailed, match="503"):
        open_remote(f"http://127.0.0.1:{port}/x").refs()
    assert len(heard) == 3


# Addresses that are none.


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ext::sh -c 'touch trapped'",
        "ext::sh",
        "fd::17",
        "transport-helper::x",
        "-oProxyCommand=touch trapped",
        "--upload-pack=touch trapped",
        "ssh://-oProxyCommand=touch trapped/x",
        "ssh://-oProxyCommand=touch%20trapped/x",
        "ssh://user@-oProxyCommand=x/y",
        "ssh://-l@host/x",
        "-oProxyCommand=x:y",
        "user@-oProxyCommand=x:y",
        "host:-oProxyCommand",
        "host:--upload-pack=x",
        "ssh://host/x\nfoo",
        "git://host/x%0ahost=other",
        "git://host/x%00host=other",
        "git://host:port/x",
        "git://host:99999/x",
        "git://user:pass@host/x",
        "http://ho st/x",
        "http://host\\@evil/x",
        "https:///x",
        "https://host",
        "https://host/x?service=y",
        "file://server/share/x",
        "file://$(touch trapped)/x",
        "ftp://host/x",
        "javascript://host/x",
        "http://host/%zz\x1b",
        "ssh://host/%zz",
        "ssh://user:password@host/x",
        "git://`touch trapped`/x",
        "$(touch trapped):x",
    ],
)
def test_addresses_that_must_not_be_followed(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TESTING's remote list; CVE-2017-1000117 and its family."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Unsafe) as refused:
        open_remote(address)
    assert "pass" not in refused.value.message.replace("password", "") and refused.value.message.isprintable()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "scheme", "shown"),
    [
        ("git@example.com:team/turns.git", "ssh", "ssh://git@example.com/team/turns.git"),
        ("example.com:~/turns.git", "ssh", None),
        ("ssh://git@example.com:2222/~ada/turns.git", "ssh", None),
        ("[::1]:turns.git", "ssh", None),
        ("https://ada:secret@example.com/turns.git", "https", "https://ada@example.com/turns.git"),
        ("HTTPS://example.com:8443/turns", "https", "https://example.com:8443/turns"),
        ("http://[::1]:8080/x", "http", "http://[::1]:8080/x"),
        ("git://example.com/a%20b", "git", "git://example.com/a b"),
        ("file:///srv/turns%20here.git", "path", "/srv/turns here.git"),
        ("file://localhost/srv/x", "path", "/srv/x"),
        ("/srv/with:colon", "path", "/srv/with:colon"),
        ("./with:colon", "path", None),
    ],
)
def test_addresses_that_may(address: str, scheme: str, shown: str | None) -> None:
    remote = open_remote(address)
    assert remote.address.scheme == scheme
    assert "secret" not in remote.shown
    if shown is not None and scheme != "ssh":
        assert remote.shown == shown


def test_a_folder_s_hooks_and_settings_run_nothing(tmp_path: Path) -> None:
    """A repository in a folder may be anybody's (an unpacked archive): what it wants run is not run."""
    git_dir = bare(tmp_path / "server.git")
    trap = tmp_path / "trapped"
    for name in ("post-receive", "post-update", "pre-auto-gc"):
        write(git_dir / "hooks" / name, f"#!/bin/sh\ntouch {trap}\n", executable=True)
    other = History(tmp_path / "other.git")
    (git_dir / "objects" / "info" / "alternates").write_text(f"{other.git_dir}/objects\n")
    for key in ("core.alternateRefsCommand", "uploadpack.packObjectsHook", "core.fsmonitor", "gc.recentObjectsHook"):
        git(str(git_dir), "config", key, f"touch {trap};")
    history = History(tmp_path / "ours.git", turns=2)
    with open_remote(str(git_dir)) as remote:
        assert push_all(remote, history) == {MAIN: None}
        pull_all(remote, shadow_with(tmp_path / "third.git"))
    assert not trap.exists()


@pytest.mark.parametrize("name", ["pre-receive", "update", "proc-receive", "reference-transaction"])
def test_a_folder_that_hooks_guard_is_not_pushed_to_past_them(tmp_path: Path, name: str) -> None:
    """They are not run, so nobody knows what they would say."""
    git_dir = bare(tmp_path / "server.git")
    write(git_dir / "hooks" / name, f"#!/bin/sh\ntouch {tmp_path}/trapped\n", executable=True)
    with open_remote(str(git_dir)) as remote, pytest.raises(Remote, match=f"has a {name} hook"):
        push_all(remote, History(tmp_path / "ours.git", turns=2))
    assert not (tmp_path / "trapped").exists() and not all_refs(str(git_dir))
    with open_remote(str(git_dir)) as remote:
        assert remote.refs() == {}


def test_a_link_in_a_folder_leads_nowhere(tmp_path: Path) -> None:
    """A repository from an archive whose refs lead to the user's own folders."""
    git_dir = bare(tmp_path / "server.git")
    outside = tmp_path / "outside"
    outside.mkdir()
    history = History(tmp_path / "ours.git", turns=1)
    (git_dir / "refs/heads/shell").symlink_to(outside)
    with open_remote(str(git_dir)) as remote:
        assert "link" in str(push_all(remote, history)[MAIN])
    assert list(outside.iterdir()) == []


def test_the_environment_of_a_hook_leads_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run inside a git hook, GIT_DIR and its like point at the user's repository."""
    user = tmp_path / "user"
    git_in(tmp_path, "init", "-q", str(user))
    for key, value in {
        "GIT_DIR": user / ".git",
        "GIT_OBJECT_DIRECTORY": user / "x",
        "GIT_QUARANTINE_PATH": "x",
    }.items():
        monkeypatch.setenv(key, str(value))
    git_dir = str(bare(tmp_path / "server.git"))
    history = History(tmp_path / "ours.git")
    with open_remote(git_dir) as remote:
        assert push_all(remote, history) == {MAIN: None}
    assert all_refs(git_dir) == {MAIN: history.tip.hex()}
    assert all_refs(str(user / ".git")) == {}


def test_a_folder_written_in_place_is_as_git_would_have_left_it(tmp_path: Path) -> None:
    """Modes by umask, no leftovers, git's locks respected, refs that are in each other's way refused."""
    git_dir = bare(tmp_path / "server.git")
    history = History(tmp_path / "ours.git", turns=2)
    with open_remote(str(git_dir)) as remote:
        assert push_all(remote, history) == {MAIN: None}
        assert (git_dir / MAIN).stat().st_mode & 0o777 == 0o666 & ~_umask()
        assert {path.suffix for path in (git_dir / "objects" / "pack").iterdir()} == {".pack", ".idx"}
        assert not list(git_dir.rglob("*.lock")) and not list((git_dir / "objects").glob("snapstore*"))
        git(str(git_dir), "pack-refs", "--all", "--prune")
        history.turn()
        (git_dir / "refs/heads/shell").mkdir(parents=True, exist_ok=True)
        (git_dir / f"{MAIN}.lock").touch()
        assert "lock" in str(push_all(remote, history)[MAIN])
        (git_dir / f"{MAIN}.lock").unlink()
        below = {f"{MAIN}/below": (None, history.tip)}
        assert "exists" in str(remote.push(below, [], history.shadow.objects)[f"{MAIN}/below"])
        assert push_all(remote, history) == {MAIN: None}
        (git_dir / "refs/heads/empty/folder").mkdir(parents=True)
        assert remote.push({"refs/heads/empty": (None, history.tip)}, [], history.shadow.objects)
    git(str(git_dir), "fsck", "--strict")
    assert not list(git_dir.rglob("*.lock"))
    assert git(str(git_dir), "rev-parse", MAIN).decode().strip() == history.tip.hex()


def test_more_refs_than_a_process_may_open_files(tmp_path: Path) -> None:
    git_dir = bare(tmp_path / "server.git")
    history = History(tmp_path / "ours.git", turns=2)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = {int(name) for name in os.listdir("/proc/self/fd")}
    few = next(most for most in itertools.count() if most - len([n for n in taken if n < most]) >= 50)  # more than 50
    with open_remote(str(git_dir)) as remote:
        push_all(remote, history)
        updates = {f"refs/heads/shell/b{number}": (None, history.tip) for number in range(80)}
        updates["refs/heads/shell/b0/below"] = (None, history.tip)
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
        try:
            refused = remote.push(updates, [], history.shadow.objects, atomic=True)
            assert "refs/heads/shell/b0" in str(refused["refs/heads/shell/b0/below"])
            assert all_refs(str(git_dir)).keys() == {MAIN}
            del updates["refs/heads/shell/b0/below"]
            remote.refs(push=True)
            assert not any(remote.push(updates, [], history.shadow.objects, atomic=True).values())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert all_refs(str(git_dir)).keys() == {MAIN, *updates}
    assert not list(git_dir.glob("snapstore*")) and not list(git_dir.rglob("*.lock"))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_many_pushes_do_not_pile_up_packs(tmp_path: Path) -> None:
    """Where packs have come together, git is asked to take the push, and its gc finds its work."""
    git_dir = bare(tmp_path / "server.git")
    history = History(tmp_path / "ours.git")
    with open_remote(str(git_dir)) as remote:
        for _ in range(70):
            history.turn()
            assert push_all(remote, history) == {MAIN: None}
    assert len(list((git_dir / "objects" / "pack").glob("*.pack"))) <= 52
    # A gc of the server's own may still be at work in the background, and would take packs away from under fsck:
    # git refuses a second one while it is.
    ours = ["git", "--git-dir", str(git_dir), "gc", "--quiet"]
    tries = iter(range(600))
    while subprocess.run(ours, capture_output=True, check=False, env=plain_environment()).returncode != 0:
        assert next(tries, None) is not None, "the server's gc does not end"
        time.sleep(0.05)
    git(str(git_dir), "fsck", "--strict")


@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_what_is_damaged_here_is_not_pushed(tmp_path: Path, how: str) -> None:
    """An object that history needs is not what it should be: nothing arrives, and it is said where the fault lies."""
    git_dir = bare(tmp_path / "server.git")
    history = History(tmp_path / "ours.git", turns=1)
    ours = str(history.git_dir)
    git(ours, "repack", "-adq")
    (pack,) = Path(history.shadow.objects.pack_folder).glob("*.pack")
    packed = pack.read_bytes()
    for path in Path(history.shadow.objects.pack_folder).iterdir():
        path.unlink()
    git(ours, "unpack-objects", "-q", feed=packed)
    blob = git(ours, "rev-parse", f"{MAIN}:folder1/turn1").decode().strip()
    file = Path(ours, "objects", blob[:2], blob[2:])
    file.unlink()
    if how == "damaged":
        file.write_bytes(b"nonsense")
    source = Shadow(ours).objects
    with open_remote(str(git_dir)) as remote, pytest.raises(Corrupt) as refused:
        remote.push({MAIN: (None, history.tip)}, [], source)
    assert "incomplete" in refused.value.message and blob in refused.value.message and "check" in refused.value.hint
    assert all_refs(str(git_dir)) == {} and objects_in(str(git_dir)) == set()


def test_a_broken_fetch_is_made_anew(tmp_path: Path) -> None:
    """The wire breaks once, in the middle of the pack; the fetch goes through all the same."""
    folder = tmp_path / "server"
    folder.mkdir()
    history = History(tmp_path / "ours.git", turns=3)
    with remotes.daemon(folder) as url:
        bare(folder / "turns.git")
        with open_remote(f"{url}/turns.git") as remote:
            push_all(remote, history)
        port = int(url.rpartition(":")[2])
        other = shadow_with(tmp_path / "other.git")
        with remotes.wire(port, down=1500, times=1) as cut, open_remote(f"git://127.0.0.1:{cut}/turns.git") as remote:
            assert pull_all(remote, other) > 20
        git(other.git_dir, "fsck", "--strict")
