"""The git program that speaks to remotes: the user's settings count, nobody else's do, and it always ends."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from pathlib import Path

import pytest
import remotes
from helpers import all_processes, all_refs, git, write
from remotes import bare, needs_sshd
from test_transport import pull_all, push_all
from transporting import MAIN, History, leftovers, objects_in, shadow_with

from snapstore.errors import Remote, Unsafe
from snapstore.git.remote import process
from snapstore.git.remote.connection import ConnectionFailed
from snapstore.git.remote.open import open_remote

REAL = next(f"{p}/git" for p in os.environ["PATH"].split(":") if os.access(f"{p}/git", os.X_OK))


def configure(home: Path, text: str) -> None:
    with (home / ".gitconfig").open("a") as file:
        file.write(text + "\n")


def shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Puts another git first in the path."""
    write(tmp_path / "bin" / "git", f"#!/bin/sh\n{body}\n", executable=True)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


# The user's.


def test_addresses_that_the_user_has_shortened(tmp_path: Path, nobodys_home: Path) -> None:
    """url.*.insteadOf, for both ways, and pushInsteadOf."""
    history = History(tmp_path / "ours.git", turns=2)
    folder = tmp_path / "server"
    bare(folder / "turns.git")
    with remotes.daemon(folder) as url:
        configure(nobodys_home, f'[url "{url}/"]\n\tinsteadOf = work:')
        with open_remote("work:turns.git", timeout=20) as remote:
            assert push_all(remote, history) == {MAIN: None}
            assert pull_all(remote, shadow_with(tmp_path / "other.git")) > 20
    assert all_refs(str(folder / "turns.git")) == {MAIN: history.tip.hex()}


@needs_sshd
@pytest.mark.parametrize("named", ["~/bin/my-ssh", "$HOME/bin/my-ssh", "GIT_SSH_COMMAND=is-better /nowhere/ssh"])
def test_an_ssh_command_of_the_user_s(
    tmp_path: Path, nobodys_home: Path, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    git_dir = bare(tmp_path / "turns.git")
    with remotes.ssh(tmp_path / "ssh") as server:
        command = server.environment["GIT_SSH_COMMAND"]
        if named.startswith("GIT_SSH_COMMAND"):
            monkeypatch.setenv("GIT_SSH_COMMAND", command)
        write(nobodys_home / "bin" / "my-ssh", f'#!/bin/sh\nexec {command} "$@"\n', executable=True)
        configure(nobodys_home, f"[core]\n\tsshCommand = {named}\n[ssh]\n\tvariant = ssh")
        with open_remote(f"{server.url}{git_dir}", timeout=20) as remote:
            assert push_all(remote, History(tmp_path / "ours.git")) == {MAIN: None}


@needs_sshd
def test_a_key_with_a_passphrase_is_asked_for(tmp_path: Path) -> None:
    """ssh has no terminal, and asks through us, once per connection. Without anybody to ask it fails at once."""
    git_dir = bare(tmp_path / "turns.git")
    asked: list[tuple[str, bool]] = []

    def ask(question: str, secret: bool) -> str:
        asked.append((question, secret))
        return "open sesame"

    with remotes.ssh(tmp_path / "ssh") as server:
        key = tmp_path / "ssh" / "key"
        subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "open sesame", "-f", str(key)], check=True)
        environment = {name: value for name, value in server.environment.items() if name != "SSH_AUTH_SOCK"}
        url = f"{server.url}{git_dir}"
        with (
            open_remote(url, environment=environment) as remote,
            pytest.raises(ConnectionFailed, match="cannot be reached"),
        ):
            remote.refs()
        with open_remote(url, environment=environment, ask=ask) as remote:
            assert push_all(remote, History(tmp_path / "ours.git")) == {MAIN: None}
    assert len(asked) == 1 and "passphrase" in asked[0][0] and asked[0][1]


