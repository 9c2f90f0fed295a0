"""Hooks in bad company: users who edit meanwhile, agents that are cut off, told late, forked, killed or hostile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from agents import OTHER_ID, Agent, Claude, Codex, Copilot, Cursor, plant_fork
from helpers import all_processes, assert_whole, line, on_disk, open_files, powerless, touched
from test_conversations import Talking

from snapstore import Store
from snapstore.agents.fork import ConversationFork
from snapstore.store.conversations import Conversations
from snapstore.surface.status import read_status


def files_of(root: Path, agent: Agent) -> list[set[bytes]]:
    """What each turn of the agent's session changed."""
    with Store.open(root) as store:
        turns = [node for node in line(store, agent.session) if node["trailers"]["Kind"] == "turn"]
        return [set(touched(store, node["commit"])) for node in turns]


def undo(root: Path, agent: Agent, count: int = 1) -> None:
    with Store.open(root) as store:
        session = store.session(agent.session)
        session.move(session.plan_undo(count))


# Which files a tool's arguments name.

PATCHES = {
    "indented": "*** Begin Patch\n  *** Update File: a\n@@\n-0\n+1\n*** Add File: b\n+1\n*** End Patch",
    "moved": "*** Begin Patch\r\n*** Update File: a\r\n*** Move to: b\r\n@@\r\n-0\r\n+1\r\n*** End Patch",
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES.keys())
def test_files_of_a_patch_that_is_written_oddly(patch: str, root: Path) -> None:
    """Codex trims the headings of a patch, so those of a sloppy one count too."""
    (root / "a").write_text("0\n")
    before = on_disk(root)
    agent = Codex(root)
    agent.prompt("Patch")
    call = ("apply_patch", {"command": patch})
    agent.before(*call)
    if "Move to" in patch:
        (root / "a").unlink()
    else:
        (root / "a").write_text("1\n")
    (root / "b").write_text("1\n")
    agent.after(*call)
    agent.stop()
    assert files_of(root, agent) == [{b"a", b"b"}]
    undo(root, agent)
    assert on_disk(root) == before


@pytest.mark.parametrize(
    "arguments",
    [{"edits": [{"file_path": "a"}, {"file_path": "b"}]}, {"edits": [1, 2]}, {"edits": []}, {}, None, "a", ["a", "b"]],
    ids=str,
)
def test_an_edit_that_does_not_say_of_what_makes_the_turn_scan(arguments: Any, root: Path) -> None:
    (root / "a").write_text("0\n")
    before = on_disk(root)
    agent = Claude(root)
    agent.prompt("Edit several")
    agent.before("MultiEdit", arguments)
    (root / "a").write_text("1\n")
    agent.write("c", "named\n")
    agent.stop()
    undo(root, agent)
    assert on_disk(root) == before


# Whose work it is.


def test_what_the_user_edits_after_an_interrupt_is_not_the_turns(root: Path) -> None:
    """Esc fires no stop: the turn stays open until the next prompt, and the user goes on by hand meanwhile."""
    (root / "mine.txt").write_text("0\n")
    agent = Claude(root)
    agent.prompt("Interrupted before anything was done")
    (root / "mine.txt").write_text("by hand\n")
    agent.prompt("Interrupted after an edit")
    agent.write("a.txt", "agent\n")
    (root / "mine.txt").write_text("by hand again\n")
    agent.prompt("Answered")
    agent.stop()
    assert files_of(root, agent) == [set(), {b"a.txt"}, set()]
    undo(root, agent, 3)
    assert {path: data for path, (_, data) in on_disk(root).items()} == {b"mine.txt": b"by hand again\n"}


def test_closing_an_interrupted_turn_by_hand_takes_no_edit_of_the_users_along(root: Path) -> None:
    """`undo --cancel` after Esc."""
    (root / "mine.txt").write_text("0\n")
    agent = Claude(root)
    agent.prompt("Interrupted")
    agent.write("a.txt", "agent\n")
    (root / "mine.txt").write_text("by hand\n")
    with Store.open(root) as store:
        session = store.session(agent.session)
        session.close_open_turn()
    undo(root, agent)
    assert {path: data for path, (_, data) in on_disk(root).items()} == {b"mine.txt": b"by hand\n"}


