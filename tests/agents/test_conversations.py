"""An agent's conversation beside its turns: recorded with them, undone with them, forked from them (S4).

The life of a fork, and the tests that show it: undo sets the pending fork, splices no message,
keeps the old line's checkpoints and moves its boundary back (`test_undo_waits_for_a_fork…`); the next prompt goes into
a fork, uses the note up, starts from the fork's messages and captures the new id (`test_a_fork_goes_on…`); the first
prompt undone sets none (`test_the_first_prompt_undone…`); no transcript is cut (`test_nothing_that_an_agent_owns…`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from agents import ID, OTHER_ID, Claude, Cline, Codex, Copilot, Cursor, Gemini, Opencode
from conversations import read_conversation
from helpers import assert_whole, git, kinds, line, record, touched
from test_transcripts_builders import Claude as Transcript

from snapstore import Store, Unknown
from snapstore.agents.fork import ConversationFork, ForkResult
from snapstore.api import Session
from snapstore.store.conversations import Conversations
from snapstore.surface.records.base import document
from snapstore.surface.records.moves import ForkRecord
from snapstore.surface.records.status import ConversationRecord
from snapstore.surface.status import read_status
from snapstore.transcripts.locate import claude_sessions, claude_slug


class Talking(Claude):
    """Claude Code with its transcript: written as it speaks, in the place where it keeps them."""

    def __init__(self, root: Path, home: Path, id: str = ID) -> None:
        super().__init__(root, id)
        self.file = home / ".claude" / "projects" / claude_slug(str(root)) / f"{id}.jsonl"
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.transcript = str(self.file)
        self.lines = Transcript()
        self.calls = 0

    def put_down(self) -> None:
        for entry in self.lines.records:
            entry["sessionId"] = self.id
        with open(self.file, "ab") as file:
            file.write(self.lines.data())
        self.lines.records.clear()

    def prompt(self, text: str) -> None:
        super().prompt(text)
        self.lines.prompt(text, promptId=f"prompt-{self.turn}")
        self.put_down()

    def write(self, path: str, text: str) -> None:
        super().write(path, text)
        self.calls += 1
        id = f"toolu_{self.calls}"
        self.lines.use(id, "Write", {"file_path": str(self.root / path), "content": text})
        self.lines.answer(id, "ok", promptId=f"prompt-{self.turn}")
        self.put_down()

    def stop(self, reply: str = "Done.") -> None:
        self.lines.think(f"Thinking of {reply}")
        self.lines.reply(reply)
        self.put_down()
        super().stop(reply)

    def interrupt(self) -> None:
        """Press Esc, which the agent notes and no hook reports."""
        self.lines.user([{"type": "text", "text": "[Request interrupted by user for tool use]"}])
        self.put_down()

    def resumed(self, forked: ForkResult, home: Path) -> Talking:
        """The agent, started again with the fork."""
        assert forked.known is not None
        other = Talking(self.root, home, forked.known.id)
        other.turn = self.turn
        other.lines.count = self.lines.count
        if forked.path is not None:
            last = [json.loads(row) for row in Path(forked.path).read_bytes().splitlines()]
            other.lines.parent = [row["uuid"] for row in last if "uuid" in row][-1]
        other.start("resume" if forked.path else "startup")
        return other


def cut_off_in_turn_2(root: Path, home: Path) -> Talking:
    """An agent that was interrupted while it wrote its second file."""
    agent = Talking(root, home)
    agent.start()
    agent.whole_turn("Prompt 1", [("f1.txt", "1\n")])
    agent.prompt("Cut off")
    agent.write("half.txt", "1\n")
    agent.interrupt()
    return agent


@pytest.fixture
def home(nobodys_home: Path) -> Path:
    return nobodys_home


@pytest.fixture
def agent(root: Path, home: Path) -> Talking:
    """Three turns."""
    speaking = Talking(root, home)
    speaking.start()
    for number in (1, 2, 3):
        speaking.whole_turn(f"Prompt {number}", [(f"f{number}.txt", f"{number}\n")], f"Reply {number}")
    return speaking


def talk(store: Store, session: str) -> dict[str, Any]:
    found = read_status(store.session(session)).conversation
    assert found is not None
    return document(ConversationRecord.of(found))


def undo(session: Session, count: int = 1, **how: Any) -> None:
    session.move(session.plan_undo(count, **how))


def snapstore(root: Path, *words: str, env: dict[str, str] | None = None, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "snapstore", *words],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(env or {})},
    )
    assert done.returncode == status, done.stderr
    return done.stdout


# What a turn remembers.


def test_a_turn_keeps_its_conversation(agent: Talking, root: Path) -> None:
    """S0-07, S0-10, S0-11, S1-13: prompt, replies, thinking, tool calls and the raw lines, with the turn's commit."""
    with Store.open(root) as store:
        [_, first, *_] = line(store, agent.session)
        kept = first["record"]
        assert kept["prompt"] == "Prompt 1"
        assert kept["replies"] == ["Reply 1"]
        assert kept["thinking"] == ["Thinking of Reply 1"]
        [call] = kept["tool_calls"]
        assert (call["type"], call["file_path"], call["content"]) == ("Write", str(root / "f1.txt"), "1\n")
        raw = agent.file.read_bytes().splitlines(keepends=True)
        assert [text.encode() for text in kept["lines"]] == raw[:5]
        about = kept["conversation"]
        assert about["agent_session"] == ID
        assert about["message_id"] == json.loads(raw[0])["uuid"]
        assert about["complete"] is True


