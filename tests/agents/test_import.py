"""`snapstore import`: a conversation that nobody recorded becomes turns that can be undone, as far as its files can be
known; the rest is said (S0-01, S0-02, S0-03, S0-07, S0-10, S0-11, S0-44, S0-45, C10)."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from helpers import assert_cache_adds_up, assert_whole, killed_at, kinds, line, on_disk, write
from import_stories import HOME, NAME, Told, bring_in, look, redo, undo, unknown, written
from test_transcripts_builders import SESSION, Codex, Gemini

from snapstore import Store
from snapstore.agents.import_session import prepare
from snapstore.errors import Conflict
from snapstore.transcripts.replay import replay

# What can be known


def test_imported_turns_are_undone_and_redone_to_the_byte(root: Path, store: Store) -> None:
    """S0-01, S0-02, S0-03: an edit taken back, a written file deleted and written again."""
    write(root / "untouched", "mine")
    write(root / "notes.md", "# Notes\n\nold end\n")
    chat = Told()
    chat.prompt("write a module")
    chat.created("src/a.py", "def f():\n    return 1\n")
    chat.edited("notes.md", "old end", "new end", originalFile="# Notes\n\nold end\n", replaceAll=False)
    chat.reply("Done.")
    chat.prompt("return two")
    chat.edited("src/a.py", "return 1", "return 2")  # what it was before follows from the first turn
    write(root / "src/a.py", "def f():\n    return 2\n")
    write(root / "notes.md", "# Notes\n\nnew end\n")
    found, imported = bring_in(store, chat)
    assert [sorted(turn.changes) for turn in found.turns] == [[b"notes.md", b"src/a.py"], [b"src/a.py"]]
    assert unknown(found) == [[], []]
    assert sorted(imported.verified) == [b"notes.md", b"src/a.py"]
    assert imported.moved_on == []
    assert kinds(store, NAME) == ["baseline", "turn", "turn"]
    done = on_disk(root)
    undo(store)
    assert (root / "src/a.py").read_text() == "def f():\n    return 1\n"
    undo(store)
    assert not (root / "src/a.py").exists()
    assert (root / "notes.md").read_text() == "# Notes\n\nold end\n"
    assert (root / "untouched").read_text() == "mine"
    redo(store, None)
    assert on_disk(root) == done
    assert_whole(store)


def test_the_record_has_the_conversation(root: Path, store: Store) -> None:
    """S0-07, S0-10, S0-11: prompt, replies, thinking, tool calls and the raw lines, byte by byte."""
    chat = Told()
    prompt = chat.prompt("write — ünïcödé", promptId="prompt-1")
    chat.think("well")
    chat.created("a.txt", "A\n")
    chat.reply("Done.")
    chat.prompt("look")
    chat.use("big", "Read", {"file_path": f"{HOME}/a.txt"})
    chat.outcome("big", {"file": "y" * 100_000}, "x" * 100_000)
    write(root / "a.txt", "A\n")
    bring_in(store, chat)
    raw = (root.parent / f"{SESSION}.jsonl").read_bytes()
    _, first, second = line(store, NAME)
    record = first["record"]
    assert (record["prompt"], record["replies"], record["thinking"]) == ("write — ünïcödé", ["Done."], ["well"])
    assert (record["found_by"], record["status"], record["imported"]) == ("replayed", "done", True)
    assert record["conversation"] == {"agent_session": SESSION, "prompt_id": "prompt-1", "message_id": prompt}
    assert (record["started_at"], record["agent"]) == ("2026-08-01T10:00:01.000Z", "claude")
    call = record["tool_calls"][0]
    assert (call["type"], call["file_path"], call["content"]) == ("Write", f"{root}/a.txt", "A\n")
    lines = [text for commit in (first, second) for text in commit["record"]["lines"]]
    assert "".join(lines).encode("utf-8", "surrogateescape") == raw
    assert first["author"] == "claude <claude@snapstore>"
    assert (first["trailers"]["Turn"], second["trailers"]["Turn"]) == ("1", "2")
    big = second["record"]["tool_calls"][0]
    assert len(big["result"]) < 70_000
    assert "outcome" not in big


def test_lines_that_are_not_utf8_come_through(root: Path, store: Store) -> None:
    chat = Told()
    chat.prompt("hello")
    path = written(chat, root)
    raw = path.read_bytes().replace(b"hello", b"h\xe9llo") + b'{"broken\xff\n'
    path.write_bytes(raw)
    with prepare(path, "claude", None, store.root, store.home) as found:
        found.carry_out(store, NAME)
    record = line(store, NAME)[1]["record"]
    assert "".join(record["lines"]).encode("utf-8", "surrogateescape") == raw


def test_an_edit_without_the_file_as_it_was_is_swapped_back_from_the_disk(root: Path, store: Store) -> None:
    """S0-02: where only one place can be meant, through several turns."""
    write(root / "a.txt", "one\nTWO\nTHREE\n")
    chat = Gemini()
    chat.prompt("shout")
    chat.edit("1", f"{HOME}/a.txt", "two", "TWO")
    chat.prompt("louder")
    chat.edit("2", f"{HOME}/a.txt", "three", "THREE")
    found, imported = bring_in(store, chat)
    assert unknown(found) == [[], []]
    assert imported.verified == [b"a.txt"]
    undo(store, 2)
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"
    redo(store, None)
    assert (root / "a.txt").read_text() == "one\nTWO\nTHREE\n"


@pytest.mark.parametrize(
    ("disk", "old", "new"),
    [("x x\n", "y", "x"), ("aaa\n", "b", "aa"), ("rest\n", "gone", ""), ("x y\n", "y", "x"), ("z\n", "y", "x")],
)
def test_a_swap_that_could_mean_several_places_is_not_made(
    root: Path, store: Store, disk: str, old: str, new: str
) -> None:
    """C10: repeated text, overlapping text, text replaced by nothing, an edit that would have been refused."""
    write(root / "a.txt", disk)
    chat = Gemini()
    chat.prompt("change")
    chat.edit("1", f"{HOME}/a.txt", old, new)
    found, imported = bring_in(store, chat)
    assert unknown(found) == [[("a.txt", replay.NEITHER_KNOWN)]]
    assert imported.verified == []
    undo(store)
    assert (root / "a.txt").read_text() == disk
    own = store.session(NAME)
    redo(store)
    notes = own.plan_undo().notes
    assert any("a.txt" in note and "stays as it is" in note for note in notes)


def test_replacing_everywhere_is_known_forwards_only(root: Path, store: Store) -> None:
    write(root / "a.txt", "y y\n")
    chat = Told()
    chat.prompt("all of them")
    chat.edited("a.txt", "x", "y", replaceAll=True, originalFile="x x\n")
    bring_in(store, chat)
    undo(store)
    assert (root / "a.txt").read_text() == "x x\n"
    write(root / "a.txt", "y y\n")
    chat = Told()
    chat.prompt("all of them")
    chat.edited("a.txt", "x", "y", replaceAll=True)
    assert unknown(look(store, chat)) == [[("a.txt", replay.NEITHER_KNOWN)]]


@pytest.mark.parametrize("left", ["one\nthree\n", "one\n\nthree\n"])
def test_a_line_that_claude_removed_with_or_without_its_end(root: Path, store: Store, left: str) -> None:
    """Told to replace by nothing, it takes the line end along where there is one: the disk says which."""
    write(root / "a.txt", left)
    chat = Told()
    chat.prompt("remove")
    chat.edited("a.txt", "two", "", originalFile="one\ntwo\nthree\n")
    found, _ = bring_in(store, chat)
    assert unknown(found) == [[]]
    undo(store)
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\n"
    write(root / "a.txt", "neither\n")
    assert unknown(look(store, chat)) == [[("a.txt", replay.AFTER_UNKNOWN)]]


def test_a_file_written_over_comes_back_only_if_the_transcript_has_it(root: Path, store: Store) -> None:
    """C10: a written file that was there before is never deleted."""
    write(root / "told.txt", "new\n")
    write(root / "silent.txt", "new\n")
    chat = Told()
    chat.prompt("write over both")
    chat.wrote("told.txt", "new\n", type="update", originalFile="old\n")
    chat.wrote("silent.txt", "new\n")
    found, _ = bring_in(store, chat)
    assert unknown(found) == [[("silent.txt", replay.BEFORE_UNKNOWN)]]
    undo(store)
    assert (root / "told.txt").read_text() == "old\n"
    assert (root / "silent.txt").read_text() == "new\n"


def test_a_file_whose_first_state_is_unknown_is_known_from_then_on(root: Path, store: Store) -> None:
    """The coverage rule: it enters with the first turn that has a before."""
    write(root / "a.txt", "2\n")
    chat = Told()
    chat.prompt("first")
    chat.wrote("a.txt", "1\n")
    chat.prompt("second")
    chat.wrote("a.txt", "2\n")
    found, _ = bring_in(store, chat)
    assert [sorted(turn.changes) for turn in found.turns] == [[], [b"a.txt"]]
    undo(store, 2)
    assert (root / "a.txt").read_text() == "1\n"


def test_several_edits_in_one_call(root: Path, store: Store) -> None:
    write(root / "a.txt", "A B\n")
    chat = Told()
    chat.prompt("both")
    edits = [{"old_string": "a", "new_string": "A"}, {"old_string": "b", "new_string": "B"}]
    chat.use("m", "MultiEdit", {"file_path": f"{HOME}/a.txt", "edits": edits})
    chat.outcome("m", {"filePath": "a.txt", "edits": edits, "originalFileContents": "a b\n"})
    bring_in(store, chat)
    undo(store)
    assert (root / "a.txt").read_text() == "a b\n"


def test_a_notebook_is_known_where_its_answer_has_it_whole(root: Path, store: Store) -> None:
    write(root / "n.ipynb", "{2}")
    chat = Told()
    chat.prompt("change a cell")
    chat.use("n", "NotebookEdit", {"notebook_path": f"{HOME}/n.ipynb", "new_source": "2"})
    chat.outcome("n", {"notebook_path": "n.ipynb", "original_file": "{1}", "updated_file": "{2}"})
    chat.use("m", "NotebookEdit", {"notebook_path": f"{HOME}/m.ipynb", "new_source": "2"})
    chat.outcome("m", {"notebook_path": "m.ipynb"})
    found, _ = bring_in(store, chat)
    assert [path for path, _ in found.turns[0].unknown] == ["m.ipynb"]
    undo(store)
    assert (root / "n.ipynb").read_text() == "{1}"


def test_codex_patches_add_update_and_delete(root: Path, store: Store) -> None:
    patch = (
        "*** Begin Patch\n*** Add File: new.txt\n+one\n+two\n*** Update File: old.txt\n@@ def f():  \n-    pass\n"
        "+    return 1\n@@\n end\n-last\n+LAST\n*** Delete File: gone.txt\n*** End Patch"
    )
    write(root / "new.txt", "one\ntwo\n")
    write(root / "old.txt", "pass\ndef f():\n    return 1\nx\nend\nLAST\n")
    chat = Codex()
    chat.prompt("patch")
    chat.item("custom_tool_call", call_id="p", name="apply_patch", input=patch)
    chat.item("custom_tool_call_output", call_id="p", output="Success. Updated the following files:")
    found, imported = bring_in(store, chat)
    assert sorted(found.turns[0].changes) == [b"new.txt", b"old.txt"]
    assert unknown(found) == [[("gone.txt", replay.BEFORE_UNKNOWN)]]
    assert sorted(imported.verified) == [b"new.txt", b"old.txt"]
    undo(store)
    assert not (root / "new.txt").exists()
    assert (root / "old.txt").read_text() == "pass\ndef f():\n    pass\nx\nend\nlast\n"
    redo(store)
    assert (root / "new.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("disk", ["x\nx\n", "z\n", "y\nx\n"])
def test_a_patch_that_could_have_been_elsewhere_is_not_taken_back(root: Path, store: Store, disk: str) -> None:
    """Twice the same line, none of it, or another place that it would have been applied to first."""
    write(root / "a.txt", disk)
    chat = Codex()
    chat.prompt("change")
    chat.edit("p", "a.txt", "y", "x")
    assert unknown(look(store, chat)) == [[("a.txt", replay.NEITHER_KNOWN)]]


def test_a_file_that_a_patch_made_and_another_removed(root: Path, store: Store) -> None:
    chat = Codex()
    for number, body in enumerate(("Add File: a.txt\n+one", "Delete File: a.txt")):
        chat.prompt(f"step {number}")
        patch = f"*** Begin Patch\n*** {body}\n*** End Patch"
        chat.item("function_call", call_id=f"p{number}", name="apply_patch", arguments=json.dumps({"input": patch}))
        chat.item("function_call_output", call_id=f"p{number}", output="ok")
    found, imported = bring_in(store, chat)
    assert unknown(found) == [[], []]
    assert imported.verified == [b"a.txt"]
    undo(store)
    assert (root / "a.txt").read_text() == "one\n"
    undo(store)
    assert not (root / "a.txt").exists()
    redo(store, None)
    assert not (root / "a.txt").exists()


def test_a_failed_patch_or_a_moved_file(root: Path, store: Store) -> None:
    write(root / "b.txt", "B\n")
    chat = Codex()
    chat.prompt("patches")
    failed = "*** Begin Patch\n*** Add File: never.txt\n+one\n*** End Patch"
    chat.item("custom_tool_call", call_id="p", name="apply_patch", input=failed)
    chat.item("custom_tool_call_output", call_id="p", output='{"output": "no", "metadata": {"exit_code": 1}}')
    moved = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-b\n+B\n*** End Patch"
    chat.item("custom_tool_call", call_id="q", name="apply_patch", input=moved)
    chat.item("custom_tool_call_output", call_id="q", output="ok")
    found, _ = bring_in(store, chat)
    assert [path for path, _ in found.turns[0].unknown] == ["a.txt", "b.txt"]
    assert found.turns[0].changes == {}


def test_modes_are_those_of_the_disk(root: Path, store: Store) -> None:
    """A script stays one, and what only its owner may read comes back so."""
    write(root / "run.sh", "echo 2\n", executable=True)
    write(root / "secret", "key\n")
    os.chmod(root / "secret", 0o600)
    chat = Told()
    chat.prompt("write both")
    chat.edited("run.sh", "1", "2", originalFile="echo 1\n")
    chat.created("secret", "key\n")
    bring_in(store, chat)
    undo(store)
    assert (root / "run.sh").read_text() == "echo 1\n"
    assert os.access(root / "run.sh", os.X_OK)
    redo(store)
    assert stat.S_IMODE((root / "secret").stat().st_mode) == 0o600


def test_a_folder_that_may_have_been_there_stays(root: Path, store: Store) -> None:
    write(root / "made/a.txt", "A\n")
    chat = Told()
    chat.prompt("write")
    chat.created("made/a.txt", "A\n")
    bring_in(store, chat)
    undo(store)
    assert list((root / "made").iterdir()) == []


def test_ignored_files_come_in_when_they_are_named(root: Path, store: Store) -> None:
    write(root / ".gitignore", "*.log\n")
    write(root / "a.log", "2\n")
    chat = Told()
    chat.prompt("log")
    chat.edited("a.log", "1", "2", originalFile="1\n")
    bring_in(store, chat)
    undo(store)
    assert (root / "a.log").read_text() == "1\n"
    assert_cache_adds_up(store)


# What cannot be known


def test_a_shell_turn_says_what_it_ran(root: Path, store: Store) -> None:
    chat = Told()
    chat.prompt("clean up")
    chat.shell("1", "rm -rf\nbuild", "")
    chat.use("2", "mcp__files__write", {"path": "x"})
    chat.outcome("2", {})
    chat.use("3", "Read", {"file_path": f"{HOME}/a.txt"})
    chat.outcome("3", {})
    found, _ = bring_in(store, chat)
    whys = [why for _, why in found.turns[0].unknown]
    assert whys == [
        "ran `rm -rf build`: what it changed is not known",
        "called mcp__files__write: what that changed is not known",
    ]
    record = line(store, NAME)[1]["record"]
    assert record["unknown"][0] == {"path": None, "why": whys[0]}


def test_an_undo_says_what_an_imported_turn_does_not_know(root: Path, store: Store) -> None:
    """S2-26, G-13: the conversation moves, no file does, and it is said why."""
    chat = Told()
    chat.prompt("clean up")
    chat.shell("1", "rm -rf build", "")
    bring_in(store, chat)
    plan = store.session(NAME).plan_undo(1)
    assert plan.notes == ["turn 1 ran `rm -rf build`: what it changed is not known, and stays as it is."]
    moved = store.session(NAME).move(plan)
    assert (moved.turns_undone, moved.files_reverted, moved.snapshot_restored) == (1, [], None)


def test_failed_and_unanswered_calls(root: Path, store: Store) -> None:
    """A refused edit did nothing; whether one without an answer was carried out, nobody knows."""
    write(root / "a.txt", "1\n")
    chat = Told()
    chat.prompt("try")
    chat.created("a.txt", "1\n")
    chat.use("f", "Edit", {"file_path": f"{HOME}/a.txt", "old_string": "1", "new_string": "2"})
    chat.outcome("f", "Error: rejected", is_error=True)
    chat.prompt("again")
    chat.use("u", "Edit", {"file_path": f"{HOME}/a.txt", "old_string": "1", "new_string": "3"})
    found, _ = bring_in(store, chat)
    assert [path for path, _ in found.turns[1].unknown] == ["a.txt"]
    assert "has no result" in found.turns[1].unknown[0][1]
    assert found.turns[0].changes == {b"a.txt": (None, b"1\n")}


def test_names_that_lead_elsewhere_are_never_followed(root: Path, store: Store) -> None:
    outside = root.parent / "outside"
    write(outside / "a.txt", "theirs")
    (root / "link").symlink_to(outside)
    (root / "one.txt").symlink_to(outside / "a.txt")
    write(root / "folder/x", "x")
    names = ["../outside/a.txt", ".git/config", "x/.GIT/hooks/pre-commit", "", "a\0b", "n" * 300, "sub/../../b"]
    chat = Told()
    chat.prompt("escape")
    for name in names:
        chat.created(name, "evil")
    chat.use("abs", "Write", {"file_path": "/etc/passwd", "content": "evil"})
    chat.outcome("abs", {"type": "create", "originalFile": None, "content": "evil"})
    for name in ("link/a.txt", "one.txt", "folder"):
        chat.created(name, "evil")
    found, imported = bring_in(store, chat)
    assert [turn.changes for turn in found.turns] == [{}]
    whys = dict(found.turns[0].unknown)
    assert [whys[f"{root}/{name}"] for name in names] == [replay.OUTSIDE] * len(names)
    assert whys["/etc/passwd"] == replay.OUTSIDE
    assert {"link/a.txt", "one.txt", "folder"} < set(whys)
    assert imported.verified == []
    undo(store)
    assert (outside / "a.txt").read_text() == "theirs"
    assert (root / "folder/x").read_text() == "x"


def test_one_name_for_a_file_and_for_a_folder(root: Path, store: Store) -> None:
    write(root / "a/b", "1")
    chat = Told()
    chat.prompt("both")
    chat.created("a/b", "1")
    chat.created("a", "2")
    assert dict(look(store, chat).turns[0].unknown) == {"a": replay.FILE_AND_FOLDER, "a/b": replay.FILE_AND_FOLDER}


@pytest.mark.parametrize("disk", [b"one\r\nTWO\r\n", b"\xef\xbb\xbfone\nTWO\n"])
def test_bytes_that_agents_do_not_tell_are_not_guessed(root: Path, store: Store, disk: bytes) -> None:
    """Line ends and byte order marks get lost on the way: what does not match the disk exactly is not believed."""
    write(root / "a.txt", disk)
    for outcome in ({"originalFile": "one\ntwo\n"}, {}):
        chat = Told()
        chat.prompt("shout")
        chat.edited("a.txt", "two", "TWO", **outcome)
        found = look(store, chat)
        assert [path for path, _ in found.turns[0].unknown] == ["a.txt"]
    chat = Told()
    chat.prompt("an agent that tells them")
    chat.edited("a.txt", "two", "TWO", originalFile=disk.decode().replace("TWO", "two"))
    bring_in(store, chat)
    undo(store)
    assert (root / "a.txt").read_bytes() == disk.replace(b"TWO", b"two")


def test_line_ends_are_doubted_also_where_the_last_edit_is_not_known(root: Path, store: Store) -> None:
    write(root / "a.txt", "1\r\n2\r\n3\r\n")
    chat = Told()
    chat.prompt("one")
    chat.edited("a.txt", "0", "1", originalFile="0\n2\n")
    chat.prompt("two")
    chat.use("u", "Edit", {"file_path": f"{HOME}/a.txt", "old_string": "2", "new_string": "3"})
    assert unknown(look(store, chat)) == [[("a.txt", replay.LINE_ENDS)], [("a.txt", replay.LINE_ENDS)]]


def test_many_ways_to_read_one_call_are_given_up(root: Path, store: Store) -> None:
    text = "".join(f"line{number:02}\n" for number in range(40))
    chat = Told()
    chat.prompt("remove them all")
    edits = [{"old_string": f"line{number:02}", "new_string": ""} for number in range(40)]
    chat.use("m", "MultiEdit", {"file_path": f"{HOME}/a.txt", "edits": edits})
    chat.outcome("m", {"edits": edits, "originalFileContents": text})
    assert unknown(look(store, chat)) == [[("a.txt", replay.AFTER_UNKNOWN)]]


def test_text_that_could_not_be_read_is_not_written_back(root: Path, store: Store) -> None:
    write(root / "a.txt", "caf\ufffd 2\n")
    chat = Told()
    chat.prompt("edit a Latin-1 file")
    chat.edited("a.txt", "1", "2", originalFile="caf\ufffd 1\n")
    chat.wrote("b.txt", "lone \ud800 surrogate", type="create", originalFile=None)
    found = look(store, chat)
    assert found.turns[0].changes == {}
    assert [path for path, _ in found.turns[0].unknown] == ["a.txt", "b.txt"]


# Other hands


def test_an_edit_after_the_conversation_is_a_conflict_and_nothing_is_lost(root: Path, store: Store) -> None:
    """S0-44, S0-45, S0-46: whoever changed a file since, keeps it."""
    write(root / "edited.txt", "B and mine\n")
    write(root / "made.txt", "made, then changed by me\n")
    chat = Told()
    chat.prompt("change")
    chat.edited("edited.txt", "A", "B", originalFile="A\n")
    chat.created("made.txt", "made\n")
    _, imported = bring_in(store, chat)
    assert sorted(imported.moved_on) == [b"edited.txt", b"made.txt"]
    before = on_disk(root)
    with pytest.raises(Conflict):
        undo(store)
    assert on_disk(root) == before
    own = store.session(NAME)
    own.begin("on we go").end()
    assert kinds(store, NAME) == ["baseline", "turn", "edits", "turn"]


def test_an_edit_between_two_turns_is_a_commit_of_its_own(root: Path, store: Store) -> None:
    """Both sides of it are in the transcript: the later turn can be undone, the earlier one not without asking."""
    write(root / "a.txt", "1 mine 2\n")
    chat = Told()
    chat.prompt("one")
    chat.created("a.txt", "1\n")
    chat.prompt("two")
    chat.edited("a.txt", "mine", "mine 2", originalFile="1 mine\n")
    bring_in(store, chat)
    assert kinds(store, NAME) == ["baseline", "turn", "edits", "turn"]
    undo(store)
    assert (root / "a.txt").read_text() == "1 mine\n"
    with pytest.raises(Conflict):
        undo(store)
    assert (root / "a.txt").read_text() == "1 mine\n"


def test_an_edit_that_does_not_fit_what_was_left_is_taken_back_from_the_disk(root: Path, store: Store) -> None:
    """S0-02: somebody changed the file between the turns; what the later one did is certain all the same."""
    write(root / "a.txt", "mine: TWO\n")
    chat = Told()
    chat.prompt("one")
    chat.created("a.txt", "one\n")
    chat.prompt("shout")
    chat.edited("a.txt", "two", "TWO")
    found, imported = bring_in(store, chat)
    assert found.turns[1].changes == {b"a.txt": (b"mine: two\n", b"mine: TWO\n")}
    assert imported.verified == [b"a.txt"]
    assert kinds(store, NAME) == ["baseline", "turn", "edits", "turn"]
    undo(store)
    assert (root / "a.txt").read_text() == "mine: two\n"
    with pytest.raises(Conflict):
        undo(store)


def test_what_was_worked_out_gives_way_to_what_is_written(root: Path, store: Store) -> None:
    write(root / "a.txt", "x three\n")
    chat = Told()
    chat.prompt("one")
    chat.created("a.txt", "one\n")
    chat.prompt("two")
    chat.edited("a.txt", "one", "1 ½")
    chat.prompt("two")
    chat.edited("a.txt", "1 ½", "two")
    chat.prompt("three")
    chat.edited("a.txt", "two", "three", originalFile="x two\n")
    found, _ = bring_in(store, chat)
    uncertain = [("a.txt", replay.CHANGED_BETWEEN)]
    assert unknown(found) == [[], uncertain, uncertain, []]
    undo(store)
    assert (root / "a.txt").read_text() == "x two\n"


def test_a_turn_open_in_another_session_is_not_disturbed(root: Path, store: Store) -> None:
    live = store.session("live")
    live.begin("at work")
    write(root / "theirs.txt", "of the open turn\n")
    write(root / "a.txt", "A\n")
    chat = Told()
    chat.prompt("write")
    chat.created("a.txt", "A\n")
    bring_in(store, chat)
    oid = live.end(scan=True)
    assert {change.path for change in _node(store, "live", oid).files} == {b"theirs.txt", b"a.txt"}
    assert_whole(store)


def _node(store: Store, session: str, oid: bytes) -> Any:
    from snapstore.timeline.history.history import History

    return History(store.session(session)).node(oid)


# All or nothing


def test_a_session_that_is_there_is_refused(root: Path, store: Store) -> None:
    chat = Told()
    chat.prompt("hello")
    bring_in(store, chat)
    with pytest.raises(Conflict, match="already"), _prepared(store, chat) as found:
        found.carry_out(store, NAME)
    bring_in(store, chat, "another")
    assert store.sessions() == ["another", NAME, "shell"]


def _prepared(store: Store, chat: Any) -> Any:
    return prepare(written(chat, Path(os.fsdecode(store.root))), chat.agent, SESSION, store.root, store.home)


@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.deep)])
def test_killed_on_the_way_it_is_there_or_it_is_not(root: Path, store: Store, stride: int) -> None:
    """S0-47: killed at a call that changes something, whichever it is, all of it is there or nothing."""
    write(root / "a.txt", "3\n")
    chat = Told()
    for number in range(3):
        chat.prompt(f"turn {number}")
        chat.edited("a.txt", str(number), str(number + 1), originalFile=f"{number}\n")
    path = written(chat, root)
    before, came = on_disk(root), set()
    folder, clean = Path(store.folder), root.parent / "clean"
    store.close()
    shutil.copytree(folder, clean)

    def work() -> None:
        with Store.open(root) as own, prepare(path, "claude", None, own.root, own.home) as found:
            found.carry_out(own, NAME)

    struck, number = True, 1
    while struck:
        shutil.rmtree(folder)
        shutil.copytree(clean, folder)
        struck = killed_at(number, work)
        with Store.open(root) as after:
            there = NAME in after.sessions()
            came.add(there)
            assert_whole(after)
            if there:
                assert kinds(after, NAME) == ["baseline", "turn", "turn", "turn"]
                undo(after, 3)
                assert (root / "a.txt").read_text() == "0\n"
                redo(after, None)
        assert on_disk(root) == before
        number += stride
    assert came == {True, False}


def test_other_branches_of_the_conversation_are_counted(root: Path, store: Store) -> None:
    chat = Told()
    first = chat.prompt("one")
    chat.created("a.txt", "A\n")
    left = chat.prompt("left")
    chat.created("b.txt", "B\n")
    chat.reply("Done.")
    chat.prompt("instead", parent=first)
    found = look(store, chat)
    assert (left, found.left_out_branches, found.left_out_turns) == ("uuid-4", 1, 1)
    assert [turn.prompt for turn in found.turns] == ["one", "instead"]
