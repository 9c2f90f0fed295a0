"""The real program in a real terminal (tmux): from its start to an undo and back, and out again."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import PROGRAM, snap

TMUX = shutil.which("tmux")
pytestmark = pytest.mark.skipif(TMUX is None, reason="needs tmux")
PATIENCE = 30  # seconds


class Terminal:
    """One window of a tmux of our own, with nobody's settings."""

    def __init__(self, folder: Path, socket: Path, columns: int, lines: int) -> None:
        self._tmux = [str(TMUX), "-S", str(socket), "-f", "/dev/null"]
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TMUX")}
        shell = "env PS1='ready> ' sh"
        size = ["-x", str(columns), "-y", str(lines)]
        command = [*self._tmux, "new-session", "-d", *size, "-c", str(folder), shell]
        subprocess.run(command, check=True, env={**kept, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"})
        self.wait(lambda: "ready>" in self.seen())

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], check=True, capture_output=True)
        return done.stdout.decode()

    def type(self, text: str) -> None:
        self._run("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        self._run("send-keys", *keys)

    def click(self, column: int, line: int) -> None:
        """As terminals tell of the mouse: pressed and let go, counted from 1."""
        for end in "Mm":
            self.type(f"\x1b[<0;{column};{line}{end}")

    def wheel(self, column: int, line: int) -> None:
        self.type(f"\x1b[<65;{column};{line}M")

    def resize(self, columns: int, lines: int) -> None:
        self._run("resize-window", "-x", str(columns), "-y", str(lines))

    def seen(self, *, colours: bool = False) -> str:
        return self._run("capture-pane", "-p", *(["-e"] if colours else []))

    def modes(self) -> str:
        """Whether another screen is shown, the mouse is reported, the cursor is seen."""
        return self._run("display-message", "-p", "#{alternate_on} #{mouse_any_flag} #{cursor_flag}").strip()

    def wait(self, there: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not there():
            assert time.monotonic() < end, self.seen()
            time.sleep(0.02)

    def close(self) -> None:
        self._run("kill-server")


@pytest.fixture
def terminal(root: Path, tmp_path: Path) -> Iterator[Terminal]:
    (root / "a.txt").write_text("one\n")
    snap(root, "init", "--session", "s1")
    for number, text in enumerate(("two", "three", "four"), start=2):
        snap(root, "run", "--session", "s1", "-m", f"Write {text}", "--", "sh", "-c", f"echo {text} >a.txt")
        snap(root, "run", "--session", "s1", "-m", f"Add b{number}", "--", "sh", "-c", f"echo {number} >b{number}")
    opened = Terminal(root, tmp_path / "tmux", 110, 30)
    yield opened
    opened.close()


def start(terminal: Terminal, *words: str) -> None:
    terminal.type(f"{shlex.join([*PROGRAM, *words])}; echo left with $?")
    terminal.press("Enter")
    terminal.wait(lambda: re.search(r"Turn >\d+<", terminal.seen()))


def selected(terminal: Terminal) -> str:
    return next((line for line in terminal.seen().splitlines() if line.startswith("▌")), "")


def test_from_the_start_to_an_undo_and_back(terminal: Terminal, root: Path) -> None:
    """S3-12, S3-13, S3-19 to S3-22: keys of Vim, in the program as it is installed, and the files on disk."""
    start(terminal, "tui")
    assert "Turn >6<" in selected(terminal)
    terminal.wait(lambda: "A  b4  +1" in terminal.seen())  # the preview
    terminal.press("j")
    terminal.wait(lambda: "Write four" in selected(terminal))
    terminal.press("d")
    terminal.wait(lambda: "turn 6 (where you are) → turn 5" in terminal.seen())
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "b2", "b3", "b4"]  # looking never moves
    terminal.press("u")
    terminal.wait(lambda: "remove     b4" in terminal.seen())  # C13: what deletes is shown first
    assert (root / "b4").exists()
    terminal.wait(lambda: "Go (Enter)" in terminal.seen())  # what is typed before is no answer
    terminal.press("Enter")
    terminal.wait(lambda: "Turn >5<" in terminal.seen() and not (root / "b4").exists())
    terminal.wait(lambda: "Turn {6}" in terminal.seen())
    terminal.press("u")
    terminal.wait(lambda: (root / "a.txt").read_text() == "three\n")
    terminal.press("C-r")
    terminal.wait(lambda: (root / "a.txt").read_text() == "four\n")
    terminal.wait(lambda: "Turn >5<" in terminal.seen())
    terminal.press("q")
    terminal.wait(lambda: "left with 0" in terminal.seen())
    assert "Turn >5<" not in terminal.seen()  # the terminal is as it was before
    assert snap(root, "status").returncode == 0


def test_the_mouse_and_another_size(terminal: Terminal, root: Path) -> None:
    start(terminal, "tree", "-i")
    lines = terminal.seen().splitlines()
    row = next(at for at, line in enumerate(lines, start=1) if "Write three" in line)
    terminal.click(12, row)
    terminal.wait(lambda: "Write three" in selected(terminal))
    terminal.wheel(12, row)
    terminal.resize(40, 20)
    terminal.wait(lambda: "─" * 40 in terminal.seen() and "Turn >6<" in terminal.seen())
    terminal.press("C-c")
    terminal.wait(lambda: "left with 0" in terminal.seen())


def test_twenty_columns(terminal: Terminal, root: Path) -> None:
    terminal.resize(20, 8)
    start(terminal, "tui")
    terminal.wait(lambda: "▌" in terminal.seen() and "? keys" in terminal.seen())
    assert all(len(line) <= 20 for line in terminal.seen().splitlines())
    terminal.press("C-c")
    terminal.wait(lambda: "left with 0" in terminal.seen())


def test_what_is_typed_ahead_of_a_line_is_meant_for_it(terminal: Terminal, root: Path) -> None:
    """A command that comes all at once: none of its letters is taken for a key that moves."""
    start(terminal, "tui")
    steps = ((":undolist\r", "last prompt"), ("/u three\r", "/u three: not found"), (":uuu", ":uuu"), ("/ur", "/ur"))
    for text, seen in steps:
        terminal.type(text)
        terminal.wait(lambda seen=seen: seen in terminal.seen())
        terminal.press("Escape")
        terminal.wait(lambda seen=seen: seen not in terminal.seen() or seen.endswith("found"))
    assert (root / "b4").exists() and (root / "a.txt").read_text() == "four\n"
    assert "Turn >6<" in terminal.seen()
    assert json.loads(snap(root, "ops", "--json").stdout)["operations"] == []


def test_nothing_that_is_pasted_is_a_key(terminal: Terminal, root: Path) -> None:
    start(terminal, "tui")
    terminal.type("\x1b[200~abc\x1b[31muuu\nU:undo\n\x1b[201~")
    terminal.type("j")
    terminal.wait(lambda: "Write four" in selected(terminal))
    assert "Go (Enter)" not in terminal.seen()
    terminal.type(":")
    terminal.wait(lambda: terminal.seen().rstrip().splitlines()[-1].startswith(":"))
    terminal.type("\x1b[200~check\x1b[31mpoint\nundo\n\x1b[201~")
    terminal.wait(lambda: ":check[31mpoint" in terminal.seen())
    terminal.press("Escape")
    assert (root / "b4").exists() and json.loads(snap(root, "ops", "--json").stdout)["operations"] == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_to_end_gives_the_terminal_back(terminal: Terminal, root: Path, number: int, status: int) -> None:
    terminal.type(f"{shlex.join([*PROGRAM, 'tui'])} & echo $! >pid; fg; echo left with $?")
    terminal.press("Enter")
    terminal.wait(lambda: "Turn >6<" in terminal.seen())
    os.kill(int((root / "pid").read_text()), number)
    terminal.wait(lambda: f"left with {status}" in terminal.seen())
    assert terminal.modes() == "0 0 1"


def test_it_ends_with_its_terminal(terminal: Terminal, root: Path) -> None:
    """Closed in the middle, with nobody to send a signal: it neither stays nor keeps a processor busy."""
    ours, its = pty.openpty()
    process = subprocess.Popen([*PROGRAM, "tui"], cwd=root, stdin=its, stdout=its, stderr=its)
    try:
        os.close(its)
        seen = b""
        while b"Turn" not in seen:
            seen += os.read(ours, 1 << 16)
        os.close(ours)
        assert process.wait(PATIENCE) == 129
    finally:
        process.kill()
        process.wait()


def test_it_is_drawn_on_the_terminal_wherever_errors_go(terminal: Terminal, root: Path) -> None:
    terminal.type(f"{shlex.join([*PROGRAM, 'tui'])} 2>errors; echo left with $?")
    terminal.press("Enter")
    terminal.wait(lambda: "Turn >6<" in terminal.seen())
    terminal.press("q")
    terminal.wait(lambda: "left with 0" in terminal.seen())
    assert (root / "errors").read_bytes() == b""


def test_a_terminal_that_can_do_nothing_is_refused(terminal: Terminal) -> None:
    terminal.type(f"TERM=dumb {shlex.join([*PROGRAM, 'tui'])}; echo left with $?")
    terminal.press("Enter")
    terminal.wait(lambda: "left with 2" in terminal.seen())
    assert "needs a terminal" in terminal.seen() and "snapstore tree" in terminal.seen()


def test_a_mistake_of_ours_ends_it_without_a_traceback(terminal: Terminal) -> None:
    code = "from snapstore.tui.widgets.tree import TreeView; TreeView.walk = lambda *steps: 1 / 0; "
    code += "import sys; from snapstore.cli.main import main; sys.exit(main(['tui']))"
    terminal.type(f"{shlex.join([sys.executable, '-c', code])}; echo left with $?")
    terminal.press("Enter")
    terminal.wait(lambda: "Turn >6<" in terminal.seen())
    terminal.press("j")
    terminal.wait(lambda: "left with 1" in terminal.seen())
    assert "unexpected: ZeroDivisionError" in terminal.seen()
    assert "Traceback" not in terminal.seen()


def test_colours_of_the_terminal_or_none(terminal: Terminal) -> None:
    """Light where the terminal says that it is; nothing at all with NO_COLOR."""
    grounds = []
    for setting in ("COLORFGBG='15;0'", "COLORFGBG='0;15'"):
        terminal.type(f"export {setting} COLORTERM=truecolor; ")
        start(terminal, "tui")
        grounds.append(set(re.findall(r"\x1b\[[0-9;]*48;2;(\d+);\d+;\d+", terminal.seen(colours=True))))
        terminal.press("q")
        terminal.wait(lambda: "left with 0" in terminal.seen())
        terminal.type("clear")
        terminal.press("Enter")
    assert {int(red) > 150 for red in grounds[0]} == {False}
    assert {int(red) > 150 for red in grounds[1]} == {True}
    terminal.type("export NO_COLOR=1; ")
    start(terminal, "tui")
    codes = re.findall(r"\x1b\[([0-9;]*)m", terminal.seen(colours=True))
    assert set(";".join(codes).split(";")) <= {"", "0", "1", "2", "4", "7", "39", "49"}
    assert "Turn >6<" in selected(terminal)
    terminal.press("q")
    terminal.wait(lambda: "left with 0" in terminal.seen())