def test_a_transcript_that_lags_is_completed_by_the_next_prompt(root: Path, home: Path) -> None:
    """At a stop the file may not hold the last lines yet; the last reply is known from the stop itself."""
    agent = Talking(root, home)
    agent.prompt("Late")
    agent.write("a.txt", "1\n")
    Claude.stop(agent, "Came late")
    with Store.open(root) as store:
        first = record(store, line(store, agent.session)[1]["commit"])
        assert (first["replies"], first["conversation"]["complete"]) == (["Came late"], False)
        held = len(first["lines"])
    agent.lines.think("Slowly")
    agent.lines.reply("Came late")
    agent.put_down()
    agent.prompt("Next")
    with Store.open(root) as store:
        first = record(store, line(store, agent.session)[1]["commit"])
        assert (first["replies"], first["thinking"]) == (["Came late"], ["Slowly"])
        assert len(first["lines"]) == held + 2
        assert first["prompt"] == "Late" and first["status"] == "done"
        assert_whole(store)


def test_the_transcript_is_a_second_witness(root: Path, home: Path) -> None:
    """An edit whose event was lost is in the turn because the conversation tells of it; a shell's makes it scan."""
    (root / "a.txt").write_text("0\n")
    agent = Talking(root, home)
    agent.prompt("Edit two")
    agent.write("a.txt", "1\n")
    (root / "lost.txt").write_text("2\n")
    agent.lines.use("t9", "Write", {"file_path": str(root / "lost.txt"), "content": "2\n"})
    agent.lines.answer("t9", "ok")
    agent.stop()
    agent.prompt("Run")
    agent.write("a.txt", "3\n")
    (root / "built.txt").write_text("4\n")
    agent.lines.shell("t10", "make", "ok")
    agent.stop()
    with Store.open(root) as store:
        one, two = [node for node in line(store, agent.session) if node["trailers"]["Kind"] == "turn"]
        assert set(touched(store, one["commit"])) == {b"a.txt", b"lost.txt"}
        session = store.session(agent.session)
        undo(session)
        assert not (root / "built.txt").exists()
        undo(session)
        assert not (root / "lost.txt").exists()
        assert (root / "a.txt").read_text() == "0\n"
        assert two["record"]["found_by"] == "scanned"


def test_a_transcript_named_by_a_hostile_payload_is_not_read(root: Path, home: Path, tmp_path: Path) -> None:
    """A payload could name any file of the user's: its text must not end up in records."""
    secret = tmp_path / "id_rsa"
    secret.write_text('{"type": "user", "uuid": "u", "message": {"role": "user", "content": "Secret"}}\nKEY\n')
    agent = Claude(root)
    agent.transcript = str(secret)
    agent.whole_turn("Secret", [("a.txt", "1\n")])
    with Store.open(root) as store:
        assert record(store, line(store, agent.session)[1]["commit"])["lines"] == []


def test_a_turn_that_was_cut_off_does_not_stand_in_the_way(agent: Talking, root: Path) -> None:
    """G-37: Esc tells no hook. The transcript's last line does, and undo closes the turn by itself; one that is still
    at work is refused."""
    agent.prompt("Cut off")
    agent.write("half.txt", "1\n")
    snapstore(root, "undo", "-y", status=11)
    agent.interrupt()
    assert "Undone prompt: Cut off" in snapstore(root, "undo", "-y")
    assert not (root / "half.txt").exists()
    with Store.open(root) as store:
        whole = git(store.shadow.git_dir, "rev-list", f"refs/heads/{agent.session}/main").split()
        assert record(store, whole[0].decode())["status"] == "interrupted"


# The state machine of forks.


def test_undo_waits_for_a_fork_and_redo_takes_that_back(agent: Talking, root: Path) -> None:
    """S4-05, S4-12, S4-13, S4-14, S4-20, S4-21, S4-22, G-05: the boundary moves with each undo, nothing is lost."""
    with Store.open(root) as store:
        session = store.session(agent.session)
        assert talk(store, agent.session)["pending_fork"] is False
        undo(session)
        found = talk(store, agent.session)
        assert (found["pending_fork"], found["materialized"]) == (True, True)
        assert found["revert"]["turn"] == 3 and found["revert"]["turns"] == 1
        third = record(store, found["revert"]["commit"])
        assert found["revert"]["message_id"] == third["conversation"]["message_id"]
        undo(session)
        assert talk(store, agent.session)["revert"]["turn"] == 2
        assert talk(store, agent.session)["revert"]["turns"] == 2
        whole = git(store.shadow.git_dir, "rev-list", f"refs/heads/{agent.session}/main").split()
        assert len(whole) == 4  # every turn is still there, with its lines
        assert all(record(store, commit.decode())["lines"] for commit in whole[:-1])
    with Store.open(root) as store:  # survives a restart
        assert talk(store, agent.session)["pending_fork"] is True
        assert read_status(store.session(agent.session)).pending_fork is True
        session = store.session(agent.session)
        session.move(session.plan_redo(2))
        found = talk(store, agent.session)
        assert (found["pending_fork"], found["revert"]) == (False, None)


