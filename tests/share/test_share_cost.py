"""DESIGN, Speed: what a push or pull costs grows with what is new, never with the length of the history. Counted in
objects read, on both sides, so that no machine is too slow or too busy to show it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers import git
from machines import Machine, bare

from snapstore.git.objects.store import Objects

SHORT, LONG = 50, 2000
Steps = dict[str, int]


def lengthen(machine: Machine, turns: int) -> None:
    """Adds turns that only talk to the tip, with their records, as fast as git imports them."""
    with machine.open() as store:
        git_dir = store.shadow.git_dir
    ref, who = "refs/heads/shell/main", "claude <claude@example.com> 1794800000 +0000"
    tip, notes = (git(git_dir, "rev-parse", name).decode().strip() for name in (ref, "refs/notes/turns"))
    stream = []
    for number in range(2, turns + 2):
        message = f"Prompt {number}\n\nSnapstore-Kind: turn\nSnapstore-Session: shell\n"
        message += f"Snapstore-Turn: {number}\nSnapstore-Seq: {number}\nSnapstore-Agent: claude\n"
        stream.append(f"commit {ref}\nauthor {who}\ncommitter {who}\ndata {len(message)}\n{message}")
        stream.append(f"from {tip}\n\n" if number == 2 else "\n")
    git(git_dir, "fast-import", "--quiet", "--depth=0", feed="".join(stream).encode())
    stream = [f"commit refs/notes/turns\ncommitter {who}\ndata 1\nn\nfrom {notes}\n"]
    for number, commit in enumerate(reversed(git(git_dir, "rev-list", ref).decode().split()[:turns]), start=2):
        record = {"format": 1, "kind": "turn", "session": "shell", "turn": number, "seq": number, "agent": "claude"}
        text = json.dumps({**record, "prompt": f"Prompt {number}", "status": "done"})
        stream.append(f"M 100644 inline {commit[:2]}/{commit[2:]}\ndata {len(text)}\n{text}\n")
    git(git_dir, "fast-import", "--quiet", "--depth=0", feed="".join(stream).encode())


@contextmanager
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """The objects that are read meanwhile, in whichever repository."""
    read: list[bytes] = []
    find = Objects._find

    def counted(self: Objects, oid: bytes, *how: Callable[..., object]) -> object:
        read.append(oid)
        return find(self, oid, *how)

    with monkeypatch.context() as patch:
        patch.setattr(Objects, "_find", counted)
        yield read


def exchanges(base: Path, turns: int, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Two machines at work behind a history of so many turns: what each step reads."""
    hub = bare(base / "hub.git")
    ada = Machine(base, "ada").init(poem="roses\n").remote(hub)
    ada.turn("Begin", poem="roses!\n")
    lengthen(ada, turns)
    ada.push()
    bob = Machine(base, "bob")
    bob.clone(hub)
    bob.turn("Bob begins", sugar="1\n")
    bob.push()
    ada.pull()
    # What makes names and records worth a second look: a branch that is renamed, one that never left home.
    bob.snap("branch", "rename", "main-2", "sugary")
    bob.snap("undo", "-y")
    bob.turn("Not for others", salt="1\n")
    bob.snap("switch", "sugary")
    bob.snap("branch", "delete", "-y", "main-2")
    ada.snap("checkpoint", "early", "1")
    for machine in (bob, ada, bob):
        machine.push()
        machine.pull()
    steps: dict[str, Callable[[], object]] = {}
    for number in (1, 2):
        steps[f"ada {number}"] = lambda: ada.turn("More", poem="roses, violets\n")
        steps[f"ada pushes {number}"] = ada.push
        steps[f"bob pulls {number}"] = bob.pull
        steps[f"bob {number}"] = lambda: bob.turn("More", sugar="2\n")
        steps[f"bob pushes {number}"] = bob.push
        steps[f"ada pulls {number}"] = ada.pull
    steps["ada goes back"] = lambda: ada.snap("undo", "-y")
    steps["ada branches"] = lambda: ada.turn("Another way", poem="violets\n")
    steps["ada pushes a branch"] = ada.push
    steps["bob pulls a branch"] = bob.pull
    steps["ada has nothing to push"] = ada.push
    steps["bob has nothing to pull"] = bob.pull
    found: Steps = {}
    for name, step in steps.items():
        with reading(monkeypatch) as read:
            step()
        if "pu" in name:
            found[name] = len(read)
    assert bob.prompts() >= {"Begin", f"Prompt {turns}", "Another way"}
    return found


def test_one_turn_costs_the_same_behind_fifty_turns_and_behind_two_thousand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = exchanges(tmp_path / "short", SHORT, monkeypatch)
    long = exchanges(tmp_path / "long", LONG, monkeypatch)
    # The same step behind the same history reads up to 20 objects more or less: ids differ, and with them the order in
    # which two lines are walked. One object for every 60 turns of the longer history would still be noticed.
    # A new branch looks for the beginning of its line, as far as the nearest mark.
    allowed = {name: (2 * 64 if "branch" in name else 32) for name in short}
    grown = {name: (short[name], long[name]) for name in short if long[name] > short[name] + allowed[name]}
    assert not grown


def test_a_pull_of_one_turn_writes_one_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came in and the records that it led to are one pack, and so are synced once."""
    hub = bare(tmp_path / "hub.git")
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    ada.push()
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    bob.turn("Mine", note="b\n")
    ada.turn("Line", poem="roses are\n")
    ada.push()
    with bob.open() as store:
        packs = Path(store.shadow.objects.pack_folder)
        before = set(packs.glob("*.pack"))
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd, sync=os.fsync: (synced.append(fd), sync(fd))[1])
    bob.pull()
    (new,) = set(packs.glob("*.pack")) - before
    assert new and len(synced) <= 12  # three for the pack, two per ref, one for the journal
    assert bob.prompts() == {"Line", "Mine"}
    bob.whole()
