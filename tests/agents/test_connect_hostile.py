"""Connecting where something is in the way: broken settings, traps, full disks, others at work, a sudden end."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import PROGRAM, snap_json
from helpers import killed_at, needs_strace, powerless
from test_connect import PROGRAM_WORDS, commands, everything, here, place, put, value_of

from snapstore.agents.install.connect import SCOPES, Environment, connect, connections, disconnect
from snapstore.agents.known.registry import AGENTS
from snapstore.base.own_command import ENTRY
from snapstore.errors import Conflict, Corrupt, Failed, SnapstoreError, Unsafe

__all__ = ["here"]  # the fixture

OWN = ("opencode", "cline")


# Settings that are not what they should be

BROKEN = {
    "cut off": ('{\n  "model": "opus",\n', 1),
    "not JSON": ("model: opus\n", 1),
    "single quotes": ("{\n  'model': 1}", 2),
    "no quotes": ("{\n\n model: 1}", 3),
    "no comma": ('{\n  "a": 1\n  "b": 2\n}', 3),
    "two commas": ('{"a": [1,, 2]}', 1),
    "a comma first": ('{\n,"a": 1}', 2),
    "no colon": ('{\n"a" 1}', 2),
    "wrong bracket": ('{"a": [1}\n]', 1),
    "two documents": ("{}\n{}", 2),
    "text behind": ("{}\n\nx", 3),
    "open text": ('{\n "a": "b\n}', 2),
    "open comment": ("{\n /* }", 2),
    "bad escape": ('{\n "a": "\\x"}', 2),
    "bad number": ('{\n "a": 01}', 2),
    "a list": ('\n\n[{"hooks": {}}]', 3),
    "a text": ('"hooks"', 1),
    "null": ("null", 1),
    "hooks is a list": ('{\n  "a": 1,\n  "hooks": []}', 3),
    "hooks is null": ('{\n  "hooks": null}', 2),
    "hooks twice": ('{\n  "hooks": {},\n  "hooks": {}\n}', 3),
    "hooks twice, once in disguise": ('{\n  "hooks": {},\n  "\\u0068ooks": {}\n}', 3),
    "an event is an object": ('{"hooks": {\n"Stop": {}}}', 2),
    "an event is a text": ('{"hooks": {\n\n"Stop": "x"}}', 3),
    "an event twice": ('{"hooks": {"Stop": [],\n"Stop": []}}', 2),
    "not UTF-8": (b'{\n  "a": "caf\xe9"\n}', 2),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), 1),
    "a surrogate": (b'{"a": "\xed\xa0\x80"}', 1),
    "zeros": (b"\0" * 100, 1),
    "very deep": ("[" * 30_000, 1),
    "another mark within": ("{}\ufeff", 1),
}


@pytest.mark.parametrize(("data", "line"), BROKEN.values(), ids=BROKEN.keys())
def test_settings_that_cannot_be_understood_are_refused_by_line(
    here: Environment, data: str | bytes, line: int
) -> None:
    put(place(here, "claude", "user"), data)
    before = everything(here)
    with pytest.raises(Corrupt) as refused:
        connect(here, "claude", "user", PROGRAM_WORDS)
    assert f"settings.json, line {line}: " in refused.value.message
    assert refused.value.details == {"line": line}
    assert "Nothing was written" in refused.value.hint
    assert everything(here) == before
    listed = connections(here.home, here.cwd, here.environ)[0].places
    # None where it is plain that we are not in it.
    assert [found.problem for found in listed] in ([refused.value.message], [])


def test_another_version_of_hooks_is_not_guessed_at(here: Environment) -> None:
    put(place(here, "cursor", "user"), '{\n"version": 2, "hooks": {}}')
    with pytest.raises(Corrupt, match="line 2"):
        connect(here, "cursor", "user", PROGRAM_WORDS)


def test_deep_and_wide_settings_are_no_trouble(here: Environment) -> None:
    deep = '{"a": ' + "[" * 20_000 + "]" * 20_000 + ', "big": ' + "9" * 10_000 + "}"
    path = put(place(here, "claude", "user"), deep)
    connect(here, "claude", "user", PROGRAM_WORDS)
    disconnect(here, "claude", SCOPES)
    assert path.read_text() == deep


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["a fifo", "a folder"])
@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_no_ordinary_file_is_refused(here: Environment, agent: str, make: Callable[[str], None]) -> None:
    """G-09."""
    path = place(here, agent, "user")
    path.parent.mkdir(parents=True)
    make(str(path))
    with pytest.raises(Unsafe, match="not an ordinary file"):
        connect(here, agent, "user", PROGRAM_WORDS)
    assert list(path.parent.iterdir()) == [path]


def test_a_file_of_enormous_size_is_refused(here: Environment) -> None:
    path = put(place(here, "claude", "user"), "{}")
    os.truncate(path, 11_000_000)
    with pytest.raises(Unsafe, match="larger than 10 MB"):
        connect(here, "claude", "user", PROGRAM_WORDS)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"#!/bin/sh\necho mine\n", b"", b"\xff\xfe\0", b"one line"])
@pytest.mark.parametrize("agent", OWN)
def test_a_foreign_file_of_our_name_is_a_conflict_and_nothing_is_written(
    here: Environment, agent: str, content: bytes
) -> None:
    theirs = put(
        place(here, agent, "project").with_name("snapstore.js" if agent == "opencode" else "TaskError"), content
    )
    before = everything(here)
    with pytest.raises(Conflict) as refused:
        connect(here, agent, "project", PROGRAM_WORDS)
    assert str(theirs) in refused.value.message
    assert everything(here) == before
    assert disconnect(here, agent, SCOPES).changes == []
    assert connections(here.home, here.cwd, here.environ)[AGENTS.index(agent)].places == []


@pytest.mark.parametrize("agent", OWN)
def test_a_script_of_ours_that_somebody_worked_on_is_not_overwritten_nor_removed(here: Environment, agent: str) -> None:
    path = Path(connect(here, agent, "user", PROGRAM_WORDS).paths[-1])
    path.write_text(path.read_text() + "\nmine\n")
    before = everything(here)
    for act in (lambda: connect(here, agent, "user", ["/x/snapstore"]), lambda: disconnect(here, agent, SCOPES)):
        with pytest.raises(Conflict, match="changed by hand"):
            act()
        assert everything(here) == before
    [found] = connections(here.home, here.cwd, here.environ)[AGENTS.index(agent)].places
    assert "changed by hand" in found.problem


# Links


def test_settings_behind_a_link_are_changed_where_they_are(here: Environment, tmp_path: Path) -> None:
    """Dotfiles live in another folder: the link stays a link, the mode stays."""
    real = put(tmp_path / "dotfiles/claude.json", '{"model": "opus"}\n')
    real.chmod(0o640)
    link = place(here, "claude", "user")
    link.parent.mkdir()
    link.symlink_to(real)
    before = everything(here)
    connect(here, "claude", "user", PROGRAM_WORDS)
    assert link.is_symlink() and "snapstore hook claude" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    backup = tmp_path / "dotfiles/claude.json.snapstore-backup"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o640
    disconnect(here, "claude", SCOPES)
    assert link.is_symlink() and os.readlink(link) == str(real)
    assert everything(here) == before
    assert sorted(os.listdir(real.parent)) == ["claude.json"]


def test_a_link_to_nothing_yet_is_followed_too(here: Environment, tmp_path: Path) -> None:
    link = place(here, "claude", "user")
    link.parent.mkdir()
    link.symlink_to(tmp_path / "later/settings.json")
    connect(here, "claude", "user", PROGRAM_WORDS)
    assert (tmp_path / "later/settings.json").is_file() and link.is_symlink()
    disconnect(here, "claude", SCOPES)
    assert not (tmp_path / "later").exists() and link.is_symlink()


def test_a_link_in_a_circle_is_refused(here: Environment) -> None:
    link = place(here, "claude", "user")
    link.parent.mkdir()
    link.symlink_to(link)
    with pytest.raises(SnapstoreError) as refused:
        connect(here, "claude", "user", PROGRAM_WORDS)
    assert isinstance(refused.value, Unsafe | Failed)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("what", ["the file", "the folder"])
def test_a_projects_link_cannot_lead_a_write_out_of_it(
    here: Environment, tmp_path: Path, agent: str, what: str
) -> None:
    """G-09: a project that was cloned from a stranger must not choose which of our files is written."""
    outside = put(tmp_path / "outside/settings.json", "{}")
    path = place(here, agent, "project")
    if what == "the file":
        path.parent.mkdir(parents=True)
        path.symlink_to(outside)
    else:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        path.parent.symlink_to(outside.parent)
    before = everything(here)
    with pytest.raises(Unsafe, match="leads out of the project"):
        connect(here, agent, "project", PROGRAM_WORDS)
    assert everything(here) == before
    assert (outside.read_text(), os.listdir(outside.parent)) == ("{}", ["settings.json"])


@pytest.mark.parametrize("trap", [".snapstore-new", ".snapstore-backup"])
def test_links_laid_for_our_own_names_are_not_followed(here: Environment, tmp_path: Path, trap: str) -> None:
    """G-09."""
    outside = put(tmp_path / "outside", "precious")
    path = put(place(here, "claude", "project"), '{"model": "opus"}')
    os.symlink(outside, f"{path}{trap}")
    connect(here, "claude", "project", PROGRAM_WORDS)
    assert outside.read_text() == "precious"
    assert Path(f"{path}.snapstore-backup").read_text() == '{"model": "opus"}'
    disconnect(here, "claude", SCOPES)
    assert (path.read_text(), outside.read_text()) == ('{"model": "opus"}', "precious")


def test_a_home_folder_is_no_project(here: Environment) -> None:
    """Its settings are those of all projects: the scope would be another than the one asked for."""
    at_home = Environment(here.home, here.environ["HOME"], here.environ)
    with pytest.raises(Unsafe, match="home folder"):
        connect(at_home, "claude", "project", PROGRAM_WORDS)
    connect(at_home, "claude", "user", PROGRAM_WORDS)
    [found] = connections(at_home.home, at_home.cwd, at_home.environ)[0].places
    assert found.scope == "user"
    assert len(disconnect(at_home, "claude", SCOPES).changes) == 1


# Modes


def test_new_files_are_the_users_own_and_old_ones_keep_their_mode(here: Environment) -> None:
    """G-09."""
    connect(here, "claude", "user", PROGRAM_WORDS)
    path = place(here, "claude", "user")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    old = put(place(here, "gemini", "user"), "{}")
    old.chmod(0o604)
    connect(here, "gemini", "user", PROGRAM_WORDS)
    assert stat.S_IMODE(old.stat().st_mode) == 0o604
    disconnect(here, "gemini", SCOPES)
    assert stat.S_IMODE(old.stat().st_mode) == 0o604
    connect(here, "claude", "project", PROGRAM_WORDS)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(place(here, "claude", "project").stat().st_mode) == 0o666 & ~mask


# A disk that does not want to


def test_a_folder_that_cannot_be_written(here: Environment) -> None:
    path = put(place(here, "claude", "user"), '{"model": "opus"}')
    before = everything(here)
    path.parent.chmod(0o555)
    try:
        done = subprocess.run(
            [*powerless(), *PROGRAM, "connect", "claude", "--json"],
            cwd=here.cwd,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        path.parent.chmod(0o755)
    assert done.returncode == 1, done.stdout
    assert (json.loads(done.stdout)["error"], "Permission denied" in done.stdout) == ("failed", True)
    assert everything(here) == before


def test_a_file_where_a_folder_should_be(here: Environment) -> None:
    put(Path(here.environ["HOME"]) / ".claude", "a file")
    before = everything(here)
    error = snap_json(Path(here.cwd), "connect", "claude", "--json", status=1)
    assert error["error"] == "failed"
    assert everything(here) == before


@needs_strace
@pytest.mark.parametrize("agent", ["claude", "cline"])
@pytest.mark.parametrize(
    ("call", "fault"), [("write", "ENOSPC"), ("fsync", "EIO"), ("rename", "EROFS"), ("mkdir", "EDQUOT")]
)
def test_a_disk_that_fails_at_any_point_leaves_nothing_behind(
    here: Environment, agent: str, call: str, fault: str
) -> None:
    import faults

    if agent == "claude":
        put(place(here, agent, "user"), '{"model": "opus"}')
    before = everything(here)
    connect(here, "codex", "user", PROGRAM_WORDS)  # all modules are loaded by now
    disconnect(here, "codex", SCOPES)
    for number in range(1, 60):
        done = faults.strike(lambda: connect(here, agent, "user", PROGRAM_WORDS), call, number, f"error={fault}")
        if done.status == faults.DONE:
            disconnect(here, agent, SCOPES)
            assert everything(here) == before
            break
        assert done.error["error"] == "failed", done
        assert everything(here) == before, (call, number)
    assert number > 1 or (agent, call) == ("claude", "mkdir")


@pytest.mark.parametrize(
    ("agent", "existing", "step"),
    [("claude", True, 1), ("claude", False, 1), ("copilot", False, 1), ("cline", False, 7)],
)
def test_killed_at_any_moment_it_is_all_there_or_the_next_run_makes_it_so(
    here: Environment, agent: str, existing: bool, step: int
) -> None:
    path = place(here, agent, "user")
    if existing:
        put(path, '{"model": "opus"}')
    before = everything(here)
    states: set[bytes | None] = set()
    for number in range(1, 200, step):
        if not killed_at(number, lambda: connect(here, agent, "user", PROGRAM_WORDS)):
            break
        states.add(path.read_bytes() if path.exists() else None)
        connect(here, agent, "user", PROGRAM_WORDS)
        killed_at(number, lambda: disconnect(here, agent, SCOPES))
        states.add(path.read_bytes() if path.exists() else None)
        disconnect(here, agent, SCOPES)
        assert everything(here) == before, number
    assert number > 10
    assert len(states) == 2, "the old bytes or the new ones, never others"


# Others at the same time


def test_an_edit_in_the_middle_is_a_conflict_and_not_lost(here: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(place(here, "claude", "user"), '{"model": "opus"}')
    real = os.fsync

    def meanwhile(fd: int) -> None:
        real(fd)
        if stat.S_ISREG(os.fstat(fd).st_mode):  # the new file, not a folder made for it
            path.write_text('{"model": "sonnet"}')

    monkeypatch.setattr(os, "fsync", meanwhile)
    with pytest.raises(Conflict, match="changed by another program"):
        connect(here, "claude", "user", PROGRAM_WORDS)
    monkeypatch.undo()
    assert path.read_text() == '{"model": "sonnet"}'
    assert os.listdir(path.parent) == ["settings.json"]


def test_many_at_once_end_as_one(here: Environment) -> None:
    path = put(place(here, "claude", "user"), '{"model": "opus"}')
    running = [
        subprocess.Popen(
            [*PROGRAM, "connect", "claude", "--json"], cwd=here.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in running]
    assert sorted(answer["changed"] for answer in answers) == [False, False, False, True]
    assert set(commands(value_of(path))) == {shlex.join([sys.executable, "-I", *ENTRY, "hook", "claude"])}
    assert Path(f"{path}.snapstore-backup").read_text() == '{"model": "opus"}'
    disconnect(here, "claude", SCOPES)
    assert path.read_text() == '{"model": "opus"}'
    assert os.listdir(path.parent) == ["settings.json"]
