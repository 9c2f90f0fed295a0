"""Fork an agent's conversation at the session's cursor.

No file that an agent owns is written (S1-09, S4-01). For Claude Code, a new session file with its own id is written,
and the agent resumes that file. For the other agents, the result is the agent's own fork or resume command.
"""

from __future__ import annotations

import os
import uuid

from snapstore.agents.capabilities import AT_TURN, NONE, WHOLE, capability
from snapstore.agents.hooks.turn_record import read_record
from snapstore.errors import Busy, SnapstoreError, Unknown
from snapstore.store.conversations import AgentSession, Conversations
from snapstore.timeline.history import raw_lines
from snapstore.timeline.history.graph import Graph, last_turn
from snapstore.timeline.record.conversation import on_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.api import Session
    from snapstore.store.conversations import ConversationState
    from snapstore.timeline.history.graph import GraphNode
    from snapstore.timeline.moves.moved import Moved


class ForkResult:
    """The result of a fork: the command to run, and notices for the user."""

    __slots__ = ("agent", "command", "fresh", "known", "notices", "parent", "path", "turn")

    def __init__(self, agent: str, turn: int, parent: str) -> None:
        self.agent = agent
        self.turn = turn
        self.parent = parent
        self.command: list[str] = []
        self.known: AgentSession | None = None  # set if the new agent session's id is already known
        self.path: str | None = None  # the transcript file written for the fork
        self.fresh = False
        self.notices: list[str] = []


