"""Agents whose transcript is a list with an end that can be cut off: Codex, Gemini, Copilot, Cursor, opencode.

S0-11, S2-09, G-10."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from conversations import Conversation, read_conversation
from test_transcripts_builders import (
    SESSION,
    Codex,
    Copilot,
    Cursor,
    Gemini,
    GeminiDocument,
    Opencode,
    OpencodeDatabase,
    read,
    story,
)

from snapstore.agents.events.tool_effects import effect
from snapstore.errors import Corrupt, Unknown
from snapstore.transcripts.readers.read import last_turns


def prompts(conversation: Conversation) -> list[str | None]:
    return [turn.prompt for turn in conversation.turns]


# Codex.


def test_codex_rolls_turns_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G-10: the turns are left as a branch, and what follows goes on from before them."""
    builder = story(Codex())
    builder.event("thread_rolled_back", num_turns=2)
    builder.prompt("whisper, please")
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["make it shout", "whisper, please"]
    (branch,) = conversation.branches
    assert (branch.after, [turn.index for turn in branch.turns]) == (1, [2, 3])
    monkeypatch.setattr("snapstore.transcripts.readers.read._FIRST_TAIL", 200)
    path = tmp_path / f"{SESSION}.jsonl"
    assert [turn.prompt for turn in last_turns(path, "codex", 2)] == ["make it shout", "whisper, please"]


@pytest.mark.parametrize("count", [0, -1, 99, "two", None, True])
def test_codex_rolls_back_more_than_there_is(count: Any, tmp_path: Path) -> None:
    builder = story(Codex())
    builder.event("thread_rolled_back", num_turns=count)
    assert len(read(builder, tmp_path).turns) in (0, 1, 3)


def test_codex_aborted_turns_and_steering(tmp_path: Path) -> None:
    """S2-09: a second message while the turn runs is part of it."""
    builder = Codex()
    builder.prompt("one")
    builder.event("user_message", message="and quickly")
    builder.event("turn_aborted", turn_id="turn-1", reason="interrupted")
    builder.prompt("two")
    turns = read(builder, tmp_path).turns
    assert [turn.prompt for turn in turns] == ["one\n\nand quickly", "two"]
    assert [turn.interrupted for turn in turns] == [True, False]
    assert [turn.prompt_id for turn in turns] == ["turn-1", "turn-2"]


def test_codex_from_the_middle_of_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G-10: a context or a message within a turn that began before the tail does not look like a beginning."""
    monkeypatch.setattr("snapstore.transcripts.readers.read._FIRST_TAIL", 300)
    builder = Codex()
    builder.prompt("one")
    builder.reply("x" * 2000)
    builder.line("turn_context", {"turn_id": "turn-1"})
    builder.event("user_message", message="and quickly")
    builder.reply("yes")
    (turn,) = last_turns(builder.write(tmp_path / "t.jsonl"), "codex")
    assert turn.prompt == "one\n\nand quickly"


def test_codex_of_before_turns_were_announced(tmp_path: Path) -> None:
    """G-10: the context and the item that come before the prompt's event are of the prompt's turn."""
    builder = Codex()
    for text in ("one", "two"):
        builder.line("turn_context", {"cwd": "/home/ada/project"})
        builder.item("message", role="user", content=[{"type": "input_text", "text": text}])
        builder.event("user_message", message=text)
        builder.reply(f"re {text}")
    turns = read(builder, tmp_path).turns
    assert [(turn.prompt, turn.replies) for turn in turns] == [("one", ["re one"]), ("two", ["re two"])]
    assert [len(turn.lines) for turn in turns] == [6, 5]


def test_codex_instructions_are_no_prompt(tmp_path: Path) -> None:
    builder = Codex()
    builder.event("task_started", turn_id="t")
    for text in ("<environment_context>…</environment_context>", "say hello"):
        builder.item("message", role="user", content=[{"type": "input_text", "text": text}])
    builder.reply("hello")
    assert prompts(read(builder, tmp_path)) == ["say hello"]


def test_codex_skills_are_no_prompt(tmp_path: Path) -> None:
    """S4-25: what Codex 0.169.0 adds in the user's name, by what it says of it or by how it begins."""
    builder = Codex()
    builder.event("task_started", turn_id="t")
    about = {"content_item_kinds": ["skills.instructions"]}
    builder.item(
        "message",
        role="user",
        content=[{"type": "input_text", "text": "Be brief."}],
        internal_chat_message_metadata_passthrough=about,
    )
    for text in ("<skill>\n<name>brief</name>\n</skill>", "say hello"):
        builder.item("message", role="user", content=[{"type": "input_text", "text": text}])
    assert prompts(read(builder, tmp_path)) == ["say hello"]


