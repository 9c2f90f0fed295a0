"""One small conversation as each agent writes it, and that all seven are read the same. The builders serve the other
tests of transcripts too.

S0-07, S0-10, S0-11, S1-14, S2-09."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from conversations import Conversation, read_conversation

from snapstore.transcripts.readers.read import AGENTS, last_turns

SESSION = "0b0e3f52-6a4b-4b6e-9b5f-000000000001"


def at(second: int) -> str:
    return f"2026-08-01T10:{second // 60:02d}:{second % 60:02d}.000Z"


class Builder:
    """Lines of a transcript. Each agent's builder knows `prompt`, `reply`, `think`, `edit`, `shell`."""

    agent = ""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.clock = 0

    def tick(self) -> str:
        self.clock += 1
        return at(self.clock)

    def put(self, record: Any) -> None:
        self.records.append(record)

    def data(self) -> bytes:
        return b"".join(json.dumps(record).encode() + b"\n" for record in self.records)

    def write(self, path: Path) -> Path:
        path.write_bytes(self.data())
        return path


class Claude(Builder):
    agent = "claude"

    def __init__(self) -> None:
        super().__init__()
        self.parent: str | None = None
        self.count = 0

    def node(self, type: str, parent: Any = ..., **fields: Any) -> str:
        self.count += 1
        uuid = f"uuid-{self.count}"
        common = {"isSidechain": False, "cwd": "/home/ada/project", "sessionId": SESSION, "version": "2.1.200"}
        self.parent = self.parent if parent is ... else parent
        self.put({"parentUuid": self.parent, **common, "type": type, "uuid": uuid, "timestamp": self.tick(), **fields})
        self.parent = uuid
        return uuid

    def user(self, content: Any, parent: Any = ..., **fields: Any) -> str:
        return self.node("user", parent, message={"role": "user", "content": content}, **fields)

    def prompt(self, text: str, parent: Any = ..., **fields: Any) -> str:
        return self.user(text, parent, **fields)

    def block(self, block: dict[str, Any], parent: Any = ..., **fields: Any) -> str:
        message = {"id": f"msg-{self.count}", "role": "assistant", "content": [block]}
        return self.node("assistant", parent, message=message, **fields)

    def reply(self, text: str, parent: Any = ..., **fields: Any) -> str:
        return self.block({"type": "text", "text": text}, parent, **fields)

    def think(self, text: str) -> str:
        return self.block({"type": "thinking", "thinking": text, "signature": "s"})

    def use(self, id: str, name: str, input: Any, parent: Any = ..., **fields: Any) -> str:
        return self.block({"type": "tool_use", "id": id, "name": name, "input": input}, parent, **fields)

    def answer(self, id: str, text: str, parent: Any = ..., **fields: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": id, "content": text}
        return self.user([block], parent, toolUseResult={"stdout": text}, **fields)

    def edit(self, id: str, path: str, old: str, new: str) -> None:
        self.use(id, "Edit", {"file_path": path, "old_string": old, "new_string": new})
        self.answer(id, "ok")

    def shell(self, id: str, command: str, output: str) -> None:
        self.use(id, "Bash", {"command": command})
        self.answer(id, output)


class Codex(Builder):
    agent = "codex"

    def __init__(self) -> None:
        super().__init__()
        self.turns = 0
        self.line("session_meta", {"id": SESSION, "cwd": "/home/ada/project", "cli_version": "1", "source": "cli"})

    def line(self, type: str, payload: dict[str, Any]) -> None:
        self.put({"timestamp": self.tick(), "type": type, "payload": payload})

    def event(self, type: str, **fields: Any) -> None:
        self.line("event_msg", {"type": type, **fields})

    def item(self, type: str, **fields: Any) -> None:
        self.line("response_item", {"type": type, **fields})

    def prompt(self, text: str) -> None:
        if self.turns:
            self.event("task_complete", turn_id=f"turn-{self.turns}", last_agent_message="x")
        self.turns += 1
        self.event("task_started", turn_id=f"turn-{self.turns}")
        self.line("turn_context", {"turn_id": f"turn-{self.turns}", "cwd": "/home/ada/project"})
        self.item("message", role="user", content=[{"type": "input_text", "text": text}])
        self.event("user_message", message=text)

    def reply(self, text: str) -> None:
        self.event("agent_message", message=text)
        self.item("message", role="assistant", content=[{"type": "output_text", "text": text}])

    def think(self, text: str) -> None:
        self.event("agent_reasoning", text=text)
        self.item("reasoning", summary=[{"type": "summary_text", "text": text}], encrypted_content="…")

    def edit(self, id: str, path: str, old: str, new: str) -> None:
        patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch"
        self.item("custom_tool_call", call_id=id, name="apply_patch", input=patch)
        self.item("custom_tool_call_output", call_id=id, output="ok")

    def shell(self, id: str, command: str, output: str) -> None:
        self.item("function_call", call_id=id, name="shell", arguments=json.dumps({"command": ["sh", "-c", command]}))
        self.item("function_call_output", call_id=id, output=output)


class Gemini(Builder):
    agent = "gemini"

    def __init__(self) -> None:
        super().__init__()
        self.put({"sessionId": SESSION, "projectHash": "abc", "startTime": at(0), "lastUpdated": at(0)})

    def message(self, type: str, content: Any, **fields: Any) -> None:
        self.put(
            {"id": f"id-{len(self.records)}", "timestamp": self.tick(), "type": type, "content": content, **fields}
        )

    def prompt(self, text: str) -> None:
        self.message("user", [{"text": text}])

    def reply(self, text: str) -> None:
        self.message("gemini", text)

    def think(self, text: str) -> None:
        self.message("gemini", "", thoughts=[{"subject": "", "description": text, "timestamp": at(0)}])

    def call(self, id: str, name: str, args: dict[str, Any], output: str) -> None:
        result = [{"functionResponse": {"id": id, "name": name, "response": {"output": output}}}]
        call = {"id": id, "name": name, "args": args, "result": result, "status": "success"}
        self.message("gemini", "", toolCalls=[call])

    def edit(self, id: str, path: str, old: str, new: str) -> None:
        self.call(id, "replace", {"file_path": path, "old_string": old, "new_string": new}, "ok")

    def shell(self, id: str, command: str, output: str) -> None:
        self.call(id, "run_shell_command", {"command": command}, output)


class GeminiDocument(Gemini):
    """The older form: one document."""

    def data(self) -> bytes:
        return json.dumps({**self.records[0], "messages": self.records[1:]}, indent=2).encode()


class Cline(Builder):
    """One document of messages."""

    agent = "cline"

    def message(self, role: str, content: Any, **fields: Any) -> None:
        id = f"msg-{len(self.records)}"
        self.tick()
        self.put({"id": id, "role": role, "content": content, "ts": 1785578400000 + self.clock * 1000, **fields})

    def prompt(self, text: str) -> None:
        self.message("user", [{"type": "text", "text": f'<user_input mode="act">{text}</user_input>'}])

    def reply(self, text: str) -> None:
        self.message("assistant", [{"type": "text", "text": text}])

    def think(self, text: str) -> None:
        self.message("assistant", [{"type": "thinking", "thinking": text}])

    def call(self, id: str, name: str, input: Any, result: Any) -> None:
        self.message("assistant", [{"type": "tool_use", "id": id, "name": name, "input": input}])
        self.message("user", [{"type": "tool_result", "tool_use_id": id, "name": name, "content": result}])

    def edit(self, id: str, path: str, old: str, new: str) -> None:
        result = json.dumps({"query": f"edit:{path}", "result": "ok", "success": True})
        self.call(id, "editor", {"path": path, "old_text": old, "new_text": new}, result)

    def shell(self, id: str, command: str, output: str) -> None:
        result = [{"query": command, "result": output, "success": True}]
        self.call(id, "run_commands", {"commands": [command]}, result)

    def data(self) -> bytes:
        about = {"version": 1, "updated_at": at(0), "agent": "lead", "sessionId": SESSION}
        return json.dumps({**about, "messages": self.records}, indent=2).encode()


class Copilot(Builder):
    agent = "copilot"

    def __init__(self) -> None:
        super().__init__()
        self.event("session.start", sessionId=SESSION, context={"cwd": "/home/ada/project"})

    def event(self, type: str, **data: Any) -> str:
        id = f"event-{len(self.records)}"
        self.put({"type": type, "data": data, "id": id, "timestamp": self.tick(), "parentId": None})
        return id

    def prompt(self, text: str) -> None:
        self.event("user.message", content=text)
        self.event("assistant.turn_start", turnId="0")

    def reply(self, text: str) -> None:
        self.event("assistant.message", messageId="m", content=text, toolRequests=[])

    def think(self, text: str) -> None:
        self.event("assistant.reasoning", reasoningId="r", content=text)

    def call(self, id: str, name: str, arguments: Any, output: str) -> None:
        request = {"toolCallId": id, "name": name, "arguments": arguments}
        self.event("assistant.message", messageId="m", content="", toolRequests=[request])
        self.event("tool.execution_start", toolCallId=id, toolName=name, arguments=arguments)
        self.event("tool.execution_complete", toolCallId=id, success=True, result={"content": output})

    def edit(self, id: str, path: str, old: str, new: str) -> None:
        self.call(id, "edit", {"path": path, "old_str": old, "new_str": new}, "ok")

    def shell(self, id: str, command: str, output: str) -> None:
        self.call(id, "bash", {"command": command}, output)


class Cursor(Builder):
    agent = "cursor"

    def line(self, role: str, *blocks: dict[str, Any]) -> None:
        self.put({"role": role, "message": {"content": list(blocks)}})

    def prompt(self, text: str) -> None:
        self.line("user", {"type": "text", "text": f"<user_query>\n{text}\n</user_query>"})

    def reply(self, text: str) -> None:
        self.line("assistant", {"type": "text", "text": text})

    def think(self, text: str) -> None:
        self.line("assistant", {"type": "thinking", "thinking": text})

    def call(self, id: str, name: str, input: Any, output: str) -> None:
        self.line("assistant", {"type": "tool_use", "id": id, "name": name, "input": input})
        self.line("user", {"type": "tool_result", "tool_use_id": id, "content": output})

    def edit(self, id: str, path: str, old: str, new: str) -> None:
        self.call(id, "StrReplace", {"path": path, "old_string": old, "new_string": new}, "ok")

    def shell(self, id: str, command: str, output: str) -> None:
        self.call(id, "Shell", {"command": command}, output)


class Opencode(Builder):
    """What `opencode export` prints."""

    agent = "opencode"

    def __init__(self) -> None:
        super().__init__()
        self.info: dict[str, Any] = {"id": SESSION, "directory": "/home/ada/project", "title": "Words"}

    def message(self, role: str, *parts: dict[str, Any]) -> str:
        id = f"msg_{len(self.records):04d}"
        self.clock += 1
        info = {"id": id, "role": role, "sessionID": SESSION, "time": {"created": 1785578400000 + self.clock * 1000}}
        self.put({"info": info, "parts": [{"id": f"prt_{id}_{n}", **part} for n, part in enumerate(parts)]})
        return id

    def prompt(self, text: str) -> None:
        self.message("user", {"type": "text", "text": text})

    def reply(self, text: str) -> None:
        self.message("assistant", {"type": "text", "text": text})

    def think(self, text: str) -> None:
        self.message("assistant", {"type": "reasoning", "text": text})

    def call(self, id: str, tool: str, input: Any, output: str) -> None:
        state = {"status": "completed", "input": input, "output": output}
        self.message("assistant", {"type": "tool", "callID": id, "tool": tool, "state": state})

    def edit(self, id: str, path: str, old: str, new: str) -> None:
        self.call(id, "edit", {"filePath": path, "oldString": old, "newString": new}, "ok")

    def shell(self, id: str, command: str, output: str) -> None:
        self.call(id, "bash", {"command": command}, output)

    def data(self) -> bytes:
        return json.dumps({"info": self.info, "messages": self.records}, indent=2).encode()


class OpencodeDatabase(Opencode):
    def write(self, path: Path) -> Path:
        with sqlite3.connect(path) as base:
            base.execute("create table session (id, project_id, parent_id, directory, title, revert)")
            base.execute("create table message (id, session_id, time_created, data)")
            base.execute("create table part (id, message_id, session_id, data)")
            revert = json.dumps(self.info["revert"]) if "revert" in self.info else None
            base.execute(
                "insert into session values (?, 'p', ?, ?, ?, ?)",
                (SESSION, self.info.get("parentID"), self.info["directory"], self.info["title"], revert),
            )
            for record in self.records:
                id = record["info"]["id"]
                base.execute("insert into message values (?, ?, 0, ?)", (id, SESSION, json.dumps(record["info"])))
                for part in record["parts"]:
                    base.execute("insert into part values (?, ?, ?, ?)", (part["id"], id, SESSION, json.dumps(part)))
        base.close()
        return path


LINES = [Claude, Codex, Gemini, Copilot, Cursor]
ALL = [*LINES, Cline, GeminiDocument, Opencode, OpencodeDatabase]


def story(builder: Any) -> Any:
    """Three turns: an edit and a command, two replies, nothing but a reply."""
    builder.prompt("make it shout")
    builder.think("upper case, then")
    builder.edit("call-1", "/home/ada/project/a.txt", "hello", "HELLO")
    builder.shell("call-2", "cat a.txt", "HELLO")
    builder.reply("Done.")
    builder.prompt("now whisper — ünïcödé")
    builder.reply("Wait.")
    builder.reply("Done too.")
    builder.prompt("thanks")
    builder.reply("You are welcome.")
    return builder


def read(builder: Any, folder: Path) -> Conversation:
    return read_conversation(builder.write(folder / f"{SESSION}.jsonl"), builder.agent, SESSION)


@pytest.mark.parametrize("kind", ALL)
def test_every_agents_conversation_becomes_the_same_turns(kind: type[Any], tmp_path: Path) -> None:
    """S0-10, S0-11, S2-09: prompt, replies, thinking and tool calls of each turn, whoever wrote the file."""
    conversation = read(story(kind()), tmp_path)
    turns = conversation.turns
    assert [turn.prompt for turn in turns] == ["make it shout", "now whisper — ünïcödé", "thanks"]
    assert [turn.index for turn in turns] == [1, 2, 3]
    assert [turn.replies for turn in turns] == [["Done."], ["Wait.", "Done too."], ["You are welcome."]]
    assert turns[0].thinking == ["upper case, then"]
    edit, shell = turns[0].tool_calls
    assert (edit.id, edit.type, edit.file_path) == ("call-1", "Edit", "/home/ada/project/a.txt")
    assert (edit.old_string, edit.new_string, edit.result) == ("hello", "HELLO", "ok")
    assert (shell.type, shell.result, shell.is_error) == ("shell", "HELLO", False)
    assert conversation.session_id == SESSION
    assert conversation.agent in AGENTS
    assert not conversation.branches
    assert conversation.unknown_lines == conversation.malformed_lines == 0
    if kind is not Cursor:
        assert turns[0].started_at is not None
        assert turns[0].ended_at is not None
        assert turns[0].started_at < turns[0].ended_at < (turns[1].started_at or "")


@pytest.mark.parametrize("kind", LINES)
def test_the_raw_lines_are_the_bytes_of_the_file(kind: type[Any], tmp_path: Path) -> None:
    """S0-07: every line is in one turn, exactly as it was written."""
    builder = story(kind())
    turns = read(builder, tmp_path).turns
    assert b"".join(line for turn in turns for line in turn.lines) == builder.data()


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_the_last_turns_alone(kind: type[Any], count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S2-09: read from the end, whatever part of the file that takes, they are the same turns."""
    monkeypatch.setattr("snapstore.transcripts.readers.read._FIRST_TAIL", 100)
    path = story(kind()).write(tmp_path / f"{SESSION}.jsonl")
    whole = read_conversation(path, kind.agent, SESSION).turns[-count:]
    found = last_turns(path, kind.agent, count, SESSION)
    assert [turn.index for turn in found] == list(range(-len(whole), 0))
    assert [(t.prompt, t.replies, len(t.tool_calls)) for t in found] == [
        (t.prompt, t.replies, len(t.tool_calls)) for t in whole
    ]
    assert [t.lines for t in found][1:] == [t.lines for t in whole][1:]
