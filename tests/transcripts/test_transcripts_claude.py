"""Claude Code's tree of lines: what starts a turn, and which turns the conversation stands on.

S0-07, S2-09, S4-02, G-10."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conversations import Conversation, read_conversation
from test_transcripts_builders import SESSION, Claude, read, story

from snapstore.transcripts.readers.read import last_turns


def prompts(conversation: Conversation) -> list[str | None]:
    return [turn.prompt for turn in conversation.turns]


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        ([{"type": "tool_result", "tool_use_id": "x", "content": "ok"}], {}),
        ("looks like text", {"toolUseResult": {"stdout": ""}}),
        ("Caveat: …", {"isMeta": True}),
        ("You are a subagent", {"isSidechain": True}),
        ("from a team mate", {"teamName": "red"}),
        ("This session is being continued from…", {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}),
        ("<local-command-stdout>set</local-command-stdout>", {}),
        ("<local-command-caveat>…</local-command-caveat>", {}),
        ("<session-start-hook>…", {}),
        ("<bash-stdout>a b</bash-stdout><bash-stderr></bash-stderr>", {}),
        ("<task-notification>done</task-notification>", {}),
        ([{"type": "text", "text": "[Request interrupted by user for tool use]"}], {}),
        ([{"type": "text", "text": "<ide_opened_file>a.py</ide_opened_file>"}], {}),
        ("go on", {"origin": {"kind": "auto-continuation"}}),
        ("tick", {"promptSource": "system"}),
    ],
)
def test_lines_in_the_users_name_that_start_no_turn(content: Any, fields: dict[str, Any], tmp_path: Path) -> None:
    """G-10: only what a person asked starts a turn; the rest belongs to the turn it lies in."""
    builder = Claude()
    builder.prompt("one")
    builder.reply("a")
    builder.user(content, **fields)
    builder.reply("b")
    builder.prompt("two")
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["one", "two"]
    assert conversation.turns[0].replies == ["a", "b"]
    assert len(conversation.turns[0].lines) == 4


def test_what_was_typed_is_a_prompt_whatever_it_looks_like(tmp_path: Path) -> None:
    """G-10: the agent's own word on who said it counts for more than the text."""
    builder = Claude()
    builder.prompt("<goal> is my favourite tag", promptSource="typed")
    builder.reply("a")
    builder.prompt("[Request interrupted by user] — why do I see this?", origin={"kind": "human"})
    assert len(read(builder, tmp_path).turns) == 2


def test_a_prompt_beside_what_the_editor_adds(tmp_path: Path) -> None:
    builder = Claude()
    builder.user([{"type": "text", "text": "<ide_selection>x</ide_selection>"}, {"type": "text", "text": "rename it"}])
    builder.reply("a")
    builder.user([{"type": "image", "source": {}}])
    assert prompts(read(builder, tmp_path)) == ["rename it", ""]


def test_a_command_is_a_turn_if_the_agent_answers(tmp_path: Path) -> None:
    """S2-09: /model only sets something; /review asks for work. Lines with one prompt id are one prompt."""
    builder = Claude()
    builder.prompt("one")
    builder.reply("a")
    builder.user("<command-name>/model</command-name>\n<command-args></command-args>")
    builder.user("<local-command-stdout>Set model</local-command-stdout>")
    command = "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
    builder.user(command + "<command-args>a.py</command-args>", promptId="p-2")
    builder.user("Please review the file…", promptId="p-2")
    builder.reply("b")
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["one", "/review a.py"]
    assert conversation.turns[1].prompt_id == "p-2"
    assert conversation.turns[1].replies == ["b"]


def test_prompts_that_a_fork_by_the_agent_gave_one_id(tmp_path: Path) -> None:
    """S2-09: `claude --resume ID --fork-session` copies every line under new ids, and gives all the prompts that it
    copies, and their results, the id of the new one (as 2.1.325 does)."""
    builder = Claude()
    for text in ("One", "Two", "Three"):
        builder.prompt(text, promptId="p-3", promptSource="sdk")
        builder.use(f"t-{text}", "Bash", {"command": "make"})
        builder.answer(f"t-{text}", "ok", promptId="p-3")
        builder.reply(f"Done: {text}")
    path = builder.write(tmp_path / "t.jsonl")
    read = read_conversation(path, "claude")
    assert prompts(read) == ["One", "Two", "Three"]
    assert [turn.replies for turn in read.turns] == [["Done: One"], ["Done: Two"], ["Done: Three"]]
    [last] = last_turns(path, "claude", 1)
    assert (last.prompt, last.prompt_id, len(last.tool_calls)) == ("Three", "p-3", 1)


