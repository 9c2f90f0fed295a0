"""`snapstore run`: a turn around any command, and the command's end is ours."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import PROGRAM, assert_record, snap, snap_json

from snapstore import Store
from snapstore.surface.records.nodes import NodeRecord


def start(root: Path, *command: str) -> subprocess.Popen[bytes]:
    """snapstore around a command that prints a line when it is ready."""
    process = subprocess.Popen(
        [*PROGRAM, "run", "--", *command],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_command_is_a_turn_and_its_output_stays_clean(root: Path) -> None:
    """G-02."""
    done = snap(root, "run", "-m", "Do it", "--agent", "ada", "--", "sh", "-c", "echo out; echo 1 > a")
    assert done.stdout == "out\n"
    assert done.stderr.splitlines() == [
        f"snapstore: watching over {root} from now on",
        "snapstore: turn 1: 1 file changed: a  (snapstore show 1)",
    ]
    node = snap_json(root, "show", "1", "--json")
    assert (node["prompt"], node["agent"], node["exit_status"]) == ("Do it", "ada", 0)


def test_prompt_and_agent_are_the_command_itself_unless_said(root: Path) -> None:
    snap(root, "run", "/bin/sh", "-c", "exit 0", "--json", "a b")
    node = snap_json(root, "show", "1", "--json")
    assert (node["prompt"], node["agent"]) == ("/bin/sh -c 'exit 0' --json 'a b'", "sh")


def test_the_exit_status_is_passed_on_and_recorded(root: Path) -> None:
    snap(root, "run", "--", "sh", "-c", "echo 1 > a; exit 42", status=42)
    node = snap_json(root, "show", "1", "--json")
    assert (node["exit_status"], node["status"], len(node["files"])) == (42, "done", 1)
    assert "[exit 42]" in snap(root, "log").stdout


def test_standard_input_reaches_the_command(root: Path) -> None:
    assert snap(root, "run", "-q", "--", "cat", feed="hello\n").stdout == "hello\n"


def test_in_json_standard_output_holds_the_record_alone(root: Path) -> None:
    done = snap(root, "run", "--json", "--", "sh", "-c", "echo out; echo 1 > a; exit 3", status=3)
    node = json.loads(done.stdout)
    assert_record(NodeRecord, node)
    assert (node["exit_status"], node["turn"]) == (3, 1)
    assert "out\n" in done.stderr


def test_quiet_leaves_the_command_alone_on_both_streams(root: Path) -> None:
    done = snap(root, "run", "--quiet", "--", "sh", "-c", "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


def test_the_command_knows_its_session(root: Path) -> None:
    done = snap(root, "run", "--session", "s1", "--", "sh", "-c", "echo $SNAPSTORE_SESSION")
    assert done.stdout == "s1\n"


def test_a_command_that_does_not_exist_leaves_no_turn(root: Path) -> None:
    done = snap(root, "run", "--", "no-such-command", status=127)
    assert "'no-such-command': command not found" in done.stderr
    document = snap_json(root, "run", "--json", "--", "no-such-command", status=127)
    assert document["error"] == "command-not-found"
    (root / "plain").write_text("not a program")
    assert snap_json(root, "run", "--json", "--", "./plain", status=126)["error"] == "command-not-executable"
    status = snap_json(root, "status", "--json")
    assert (status["open_turns"], status["cursor"]["turn"]) == ([], None)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGINT"])
def test_a_command_killed_by_a_signal_is_recorded_and_we_end_the_same_way(root: Path, name: str) -> None:
    """G-37."""
    number = signal.Signals[name]
    snap(root, "run", "--", "sh", "-c", f"echo 1 > a; kill -{number} $$", status=-number)
    node = snap_json(root, "show", "1", "--json")
    assert (node["status"], node["exit_status"]) == ("interrupted", 128 + number)
    assert [file["path"] for file in node["files"]] == ["a"]


CATCHES = """
import os, pathlib, signal, sys
def caught(number, frame):
    pathlib.Path("caught").write_text(signal.Signals(number).name)
    sys.exit(7)
