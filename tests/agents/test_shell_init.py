"""`snapstore shell-init`: real interactive shells on a terminal of their own, and what they tell about each command.

A stand-in for the program, first on PATH, writes down what it is told; the last tests run the real one.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import snap, snap_json
from helpers import needs_strace

from snapstore import Store
from snapstore.store import locations, root_index
from snapstore.timeline.record.create_store import create_store

WAIT = 30  # seconds, for a machine with much to do
SHELLS = [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"))
    for name in ("bash", "zsh", "fish")
]
BASH, ZSH, FISH = SHELLS
COMMANDS = {
    "bash": ["bash", "--noprofile", "--rcfile", "{rc}", "-i"],
    "zsh": ["zsh", "-d", "-i"],  # ZDOTDIR says where its rc file is
    "fish": ["fish", "-i"],  # XDG_CONFIG_HOME
}
STATUS = {"bash": "$?", "zsh": "$?", "fish": "$status"}
PIPE = {"bash": '"${PIPESTATUS[*]}"', "zsh": '"$pipestatus"', "fish": '"$pipestatus"'}
OFF = {"bash": "SNAPSTORE_SHELL=off", "zsh": "SNAPSTORE_SHELL=off", "fish": "set SNAPSTORE_SHELL off"}

# What it is told is there in one piece, or not at all. While there is a file `held`, a stop takes its time.
STAND_IN = """#!/bin/sh
if [ "$1 $2" != "hook shell" ]; then echo "I was asked for $*"; exit 0; fi
cat > "$SAID/.$$"
if head -c 4 "$SAID/.$$" | grep -q stop; then while [ -e "$HELD" ]; do sleep 0.02; done; fi
touch "$SAID/.$$"
mv "$SAID/.$$" "$SAID/$$"
echo noise; echo noise >&2; exit 7
"""


# The terminal becomes that of a shell's session when the session's first process asks for it.
LEADER = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


# A shell may start a command before it gives it the terminal; only then does an interrupt reach it.
WAITING = """import os, signal, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
while os.tcgetpgrp(2) != os.getpgrp():
    time.sleep(0.01)