class ConversationFork:
    """One fork of one session's conversation, at the session's cursor."""

    def __init__(self, session: Session, *, title: str | None = None, compacted: bool = False) -> None:
        self._session = session
        self._store = session.store
        self._conversations = Conversations(session.store)
        self._graph = Graph(session.store, session.name)
        self._title = title
        self._compacted = compacted  # whether the user allows a fork from before a compaction

    def run(self) -> ForkResult:
        with self._store.changing():
            if self._store.open_turn(self._session.name) is not None:
                raise Busy(
                    f"a turn is open in session {self._session.name}",  # S1-46
                    "Let the agent finish, or close the turn first: `snapstore turn end`.",
                )
            state = self._state()
            last = last_turn(self._graph, self._graph.cursor)
            able = capability(state.agent)
            forked = ForkResult(state.agent, (last.turn or 0) if last else 0, state.id)
            if able.forks == NONE:
                raise Unknown(
                    able.notice, "The files are where you moved them; only the agent can rewind its conversation."
                )
            if able.notice and last is not None:
                forked.notices.append(able.notice)
            if last is None:
                self._start_afresh(forked, state)
            elif able.forks == AT_TURN:
                self._at_turn(forked, state, last)
            else:
                forked.command = (able.fork or able.resume).format(state.id).split()
                if able.forks == WHOLE:
                    self._await(forked, state, last)
            return forked

    def _state(self) -> ConversationState:
        state = self._conversations.state(self._session.name)
        if state is None:
            raise Unknown(
                f"session {self._session.name} belongs to no agent's conversation",
                "`snapstore sessions` lists agents' conversations; `snapstore connect` makes an agent report its own.",
                session=self._session.name,
            )
        return state

    # The three ways to fork.

    def _start_afresh(self, forked: ForkResult, state: ConversationState) -> None:
        """Start a new conversation because the first prompt is undone (S4-06)."""
        able = capability(state.agent)
        forked.fresh = True
        if able.forks == AT_TURN:
            known = self._new(state, None, str(uuid.uuid4()))
            forked.known = known
            forked.command = able.fresh.format(known.id).split()
            self._write(state, self._conversations.agent_session_file(known))
        else:
            forked.command = able.fresh.split()
            self._await(forked, state, None)

    def _await(self, forked: ForkResult, state: ConversationState, last: GraphNode | None) -> None:
        """Expect the agent's next new session to be this fork.

        The agent chooses the new session's id itself.
        """
        state.awaiting = {
            "turn": forked.turn,
            "commit": last.oid.hex() if last is not None else None,
            "at": self._conversations.now(),
            "title": self._title,
        }
        self._write(state, {})

    def _at_turn(self, forked: ForkResult, state: ConversationState, last: GraphNode) -> None:
        forked.parent = self._session.speaks_for or self._agent_session(last) or state.id
        prepared = self._unused_fork(state, forked.parent, last) if self._title is None else None
        if prepared is None:
            prepared = self._make_fork(forked, state, last)
        forked.known, forked.path = prepared, prepared.transcript
        forked.command = capability(state.agent).resume.format(prepared.id).split()

    def _unused_fork(self, state: ConversationState, parent: str, last: GraphNode) -> AgentSession | None:
        """Return an unused fork of this turn, if there is one, instead of making another."""
        used = {state.id, *state.left}
        for known in self._conversations.agent_sessions():
            mine = known.parent == parent and known.fork_commit == last.oid.hex()
            unused = known.alias is not None and known.process is None and known.id not in used
            if mine and unused and os.path.isfile(known.transcript):
                return known
        return None

    def _make_fork(self, forked: ForkResult, state: ConversationState, last: GraphNode) -> AgentSession:
        from snapstore.transcripts.fork.fork import rewind_alias

        known = self._new(state, last, str(uuid.uuid4()))
        known.parent = forked.parent
        known.alias = rewind_alias(forked.parent, known.created, self._aliases())
        known.transcript, known.title = self._written(forked, state, known, last)
        try:
            self._write(state, self._conversations.agent_session_file(known))
        except BaseException:
            os.unlink(known.transcript)  # our own file, written just now; nothing refers to it yet
            raise
        return known

    def _written(
        self, forked: ForkResult, state: ConversationState, known: AgentSession, last: GraphNode
    ) -> tuple[str, str]:
        """Write the fork's transcript; return its path and title.

        A conversation that went on after an undo holds the undone turns in its middle. What was recorded of each turn
        does not (M-04).
        """
        strays = state.strays.get(forked.parent, [])
        if any(not on_line(self._graph, last.oid, end) for end in strays):
            try:
                found = self._from_records(known, last)
            except Unknown:
                forked.notices.append("The fork holds undone turns: nothing was recorded of the others.")
            else:
                forked.notices.append("The conversation holds undone turns; the fork is made without them.")
                return found
        return self._from_transcript(forked, known, last) or self._from_records(known, last)

    def _own_title(self, title: str) -> str:
        """Return a title that no other conversation of the store has: sibling forks are told apart by it."""
        from snapstore.transcripts.fork.fork import branch_title

        taken = {known.title for known in self._conversations.agent_sessions()}
        while title in taken:
            title = branch_title(title)
        return title

    def _from_transcript(self, forked: ForkResult, known: AgentSession, last: GraphNode) -> tuple[str, str] | None:
        """Write a fork of the agent's own transcript; return its path and title.

        Return None if the transcript does not contain the turn (G-19).
        """
        from snapstore.transcripts.fork.fork import fork_conversation

        about = self._record(last).get("conversation")
        about = about if isinstance(about, dict) else {}
        up_to = about.get("message_id") or about.get("prompt_id")
        source = self._transcript(forked.parent)
        if source is None or not isinstance(up_to, str):
            forked.notices.append("The transcript is missing: the fork is made from what was recorded of each turn.")
            return None
        try:
            fork = fork_conversation(source, up_to=up_to, new_id=known.id, title=self._title)
            own = self._title or self._own_title(fork.title)
            if own != fork.title:
                fork = fork_conversation(source, up_to=up_to, new_id=known.id, title=own)
        except Unknown:
            forked.notices.append("The transcript no longer has that turn: the fork is made from what was recorded.")
            return None
        if fork.compacted and not self._compacted:
            raise Unknown(
                f"turn {last.turn} lies before a compaction: the agent no longer has the conversation up to it",
                "The files can still go there. To fork from the recorded lines anyway, add --compacted.",
            )
        forked.notices += fork.notices
        return fork.write(), fork.title

    def _from_records(self, known: AgentSession, last: GraphNode) -> tuple[str, str]:
        from snapstore.transcripts.fork.fork import branch_title, fork_lines, write_fork
        from snapstore.transcripts.locate import claude_folder

        folder = claude_folder(os.fsdecode(self._store.root))
        turns = [node for node in self._graph.upwards(last.oid) if node.kind == "turn"][::-1]
        title = self._title or self._own_title(branch_title(turns[0].subject[:80]))
        lines = fork_lines(self._recorded(turns), new_id=known.id, title=title, parent=known.parent)
        return write_fork(folder, known.id, lines), title

    # The data a fork is made from.

    def _new(self, state: ConversationState, last: GraphNode | None, id: str) -> AgentSession:
        now = self._conversations.now()
        return AgentSession(
            id=id,
            agent=state.agent,
            session=state.session,
            created=now,
            parent=state.id,
            fork_turn=(last.turn or 0) if last is not None else 0,
            fork_commit=last.oid.hex() if last is not None else None,
            forked_at=now,
            title=self._title,
            cwd=os.fsdecode(self._store.root),
        )

    def _write(self, state: ConversationState, files: dict[str, bytes | None]) -> None:
        files |= self._conversations.state_file(state)
        self._store.journal.carry_out([], files, what=f"fork of the conversation in session {state.session}")

    def _record(self, node: GraphNode) -> dict[str, Any]:
        return read_record(self._store.shadow.note(node.oid))

    def _agent_session(self, node: GraphNode) -> str:
        about = self._record(node).get("conversation")
        found = about.get("agent_session") if isinstance(about, dict) else None
        return found if isinstance(found, str) else ""

    def _transcript(self, id: str) -> str | None:
        from snapstore.agents.hooks.turn_record import transcript_of

        known = self._conversations.agent_session(id)
        if known is None:
            return None
        path = transcript_of(known.agent, {"session": id, "transcript": known.transcript, "cwd": known.cwd})
        return path if path is not None and os.path.isfile(path) else None

    def _recorded(self, turns: list[GraphNode]) -> list[bytes]:
        """Return the raw transcript lines of these turns, from the turns' records."""
        lines: list[bytes] = []
        for node in turns:
            kept = raw_lines.with_lines(self._store.shadow, node.oid, self._record(node)).get(raw_lines.LINES, [])
            lines += [line.encode("utf-8", "surrogateescape") for line in kept if isinstance(line, str)]
        if not lines:
            raise Unknown(
                f"nothing was recorded of the conversation up to turn {turns[-1].turn}",
                "Its transcript is gone, and no lines were recorded. Start a new conversation; the files are in place.",
            )
        return lines

    def _aliases(self) -> set[str]:
        return {known.alias for known in self._conversations.agent_sessions() if known.alias}