for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1"):
    signal.signal(getattr(signal, name), caught)
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1"])
def test_a_signal_sent_to_us_reaches_the_command_which_decides(root: Path, name: str) -> None:
    process = start(root, *python(CATCHES))
    os.kill(process.pid, signal.Signals[name])
    process.communicate(timeout=30)
    assert process.returncode == 7
    assert (root / "caught").read_text() == name
    assert snap_json(root, "show", "1", "--json")["exit_status"] == 7


def test_a_signal_that_kills_the_command_kills_us_after_the_turn_is_recorded(root: Path) -> None:
    process = start(root, "sh", "-c", "echo 1 > a; echo ready; exec sleep 1000")
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM
    assert snap_json(root, "show", "1", "--json")["status"] == "interrupted"


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_the_command_inherits_no_blocked_or_ignored_signal(root: Path) -> None:
    command = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    bare = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    internal = 3 << 31  # the C library's own two, which its posix_spawn always leaves ignored
    ours, plain = (
        [int(line.split()[1], 16) & ~internal for line in shown.splitlines()]
        for shown in (snap(root, "run", "-q", "--", *command).stdout, bare)
    )
    assert ours == plain


def test_a_turn_that_cannot_be_recorded_is_told_and_its_status_is_ours(root: Path) -> None:
    """G-27: when capture fails the caller is told."""
    snap(root, "init")
    with Store.open(root) as store:
        branch = Path(store.shadow.git_dir) / "refs/heads/shell/main"
    damage = f"echo 1 > a; echo rubbish > {branch}"
    done = snap(root, "run", "--", "sh", "-c", damage, status=14)
    assert "damaged" in done.stderr
    assert "changed:" not in done.stderr


def test_a_failed_command_is_not_hidden_by_a_failed_recording(root: Path) -> None:
    snap(root, "init")
    with Store.open(root) as store:
        branch = Path(store.shadow.git_dir) / "refs/heads/shell/main"
    command = ["run", "--json", "--", "sh", "-c", f"echo rubbish > {branch}; exit 5"]
    document = snap_json(root, *command, status=5)
    assert (document["error"], document["exit_status"]) == ("corrupt", 5)


def test_a_run_inside_a_run_is_refused_not_mixed_up(root: Path) -> None:
    inner = [*PROGRAM, "run", "--", "true"]
    done = snap(root, "run", "--", *inner, status=11)
    assert "is open in process" in done.stderr


def test_two_sessions_may_run_at_once(root: Path) -> None:
    """G-31."""
    snap(root, "init")
    process = start(root, "sh", "-c", "echo ready; read x; echo 1 > a")
    snap(root, "run", "--session", "other", "--", "sh", "-c", "echo 2 > b")
    process.communicate(b"go\n", timeout=30)
    assert process.returncode == 0
    files = {
        session: [file["path"] for file in snap_json(root, "show", "--session", session, "--json")["files"]]
        for session in ("shell", "other")
    }
    assert files == {"shell": ["a"], "other": ["b"]}


def test_killing_us_leaves_a_turn_that_the_next_event_closes(root: Path) -> None:
    """G-37."""
    process = start(root, "sh", "-c", "echo 1 > a; echo ready; exec cat")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    snap(root, "turn", "begin")
    node = snap_json(root, "show", "1", "--json")
    assert (node["status"], [file["path"] for file in node["files"]]) == ("interrupted", ["a"])


# At a terminal


TAKES_TERMINAL = """
import fcntl, os, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
"""


