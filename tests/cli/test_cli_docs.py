"""What is written about the commands is true, and what must be quick stays quick."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from agents import Claude
from commands import PROGRAM, snap, snap_json

import snapstore
from snapstore.agents.known.registry import AGENTS
from snapstore.cli.app import SECTIONS, application
from snapstore.cli.options import RawCommand, common_options, travel_options
from snapstore.errors import SnapstoreError
from snapstore.worktree.ignore.rules import MACHINE_MADE

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs/commands.md").read_text()


# Their common options have a table of their own.
MOVES = (
    *("undo", "redo", "goto", "earlier", "later", "switch", "fork"),
    *("revert", "apply", "restore", "discard", "ops undo"),
)


def commands() -> list[tuple[str, click.Command]]:
    """Every command, and those below groups as `turn begin`."""
    found: list[tuple[str, click.Command]] = []
    ctx = click.Context(application)
    for name in application.list_commands(ctx):
        command = application.get_command(ctx, name)
        assert command is not None
        if isinstance(command, click.Group):
            found += [(f"{name} {below}", one) for below, one in command.commands.items()]
        else:
            found.append((name, command))
    return found


def section_of(name: str) -> str:
    """What docs/commands.md says about a command, without its heading."""
    _, heading, after = PAGE.partition(f"## `{name}`\n\n")
    assert heading, name
    return re.split(r"^#+ ", after, maxsplit=1, flags=re.M)[0]


def flags_of(decorator: Callable[[Callable[..., int]], Callable[..., int]]) -> set[str]:
    """The flags of the options that a decorator adds."""
    command = click.command()(decorator(lambda: 0))
    return {flag for param in command.params for flag in param.opts}


def options_in_help(root: Path, *words: str) -> list[str]:
    """Every option that `--help` lists."""
    listing = snap(root, *words, "--help").stdout.partition("Options:")[2].partition("\n\n")[0]
    rows = re.findall(r"^  (-.*?)(?:  |$)", listing, re.M)
    return [flag for row in rows for flag in re.findall(r"--?[\w-]+", row)]


@pytest.mark.parametrize("name", [name for name, command in commands() if not isinstance(command, RawCommand)])
def test_the_page_of_commands_names_every_command_and_every_option(root: Path, name: str) -> None:
    flags = options_in_help(root, *name.split())
    assert "--json" in flags
    section = section_of(name)
    everywhere = {"--help", "-h", *flags_of(common_options), *(flags_of(travel_options) if name in MOVES else ())}
    for flag in flags:
        if flag in everywhere or flag in ("-q", "--quiet"):
            assert f"`{flag}" in PAGE, flag
        else:
            assert f"`{flag}" in section, f"{flag} of {name}"


def test_the_page_of_commands_has_those_without_options_and_the_options_before_a_command(root: Path) -> None:
    for name, command in commands():
        assert command.help is not None
        assert section_of(name).startswith(command.help.partition("\n")[0]), name
    for flag in options_in_help(root):
        assert f"`{flag}" in PAGE


def test_the_page_about_json_has_every_exit_status_that_can_happen() -> None:
    page = (PROJECT / "docs/json.md").read_text()
    for kind in SnapstoreError.__subclasses__():
        if kind.status < 17 and kind.__module__ == "snapstore.errors":
            assert f"| {kind.status} | `{kind.name}` |" in page


def test_the_page_about_storage_lists_the_machine_made_folders_as_they_are() -> None:
    page = (PROJECT / "docs/storage.md").read_text()
    for name in MACHINE_MADE.decode().split():
        assert f"`{name}`" in page


def test_the_help_is_the_same_by_every_door(root: Path) -> None:
    console = Path(sysconfig.get_path("scripts")) / "snapstore"
    if not console.exists():
        pytest.skip("the console script is not installed")
    theirs = subprocess.run([console, "--help"], capture_output=True, text=True, check=True).stdout
    assert theirs == snap(root, "--help").stdout == snap(root, "-h").stdout == snap(root).stdout


def test_the_help_says_every_command_in_a_whole_sentence(root: Path) -> None:
    for family in ("turn", "branch", "ops", "config", "remote"):
        rows = snap(root, family, "--help", COLUMNS="80").stdout.partition("Commands:\n")[2].splitlines()
        assert rows and [row for row in rows if not re.search(r"[^.]\.$", row)] == []
    sections = snap(root, "--help", COLUMNS="80").stdout.partition("\nRecord:\n")[2]
    rows = [row for row in sections.splitlines() if row.startswith("  ")]
    assert len(rows) == sum(map(len, SECTIONS.values()))
    assert [row for row in rows if not re.search(r"[^.]\.$", row)] == []


def test_the_help_groups_the_commands(root: Path) -> None:
    text = snap(root, "--help").stdout
    titles = [row.removesuffix(":") for row in text.splitlines() if re.fullmatch(r"[A-Z][a-z ]+:", row)]
    assert titles == ["Options", *SECTIONS]
    named = [name for names in SECTIONS.values() for name in names]
    assert len(named) == len(set(named))
    files = {path.stem.rstrip("_").replace("_", "-") for path in (PROJECT / "snapstore/cli/commands").glob("[a-z]*.py")}
    assert set(named) == files, "one file per command, and every command in the help"


@pytest.mark.parametrize("name", ["", "undo", "turn", "turn begin", "branch merge", "git", "hook", "rewind", "help"])
def test_help_as_a_command_says_the_same_as_the_option(root: Path, name: str) -> None:
    text = snap(root, "help", *name.split()).stdout
    assert " ".join(text.split()).startswith(" ".join(f"Usage: snapstore {name}".split()))
    if name not in ("git", "hook"):
        assert text == snap(root, *name.split(), "--help").stdout
    document = snap_json(root, "help", *name.split(), "--json")
    assert (document["help"].strip(), document["command"]) == (text.strip(), f"snapstore {name}".strip())


def test_help_of_what_is_no_command(root: Path) -> None:
    done = snap(root, "help", "unod", status=2)
    assert "No such command 'unod'" in done.stderr and "Did you mean `undo`" in done.stderr
    assert "No such command 'begni'" in snap(root, "help", "turn", "begni", status=2).stderr
    assert "`snapstore undo` has no subcommands." in snap(root, "help", "undo", "x", status=2).stderr


def test_the_version_is_told_in_each_way(root: Path) -> None:
    told = f"snapstore {snapstore.__version__}\n"
    for words in (["-V"], ["--version"], ["version"]):
        assert snap(root, *words).stdout == told
    assert snap_json(root, "version", "--json") == {"version": snapstore.__version__}


def test_the_program_runs_twice_in_one_process(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from snapstore.cli.main import main

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
        assert all(agent in listed for agent in AGENTS), "which agents there are"


def test_the_examples_of_the_library_run(root: Path) -> None:
    first, *others = re.findall(r"```python\n(.*?)```", (PROJECT / "docs/library.md").read_text(), re.S)
    turn = first.replace("    ...", "    open('login.py', 'a').write('pass\\n')  #")
    (conversation,) = re.findall(r'store.session\("([0-9a-f-]{36})"\)', "".join(others))
    Claude(root, conversation).whole_turn("Add a page", [("page.py", "pass\n")])
    script = "".join([turn, turn, *others])
    done = subprocess.run([sys.executable, "-c", script], cwd=root, check=True, capture_output=True, text=True)
    assert done.stdout.startswith("2 [b'login.py'] None\n") and "Add a page" in done.stdout
    node = snap_json(root, "show", "#1", "--session", "s1", "--json")
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
    assert completions(root, "s") == ["status", "show", "sessions", "switch", "stats", "shell-init"]
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
from snapstore.cli.main import main
status = main(sys.argv[1:])
sys.stderr.write("\\n" + ",".join(sys.modules))
sys.exit(status)
"""


