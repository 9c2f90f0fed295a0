"""What is written about the commands is true, and what must be quick stays quick."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from test_cli import PROGRAM, snap, snap_json

from snapstore.agents.installations import INSTALLATIONS
from snapstore.cli import moves
from snapstore.cli.options import COMMON, PLACES, Command, load
from snapstore.errors import SnapstoreError
from snapstore.worktree.ignore import MACHINE_MADE

PROJECT = Path(__file__).parent.parent
README = (PROJECT / "README.md").read_text()


# Their common options have a table of their own.
MOVES = ("undo", "redo", "goto", "earlier", "later", "switch", "revert", "apply", "restore", "ops undo", "fork")


def commands() -> list[tuple[str, Command]]:
    found: list[tuple[str, Command]] = []
    for name in PLACES:
        described = load(name)
        assert described is not None
        if isinstance(described, Command):
            found.append((name, described))
        else:
            found += [(f"{name} {below}", command) for below, command in described.commands.items()]
    return found


def options_in_help(root: Path, *words: str) -> list[str]:
    """Every option that `--help` lists."""
    listing = snap(root, *words, "--help").stdout.partition("Options:")[2].partition("Commands:")[0]
    rows = re.findall(r"^  (-.*?)(?:  |$)", listing, re.M)
    return [flag for row in rows for flag in re.findall(r"--?[\w-]+", row)]


@pytest.mark.parametrize("name", [name for name, command in commands() if not command.raw])
def test_the_readme_names_every_command_and_every_option(root: Path, name: str) -> None:
    flags = options_in_help(root, *name.split())
    assert "--json" in flags
    row = next(row for row in README.splitlines() if row.startswith((f"| `{name}`", f"| `{name} ")))
    shared = (*COMMON, *(moves.TRAVEL if name in MOVES else ()))
    everywhere = {"--help", "-h", *(flag for option in shared for flag in option.flags)}
    for flag in flags:
        if flag in everywhere or flag in ("-q", "--quiet"):
            assert f"`{flag}" in README, flag
        else:
            assert f"`{flag}" in row, f"{flag} of {name}"


def test_the_readme_names_the_options_before_the_command(root: Path) -> None:
    for flag in options_in_help(root):
        assert flag in README


def test_the_readme_has_every_exit_status_that_can_happen() -> None:
    for kind in SnapstoreError.__subclasses__():
        if kind.status < 17 and kind.__module__ == "snapstore.errors":
            assert f"| {kind.status} | `{kind.name}` |" in README


def test_the_readme_lists_the_machine_made_folders_as_they_are() -> None:
    for name in MACHINE_MADE.decode().split():
        assert f"`{name}`" in README


def test_the_help_is_the_same_by_every_door(root: Path) -> None:
    console = Path(sysconfig.get_path("scripts")) / "snapstore"
    if not console.exists():
        pytest.skip("the console script is not installed")
    theirs = subprocess.run([console, "--help"], capture_output=True, text=True, check=True).stdout
    assert theirs == snap(root, "--help").stdout == snap(root, "-h").stdout == snap(root).stdout


def test_the_help_says_every_command_in_a_whole_sentence(root: Path) -> None:
    for family in ((), ("turn",), ("branch",), ("ops",), ("config",), ("remote",)):
        rows = snap(root, *family, "--help", COLUMNS="80").stdout.partition("Commands:\n")[2].splitlines()
        assert rows and [row for row in rows if not row.endswith(".")] == []


def test_the_program_runs_twice_in_one_process(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from snapstore.cli import main

    commands()  # all of them are loaded
    assert (main(["--version"]), main(["--version"])) == (0, 0)
    assert capsys.readouterr().out.count("snapstore ") == 2


def test_every_command_explains_itself(root: Path) -> None:
    """`git` alone hands everything to git."""
    for name, command in commands():
        if name != "git":
            assert " ".join(snap(root, *name.split(), "--help").stdout.split()).startswith(f"Usage: snapstore {name} ")
            assert snap(root, *name.split(), "-h").stdout.startswith("Usage:"), name
        assert command.help
    for name in ("connect", "disconnect"):
        listed = " ".join(snap(root, name, "--help").stdout.split())
        assert all(agent in listed for agent in INSTALLATIONS), "which agents there are"


def test_the_readmes_library_example_runs(root: Path) -> None:
    code = re.search(r"```python\n(.*?)```", README, re.S)
    assert code is not None
    script = code[1].replace("    ...", "    open('login.py', 'w').write('pass\\n')  #")
    subprocess.run([sys.executable, "-c", script], cwd=root, check=True)
    node = snap_json(root, "show", "1", "--session", "s1", "--json")
    assert (node["prompt"], node["files"][0]["path"]) == ("Add a login function", "login.py")


# Completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_completion_script(root: Path, shell: str) -> None:
    script = snap(root, "completion", shell).stdout
    assert f"_SNAPSTORE_COMPLETE={shell}_complete" in script
    document = snap_json(root, "completion", shell, "--json")
    assert (document["shell"], document["script"].strip()) == (shell, script.strip())
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def completions(root: Path, *words: str) -> list[str]:
    done = snap(
        root,
        _SNAPSTORE_COMPLETE="bash_complete",
        COMP_WORDS=" ".join(["snapstore", *words]),
        COMP_CWORD=str(len(words)),
    )
    return [row.partition(",")[2] for row in done.stdout.splitlines() if row]


def test_completion_knows_commands_options_and_sessions(root: Path) -> None:
    snap(root, "turn", "begin", "--session", "s1")
    assert completions(root, "s") == ["status", "sessions", "show", "switch", "stats", "shell-init"]
    assert completions(root, "turn", "") == ["begin", "touch", "end", "cancel"]
    assert "--read-data" in completions(root, "check", "--")
    assert completions(root, "log", "--session", "") == ["s1"]
    assert completions(root, "completion", "") == ["bash", "zsh", "fish"]
    assert completions(root.parent, "log", "--session", "") == []


def test_a_real_bash_completes(root: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    script = snap(root, "completion", "bash").stdout
    asking = (
        f"{script}\nCOMP_WORDS=(snapstore compl) COMP_CWORD=1\n_snapstore_completion run_snapstore\necho $COMPREPLY\n"
    )
    door = root / "run_snapstore"
    door.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    door.chmod(0o755)
    done = subprocess.run(
        [bash, "--norc", "-c", asking],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": f"{root}:{os.environ['PATH']}"},
    )
    assert done.stdout.strip() == "completion", done.stderr


# The hot path

LOADED = """
import os, sys
from snapstore.cli import main
status = main(sys.argv[1:])
heavy = {"click", "pydantic", "dulwich", "rich", "subprocess", "typing", "asyncio", "platformdirs", "logging"}
sys.stderr.write(",".join(sorted(heavy & set(sys.modules))))
sys.exit(status)
"""


def loaded(root: Path, *arguments: str, feed: str = "") -> str:
    command = [sys.executable, "-c", LOADED, *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, input=feed)
    return done.stderr.splitlines()[-1] if done.stderr else ""


def test_a_hook_loads_nothing_that_a_turn_does_not_need(root: Path) -> None:
    snap(root, "init")
    assert loaded(root, "turn", "begin", "-m", "Go", "--session", "s1", "-q") == ""
    assert loaded(root, "turn", "touch", "--session=s1", "--json", "a") == ""
    (root / "a").write_text("1")
    assert loaded(root, "-C", ".", "turn", "end", "--session", "s1", "--json") == ""
    assert loaded(root, "turn", "begin", "--json") == ""
    assert loaded(root, "turn", "end", "--scan") == ""
    assert loaded(root, "run", "-q", "--", "true") == ""
    assert loaded(root, "run", "--json", "--", "true") == ""


def test_an_agents_hook_loads_as_little(root: Path) -> None:
    def say(event: str, **fields: object) -> str:
        payload = {"session_id": "s1", "cwd": str(root), "hook_event_name": event, "prompt_id": "p1", **fields}
        return loaded(root, "hook", "claude", feed=json.dumps(payload))

    edit = {"tool_name": "Edit", "tool_input": {"file_path": str(root / "a")}}
    snap(root, "init")
    assert say("PreToolUse", tool_name="Read", tool_input={"file_path": str(root / "a")}) == ""
    assert say("SessionStart", source="startup") == ""
    assert say("UserPromptSubmit", prompt="Go") == ""
    assert say("PreToolUse", **edit) == ""
    assert say("PostToolUse", **edit) == ""
    assert say("Stop") == ""


def test_click_loads_only_the_command_that_is_asked_for(root: Path) -> None:
    code = (
        "import sys\nfrom snapstore.cli.app import run\nrun(['log', '--help'])\n"
        "sys.stderr.write(' '.join(name for name in sys.modules if name.startswith('snapstore.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert "snapstore.cli.commands.log" in done.stderr.split()
    assert not {"snapstore.cli.commands.run", "snapstore.cli.commands.status"} & set(done.stderr.split())


BOTH = [
    ["log", "-n", "3", "--stat"],
    ["-C", "x", "--json", "log", "--session=s", "-C", "y"],
    ["run", "-m", "Go", "ls", "-l", "--", "x"],
    ["run", "--", "ls", "--json"],
    ["run", "--json", "--", "-x"],
    ["turn", "--json", "touch", "a", "--after", "--", "-b", "--shell"],
    ["turn", "end", "-m", "-", "--scan"],
    ["diff", "1", "2", "--", "a", "--json"],
    ["diff", "--", "--"],
    ["--json", "git", "--json", "-C", "x", "--"],
    ["init", "--max-file-size=1.5GiB", "--adopt", "--from", "o", "dir"],
    ["show", "--", "-5"],
]


@pytest.mark.parametrize("arguments", BOTH, ids=" ".join)
def test_both_parsers_understand_the_same(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import snapstore.cli.app as app
    from snapstore.cli.parser import parse

    seen: list[object] = []

    def remember(command: Command, levels: list[dict[str, object]], own: dict[str, object]) -> int:
        shown = [{key: value for key, value in level.items() if value} for level in levels]
        seen.append((command.name, [level for level in shown if level], own))
        return 0

    monkeypatch.setattr(app, "carry_out", remember)
    small = parse(arguments)
    assert small is not None
    remember(*small)
    assert app.run(arguments) == 0
    assert seen[0] == seen[1]


# The walk-through


def test_the_walk_through_runs_to_its_end_and_leaves_nothing(tmp_path: Path) -> None:
    door = tmp_path / "door"
    door.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    door.chmod(0o755)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = subprocess.run(
        [PROJECT / "scripts/try"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "SNAPSTORE_BIN": str(door), "TMPDIR": str(scratch)},
    )
    assert done.returncode == 0, done.stdout
    assert "$ snapstore show 2\n" in done.stdout
    assert "The store is whole." in done.stdout
    assert "(claude" in done.stdout
    assert "Pushed 3 turns to origin." in done.stdout and "✓ Forgot 1 file" in done.stdout
    assert done.stdout.rstrip().endswith("log")
    assert "any key" not in done.stdout
    assert list(scratch.iterdir()) == []
