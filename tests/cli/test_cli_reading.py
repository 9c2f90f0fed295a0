"""How a command line is read: common options at every level, groups, odd words, mistakes and completion."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import BashComplete

from snapstore.cli.app import application
from snapstore.cli.main import main

Run = Callable[..., str]


@pytest.fixture
def run(root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in the project, in this process, and return what it printed."""

    def run(*arguments: str, status: int = 0) -> str:
        monkeypatch.chdir(root)
        capfd.readouterr()
        assert main(arguments) == status
        printed = capfd.readouterr()
        return printed.out if status == 0 else printed.out + printed.err

    return run


@pytest.fixture
def turns(root: Path, run: Run) -> Run:
    """A session `s1` with two turns, a checkpoint and a second branch."""
    for number in (1, 2):
        (root / "a").write_text(f"{number}\n")
        run("turn", "begin", "-m", f"Turn {number}", "--session", "s1", "-q")
        (root / "b").write_text(f"{number}\n")
        run("turn", "end", "--session", "s1", "-q", "--scan")
    run("checkpoint", "before-login")
    run("undo", "--yes")
    run("turn", "begin", "-m", "Another way", "--session", "s1", "-q")
    (root / "c").write_text("3\n")
    run("turn", "end", "--session", "s1", "-q", "--scan")
    return run


# Common options.


@pytest.mark.parametrize(
    "words",
    [
        ["-C", "one", "config", "-C", "two", "get", "-C", "..", "max_branches", "-C", "two", "--json"],
        ["--json", "-C", "one", "-C", "two", "config", "get", "max_branches"],
        ["-C", "one/two", "config", "--json", "get", "max_branches"],
        ["config", "get", "--json", "-C", "one", "-C", "two", "max_branches"],
    ],
)
def test_common_options_stand_at_every_level_and_folders_add_up(root: Path, run: Run, words: list[str]) -> None:
    (root / "one/two").mkdir(parents=True)
    run("init", "-q", "--max-branches", "7", "one/two")
    assert json.loads(run(*words))["value"] == 7


def test_the_innermost_session_wins(turns: Run) -> None:
    assert json.loads(turns("--session", "nobody", "log", "--json", "--session", "s1"))["session"] == "s1"
    assert json.loads(turns("--session", "s1", "log", "--json"))["session"] == "s1"
    turns("--session", "s1", "log", "--session", "nobody", status=16)


def test_a_word_alone_is_its_default_command(turns: Run) -> None:
    operations = turns("ops", "list", "--json")
    assert turns("ops", "--json") == turns("--json", "ops") == turns("ops", "-n", "0", "--json") == operations
    assert json.loads(turns("ops", "--session", "undo", "--json"))["operations"] == [], "`undo` is a session here"
    assert json.loads(turns("remote", "--json"))["remotes"] == []
    assert turns("ops", "-C.", "list", "--json") == turns("ops", "--session=s1", "list", "--json") == operations
    assert turns("config", "--json") == turns("config", "list", "--json")
    assert "No such command 'lst'" in turns("ops", "lst", status=2)
    assert "--nothing" in turns("ops", "--nothing", status=2)
    assert turns("ops", "--help").startswith("Usage: snapstore ops [OPTIONS] COMMAND")


def test_merge_takes_no_value_from_the_next_word(root: Path, turns: Run) -> None:
    assert json.loads(turns("undo", "--merge", "2", "--json", "--yes"))["turn"] == 0
    assert not (root / "b").exists() and not (root / "c").exists()
    assert "'lines' is not one of 'merge', 'markers'" in turns("redo", "--merge=lines", status=2)


def test_a_usage_error_is_a_document_with_json(run: Run) -> None:
    document = json.loads(run("undo", "--nothing", "--json", status=2))
    assert document == {
        "error": "usage",
        "message": "No such option '--nothing'.",
        "hint": "See `snapstore undo --help`.",
    }
    assert run("undo", "--nothing", "--", "--json", status=2).startswith("snapstore: No such option")


# Words that are passed on.


def understood(*words: str) -> dict[str, Any]:
    """The own values of a command, as click reads them."""
    ctx = application.make_context("snapstore", list(words))
    while isinstance(ctx.command, click.Group):
        name, command, rest = ctx.command.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
        assert command is not None
        ctx = command.make_context(name, rest, parent=ctx)
    return {name: value for name, value in ctx.params.items() if value not in (None, False, ())}


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("run -m Go ls -l -- x", {"prompt": "Go", "command": ("ls", "-l", "--", "x")}),
        ("run -- ls --json", {"command": ("ls", "--json")}),
        ("run --json -- -x", {"command": ("-x",)}),
        ("turn --json touch a --after -- -b --shell", {"paths": ("a", "-b", "--shell"), "after": True}),
        ("turn end -m - --scan", {"reply": "-", "scan": True}),
        ("diff 1 2 -- a --json", {"a": "1", "b": "2", "paths": ("a", "--json")}),
        ("diff -- --", {"paths": ("--",)}),
        ("--json git --json -C x --", {"arguments": ("--json", "-C", "x", "--")}),
        ("git -- -h", {"arguments": ("--", "-h")}),
        (
            "init --max-file-size=1.5GiB --adopt --from o dir",
            {"max_file_size": 3 << 29, "adopt": True, "source": "o", "directory": "dir"},
        ),
        ("show -- -5", {"turn": "-5"}),
        ("log -n 3 --stat", {"number": 3, "stat": True}),
        ("undo --merge 2", {"merge": "merge", "number": 2}),
        ("undo --merge=markers", {"merge": "markers"}),
        ("restore 2 --merge -- --merge", {"turn": "2", "merge": "merge", "paths": ("--merge",)}),
        (
            "undo 2 --merge=markers -y --ours a --ours=b",
            {"number": 2, "merge": "markers", "yes": True, "ours": ("a", "b")},
        ),
        ("rewind 3 --exact", {"target": "3", "exact": True}),
        ("redo --all --json", {"everything": True}),
        ("restore 3 --force -- a --merge", {"turn": "3", "force": True, "paths": ("a", "--merge")}),
        ("ops", {}),
        ("ops -n 3", {"number": 3}),
        ("--json ops list -n 1", {"number": 1}),
        ("ops --session=s undo 7 --merge", {"operation": 7, "merge": "merge"}),
        ("recover --back", {"back": True}),
    ],
)
def test_words_arrive_as_they_were_typed(words: str, values: dict[str, Any]) -> None:
    assert understood(*words.split()) == values