def test_files_alone_leave_the_conversation_where_it_is(agent: Talking, root: Path) -> None:
    """C6."""
    with Store.open(root) as store:
        undo(store.session(agent.session), scope="files")
        assert talk(store, agent.session)["pending_fork"] is False
        assert not (root / "f3.txt").exists()


def test_a_fork_goes_on_in_a_session_of_its_own(agent: Talking, root: Path, home: Path) -> None:
    """S0-24, S1-02, S1-16, S1-19, S1-21, S1-29, S1-52, S2-02, S4-01, S4-03, S4-04, S4-08, S4-09, S4-10, S4-17, S4-27,
    C1, C14, C20."""
    before = agent.file.read_bytes()
    with Store.open(root) as store:
        session = store.session(agent.session)
        undo(session)
        forked = ConversationFork(session).run()
        assert forked.known is not None and forked.path is not None
        new = forked.known.id
        assert forked.command == ["claude", "--resume", new]
        assert not any("resume-session-at" in word for word in forked.command)  # S4-04
        document = dict(ForkRecord.of(forked))
        assert document["event"] == "session_created"
        assert (document["parentSessionId"], document["rewindFromTurn"]) == (ID, 2)
        assert document["rewindedAt"] and document["created"]
        assert document["title"] == "Prompt 1 (Branch)"
        # The agent's id is the key; the other is only a name (C14).
        assert document["alias"].startswith(f"{ID}-rewind-")
        assert Path(forked.path).name == f"{uuid.UUID(new)}.jsonl"
        # Until it speaks, everything still waits for it.
        found = talk(store, agent.session)
        assert (found["id"], found["pending_fork"], found["revert"]["turn"]) == (ID, True, 3)
    assert agent.file.read_bytes() == before
    kept = read_conversation(forked.path, "claude")
    assert [turn.prompt for turn in kept.turns] == ["Prompt 1", "Prompt 2"]

    again = agent.resumed(forked, home)
    with Store.open(root) as store:
        found = talk(store, agent.session)  # the id is captured when the session starts (S4-09, S4-10)
        assert (found["id"], found["parent"], found["fork_turn"]) == (new, ID, 2)
        assert found["pending_fork"] is False
    again.prompt("Prompt 3, another way")
    with Store.open(root) as store:
        found = talk(store, agent.session)
        assert (found["pending_fork"], found["revert"]) == (False, None)  # one shot; cleared before the answer
    again.write("other.txt", "3\n")
    again.stop("Another reply")
    with Store.open(root) as store:
        assert store.sessions() == [agent.session]  # one tree, many ids
        refs = list(store.shadow.refs.list(f"refs/heads/{agent.session}/"))
        assert sorted(refs) == [f"refs/heads/{agent.session}/main", f"refs/heads/{agent.session}/main-2"]
        last = line(store, agent.session)[-1]
        assert last["trailers"]["Turn"] == "3"
        assert last["record"]["conversation"]["agent_session"] == new
        # Checkpoints of the old line stay, the new session's own list starts with its first turn (S4-13).
        mine = [node for node in line(store, agent.session) if node["record"].get("conversation")]
        assert [node["record"]["conversation"]["agent_session"] for node in mine] == [ID, ID, new]
        assert kinds(store, agent.session) == ["baseline", "turn", "turn", "turn"]
        assert_whole(store)
    assert agent.file.read_bytes() == before
    # The old one is still there to be resumed, and takes the conversation back when it speaks (S4-27).
    agent.start("resume")
    agent.whole_turn("Prompt 4", [("f4.txt", "4\n")])
    with Store.open(root) as store:
        assert talk(store, agent.session)["id"] == ID
    assert agent.file.read_bytes().startswith(before)


def test_a_fork_is_made_only_where_something_is_undone_and_something_is_left(agent: Talking, root: Path) -> None:
    """S4-07: `fork` is advised and the note is set for a conversation that holds undone turns beside others. With all
    of them undone the conversation starts afresh, and nothing is copied."""

    def after(*words: str) -> tuple[bool, bool, bool]:
        said = snapstore(root, *words, "-y")
        with Store.open(root) as store:
            found = talk(store, agent.session)
        advised = "Continue with the agent from here: `snapstore fork`" in said
        return found["pending_fork"], found["materialized"], advised

    assert after("undo", "--files-only") == (False, True, False)
    assert after("undo") == (True, True, True)
    assert after("redo") == (False, True, False)
    pending, materialized, _ = after("undo", "3")
    assert (pending, materialized) == (False, False)
    fork = json.loads(snapstore(root, "fork", "--json"))["fork"]
    assert (fork["fresh"], fork["path"]) == (True, None)
    assert list(agent.file.parent.glob("*.jsonl")) == [agent.file]