class Terminal:
    """A shell with job control on a terminal of its own, typed at and read from."""

    def __init__(self, folder: Path) -> None:
        self._fd, theirs = os.openpty()
        self._seen = b""
        self._shell = subprocess.Popen(
            python(TAKES_TERMINAL),
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "TERM": "dumb", "PS1": "$ ", "HISTFILE": ""},
        )
        os.close(theirs)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def expect(self, text: str) -> None:
        """Reads on until the text comes by."""
        wanted = text.encode()
        while wanted not in self._seen:
            ready, _, _ = select.select([self._fd], [], [], 30)
            assert ready, f"waited for {text!r}, saw {self._seen!r}"
            self._seen += os.read(self._fd, 4096)
        self._seen = self._seen.partition(wanted)[2]

    def close(self) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._fd)


@pytest.fixture
def terminal(root: Path) -> Iterator[Terminal]:
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    opened = Terminal(root)
    yield opened
    opened.close()


COUNTS = """
import os, signal
count = 0
def caught(*_):
    global count
    count += 1
    os.write(1, b"caught\\n")  # print cannot be entered twice, and the signal may come while it says "ready"
signal.signal(signal.SIGINT, caught)
os.write(1, b"ready\\n")
os.read(0, 100)
os.write(1, b"interrupts: %d\\n" % count)
"""


def test_ctrl_c_reaches_the_command_once_and_does_not_end_us(root: Path, terminal: Terminal) -> None:
    (root / "counts.py").write_text(COUNTS)
    terminal.type(f"{' '.join(PROGRAM)} run -- {sys.executable} counts.py; echo status=$?\n")
    terminal.expect("ready\r\n")
    terminal.type("\x03")
    terminal.expect("caught\r\n")
    terminal.type("go on\n")
    terminal.expect("interrupts: 1\r\n")
    terminal.expect("status=0\r\n")
    assert snap_json(root, "show", "1", "--json")["status"] == "done"


def test_ctrl_z_gives_the_shell_its_terminal_back_and_fg_goes_on(root: Path, terminal: Terminal) -> None:
    terminal.type(f"{' '.join(PROGRAM)} run -- sh -c 'echo re''ady; exec cat > a'\n")
    terminal.expect("ready\r\n")
    terminal.type("\x1a")
    terminal.expect("Stopped")
    terminal.expect("\n$ ")
    terminal.type("fg; echo status=$?\n")
    terminal.expect("status=$?\r\n")
    terminal.expect("run -- sh")  # bash says what it takes up again
    terminal.type("typed\n\x04")
    terminal.expect("status=0\r\n")
    assert (root / "a").read_text() == "typed\n"
    assert [file["path"] for file in snap_json(root, "show", "1", "--json")["files"]] == ["a"]


def test_a_parent_that_ignores_its_children_does_not_make_us_wait_for_ever(root: Path) -> None:
    """Daemons set SIGCHLD to be ignored, and all they start inherits that."""
    done = subprocess.run(
        [*PROGRAM, "run", "--", "true"],
        cwd=root,
        capture_output=True,
        timeout=60,
        restore_signals=False,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )
    assert done.returncode == 0
    assert b"turn 1: no file changed" in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_hindrance(root: Path, closed: str) -> None:
    command = f"exec \"$@\" run -- sh -c 'echo out; echo err >&2; echo kept > kept' {closed}"
    done = subprocess.run(["sh", "-c", command, "sh", *PROGRAM], cwd=root, capture_output=True, timeout=60)
    assert done.returncode == 0
    assert (root / "kept").read_text() == "kept\n"
    document = snap_json(root, "show", "1", "--json")
    assert [file["path"] for file in document["files"]] == ["kept"]


def test_a_command_that_removed_the_store_is_told_of_as_it_was(root: Path) -> None:
    """G-23: its files changed, and running it again is no advice."""
    snap(root, "init")
    done = snap(root, "run", "--", "sh", "-c", 'echo 2 > f; rm -rf "$SNAPSTORE_HOME"', status=1)
    assert "The command ran (status 0)" in done.stderr and "no file was changed" not in done.stderr