def test_a_path_without_two_dashes_is_told_so(run: Run) -> None:
    assert "Too many arguments (c): paths come after `--`." in run("diff", "a", "b", "c", status=2)


# Mistakes.


@pytest.mark.parametrize(
    ("words", "status", "meant"),
    [
        (["unod"], 2, "undo"),
        (["branch", "renmae"], 2, "rename"),
        (["undo", "--forec"], 2, "--force"),
        (["undo", "--merge=marker"], 2, "markers"),
        (["connect", "claud"], 2, "claude"),
        (["completion", "bsh"], 2, "bash"),
        (["goto", "before-logn"], 16, "before-login"),
        (["switch", "mian"], 16, "main"),
        (["branch", "archive", "mian"], 16, "main"),
        (["checkpoint", "--delete", "before-logn"], 16, "before-login"),
        (["log", "--session", "s-1"], 16, "s1"),
        (["config", "get", "max-branch"], 16, "max_branches"),
        (["import", "x", "--agent", "codx"], 16, "codex"),
        (["push", "orign"], 16, "origin"),
    ],
)
def test_a_mistyped_name_is_answered_with_what_may_be_meant(
    turns: Run, words: list[str], status: int, meant: str, tmp_path: Path
) -> None:
    turns("remote", "add", "origin", str(tmp_path / "shared.git"))
    error = json.loads(turns(*words, "--json", status=status))
    assert error["hint"].startswith("Did you mean ") and meant in error["hint"].partition("?")[0]


def test_what_looks_like_nothing_gets_no_suggestion(turns: Run) -> None:
    assert "Did you mean" not in turns("xyzzy", status=2) + turns("goto", "xyzzy", status=16)


# Completion.


def completed(*words: str) -> list[str]:
    """What a shell would offer for the last of these words."""
    shell = BashComplete(application, {}, "snapstore", "_SNAPSTORE_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


def test_completion_knows_what_is_in_the_store(turns: Run, tmp_path: Path) -> None:
    turns("remote", "add", "origin", str(tmp_path / "shared.git"))
    assert completed("log", "--session", "") == ["s1"]
    branches = completed("branch", "rename", "")
    assert "main" in branches and len(branches) == 2
    assert completed("switch", "ma") == [name for name in branches if name.startswith("ma")]
    assert completed("goto", "bef") == ["before-login"]
    assert completed("goto", "")[-2:] == ["2", "1"]
    assert completed("checkpoint", "--delete", "") == ["before-login"]
    assert completed("ops", "undo", "") == ["2", "1"]
    assert completed("push", "") == completed("remote", "remove", "o") == ["origin"]
    assert "max_branches" in completed("config", "set", "max")
    assert completed("connect", "cl") == ["claude", "cline"]
    assert completed("import", "--agent", "cod") == ["codex"]
    assert completed("undo", "--merge=m") == ["merge", "markers"]
    assert completed("help", "und") == ["undolist", "undo"]
    assert completed("help", "turn", "b") == ["begin"]
    assert completed("rest") == ["restore"]
    assert "main" in completed("diff", "") and completed("diff", "--", "som") == ["som"], "files, by the shell itself"


def test_completion_follows_the_options_before_it(
    root: Path, turns: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert completed("log", "--session", "") == []
    assert completed("-C", str(root), "log", "--session", "") == ["s1"]
    assert completed("-C", str(root), "--session", "s1", "goto", "bef") == ["before-login"]
    assert completed("-C", str(root), "--session", "nobody", "goto", "bef") == []


def test_completion_without_a_store_makes_none_and_says_nothing(
    root: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    home = Path(os.environ["SNAPSTORE_HOME"])
    for words in (["goto", ""], ["ops", "undo", ""], ["push", ""], ["--session", ""], ["-C", "nowhere", "show", ""]):
        assert completed(*words) == []
    assert not home.exists() or list(home.iterdir()) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("place", ["12", "", "-1", "many"])
def test_completion_never_fails(
    root: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], place: str
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setenv("_SNAPSTORE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "snapstore 'goto --nothing x y z")
    monkeypatch.setenv("COMP_CWORD", place)
    assert main([]) == 0
    assert capfd.readouterr().err == ""


def test_completion_survives_a_damaged_store(root: Path, turns: Run) -> None:
    for config in Path(os.environ["SNAPSTORE_HOME"]).rglob("*"):
        if config.is_file():
            config.chmod(0o600)
            config.write_bytes(b"\0\1 not a store")
    for words in (["goto", ""], ["ops", "undo", ""], ["branch", "rename", ""], ["--session", ""]):
        assert completed(*words) == []