def test_what_a_new_session_holds_starts_with_its_first_turn(agent: Talking, root: Path, home: Path) -> None:
    """S4-11, S4-15, C20: a turn in the fork records the lines said in it, not those the fork was made with; an undo
    there points at a message of the new session. The tree of turns goes on, with numbers that follow."""
    with Store.open(root) as store:
        session = store.session(agent.session)
        undo(session)
        forked = ConversationFork(session).run()
    again = agent.resumed(forked, home)
    copied = again.file.read_bytes().splitlines(keepends=True)
    again.whole_turn("Prompt 3, another way", [("other.txt", "3\n")], "Another reply")
    mine = again.file.read_bytes().splitlines(keepends=True)[len(copied) :]
    with Store.open(root) as store:
        nodes = line(store, agent.session)
        assert [node["trailers"].get("Turn") for node in nodes] == [None, "1", "2", "3"]
        assert [node["record"]["prompt"] for node in nodes[1:]] == ["Prompt 1", "Prompt 2", "Prompt 3, another way"]
        assert [text.encode() for text in nodes[-1]["record"]["lines"]] == mine
        undo(store.session(agent.session))
        revert = talk(store, agent.session)["revert"]
        assert (revert["turn"], revert["turns"], revert["message_id"]) == (3, 1, json.loads(mine[0])["uuid"])


def test_files_come_back_without_any_help_of_the_agent(agent: Talking, root: Path, home: Path) -> None:
    """S1-61, S4-16, C10: from trees of our own, also what a shell command wrote, with all of the agent's files gone."""
    (root / "f1.txt").write_bytes(b"\0by hand\n")
    agent.prompt("Run")
    agent.run("make", lambda: ((root / "f1.txt").write_bytes(b"\0made\n"), (root / "f2.txt").unlink()))
    agent.stop()
    shutil.rmtree(home / ".claude")
    snapstore(root, "undo", "-y")
    assert ((root / "f1.txt").read_bytes(), (root / "f2.txt").read_text()) == (b"\0by hand\n", "2\n")
    snapstore(root, "redo", "-y")
    assert (root / "f1.txt").read_bytes() == b"\0made\n" and not (root / "f2.txt").exists()


def test_back_on_the_old_line_its_own_session_is_resumed(agent: Talking, root: Path, home: Path) -> None:
    """M-03, S1-22, S4-27: one switch leads to the other line, where the session that left off is current again; no fork
    is advised, and going to and fro makes no new ones."""
    forked = json.loads(snapstore(root, "fork", "2", "--json"))["fork"]
    again = Talking(root, home, forked["id"])
    again.start("resume")
    again.whole_turn("Another way", [("other.txt", "o\n")])
    assert f"Continue with the agent from here: `claude --resume {ID}`" in snapstore(root, "switch", "main", "-y")
    assert (root / "f3.txt").exists()
    with Store.open(root) as store:
        found = talk(store, agent.session)
        assert (found["id"], found["pending_fork"]) == (ID, False)
    assert f"`claude --resume {forked['id']}`" in snapstore(root, "switch", "main-2", "-y")
    snapstore(root, "switch", "main", "-y")
    agent.start("resume")
    assert f"Continue with the agent from here: `claude --resume {forked['id']}`" in snapstore(root, "switch", "main-2")
    assert "Continue with the agent from here: `snapstore fork`" in snapstore(root, "undo")  # nobody left off here
    Path(forked["path"]).unlink()
    snapstore(root, "redo")
    snapstore(root, "switch", "main", "-y")
    assert "Continue with the agent from here: `snapstore fork`" in snapstore(root, "switch", "main-2")
    assert len(list(agent.file.parent.glob("*.jsonl"))) == 1


def test_an_undo_makes_no_session_and_a_fork_makes_it_at_once(agent: Talking, root: Path) -> None:
    """C7: an undo only moves the cursor; the branch comes with the next turn, a new session when it is asked for."""

    def made() -> tuple[int, list[str]]:
        with Store.open(root) as store:
            assert store.sessions() == [agent.session]
            return len(list(agent.file.parent.glob("*.jsonl"))), sorted(store.shadow.refs.list("refs/heads/"))

    before = made()
    snapstore(root, "undo", "-y")
    snapstore(root, "undo", "-y")
    assert made() == before
    agent.whole_turn("Prompt 2, another way", [("g.txt", "2\n")])
    files, branches = made()
    assert (files, len(branches)) == (before[0], len(before[1]) + 1)
    snapstore(root, "fork", "1", "-y")
    assert made() == (files + 1, branches)
    snapstore(root, "goto", "2", "-y")
    document = json.loads(snapstore(root, "rewind", "0", "--json", "--new-session"))
    assert document["fork"]["fresh"] is True
    snapstore(root, "redo", "--all", "-y")
    document = json.loads(snapstore(root, "rewind", "2", "--new-session", "--json"))
    assert (document["fork"]["event"], document["fork"]["rewindFromTurn"]) == ("session_created", 2)
    assert made() == (files + 2, branches)