print("started", flush=True)
time.sleep(600)
"""


class Said(NamedTuple):
    kind: str
    shell: str
    turn: str
    folder: str
    text: str


class Terminal:
    """A shell on a terminal. What is typed is read when the shell gets to it."""

    def __init__(
        self, shell: str, folder: Path, environment: dict[str, str], rc: Path, under: Sequence[str] = ()
    ) -> None:
        self.screen = b""
        command = [*under, *(word.format(rc=rc) for word in COMMANDS[shell])]
        self._fd, side = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", LEADER, *command],
            stdin=side,
            stdout=side,
            stderr=side,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(side)
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._fd, 65536):
                self.screen += data
        except OSError:
            pass  # the shell is gone

    def type(self, *lines: str | bytes) -> None:
        for line in lines:
            self.press(line if isinstance(line, bytes) else line.encode(), b"\r")

    def press(self, *keys: bytes) -> None:
        os.write(self._fd, b"".join(keys))

    def shown(self) -> str:
        """Without what only moves the cursor."""
        return re.sub(rb"\x1b[^a-zA-Z]*[a-zA-Z]|\r", b"", self.screen).decode()

    def gone(self) -> str:
        """What is shown in the end, when the shell is gone."""
        self._process.wait(WAIT)
        self._reader.join(10)
        return self.shown()

    def close(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait(WAIT)
        self._reader.join(10)
        os.close(self._fd)


class Desk:
    """Where a shell is started: its rc file, the stand-in, what was said."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.root = root
        self.bin, self._said, self.held = folder / "bin", folder / "said", folder / "held"
        self._rc = folder / "rc"
        for path in (self.bin, self._said, self._rc, self._rc / "fish"):
            path.mkdir()
        names = {"bash": ".bashrc", "zsh": ".zshrc", "fish": "fish/config.fish"}
        self.rc = {shell: self._rc / name for shell, name in names.items()}
        self.program(STAND_IN)
        self._terminals: list[Terminal] = []

    def program(self, text: str) -> None:
        (self.bin / "snapstore").write_text(text)
        (self.bin / "snapstore").chmod(0o755)

    def start(
        self,
        shell: str,
        before: str = "",
        after: str = "",
        times: int = 1,
        folder: Path | None = None,
        under: Sequence[str] = (),
        **extra: str,
    ) -> Terminal:
        quiet = {"zsh": "setopt no_prompt_sp no_prompt_cr", "fish": "set -g fish_greeting"}.get(shell, "")
        prompt = "function fish_prompt; echo -n '> '; end" if shell == "fish" else "PS1='> '"
        # Else fish reads every manual page there is, in the background.
        data = Path(os.environ.get("XDG_DATA_HOME") or f"{os.environ['HOME']}/.local/share")
        (data / "fish" / "generated_completions").mkdir(parents=True, exist_ok=True)
        script = snap(self.root, "shell-init", shell).stdout
        rc = self.rc[shell]
        rc.write_text("\n".join([before, quiet, prompt, *[script] * times, after, ""]))
        environment = {
            **os.environ,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
            "ZDOTDIR": str(self._rc),
            "XDG_CONFIG_HOME": str(self._rc),
            "SAID": str(self._said),
            "HELD": str(self.held),
            "HISTFILE": str(self._rc / "history"),
            **extra,
        }
        self._terminals.append(Terminal(shell, folder or self.root, environment, rc, under))
        return self._terminals[-1]

    def said(self) -> list[Said]:
        """So far, in the order in which it was said."""
        files = [path for path in self._said.iterdir() if not path.name.startswith(".")]
        found = []
        for path in sorted(files, key=lambda path: path.stat().st_mtime_ns):
            words = path.read_bytes().decode("utf-8", "surrogateescape").split("\0")
            assert words.pop() == "" and len(words) == 5, words
            found.append(Said(*words))
        return found

    def until(self, condition: Callable[[], object], what: str) -> None:
        end = time.monotonic() + WAIT
        while not condition():
            assert time.monotonic() < end, f"{what}\n{self.said()}\n{self._terminals[-1].screen.decode()}"
            time.sleep(0.01)

    def heard(self, number: int) -> list[Said]:
        """Once so much was said."""
        self.until(lambda: len(self.said()) >= number, f"not {number} events")
        return self.said()

    def run(self, terminal: Terminal, *lines: str) -> list[Said]:
        """Types commands, each when the one before is over; gives what was said of them."""
        start = len(self.said())
        for number, line in enumerate(lines, 1):
            terminal.type(line)
            self.heard(start + 2 * number)
        return self.said()[start:]

    def written(self, name: str) -> str:
        """A file of the project, once a command has written it."""
        path = self.root / name
        self.until(lambda: path.exists() and path.read_bytes().endswith(b"\n"), f"no {name}")
        return path.read_text().rstrip("\n")

    def close(self) -> None:
        self.held.unlink(missing_ok=True)
        for terminal in self._terminals:
            terminal.close()


@pytest.fixture
def bare_desk(tmp_path: Path, root: Path) -> Iterator[Desk]:
    """A project without a store."""
    made = Desk(tmp_path, root)
    yield made
    made.close()


@pytest.fixture
def desk(bare_desk: Desk) -> Desk:
    """The shell believes that the project has a store; the stand-in needs none."""
    root_index.build(locations.home_folder(), [os.fsencode(bare_desk.root.resolve())])
    return bare_desk


def pairs(said: list[Said]) -> list[tuple[str, str, str]]:
    return [(item.kind, item.turn, item.text) for item in said]


# Each command a turn.


@pytest.mark.parametrize("shell", SHELLS)
def test_each_command_is_told_before_it_runs_and_after_it_ended(desk: Desk, shell: str) -> None:
    terminal = desk.start(shell)
    said = desk.run(terminal, "echo one > one", 'ls "$SAID" > seen', "sh -c 'exit 3'", "mkdir deep; cd deep")
    assert pairs(said) == [
        ("prompt", "1", "echo one > one"),
        ("stop", "1", "0"),
        ("prompt", "2", 'ls "$SAID" > seen'),
        ("stop", "2", "0"),
        ("prompt", "3", "sh -c 'exit 3'"),
        ("stop", "3", "3"),
        ("prompt", "4", "mkdir deep; cd deep"),
        ("stop", "4", "0"),
    ]
    assert {item.shell for item in said} == {said[0].shell}
    assert re.fullmatch(rf"shell-{terminal.pid}-[0-9]{{10,}}", said[0].shell)
    assert [item.folder for item in said[:-1]] == [str(desk.root)] * 7
    assert said[-1].folder == str(desk.root / "deep")
    assert len(desk.written("seen").splitlines()) == 3  # the first turn, and the begin of the second: it was waited for


