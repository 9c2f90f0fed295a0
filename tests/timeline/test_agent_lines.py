"""An agent session's id means its own line, whichever line is current: in the library, in addresses and over HTTP.

The tests that go through hooks are in tests/agents, those of the page in tests/web.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import ID
from commands import snap, snap_json
from helpers import on_disk
from page_helpers import Story, many_turns
from webserver import Client, serving

from snapstore import Session, Store, Unknown, Usage
from snapstore.agents.fork import ConversationFork, next_steps
from snapstore.errors import Unsafe
from snapstore.git.repository import Shadow
from snapstore.store.conversations import Conversations
from snapstore.surface.records.base import document
from snapstore.surface.records.status import StatusRecord
from snapstore.surface.status import read_status
from snapstore.timeline.history import raw_lines
from snapstore.timeline.history.addresses import locate
from snapstore.timeline.history.agent_sessions import fork_tree, read_sessions
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.history import History
from snapstore.timeline.moves.branches import Branches
from snapstore.transcripts.locate import claude_slug


class Forked:
    """Two lines of one session: the original's turns 1 to 3, and a fork's 1, 2, another 3 and 4, which is current."""

    def __init__(self, store: Store, root: Path) -> None:
        self.store, self.root = store, root
        self.story = Story(store, root)
        self.name = self.story.name
        for number in (1, 2, 3):
            self.story.turn(f"Prompt {number}", {f"f{number}.txt": f"{number}\n"}, reply=f"Reply {number}")
        self.story.undo()
        self.fork = self.forked()
        self.branch = Story(store, root, self.name, self.fork)
        self.branch.turn("Another third", {"other.txt": "3\n"})
        self.branch.turn("Its fourth", {"fourth.txt": "4\n"})

    def forked(self, id: str | None = None, **how: Any) -> str:
        made = ConversationFork(self.session(id), **how).run().known
        assert made is not None
        return made.id

    def session(self, id: str | None = None) -> Session:
        return self.store.session(id or self.name)

    def prompts(self, id: str) -> list[tuple[int | None, str]]:
        return [(node.turn, node.prompt) for node in History(self.session(id)).nodes() if node.turn is not None]

    def status(self, id: str | None = None) -> Any:
        return document(StatusRecord.of(read_status(self.session(id), edits=False)))

    def current(self) -> list[str]:
        line = next(line for line in read_sessions(self.store) if line.name == self.name)
        return [one.known.id for one in line.conversations if one.current]

    def files(self) -> list[str]:
        return sorted(path.decode() for path in on_disk(self.root))


ORIGINAL = [(1, "Prompt 1"), (2, "Prompt 2"), (3, "Prompt 3")]
OTHER = [(1, "Prompt 1"), (2, "Prompt 2"), (3, "Another third"), (4, "Its fourth")]


@pytest.fixture
def lines(store: Store, root: Path, nobodys_home: Path) -> Forked:
    (nobodys_home / ".claude" / "projects" / claude_slug(str(root))).mkdir(parents=True)
    return Forked(store, root)


@pytest.fixture
def page(lines: Forked, root: Path) -> Iterator[Client]:
    with serving(root) as found:
        yield found.client()


def test_an_id_shows_its_own_turns(lines: Forked) -> None:
    """M-01: turns and their numbers, status, snapshots and addresses, by the id and by its first 8 characters."""
    assert (lines.prompts(ID), lines.prompts(ID[:8])) == (ORIGINAL, ORIGINAL)
    assert lines.prompts(lines.fork) == lines.prompts(lines.name) == OTHER
    status = lines.status(ID)
    assert (status["branch"], status["turn"], status["undone_turns"]) == ("main", 3, 0)
    assert (status["conversation"]["id"], status["conversation"]["pending_fork"]) == (ID, False)
    assert lines.status(lines.fork)["conversation"]["id"] == lines.fork
    assert len(lines.session(ID).snapshots()) == 4
    graph = Graph(lines.store, lines.name)
    tip = graph.tip_of("main")
    assert locate(graph, ID) == locate(graph, ID[:8]) == locate(graph, f"{ID}:3") == (tip, "main")
    assert locate(graph, f"{lines.fork}:2") == (graph.fork_point(tip or b"", graph.tip), "main-2")


def test_its_undo_undoes_its_turns(lines: Forked) -> None:
    """M-01, M-03: one move leaves the current line, undoes on the other, and says so; redo and the way back as ever."""
    session = lines.session(ID)
    plan = session.plan_undo(1)
    moved = session.move(plan)
    assert (moved.turns_undone, moved.turns_redone, plan.prompt, plan.messages_removed) == (1, 0, "Prompt 3", 2)
    assert plan.notes == [f"This leaves main-2 for main, the line of {ID}."]
    assert lines.files() == ["f1.txt", "f2.txt"]
    status = lines.status()
    assert (status["branch"], status["turn"], status["undone_turns"]) == ("main", 2, 1)
    assert (status["conversation"]["id"], status["pending_fork"], lines.current()) == (ID, True, [ID])
    lines.session(ID).move(lines.session(ID).plan_redo(1))
    assert (lines.files(), lines.status()["pending_fork"]) == (["f1.txt", "f2.txt", "f3.txt"], False)
    lines.session(lines.fork).move(lines.session(lines.fork).plan_undo(2))
    assert (lines.files(), lines.current()) == (["f1.txt", "f2.txt"], [lines.fork])
    lines.session().move(lines.session().plan_ops_undo())
    assert (lines.files(), lines.current()) == (["f1.txt", "f2.txt", "f3.txt"], [ID])


def test_what_has_to_be_on_the_current_line_is_refused_elsewhere(lines: Forked) -> None:
    """M-01: a turn, a revert and a restore add a node where the session stands; the refusal says how to go there."""
    session = lines.session(ID)
    for add in (lambda: session.plan_revert("3"), lambda: session.plan_restore("1", ["f1.txt"]), session.begin):
        with pytest.raises(Usage, match="left off on another") as caught:
            add()
        assert f"snapstore switch {ID}" in caught.value.hint
    session.move(session.plan_switch(ID))
    session.move(session.plan_revert("3"))
    assert lines.files() == ["f1.txt", "f2.txt"]
    session.move(session.plan_switch(lines.fork))
    assert [turn for turn, _ in lines.prompts(ID)] == [1, 2, 3, 4], "what was added after its last turn is on its line"


def test_the_conversation_that_left_off_is_current_again(lines: Forked) -> None:
    """M-03: after a switch the status, the list and the advice agree, and no fork is advised, to and fro."""
    for branch, id in (("main", ID), ("main-2", lines.fork), ("main:2", ID), ("main-2", lines.fork)):
        session = lines.session()
        moved = session.move(session.plan_switch(branch))
        found = lines.status()
        assert (found["conversation"]["id"], lines.current(), moved.taken_up) == (id, [id], id)
        assert found["pending_fork"] == (branch == "main:2")
        advice = next_steps(session, moved)
        assert advice == (([], True, "") if branch == "main:2" else ([], False, f"claude --resume {id}"))


def test_what_an_sdk_needs_to_go_on(lines: Forked) -> None:
    """M-05, S4-03, S4-04, S4-06, S4-07: resume alone, fork at the last message that is kept, or start anew."""
    resume = {"resume": lines.fork, "forkSession": False, "resumeSessionAt": None}
    assert lines.session().resume_options() == lines.session(lines.fork).resume_options() == resume
    assert lines.session(ID).resume_options() == {**resume, "resume": ID}
    before = lines.session(ID).plan_undo(2)
    lines.session(ID).move(before)
    found = lines.session().resume_options()
    kept = raw_lines.with_lines(lines.store.shadow, before.target, {})
    last = [json.loads(line) for line in kept[raw_lines.LINES]][-1]
    assert last["type"] == "assistant"
    assert found == {"resume": ID, "forkSession": True, "resumeSessionAt": last["uuid"]}
    session = lines.session()
    session.move(session.plan_goto("0"))
    assert session.resume_options() == {"resume": None, "forkSession": False, "resumeSessionAt": None}
    with pytest.raises(Unknown, match="no agent's conversation"):
        lines.store.session("shell").resume_options()


def test_a_promoted_branch_promotes_its_session(lines: Forked) -> None:
    """S1-39: its conversation heads the list, above those it was forked from; undoing the promotion undoes that."""

    def listed() -> list[tuple[str, str | None, str, bool]]:
        line = next(line for line in read_sessions(lines.store) if line.name == lines.name)
        return [(one.known.id, one.listed_under, one.branch, one.archived) for _, one in fork_tree(line)]

    before = [(ID, None, "main", False), (lines.fork, ID, "main-2", False)]
    assert listed() == before
    Branches(lines.session()).promote("main-2")
    assert listed() == [(lines.fork, None, "main", False), (ID, lines.fork, "archive-main", True)]
    assert lines.prompts(ID) == ORIGINAL
    lines.session().move(lines.session().plan_ops_undo())
    assert listed() == before


def test_a_fork_of_an_id_is_its_child(lines: Forked) -> None:
    """M-01, S1-43: also where it did not speak the turn itself; siblings have titles of their own."""
    titles = {known.id: known.title for known in Conversations(lines.store).agent_sessions()}
    assert titles[lines.fork] == "Prompt 1 (Branch)"
    session = lines.session(lines.fork)
    session.move(session.plan_goto("1"))
    made = [lines.forked(lines.fork, title=None) for _ in range(1)]
    session.move(session.plan_goto("2"))
    made.append(lines.forked(lines.fork))
    known = [Conversations(lines.store).agent_session(id) for id in made]
    assert [(one.parent, one.fork_turn) for one in known if one] == [(lines.fork, 1), (lines.fork, 2)]
    assert len({one.title for one in known if one} | {titles[lines.fork]}) == 3
    assert lines.prompts(made[0]) == ORIGINAL[:1], "a fork that nobody has used yet ends where it was made"


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", ".", "-x", "x\0y", "é" * 300])
def test_a_hostile_id_is_refused(lines: Forked, name: str) -> None:
    """M-01, S1-63."""
    with pytest.raises(Unsafe):
        lines.store.session(name)
    with pytest.raises(Unknown):
        locate(Graph(lines.store, lines.name), f"{name}:1")


def test_an_id_that_is_no_more_or_not_clear(lines: Forked, tmp_path: Path) -> None:
    """M-01: too short, ambiguous, of another root, and of a line that was deleted: each says so, none hits another."""
    graph = Graph(lines.store, lines.name)
    for name in (ID[:7], f"{ID}0", "00000000-0000-4000-8000-000000000000"):
        with pytest.raises(Unknown):
            History(lines.store.session(name))
        with pytest.raises(Unknown):
            locate(graph, name)
    known = Conversations(lines.store).agent_session(ID)
    assert known is not None
    known.id = ID[:-1] + "0"
    lines.store.journal.carry_out([], Conversations(lines.store).agent_session_file(known), what="test")
    for look in (lambda: lines.store.session(ID[:8]), lambda: locate(graph, ID[:8])):
        with pytest.raises(Unknown, match="beginning of 2 agent sessions"):
            look()
    assert lines.prompts(ID) == ORIGINAL
    Branches(lines.session()).delete("main")
    for look in (lambda: History(lines.session(ID)), lambda: lines.session(ID).plan_undo()):
        with pytest.raises(Unknown, match="is gone"):
            look()
    assert lines.prompts(lines.fork) == OTHER
    session = lines.session()
    session.move(session.plan_ops_undo())
    assert lines.prompts(ID) == ORIGINAL


def test_the_endpoints_of_an_id(lines: Forked, page: Client) -> None:
    """M-01, M-03: tree, status, undo-state and undo over HTTP speak of the id's line, while another one is current."""
    here = page.expected(lines.name)
    tree = page.get(f"/api/sessions/{ID}/tree")
    assert (tree["session"], tree["branch"], tree["turn"]) == (lines.name, "main", 3)
    assert (tree["cursor"], tree["tip"]) == (Graph(lines.store, lines.name).tip_of("main").hex(),) * 2  # type: ignore
    assert tree["expected"] == here, "a change starts where the session stands"
    assert page.get(f"/api/sessions/{ID[:8]}/status")["conversation"]["id"] == ID
    state = page.get(f"/api/undo-state/{ID}")
    assert (state["sessionId"], state["currentTurnIndex"], state["totalTurns"]) == (ID, 3, 3)
    assert (state["activeBranchId"], state["expected"]) == ("main", here)
    assert page.get(f"/api/undo-state/{lines.fork}")["totalTurns"] == 4
    found = page.post(f"/api/sessions/{ID}/preview", {"move": "goto", "address": "1"})
    assert (found["turns_undone"], found["turns_redone"], found["prompt"]) == (2, 0, "Prompt 2")
    assert page.move(ID, "revert", 400, address="1")["hint"].endswith(f"`snapstore switch {ID}`.")
    undone = page.post(f"/session/{ID}/undo", {"count": 1})
    assert (undone["turns_undone"], undone["messages_removed"]) == (1, 2)
    assert lines.files() == ["f1.txt", "f2.txt"]
    state = page.get(f"/api/undo-state/{ID}")
    assert (state["currentTurnIndex"], state["totalTurns"]) == (2, 3)
    session = next(one for one in page.get("/api/sessions")["sessions"] if one["session"] == lines.name)
    assert [one["sessionId"] for one in session["conversations"] if one["current"]] == [ID]
    assert page.post(f"/session/{lines.fork}/undo", {"count": 1})["turns_undone"] == 1
    assert lines.files() == ["f1.txt", "f2.txt", "other.txt"]
    page.get("/api/undo-state/00000000-0000-4000-8000-000000000000", 404)