def test_the_first_prompt_undone_starts_afresh(agent: Talking, root: Path, home: Path) -> None:
    """S4-06, C3: nothing to fork; the next conversation has an id of its own and goes on in the same tree."""
    with Store.open(root) as store:
        session = store.session(agent.session)
        undo(session, 3)
        found = talk(store, agent.session)
        assert (found["materialized"], found["pending_fork"]) == (False, False)
        forked = ConversationFork(session).run()
        assert forked.fresh and forked.known is not None
        assert forked.command == ["claude", "--session-id", forked.known.id]
    again = agent.resumed(forked, home)
    again.whole_turn("Quite another way", [("g.txt", "1\n")])
    with Store.open(root) as store:
        found = talk(store, agent.session)
        assert (found["id"], found["materialized"], found["revert"]) == (forked.known.id, True, None)
        assert [node["trailers"].get("Turn") for node in line(store, agent.session)] == [None, "1"]


def test_the_live_agent_may_simply_go_on(agent: Talking, root: Path, home: Path) -> None:
    """M-04, S4-08, S4-17: a prompt in the same session leaves the undone turns behind, and the agent still remembers
    them: `status` says so until a fork is made, which is without them."""
    with Store.open(root) as store:
        undo(store.session(agent.session))
    agent.whole_turn("Go on", [("h.txt", "1\n")])
    agent.whole_turn("And on", [("i.txt", "1\n")])
    with Store.open(root) as store:
        found = talk(store, agent.session)
        assert (found["id"], found["pending_fork"], found["revert"]) == (ID, True, None)
    assert "holds undone turns" in snapstore(root, "status")
    forked = json.loads(snapstore(root, "fork", "--json"))["fork"]
    assert "without them" in forked["notices"][0]
    kept = read_conversation(forked["path"], "claude")
    assert [turn.prompt for turn in kept.turns] == ["Prompt 1", "Prompt 2", "Go on", "And on"]
    with Store.open(root) as store:
        session = store.session(agent.session)
        assert talk(store, agent.session)["pending_fork"] is True, "nobody went on in the fork yet"
        session.move(session.plan_switch("main"))
        assert talk(store, agent.session)["pending_fork"] is True, "here the other turns are undone"
    again = Talking(root, home, forked["id"])
    again.start("resume")
    with Store.open(root) as store:
        session = store.session(agent.session)
        session.move(session.plan_switch("main-2"))
        assert (talk(store, agent.session)["id"], talk(store, agent.session)["pending_fork"]) == (forked["id"], False)


def test_a_fork_that_the_agent_makes_itself_is_captured(agent: Talking, root: Path, home: Path) -> None:
    """S4-09: `claude --resume … --fork-session` after an undo: the new file says where it comes from."""
    with Store.open(root) as store:
        undo(store.session(agent.session))
    other = Talking(root, home, OTHER_ID)
    other.lines.prompt("Prompt 1", forkedFrom={"sessionId": ID, "messageUuid": "uuid-1"})
    other.put_down()
    other.start("fork")
    other.whole_turn("Forked by hand", [("i.txt", "1\n")])
    with Store.open(root) as store:
        assert store.sessions() == [agent.session]
        assert talk(store, agent.session)["parent"] == ID


def test_a_fork_with_nothing_undone_is_a_session_of_its_own(agent: Talking, root: Path, home: Path) -> None:
    """Both may live on: their turns must not be mixed. The relation is kept (S1-20)."""
    other = Talking(root, home, OTHER_ID)
    other.lines.prompt("Prompt 1", forkedFrom={"sessionId": ID, "messageUuid": "uuid-1"})
    other.put_down()
    other.start("fork")
    other.whole_turn("Beside", [("i.txt", "1\n")])
    with Store.open(root) as store:
        assert len(store.sessions()) == 2
        known = Conversations(store).agent_session(OTHER_ID)
        assert known is not None and known.parent == ID


def test_another_conversation_in_the_folder_takes_nothing_over(agent: Talking, root: Path) -> None:
    """An unrelated new session must not be mistaken for the fork that is waited for."""
    with Store.open(root) as store:
        undo(store.session(agent.session))
    other = Claude(root, OTHER_ID)
    other.start()
    other.whole_turn("Something else", [("z.txt", "1\n")])
    with Store.open(root) as store:
        assert len(store.sessions()) == 2
        assert talk(store, agent.session)["pending_fork"] is True