def next_steps(session: Session, moved: Moved) -> tuple[list[str], bool, str]:
    """Return notices, whether a fork is possible, and a resume command, after a move.

    The notices tell the user about the agent's conversation. The resume command is not empty if the move led to where
    another agent session left off; no fork is needed then (S1-22, S4-27, M-03).
    """
    conversations = Conversations(session.store)
    try:
        state = conversations.state(session.name)
        known = conversations.agent_session(state.id) if state is not None else None
        running = _is_running(conversations, state, moved)
    except SnapstoreError:  # the move is done; `fork` reports a damaged conversation document
        return [], False, ""
    if state is None:
        return [], False, ""
    able = capability(state.agent)
    told = [f"{able.name} is still running and remembers what was undone: leave it first."] if running else []  # G-06
    if state.materialized and not state.pending_fork:
        resume = able.resume.format(state.id) if moved.taken_up and known is not None else ""
        return told if resume else [], False, resume
    if able.forks == NONE:
        return [able.notice], False, ""  # G-13
    return told, True, ""


def _is_running(conversations: Conversations, state: ConversationState | None, moved: Moved) -> bool:
    """Return whether an agent runs that remembers turns which the move undid."""
    ids = [state.id] if state is not None and not moved.taken_up else []
    if state is not None and moved.taken_up:
        ids = list(state.left)[-1:]  # the one that was current before
    found = [conversations.agent_session(id) for id in ids]
    return any(known is not None and conversations.is_running(known) for known in found)