def test_what_the_user_edits_while_the_agent_only_talks_is_not_the_turns(root: Path) -> None:
    (root / "mine.txt").write_text("0\n")
    agent = Claude(root)
    agent.prompt("Explain")
    (root / "mine.txt").write_text("by hand\n")
    agent.stop()
    undo(root, agent)
    assert (root / "mine.txt").read_text() == "by hand\n"


def test_a_program_that_was_cut_off_is_still_the_turns(root: Path) -> None:
    """It was told of before it ran; of Cursor's nothing is known when it is cut off, so the turn scans."""
    for agent in (Claude(root), Cursor(root, OTHER_ID)):
        agent.prompt("Run")
        agent.before(*agent.shell_call("make"))
        (root / f"{agent.name}.txt").write_text("made\n")
        agent.prompt("Next")
        agent.stop()
        assert files_of(root, agent)[0] == {f"{agent.name}.txt".encode()}


def test_an_edit_through_a_link_is_an_edit_of_the_file_behind_it(root: Path, tmp_path: Path) -> None:
    (root / "real.txt").write_text("0\n")
    (root / "link.txt").symlink_to("real.txt")
    (tmp_path / "outside.txt").write_text("0\n")
    (root / "out.txt").symlink_to(tmp_path / "outside.txt")
    before = on_disk(root)
    agent = Claude(root)
    agent.prompt("Through links")
    agent.write("link.txt", "1\n")
    agent.write("out.txt", "1\n")
    agent.stop()
    with Store.open(root) as store:
        last = line(store, agent.session)[-1]
        assert set(touched(store, last["commit"])) == {b"real.txt"}
        assert [item["path"] for item in last["record"]["left_out"]] == [str(tmp_path / "outside.txt")]
    undo(root, agent)
    assert on_disk(root) == before


@pytest.mark.parametrize("name", ["a.txt", "./a.txt", "../deep/a.txt", "~/project/deep/a.txt", "ABSOLUTE"])
def test_names_of_files_start_from_where_the_agent_is(name: str, nobodys_home: Path) -> None:
    """After a `cd`, while the project stays the project; and `~` is the user's home."""
    root = nobodys_home / "project"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / "a.txt").write_text("0\n")
    agent = Claude(root)
    agent.prompt("Below")
    agent.cwd = root / "deep"
    agent.before("Edit", {"file_path": str(root / "deep" / "a.txt") if name == "ABSOLUTE" else name})
    (root / "deep" / "a.txt").write_text("1\n")
    agent.stop()
    assert files_of(root, agent) == [{b"deep/a.txt"}]


def test_files_that_scans_leave_out_are_taken_when_they_are_named(root: Path) -> None:
    """Ignored ones and large ones; also where the scan before the turn has just reported them as left out."""
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    (root / "build").mkdir()
    with Store.open(root, create=True) as store:
        store.configure(max_file_size=1000)
    for name in ("a.log", "build/x", "big"):
        (root / name).write_text("old " * 1000)
    before = on_disk(root)
    agent = Claude(root)
    agent.prompt("Edit them")
    for name in ("a.log", "build/x", "build/new", "big", "big too"):
        agent.write(name, "new " * 1000)
    agent.stop()
    undo(root, agent)
    assert on_disk(root) == before


@pytest.mark.parametrize("how", ["named", "program"])
def test_what_the_user_did_to_a_file_after_another_sessions_turn_is_not_covered_by_it(how: str, root: Path) -> None:
    """Two sessions and a user write one file, one after the other, while the second session's turn is open."""
    (root / "x").write_text("0\n")
    one, two = Claude(root), Codex(root, OTHER_ID)
    two.prompt("Long")
    one.whole_turn("Short", [("x", "1\n")])
    (root / "x").write_text("by hand\n")
    if how == "named":
        two.write("x", "2\n")
    else:
        two.run("make", lambda: (root / "x").write_text("2\n"))
    two.stop()
    undo(root, two)
    assert (root / "x").read_text() == "by hand\n"


# Told late, twice, or by another.


@pytest.mark.parametrize("kind", [Cursor, Copilot], ids=lambda kind: kind.name)
def test_a_start_that_is_told_after_the_prompt_ends_no_turn(kind: type[Agent], root: Path) -> None:
    """Cursor does not wait for its start's hook, Copilot sends the prompt first."""
    agent = kind(root)
    agent.whole_turn("Before", [("z.txt", "z\n")])
    agent.prompt("Go")
    agent.start()
    agent.write("a.txt", "1\n")
    agent.stop()
    assert files_of(root, agent) == [{b"z.txt"}, {b"a.txt"}]