def test_a_fork_is_made_once(agent: Talking, root: Path) -> None:
    """Asked for again before anyone has spoken with it, it is the same one; with another name, another."""
    with Store.open(root) as store:
        session = store.session(agent.session)
        undo(session)
        first, second = ConversationFork(session).run(), ConversationFork(session).run()
        named = ConversationFork(session, title="Mine").run()
    assert first.command == second.command
    assert named.known is not None and named.known.title == "Mine"
    assert len(list(agent.file.parent.glob("*.jsonl"))) == 3


@pytest.mark.parametrize("gone", ["file", "turn"])
def test_a_transcript_that_is_gone_is_replaced_by_the_records(agent: Talking, root: Path, gone: str) -> None:
    """G-19: cleaned up after 30 days, or rewritten: the lines were kept with the turns, and it is said."""
    if gone == "file":
        agent.file.unlink()
    else:
        agent.file.write_bytes(b'{"type": "summary", "summary": "x", "leafUuid": "y"}\n')
    with Store.open(root) as store:
        session = store.session(agent.session)
        undo(session)
        forked = ConversationFork(session).run()
    assert forked.path is not None
    assert any("recorded" in notice for notice in forked.notices)
    kept = read_conversation(forked.path, "claude")
    assert [turn.prompt for turn in kept.turns] == ["Prompt 1", "Prompt 2"]
    assert kept.turns[1].replies == ["Reply 2"]


def test_a_conversation_of_which_nothing_is_left_cannot_be_forked(root: Path) -> None:
    """S1-27: said clearly, nothing made."""
    agent = Claude(root)
    agent.whole_turn("One", [("a.txt", "1\n")])
    agent.whole_turn("Two", [("a.txt", "2\n")])
    with Store.open(root) as store:
        session = store.session(agent.session)
        undo(session)
        with pytest.raises(Unknown):
            ConversationFork(session).run()
        with pytest.raises(Unknown):
            ConversationFork(store.session("shell")).run()


def test_a_turn_before_a_compaction(agent: Talking, root: Path) -> None:
    """S1-47, C21: off, with a message, unless asked for."""
    agent.lines.node("system", None, subtype="compact_boundary", logicalParentUuid=agent.lines.parent)
    agent.lines.user("Summary of it all", isCompactSummary=True)
    agent.put_down()
    agent.whole_turn("Prompt 4", [("f4.txt", "4\n")], "Reply 4")
    with Store.open(root) as store:
        session = store.session(agent.session)
        undo(session, 2)
        assert not (root / "f3.txt").exists()  # the files go anywhere
        with pytest.raises(Unknown, match="compaction"):
            ConversationFork(session).run()
        forked = ConversationFork(session, compacted=True).run()
    assert forked.path is not None
    assert [turn.prompt for turn in read_conversation(forked.path, "claude").turns] == ["Prompt 1", "Prompt 2"]


def test_no_fork_while_a_turn_is_open(agent: Talking, root: Path) -> None:
    """S1-46."""
    agent.prompt("Still at it")
    out = snapstore(root, "fork", "--session", agent.session, "2", "--json", status=11)
    assert json.loads(out)["error"] == "busy"


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        (Codex, ["codex", "fork", ID]),
        (Opencode, ["opencode", "--session", "ses_3f2a9c1d", "--fork"]),
        (Gemini, ["gemini", "--resume", ID]),
        (Copilot, ["copilot", "--resume", ID]),
    ],
)
def test_other_agents_are_given_their_own_command(kind: Any, command: list[str], root: Path) -> None:
    """G-13, G-21: and what it cannot do is said."""
    agent = kind(root)
    agent.whole_turn("One", [("a.txt", "1\n")])
    agent.whole_turn("Two", [("a.txt", "2\n")])
    with Store.open(root) as store:
        session = store.session(agent.session)
        undo(session)
        forked = ConversationFork(session).run()
    assert forked.command == command
    assert forked.notices


@pytest.mark.parametrize("kind", [Codex, Opencode])
def test_the_fork_that_an_agent_names_itself_is_its_next_new_session(kind: Any, root: Path) -> None:
    """S4-09, S4-10: `codex fork` gives the id; it is captured when the session starts."""
    agent = kind(root)
    agent.whole_turn("One", [("a.txt", "1\n")])
    agent.whole_turn("Two", [("a.txt", "2\n")])
    with Store.open(root) as store:
        session = store.session(agent.session)
        undo(session)
        ConversationFork(session).run()
        assert talk(store, agent.session)["awaiting"] is True
    other = kind(root, OTHER_ID)
    other.start()
    other.whole_turn("Two, another way", [("a.txt", "3\n")])
    with Store.open(root) as store:
        assert store.sessions() == [agent.session]
        found = talk(store, agent.session)
        assert (found["id"], found["parent"], found["fork_turn"]) == (OTHER_ID, agent.id, 1)
        assert (found["awaiting"], found["pending_fork"]) == (False, False)
    third = kind(root, "11111111-aaaa-bbbb-cccc-222222222222")
    third.whole_turn("Unrelated", [("b.txt", "1\n")])
    with Store.open(root) as store:
        assert len(store.sessions()) == 2  # of one use


