"""Forks of Claude Code conversations: whole for our reader and for the Agent SDK's, the original untouched.

S1-09, S1-16, S1-17, S1-21, S1-43, S1-47, S1-52, S1-65, S4-01, S4-02, S4-12, S4-21, S4-27, G-19."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import get_session_info, get_session_messages, list_sessions, project_key_for_directory
from conversations import Conversation, read_conversation
from helpers import bit_by_bit, killed_at, quick_folder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_transcripts_builders import SESSION, Claude, story

from snapstore.errors import Busy, Conflict, Failed, Unknown, Unsafe
from snapstore.transcripts.fork import fork as forking
from snapstore.transcripts.fork.fork import Fork, branch_title, fork_conversation, fork_lines, rewind_alias, write_fork

NEW = "1c1e3f52-6a4b-4b6e-9b5f-00000000000a"
NEWER = "1c1e3f52-6a4b-4b6e-9b5f-00000000000b"
CHANGED = {"parentUuid", "sessionId", "isSidechain", "forkedFrom"}


class Project:
    """A project folder and what the agent keeps of it."""

    def __init__(self, folder: Path) -> None:
        self.directory = folder / "project"
        self.sessions = folder / "config" / "projects" / project_key_for_directory(self.directory)
        for path in (self.directory, self.sessions):
            path.mkdir(parents=True)

    def put(self, builder: Claude, session: str = SESSION) -> Path:
        return builder.write(self.sessions / f"{session}.jsonl")

    def read(self, session: str = NEW) -> Conversation:
        return read_conversation(self.sessions / f"{session}.jsonl", "claude")

    def messages(self, session: str = NEW) -> list[Any]:
        """As the Agent SDK reads them."""
        return get_session_messages(session, directory=str(self.directory))

    def fork(self, builder: Claude, up_to: str | None = None, new_id: str = NEW, title: str | None = None) -> Fork:
        """Forks the conversation, and sees that it stays as it was and that the fork is valid."""
        path = self.put(builder)
        before = bit_by_bit(path)
        fork = fork_conversation(path, up_to=up_to, new_id=new_id, title=title)
        assert fork.path is None
        assert fork.write() == str(self.sessions / f"{new_id}.jsonl")
        assert bit_by_bit(path) == before
        written = lines_of(self.sessions / f"{new_id}.jsonl")
        assert len(written) == fork.lines
        assert_valid(written)
        assert_api_valid([message.message for message in self.messages(new_id)])
        return fork


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    return Project(tmp_path)


def lines_of(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def prompts(conversation: Conversation) -> list[str | None]:
    return [turn.prompt for turn in conversation.turns]


def results(conversation: Conversation) -> dict[str | None, str | None]:
    return {call.id: call.result for turn in conversation.turns for call in turn.tool_calls}


def blocks(message: Any, type: str) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if block.get("type") == type] if isinstance(content, list) else []


def assert_api_valid(messages: list[Any]) -> None:
    """What the API asks for: each call has its result in what the user says next, and no result is without its call."""
    waiting: set[str] = set()
    calls: set[str] = set()
    said: Any = None  # the answer whose lines these are
    for message in messages:
        if message["role"] == "assistant":
            assert not waiting or message.get("id") == said, f"{waiting} have no result"
            new = [block["id"] for block in blocks(message, "tool_use")]
            assert len(new) == len(set(new))
            assert calls.isdisjoint(new), "a call twice"
            said = message.get("id")
            waiting.update(new)
            calls.update(new)
        else:
            given = [block["tool_use_id"] for block in blocks(message, "tool_result")]
            assert waiting.issuperset(given), f"{set(given) - waiting} have no call before them"
            assert len(given) == len(set(given))
            assert given or not waiting, f"something else is said before the results of {waiting}"
            waiting.difference_update(given)
    assert not waiting


def assert_valid(records: list[dict[str, Any]], session: str | None = None) -> None:
    """Lines on one chain, apart from where a compaction begins another; each valid for the API."""
    nodes = [record for record in records if "uuid" in record]
    assert len({node["uuid"] for node in nodes}) == len(nodes)
    assert len({record["sessionId"] for record in records if record["type"] != "summary"}) == 1
    stretch: list[dict[str, Any]] = []
    above = None
    for node in [*nodes, None]:
        if node is None or node["parentUuid"] is None:
            assert node is None or not stretch or node.get("subtype") == "compact_boundary"
            assert_api_valid([line["message"] for line in stretch if line["type"] in ("user", "assistant")])
            stretch = []
        if node is not None:
            assert node["parentUuid"] in (None, above)
            assert node["isSidechain"] is False
            above = node["uuid"]
            stretch.append(node)


def parallel(builder: Claude, *ids: str, message: str = "msg-p", chained: bool = True) -> list[str]:
    """One answer with several calls: a line each."""
    lines = []
    for id in ids:
        block = {"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": f"/{id}"}}
        inside = {"id": message, "role": "assistant", "content": [block]}
        lines.append(builder.node("assistant", builder.parent if chained else ..., message=inside))
    return lines


# Whole conversations.


def test_turns_1_to_n_in_a_session_of_their_own(project: Project) -> None:
    """S1-16, S1-21: our reader and the SDK's see exactly the turns up to N, and a session that can be listed."""
    builder = story(Claude())
    second = next(record["uuid"] for record in builder.records if "whisper" in str(record["message"]["content"]))
    fork = project.fork(builder, second)
    assert (fork.id, fork.parent, fork.turns, fork.compacted, fork.notices) == (NEW, SESSION, 2, False, [])
    conversation = project.read()
    assert prompts(conversation) == ["make it shout", "now whisper — ünïcödé"]
    assert results(conversation) == {"call-1": "ok", "call-2": "HELLO"}
    assert conversation.turns[1].replies == ["Wait.", "Done too."]
    assert (conversation.session_id, conversation.forked_from) == (NEW, SESSION)
    messages = project.messages()
    assert [message.uuid for message in messages] == [record["uuid"] for record in builder.records[:10]]
    assert {message.session_id for message in messages} == {NEW}
    assert {info.session_id for info in list_sessions(directory=str(project.directory))} == {SESSION, NEW}
    info = get_session_info(NEW, directory=str(project.directory))
    assert info is not None
    assert info.custom_title == "make it shout (Branch)"
    assert info.first_prompt == "make it shout"