def test_a_prompt_that_is_told_again_after_its_stop_is_no_second_turn(root: Path) -> None:
    agent = Claude(root)
    agent.whole_turn("Go", [("a.txt", "1\n")])
    agent.turn = 0
    agent.prompt("Go")
    agent.stop()
    assert files_of(root, agent) == [{b"a.txt"}]


def test_a_stop_that_overtakes_its_prompt_leaves_nothing_open(root: Path) -> None:
    """Also where the turn before it is still open."""
    agent = Claude(root)
    agent.prompt("Interrupted")
    agent.write("a.txt", "1\n")
    agent.turn = 2
    agent.stop()
    agent.turn = 1
    agent.prompt("Overtaken")
    with Store.open(root) as store:
        assert store.open_turns() == []
    assert files_of(root, agent) == [{b"a.txt"}, set()]


def test_tools_of_a_session_and_of_its_fork_are_not_mixed(root: Path) -> None:
    """Both go on in one line of turns: what the one writes is not in the open turn of the other."""
    one = Claude(root)
    one.whole_turn("Together", [("a.txt", "1\n")])
    plant_fork(one, OTHER_ID)
    two = Claude(root, OTHER_ID)
    two.turn = 5
    two.prompt("The fork")
    two.before(*two.write_call("two.txt", "2\n"))
    one.after(*one.write_call("a.txt", "1\n"))  # late news opens nothing
    one.write("one.txt", "1\n")
    (root / "two.txt").write_text("2\n")
    two.stop()
    one.stop()
    with Store.open(root) as store:
        assert store.open_turns() == []
        nodes = [node for name in store.sessions() for node in line(store, name)]
        found = {node["commit"]: set(touched(store, node["commit"])) for node in nodes if node["trailers"].get("Turn")}
        assert sorted(map(sorted, found.values())) == [[b"a.txt"], [b"one.txt"], [b"two.txt"]]


@pytest.mark.parametrize("id", ["abc.lock-1234", "x" * 200, "ünïcödé-日本語-тест", "0", "a.b.c", "UPPER-case"])
def test_ids_of_any_shape(id: str, root: Path) -> None:
    Claude(root, id).whole_turn("Go", [("a.txt", "1\n")])
    with Store.open(root) as store:
        assert len(store.sessions()) == 1
        assert store.open_turns() == []


def test_ids_that_begin_alike_or_differ_in_case_only(root: Path) -> None:
    ids = ["same-start-1", "same-start-2", "SAME-start-1", "same-sta" + "x" * 192]
    for id in ids:
        Claude(root, id).whole_turn(id, [("a.txt", f"{id}\n")])
    with Store.open(root) as store:
        assert len(store.sessions()) == len(ids)
        assert len({name.lower() for name in store.sessions()}) >= len(ids) - 1
        assert_whole(store)


def test_the_turn_of_an_agent_that_was_killed_is_closed_by_the_next_prompt_of_any(root: Path) -> None:
    """It would hold on for ever to the files that it named, whatever another turn's programs do to them."""
    (root / "x").write_text("0\n")
    payload = {"session_id": OTHER_ID, "cwd": str(root), "hook_event_name": "UserPromptSubmit", "prompt": "Killed"}
    call = {"hook_event_name": "PreToolUse", "tool_name": "Write", "tool_input": {"file_path": str(root / "x")}}
    # An agent of its own that ends without a word: an interpreter between us and its hooks.
    code = (
        "import subprocess, sys\n"
        "for data in sys.argv[1:]:\n"
        "    subprocess.run([sys.executable, '-m', 'snapstore', 'hook', 'claude'], input=data.encode(), check=True)\n"
    )
    subprocess.run([sys.executable, "-c", code, json.dumps(payload), json.dumps({**payload, **call})], check=True)
    with Store.open(root) as store:
        assert [turn.prompt for turn in store.open_turns()] == ["Killed"]
    agent = Codex(root)
    agent.prompt("Run")
    with Store.open(root) as store:
        assert [turn.prompt for turn in store.open_turns()] == ["Run"]
    agent.run("sed", lambda: (root / "x").write_text("1\n"))
    agent.stop()
    assert files_of(root, agent) == [{b"x"}]
    undo(root, agent)
    assert (root / "x").read_text() == "0\n"