@pytest.mark.parametrize("kind", [Cursor, Cline])
def test_agents_that_cannot_fork_say_why(kind: Any, root: Path) -> None:
    """G-13, G-21: the files moved, the conversation did not, and both are said."""
    agent = kind(root)
    agent.whole_turn("One", [("a.txt", "1\n")])
    agent.whole_turn("Two", [("a.txt", "2\n")])
    out = snapstore(root, "undo", "-y")
    assert "cannot be undone from outside" in out
    assert (root / "a.txt").read_text() == "1\n"
    out = snapstore(root, "fork", "--json", status=16)
    assert "cannot be undone" in json.loads(out)["message"]
    for _ in range(2):
        out = snapstore(root, "status")
        assert "rewind it in the agent" in out and "`snapstore fork`" not in out
        snapstore(root, "undo", "-y")


# On the command line.


def test_fork_goes_there_and_says_how_to_go_on(agent: Talking, root: Path) -> None:
    """G-12, G-24: `fork 2` moves the files too, and hands the undone prompt back."""
    document = json.loads(snapstore(root, "fork", "2", "--json"))
    assert (document["turns_undone"], document["prompt"]) == (1, "Prompt 3")
    assert not (root / "f3.txt").exists()
    assert document["fork"]["command"][:2] == ["claude", "--resume"]
    assert document["pending_fork"] is True
    text = snapstore(root, "fork")
    assert f"Continue with: {' '.join(document['fork']['command'])}" in text


def test_a_fork_is_named_by_itself_or_as_wished(agent: Talking, root: Path) -> None:
    """S1-52, S1-53, S1-57: `--name` overrules what it would be called."""
    snapstore(root, "undo")
    assert "Forked the conversation after turn 2: Prompt 1 (Branch)\n" in snapstore(root, "fork")
    assert "Forked the conversation after turn 2: Another way\n" in snapstore(root, "fork", "--name", "Another way")
    assert "forked after turn 2 · Another way\n" in snapstore(root, "sessions")


def test_every_move_says_whether_a_fork_is_waited_for(agent: Talking, root: Path) -> None:
    """S4-05: a preview as the move would, one that moves nothing or only files as it was before."""

    def said(*words: str) -> bool:
        told = json.loads(snapstore(root, *words, "--json"))["pending_fork"]
        assert isinstance(told, bool)
        return told

    assert said("undo", "--preview") is True
    assert said("undo") is True
    assert said("goto", "2") is True  # there already
    assert said("undo", "--files-only") is True
    assert said("redo", "--preview") is False
    assert said("redo") is False
    assert said("redo") is False


def test_undo_says_how_to_go_on(agent: Talking, root: Path) -> None:
    """G-12."""
    text = snapstore(root, "undo", "-y")
    assert "Undone prompt: Prompt 3" in text
    assert "`snapstore fork`" in text
    text = snapstore(root, "status")
    assert "holds undone turns" in text
    snapstore(root, "undo", "2", "-y")
    assert "starts a new one" in snapstore(root, "status")