def test_the_original_stays_whole_and_goes_on(project: Project) -> None:
    """S1-09, S4-01, S4-12, S4-21, S4-27: nothing of it is taken away, and it can be continued beside its fork."""
    builder = story(Claude())
    project.fork(builder, "uuid-1")
    builder.prompt("go on")
    project.put(builder)
    assert len(project.read(SESSION).turns) == 4
    assert len(project.read(NEW).turns) == 1
    assert [message.uuid for message in project.messages(SESSION)] == [record["uuid"] for record in builder.records]


def test_copied_lines_are_the_original_but_for_where_they_belong(project: Project) -> None:
    """Every byte of the rest is kept, whatever JSON it is."""
    odd = (
        '{ "parentUuid" : null, "uuid":"u-1","type":"user", "big":1e400,"n":1.50,"n":2E3,"s":"\\ud800\\u003c\\/ü",'
        '"sessionId":"old","message":{"role":"user","content":"hi \\ud83d\\ude00"}  }'
    )
    reply = '{"type":"assistant","uuid":"u-2","parentUuid":"u-1","isSidechain":false,"message":{"content":"yo"}}'
    first, second, _title = fork_lines([odd.encode(), reply.encode()], new_id=NEW)
    tail = ',"isSidechain":false,"forkedFrom":{"sessionId":"old","messageUuid":"u-1"}}'
    assert first.decode() == odd.replace('"old"', f'"{NEW}"')[:-3] + "  " + tail + "\n"
    assert json.loads(second)["parentUuid"] == "u-1"
    for record, line in zip(story(Claude()).records, fork_lines([story(Claude()).data()], new_id=NEW), strict=False):
        copied = json.loads(line)
        assert {key: value for key, value in copied.items() if key not in CHANGED} == {
            key: value for key, value in record.items() if key not in CHANGED
        }
        assert copied["forkedFrom"] == {"sessionId": SESSION, "messageUuid": record["uuid"]}
        assert [key for key in copied if key != "forkedFrom"] == list(record)


def test_turns_1_to_n_are_copied_line_by_line_to_the_byte(project: Project) -> None:
    """S1-18: each line differs from the original in the session's id, and in a note on where it comes from."""
    builder = story(Claude())
    second = next(record["uuid"] for record in builder.records if "whisper" in str(record["message"]["content"]))
    project.fork(builder, second)
    *copies, title = (project.sessions / f"{NEW}.jsonl").read_bytes().splitlines(keepends=True)
    restored = []
    for line in copies:
        origin = {"sessionId": SESSION, "messageUuid": json.loads(line)["uuid"]}
        note = f',"forkedFrom":{json.dumps(origin, separators=(",", ":"))}'.encode()
        assert line.count(note) == line.count(NEW.encode()) == 1
        restored.append(line.replace(note, b"").replace(NEW.encode(), SESSION.encode()))
    assert restored == builder.data().splitlines(keepends=True)[:10]
    assert json.loads(title)["type"] == "custom-title"


@pytest.mark.parametrize("by", ["uuid", "promptId", "a line of the turn"])
def test_a_turn_is_named_by_its_prompt(by: str, project: Project) -> None:
    """S1-16: by the line's id or by what hooks call the prompt."""
    builder = Claude()
    builder.prompt("one", promptId="p-1")
    builder.reply("a")
    line = builder.prompt("two", promptId="p-2")
    builder.use("t", "Read", {})
    result = builder.answer("t", "x", promptId="p-2")
    builder.prompt("three", promptId="p-3")
    project.fork(builder, {"uuid": line, "promptId": "p-2", "a line of the turn": result}[by])
    assert prompts(project.read()) == ["one", "two"]


def test_a_turn_that_is_not_there(project: Project) -> None:
    """G-19: the caller is told, and can fork the whole instead."""
    builder = story(Claude())
    path = project.put(builder)
    with pytest.raises(Unknown):
        fork_conversation(path, up_to="stale", new_id=NEW)
    assert not (project.sessions / f"{NEW}.jsonl").exists()
    assert project.fork(builder, None).turns == 3


@pytest.mark.parametrize("data", [b"", b"\n\n", b"not json\n", b'{"type":"summary","summary":"x","leafUuid":"y"}\n'])
def test_nothing_to_fork(data: bytes, project: Project) -> None:
    with pytest.raises(Unknown):
        fork_lines([data], new_id=NEW)


