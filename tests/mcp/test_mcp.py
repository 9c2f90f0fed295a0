"""`snapstore mcp` as an agent meets it: a real client speaks to the real process over its standard streams."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from commands import PROGRAM, assert_record, snap_json
from helpers import bit_by_bit, child, on_disk
from mcp import Client, StdioServerParameters

from snapstore import Store
from snapstore.surface.records.base import Record
from snapstore.surface.records.errors import ErrorRecord
from snapstore.surface.records.moves import MoveRecord
from snapstore.surface.records.nodes import DiffRecord, LogRecord
from snapstore.surface.records.status import StatusRecord

LOOKS, MOVES = {"status", "list", "diff", "preview"}, {"undo", "redo", "restore"}


class Agent:
    """One client with its own server process."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """A document that is not an error."""
        answer = await self.client.call_tool(tool, arguments)
        assert not answer.is_error, answer.content
        return _document(answer)

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """An error of the family, and no traceback."""
        answer = await self.client.call_tool(tool, arguments)
        assert answer.is_error, answer.content
        document = _document(answer)
        ErrorRecord.model_validate(document)
        assert document["message"] and document["hint"] and "Traceback" not in json.dumps(document)
        return document


def _document(answer: Any) -> dict[str, Any]:
    (content,) = answer.content
    found: dict[str, Any] = json.loads(content.text)
    return found


def talk(
    folder: Path, story: Callable[..., Awaitable[None]], *options: str, clients: int = 1, **environment: str
) -> None:
    """Runs a story with as many agents as it wants, each in a process of its own. Whatever a server wrote on standard
    output that is not the protocol would have ended its session."""
    named = {key: value for key, value in os.environ.items() if not key.startswith("CLAUDE")}

    async def told(agents: list[Agent]) -> None:
        if len(agents) == clients:
            await story(*agents)
            return
        server = StdioServerParameters(
            command=PROGRAM[0], args=[*PROGRAM[1:], "mcp", *options], cwd=folder, env={**named, **environment}
        )
        async with Client(server, read_timeout_seconds=60) as client:
            await told([*agents, Agent(client)])

    asyncio.run(told([]))


def a_turn(root: Path, prompt: str, session: str = "s1", **files: str | None) -> None:
    """A turn that writes files, or with None removes them. `__` stands for a dot."""
    with Store.open(root, create=True, session=session) as store, store.session(session).turn(prompt, agent="poet"):
        for name, text in files.items():
            path = root / name.replace("__", ".")
            path.unlink() if text is None else path.write_text(text)


def read(root: Path) -> dict[str, str]:
    return {path.decode(): data.decode() for path, (_, data) in on_disk(root).items()}


@pytest.fixture
def told(root: Path) -> Path:
    """A project with a file and three turns."""
    (root / "a.py").write_text("one\n")
    a_turn(root, "Add a login function", a__py="one\nlogin\n", new__txt="new\n")
    a_turn(root, "Fix the parser\nand more", b__py="parser\n")
    a_turn(root, "Write tests", tests__py="tests\n", new__txt=None)
    return root


# What there is.


def test_the_tools_say_what_they_do_what_they_destroy_and_which_only_look(told: Path) -> None:
    async def story(agent: Agent) -> None:
        tools = {tool.name: tool for tool in (await agent.client.list_tools()).tools}
        assert set(tools) == LOOKS | MOVES
        for name, tool in tools.items():
            assert tool.annotations is not None and tool.description
            assert tool.annotations.read_only_hint is (name in LOOKS)
            told_of = tool.description
            assert "  " not in told_of and "\n" not in told_of
            assert ("Changes nothing." if name in LOOKS else "Nothing is lost") in told_of
            assert len(told_of) < 300

    talk(told, story)


def test_an_older_client_with_a_handshake_is_served_too(told: Path) -> None:
    async def story() -> None:
        server = StdioServerParameters(command=PROGRAM[0], args=[*PROGRAM[1:], "mcp"], cwd=told, env=dict(os.environ))
        async with Client(server, mode="legacy") as client:
            assert (await Agent(client).ask("status"))["turn"] == 3

    asyncio.run(story())


@pytest.mark.parametrize(
    ("tool", "arguments", "command", "record"),
    [
        ("status", {}, ["status"], StatusRecord),
        ("list", {"limit": 2}, ["log", "-n", "2"], LogRecord),
        ("diff", {"since": "1", "until": "3"}, ["diff", "1", "3"], DiffRecord),
        ("diff", {"since": "1", "paths": ["tests.py"]}, ["diff", "1", "--", "tests.py"], DiffRecord),
        ("preview", {"move": "undo", "count": 2}, ["undo", "2", "--preview"], MoveRecord),
        ("preview", {"move": "redo"}, ["redo", "--preview"], MoveRecord),
        (
            "preview",
            {"move": "restore", "address": "1", "paths": ["new.txt"]},
            ["restore", "1", "--preview", "--", "new.txt"],
            MoveRecord,
        ),
    ],
)
def test_a_look_gives_what_the_command_prints_and_changes_nothing(
    told: Path, tool: str, arguments: dict[str, Any], command: list[str], record: type[Record]
) -> None:
    """G-23: one answer, whoever asks."""
    (told / "mine.txt").write_text("mine\n")
    before = bit_by_bit(told)

    async def story(agent: Agent) -> None:
        found = await agent.ask(tool, **arguments)
        assert_record(record, found)
        expected = snap_json(told, "--json", *command)
        for document in (found, expected):
            document.pop("size_bytes", None)
            for file in document.get("files", ()):
                file.update(added=None, removed=None)  # nobody asks for counts here
        assert found == expected

    talk(told, story)
    assert bit_by_bit(told) == before


# Moves.


def test_undo_redo_and_restore_there_and_back(told: Path) -> None:
    """S0-01, S2-07, S0-20, G-39: what the turns changed, and nothing else; the undone prompt is handed back (G-12)."""
    last = read(told)

    async def story(agent: Agent) -> None:
        (told / "mine.txt").write_text("mine\n")
        done = await agent.ask("undo", count=2)
        assert_record(MoveRecord, done)
        assert (done["turns_undone"], done["turn"], done["prompt"]) == (2, 1, "Fix the parser\nand more")
        assert read(told) == {"a.py": "one\nlogin\n", "new.txt": "new\n", "mine.txt": "mine\n"}
        assert (await agent.ask("status"))["undone_turns"] == 2
        assert (await agent.ask("redo"))["turns_redone"] == 1
        assert (await agent.ask("redo", all=True))["turns_redone"] == 1
        assert read(told) == {**last, "mine.txt": "mine\n"}
        assert (await agent.ask("redo"))["turns_redone"] == 0
        done = await agent.ask("restore", address="1", paths=["new.txt"])
        assert (done["written"], done["turn"]) == (["new.txt"], 4)
        assert read(told)["new.txt"] == "new\n"
        assert (await agent.ask("undo"))["removed"] == ["new.txt"]
        assert read(told) == {**last, "mine.txt": "mine\n"}
        for count in (1_000_000_000, 10**30):  # M-13: all there are
            done = await agent.ask("undo", count=count)
            assert (done["turns_undone"], done["turn"]) == (3, 0)
            assert done["notes"] == ["There were only 3 turns to undo."]
            assert (await agent.ask("redo", count=3))["turns_redone"] == 3
            assert read(told) == {**last, "mine.txt": "mine\n"}

    talk(told, story)


def test_a_move_is_refused_while_the_asking_turn_is_open_unless_told_to_close_it(told: Path) -> None:
    """S1-46, C22: the turn that asks is closed as interrupted and is then the last one."""

    async def story(agent: Agent) -> None:
        with Store.open(told) as store:
            store.session("s1").begin("Undo that, please")
        (told / "half.txt").write_text("half\n")
        before = bit_by_bit(told)
        for tool, arguments in (
            ("undo", {}),
            ("redo", {}),
            ("restore", {"address": "1", "paths": ["new.txt"]}),
            ("preview", {"move": "undo"}),
        ):
            refusal = await agent.refused(tool, **arguments)
            assert refusal["error"] == "busy"
            assert "close_turn: true" in refusal["hint"] and "--cancel" not in refusal["hint"]
        assert bit_by_bit(told) == before
        done = await agent.ask("undo", count=2, close_turn=True)
        assert (done["turns_undone"], done["turn"]) == (2, 2)
        assert read(told) == {"a.py": "one\nlogin\n", "new.txt": "new\n", "b.py": "parser\n"}
        closed = (await agent.ask("list", limit=1))["nodes"][-1]
        assert (closed["prompt"], closed["status"], closed["undone"]) == ("Undo that, please", "interrupted", True)
        assert (await agent.ask("redo", all=True))["turns_redone"] == 2
        assert read(told)["half.txt"] == "half\n"

    talk(told, story)


def test_a_turn_that_another_process_holds_is_not_closed(told: Path) -> None:
    """It says whose it is, and offers nothing that would not help."""

    async def story(agent: Agent) -> None:
        with Store.open(told) as store, store.session("s1").turn("Held"):
            refusal = await agent.refused("undo", close_turn=True)
            assert (refusal["error"], str(os.getpid()) in refusal["message"]) == ("busy", True)
            assert "close_turn" not in refusal["hint"]
        assert (await agent.ask("undo"))["prompt"] == "Held"

    talk(told, story)


def test_a_conflict_is_a_refusal_that_names_the_files_and_the_ways_out(told: Path) -> None:
    """S0-44, S0-46, G-38: nothing is written until somebody says how; what is on disk is saved first."""

    async def story(agent: Agent) -> None:
        (told / "tests.py").write_text("tests\nmine\n")
        before = bit_by_bit(told)
        refusal = await agent.refused("undo")
        assert (refusal["error"], [item["path"] for item in refusal["conflicts"]]) == ("conflict", ["tests.py"])
        assert "tests.py" in refusal["message"]
        assert "again with on_conflict: skip or force." in refusal["hint"] and "--" not in refusal["hint"]
        preview = await agent.ask("preview", move="undo", on_conflict="force")
        assert (preview["removed"], preview["conflicts"][0]["settled_by"]) == (["tests.py"], "force")
        assert (await agent.refused("undo", on_conflict="merge"))["error"] == "conflict"
        assert bit_by_bit(told) == before
        assert (await agent.ask("undo", on_conflict="skip"))["skipped"] == ["tests.py"]
        assert (told / "tests.py").read_text() == "tests\nmine\n"
        assert (await agent.refused("redo"))["error"] == "conflict"
        forced = await agent.ask("redo", on_conflict="force")
        assert (told / "tests.py").read_text() == "tests\n"
        await agent.ask("restore", address=forced["safety"], paths=["tests.py"])
        assert (told / "tests.py").read_text() == "tests\nmine\n"

    talk(told, story)


def test_two_files_edited_apart_are_merged(root: Path) -> None:
    """G-38, M-19: three ways, where both sides changed other lines, without being asked to."""
    lines = [f"{number}\n" for number in range(1, 21)]
    a_turn(root, "Number the lines", poem="".join(lines))
    a_turn(root, "A better start", poem="".join(["first\n", *lines[1:]]))
    (root / "poem").write_text(mine := "".join(["first\n", *lines[1:-1], "last\n"]))

    async def story(agent: Agent) -> None:
        refusal = await agent.refused("undo", on_conflict="refuse")
        assert (refusal["error"], [item["path"] for item in refusal["conflicts"]]) == ("conflict", ["poem"])
        assert "again with on_conflict: merge, skip or force." in refusal["hint"]
        for how in ({}, {"on_conflict": "merge"}):
            done = await agent.ask("undo", **how)
            assert (done["written"], done["merged"]) == (["poem"], ["poem"])
            assert (root / "poem").read_text() == "".join([*lines[:-1], "last\n"])
            assert (await agent.ask("redo"))["merged"] == ["poem"]
            assert (root / "poem").read_text() == mine

    talk(root, story)


# Whose project, whose session.


def test_without_a_store_every_tool_says_so_and_none_is_made(root: Path, nobodys_home: Path) -> None:
    async def story(agent: Agent) -> None:
        for tool in ("status", "list", "diff", "undo", "redo"):
            refusal = await agent.refused(tool)
            assert (refusal["error"], "snapstore init" in refusal["hint"]) == ("no-store", True)
        assert not (nobodys_home / "stores").exists()
        a_turn(root, "Begin", a="1")  # a store made meanwhile is found
        assert (await agent.ask("status"))["turn"] == 1

    talk(root, story)


def test_the_project_is_that_of_the_folder_else_that_of_claude(told: Path, tmp_path: Path) -> None:
    """A folder that is named is meant: no other project is moved in its place."""
    (tmp_path / "elsewhere").mkdir()
    here, elsewhere = str(told), str(tmp_path / "elsewhere")

    async def found(agent: Agent) -> None:
        assert (await agent.ask("status"))["root"] == here
        assert (await agent.ask("preview", move="restore", address="1", paths=["new.txt"]))["written"] == ["new.txt"]

    async def missed(agent: Agent) -> None:
        assert (await agent.refused("status"))["error"] == "no-store"

    talk(tmp_path / "elsewhere", found, "-C", here)
    talk(tmp_path / "elsewhere", found, CLAUDE_PROJECT_DIR=here)
    talk(told, found, CLAUDE_PROJECT_DIR=elsewhere)
    talk(told, missed, "-C", elsewhere, CLAUDE_PROJECT_DIR=here)


def test_the_session_is_the_one_named_else_the_one_last_active(told: Path) -> None:
    """G-31: an undo in one session leaves the other's files alone."""
    a_turn(told, "Another talk", "s2", other__txt="other\n")

    async def active(agent: Agent) -> None:
        assert (await agent.ask("status"))["session"] == "s2"

    async def named(agent: Agent) -> None:
        assert (await agent.ask("undo"))["from"]["session"] == "s1"
        assert (told / "other.txt").exists() and not (told / "tests.py").exists()

    async def nobody(agent: Agent) -> None:
        assert (await agent.refused("status"))["error"] == "unknown"

    talk(told, active)
    talk(told, named, "--session", "s1")
    talk(told, nobody, "--session", "s3")
    talk(told, nobody, SNAPSTORE_SESSION="s4")