@pytest.mark.parametrize("shell", SHELLS)
def test_what_the_shell_knows_of_the_last_command_stays_as_it_was(desk: Desk, shell: str) -> None:
    terminal = desk.start(shell)
    desk.run(terminal, "sh -c 'exit 3'", f"echo {STATUS[shell]} > status")
    desk.run(terminal, "true | sh -c 'exit 4' | true", f"echo {PIPE[shell]} > pipe")
    assert (desk.written("status"), desk.written("pipe")) == ("3", "0 4 0")


@pytest.mark.parametrize("shell", SHELLS)
def test_nothing_of_it_is_seen(desk: Desk, shell: str) -> None:
    """No job messages, none of the program's words, nothing at the end."""
    terminal = desk.start(shell)
    desk.run(terminal, "echo one", "sh -c 'exit 3'", "echo two")
    terminal.type("jobs > jobs; echo no more jobs >> jobs", "exit")
    assert desk.written("jobs") == "no more jobs"
    shown = terminal.gone()
    for word in ("noise", "snapstore", "[1]", "Done", "done", "ended", "Terminated", "prompt", "stop"):
        assert word not in shown, shown


@pytest.mark.parametrize("shell", SHELLS)
def test_an_empty_line_and_an_interrupted_one_are_no_turns(desk: Desk, shell: str) -> None:
    """G-37: a command that is interrupted is over all the same."""
    terminal = desk.start(shell)
    desk.run(terminal, "echo one")
    terminal.type("", "", "   ")
    desk.run(terminal, "echo two")
    desk.until(lambda: terminal.shown().endswith("> "), "no prompt")
    terminal.press(b"echo never")
    desk.until(lambda: terminal.shown().endswith("never"), "not typed")
    terminal.press(b"\x03")
    desk.until(lambda: terminal.shown().endswith("> "), "no prompt again")
    (desk.bin / "wait.py").write_text(WAITING)
    terminal.type(f"{sys.executable} {desk.bin}/wait.py > started")
    desk.written("started")
    terminal.press(b"\x03")
    assert [(item.kind, item.turn) for item in desk.heard(6)] == [
        (kind, turn) for turn in ("1", "2", "3") for kind in ("prompt", "stop")
    ]
    assert desk.said()[-1].text == "130"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_end_is_told_in_the_background_and_may_be_late(desk: Desk, shell: str) -> None:
    """The next command does not wait for it, and it names its own turn."""
    terminal = desk.start(shell)
    desk.held.touch()
    terminal.type("echo one > one")
    desk.written("one")
    terminal.type("echo two > two")
    desk.written("two")
    assert pairs(desk.said()) == [("prompt", "1", "echo one > one"), ("prompt", "2", "echo two > two")]
    desk.held.unlink()
    assert sorted(pairs(desk.heard(4))[2:]) == [("stop", "1", "0"), ("stop", "2", "0")]


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_typed_ahead_are_all_told_in_their_order(desk: Desk, shell: str) -> None:
    terminal = desk.start(shell)
    lines = [f"echo {number} >> all" for number in range(8)]
    terminal.type(*lines)
    said = desk.heard(16)
    assert [item.text for item in said if item.kind == "prompt"] == lines
    assert sorted(int(item.turn) for item in said if item.kind == "stop") == list(range(1, 9))
    assert desk.written("all").split() == [str(number) for number in range(8)]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_turn_may_still_be_told_when_the_shell_is_gone(desk: Desk, shell: str) -> None:
    """The closing of the terminal does not reach what tells the end."""
    terminal = desk.start(shell)
    desk.held.touch()
    terminal.type("echo one > one")
    desk.written("one")
    terminal.type("exit")
    terminal.gone()
    desk.held.unlink()
    assert pairs(desk.heard(2)) == [("prompt", "1", "echo one > one"), ("stop", "1", "0")]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "command",
    [
        """echo "it's" 'a "quote"' > out""",
        r"printf '%s\n' 'back\slash\0\n' > out",
        "printf -- '-n -e %s\\n' x > out",
        "echo 'two\nlines' > out",
        "echo 100%s %d '$HOME' '`id`' > out",
        "echo größer → ☃ > out",
        "echo a     b > out  # spaces   stay",
    ],
)
def test_a_command_arrives_as_it_was_typed(desk: Desk, shell: str, command: str) -> None:
    """G-36"""
    terminal = desk.start(shell)
    terminal.type(*command.split("\n"))
    assert desk.heard(2)[0].text == command