def test_the_same_prompt_again_with_a_transcript_that_lags_gets_no_record_of_the_turn_before(
    root: Path, nobodys_home: Path
) -> None:
    """Agents that number no prompts, and "continue" as often as you like."""
    agent = Unnumbered(root, nobodys_home)
    agent.whole_turn("continue", [("a.txt", "1\n")], "First reply")
    agent.whole_turn("continue", [("b.txt", "2\n")], "Second reply")
    Claude.prompt(agent, "continue")
    Claude.write(agent, "c.txt", "3\n")
    Claude.stop(agent, "Third reply")
    with Store.open(root) as store:
        records = [node["record"] for node in line(store, agent.session)[1:]]
        assert [kept["replies"] for kept in records] == [["First reply"], ["Second reply"], ["Third reply"]]
        assert records[2]["lines"] == []
    assert files_of(root, agent) == [{b"a.txt"}, {b"b.txt"}, {b"c.txt"}]


def test_a_conversation_left_and_resumed_still_holds_what_was_undone(root: Path, nobodys_home: Path) -> None:
    """M-04, S4-08: looking into the fork and coming back does not use the note up, nor does a prompt in this one."""
    agent = Talking(root, nobodys_home)
    for number in (1, 2, 3):
        agent.whole_turn(f"Prompt {number}", [(f"f{number}.txt", "x\n")])
    undo(root, agent)
    with Store.open(root) as store:
        forked = ConversationFork(store.session(agent.session)).run()
    agent.resumed(forked, nobodys_home).end()
    agent.start("resume")
    with Store.open(root) as store:
        found = read_status(store.session(agent.session)).conversation
        assert found is not None and (found.state.id, found.state.pending_fork) == (agent.id, True)
    agent.whole_turn("Prompt 4", [("f4.txt", "x\n")])
    with Store.open(root) as store:
        found = read_status(store.session(agent.session)).conversation
        assert found is not None and (found.state.id, found.state.pending_fork) == (agent.id, True)


class Unnumbered(Talking):
    """A version that gives its prompts no ids."""

    def event(self, name: str, **fields: Any) -> None:
        turn, self.turn = self.turn, 0
        super().event(name, **fields)
        self.turn = turn


# A store in use, and a process without its standard streams.