def test_two_agents_at_once_take_turns(told: Path) -> None:
    """G-08: one writer at a time, across processes; nothing is undone twice."""
    for number in range(4, 12):
        a_turn(told, f"Turn {number}", count=str(number))

    async def story(one: Agent, two: Agent) -> None:
        calls = [agent.client.call_tool("undo", {}) for _ in range(4) for agent in (one, two)]
        answers = await asyncio.gather(*calls)
        done = [_document(answer) for answer in answers if not answer.is_error]
        # One whose plan was overtaken by the other's move is refused, with nothing written.
        assert {_document(answer)["error"] for answer in answers if answer.is_error} <= {"conflict"}
        assert done and sum(move["turns_undone"] for move in done) == len(done)
        status = await one.ask("status")
        assert status["turn"] == 11 - len(done)
        assert status["edits"] == (await two.ask("status"))["edits"] == []

    talk(told, story, clients=2)


# Bad input.


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("undo", {"count": -1}, "usage"),
    ("undo", {"count": 0}, "usage"),
    ("undo", {"count": 1.5}, "usage"),
    ("undo", {"count": "all of them"}, "usage"),
    ("undo", {"turns": 2}, "usage"),
    ("undo", {"on_conflict": "shout"}, "usage"),
    ("redo", {"count": -1}, "usage"),
    ("list", {"limit": 0}, "usage"),
    ("list", {"limit": 1_000_000_000}, "usage"),
    ("diff", {"since": "nonsense"}, "unknown"),
    ("diff", {"since": "../../etc/passwd"}, "unknown"),
    ("diff", {"since": "--output=x"}, "unknown"),
    ("diff", {"since": "99"}, "unknown"),
    ("diff", {"since": ""}, "unknown"),
    ("diff", {"paths": ["../x"]}, "unsafe"),
    ("restore", {"address": "1", "paths": ["../x"]}, "unsafe"),
    ("restore", {"address": "1", "paths": ["/etc/passwd"]}, "unsafe"),
    ("restore", {"address": "1", "paths": ["a\0b"]}, "unsafe"),
    ("restore", {"address": "1", "paths": ["nowhere"]}, "unknown"),
    ("restore", {"address": "1", "paths": []}, "usage"),
    ("restore", {"address": "1", "paths": "x" * 100_000}, "usage"),
    ("restore", {"address": "1"}, "usage"),
    ("restore", {"address": "nonsense", "paths": ["new.txt"]}, "unknown"),
    ("preview", {"move": "destroy"}, "usage"),
    ("preview", {"move": "restore"}, "usage"),
    ("preview", {"move": "undo", "paths": ["new.txt"]}, "usage"),
    ("eval", {"code": "1"}, "usage"),
]