def test_rewind_session_rewinds_the_session_it_names(lines: Forked, page: Client) -> None:
    """M-01, S1-26: files, turn number and parent are those of the id, although another line is current."""
    done = page.post("/api/events", {"type": "rewind_session", "sessionId": ID, "rewindToTurn": 3})
    assert (done["fork"]["parentSessionId"], done["fork"]["rewindFromTurn"]) == (ID, 3)
    assert (done["branch"], lines.files()) == ("main", ["f1.txt", "f2.txt", "f3.txt"])
    done = page.post("/api/events", {"type": "rewind_session", "sessionId": lines.fork, "rewindToTurn": 3})
    assert (done["fork"]["parentSessionId"], lines.files()) == (lines.fork, ["f1.txt", "f2.txt", "other.txt"])
    page.post("/api/events", {"type": "rewind_session", "sessionId": ID, "rewindToTurn": 4}, 400)


def test_the_commands_take_an_id(lines: Forked, root: Path) -> None:
    """M-01, M-03: `--session ID` and `ID` as an address."""
    rows = [node for node in snap_json(root, "log", "--session", ID, "--json")["nodes"] if node["turn"]]
    assert [(node["turn"], node["prompt"]) for node in rows] == ORIGINAL
    out = snap(root, "undo", "--session", ID[:8], "-y").stdout
    assert "Undone 1 turn(s)" in out and "Undone prompt: Prompt 3" in out and f"the line of {ID}" in out
    assert lines.files() == ["f1.txt", "f2.txt"]
    out = snap(root, "switch", lines.fork, "-y").stdout
    assert f"Continue with the agent from here: `claude --resume {lines.fork}`" in out and "snapstore fork" not in out
    assert lines.files() == ["f1.txt", "f2.txt", "fourth.txt", "other.txt"]
    assert snap_json(root, "status", "--json")["conversation"]["id"] == lines.fork
    assert snap_json(root, "show", f"{ID}:3", "--json")["prompt"] == "Prompt 3"
    assert snap_json(root, "goto", "../x", "--json", status=16)["error"] == "unknown"


def test_opening_a_session_reads_no_records(lines: Forked, monkeypatch: pytest.MonkeyPatch) -> None:
    """M-01: the line of an id is found by commits alone, however many turns there are."""
    store = lines.store
    session = lines.session()
    session.move(session.plan_switch("main"))
    many_turns(lines.story, 300)
    state = Conversations(store).state(lines.name)
    assert state is not None and state.id == ID
    read: list[bytes] = []
    note = Shadow.note
    monkeypatch.setattr(Shadow, "note", lambda shadow, oid: (read.append(oid), note(shadow, oid))[1])
    for id in (lines.fork, ID):
        assert History(store.session(id)).graph.turn_of(History(store.session(id)).cursor) >= 3
        assert json.dumps(lines.status(id))
    assert len(read) < 20