def test_codex_messages_are_items(tmp_path: Path) -> None:
    """S4-25: Codex 0.169.0 writes what the user said as items, a message during the turn too."""
    builder = Codex()
    builder.event("task_started", turn_id="t")
    for text in ("one", "and quickly"):
        builder.item("message", role="user", content=[{"type": "input_text", "text": text}])
        item = {"type": "UserMessage", "id": text, "content": [{"type": "text", "text": text}]}
        builder.event("item_completed", item=item)
    assert prompts(read(builder, tmp_path)) == ["one\n\nand quickly"]


def test_codex_scripts_are_what_they_ran(tmp_path: Path) -> None:
    """S0-11, S4-25: what a script changed is told by items, with renames and deletions; a script that failed before it
    ran anything is told as a script."""
    builder = Codex()
    builder.prompt("change")
    changes = {
        "/p/new.txt": {"type": "add", "content": "one\ntwo\n"},
        "/p/old.txt": {
            "type": "update",
            "unified_diff": "@@ -1,2 +1,2 @@\n same\n-out\n+in\n",
            "move_path": "/p/now.txt",
        },
        "/p/gone.txt": {"type": "delete", "content": "x"},
    }
    run = {"type": "CommandExecution", "id": "exec-2", "command": ["/bin/bash", "-lc", "make"], "status": "failed"}
    files = {"type": "FileChange", "id": "exec-1", "changes": changes, "status": "completed", "stdout": "Success."}
    builder.item("custom_tool_call", call_id="c-1", name="exec", namespace="functions", input="tools.apply_patch(…)")
    builder.event("item_completed", item=files)
    builder.event("item_completed", item={**run, "aggregated_output": "no", "exit_code": 2})
    builder.item("custom_tool_call_output", call_id="c-1", output="Script completed")
    builder.item("custom_tool_call", call_id="c-2", name="exec", namespace="functions", input="oops(")
    builder.item("custom_tool_call_output", call_id="c-2", output="Script failed\nScript error: oops")
    write, edit, delete, shell, script = read(builder, tmp_path).turns[0].tool_calls
    assert (write.type, write.file_path, write.content) == ("Write", "/p/new.txt", "one\ntwo\n")
    assert (edit.type, edit.file_path, edit.old_string, edit.new_string) == (
        "Edit",
        "/p/old.txt",
        "same\nout",
        "same\nin",
    )
    assert "*** Move to: /p/now.txt" in edit.input
    assert delete.file_path == "/p/gone.txt"
    assert (shell.type, shell.input, shell.result, shell.is_error) == ("shell", {"cmd": "make"}, "no", True)
    assert (script.name, script.is_error) == ("functions.exec", True)
    assert not effect(script.name, script.input).scans


@pytest.mark.parametrize(
    "told",
    [
        "apply_patch verification failed: Failed to read file to update /p/a: No such file",
        "Chunk ID: 1\nWall time: 0 seconds\nProcess exited with code 3\nOutput:\n",
        "Exit code: 1\nWall time: 0 seconds\nOutput:\n",
        "exec_command failed for `x`: CreateProcess",
    ],
)
def test_codex_failures_are_plain_text(told: str, tmp_path: Path) -> None:
    builder = Codex()
    builder.prompt("try")
    builder.item("function_call", call_id="c", name="exec_command", arguments='{"cmd": "x"}')
    builder.item("function_call_output", call_id="c", output=told)
    builder.item("function_call", call_id="d", name="exec_command", arguments='{"cmd": "x"}')
    builder.item(
        "function_call_output", call_id="d", output="Chunk ID: 1\nProcess exited with code 0\nOutput:\nfailed: 1"
    )
    assert [call.is_error for call in read(builder, tmp_path).turns[0].tool_calls] == [True, False]


