"""M-15: a readable record of a turn in `refs/notes/turns`, the raw lines of its conversation in
`refs/notes/transcripts`, byte for byte, for whoever reads them with git and on whichever machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from forgetting import forget
from helpers import git, record, write
from hypothesis import given
from hypothesis import strategies as st
from machines import Machine, bare
from test_secrets import TOKENS

from snapstore import Secret, Store
from snapstore.git.objects import notes
from snapstore.timeline.history.nodes import read_node
from snapstore.timeline.history.raw_lines import put_back, take_out

RAW = ['{"uuid": "1", "said": "grüß dich"}\n', '{"uuid": "2"}\n']


@given(st.lists(st.text(st.characters(exclude_characters="\n"))), st.sampled_from(["", "\n", "mixed"]), st.text())
def test_what_is_taken_out_of_a_record_is_put_back(lines: list[str], end: str, inner: str) -> None:
    if end == "mixed":
        lines = [*lines, inner, f"{inner}\n{inner}\n"]
    whole = {"prompt": "p", "lines": [f"{line}{end}" if end != "mixed" else line for line in lines]}
    rest, text = take_out(whole)
    assert put_back(rest, text) == whole
    assert text is None or "lines" not in rest


def test_git_shows_the_record_and_the_raw_lines_apart(store: Store) -> None:
    session = store.session("s")
    session.begin("Ask")
    commit = session.end(replies=["Told"], lines=RAW)
    git_dir = store.shadow.git_dir
    shown = json.loads(git(git_dir, "notes", "--ref=turns", "show", commit.hex()))
    assert shown["replies"] == ["Told"] and "lines" not in shown
    assert git(git_dir, "notes", "--ref=transcripts", "show", commit.hex()).decode() == "".join(RAW)
    assert b"uuid" in git(git_dir, "log", "-1", "--notes=transcripts", commit.hex())
    session.begin("Nothing is known of this one")
    assert git(git_dir, "notes", "--ref=transcripts", "show", session.end().hex(), may_fail=True) == b""


def test_a_record_of_a_former_version_keeps_its_lines(store: Store) -> None:
    """Stores from before go on: what was recorded is read as it was written."""
    session = store.session("s")
    session.begin("Ask")
    commit = session.end(replies=["Told"])
    old = {**record(store, commit), "lines": RAW}
    git(
        store.shadow.git_dir,
        "notes",
        "--ref=turns",
        "add",
        "-f",
        "-F",
        "-",
        commit.hex(),
        feed=json.dumps(old).encode(),
    )
    assert read_node(store.shadow, commit, lines=True).record["lines"] == RAW


def test_forgetting_a_file_blanks_the_raw_lines_as_well(store: Store, root: Path) -> None:
    write(root / "key", "hunter2-is-the-word\n")
    session = store.session("s")
    session.begin("Read it")
    write(root / "other", "1")
    used = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": str(root / "key")}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "hunter2-is-the-word"}
    session.end(lines=[json.dumps(used) + "\n", json.dumps(answer) + "\n", '{"uuid": "3"}\n'])
    forget(store, "key")
    tip = git(store.shadow.git_dir, "rev-parse", "refs/snapstore/cursor/s").decode().strip()
    left = git(store.shadow.git_dir, "notes", "--ref=transcripts", "show", tip)
    assert b"hunter2" not in left and left.endswith(b'{"uuid": "3"}\n') and left.count(b"\n") == 3
    assert len(record(store, tip)["lines"]) == 3


# On other machines.


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Machine, Machine, str, str]:
    """Ada, who has pushed a turn with raw lines; Bob, who has cloned it; the server; the turn."""
    hub = bare(tmp_path / "hub.git")
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    commit = tell(ada, "Begin", RAW)
    ada.push()
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    return ada, bob, hub, commit


def tell(machine: Machine, prompt: str, lines: list[str]) -> str:
    with machine.open() as store:
        session = store.session("shell")
        session.begin(prompt)
        return session.end(lines=lines).hex()


def lines_of(machine: Machine, commit: str) -> object:
    with machine.open() as store:
        return record(store, commit).get("lines")


def test_raw_lines_travel_with_their_turns(pair: tuple[Machine, Machine, str, str]) -> None:
    ada, bob, hub, first = pair
    assert lines_of(bob, first) == RAW
    assert git(hub, "notes", "--ref=transcripts", "show", first).decode() == "".join(RAW)
    second = tell(bob, "And on", ["{}\n"])
    bob.push()
    ada.pull()
    assert (lines_of(ada, first), lines_of(ada, second)) == (RAW, ["{}\n"])
    third = tell(ada, "Back", ["[]\n"])
    ada.push()
    bob.pull()
    assert [lines_of(bob, commit) for commit in (first, second, third)] == [RAW, ["{}\n"], ["[]\n"]]
    for machine in (ada, bob):
        assert machine.push().updates == []
        machine.whole()
        with machine.open() as store:
            git(store.shadow.git_dir, "gc", "--prune=now", "-q")
        machine.push()
        machine.whole()


def test_whatever_a_server_holds_as_raw_lines_is_survived(pair: tuple[Machine, Machine, str, str]) -> None:
    """Anyone who can push can write a note: a text without an end, bytes that are no text; or remove them all."""
    ada, bob, hub, _ = pair
    second = tell(bob, "And on", ["{}\n"])
    bob.push()
    git(hub, "notes", "--ref=transcripts", "add", "-f", "-F", "-", second, feed=b"no end\n\xff\xfe")
    ada.pull()
    assert lines_of(ada, second) is not None
    ada.whole()
    git(hub, "update-ref", "-d", notes.TRANSCRIPTS)
    tell(ada, "Later", ["1\n"])
    ada.push()
    bob.pull()
    bob.whole()


def test_a_secret_in_a_raw_line_is_not_pushed(pair: tuple[Machine, Machine, str, str]) -> None:
    ada, _, hub, _ = pair
    before = git(hub, "for-each-ref")
    tell(ada, "Ask", ['{"a": 1}\n', json.dumps({"token": TOKENS["github-token"]}) + "\n"])
    with pytest.raises(Secret) as refused:
        ada.push()
    assert [finding.where for finding in refused.value.details["findings"]] == ["lines[1].token"]
    assert git(hub, "for-each-ref") == before


def test_raw_lines_go_into_a_bundle_and_out_of_it(pair: tuple[Machine, Machine, str, str], tmp_path: Path) -> None:
    ada, _, _, first = pair
    ada.snap("export", str(tmp_path / "turns.bundle"))
    eve = Machine(tmp_path, "eve")
    eve.clone(str(tmp_path / "turns.bundle"))
    assert lines_of(eve, first) == RAW