# Calls and results.


def ends(builder: Claude) -> Claude:
    builder.reply("both read")
    builder.prompt("next")
    builder.reply("b")
    return builder


def off_chain(builder: Claude) -> None:
    """A1, A2, R1, R2: each result under its own call, the conversation goes on from the second."""
    one, two = parallel(builder, "t-1", "t-2")
    builder.answer("t-1", "t-1!", parent=one)
    builder.answer("t-2", "t-2!", parent=two)


def crossed(builder: Claude) -> None:
    """A1, A2, R2, R1, going on from R1: the second call is off the chain too."""
    one, two = parallel(builder, "t-1", "t-2")
    builder.answer("t-2", "t-2!", parent=two)
    builder.answer("t-1", "t-1!", parent=one)


def interleaved(builder: Claude) -> None:
    """A1, R1, A2, R2 on one chain."""
    parallel(builder, "t-1")
    builder.answer("t-1", "t-1!")
    parallel(builder, "t-2")
    builder.answer("t-2", "t-2!")


def interleaved_beside(builder: Claude) -> None:
    """A1, R1, A2, R2, where the second call hangs under the first."""
    (one,) = parallel(builder, "t-1")
    builder.answer("t-1", "t-1!")
    builder.parent = one
    (two,) = parallel(builder, "t-2")
    builder.answer("t-2", "t-2!", parent=two)


def in_one_line(builder: Claude) -> None:
    parallel(builder, "t-1", "t-2")
    builder.user([{"type": "tool_result", "tool_use_id": id, "content": f"{id}!"} for id in ("t-2", "t-1")])


def two_answers(builder: Claude) -> None:
    """Calls of different answers without anything between them."""
    one = builder.use("t-1", "Read", {})
    two = builder.use("t-2", "Read", {})
    builder.answer("t-1", "t-1!", parent=one)
    builder.answer("t-2", "t-2!", parent=two)


def late(builder: Claude) -> None:
    """The results come only after the agent has said something else."""
    parallel(builder, "t-1", "t-2")
    builder.reply("while they run")
    builder.user([{"type": "tool_result", "tool_use_id": id, "content": f"{id}!"} for id in ("t-1", "t-2")])


def among_notes(builder: Claude) -> None:
    parallel(builder, "t-1")
    builder.node("attachment", attachment={"type": "x"})
    parallel(builder, "t-2")
    builder.node("progress", data={})
    builder.node("system", subtype="informational")
    builder.answer("t-1", "t-1!")
    builder.answer("t-2", "t-2!")


def spread(builder: Claude) -> None:
    """One line answers calls of two answers."""
    builder.use("t-1", "Read", {})
    builder.reply("and")
    builder.use("t-2", "Read", {})
    builder.user([{"type": "tool_result", "tool_use_id": id, "content": f"{id}!"} for id in ("t-1", "t-2")])


def written_twice(builder: Claude) -> None:
    """A compaction or a retry writes the same again under new ids."""
    for _ in range(2):
        parallel(builder, "t-1", "t-2")
        builder.answer("t-1", "t-1!")
        builder.answer("t-2", "t-2!")


def written_twice_beside(builder: Claude) -> None:
    """The same, off the chain."""
    top = builder.parent
    for _ in range(2):
        builder.parent = top
        parallel(builder, "t-1", "t-2")
        builder.answer("t-1", "t-1!")
        builder.answer("t-2", "t-2!")


def late_with_words(builder: Claude) -> None:
    parallel(builder, "t-1", "t-2")
    builder.reply("while they run")
    given = [{"type": "tool_result", "tool_use_id": id, "content": f"{id}!"} for id in ("t-1", "t-2")]
    builder.user([*given, {"type": "text", "text": "and this"}])