# The engine and what it loads: needed as soon as the store is opened.
ENGINE = {"dulwich", "subprocess", "typing", "logging", "dataclasses", "inspect"}
HEAVY = {"click", "pydantic", "rich", "asyncio"}


def loaded(root: Path, *arguments: str, feed: str = "") -> str:
    command = [sys.executable, "-c", LOADED, *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, input=feed)
    return done.stderr.splitlines()[-1]


# What no ordinary command needs: screens and servers, the rewriting of history, and what embedding programs open.
FOR_OTHERS = {
    *("rich", "textual", "fastapi", "uvicorn", "mcp", "asyncio"),
    *("dulwich.repo", "dulwich.worktree", "snapstore.timeline.forget.forget"),
}


@pytest.mark.parametrize(
    "words",
    [["turn", "begin"], ["log"], ["log", "--json"], ["status"], ["undo", "--preview"], ["run", "-q", "--", "true"]],
)
def test_an_ordinary_command_loads_nothing_that_is_for_others(root: Path, words: list[str]) -> None:
    snap(root, "init")
    assert not FOR_OTHERS & set(loaded(root, *words).split(","))


def test_an_agents_hook_loads_no_command_line_and_the_engine_only_to_record(root: Path) -> None:
    heavy = HEAVY | ENGINE

    def say(event: str, **fields: object) -> str:
        payload = {"session_id": "s1", "cwd": str(root), "hook_event_name": event, "prompt_id": "p1", **fields}
        return ",".join(sorted(heavy & set(loaded(root, "hook", "claude", feed=json.dumps(payload)).split(","))))

    edit = {"tool_name": "Edit", "tool_input": {"file_path": str(root / "a")}}
    snap(root, "init")
    assert say("PreToolUse", tool_name="Read", tool_input={"file_path": str(root / "a")}) == ""
    heavy = HEAVY
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
    assert "The store is intact." in done.stdout
    assert "(claude" in done.stdout
    assert "Pushed 3 turns to origin." in done.stdout and "✓ Forgot 1 file" in done.stdout
    assert done.stdout.rstrip().endswith("log")
    assert "any key" not in done.stdout
    assert list(scratch.iterdir()) == []