def test_git_speaks_its_newest_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 2, in which a server sends only the refs that are asked for."""
    folder = tmp_path / "server"
    history = History(tmp_path / "ours.git", turns=2)
    git_dir = str(bare(folder / "turns.git"))
    trace = tmp_path / "trace"
    shim(tmp_path, monkeypatch, f'GIT_TRACE_PACKET={trace} exec {REAL} "$@"')
    with remotes.daemon(folder) as url, open_remote(f"{url}/turns.git", timeout=20) as remote:
        push_all(remote, history)
        assert pull_all(remote, shadow_with(tmp_path / "other.git")) > 20
    assert "version 2" in trace.read_text()
    git(git_dir, "fsck", "--strict")


# Nobody else's.


def test_what_the_user_s_configuration_cannot_switch_off(tmp_path: Path, nobodys_home: Path) -> None:
    """A configuration that came with somebody's dotfiles: hooks, `ext::`, unchecked objects, tags besides."""
    git_dir = str(bare(tmp_path / "server.git"))
    history = History(tmp_path / "ours.git", turns=2)
    git(str(history.git_dir), "tag", "-a", "-m", "x", "extra", history.tip.hex())
    other = shadow_with(tmp_path / "other.git")
    trap = tmp_path / "trapped"
    for name in ("pre-push", "reference-transaction", "post-update"):
        write(nobodys_home / "hooks" / name, f"#!/bin/sh\ntouch {trap}\n", executable=True)
    configure(
        nobodys_home,
        f"""[core]\n\thooksPath = {nobodys_home}/hooks\n\tfsmonitor = touch {trap}
[core]\n\talternateRefsCommand = touch {trap};
[protocol "ext"]\n\tallow = always\n[url "ext::sh -c touch% {trap}% "]\n\tinsteadOf = evil:
[fetch]\n\tfsckObjects = false\n\tunpackLimit = 10000\n\tprune = true\n\twriteCommitGraph = true
[transfer]\n\tfsckObjects = false\n[push]\n\tfollowTags = true\n\tgpgSign = true\n[gpg]\n\tprogram = touch {trap}
[submodule]\n\trecurse = true\n[gc]\n\tauto = 1""",
    )
    with open_remote(git_dir) as remote:
        assert push_all(remote, history) == {MAIN: None}
        pull_all(remote, other)
    assert all_refs(git_dir) == {MAIN: history.tip.hex()}
    assert not list(Path(other.git_dir).rglob("*graph*")) and not list(Path(other.git_dir).glob("objects/??"))
    with open_remote("evil:x") as remote, pytest.raises(Unsafe, match="ext"):
        remote.refs()
    assert not trap.exists()


@pytest.mark.parametrize("key", ["core.sshCommand", "core.hooksPath", "url.ext::x.insteadOf", "credential.helper"])
def test_what_was_planted_in_the_store_is_refused_before_git_runs(tmp_path: Path, key: str) -> None:
    history = History(tmp_path / "ours.git", turns=1)
    git_dir = str(bare(tmp_path / "server.git"))
    git(str(history.git_dir), "config", key, f"touch {tmp_path}/trapped")
    with open_remote(git_dir) as remote:
        with pytest.raises(Unsafe, match="never does"):
            remote.push({MAIN: (None, history.tip)}, [], history.shadow.objects)
        with pytest.raises(Unsafe, match="never does"):
            remote.fetch([b"x" * 20], [], history.shadow.objects)
    assert not (tmp_path / "trapped").exists() and leftovers(history.shadow) == []


# A git of another age.


def test_a_git_that_is_too_old_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git_dir = str(bare(tmp_path / "server.git"))
    history = History(tmp_path / "ours.git", turns=1)
    other = shadow_with(tmp_path / "other.git")
    with open_remote(git_dir) as remote:
        push_all(remote, history)
    old = 'case " $* " in *" fetch "*) echo "error: unknown option \\`stdin" >&2; exit 129;; esac'
    shim(tmp_path, monkeypatch, f'{old}\nexec {REAL} "$@"')
    with open_remote(git_dir) as remote, pytest.raises(Remote, match="too old") as refused:
        pull_all(remote, other)
    assert "Install git" in refused.value.hint and "unknown option" in refused.value.message
    assert leftovers(other) == [] and objects_in(other.git_dir) == set()