def test_a_rewind_leaves_a_branch(tmp_path: Path) -> None:
    """S4-02: a prompt whose parent is an earlier line goes on from there; what it left is still there."""
    builder = Claude()
    builder.prompt("one")
    first = builder.reply("a")
    builder.prompt("two")
    builder.reply("b")
    builder.prompt("three")
    builder.reply("c")
    builder.prompt("two, but better", parent=first)
    builder.reply("d")
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["one", "two, but better"]
    (branch,) = conversation.branches
    assert branch.after == 1
    assert [(turn.index, turn.prompt) for turn in branch.turns] == [(2, "two"), (3, "three")]


def test_a_rewind_to_before_the_first_prompt(tmp_path: Path) -> None:
    builder = Claude()
    builder.prompt("one")
    builder.reply("a")
    builder.prompt("another beginning", parent=None)
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["another beginning"]
    assert [(branch.after, branch.turns[0].prompt) for branch in conversation.branches] == [(0, "one")]


def test_the_agent_names_the_leaf_it_stands_on(tmp_path: Path) -> None:
    """S4-02: a rewind after which nothing was said is only in `last-prompt`; once something is, that counts."""
    builder = Claude()
    builder.prompt("one")
    first = builder.reply("a")
    builder.prompt("two")
    second = builder.reply("b")
    builder.put({"type": "last-prompt", "leafUuid": first, "sessionId": SESSION})
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["one"]
    assert [turn.prompt for turn in conversation.branches[0].turns] == ["two"]
    builder.prompt("three", parent=second)
    assert prompts(read(builder, tmp_path)) == ["one", "two", "three"]


def test_results_beside_the_chain_come_along(tmp_path: Path) -> None:
    """S4-02: parallel calls; the conversation goes on from the second result, the first hangs beside it."""
    builder = Claude()
    builder.prompt("read both")
    one = builder.use("t-1", "Read", {"file_path": "/a"})
    two = builder.use("t-2", "Read", {"file_path": "/b"})
    builder.answer("t-1", "A", parent=one)
    builder.answer("t-2", "B", parent=two)
    builder.reply("both read")
    builder.prompt("next")
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["read both", "next"]
    assert [(call.id, call.result) for call in conversation.turns[0].tool_calls] == [("t-1", "A"), ("t-2", "B")]
    assert not conversation.branches


def test_side_shoots_that_are_no_rewinds(tmp_path: Path) -> None:
    """S4-02: progress and attachments beside the chain are no branches."""
    builder = Claude()
    top = builder.prompt("one")
    builder.node("progress", parent=top, data={})
    builder.node("attachment", parent=top, attachment={})
    builder.reply("a", parent=top)
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["one"]
    assert not conversation.branches
    assert len(conversation.turns[0].lines) == 4


def test_compaction_goes_on_in_the_same_conversation(tmp_path: Path) -> None:
    """S4-02: a boundary has no parent, only a logical one; turns before it are still turns."""
    builder = Claude()
    builder.prompt("one")
    last = builder.reply("a")
    builder.node("system", parent=None, subtype="compact_boundary", logicalParentUuid=last, compactMetadata={})
    builder.user("This session is being continued…", isCompactSummary=True)
    builder.reply("still at it")
    builder.prompt("two")
    builder.reply("b")
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["one", "two"]
    assert conversation.turns[0].replies == ["a", "still at it"]
    assert [turn.compacted_before for turn in conversation.turns] == [False, True]


def test_prompts_that_compaction_writes_again_are_one_turn(tmp_path: Path) -> None:
    """S4-02: new ids, the same parent and the same time: no fork."""
    builder = Claude()
    top = builder.node("system", subtype="informational")
    builder.prompt("one", parent=top, timestamp="2026-08-01T00:00:00Z")
    builder.reply("a")
    builder.prompt("one", parent=top, timestamp="2026-08-01T00:00:00Z")
    builder.prompt("two")
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["one", "two"]
    assert not conversation.branches


def test_a_subagents_lines_belong_to_the_turn_it_worked_in(tmp_path: Path) -> None:
    """G-10: its edits are the turn's, its words are not the agent's replies."""
    builder = Claude()
    builder.prompt("delegate")
    call = builder.use("t-1", "Task", {"prompt": "do it"})
    builder.user("do it", parent=None, isSidechain=True)
    builder.use("t-2", "Write", {"file_path": "/a", "content": "new"}, isSidechain=True)
    builder.answer("t-2", "ok", isSidechain=True)
    builder.reply("subagent says", isSidechain=True)
    builder.answer("t-1", "done", parent=call)
    builder.reply("agent says")
    conversation = read(builder, tmp_path)
    (turn,) = conversation.turns
    assert turn.replies == ["agent says"]
    assert [(call.type, call.file_path, call.content) for call in turn.tool_calls][1] == ("Write", "/a", "new")
    assert len(turn.lines) == len(builder.records)


def test_an_interrupt_is_seen(tmp_path: Path) -> None:
    builder = Claude()
    builder.prompt("one")
    builder.user([{"type": "text", "text": "[Request interrupted by user]"}])
    builder.prompt("two")
    assert [turn.interrupted for turn in read(builder, tmp_path).turns] == [True, False]