def test_a_store_that_hangs_holds_the_agent_up_for_seconds_only(root: Path) -> None:
    """Another process holds the lock, and was stopped. What could not be recorded is in the log."""
    agent = Claude(root)
    agent.whole_turn("Fine", [("a.txt", "1\n")])
    with Store.open(root) as store, store.lock:
        start = time.monotonic()
        agent.prompt("Cannot be recorded")
        assert time.monotonic() - start < 15
        [error] = read_status(store.session(agent.session)).hook_errors
        assert "in use by" in error


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full >&2"])
@pytest.mark.parametrize("agent", ["claude", "gemini"])
def test_streams_that_are_closed_or_full_disturb_nobody(closed: str, agent: str, root: Path) -> None:
    event = "UserPromptSubmit" if agent == "claude" else "BeforeAgent"
    payload = {"session_id": OTHER_ID, "cwd": str(root), "hook_event_name": event, "prompt": "Go"}
    command = f"exec '{sys.executable}' -m snapstore hook {agent} {closed}"
    done = subprocess.run(["sh", "-c", command], input=json.dumps(payload).encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.strip() in (b"", b"{}")


def test_ctrl_c_while_a_hook_waits_says_nothing(root: Path) -> None:
    agent = Claude(root)
    agent.whole_turn("Fine", [("a.txt", "1\n")])
    payload = {"session_id": agent.id, "cwd": str(root), "hook_event_name": "UserPromptSubmit", "prompt": "Go"}
    with Store.open(root) as store, store.lock:
        command = [sys.executable, "-m", "snapstore", "hook", "claude"]
        with subprocess.Popen(
            command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env={**os.environ, **agent.env}
        ) as process:
            assert process.stdin is not None
            process.stdin.write(json.dumps(payload).encode())
            process.stdin.close()
            lock = os.path.realpath(f"{store.state}/lock")
            while not any(lock in open_files(pid) for pid in all_processes() if pid != os.getpid()):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            assert process.stdout is not None and process.stderr is not None
            assert (process.stdout.read(), process.stderr.read(), process.wait()) == (b"", b"", 0)


# Transcripts.


def test_a_transcript_that_is_a_link_elsewhere_is_not_read(root: Path, nobodys_home: Path, tmp_path: Path) -> None:
    """A link that leads out of the agent's folder could bring any file of the user's into a record."""
    agent = Talking(root, nobodys_home)
    agent.prompt("Go")
    moved = agent.file.rename(tmp_path / "elsewhere.jsonl")
    agent.file.symlink_to(moved)
    agent.write("a.txt", "1\n")
    agent.stop("Reply")
    with Store.open(root) as store:
        kept = line(store, agent.session)[-1]["record"]
        assert (kept["replies"], kept["lines"]) == (["Reply"], [])


def test_a_turn_of_very_many_calls_has_a_record_of_bounded_size(root: Path, nobodys_home: Path) -> None:
    """What is left of the later ones is what they did to which file."""
    agent = Talking(root, nobodys_home)
    agent.prompt("Write them all")
    for number in range(3000):
        path = str(root / f"f{number}")
        agent.lines.use(f"toolu_{number}", "Write", {"file_path": path, "content": "x" * 4000})
        agent.lines.answer(f"toolu_{number}", "ok")
    agent.put_down()
    agent.stop()
    with Store.open(root) as store:
        calls = line(store, agent.session)[-1]["record"]["tool_calls"]
        assert len(calls) == 3000 and all(call["file_path"].startswith(str(root)) for call in calls)
        assert "content" in calls[0] and "content" not in calls[-1]
        assert len(json.dumps(calls)) < 20 << 20


# Forks.


def rollout(home: Path, id: str, parent: str | None) -> str:
    """The beginning of a conversation file of Codex."""
    folder = home / ".codex" / "sessions" / "2026" / "08" / "22"
    folder.mkdir(parents=True, exist_ok=True)
    about = {"id": id, **({"forked_from_id": parent} if parent else {})}
    file = folder / f"rollout-2026-08-22T10-00-00-{id}.jsonl"
    file.write_text(json.dumps({"type": "session_meta", "payload": about}) + "\n")
    return str(file)


def test_a_session_that_was_not_forked_is_not_taken_for_the_fork_that_is_waited_for(
    root: Path, nobodys_home: Path
) -> None:
    """S4-09: Codex's own file says where it comes from; another one that is opened meanwhile stays another one."""
    first, second = Codex(root, "aaaaaaaa-1"), Codex(root, "bbbbbbbb-1")
    for agent in (first, second):
        agent.whole_turn("One", [(agent.id, "1\n")])
        agent.whole_turn("Two", [(agent.id, "2\n")])
    for agent in (second, first):
        undo(root, agent)
        with Store.open(root) as store:
            ConversationFork(store.session(agent.session)).run()
    for id, parent in (("cccccccc-1", None), ("dddddddd-1", second.id)):
        other = Codex(root, id)
        transcript = rollout(nobodys_home, id, parent)
        other.event("SessionStart", source="startup", transcript_path=transcript)
        other.event("UserPromptSubmit", turn_id="t9", prompt="Go on", transcript_path=transcript)
        other.event("Stop", turn_id="t9", transcript_path=transcript)
    with Store.open(root) as store:
        conversations = Conversations(store)
        assert conversations.session_of("cccccccc-1") == "codex-cccccccc"
        assert conversations.session_of("dddddddd-1") == second.session
        state = conversations.state(first.session)
        assert state is not None and state.awaiting is not None  # still waited for


def test_a_fork_that_cannot_be_written_moves_nothing(root: Path, nobodys_home: Path) -> None:
    """S1-65: the files were moved first, and are put back."""
    agent = Talking(root, nobodys_home)
    for number in (1, 2):
        agent.whole_turn(f"Prompt {number}", [(f"f{number}.txt", "x\n")])
    agent.file.parent.chmod(0o500)
    command = [*powerless(), sys.executable, "-m", "snapstore", "fork", "1", "-y", "--json"]
    told = subprocess.run(command, cwd=root, capture_output=True, check=False)
    agent.file.parent.chmod(0o700)
    hint = json.loads(told.stdout)["hint"]
    assert "ops undo" not in hint
    assert (root / "f2.txt").read_text() == "x\n"
    assert len(list(agent.file.parent.iterdir())) == 1
