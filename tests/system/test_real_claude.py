"""The real Claude Code (as the Agent SDK bundles it) with the hooks that `snapstore connect` sets up, against an API on
loopback that answers from a script. What the agent sends there is what it knows: the proof of a fork (S1-21, S4-25).

The formats are the agent's own and move with its versions: here is where that shows."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_project import AgentProject
from fake_api import Block, FakeApi, Refused, call, conversation, say, think, unanswered
from helpers import assert_whole, on_disk

from snapstore import Store
from snapstore.store.conversations import Conversations


@functools.cache
def program() -> tuple[str, str]:
    """The bundled program, or why there is none."""
    found = importlib.util.find_spec("claude_agent_sdk")
    for folder in (found.submodule_search_locations or []) if found is not None else []:
        path = os.path.join(folder, "_bundled", "claude")
        if os.path.isfile(path):
            try:
                done = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                return "", f"the bundled Claude Code does not run here: {error}"
            return (path, "") if done.returncode == 0 else ("", f"the bundled Claude Code fails: {done.stderr[:200]!r}")
    return "", "needs claude-agent-sdk with its bundled Claude Code"


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as api:
        yield api


class RealClaude(AgentProject):
    """Claude Code with its hooks connected."""

    def __init__(self, root: Path, home: Path, api: FakeApi) -> None:
        super().__init__(root, home, api)
        self.env |= {"CLAUDE_CODE_TMPDIR": str(home / "tmp"), **api.environment}
        self.snapstore("connect", "claude")

    def command(self, prompt: str, *words: str) -> list[str]:
        return [program()[0], "-p", "--output-format", "json", "--permission-mode", "bypassPermissions", *words, prompt]

    def say(self, prompt: str, *words: str) -> list[str]:
        """One prompt, answered. Gives what the agent knew when it asked the API, and checks that the API would take
        it."""
        before = len(self.api.requests)
        self.id = json.loads(self.run(self.command(prompt, *words)))["session_id"]
        for request in self.api.requests[before:]:
            assert not unanswered(request)
        assert not self.api.elsewhere
        return conversation(self.api.requests[before])

    def resume(self, prompt: str, id: str | None = None, *words: str) -> list[str]:
        return self.say(prompt, "--resume", id or self.id, *words)

    def fork(self, *words: str) -> Any:
        return self.json("fork", *words)["fork"]

    def transcript(self, id: str | None = None) -> Path:
        [path] = self.home.glob(f".claude/projects/*/{id or self.id}.jsonl")
        return path

    def write(self, name: str, text: str) -> Block:
        return call("Write", file_path=str(self.root / name), content=text)

    def work(self, *prompts: str) -> None:
        """Scenes in which the agent calls three tools at once: two files are written, and a program runs."""
        for text in prompts:
            name = text.replace(" ", "-").lower()
            tools = [self.write(f"{name}.txt", text), self.write(f"{name}/too.txt", text)]
            self.api.scene(text, [*tools, call("Bash", command=f"echo {name} >> log.txt")], [say(f"Did {text}.")])


WORK = ["call Write", "call Write", "call Bash", "result", "result", "result"]


def told(*turns: str) -> list[str]:
    """What the agent knows of turns of `work`, with a last prompt that it has not answered yet."""
    known = []
    for text in turns[:-1]:
        known += [f"user: {text}", *WORK, f"assistant: Did {text}."]
    return [*known, f"user: {turns[-1]}"]


@pytest.fixture
def claude(root: Path, nobodys_home: Path, api: FakeApi) -> RealClaude:
    if program()[1]:
        pytest.skip(program()[1])
    return RealClaude(root, nobodys_home, api)


def test_a_turn_is_recorded_with_all_that_was_said_and_done(claude: RealClaude, root: Path) -> None:
    """S4-25, S0-07, S0-10, S0-11, S2-16: edit tools and a shell, found in the files and in the conversation."""
    (root / "mine.txt").write_text("mine\n")
    start = on_disk(root)
    path = str(root / "a.txt")
    claude.api.scene(
        "Make it",
        [think("How?"), say("I write."), claude.write("a.txt", "one\n")],
        [call("Edit", file_path=path, old_string="one", new_string="two")],
        [call("Bash", command="mkdir made && echo made > made/b.txt && rm mine.txt")],
        [say("All done.")],
    )
    claude.say("Make it")
    end = on_disk(root)
    turn = claude.json("show", "1")
    assert (turn["prompt"], turn["status"], turn["found_by"], turn["agent"]) == ("Make it", "done", "scanned", "claude")
    assert {file["path"]: file["change"] for file in turn["files"]} == {
        "a.txt": "A",
        "made/b.txt": "A",
        "mine.txt": "D",
    }
    assert (turn["replies"], turn["thinking"]) == (["I write.", "All done."], ["How?"])
    assert [(each["name"], each["is_error"]) for each in turn["tool_calls"]] == [
        ("Write", False),
        ("Edit", False),
        ("Bash", False),
    ]
    assert all(each["result"] for each in turn["tool_calls"])
    lines = claude.transcript().read_text().splitlines(keepends=True)
    own = next(json.loads(line) for line in lines if '"content":"Make it"' in line and '"uuid"' in line)
    about = turn["conversation"]
    assert about["complete"] is True  # the transcript often lags behind the stop, but not behind the end
    assert (about["agent_session"], about["message_id"], about["prompt_id"]) == (
        claude.id,
        own["uuid"],
        own["promptId"],
    )
    assert turn["lines"] == lines[: len(turn["lines"])]
    assert any("All done." in line for line in turn["lines"])
    with Store.open(root) as store:
        session = store.session(f"claude-{claude.id[:8]}")
        session.move(session.plan_undo(1))
        assert on_disk(root) == start
        session.move(session.plan_redo(1))
        assert on_disk(root) == end
        assert_whole(store)
    status = claude.json("status")
    assert (status["hook_errors"], status["open_turns"], status["edits"]) == ([], [], [])


@pytest.mark.deep
def test_the_agent_goes_on_from_a_fork_and_knows_nothing_of_what_was_undone(claude: RealClaude, root: Path) -> None:
    """S1-21, S4-25, S4-27, S4-09: a fork is resumed, its turn is on a branch of the same session, checkpoints of the
    old branch are kept, and the old conversation can be resumed as before."""
    claude.work("One", "Two", "Three", "Other", "Old again")
    assert claude.say("One") == told("One")
    old = claude.id
    claude.resume("Two")
    assert claude.resume("Three") == told("One", "Two", "Three")
    three = on_disk(root)
    claude.snapstore("checkpoint", "good", "3")
    before = claude.transcript().read_bytes()

    claude.snapstore("undo", "2", "--yes")
    one = on_disk(root)
    assert claude.json("status")["pending_fork"] is True
    fork = claude.fork()
    assert (fork["parentSessionId"], fork["rewindFromTurn"], fork["title"]) == (old, 1, "One (Branch)")
    assert fork["notices"] == []
    assert fork["command"] == ["claude", "--resume", fork["id"]]
    assert claude.transcript(old).read_bytes() == before

    assert claude.resume("Other", fork["id"]) == told("One", "Other")
    assert claude.id == fork["id"]
    assert claude.turns() == [(1, "One", "done"), (2, "Other", "done")]
    status = claude.json("status")
    assert (status["session"], status["branch"]) == (f"claude-{old[:8]}", "main-2")
    assert (status["pending_fork"], status["hook_errors"]) == (False, [])
    assert set(on_disk(root)) - set(one) == {b"other.txt", b"other/too.txt"}
    assert claude.transcript(old).read_bytes() == before
    assert len(claude.json("sessions")["sessions"]) == 1

    claude.snapstore("goto", "good", "--yes")  # the old branch and its checkpoint are whole
    assert on_disk(root) == three
    assert claude.resume("Old again", old) == told("One", "Two", "Three", "Old again")
    assert claude.turns()[-2:] == [(3, "Three", "done"), (4, "Old again", "done")]
    assert claude.transcript(old).read_bytes().startswith(before)
    with Store.open(root) as store:
        assert_whole(store)


@pytest.mark.deep
def test_the_agent_sdk_resumes_a_fork_and_interrupts_it(claude: RealClaude, root: Path, tmp_path: Path) -> None:
    """S1-21, G-37: unmodified, through its own interface, several prompts in one process. An interrupt (Esc, to a
    person) fires no hook at all: the transcript tells of it, so that undo works at once; or the next prompt comes."""
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

    claude.work("One", "Two", "Three", "Four")
    claude.say("One")
    claude.resume("Two")
    claude.snapstore("undo", "--yes")
    fork = claude.fork()["id"]
    three = [b"one.txt", b"one/too.txt", b"three.txt", b"three/too.txt", b"log.txt"]
    program = f"echo half > half.txt; touch {tmp_path}/at-work; sleep 30"
    claude.api.scene("Long", [claude.write("long.txt", "long\n"), call("Bash", command=program)], [say("Never.")])
    options = ClaudeAgentOptions(
        resume=fork, cwd=root, env=claude.env, permission_mode="bypassPermissions", setting_sources=["user"]
    )

    async def answer(client: ClaudeSDKClient) -> ResultMessage:
        [result] = [said async for said in client.receive_response() if isinstance(said, ResultMessage)]
        return result

    async def interrupted(client: ClaudeSDKClient) -> None:
        before = claude.transcript(fork).stat().st_size
        await client.query("Long")
        await asyncio.to_thread(wait_for, tmp_path / "at-work")
        (tmp_path / "at-work").unlink()
        await client.interrupt()
        assert (await answer(client)).is_error
        await asyncio.to_thread(wait_for, claude.transcript(fork), b"[Request interrupted by user", before)

    async def talk() -> None:
        async with ClaudeSDKClient(options) as client:
            await client.query("Three")
            result = await answer(client)
            assert (result.is_error, result.session_id, result.result) == (False, fork, "Did Three.")
            assert conversation(claude.api.requests[-2]) == told("One", "Three")
            await interrupted(client)
            claude.snapstore("undo", "--yes")
            assert sorted(on_disk(root)) == sorted(three)
            await interrupted(client)
            await client.query("Four")
            assert not (await answer(client)).is_error

    asyncio.run(talk())
    assert claude.turns() == [
        (1, "One", "done"),
        (2, "Three", "done"),
        (3, "Long", "interrupted"),
        (4, "Four", "done"),
    ]
    assert {file["path"] for file in claude.json("show", "3")["files"]} == {"half.txt", "long.txt"}
    assert not any(unanswered(request) for request in claude.api.requests)


@pytest.mark.deep
def test_forks_of_forks_and_from_before_the_first_prompt(claude: RealClaude, root: Path) -> None:
    """S1-52, S4-06: each is as good as the one before, also from the very start."""
    claude.work("One", "Two", "Three", "Four", "Afresh")
    claude.say("One")
    claude.resume("Two")
    claude.snapstore("undo", "--yes")
    first = claude.fork()
    claude.resume("Three", first["id"])
    claude.resume("Four")
    claude.snapstore("undo", "--yes")
    second = claude.fork()
    assert (second["parentSessionId"], second["title"]) == (first["id"], "One (Branch 2)")
    assert claude.fork()["id"] == second["id"]  # nobody has spoken with it yet
    assert claude.resume("Two", second["id"]) == told("One", "Three", "Two")
    claude.snapstore("goto", "0", "--yes")
    fresh = claude.fork()
    assert (fresh["fresh"], fresh["command"]) == (True, ["claude", "--session-id", fresh["id"]])
    assert claude.say("Afresh", "--session-id", fresh["id"]) == told("Afresh")
    assert claude.id == fresh["id"]
    assert claude.turns() == [(1, "Afresh", "done")]
    assert set(on_disk(root)) == {b"afresh.txt", b"afresh/too.txt", b"log.txt"}
    assert len(claude.json("sessions")["sessions"]) == 1
    assert len(claude.json("tree")["branches"]) == 4


@pytest.mark.deep
def test_a_fork_that_the_agent_makes_is_a_branch_of_the_session_that_was_undone(claude: RealClaude) -> None:
    """S4-09: `--fork-session` after an undo. The agent still knows the undone turn: it was asked to; the turn of the
    new session is nevertheless only its own."""
    claude.work("One", "Two", "Three")
    claude.say("One")
    old = claude.id
    claude.resume("Two")
    claude.snapstore("undo", "--yes")
    assert claude.resume("Three", old, "--fork-session") == told("One", "Two", "Three")
    assert claude.id != old
    assert claude.turns() == [(1, "One", "done"), (2, "Three", "done")]
    turn = claude.json("show", "2")
    assert (turn["replies"], len(turn["tool_calls"])) == (["Did Three."], 3)
    with Store.open(claude.root) as store:
        assert store.sessions() == [f"claude-{old[:8]}"]
        known = Conversations(store).agent_session(claude.id)
        assert known is not None and (known.parent, known.fork_turn) == (old, 1)


@pytest.mark.deep
def test_without_the_agents_files_a_fork_is_made_from_the_records(claude: RealClaude) -> None:
    """S1-21, G-19: the agent removes transcripts after a month."""
    claude.work("One", "Two", "Three", "Four")
    claude.say("One")
    claude.resume("Two")
    claude.resume("Three")
    claude.transcript().unlink()
    claude.snapstore("undo", "--yes")
    assert claude.resume("Four", claude.fork()["id"]) == told("One", "Two", "Four")
    assert claude.turns()[-1] == (3, "Four", "done")


@pytest.mark.deep
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=lambda how: how.name)
def test_a_turn_that_was_cut_off_is_kept_and_can_be_gone_on_from(
    claude: RealClaude, root: Path, tmp_path: Path, how: signal.Signals
) -> None:
    """G-37, S4-02: cut off while a program runs, the call has no result; its fork has one that says so."""
    claude.work("One", "Two", "Three")
    claude.say("One")
    os.mkfifo(tmp_path / "end")
    program = f"echo half > half.txt; touch {tmp_path}/at-work; cat {tmp_path}/end"
    claude.api.scene("Cut", [claude.write("cut.txt", "cut\n"), call("Bash", command=program)], [say("Never.")])
    running = subprocess.Popen(
        claude.command("Cut", "--resume", claude.id),
        cwd=root,
        env=claude.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(tmp_path / "at-work")
    running.send_signal(how)
    running.wait(60)
    let_go(tmp_path / "end")
    known = claude.resume("Two")
    assert known[: len(told("One", "Cut"))] == told("One", "Cut")
    assert claude.turns() == [(1, "One", "done"), (2, "Cut", "interrupted"), (3, "Two", "done")]
    cut = claude.json("show", "2")
    assert {file["path"] for file in cut["files"]} == {"cut.txt", "half.txt"}
    assert [each["name"] for each in cut["tool_calls"]] == ["Write", "Bash"]
    claude.snapstore("undo", "--yes")
    assert {b"cut.txt", b"half.txt"} < set(on_disk(root))
    again = claude.resume("Three", claude.fork()["id"])
    assert again.count("call Bash") == 2 and again.count("result") == 5
    assert [text for text in again if text.startswith("user: T")] == ["user: Three"]


@pytest.mark.deep
def test_a_helpers_work_is_the_turns_also_in_the_background(claude: RealClaude, root: Path) -> None:
    """S2-16: a subagent works on after the answer (the agent's default); the agent then prompts itself."""
    shell = call("Bash", command="echo run > run.txt")
    claude.api.scene("Help", [claude.write("help.txt", "help\n"), shell], [say("Helped.")])
    delegate = {"description": "Help", "prompt": "Help", "subagent_type": "general-purpose"}
    claude.api.scene("Wait", [call("Agent", run_in_background=False, **delegate)], [say("Waited.")])
    claude.api.scene("Go", [call("Agent", **delegate)], [say("Gone.")], [say("Heard of it.")])
    claude.say("Wait")
    assert {file["path"] for file in claude.json("show", "1")["files"]} == {"help.txt", "run.txt"}
    claude.snapstore("undo", "--yes")
    assert on_disk(root) == {}
    claude.resume("Go")
    assert claude.turns() == [(1, "Go", "done")]
    turn = claude.json("show", "1")
    assert {file["path"] for file in turn["files"]} == {"help.txt", "run.txt"}
    assert turn["replies"] == ["Gone.", "Heard of it."]
    claude.snapstore("undo", "--yes")
    assert on_disk(root) == {}


@pytest.mark.deep
def test_a_compaction_goes_along_with_the_turn_that_it_followed(claude: RealClaude) -> None:
    """S1-47: forks after it have the summary, forks from before it must be asked for."""
    claude.work("One", "Two", "Three", "Four", "Five")
    claude.say("One")
    claude.resume("Two")
    claude.say("/compact", "--resume", claude.id)
    summed_up = claude.resume("Three")
    assert summed_up[0].startswith("user: This session is being continued")
    assert [turn[1] for turn in claude.turns()] == ["One", "Two", "Three"]
    old = claude.id
    claude.snapstore("undo", "--yes")
    assert claude.resume("Four", claude.fork()["id"]) == [*summed_up[:-1], "user: Four"]
    claude.snapstore("goto", "1", "--yes")
    claude.snapstore("fork", status=16)
    fork = claude.fork("--compacted")
    assert fork["parentSessionId"] == old
    assert claude.resume("Five", fork["id"]) == told("One", "Five")


@pytest.mark.deep
def test_an_error_of_the_api_ends_the_turn(claude: RealClaude, root: Path) -> None:
    """G-37: what was done until then is kept."""
    claude.work("One", "Two")
    claude.say("One")
    claude.api.scene("Fail", [claude.write("fail.txt", "fail\n")], refuse)
    done = subprocess.run(
        claude.command("Fail", "--resume", claude.id),
        cwd=root,
        env={**claude.env, "CLAUDE_CODE_MAX_RETRIES": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert claude.turns() == [(1, "One", "done"), (2, "Fail", "interrupted")]
    assert claude.json("status")["open_turns"] == []
    assert (root / "fail.txt").exists()
    claude.snapstore("undo", "--yes")
    assert not (root / "fail.txt").exists()
    assert claude.resume("Two", claude.fork()["id"]) == told("One", "Two")


def wait_for(path: Path, text: bytes = b"", start: int = 0) -> None:
    """Until there is such a file, and in it, from a place on, such a text."""
    end = time.monotonic() + 60
    while not (path.exists() and text in path.read_bytes()[start:]):
        assert time.monotonic() < end, f"{path.name}: {text!r} never came"
        time.sleep(0.02)


def let_go(fifo: Path) -> None:
    """Ends a program that reads from there, if it is still alive."""
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        pass


def refuse() -> list[Block]:
    raise Refused({"type": "invalid_request_error", "message": "no"})