def test_fork_runs_the_command_where_that_is_wanted(agent: Talking, root: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "started with $*"\nexit 7\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    assert "started with --resume" in snapstore(root, "fork", "2", "-y", "--exec", env={"PATH": path}, status=7)
    program.unlink()
    done = subprocess.run(
        [sys.executable, "-m", "snapstore", "fork", "1", "-y", "--exec"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": str(program.parent)},
    )
    assert done.returncode == 1 and "The fork is ready" in done.stderr


def test_a_fork_of_files_alone_makes_no_sense(agent: Talking, root: Path) -> None:
    """The session would stay where it is, and the fork be made there instead of at the turn that was asked for."""
    for words in (["fork", "2"], ["fork"], ["rewind", "2", "--new-session"]):
        assert json.loads(snapstore(root, *words, "--files-only", "--json", status=2))["error"] == "usage"
    assert len(list(agent.file.parent.glob("*.jsonl"))) == 1 and (root / "f3.txt").exists()
    before = len(list(agent.file.parent.glob("*.jsonl")))
    snapstore(root, "rewind", "2", "--new-session", "--preview")
    assert len(list(agent.file.parent.glob("*.jsonl"))) == before


@pytest.mark.parametrize("target", ["99", "nonsense", "-1", "../x"])
def test_a_target_that_is_none(agent: Talking, root: Path, target: str) -> None:
    """S1-27: nothing moved, nothing made."""
    done = subprocess.run(
        [sys.executable, "-m", "snapstore", "fork", "--json", "--", target],
        cwd=root,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (2, 15, 16)
    assert json.loads(done.stdout)["error"]
    assert len(list(agent.file.parent.glob("*.jsonl"))) == 1
    assert (root / "f3.txt").exists()


def test_sessions_are_a_tree(agent: Talking, root: Path, home: Path) -> None:
    """S1-15, S1-19, S1-20, S1-23, S1-35: each below its parent, with the turn it was forked after, and an index
    entry of its own, which counts what the fork was made with (S1-16)."""
    with Store.open(root) as store:
        session = store.session(agent.session)
        undo(session)
        forked = ConversationFork(session).run()
    again = agent.resumed(forked, home)
    again.whole_turn("Another way", [("o.txt", "1\n")])
    with Store.open(root) as store:
        session = store.session(agent.session)
        undo(session)
        below = ConversationFork(session, title="Third").run()
    assert forked.known is not None and below.known is not None
    [found] = json.loads(snapstore(root, "sessions", "--json"))["sessions"]
    entries = {entry["sessionId"]: entry for entry in found["conversations"]}
    assert set(entries) == {ID, forked.known.id, below.known.id}
    assert entries[ID]["parentSessionId"] is None
    assert entries[forked.known.id]["parentSessionId"] == ID
    assert entries[forked.known.id]["rewindFromTurn"] == 2
    assert entries[forked.known.id]["messageCount"] == 4 + 2
    assert entries[forked.known.id]["firstPrompt"] == "Prompt 1"
    assert entries[ID]["messageCount"] == 6
    waiting = entries[below.known.id]  # nobody has spoken in it yet
    assert (waiting["parentSessionId"], waiting["rewindFromTurn"]) == (ID, 2)
    assert (waiting["messageCount"], waiting["firstPrompt"], waiting["modified"]) == (4, "Prompt 1", waiting["created"])
    for entry in entries.values():
        assert entry["created"] and entry["modified"]
    text = snapstore(root, "sessions")
    assert "└─" in text and "forked after turn 2" in text and "Third" in text


def test_a_fork_has_its_entry_in_the_list_of_sessions_at_once(agent: Talking, root: Path, home: Path) -> None:
    """S1-28, C17: with all that an index holds, before anybody speaks in it; the agent's own index is left alone."""
    index = agent.file.parent / "sessions-index.json"
    index.write_text('{"version": 1, "entries": []}')
    forked = json.loads(snapstore(root, "fork", "2", "-y", "--json"))["fork"]
    [found] = json.loads(snapstore(root, "sessions", "--json"))["sessions"]
    entry = next(entry for entry in found["conversations"] if entry["sessionId"] == forked["id"])
    assert (entry["messageCount"], entry["firstPrompt"]) == (4, "Prompt 1")
    assert entry["created"] == entry["modified"] == forked["created"]
    listed = {one["sessionId"]: one["fullPath"] for one in claude_sessions(str(root), home, {})}
    assert listed == {ID: str(agent.file), forked["id"]: forked["path"]}
    assert index.read_text() == '{"version": 1, "entries": []}'


def test_nothing_that_an_agent_owns_is_ever_written(agent: Talking, root: Path, home: Path) -> None:
    """S1-09, S4-01, S4-24: not by undo, redo, goto, fork, sessions or status; and no code could cut a transcript."""
    (agent.file.parent / "sessions-index.json").write_text('{"version": 1, "entries": []}')
    watched = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in agent.file.parent.iterdir()}
    for words in (["undo", "-y"], ["redo"], ["fork", "1", "-y"], ["goto", "0", "-y"], ["sessions"], ["status"]):
        snapstore(root, *words)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in watched} == watched
    package = Path(sys.modules["snapstore"].__file__ or "").parent
    for module in (package / "transcripts").glob("*.py"):
        assert "truncate(" not in module.read_text(), module


def test_an_imported_conversation_can_be_gone_on_with(root: Path, home: Path) -> None:
    """S1-13, S1-15; hooks and forks find it: the agent's id belongs to the session that was made of its transcript."""
    agent = Talking(root, home)
    for number in (1, 2):
        (root / f"f{number}.txt").write_text(f"{number}\n")
        agent.lines.prompt(f"Prompt {number}", promptId=f"prompt-{number}")
        agent.lines.use(f"t{number}", "Write", {"file_path": str(root / f"f{number}.txt"), "content": f"{number}\n"})
        agent.lines.answer(f"t{number}", "ok")
        agent.lines.reply(f"Reply {number}")
    agent.put_down()
    [kept] = json.loads(snapstore(root, "import", "--list", "--json"))["conversations"]
    assert (kept["sessionId"], kept["firstPrompt"], kept["session"]) == (ID, "Prompt 1", None)
    snapstore(root, "import", ID)
    assert f"recorded as {agent.session}" in snapstore(root, "import", "--list")
    with Store.open(root) as store:
        session = store.session(agent.session)
        assert talk(store, agent.session)["id"] == ID
        undo(session)
        assert talk(store, agent.session)["pending_fork"] is True
        forked = ConversationFork(session).run()
    assert forked.path is not None
    assert [turn.prompt for turn in read_conversation(forked.path, "claude").turns] == ["Prompt 1"]
    again = agent.resumed(forked, home)
    again.whole_turn("Prompt 2, another way", [("g.txt", "1\n")])
    with Store.open(root) as store:
        assert agent.session in store.sessions()
        assert [node["subject"] for node in line(store, agent.session)][1:] == ["Prompt 1", "Prompt 2, another way"]