def test_codex_compaction_and_forks(tmp_path: Path) -> None:
    builder = Codex()
    builder.records[0]["payload"]["forked_from_id"] = "parent"
    builder.line("session_meta", {"id": "parent", "cwd": "/elsewhere"})
    builder.prompt("one")
    builder.line("compacted", {"message": "summary"})
    builder.prompt("two")
    conversation = read(builder, tmp_path)
    assert (conversation.session_id, conversation.forked_from) == (SESSION, "parent")
    assert conversation.cwd == "/home/ada/project"
    assert [turn.compacted_before for turn in conversation.turns] == [False, True]


def test_a_patch_is_one_call_a_file(tmp_path: Path) -> None:
    """S0-11: added, changed and deleted files of one patch, also where the shell was told to apply it."""
    patch = (
        "*** Begin Patch\n*** Add File: new.txt\n+one\n+two\n*** Update File: old.txt\n@@ def\n same\n-out\n+in\n"
        "*** Delete File: gone.txt\n*** End Patch\n"
    )
    builder = Codex()
    builder.prompt("patch")
    builder.item("custom_tool_call", call_id="c-1", name="apply_patch", input=patch)
    arguments = json.dumps({"command": ["apply_patch", patch]})
    builder.item("function_call", call_id="c-2", name="shell", arguments=arguments)
    builder.item("function_call_output", call_id="c-1", output={"content": "failed", "success": False})
    calls = read(builder, tmp_path).turns[0].tool_calls
    assert [(call.type, call.file_path) for call in calls[:3]] == [(c.type, c.file_path) for c in calls[3:]]
    write, edit, delete = calls[:3]
    assert (write.type, write.file_path, write.content) == ("Write", "new.txt", "one\ntwo\n")
    assert (edit.type, edit.old_string, edit.new_string) == ("Edit", "same\nout", "same\nin")
    assert (delete.type, delete.file_path) == ("other", "gone.txt")
    assert all(call.is_error and call.result == "failed" for call in calls[:3])


# Gemini.


def test_gemini_rewinds(tmp_path: Path) -> None:
    """G-10: `$rewindTo` takes that message and all after it."""
    builder = story(Gemini())
    second = next(r["id"] for r in builder.records if r.get("type") == "user" and "whisper" in str(r))
    builder.put({"$rewindTo": second})
    builder.prompt("once more")
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["make it shout", "once more"]
    assert [turn.prompt for turn in conversation.branches[0].turns] == ["now whisper — ünïcödé", "thanks"]


def test_gemini_rewinds_into_a_turn(tmp_path: Path) -> None:
    builder = story(Gemini())
    waiting = next(r["id"] for r in builder.records if r.get("content") == "Done too.")
    builder.put({"$rewindTo": waiting})
    turns = read(builder, tmp_path).turns
    assert turns[-1].replies == ["Wait."]


def test_gemini_rewinds_to_nothing_known(tmp_path: Path) -> None:
    builder = story(Gemini())
    builder.put({"$rewindTo": "never-seen"})
    builder.prompt("fresh")
    conversation = read(builder, tmp_path)
    assert prompts(conversation)[-1] == "fresh"
    assert len([prompt for prompt in prompts(conversation) if prompt]) == 1


def test_gemini_writes_a_message_again(tmp_path: Path) -> None:
    """S2-09: the newest wording counts, once, and both lines are kept."""
    builder = Gemini()
    builder.prompt("one")
    builder.reply("half an ans")
    builder.put({**builder.records[-1], "content": "a whole answer"})
    builder.put({"$set": {"summary": "A title", "directories": ["/home/ada/project"]}})
    conversation = read(builder, tmp_path)
    (turn,) = conversation.turns
    assert turn.replies == ["a whole answer"]
    assert len(turn.lines) == 5
    assert (conversation.title, conversation.cwd) == ("A title", "/home/ada/project")


def test_gemini_sets_all_messages(tmp_path: Path) -> None:
    builder = story(Gemini())
    builder.put({"$set": {"messages": builder.records[1:3]}})
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["make it shout"]