def test_bad_arguments_are_refused_and_change_nothing(told: Path) -> None:
    """S1-27, S1-63: each with a word on what to do, and the server goes on."""
    before = bit_by_bit(told)

    async def story(agent: Agent) -> None:
        found = [(tool, arguments, (await agent.refused(tool, **arguments))["error"]) for tool, arguments, _ in BAD]
        assert found == BAD
        assert (await agent.ask("status"))["turn"] == 3

    talk(told, story)
    assert bit_by_bit(told) == before


def test_what_is_too_long_to_read_is_cut_and_says_so(told: Path) -> None:
    """A patch of a megabyte, a thousand files, a prompt without end."""
    a_turn(told, "please " * 100_000, big="".join(f"line {number}\n" for number in range(100_000)))
    a_turn(told, "Many", **{f"file{number:04}": "1" for number in range(1000)})

    async def story(agent: Agent) -> None:
        found = await agent.ask("diff", since="3", until="4")
        assert found["patch"].startswith("diff --git a/big b/big\n") and len(found["patch"]) == 100_001
        assert found["shortened"] == ["patch: the first 100,000 characters"]
        (told / "big").unlink()
        for tool, arguments in (("list", {"limit": 100}), ("diff", {"since": "4"}), ("undo", {"count": 1})):
            found = await agent.ask(tool, **arguments)
            assert len(json.dumps(found)) < 250_000
            assert any("of 1,00" in text for text in found["shortened"])
        listed = (await agent.ask("list"))["nodes"]
        assert [node["turn"] for node in listed] == [None, 1, 2, 3, 4, 5]
        assert not (told / "file0999").exists()

    talk(told, story)


