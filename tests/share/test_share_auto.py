"""P-05: a push after every turn, in the background. It delays no turn and fails none."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import git
from machines import Machine, bare, prompts
from remotes import silence

from snapstore.base import locks
from snapstore.share import auto_push


def eventually(true: Callable[[], bool], seconds: float = 30.0) -> None:
    """Waits for something that another process does."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.02)


def at_rest(machine: Machine) -> bool:
    """Whether no push is at work or asked for."""
    with machine.open() as store:
        if os.path.exists(f"{store.state}/autopush.again"):
            return False
        fd = os.open(f"{store.state}/autopush.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            return locks.try_lock(fd)
        finally:
            os.close(fd)


def test_every_turn_goes_by_itself(tmp_path: Path) -> None:
    hub = bare(tmp_path / "hub.git")
    ada = Machine(tmp_path, "ada").init(f="0\n")
    ada.snap("remote", "add", "origin", hub)
    assert "From now on every turn is pushed to origin" in ada.snap("push", "--auto").stdout
    ada.turn("From a program", f="1\n")
    eventually(lambda: prompts(hub) == {"From a program"})
    ada.snap("run", "-m", "From a command", "--", "sh", "-c", "echo 2 > f")
    eventually(lambda: prompts(hub) == {"From a program", "From a command"})
    ada.snap("turn", "begin", "-m", "From hooks")
    (ada.root / "f").write_text("3\n")
    ada.snap("turn", "end")
    eventually(lambda: "From hooks" in prompts(hub))
    eventually(lambda: at_rest(ada))
    assert not ada.snap_json("status", "--json")["hook_errors"]
    assert "Turns are no longer pushed to origin automatically." in ada.snap("push", "--no-auto").stdout
    ada.turn("Stays", f="4\n")
    assert at_rest(ada)
    assert "Stays" not in prompts(hub)
    git(hub, "fsck", "--strict")


def test_a_server_that_is_away_fails_no_turn_and_is_named_in_status(tmp_path: Path) -> None:
    ada = Machine(tmp_path, "ada").init(f="0\n")
    ada.snap("remote", "add", "origin", str(tmp_path / "later.git"), "--auto")
    ada.turn("First", f="1\n")
    eventually(lambda: bool(ada.snap_json("status", "--json")["hook_errors"]))
    with ada.open() as store:
        store.log("a turn was not recorded")
        for _ in range(12):  # a day without a network: still one line, and no other is pushed out by it
            auto_push.run(store)
    eventually(lambda: at_rest(ada))
    other, said = ada.snap_json("status", "--json")["hook_errors"]
    assert "push to origin" in said and "later.git" in said and "not recorded" in other
    hub = bare(tmp_path / "later.git")
    ada.turn("Second", f="2\n")
    eventually(lambda: prompts(hub) == {"First", "Second"})
    eventually(lambda: at_rest(ada))
    assert ada.snap_json("status", "--json")["hook_errors"] == [other]


@pytest.mark.parametrize("words", [["remote", "remove", "origin"], ["push", "--no-auto"]])
def test_where_no_push_goes_any_more_nothing_is_said_of_it(tmp_path: Path, words: list[str]) -> None:
    ada = Machine(tmp_path, "ada").init(f="0\n").remote(str(tmp_path / "away.git"), auto=True)
    ada.turn("First", f="1\n")
    eventually(lambda: at_rest(ada) and bool(ada.snap_json("status", "--json")["hook_errors"]))
    ada.snap(*words, status=17 if words[0] == "push" else 0)
    assert ada.snap_json("status", "--json")["hook_errors"] == []


def test_a_server_that_never_answers_delays_no_turn(tmp_path: Path) -> None:
    ada = Machine(tmp_path, "ada").init(f="0\n")
    with silence() as port:
        ada.snap("remote", "add", "origin", f"git://127.0.0.1:{port}/hub.git", "--auto")
        start = time.monotonic()
        for number in range(3):
            ada.turn(f"Turn {number}", f=f"{number + 1}\n")
        assert time.monotonic() - start < 10  # the server is waited for a minute, by somebody else
        assert ada.prompts() == {f"Turn {number}" for number in range(3)}
        eventually(lambda: not at_rest(ada))
    eventually(lambda: at_rest(ada), 60)


def test_many_quick_turns_make_few_pushes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one push is at work the others only leave a mark, and the one at work goes round once more."""
    hub = bare(tmp_path / "hub.git")
    ada = Machine(tmp_path, "ada").init(f="0\n").remote(hub)
    pushes: list[int] = []

    def meanwhile(store: object, remote: object) -> None:
        pushes.append(len(pushes))
        if len(pushes) == 1:
            for number in range(5):
                ada.turn(f"Turn {number}", f=f"{number}\n")
                with ada.open() as other:
                    auto_push.run(other)  # what each turn starts
        return real(store, remote)  # type: ignore[arg-type, return-value]

    real = auto_push.push
    monkeypatch.setattr(auto_push, "push", meanwhile)
    with ada.open() as store:
        auto_push.run(store)
    assert len(pushes) == 2
    assert prompts(hub) == {f"Turn {number}" for number in range(5)}
    assert at_rest(ada)


def test_an_empty_setting_needs_no_remote(tmp_path: Path) -> None:
    """The setting alone pushes to the one remote there is; with none `status` says so, once."""
    ada = Machine(tmp_path, "ada").init(f="0\n")
    ada.snap("config", "set", "auto_push", "true")
    ada.turn("Alone", f="1\n")
    eventually(lambda: at_rest(ada) and "no remote" in " ".join(ada.snap_json("status", "--json")["hook_errors"]))
    with ada.open() as store:
        auto_push.run(store)
    assert len(ada.snap_json("status", "--json")["hook_errors"]) == 1
    ada.snap("config", "set", "auto_push", "false")
    assert ada.snap_json("status", "--json")["hook_errors"] == []
    hub = bare(tmp_path / "hub.git")
    ada.snap("remote", "add", "origin", hub, "--auto")
    ada.turn("Shared", f="2\n")
    eventually(lambda: prompts(hub) == {"Alone", "Shared"})
    eventually(lambda: at_rest(ada))