SHAPES = [
    *(off_chain, crossed, interleaved, interleaved_beside, in_one_line),
    *(two_answers, late, among_notes, spread, written_twice),
    *(written_twice_beside, late_with_words),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_call_has_its_result(shape: Callable[[Claude], None], project: Project) -> None:
    """S1-21, S4-02: results come along wherever they lie, and all of it is one chain."""
    builder = Claude()
    builder.prompt("read both")
    shape(builder)
    project.fork(ends(builder), "uuid-1")
    conversation = project.read()
    assert prompts(conversation) == ["read both"]
    assert results(conversation) == {"t-1": "t-1!", "t-2": "t-2!"}
    assert conversation.turns[0].replies[-1] == "both read"
    said = [block for message in project.messages() for block in blocks(message.message, "tool_result")]
    assert {block["tool_use_id"]: block["content"] for block in said} == {"t-1": "t-1!", "t-2": "t-2!"}


def test_a_result_that_came_after_the_next_prompt(project: Project) -> None:
    """S4-02: it belongs to its call, also where it hangs below the later turn."""
    builder = Claude()
    builder.prompt("start it")
    call = builder.use("t-1", "Bash", {"command": "sleep 9"})
    builder.prompt("and meanwhile?")
    builder.answer("t-1", "late", parent=builder.parent)
    builder.reply("this")
    project.fork(builder, "uuid-1")
    assert results(project.read()) == {"t-1": "late"}
    fork = fork_conversation(project.sessions / f"{SESSION}.jsonl", up_to=None, new_id=NEWER)
    fork.write()
    assert [message.uuid for message in project.messages(NEWER)] == ["uuid-1", call, "uuid-4", "uuid-3", "uuid-5"]


def test_interrupted_calls_get_a_result_that_says_so(project: Project) -> None:
    """S1-21: a call that nothing ever answered would be refused by the API."""
    builder = Claude()
    builder.prompt("read both")
    parallel(builder, "t-1", "t-2")
    builder.answer("t-2", "B")
    builder.user([{"type": "text", "text": "[Request interrupted by user]"}])
    builder.prompt("stop there")
    builder.use("t-3", "Bash", {})
    fork = project.fork(builder)
    conversation = project.read()
    assert results(conversation)["t-2"] == "B"
    lost = [call for turn in conversation.turns for call in turn.tool_calls if call.is_error]
    assert [call.id for call in lost] == ["t-1", "t-3"]
    assert "interrupted" in (lost[0].result or "")
    assert len(fork.notices) == 1
    again = fork_lines([builder.data()], new_id=NEW)
    assert again == fork_lines([builder.data()], new_id=NEW)  # its ids too: the same fork is the same bytes


def test_results_without_their_call_are_left_out(project: Project) -> None:
    builder = Claude()
    builder.prompt("one")
    builder.answer("lost", "x")
    builder.use("t-1", "Read", {})
    both = [{"type": "tool_result", "tool_use_id": id, "content": id} for id in ("gone", "t-1", "t-1")]
    builder.user([*both, {"type": "text", "text": "kept"}], mark="still here")
    builder.answer("t-1", "again")
    builder.reply("done")
    project.fork(builder)
    line = next(record for record in lines_of(project.sessions / f"{NEW}.jsonl") if "mark" in record)
    assert line["message"]["content"] == [both[1], {"type": "text", "text": "kept"}]
    assert len(project.messages()) == 4


# Trees.


def test_a_turn_of_a_branch_that_was_left(project: Project) -> None:
    """S4-02, S1-16: the fork holds the line down to that turn, and nothing of the other."""
    builder = Claude()
    builder.prompt("one")
    first = builder.reply("a")
    builder.prompt("two")
    builder.reply("b")
    builder.prompt("three")
    builder.reply("c")
    builder.prompt("two, but better", parent=first)
    builder.reply("d")
    assert project.fork(builder, "uuid-5").turns == 3
    assert prompts(project.read()) == ["one", "two", "three"]
    assert project.fork(builder, "uuid-7", NEWER).turns == 2
    assert prompts(project.read(NEWER)) == ["one", "two, but better"]
    assert not project.read(NEWER).branches
    builder.put({"type": "last-prompt", "leafUuid": first, "sessionId": SESSION})
    assert len(fork_lines([builder.data()], new_id=NEW)) == 3  # where the agent itself says that it stands


def test_side_shoots_do_not_lead_away_from_the_answer(project: Project) -> None:
    """S4-02: the longest chain is the one on which most was said, not the one with most notes."""
    builder = Claude()
    top = builder.prompt("one")
    builder.reply("a")
    end = builder.node("system", subtype="turn_duration")
    builder.node("attachment", parent=top, attachment={})
    for _ in range(5):
        builder.node("attachment", attachment={})
    builder.prompt("two", parent=end)
    project.fork(builder, top)
    assert project.read().turns[0].replies == ["a"]
    assert len(lines_of(project.sessions / f"{NEW}.jsonl")) == 4


def test_subagents_teams_and_progress_stay_behind(project: Project) -> None:
    """S4-02: their children go on from what is kept."""
    builder = Claude()
    builder.prompt("delegate")
    call = builder.use("t-1", "Task", {"prompt": "do it"})
    builder.user("do it", parent=None, isSidechain=True)
    builder.use("t-2", "Write", {}, isSidechain=True)
    builder.answer("t-2", "ok", isSidechain=True)
    builder.node("progress", parent=call, data={})
    builder.node("progress", data={})
    builder.answer("t-1", "done")
    builder.user("from a team mate", teamName="red")
    builder.reply("agent says")
    project.fork(builder)
    assert [message.type for message in project.messages()] == ["user", "assistant", "user", "assistant"]
    assert results(project.read()) == {"t-1": "done"}


def compacted(builder: Claude, **metadata: Any) -> tuple[str, str]:
    last = builder.parent
    boundary = builder.node(
        "system", parent=None, subtype="compact_boundary", logicalParentUuid=last, compactMetadata=metadata
    )
    return boundary, builder.user("This session is being continued…", isCompactSummary=True)


def test_compaction(project: Project) -> None:
    """S1-47: a fork after it keeps it and what came before; one to before it says that it is."""
    builder = Claude()
    builder.prompt("one")
    builder.reply("a")
    two = builder.prompt("two")
    builder.use("t-1", "Read", {})
    builder.answer("t-1", "x")
    builder.node("progress", data={})
    boundary, summary = compacted(builder)
    builder.reply("still at it")
    three = builder.prompt("three")
    builder.reply("b")
    fork = project.fork(builder, three)
    assert (fork.turns, fork.compacted) == (3, False)
    conversation = project.read()
    assert prompts(conversation) == ["one", "two", "three"]
    assert [turn.compacted_before for turn in conversation.turns] == [False, False, True]
    assert [message.uuid for message in project.messages()] == [summary, "uuid-9", three, "uuid-11"]
    line = next(record for record in lines_of(project.sessions / f"{NEW}.jsonl") if record.get("uuid") == boundary)
    assert (line["parentUuid"], line["logicalParentUuid"]) == (None, "uuid-5")  # the progress line is not there
    assert not project.fork(builder, two, NEWER).compacted  # the agent went on with it after the compaction
    earlier = fork_conversation(project.sessions / f"{SESSION}.jsonl", up_to="uuid-1", new_id=NEWER)
    assert (earlier.turns, earlier.compacted) == (1, True)


def test_calls_that_a_compaction_writes_again(project: Project) -> None:
    """S1-21: each side of it is valid by itself, with the same result, though only one was written."""
    builder = Claude()
    builder.prompt("one")
    builder.use("t-1", "Read", {})
    builder.answer("t-1", "x")
    compacted(builder)
    builder.use("t-1", "Read", {})
    builder.reply("as I said")
    fork = project.fork(builder)
    assert not fork.notices
    said = [block for message in project.messages() for block in blocks(message.message, "tool_result")]
    assert said == [{"type": "tool_result", "tool_use_id": "t-1", "content": "x"}]


def test_compaction_that_preserves_the_last_lines(project: Project) -> None:
    """S1-21: it goes on from the preserved lines; boundary and summary lie beside them, and come along."""
    builder = Claude()
    builder.prompt("one")
    builder.reply("a")
    head = builder.prompt("two")
    tail = builder.reply("b")
    segment = {"headUuid": head, "anchorUuid": "uuid-6", "tailUuid": tail}
    boundary, summary = compacted(builder, preservedSegment=segment)
    builder.prompt("three", parent=tail)
    builder.reply("c")
    project.put(builder)
    fork = fork_conversation(project.sessions / f"{SESSION}.jsonl", up_to=None, new_id=NEW)
    written = lines_of(Path(fork.write()))
    assert [record["uuid"] for record in written[:-1]] == [record["uuid"] for record in builder.records]
    assert [record["parentUuid"] for record in written[:-1]] == [record["parentUuid"] for record in builder.records]
    assert (boundary, summary) == ("uuid-5", "uuid-6")
    assert prompts(project.read()) == ["one", "two", "three"]
    assert fork_conversation(project.sessions / f"{SESSION}.jsonl", up_to="uuid-1", new_id=NEW).compacted
    segment["anchorUuid"] = "uuid-8"  # nonsense: on the chain itself
    assert len(fork_lines([builder.data()], new_id=NEW)) == 7


def test_compaction_in_the_middle_of_a_turn_whose_last_line_follows_it(project: Project) -> None:
    """S4-02: the boundary names as its logical parent a line that is written again behind the summary."""
    builder = Claude()
    builder.prompt("one")
    builder.reply("a")
    builder.prompt("two")
    builder.use("t-1", "Read", {})
    metadata = {"preservedSegment": {"headUuid": "uuid-2", "anchorUuid": "uuid-6", "tailUuid": "uuid-7"}}
    builder.node("system", None, subtype="compact_boundary", logicalParentUuid="uuid-7", compactMetadata=metadata)
    builder.user("This session is being continued…", isCompactSummary=True)
    builder.reply("b")
    builder.answer("t-1", "x")
    builder.prompt("three")
    builder.reply("c")
    assert project.fork(builder, "uuid-9").turns == 3
    conversation = project.read()
    assert prompts(conversation) == ["one", "two", "three"]
    assert results(conversation) == {"t-1": "x"}
    assert [message.uuid for message in project.messages()] == ["uuid-6", "uuid-7", "uuid-9", "uuid-10"]


def test_a_fork_of_a_fork(project: Project) -> None:
    """S1-43, S1-52: Original → Branch → Branch 2, each with its parent."""
    builder = story(Claude())
    project.fork(builder, "uuid-8")
    before = bit_by_bit(project.sessions / f"{NEW}.jsonl")
    fork = fork_conversation(project.sessions / f"{NEW}.jsonl", up_to="uuid-1", new_id=NEWER)
    fork.write()
    assert bit_by_bit(project.sessions / f"{NEW}.jsonl") == before
    conversation = project.read(NEWER)
    assert (fork.parent, conversation.forked_from, conversation.title) == (NEW, NEW, "make it shout (Branch 2)")
    assert prompts(conversation) == ["make it shout"]
    assert_valid(lines_of(project.sessions / f"{NEWER}.jsonl"))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_fork_from_lines_that_were_kept_elsewhere(shape: Callable[[Claude], None], project: Project) -> None:
    """S1-47: the raw lines of turns 1..N are enough, also when the agent has cleaned up its file."""
    builder = Claude()
    builder.prompt("read both")
    shape(builder)
    project.put(ends(builder))
    kept = [line for turn in project.read(SESSION).turns[:1] for line in turn.lines]
    assert len(kept) < len(builder.records)
    assert fork_lines(kept, new_id=NEW) == fork_lines([builder.data()], new_id=NEW, up_to="uuid-1")


# Beside the tree.


def test_titles(project: Project) -> None:
    """S1-52: the one given, else the conversation's own, else its first prompt."""
    builder = Claude()
    builder.prompt("x" * 100 + "\nand more")
    builder.reply("a")
    assert project.fork(builder, title=" Mine ").title == "Mine"
    assert project.fork(builder, new_id=NEWER).title == "x" * 80 + " (Branch)"
    builder.put({"type": "ai-title", "aiTitle": "Made up", "sessionId": SESSION})
    assert json.loads(fork_lines([builder.data()], new_id=NEW)[-1])["customTitle"] == "Made up (Branch)"
    builder.put({"type": "custom-title", "customTitle": "Chosen", "sessionId": SESSION})
    title = json.loads(fork_lines([builder.data()], new_id=NEW)[-1])
    assert title == {"type": "custom-title", "customTitle": "Chosen (Branch)", "sessionId": NEW}
    assert branch_title("a (Branch 9)") == "a (Branch 10)"
    assert branch_title("a (Branch) b") == "a (Branch) b (Branch)"


def test_metadata(project: Project) -> None:
    builder = Claude()
    builder.put({"type": "summary", "summary": "of this", "leafUuid": "uuid-2"})
    builder.put({"type": "summary", "summary": "of something else", "leafUuid": "elsewhere"})
    builder.prompt("one")
    builder.put({"type": "file-history-snapshot", "messageId": "uuid-1", "snapshot": {}})
    builder.put({"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION})
    builder.put({"type": "content-replacement", "sessionId": SESSION, "replacements": [1]})
    builder.reply("a")
    builder.put({"type": "content-replacement", "sessionId": SESSION, "replacements": [2]})
    builder.put({"type": "last-prompt", "lastPrompt": "one", "sessionId": SESSION})
    project.fork(builder)
    kinds = [record["type"] for record in lines_of(project.sessions / f"{NEW}.jsonl")]
    assert kinds == ["user", "assistant", "summary", "content-replacement", "custom-title"]
    replaced = lines_of(project.sessions / f"{NEW}.jsonl")[3]
    assert (replaced["replacements"], replaced["sessionId"]) == ([1, 2], NEW)


def test_lines_that_are_not_understood(project: Project) -> None:
    """S1-21: unknown, broken, repeated and half-written lines, line ends of another system."""
    builder = story(Claude())
    whole = [json.dumps(record).encode() for record in builder.records]
    whole[6] = whole[6].replace(b"Done.", b"Done.\t\xff")  # no other reader takes a tab
    strange = b'{"type":"from-the-future","field":[1]}'
    node = b'{"type":"user","uuid":[],"message":null}'
    half = b'{"type":"user","uuid'
    mixed = [whole[0], strange, b"\0\0\0", b"[1]", node, *whole[1:4], half, whole[3], *whole[4:]]
    path = project.sessions / f"{SESSION}.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(mixed) + b'\r\n{"parentUuid":"uuid-9","type":"us')
    before = bit_by_bit(path)
    fork = fork_conversation(path, up_to=None, new_id=NEW)
    assert len(fork.notices) == 2
    assert "from-the-future" in fork.notices[0]
    assert_valid(lines_of(Path(fork.write())))
    assert prompts(project.read()) == ["make it shout", "now whisper — ünïcödé", "thanks"]
    assert [message.uuid for message in project.messages()] == [record["uuid"] for record in builder.records]
    assert bit_by_bit(path) == before


def test_parents_that_are_not_there(project: Project) -> None:
    """S4-02: the line goes on from the one before, for every reader of the fork."""
    builder = Claude()
    builder.prompt("one", parent="uuid-2")
    builder.reply("a", parent="uuid-9")
    builder.prompt("two", parent="nowhere")
    builder.reply("b")
    project.fork(builder)
    assert [message.uuid for message in project.messages()] == ["uuid-1", "uuid-2", "uuid-3", "uuid-4"]


# The file.


def test_the_file_of_a_fork(project: Project) -> None:
    """S1-63: its owner's only, under an id that stays in the folder, and never over another."""
    path = project.put(story(Claude()))
    fork = fork_conversation(path, up_to=None, new_id=NEW)
    made = Path(fork.write())
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    before = bit_by_bit(project.sessions)
    with pytest.raises(Conflict):
        fork.write()
    with pytest.raises(Conflict):
        write_fork(str(project.sessions), SESSION, [b"{}\n"])
    for bad in ("../x", "a/b", "", ".hidden", "a\0b"):
        with pytest.raises(Unsafe):
            write_fork(str(project.sessions), bad, [b"{}\n"])
        with pytest.raises(Unsafe):
            fork_conversation(path, up_to=None, new_id=bad)
    with pytest.raises(Failed):
        write_fork(str(project.sessions / "nowhere"), NEWER, [b"{}\n"])
    assert bit_by_bit(project.sessions) == before


def test_a_folder_that_is_a_link(project: Project, tmp_path: Path) -> None:
    path = project.put(story(Claude()))
    (tmp_path / "linked").symlink_to(project.sessions)
    assert fork_conversation(path, up_to=None, new_id=NEW).write(str(tmp_path / "linked")).startswith(str(tmp_path))
    assert len(project.read().turns) == 3


def test_on_disk_before_it_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1-65: also a power cut leaves no half of it."""
    order = []
    for name in ("write", "fsync", "link", "unlink"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, real=real, name=name: (order.append(name), real(*a))[1])
    write_fork(str(tmp_path), NEW, [b"{}\n"])
    assert order == ["write", "fsync", "link", "unlink", "fsync"]


def test_killed_at_every_step(tmp_path: Path) -> None:
    """S1-65: under the name of the session there is nothing, or all of it."""
    lines = [b'{"line":%d}\n' % number + b" " * 700_000 for number in range(4)]
    seen = set()
    for nth in range(1, 100):
        folder = tmp_path / str(nth)
        folder.mkdir()
        killed = killed_at(nth, lambda folder=folder: write_fork(str(folder), NEW, lines))
        made = folder / f"{NEW}.jsonl"
        seen.add(made.exists())
        assert not made.exists() or made.read_bytes() == b"".join(lines)
        assert [path.name for path in folder.glob("*.jsonl")] == ([made.name] if made.exists() else [])
        if not killed:
            assert os.listdir(folder) == [made.name]
            break
        if not made.exists():  # and it can be done again
            assert write_fork(str(folder), NEW, lines) == str(made)
    assert nth > 6
    assert seen == {True, False}


def meddle(deed: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Something happens to the conversation when its fork has been written, but has no name yet."""
    real = forking.write_fork

    def meddled(folder: str, id: str, lines: Iterable[bytes], check: Any) -> str:
        def during() -> Iterable[bytes]:
            yield from lines
            deed()

        return real(folder, id, during(), check)

    monkeypatch.setattr(forking, "write_fork", meddled)


def rewritten(path: Path) -> None:
    data = path.read_bytes().replace(b"shout", b"SHOUT")
    with path.open("r+b") as file:
        file.write(data)


def replaced(path: Path) -> None:
    path.with_suffix(".x").write_bytes(path.read_bytes())
    path.with_suffix(".x").rename(path)


def truncated(path: Path) -> None:
    os.truncate(path, 500)


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("deed", "during"),
    # The same bytes in another file are the same conversation, unless that happens on the way.
    [(rewritten, 0), (rewritten, 1), (truncated, 0), (truncated, 1), (removed, 0), (removed, 1), (replaced, 1)],
)
def test_a_conversation_that_changes_meanwhile(
    deed: Callable[[Path], None], during: bool, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1-65: seen, and nothing is left behind."""
    path = project.put(story(Claude()))
    fork = fork_conversation(path, up_to="uuid-1", new_id=NEW)
    if during:
        meddle(lambda: deed(path), monkeypatch)
    else:
        deed(path)
    with pytest.raises((Busy, Unknown)):
        fork.write()
    assert set(os.listdir(project.sessions)) <= {path.name}


def test_a_conversation_that_grows_before_it_is_written(project: Project) -> None:
    """S1-65: it is read once more."""
    builder = story(Claude())
    fork = fork_conversation(project.put(builder), up_to=None, new_id=NEW)
    builder.prompt("one more")
    project.put(builder)
    fork.write()
    assert fork.turns == 4
    assert prompts(project.read())[-1] == "one more"


@pytest.mark.parametrize("up_to", ["uuid-1", None])
def test_a_conversation_that_grows_while_it_is_written(
    up_to: str | None, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1-65: what comes after the fork does no harm; what belongs into it does."""
    builder = story(Claude())
    path = project.put(builder)
    fork = fork_conversation(path, up_to=up_to, new_id=NEW)

    def grow() -> None:
        builder.prompt("one more")
        with path.open("ab") as file:
            file.write(json.dumps(builder.records[-1]).encode() + b"\n")

    meddle(grow, monkeypatch)
    if up_to is None:
        with pytest.raises(Busy):
            fork.write()
        assert os.listdir(project.sessions) == [path.name]
    else:
        fork.write()
        assert prompts(project.read()) == ["make it shout"]


def test_the_name_of_a_rewind() -> None:
    """S1-17, C14, C26: the time, and a number where that is taken."""
    now = "2026-08-22T10:00:00.123Z"
    alias = rewind_alias(SESSION, now)
    assert alias == f"{SESSION}-rewind-20260822T100000123Z"
    assert rewind_alias(SESSION, now, {alias}) == f"{alias}-2"
    assert rewind_alias(SESSION, now, {alias, f"{alias}-2"}) == f"{alias}-3"
    with pytest.raises(Unsafe):
        rewind_alias("../x", now)


# Any conversation.


class Wild(Claude):
    """A conversation made of random choices: parallel calls whose results lie anywhere, rewinds, subagents, noise."""

    def __init__(self, data: st.DataObject) -> None:
        super().__init__()
        self.data_ = data
        self.turn_of: dict[str, str] = {}  # the prompt that each line belongs to
        self.before: dict[str, str | None] = {}  # the prompt above each prompt
        self.texts: dict[str, str] = {}
        self.given: set[str] = set()  # calls with a result
        self.together: set[str] = set()  # those that share a line with another
        self.calls = 0
        self.later: list[tuple[str, str]] = []

    def pick(self, options: Any) -> Any:
        return self.data_.draw(st.sampled_from(list(options)))

    def node(self, type: str, parent: Any = ..., **fields: Any) -> str:
        above = self.parent if parent is ... else parent
        uuid = super().node(type, parent, **fields)
        self.turn_of[uuid] = self.turn_of.get(above or "", "")
        return uuid

    def ask(self) -> None:
        ends = [None, *self.turn_of] if self.pick([False] * 4 + [True]) else [self.parent]
        above = self.pick(ends)
        text = f"prompt {self.count}"
        uuid = self.prompt(text, parent=above)
        self.before[uuid] = self.turn_of[uuid] or None
        self.turn_of[uuid] = uuid
        self.texts[uuid] = text

    def answer_with_calls(self) -> None:
        message = f"api-{self.count}"
        calls: list[tuple[str, str]] = []
        hung: list[str] = []
        for _ in range(self.pick([1, 2, 3])):
            self.calls += 1
            id = f"t-{self.calls}"
            above = self.pick([self.parent, *[line for _, line in calls], *hung])
            block = {"type": "tool_use", "id": id, "name": "Read", "input": {}}
            line = self.node("assistant", above, message={"id": message, "role": "assistant", "content": [block]})
            calls.append((id, line))
            if self.pick([False, False, True]):
                hung.append(self.give([calls.pop()], line))
        waiting = self.data_.draw(st.permutations(calls))
        while waiting:
            fate = self.pick(["own", "last", "both", "later", "never"])
            some, waiting = (waiting[:2], waiting[2:]) if fate == "both" else (waiting[:1], waiting[1:])
            if fate == "later":
                self.later += some
            elif fate != "never":
                hung.append(self.give(some, some[0][1] if fate == "own" else self.parent))
        self.parent = self.pick([*hung, self.parent])

    def give(self, calls: list[tuple[str, str]], parent: str | None) -> str:
        self.given |= {id for id, _ in calls}
        self.together |= {id for id, _ in calls if len(calls) > 1}
        return self.user([{"type": "tool_result", "tool_use_id": id, "content": f"{id}!"} for id, _ in calls], parent)

    def noise(self) -> None:
        kind = self.pick(["progress", "attachment", "system", "side", "meta", "late", "beside"])
        here = self.parent
        if kind == "side":
            aside = [self.user("work", parent=None, isSidechain=True), self.reply("did", isSidechain=True)]
            for uuid in aside:
                del self.turn_of[uuid]  # no prompt goes on from there
        elif kind == "meta":
            self.user("note", isMeta=True)
        elif kind == "late" and self.later:
            self.give([self.later.pop()], self.parent)
        elif kind == "beside":
            self.put({"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION})
        elif kind in ("progress", "attachment", "system"):
            self.node(kind)
        if kind == "side" or self.pick([True, False]):
            self.parent = here

    def compact(self) -> None:
        if self.parent is None:
            return
        above = self.turn_of[self.parent]
        boundary = self.node("system", parent=None, subtype="compact_boundary", logicalParentUuid=self.parent)
        self.turn_of[boundary] = above
        self.user("summary", isCompactSummary=True)

    def lineage(self, prompt: str) -> list[str]:
        found: list[str] = []
        above: str | None = prompt
        while above:
            found.append(self.texts[above])
            above = self.before[above]
        return found[::-1]


def assert_faithful(written: list[dict[str, Any]], builder: Wild) -> None:
    """Copied lines are what they were, no answer is cut in half, and nothing is made up that is on record."""
    originals = {record["uuid"]: record for record in builder.records if "uuid" in record}
    parts: dict[str, set[str]] = {}
    for uuid, record in originals.items():
        if record["type"] == "assistant" and not record["isSidechain"]:
            parts.setdefault(record["message"]["id"], set()).add(uuid)
    here = {record["uuid"] for record in written if "uuid" in record}
    for record in written[:-1]:
        if "forkedFrom" not in record:
            (block,) = record["message"]["content"]
            assert block["tool_use_id"] not in builder.given - builder.together
            continue
        original = originals[record["uuid"]]
        same = [key for key in original if key not in CHANGED]
        if original["type"] == "user" and builder.together.intersection(_answered(original)):
            same.remove("message")
            assert set(_answered(record)) <= set(_answered(original))
        if record.get("subtype") == "compact_boundary":
            assert record["parentUuid"] is None
            assert record["logicalParentUuid"] in here
            same.remove("logicalParentUuid")
        assert [record[key] for key in same] == [original[key] for key in same]
        if record["type"] == "assistant":
            assert parts[record["message"]["id"]] <= here


def _answered(record: dict[str, Any]) -> list[str]:
    return [block["tool_use_id"] for block in blocks(record["message"], "tool_result")]


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_conversation_can_be_forked_at_any_turn(data: st.DataObject) -> None:
    """S1-16, S1-21, S4-02: exactly turns 1..N, every call with the result it had, valid whichever way it is read."""
    builder = Wild(data)
    deeds = [builder.ask, builder.answer_with_calls, builder.noise, lambda: builder.reply("ok"), builder.compact]
    builder.ask()
    for at in data.draw(st.lists(st.sampled_from([0, 1, 1, 1, 2, 2, 3, 4]), min_size=4, max_size=20)):
        deeds[at]()
    with quick_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_CONFIG_DIR", str(folder / "config"))
        project = Project(folder)
        source = builder.data()
        for number, prompt in enumerate([*builder.texts, None]):
            id = f"1c1e3f52-6a4b-4b6e-9b5f-{number:012d}"
            project.put(builder)
            path = Path(fork_conversation(project.sessions / f"{SESSION}.jsonl", up_to=prompt, new_id=id).write())
            written = lines_of(path)
            assert_valid(written)
            assert_faithful(written, builder)
            assert_api_valid([message.message for message in project.messages(id)])
            conversation = project.read(id)
            if prompt is not None:
                assert prompts(conversation) == builder.lineage(prompt)
            for call, result in results(conversation).items():
                assert result == f"{call}!" if call in builder.given else "interrupted" in (result or "")
        assert (project.sessions / f"{SESSION}.jsonl").read_bytes() == source