def test_names_and_texts_that_are_not_utf_8_come_through(root: Path) -> None:
    """G-36: escaped where no encoding could carry them; the session with the agent goes on."""
    a_turn(root, "Ein Gedicht über Rosen", poem="Röschen\n")
    with Store.open(root) as store, store.session("s1").turn("Odd bytes"):
        Path(os.fsdecode(os.fsencode(root) + b"/odd\xff")).write_bytes(b"caf\xe9\n")

    async def story(agent: Agent) -> None:
        plain = await agent.client.call_tool("diff", {"since": "0", "until": "1"})
        assert "+Röschen" in plain.content[0].text  # type: ignore[union-attr]
        assert (await agent.ask("list"))["nodes"][-1]["files"][0]["path_b64"] == "b2Rk/w=="
        assert "+caf\udce9" in (await agent.ask("diff", since="1"))["patch"]
        done = await agent.ask("undo")
        assert list(done["paths_b64"].values()) == ["b2Rk/w=="]
        assert read(root) == {"poem": "Röschen\n"}

    talk(root, story)


HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def test_standard_output_carries_the_protocol_alone_and_the_server_ends_with_its_input(told: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "undo", "arguments": {"count": -1}}}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    with subprocess.Popen(
        [*PROGRAM, "mcp"], cwd=told, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write("\n".join([json.dumps(HELLO), "this is not JSON", json.dumps(ready), json.dumps(call), ""]))
        server.stdin.flush()
        said = [json.loads(server.stdout.readline())]
        while said[-1].get("id") != 2:
            said.append(json.loads(server.stdout.readline()))
        rest, errors = server.communicate(timeout=60)
    assert (server.returncode, rest) == (0, "")
    assert {answer["jsonrpc"] for answer in said} == {"2.0"}
    assert said[-1]["result"]["isError"] is True
    assert "Traceback" not in errors


def test_an_interrupt_ends_it_at_once(told: Path) -> None:
    with subprocess.Popen([*PROGRAM, "mcp"], cwd=told, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(HELLO).encode() + b"\n")
        server.stdin.flush()
        assert server.stdout.readline()
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) == -signal.SIGINT


def test_without_the_package_it_is_refused_with_the_way_to_get_it(root: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from snapstore.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = child(code, "mcp", "--json", "-C", root)
    assert done.returncode == 2
    document = json.loads(done.stdout)
    assert (document["error"], "pip install 'snapstore[mcp]'" in document["hint"]) == ("usage", True)
    assert sys.executable not in document["hint"]