def test_gemini_resumed_chats_write_all_anew(tmp_path: Path) -> None:
    """S4-25: Gemini CLI 0.61.0 first writes a list of the context alone, then one of everything, in which a call and
    its answer share an id. That is no branch, and the lines of before still tell the outcome."""
    context = {"id": "m0", "type": "user", "content": [{"text": "<session_context>\nThis is the Gemini CLI."}]}
    builder = Gemini()
    builder.put({"$set": {"messages": [context]}})
    builder.prompt("one")
    called = {"id": "c", "name": "run_shell_command", "args": {"command": "false"}}
    builder.message("gemini", "so", toolCalls=[{**called, "status": "error", "result": "no"}])
    prompt, call = builder.records[-2:]
    answer = {"functionResponse": {"id": "c", "name": "run_shell_command", "response": {"output": "no"}}}
    again = [
        {**prompt, "content": [{"text": "one"}]},
        {**call, "content": [{"text": "so"}, {"functionCall": called}]},
        {**call, "type": "user", "content": [answer]},
    ]
    del again[1]["toolCalls"]
    builder.put({"$set": {"messages": [context]}})
    ended = read(builder, tmp_path)
    assert (prompts(ended), ended.branches) == (["one"], [])
    builder.put({"$set": {"messages": [context, *again]}})
    builder.prompt("two")
    conversation = read(builder, tmp_path)
    assert (prompts(conversation), conversation.branches) == (["one", "two"], [])
    first = conversation.turns[0]
    assert (first.replies, [call.is_error for call in first.tool_calls]) == (["so"], [True])

    shortened = Gemini()  # without the lines of before, as after an import elsewhere
    shortened.put({"$set": {"messages": [context, *again]}})
    (only,) = read(shortened, tmp_path).turns
    assert (only.prompt, only.replies) == ("one", ["so"])
    assert [(call.name, call.result) for call in only.tool_calls] == [("run_shell_command", "no")]


def test_gemini_goes_on_without_what_was_there(tmp_path: Path) -> None:
    """G-10: a prompt right after a list of the context alone leaves the turns of before as a branch."""
    builder = story(Gemini())
    builder.put({"$set": {"messages": [{"id": "m0", "type": "user", "content": "<session_context>"}]}})
    builder.prompt("anew")
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["anew"]
    assert [len(branch.turns) for branch in conversation.branches] == [3]


def test_gemini_tool_answers_start_no_turn(tmp_path: Path) -> None:
    builder = Gemini()
    builder.prompt("one")
    builder.message("user", [{"functionResponse": {"name": "x", "response": {}}}])
    builder.message("gemini", "", toolCalls=[{"id": "c", "name": "replace", "args": {}, "status": "cancelled"}])
    (turn,) = read(builder, tmp_path).turns
    assert turn.interrupted
    assert turn.tool_calls[0].is_error


def test_gemini_document_on_one_line(tmp_path: Path) -> None:
    builder = story(GeminiDocument())
    path = tmp_path / "session.json"
    path.write_bytes(json.dumps(json.loads(builder.data())).encode())
    assert len(read_conversation(path, "gemini").turns) == 3
    path.write_bytes(builder.data()[:-20])
    with pytest.raises(Corrupt):
        read_conversation(path, "gemini")


# Copilot, Cursor.


def test_copilot_rewinds_aborts_and_compacts(tmp_path: Path) -> None:
    """G-10: the event named and all after it were removed."""
    builder = story(Copilot())
    second = next(r["id"] for r in builder.records if "whisper" in str(r["data"].get("content")))
    builder.event("session.snapshot_rewind", upToEventId=second, eventsRemoved=5)
    builder.event("session.compaction_complete", success=True)
    builder.prompt("once more")
    builder.event("user.message", content="to a subagent", parentToolCallId="c")
    builder.event("abort", reason="user")
    builder.event("session.title_changed", title="Volume")
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["make it shout", "once more"]
    assert conversation.turns[1].interrupted
    assert conversation.turns[1].compacted_before
    assert conversation.title == "Volume"
    assert len(conversation.branches[0].turns) == 2