def test_lines_outside_the_tree_are_kept(tmp_path: Path) -> None:
    """S0-07: snapshots go with the prompt they were written for, unknown types with the turn they lie in."""
    builder = Claude()
    builder.prompt("one")
    builder.reply("a")
    snapshot = {"type": "file-history-snapshot", "messageId": "uuid-3", "isSnapshotUpdate": False, "snapshot": {}}
    builder.put(snapshot)
    builder.prompt("two")
    builder.put({"type": "from-the-future", "field": [1]})
    builder.put({"type": "custom-title", "customTitle": "Counting", "sessionId": SESSION})
    conversation = read(builder, tmp_path)
    assert [len(turn.lines) for turn in conversation.turns] == [2, 4]
    assert b"from-the-future" in conversation.turns[1].lines[2]
    assert conversation.title == "Counting"
    assert conversation.unknown_lines == 1


def test_where_a_fork_came_from(tmp_path: Path) -> None:
    builder = Claude()
    builder.prompt("one", forkedFrom={"sessionId": "parent-session", "messageUuid": "uuid-1"})
    conversation = read(builder, tmp_path)
    assert conversation.forked_from == "parent-session"
    assert conversation.cwd == "/home/ada/project"


def test_several_edits_in_one_call(tmp_path: Path) -> None:
    """S0-11: each is its own entry, and what the file was before is at hand."""
    builder = Claude()
    builder.prompt("one")
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]
    builder.use("t-1", "MultiEdit", {"file_path": "/f", "edits": edits})
    block = {"type": "tool_result", "tool_use_id": "t-1", "content": [{"type": "text", "text": "no"}], "is_error": True}
    builder.user([block], toolUseResult={"originalFile": "ac"})
    calls = read(builder, tmp_path).turns[0].tool_calls
    assert [(call.old_string, call.new_string) for call in calls] == [("a", "b"), ("c", "d")]
    assert all(call.is_error and call.result == "no" and call.outcome == {"originalFile": "ac"} for call in calls)


@pytest.mark.parametrize("parent", ["uuid-1", "uuid-2", "nowhere"])
def test_parents_in_circles_and_out_of_order(parent: str, tmp_path: Path) -> None:
    """S4-02: a tree that is none still gives turns, and an end."""
    builder = Claude()
    builder.prompt("one", parent=parent)
    builder.reply("a")
    builder.prompt("two", parent="uuid-4")
    builder.reply("b", parent="uuid-3")
    conversation = read(builder, tmp_path)
    assert "two" in prompts(conversation)
    everything = [*conversation.turns, *(turn for branch in conversation.branches for turn in branch.turns)]
    assert {turn.prompt for turn in everything} == {"one", "two"}


def test_a_line_written_twice_counts_once(tmp_path: Path) -> None:
    builder = story(Claude())
    builder.records.extend(builder.records[-2:])
    conversation = read(builder, tmp_path)
    assert prompts(conversation)[-1] == "thanks"
    assert conversation.turns[-1].replies == ["You are welcome."]


def test_the_end_of_a_file_whose_rewind_leads_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S4-02: the last turns are those of the line, also when its earlier ones lie far back in the file."""
    monkeypatch.setattr("snapstore.transcripts.readers.read._FIRST_TAIL", 500)
    builder = Claude()
    builder.prompt("one")
    first = builder.reply("a")
    for number in range(20):
        builder.prompt(f"left {number}")
        builder.reply("x" * 100)
    builder.prompt("two", parent=first)
    builder.reply("b")
    path = builder.write(tmp_path / "t.jsonl")
    assert [turn.prompt for turn in last_turns(path, "claude", 2)] == ["one", "two"]
    assert len(read_conversation(path, "claude").branches[0].turns) == 20


def test_lines_without_ids_are_a_flat_conversation(tmp_path: Path) -> None:
    """M-14: as programs write them that know nothing of the tree."""
    builder = Claude()
    for type, role, content in (
        ("system", "system", "You are helpful."),
        ("user", "user", "Add a login form"),
        ("assistant", "assistant", "Done."),
        ("tool_use", "assistant", "Write login.py"),
        ("user", "user", "Make it blue"),
        ("assistant", "assistant", [{"type": "text", "text": "It is blue."}]),
    ):
        builder.put({"type": type, "message": {"role": role, "content": content}})
    builder.put({"type": "summary", "summary": "A login form", "leafUuid": "x"})
    conversation = read(builder, tmp_path)
    assert prompts(conversation) == ["Add a login form", "Make it blue"]
    assert [turn.replies for turn in conversation.turns] == [["Done."], ["It is blue."]]
    assert [len(turn.lines) for turn in conversation.turns] == [4, 3]
    assert conversation.title == "A login form"