@pytest.mark.parametrize("shell", [BASH])
def test_bytes_that_are_no_text_arrive_too(desk: Desk, shell: str) -> None:
    terminal = desk.start(shell, before="bind 'set input-meta on'; bind 'set convert-meta off'", LC_ALL="C")
    terminal.type(b"echo caf\xe9 > out")
    assert desk.heard(2)[0].text == "echo caf\udce9 > out"
    assert (desk.root / "out").read_bytes() == b"caf\xe9\n"


# What is no turn.

OWN = [
    "snapstore undo",
    "  snapstore undo",
    "/usr/local/bin/snapstore --version",
    "cd . && snapstore log",
    "command snapstore log",
    "env A=1 snapstore log",
    "true; snapstore log | cat",
    "python3 -m snapstore --version",
    "(snapstore status)",
]
OTHERS = ["echo snapstore", "ls snapstore", "echo my-snapstore x", "echo snapstore.py", "echo exit"]


@pytest.mark.parametrize("shell", SHELLS)
def test_our_own_commands_are_no_turns(desk: Desk, shell: str) -> None:
    """An undo would be refused while its own turn is open."""
    terminal = desk.start(shell)
    terminal.type(*[line for line in OWN if shell != "fish" or not line.startswith("(")])
    assert [item.text for item in desk.run(terminal, *OTHERS) if item.kind == "prompt"] == OTHERS


