"""The records at the border: what `--json` prints is what the documentation promises."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from snapstore import Store
from snapstore.records.base import ErrorRecord, dump
from snapstore.records.nodes import CheckRecord, LeftOutRecord, LogRecord, NodeRecord, StatusRecord
from snapstore.timeline.check import Check
from snapstore.timeline.history import History
from snapstore.timeline.status import read_status

NODE = {
    "seq", "turn", "commit", "tree", "parent", "kind", "session", "branch", "label", "prompt", "agent", "started_at",
    "ended_at", "status", "undone", "checkpoints", "files", "found_by", "left_out", "first_seen", "user_git",
    "exit_status",
}  # fmt: skip
STATUS = {
    "root", "store", "git_dir", "session", "branch", "cursor", "tip", "turn", "undone_turns", "open_turns", "edits",
    "paths_b64", "left_out", "branches", "sessions", "size_bytes", "recovery", "pending_fork", "conversation",
    "hook_errors", "max_store_size",
}  # fmt: skip


def test_the_names_of_fields_never_change() -> None:
    """Programs build on them: add to these sets, take nothing away."""
    assert set(NodeRecord.model_fields) == NODE
    assert set(StatusRecord.model_fields) == STATUS
    assert set(LogRecord.model_fields) == {"session", "branch", "nodes"}
    assert set(ErrorRecord.model_fields) == {"error", "message", "hint"}


def test_what_the_library_says_of_a_node_is_the_record_already(store: Store, root: Path) -> None:
    """`turn` and `run` print it without pydantic, which would cost a hook ten interpreter starts."""
    with store.session("s1").turn("Go", agent="ada") as turn:
        (root / "a").write_text("1\n")
        turn.reply("Done")
    history = History(store.session("s1"))
    for counts in (False, True):
        for node in history.nodes(counts=counts):
            plain = node.as_json()
            assert set(plain) == NODE
            assert dump(NodeRecord, plain) == plain
            assert json.loads(json.dumps(dump(NodeRecord, plain))) == plain


def test_status_and_check_are_records_too(store: Store, root: Path) -> None:
    store.session("shell").begin("Open", agent="ada")
    (root / "edited").write_text("1")
    plain = read_status(store.session("shell")).as_json()
    assert set(plain) == STATUS
    assert dump(StatusRecord, plain) == plain
    report = {"ok": True, **Check(store).run().as_json()}
    assert dump(CheckRecord, report) == report


def test_a_path_that_is_not_utf8_survives_the_record(store: Store, root: Path) -> None:
    """G-36."""
    name = b"caf\xe9 \xff"
    with store.session("s1").turn("\udce9"), open(os.path.join(os.fsencode(root), name), "w") as file:
        file.write("1")
    history = History(store.session("s1"))
    node = dump(NodeRecord, history.node(history.tip).as_json())
    printed = json.dumps(node)
    assert printed.isascii()
    again = json.loads(printed)
    assert os.fsencode(again["files"][0]["path"]) == name
    assert again["files"][0]["path_b64"] == "Y2Fm6SD/"
    assert again["prompt"] == "\udce9"
    assert dump(LeftOutRecord, {"path": "\udcff", "why": "\udcfe"}) == {"path": "\udcff", "why": "\udcfe"}


def test_branches_of_the_users_repository_may_have_any_name() -> None:
    moved = {"branches": {"caf\udce9": [None, "0" * 40]}, "head": ["\udcff", None]}
    plain = {**dict.fromkeys(NODE), "user_git": moved}
    plain.update(seq=1, commit="c", tree="t", kind="turn", session="s", branch="b", label="l", prompt="", agent="a")
    plain.update(started_at="x", status="done", undone=False, checkpoints=[], files=[], left_out=[], first_seen=[])
    assert dump(NodeRecord, plain)["user_git"] == moved


def test_a_document_that_is_not_the_record_is_refused() -> None:
    for wrong in ({}, {"error": 1, "message": "m", "hint": "h"}, {"error": "e", "message": None, "hint": "h"}):
        with pytest.raises(ValidationError):
            dump(ErrorRecord, wrong)


def test_a_field_that_is_not_known_yet_is_kept() -> None:
    document = {"error": "conflict", "message": "m", "hint": "h", "conflicts": [{"path": "\udcff"}]}
    assert dump(ErrorRecord, document) == document
