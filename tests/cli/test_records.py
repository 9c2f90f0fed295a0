"""The records at the border: what `--json` prints is what the documentation promises."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

import snapstore
from snapstore import Store
from snapstore.surface.records.base import document
from snapstore.surface.records.errors import ErrorRecord
from snapstore.surface.records.nodes import LeftOutRecord, LogRecord, NodeRecord
from snapstore.surface.records.status import CheckRecord, StatusRecord
from snapstore.surface.status import read_status
from snapstore.timeline.history.history import History
from snapstore.timeline.maintenance.check import Check

NODE = {
    "seq", "turn", "commit", "tree", "parent", "kind", "session", "branch", "label", "prompt", "agent", "started_at",
    "ended_at", "status", "undone", "checkpoints", "files", "found_by", "left_out", "first_seen", "user_git",
    "exit_status",
}  # fmt: skip
STATUS = {
    "root", "store", "git_dir", "session", "branch", "cursor", "tip", "turn", "undone_turns", "open_turns", "edits",
    "paths_b64", "left_out", "branches", "sessions", "size_bytes", "recovery", "pending_fork", "conversation",
    "hook_errors", "max_store_size", "not_known",
}  # fmt: skip


def test_the_names_of_fields_never_change() -> None:
    """Programs build on them: add to these sets, take nothing away."""
    assert set(NodeRecord.model_fields) == NODE
    assert set(StatusRecord.model_fields) == STATUS | {"warm_process"}
    assert set(LogRecord.model_fields) == {"session", "branch", "nodes"}
    assert set(ErrorRecord.model_fields) == {"error", "message", "hint"}


def test_a_node_is_described_whole(store: Store, root: Path) -> None:
    with store.session("s1").turn("Go", agent="ada") as turn:
        (root / "a").write_text("1\n")
        turn.reply("Done")
    history = History(store.session("s1"))
    for counts in (False, True):
        for node in history.nodes(counts=counts):
            plain = document(NodeRecord.of(node))
            assert set(plain) == NODE
            assert document(NodeRecord.model_validate(plain)) == plain
            assert json.loads(json.dumps(plain)) == plain


def test_status_and_check_are_records_too(store: Store, root: Path) -> None:
    store.session("shell").begin("Open", agent="ada")
    (root / "edited").write_text("1")
    plain = document(StatusRecord.of(read_status(store.session("shell"))))
    assert set(plain) == STATUS
    assert document(StatusRecord.model_validate(plain)) == plain
    report = document(CheckRecord.of(Check(store).run()))
    assert (report["ok"], report["problems"]) == (True, [])
    assert document(CheckRecord.model_validate(report)) == report


def test_a_path_that_is_not_utf8_survives_the_record(store: Store, root: Path) -> None:
    """G-36."""
    name = b"caf\xe9 \xff"
    with store.session("s1").turn("\udce9"), open(os.path.join(os.fsencode(root), name), "w") as file:
        file.write("1")
    history = History(store.session("s1"))
    node = document(NodeRecord.of(history.node(history.tip)))
    printed = json.dumps(node)
    assert printed.isascii()
    again = json.loads(printed)
    assert os.fsencode(again["files"][0]["path"]) == name
    assert again["files"][0]["path_b64"] == "Y2Fm6SD/"
    assert again["prompt"] == "\udce9"
    left_out = {"path": "\udcff", "why": "\udcfe"}
    assert document(LeftOutRecord.model_validate(left_out)) == left_out


def test_branches_of_the_users_repository_may_have_any_name() -> None:
    moved = {"branches": {"caf\udce9": [None, "0" * 40]}, "head": ["\udcff", None]}
    plain = {**dict.fromkeys(NODE), "user_git": moved}
    plain.update(seq=1, commit="c", tree="t", kind="turn", session="s", branch="b", label="l", prompt="", agent="a")
    plain.update(started_at="x", status="done", undone=False, checkpoints=[], files=[], left_out=[], first_seen=[])
    assert document(NodeRecord.model_validate(plain))["user_git"] == moved


def test_a_document_that_is_not_the_record_is_refused() -> None:
    for wrong in ({}, {"error": 1, "message": "m", "hint": "h"}, {"error": "e", "message": None, "hint": "h"}):
        with pytest.raises(ValidationError):
            ErrorRecord.model_validate(wrong)


def test_a_field_that_is_not_known_yet_is_kept() -> None:
    plain = {"error": "conflict", "message": "m", "hint": "h", "conflicts": [{"path": "\udcff"}]}
    assert document(ErrorRecord.model_validate(plain)) == plain


# One description of each document, and one place that builds it.

PACKAGE = Path(snapstore.__file__).parent
RECORDS = PACKAGE / "surface" / "records"


def test_nothing_but_a_record_describes_a_document() -> None:
    """No object has a JSON form of its own, and no dictionary is checked against a record afterwards."""
    for path in PACKAGE.rglob("*.py"):
        names = {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}
        assert "as_json" not in names, path
        if path.parent != RECORDS:
            assert "Record.model_validate" not in path.read_text(), path


def test_a_record_that_describes_an_object_is_built_by_itself_alone() -> None:
    """Its fields are filled in one module of `surface/records`. Only a record of single values, which has no
    constructor of its own, is made where the values are."""
    built: dict[str, set[Path]] = {}
    mirrors: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and path.parent == RECORDS:
                own = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                mirrors |= {node.name} if "of" in own else set()
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Record"):
                built.setdefault(node.func.id, set()).add(path)
    assert len(mirrors) > 50
    assert {name for name in mirrors if any(path.parent != RECORDS for path in built.get(name, ()))} == set()
    assert {name for name in mirrors if len(built.get(name, ())) > 1} == set()


def test_a_process_that_serves_many_commands_has_every_record_ready() -> None:
    code = """
from snapstore.surface.records import load_all
from snapstore.surface.records.base import Record
load_all()
waiting, seen = [Record], 0
while waiting:
    record = waiting.pop()
    waiting += record.__subclasses__()
    assert record.__pydantic_complete__, record
    seen += 1
assert seen > 80, seen
"""
    subprocess.run([sys.executable, "-c", code], check=True)