@pytest.mark.parametrize("shell", [BASH, ZSH])
def test_our_own_command_is_found_on_any_line(desk: Desk, shell: str) -> None:
    terminal = desk.start(shell)
    terminal.type("for i in 1 2", "do", "snapstore undo", "done")
    assert [item.text for item in desk.run(terminal, "echo last")] == ["echo last", "0"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_that_ends_the_shell_is_no_turn(desk: Desk, shell: str) -> None:
    """Nobody would say that it is over."""
    terminal = desk.start(shell)
    desk.run(terminal, "echo one")
    terminal.type("exit 5")
    terminal.gone()
    assert len(desk.said()) == 2


@pytest.mark.parametrize("shell", SHELLS)
def test_it_can_be_switched_off(desk: Desk, shell: str) -> None:
    terminal = desk.start(shell)
    on = OFF[shell].replace("off", "on")
    desk.run(terminal, OFF[shell])
    terminal.type("echo unseen > unseen")
    desk.written("unseen")
    terminal.type(on)
    assert [item.text for item in desk.run(terminal, "echo seen") if item.kind == "prompt"] == ["echo seen"]
    away = desk.start(shell, SNAPSTORE_SHELL="off")
    away.type("echo away > away")
    desk.written("away")
    assert not [item for item in desk.said() if item.text == "echo away > away"]


@pytest.mark.parametrize("shell", SHELLS)
def test_without_the_program_the_shell_is_as_ever(desk: Desk, shell: str) -> None:
    terminal = desk.start(shell)
    (desk.bin / "snapstore").unlink()
    terminal.type("sh -c 'exit 3'", f"echo {STATUS[shell]} > status")
    assert desk.written("status") == "3"
    desk.program("this is no program: it cannot even be started\n")
    (desk.bin / "snapstore").write_bytes(b"\x7fELF nonsense")
    terminal.type("sh -c 'exit 4'", f"echo {STATUS[shell]} > status2", "exit")
    assert desk.written("status2") == "4"
    shown = terminal.gone()
    assert "snapstore" not in shown and "not found" not in shown


@pytest.mark.parametrize("shell", SHELLS)
def test_twice_in_the_rc_file_is_once(desk: Desk, shell: str) -> None:
    terminal = desk.start(shell, times=2)
    assert [item.turn for item in desk.run(terminal, "echo one", "echo two")] == ["1", "1", "2", "2"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_inside_the_shell_speaks_for_itself(desk: Desk, shell: str) -> None:
    """Also where every variable is exported: the inner one is another shell. A subshell is none."""
    before = "set -a" if shell == "bash" else "setopt all_export" if shell == "zsh" else ""
    terminal = desk.start(shell, before=before)
    desk.run(terminal, "sh -c 'echo a; echo b'" if shell == "fish" else "(echo a; echo b)")
    inner = " ".join(COMMANDS[shell]).format(rc=desk.rc[shell])
    terminal.type(inner, "echo inner > inner")
    desk.written("inner")
    said = desk.heard(5)
    assert [item.text for item in said if item.kind == "prompt"][1:] == [inner, "echo inner > inner"]
    assert len({item.shell for item in said}) == 2


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_left_alone(desk: Desk, shell: str, tmp_path: Path) -> None:
    script = snap(desk.root, "shell-init", shell).stdout
    (tmp_path / "script").write_text(f"{script}\necho one\necho two\n")
    done = subprocess.run(
        [shell, str(tmp_path / "script")],
        env={**os.environ, "PATH": f"{desk.bin}:{os.environ['PATH']}", "SAID": str(tmp_path / "said")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr, desk.said()) == ("one\ntwo\n", "", [])


# What the person has set up already.


@pytest.mark.parametrize("shell", [BASH])
@pytest.mark.parametrize("kind", ["string", "array", "later"])
def test_prompt_commands_of_bash_are_kept(desk: Desk, shell: str, kind: str) -> None:
    mine = """mine() { echo "$? ${PIPESTATUS[*]}" >> mine; }"""
    before = {"string": "PROMPT_COMMAND=mine", "array": "PROMPT_COMMAND=(mine true)"}.get(kind, "")
    after = 'PROMPT_COMMAND="mine; $PROMPT_COMMAND"' if kind == "later" else ""
    terminal = desk.start(shell, before=f"{mine}\n{before}", after=after)
    said = desk.run(terminal, "sh -c 'exit 3'", "true | sh -c 'exit 4'")
    assert [item.text for item in said if item.kind == "stop"] == ["3", "4"]
    if kind != "later":
        assert desk.written("mine").splitlines() == ["0 0", "3 3", "4 0 4"]
    else:
        assert desk.written("mine").splitlines()[-2:] == ["3 3", "4 0 4"]


@pytest.mark.parametrize("shell", [BASH])
def test_traps_and_prompts_of_bash_are_kept(desk: Desk, shell: str) -> None:
    before = r"""trap 'echo "$BASH_COMMAND" >> trapped' DEBUG; trap 'echo left >> left' EXIT; PS0='(about to run)'"""
    terminal = desk.start(shell, before=before)
    said = desk.run(terminal, "[[ abc =~ b ]]", "echo ${BASH_REMATCH[0]} > matched", "set -u", "echo one")
    assert [item.text for item in said if item.kind == "stop"] == ["0"] * 4
    assert desk.written("matched") == "b"
    assert "echo one" in desk.written("trapped").splitlines()
    terminal.type("exit")
    assert terminal.gone().count("(about to run)") == 5
    assert desk.written("left") == "left"


@pytest.mark.parametrize("shell", [BASH])
def test_bash_under_set_e_and_set_x_lives_on(desk: Desk, shell: str) -> None:
    terminal = desk.start(shell)
    lines = ["set -e", "echo one", "set +e", "set -x", "echo two > two", "set +x", "set -o posix", "echo three"]
    said = desk.run(terminal, *lines)
    assert [item.text for item in said if item.kind == "prompt"] == lines


@pytest.mark.parametrize("shell", [BASH])
def test_commands_kept_out_of_the_history_of_bash(desk: Desk, shell: str) -> None:
    """What HISTIGNORE names has no text; the same command once more has its own; without a history there is no turn."""
    terminal = desk.start(shell, before="HISTCONTROL=ignoreboth; HISTTIMEFORMAT='%F %T '")
    said = desk.run(terminal, "echo one", "echo one", "HISTIGNORE='pwd'", "pwd", "echo two")
    told = [item.text for item in said if item.kind == "prompt"]
    assert told == ["echo one", "echo one", "HISTIGNORE='pwd'", "", "echo two"]
    terminal.type("set +o history")
    desk.heard(11)  # where it ends is all that is known of it
    terminal.type("echo unseen > unseen")
    desk.written("unseen")
    assert "echo unseen > unseen" not in [item.text for item in desk.said()]


@pytest.mark.parametrize("shell", [BASH])
def test_bash_preexec_is_used_where_it_is_loaded(desk: Desk, shell: str) -> None:
    before = "bash_preexec_imported=defined; preexec_functions=(a) precmd_functions=(b) PS0=x"
    after = 'echo "${preexec_functions[*]} ${precmd_functions[*]} $PS0${PROMPT_COMMAND-}" > hooks'
    terminal = desk.start(shell, before=before, after=after)
    assert desk.written("hooks") == "a _snapstore_preexec b _snapstore_precmd x"
    terminal.type("_snapstore_preexec 'make all'; (exit 3); _snapstore_precmd; echo $? > status")
    assert desk.written("status") == "3"
    assert pairs(desk.heard(2)) == [("prompt", "1", "make all"), ("stop", "1", "3")]


@pytest.mark.parametrize("shell", [ZSH])
def test_hooks_and_options_of_zsh_are_kept(desk: Desk, shell: str) -> None:
    before = """
precmd() { echo "precmd $? ${pipestatus[*]}" >> mine; return 9; }
preexec() { echo "preexec $1" >> mine; return 8; }
setopt print_exit_value ksh_arrays sh_word_split hist_ignore_space no_unset err_return
"""
    terminal = desk.start(shell, before=before)
    said = desk.run(terminal, "sh -c 'exit 3'", "true | sh -c 'exit 4'", "[[ abc =~ b ]]", "echo $MATCH > matched")
    assert [item.text for item in said if item.kind == "stop"] == ["3", "4", "0", "0"]
    assert desk.written("matched") == "b"
    mine = desk.written("mine").splitlines()
    assert mine[1:5] == ["preexec sh -c 'exit 3'", "precmd 3 3", "preexec true | sh -c 'exit 4'", "precmd 4 0 4"]
    assert [item.text for item in desk.run(terminal, " echo secret")] == ["", "0"]


@pytest.mark.parametrize("shell", [FISH])
def test_event_handlers_of_fish_are_kept(desk: Desk, shell: str) -> None:
    before = """
function mine_before --on-event fish_preexec; echo "before $argv[1]" >> mine; end
function mine_after --on-event fish_postexec; echo "after $status" >> mine; end
"""
    terminal = desk.start(shell, before=before)
    lines = ["sh -c 'exit 3'", "sleep 0 &; echo $last_pid > pid", "echo $last_pid >> pid", " echo secret"]
    said = desk.run(terminal, *lines)
    assert [item.text for item in said if item.kind == "stop"] == ["3", "0", "0", "0"]
    assert desk.written("mine").splitlines()[:2] == ["before sh -c 'exit 3'", "after 3"]
    first, second = desk.written("pid").splitlines()
    assert first == second
    assert said[-2].text == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_the_persons_python_path_is_kept_from_our_interpreter_only(desk: Desk, shell: str) -> None:
    desk.program(STAND_IN.replace("exit 7", 'echo "[$PYTHONPATH$PYTHONHOME]" >> "$SAID/../paths"'))
    setting = {"fish": "set -gx PYTHONPATH /mine; set -gx PYTHONHOME /home"}
    terminal = desk.start(shell, before=setting.get(shell, "export PYTHONPATH=/mine PYTHONHOME=/home"))
    desk.run(terminal, "echo $PYTHONPATH$PYTHONHOME > mine")
    assert desk.written("mine") == "/mine/home"
    paths = desk.root.parent / "paths"
    desk.until(lambda: paths.exists() and len(paths.read_text().split()) == 2, "not both were run")
    assert paths.read_text().split() == ["[]", "[]"]


# A folder without a store costs nothing.

ASSIGN = {"bash": "x=1", "zsh": "x=1", "fish": "set x 1"}


def started(trace: Path) -> list[str]:
    """The processes that a traced shell started between the opening of `begin` and of `end`."""
    rows = trace.read_text().splitlines()
    first, last = (next(at for at, row in enumerate(rows) if f'/{name}"' in row) for name in ("begin", "end"))
    calls = [row for row in rows[first:last] if re.search(r"\b(clone3?|fork|vfork|execve)\(", row)]
    return [row for row in calls if "CLONE_THREAD" not in row]


@needs_strace
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("watched", [False, True])
def test_no_process_is_started_in_a_folder_without_a_store(
    bare_desk: Desk, tmp_path: Path, shell: str, watched: bool
) -> None:
    """Not even a subshell. There are stores elsewhere, also below and beside this folder. With a store there are some,
    which shows that they would be seen."""
    desk = bare_desk
    for folder in (desk.root / "below", tmp_path / "project-2", *([desk.root] if watched else [])):
        folder.mkdir(exist_ok=True)
        create_store(locations.home_folder(), os.fsencode(folder.resolve()), anyway=True)
    trace = tmp_path / "trace"
    under = ["strace", "-f", "-qq", "-e", "trace=clone,clone3,fork,vfork,execve,open,openat", "-o", str(trace)]
    terminal = desk.start(shell, under=under)
    lines = [f"echo > {tmp_path}/begin", ASSIGN[shell], "cd .", "true", f"echo > {tmp_path}/end", "exit"]
    for line in lines:
        desk.until(lambda: terminal.shown().endswith("> "), "no prompt")
        terminal.screen = b""
        terminal.type(line)
    terminal.gone()
    assert bool(started(trace)) == bool(desk.said()) == watched


@pytest.mark.parametrize("shell", SHELLS)
def test_a_store_is_seen_from_the_next_prompt_on(bare_desk: Desk, tmp_path: Path, shell: str) -> None:
    """Also from a folder below, through a link, and under a name that shells have to be careful with."""
    desk = bare_desk
    odd = tmp_path / "a 'b' \"c\" *[x] ü\\n"
    (odd / "deep" / "er").mkdir(parents=True)
    (tmp_path / "link").symlink_to(odd / "deep")
    (tmp_path / "there").symlink_to(odd / "deep" / "er")
    terminal = desk.start(shell)
    terminal.type("echo one > one")
    desk.written("one")
    Store.open(odd, create=True).close()
    terminal.type("cd ..; echo x > project/x")
    desk.written("x")
    terminal.type("cd link/er")
    assert [item.text for item in desk.run(terminal, "echo in > in")] == ["echo in > in", "0"]
    assert (odd / "deep" / "er" / "in").exists()
    said = desk.run(terminal, "cd -P ..; cd ../../there" if shell != "fish" else "cd ../../there")
    assert len(said) == 2
    assert [item.text for item in desk.run(terminal, "echo on")] == ["echo on", "0"]
    terminal.type(f"cd {desk.root}")
    desk.heard(8)
    terminal.type("echo out > out")
    desk.written("out")
    assert len(desk.said()) == 8


@pytest.mark.parametrize("shell", SHELLS)
def test_a_store_from_before_the_index_is_seen(bare_desk: Desk, shell: str) -> None:
    """`shell-init` looks for all stores once; what it could not know of asks the program, as before."""
    desk = bare_desk
    home = Path(locations.home_folder())
    Store.open(desk.root, create=True).close()
    assert not (home / ".roots").exists(), "who never uses shell-init has no index"
    assert len(desk.run(desk.start(shell), "echo one")) == 2
    assert (home / ".roots-complete").exists()
    terminal = desk.start(shell)
    (home / ".roots-complete").unlink()
    shutil.rmtree(home / ".roots")
    assert len(desk.run(terminal, "echo two")) == 2


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("kind", ["elsewhere", "default", "not absolute", "not exported"])
def test_the_shell_looks_where_the_program_would(
    bare_desk: Desk, tmp_path: Path, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch, shell: str, kind: str
) -> None:
    desk = bare_desk
    before = ""
    if kind == "elsewhere":
        monkeypatch.setenv("SNAPSTORE_HOME", str(tmp_path / "else where"))
    elif kind in ("default", "not exported"):
        monkeypatch.delenv("SNAPSTORE_HOME")
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    snap(desk.root, "init", "-q")
    if kind == "not absolute":
        before = "set -gx SNAPSTORE_HOME here" if shell == "fish" else "export SNAPSTORE_HOME=here"
    elif kind == "not exported":
        before = "set -g SNAPSTORE_HOME /nowhere" if shell == "fish" else "SNAPSTORE_HOME=/nowhere"
    terminal = desk.start(shell, before=before)
    assert len(desk.run(terminal, "echo one")) == 2


def test_the_index_of_roots_never_claims_to_be_complete_when_it_is_not(tmp_path: Path, nobodys_home: Path) -> None:
    home = locations.home_folder()
    first, second = tmp_path / "first", tmp_path / "first" / root_index.MARK / "second"
    second.mkdir(parents=True)
    Store.open(first, create=True).close()
    snap(first, "shell-init", "bash")
    complete = Path(home) / root_index.COMPLETE
    assert complete.exists()
    snap(first, "init", "-q", "--anyway", str(second))
    assert not complete.exists(), "the mark of the first is in the way of the second's"
    snap(second, "shell-init", "bash")
    assert not complete.exists()


@pytest.mark.parametrize("command", ["init --adopt", "clone", "status"])
def test_whatever_makes_or_opens_a_store_adds_its_root(root: Path, tmp_path: Path, hub: str, command: str) -> None:
    home = locations.home_folder()
    snap(root, "init", "-q")
    if command == "clone":
        snap(root, "remote", "add", "hub", hub)
        snap(root, "push")
    snap(root, "shell-init", "bash")
    new = tmp_path / "moved" / root.name
    if command == "init --adopt":
        new.parent.mkdir()
        root.rename(new)
        snap(new, "init", "--adopt")
    elif command == "clone":
        snap(tmp_path, "clone", hub, str(new))
    else:
        new = root
        shutil.rmtree(Path(home) / root_index.FOLDER)
        (Path(home) / root_index.FOLDER).mkdir()
        snap(new, "status")
    assert Path(f"{home}/{root_index.FOLDER}{new.resolve()}/{root_index.MARK}").exists()


# The command itself, and the whole way.


def test_the_command_prints_a_script_or_says_what_it_knows(root: Path) -> None:
    document = snap_json(root, "shell-init", "zsh", "--json")
    assert document["shell"] == "zsh" and document["script"] in snap(root, "shell-init", "zsh").stdout
    assert snap_json(root, "shell-init", "tcsh", "--json", status=2)["error"] == "usage"
    assert snap_json(root, "shell-init", "--json", status=2)["error"] == "usage"


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_at_a_shell_are_turns_that_can_be_undone(bare_desk: Desk, shell: str) -> None:
    """From the rc file to the undo, with the real program. A shell in a folder without a store records nothing."""
    desk = bare_desk
    desk.program(f'#!/bin/sh\nPYTHONPATH={Path(__file__).parents[2]} exec {sys.executable} -m snapstore "$@"\n')
    snap(desk.root, "init")

    def log() -> list[tuple[object, ...]]:
        nodes = snap_json(desk.root, "log", "--json")["nodes"]
        return [(node["prompt"], node["status"], [file["path"] for file in node["files"]]) for node in nodes[1:]]

    def recorded(*rows: tuple[object, ...]) -> None:
        desk.until(lambda: log() == list(rows), f"not recorded: {rows}")

    terminal = desk.start(shell)
    terminal.type("echo one > one")
    first = ("echo one > one", "done", ["one"])
    recorded(first)
    terminal.type("rm one; echo two > two; sh -c 'exit 3'")
    second = ("rm one; echo two > two; sh -c 'exit 3'", "done", ["one", "two"])
    recorded(first, second)
    assert snap_json(desk.root, "log", "--json")["nodes"][-1]["agent"] == "shell"
    terminal.type("snapstore undo --yes; echo undone > ../undone")
    desk.until(lambda: (desk.root.parent / "undone").exists(), "not undone")
    assert sorted(os.listdir(desk.root)) == ["one"]
    terminal.type("snapstore redo --yes; echo redone > ../redone")
    desk.until(lambda: (desk.root.parent / "redone").exists(), "not redone")
    assert sorted(os.listdir(desk.root)) == ["two"]
    recorded(first, second)
    terminal.type("cd ..; mkdir elsewhere; cd elsewhere", "echo free > free")
    desk.until(lambda: (desk.root.parent / "elsewhere" / "free").exists(), "not written")
    assert snap_json(desk.root, "status", "--json")["hook_errors"] == []