def test_copilot_rewinds_into_a_turn_and_to_nowhere(tmp_path: Path) -> None:
    builder = story(Copilot())
    late = next(r["id"] for r in builder.records if r["data"].get("content") == "Done too.")
    builder.event("session.snapshot_rewind", upToEventId=late)
    builder.event("session.snapshot_rewind", upToEventId="nowhere")
    assert read(builder, tmp_path).turns[-1].replies == ["Wait."]


def test_cursor_without_tags_or_ids(tmp_path: Path) -> None:
    builder = Cursor()
    builder.put({"role": "user", "message": {"content": "plain"}})
    builder.line("assistant", {"type": "tool_use", "name": "Write", "input": {"path": "/a", "contents": "x"}})
    builder.put({"type": "turn_ended", "status": "aborted"})
    (turn,) = read(builder, tmp_path).turns
    assert (turn.prompt, turn.interrupted) == ("plain", True)
    assert (turn.tool_calls[0].type, turn.tool_calls[0].content) == ("Write", "x")


# opencode.


@pytest.mark.parametrize("kind", [Opencode, OpencodeDatabase])
def test_opencode_reverts_compacts_and_forks(kind: type[Any], tmp_path: Path) -> None:
    builder = kind()
    builder.prompt("one")
    builder.reply("a")
    builder.message("user", {"type": "compaction", "auto": True})
    builder.message("user", {"type": "text", "text": "reminder", "synthetic": True})
    builder.prompt("two")
    builder.records[-1]["info"]["time"]["created"] = "soon"
    builder.message("assistant", {"type": "tool", "callID": "c", "tool": "bash", "state": {"status": "error"}})
    builder.records[-1]["info"]["error"] = {"name": "MessageAbortedError"}
    builder.prompt("three")
    builder.info.update(parentID="ses_parent", revert={"messageID": builder.records[-1]["info"]["id"]})
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["one", "two"]
    assert [turn.compacted_before for turn in conversation.turns] == [False, True]
    assert conversation.turns[1].interrupted
    assert conversation.turns[1].tool_calls[0].is_error
    assert (conversation.forked_from, conversation.title) == ("ses_parent", "Words")
    assert [turn.prompt for turn in conversation.branches[0].turns] == ["three"]


def test_opencodes_database_while_it_is_written(tmp_path: Path) -> None:
    """What is only in the write-ahead log is seen, and nothing is written beside what opencode itself keeps there."""
    path = story(OpencodeDatabase()).write(tmp_path / "opencode.db")
    writer = sqlite3.connect(path)
    writer.execute("pragma journal_mode = wal")
    info = json.dumps({"role": "user", "time": {"created": 1785578500000}})
    writer.execute("insert into message values ('msg_9998', ?, 0, ?)", (SESSION, info))
    part = json.dumps({"type": "text", "text": "from the log"})
    writer.execute("insert into part values ('prt_9', 'msg_9998', ?, ?)", (SESSION, part))
    writer.commit()
    before = path.read_bytes()
    assert prompts(read_conversation(path, "opencode", SESSION))[-1] == "from the log"
    writer.execute("begin immediate")
    assert len(read_conversation(path, "opencode", SESSION).turns) == 4
    writer.rollback()
    assert path.read_bytes() == before
    writer.close()


def test_opencodes_database_that_is_none(tmp_path: Path) -> None:
    path = story(OpencodeDatabase()).write(tmp_path / "opencode.db")
    with pytest.raises(Unknown):
        read_conversation(path, "opencode", "ses_unknown")
    with pytest.raises(Unknown):
        read_conversation(path, "opencode")
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 2000)
    with pytest.raises(Corrupt):
        read_conversation(path, "opencode", SESSION)
    empty = tmp_path / "empty.db"
    sqlite3.connect(empty).execute("create table other (x)").connection.close()
    with pytest.raises(Corrupt):
        read_conversation(empty, "opencode", SESSION)
    export = tmp_path / "export.json"
    for content in (b'{"info": {}}', b"[]", b"{", b'{"messages": 3}'):
        export.write_bytes(content)
        with pytest.raises(Corrupt):
            read_conversation(export, "opencode")
    export.write_bytes(b'{"info": null, "messages": [null, 3, {"info": [], "parts": {}}]}')
    assert read_conversation(export, "opencode").malformed_lines == 2
