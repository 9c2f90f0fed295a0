"""What others record may be odd, by hand or by mistake: times, kinds, bits, branches of nobody. It is read as something
known, and never gets in the way of what is ours."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from helpers import git, on_disk
from machines import Machine, server_refs


@pytest.fixture
def ada(tmp_path: Path, hub: str) -> Machine:
    machine = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    machine.turn("Add violets", poem="roses\nviolets\n")
    machine.push()
    return machine


def odd_turn(hub: str, *, kind: str = "turn", date: str = "1794846364", record: dict[str, Any] | None = None) -> str:
    """A second turn on the server, with a file of its own, made by hand: its branch is `odd`."""
    tree = git(hub, "rev-parse", "shell/main^{tree}").decode().strip()
    blob = git(hub, "hash-object", "-w", "--stdin", feed=b"odd\n").decode().strip()
    rows = git(hub, "ls-tree", tree) + f"100644 blob {blob}\tzodd\n".encode()
    tree = git(hub, "mktree", feed=rows).decode().strip()
    parent = git(hub, "rev-parse", "shell/main").decode().strip()
    trailers = {"Kind": kind, "Session": "shell", "Turn": "2", "Seq": "2", "Agent": "sh"}
    text = f"tree {tree}\nparent {parent}\nauthor A <a@b> {date} +0000\ncommitter A <a@b> {date} +0000\n\nOdd\n\n"
    text += "".join(f"Snapstore-{key}: {value}\n" for key, value in trailers.items())
    commit = git(hub, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", feed=text.encode())
    tip = commit.decode().strip()
    git(hub, "update-ref", "refs/heads/shell/odd", tip)
    if record is not None:
        git(hub, "notes", "--ref=turns", "add", "-f", "-F", "-", tip, feed=json.dumps(record).encode())
    return tip


@pytest.mark.parametrize(
    "oddity",
    [
        {"date": "-999999999999999999"},
        {"date": "999999999999999999"},
        {"kind": "zzz"},
        {"record": {"found_by": "zzz", "status": "zzz", "exit_status": 10**30}},
        {"record": {"started_at": "yesterday", "ended_at": "9" * 5000}},
    ],
    ids=["long ago", "far ahead", "kind", "words", "times"],
)
def test_a_turn_of_others_that_says_odd_things_can_be_seen_and_gone_to(
    ada: Machine, hub: str, oddity: dict[str, Any]
) -> None:
    odd_turn(hub, **oddity)
    ada.pull()
    for words in (["show", "odd"], ["compare", "main", "odd"], ["tree", "--all"], ["branches"], ["log"], ["status"]):
        ada.snap(*words)
        if words[0] != "log":
            ada.snap_json(*words, "--json")
    assert ada.snap_json("show", "odd", "--json")["kind"] == "turn"
    ada.snap("goto", "--exact", "odd")
    assert ada.read("zodd") == "odd\n"
    ada.snap("status")
    ada.snap_json("status", "--json")
    ada.snap("goto", "--exact", "main")
    ada.snap("apply", "odd")
    assert ada.read("zodd") == "odd\n"
    ada.snap("check")


@pytest.mark.parametrize(("bits", "found"), [(0, 0o400), (0o4777, None), (0o077, None), (0o440, 0o440)])
def test_bits_of_a_record_of_others_hide_no_file_and_give_nothing_away(
    ada: Machine, hub: str, bits: int, found: int | None
) -> None:
    """Modes are as recorded, as far as one can go on with the files; what one's umask denies stays denied."""
    odd_turn(hub, record={"modes": {"zodd": bits}})
    ada.pull()
    ada.snap("goto", "--exact", "odd")
    mode = stat.S_IMODE((ada.root / "zodd").stat().st_mode)
    assert mode & 0o7022 == 0 and mode & 0o400
    assert found is None or mode == found
    ada.snap("undo")
    assert set(on_disk(ada.root)) == {b"poem"}


def test_what_filled_the_folder_of_a_clone_is_not_taken_back(ada: Machine, hub: str, tmp_path: Path) -> None:
    """Nothing was there before it: `ops undo` would leave nothing, of later turns neither."""
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    bob.turn("Bob's own", own="1\n")
    before = on_disk(bob.root)
    [filled] = bob.snap_json("ops", "--json")["operations"]
    assert (filled["kind"], filled["what"]) == ("clone", "clone")
    assert "othing" in bob.snap("ops", "undo").stdout
    assert on_disk(bob.root) == before
    assert "filled the folder" in bob.snap("ops", "undo", "1", status=16).stderr
    assert on_disk(bob.root) == before
    bob.snap("undo")
    assert set(on_disk(bob.root)) == {b"poem"}
    bob.snap("ops", "undo")
    assert on_disk(bob.root) == before
    assert "othing" in bob.snap("ops", "undo").stdout


def test_a_server_that_lost_whose_a_name_is_that_we_have_too(ada: Machine, hub: str, tmp_path: Path) -> None:
    """Theirs goes by another name here, and keeps it; so does the word whose it is."""
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    ada.snap("checkpoint", "final")
    ada.push()
    bob.turn("Bob's own", own="1\n")
    bob.snap("checkpoint", "final")
    bob.snap("checkpoint", "older", "0")
    ada.snap("checkpoint", "older", "1")
    ada.push()
    bob.push()
    bob.pull()
    before = bob.refs("refs/tags/"), bob.refs("refs/heads/")
    assert set(before[0]) == {f"refs/tags/shell/{name}" for name in ("final", "final@ada", "older", "older@ada")}
    for ref in server_refs(hub, "refs/snapstore/machines/"):
        git(hub, "update-ref", "-d", ref)
    bob.pull()
    assert (bob.refs("refs/tags/"), bob.refs("refs/heads/")) == before
    with bob.open() as store:
        assert (store.foreign().owner("refs/tags/shell/final@ada") or {})["name"] == "ada"