def test_a_git_that_has_more_to_say_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer one: new words on every stream, more lines in every list."""
    git_dir = str(bare(tmp_path / "server.git", transfer__hideRefs="refs/hidden"))
    history = History(tmp_path / "ours.git", turns=1)
    more = 'case " $* " in *" push "*|*" ls-remote "*) echo "news: 9.0 is out"; echo "what\tis\tthis";; esac'
    shim(tmp_path, monkeypatch, f'echo "warning: you should upgrade" >&2\n{more}\nexec {REAL} "$@"')
    with open_remote(git_dir) as remote:
        assert push_all(remote, history) == {MAIN: None}
        assert pull_all(remote, shadow_with(tmp_path / "other.git")) > 20


@pytest.mark.parametrize("body", ["exit 3", "kill -9 $$", "echo nonsense >&2; exit 128"])
def test_a_git_that_fails_for_no_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    git_dir = str(bare(tmp_path / "server.git", transfer__hideRefs="refs/hidden"))  # so that git is asked for its refs
    shim(tmp_path, monkeypatch, body)
    with open_remote(git_dir) as remote, pytest.raises(Remote) as refused:
        remote.refs()
    assert refused.value.message.isprintable() and refused.value.hint


def test_a_file_that_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "bin" / "git", "\0no program", executable=True)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with open_remote(str(tmp_path)) as remote, pytest.raises(Remote, match="cannot be run"):
        remote.refs()


# An end in every case.


@pytest.mark.parametrize("down", [30, 2500], ids=["refs", "pack"])
def test_a_server_that_falls_silent_is_given_up(tmp_path: Path, down: int) -> None:
    folder = tmp_path / "server"
    history = History(tmp_path / "ours.git", turns=12)
    bare(folder / "turns.git")
    other = shadow_with(tmp_path / "other.git")
    with remotes.daemon(folder) as url:
        with open_remote(f"{url}/turns.git", timeout=20) as remote:
            push_all(remote, history)
        with remotes.stalling(int(url.rpartition(":")[2]), down) as port:
            address = f"git://127.0.0.1:{port}/turns.git"
            with (
                open_remote(address, timeout=0.5) as remote,
                pytest.raises(ConnectionFailed, match="did not answer in time"),
            ):
                pull_all(remote, other)
            assert gits_with(str(port)) == []
    assert objects_in(other.git_dir) == set() and leftovers(other) == []


def test_an_interrupt_ends_git_and_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C while a server keeps us waiting."""
    other = shadow_with(tmp_path / "other.git")
    with remotes.silence() as port:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                with open_remote(f"git://127.0.0.1:{port}/x") as remote:
                    remote.fetch([b"x" * 20], [], other.objects)
            except KeyboardInterrupt:
                status = 0
            finally:
                os._exit(status)
        end = time.monotonic() + 30
        while not gits_with(str(port)) or not leftovers(other):
            assert time.monotonic() < end, "git did not start"
            time.sleep(0.01)
        os.kill(pid, signal.SIGINT)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert gits_with(str(port)) == []
    assert leftovers(other) == []


def test_an_interrupt_while_git_starts_ends_it_too(tmp_path: Path) -> None:
    program = tmp_path / "impatient-git"
    program.write_text("#!/bin/sh\nkill -INT $PPID\nexec sleep 4711\n")
    program.chmod(0o700)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(10):
            with pytest.raises(KeyboardInterrupt):
                process.run(process.Job(["fetch"], 30.0), str(program), dict(os.environ), who="a server")
    finally:
        signal.signal(signal.SIGINT, before)
    assert not [pid for pid in all_processes() if b"sleep\x004711" in command_of(pid)]


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def gits_with(word: str) -> list[int]:
    """The gits that were called with a word."""
    found = []
    for pid in all_processes():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"git") and any(word.encode() in one for one in words):
            found.append(pid)
    return found


def test_what_git_leaves_behind_does_not_hold_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ssh that stays for the next call, or a helper that remembers, keeps git's streams open."""
    git_dir = str(bare(tmp_path / "server.git", transfer__hideRefs="refs/hidden"))
    shim(tmp_path, monkeypatch, f'sleep 300 & echo $! >> {tmp_path}/left\nexec {REAL} "$@"')
    with open_remote(git_dir, timeout=60) as remote:
        assert remote.refs() == {}
    for pid in (tmp_path / "left").read_text().split():
        os.kill(int(pid), signal.SIGKILL)


def test_what_a_program_says_right_before_it_ends_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It speaks and ends after a look that found nothing to read: its list of refs would count as empty."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    class Late(selectors.DefaultSelector):
        looked = False

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout and not Late.looked:
                Late.looked = True
                gate.write_text("go\n")
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
                return []
            return super().select(timeout)

    monkeypatch.setattr(process.selectors, "DefaultSelector", Late)
    job = process.Job(["-c", f"read go < {gate}; echo words"], silence=20)
    done = process.run(job, "sh", dict(os.environ), who="it")
    assert (done.status, done.output) == (0, b"words\n") and Late.looked
