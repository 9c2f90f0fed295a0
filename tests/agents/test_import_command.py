"""The command `snapstore import`, and transcripts that are enormous or hostile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import assert_record, snap, snap_json
from helpers import child, kinds, write
from import_stories import HOME, NAME, Told, bring_in, look, undo, written
from test_transcripts_builders import ALL, SESSION, Cursor, story

from snapstore import Store
from snapstore.agents.import_session import detect, locate, prepare
from snapstore.errors import Unknown
from snapstore.store.conversations import AgentSession, Conversations
from snapstore.surface.records.agents import ImportRecord

# The command


def test_the_command_from_a_file_to_an_undo(root: Path) -> None:
    write(root / "a.txt", "A\n")
    write(root / "moved.txt", "by me\n")
    chat = Told()
    chat.prompt("write \x1b[31mred")
    chat.created("a.txt", "A\n")
    chat.created("moved.txt", "m\n")
    chat.shell("s", "make", "")
    path = str(written(chat, root))
    preview = snap_json(root, "import", path, "--dry-run", "--json")
    assert_record(ImportRecord, preview)
    assert (preview["preview"], preview["session"], preview["turns"][0]["commit"]) == (True, NAME, None)
    snap(root, "status", status=13)
    said = snap(root, "import", path).stdout
    assert "\x1b" not in said
    assert "ran `make`: what it changed is not known" in said
    assert f"snapstore log --session {NAME}" in said
    assert "moved.txt" in said
    assert "\n  ran `make`" in snap(root, "show", "1", "--session", NAME).stdout
    assert snap_json(root, "import", path, "--json", status=10)["error"] == "conflict"
    document = snap_json(root, "import", path, "--session", "again", "--json")
    assert_record(ImportRecord, document)
    assert (document["verified"], document["moved_on"]) == (["a.txt"], ["moved.txt"])
    assert document["turns"][0]["files"] == [{"path": "a.txt", "change": "A"}, {"path": "moved.txt", "change": "A"}]
    snap(root, "undo", "--session", NAME, "-y", status=10)
    snap(root, "undo", "--session", NAME, "-y", "--skip")
    assert not (root / "a.txt").exists()
    assert (root / "moved.txt").read_text() == "by me\n"
    snap(root, "check")


def test_what_hooks_have_recorded_already_is_said(root: Path, store: Store) -> None:
    known = AgentSession(id=SESSION, agent="claude", session="live", created="2026-08-01T10:00:00.000Z")
    store.journal.carry_out([], Conversations(store).agent_session_file(known), what="test")
    chat = Told()
    chat.prompt("hello")
    assert "session live already recorded this conversation" in snap(root, "import", str(written(chat, root))).stderr


def test_words_before_any_prompt_are_a_turn_without_one(root: Path, store: Store) -> None:
    chat = Cursor()
    chat.reply("Hello, what can I do?")
    chat.prompt("nothing")
    found, _ = bring_in(store, chat)
    assert [turn.prompt for turn in found.turns] == ["", "nothing"]
    assert "(no prompt)" in snap(root, "log", "--session", NAME).stdout


def test_a_conversation_of_another_folder_takes_only_files_from_here(root: Path) -> None:
    chat = Told()
    chat.prompt("write")
    chat.created("a.txt", "A\n")
    path = chat.write(root.parent / "t.jsonl")
    done = snap(root, "import", str(path))
    assert HOME in done.stderr and str(root) in done.stderr
    assert "outside the root" in done.stdout


def test_a_root_known_by_another_name(root: Path, store: Store) -> None:
    """Through a link, and from a folder below it."""
    (root / "sub").mkdir()
    other = root.parent / "other"
    other.symlink_to(root)
    write(root / "a.txt", "A\n")
    chat = Told()
    chat.prompt("write")
    chat.created("a.txt", "A\n")
    path = chat.write(root.parent / "t.jsonl")
    data = path.read_bytes().replace(f'"cwd": "{HOME}"'.encode(), f'"cwd": "{other}/sub"'.encode())
    path.write_bytes(data.replace(HOME.encode(), str(other).encode()))
    with prepare(path, "claude", None, store.root, store.home) as found:
        assert found.warnings == []
        assert found.verified == [b"a.txt"]


@pytest.mark.parametrize("kind", ALL)
def test_every_agents_transcript_is_told_apart_and_imported(kind: type[Any], root: Path, store: Store) -> None:
    write(root / "a.txt", "HELLO\n")
    chat = story(kind())
    path = written(chat, root, "some.file")
    assert detect(str(path)) == kind.agent
    with prepare(path, kind.agent, SESSION, store.root, store.home) as found:
        found.carry_out(store, found.session_name())
        name = found.session_name()
    assert kinds(store, name) == ["baseline", "turn", "turn", "turn"]
    undo(store, 3, name)
    assert (root / "a.txt").read_text() == "hello\n"


def test_a_session_is_found_by_its_id(root: Path, nobodys_home: Path) -> None:
    folder = nobodys_home / ".claude/projects" / "".join(c if c.isalnum() else "-" for c in str(root.resolve()))
    folder.mkdir(parents=True)
    chat = Told()
    chat.prompt("hello")
    path = written(chat, root).rename(folder / f"{SESSION}.jsonl")
    assert locate(SESSION, None, str(root)) == (str(path), "claude", SESSION)
    assert snap_json(root, "import", SESSION, "--json")["agent_session"] == SESSION
    with pytest.raises(Unknown):
        locate("11111111-2222", None, str(root))
    snap(root, "import", "../../etc/passwd", status=16)
    snap(root, "import", SESSION, "--agent", "nobody", status=16)


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\0", b"not json\n" * 100, b"[1, 2]\n", b'{"a": 1}\n', b'{"type": "summary"}\n', b"\xff" * 5000]
)
def test_what_is_no_transcript_makes_nothing(root: Path, nobodys_home: Path, data: bytes) -> None:
    path = root.parent / "t.jsonl"
    path.write_bytes(data)
    for words in ([], ["--agent", "claude"], ["--agent", "codex"], ["--agent", "gemini"], ["--agent", "opencode"]):
        error = snap_json(root, "import", str(path), *words, "--json", status=14)
        assert error["message"] and error["hint"]
    assert not (nobodys_home / "stores").exists()


def test_a_transcript_that_is_no_file(root: Path) -> None:
    snap(root, "import", str(root), "--json", status=15)
    snap(root, "import", "no/such.jsonl", status=16)


# Enormous and hostile


def test_a_text_that_doubles_with_every_edit_is_given_up(root: Path, store: Store) -> None:
    write(root / "a.txt", "x")
    chat = Told()
    chat.prompt("grow")
    chat.created("a.txt", "x")
    for _ in range(60):
        chat.edited("a.txt", "x", "xx", replaceAll=True)
    found = look(store, chat)
    assert [path for path, _ in found.turns[0].unknown] == ["a.txt"]


MEASURED = """
import sys, tracemalloc
tracemalloc.start()
from snapstore import Store
from snapstore.agents.import_session import prepare
with Store.open(sys.argv[1]) as store, prepare(sys.argv[2], "claude", None, store.root, store.home) as found:
    found.carry_out(store, sys.argv[3])
print(len(found.turns), tracemalloc.get_traced_memory()[1])
"""


def test_a_long_conversation_needs_no_more_memory_than_a_short_one(root: Path, store: Store) -> None:
    """Beyond its largest turn: here of one megabyte."""
    store.close()
    peaks = []
    for turns in (4, 40):
        chat = Told()
        for number in range(turns):
            chat.prompt(f"turn {number}")
            chat.use(f"r{number}", "Read", {"file_path": "/x"})
            chat.outcome(f"r{number}", {}, "x" * 1_000_000)
        done = child(MEASURED, root, written(chat, root), f"s{turns}")
        assert done.returncode == 0, done.stderr
        count, peak = done.stdout.split()
        assert int(count) == turns
        peaks.append(int(peak))
    assert peaks[1] < peaks[0] + 4_000_000
