"""Turn events into recorded turns, in the same way for every agent.

Events arrive twice, late, in parallel, from several agents at once, or not at all. Every decision therefore depends on
the state of the session, not on the event alone. A turn that was never stopped is closed by the next event.
"""

from __future__ import annotations

import os

from snapstore.agents.events.event import AFTER, BEFORE, END, PROMPT, SHELL, START, STOP, Event
from snapstore.agents.hooks.open_turn import is_about, is_earlier, named_files
from snapstore.agents.hooks.paths import full_paths, sort_paths
from snapstore.agents.hooks.person import exit_status, shell_session
from snapstore.agents.known.registry import PERSON, tells_afterwards
from snapstore.api import Store
from snapstore.base.text import safe
from snapstore.errors import NoStore, SnapstoreError, Unsafe
from snapstore.store.state import check_name, readable
from snapstore.timeline.history import raw_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.api import Session
    from snapstore.store.conversations import AgentSession, ConversationState
    from snapstore.store.state import OpenTurn

_SAME = 10.0  # seconds within which an equal prompt, without any touch since, is a duplicate event
_LONGEST_PROMPT = 1 << 20
_SHOWN = 60  # characters of a prompt
_OPENED = ("startup", "new", "")  # the sources of a START event for a conversation without turns


def handle(event: Event) -> str:
    """Process one event in its folder's store; return a message for the agent.

    The message is usually empty.
    """
    if not event.session_id or not os.path.isabs(event.cwd):
        raise Unsafe("the payload names no session or no folder", "See what the agent sends: snapstore hook --debug.")
    check_name(event.session_id, "agent session")
    opens = event.kind in (PROMPT, BEFORE, AFTER, SHELL)
    try:
        store = Store.open(event.cwd, create=opens and event.agent != PERSON, session=event.short_name)
    except NoStore:
        return ""
    with store:
        try:
            return Hook(store, event).take()
        except SnapstoreError as error:
            store.log(f"hook {event.agent} {event.kind}: {error.message}")
            return ""
        except Exception as error:
            store.log(f"hook {event.agent} {event.kind}: {type(error).__name__}: {error}")
            raise


class Hook:
    """One event, processed in one store."""

    def __init__(self, store: Store, event: Event) -> None:
        from snapstore.store.conversations import Conversations

        self._store = store
        self._event = event
        self._conversations = Conversations(store)

    def take(self) -> str:
        kind = self._event.kind
        if kind in (BEFORE, AFTER, SHELL):
            self._touch()
        elif kind == PROMPT:
            return self._prompt()
        elif kind == STOP:
            self._stop()
        elif kind in (START, END):
            self._start_or_end()
        return ""

    # The start of a turn.

    def _prompt(self) -> str:
        with self._store.changing():
            session, known = self._session()
            turn = self._store.open_turn(session.name)
            if self._is_duplicate(turn):
                self._add_prompt(session, turn)
                return ""
            state = self._conversations.state(session.name)
            if self._is_over(state):
                return ""
            if self._event.goes_on:
                self._go_on(session, known, state)
                return ""
            told = self._about_undo(known)
            self._complete(session, state.at if state is not None else "")
            self._begin(session, known)
            if state is not None and self._event.prompt_id and state.stopped_prompt == self._event.prompt_id:
                self._end(session, "done")  # the stop arrived before the prompt
        return told

    def _go_on(self, session: Session, known: AgentSession | None, state: ConversationState | None) -> None:
        """Continue the previous turn for a prompt that the agent sent itself.

        If the previous turn has ended, a new turn with the same prompt begins.
        """
        if self._store.open_turn(session.name) is not None:
            session.note(also=self._event.prompt_id)
            return
        if state is not None and state.at:
            self._event.prompt = str(self._record(state.at).get("prompt") or self._event.prompt)
        self._begin(session, known)

    def _begin(self, session: Session, known: AgentSession | None) -> None:
        event = self._event
        left = self._store.open_turn(session.name)
        if left is not None:
            self._end(session, self._left_status(left))
        self._end_abandoned(session)
        session.begin(
            event.prompt[:_LONGEST_PROMPT],
            agent=event.agent,
            known=known,
            origin={
                "session": event.session_id,
                "prompt_id": event.prompt_id,
                "transcript": event.transcript,
                "cwd": event.cwd,
                "tells": "afterwards" if tells_afterwards(event.agent) else "before",
                **({"at": str(event.at)} if event.at else {}),
            },
        )

    def _end_abandoned(self, mine: Session) -> None:
        """End open turns of other sessions whose agent was killed.

        Nothing else would close such a turn, and the files it named belong to it as long as it is open.
        """
        for turn in self._store.open_turns(besides=mine.name):
            if turn.owner is None and self._is_gone(turn.origin.get("session", "")):
                try:
                    self._end(self._store.session(turn.session), self._left_status(turn))
                except SnapstoreError as error:
                    self._store.log(f"a turn of session {turn.session} stays open: {error.message}")

    def _is_gone(self, id: str) -> bool:
        return bool(id) and self._conversations.is_gone(id)

    def _left_status(self, left: OpenTurn) -> str:
        """Return the status with which a turn that was left open ends.

        A shell that shows its prompt again has finished the previous command. An agent that has answered only kept the
        turn open for its subagents.
        """
        return "done" if left.origin.get("answered") or self._event.agent == PERSON else "interrupted"

    def _is_duplicate(self, turn: OpenTurn | None) -> bool:
        """Return whether a prompt event is a duplicate.

        Two settings files may both contain our hook, and Copilot also runs Claude's hooks.
        """
        event = self._event
        if turn is None or turn.origin.get("session") != event.session_id:
            return False
        if event.prompt_id and turn.origin.get("prompt_id"):
            return turn.origin["prompt_id"] == event.prompt_id
        fresh = self._store.clock() - turn.started_at < _SAME
        # Cline reports the start of a turn and its prompt as two events.
        same = turn.prompt in ("", readable(event.prompt[:_LONGEST_PROMPT])) or not event.prompt
        return same and fresh and not turn.named and not turn.shell

    def _add_prompt(self, session: Session, turn: OpenTurn | None) -> None:
        """Append text to the open turn's prompt.

        A message the user sends while the agent is working has the same prompt id, and is part of the request.
        """
        more = readable(self._event.prompt).strip()
        if turn is None or not more or self._event.goes_on or f"\n\n{more}\n\n" in f"\n\n{turn.prompt.strip()}\n\n":
            return
        session.note(f"{turn.prompt.rstrip()}\n\n{more}".lstrip()[:_LONGEST_PROMPT])

    def _is_over(self, state: ConversationState | None) -> bool:
        """Return whether the event's prompt belongs to the last turn, which has ended."""
        event = self._event
        mine = state is not None and state.id == event.session_id
        return mine and state is not None and bool(event.prompt_id) and state.ended_prompt == event.prompt_id

    # During a turn.

    def _touch(self) -> None:
        event = self._event
        turn = self._own_turn()
        if turn is not None and self._is_known(turn):
            return  # the common case, without the lock
        with self._store.changing():
            turn = self._own_turn()
            session = self._store.session(turn.session) if turn is not None else self._opened()
            if session is not None:
                inside, outside = sort_paths(session, event.paths, event.base)
                session.touch(inside, after=event.kind == AFTER, shell=event.kind == SHELL, left_out=outside)

    def _own_turn(self) -> OpenTurn | None:
        """Return the open turn of this agent session.

        A fork of the agent session may have another turn open in the same session.
        """
        name = self._conversations.session_of(self._event.session_id)
        turn = self._store.open_turn(name) if name is not None else None
        mine = turn is not None and turn.origin.get("session", self._event.session_id) == self._event.session_id
        return turn if mine else None

    def _opened(self) -> Session | None:
        """Begin a turn for a tool call whose prompt was not reported.

        Return None for a late event of a turn that has ended: that turn already contains the change.
        """
        event = self._event
        late = event.kind == AFTER or event.ran
        if late and not tells_afterwards(event.agent):
            return None
        session, known = self._session()
        if late and self._is_over(self._conversations.state(session.name)):
            return None
        self._begin(session, known)
        return session

    def _is_known(self, turn: OpenTurn) -> bool:
        if self._event.kind == SHELL:
            return turn.shell
        named = named_files(turn)
        root = os.fsdecode(self._store.root)
        full = full_paths(self._event.paths, self._event.base)
        return all(os.path.relpath(path, root) in named or path in named for path in full)

    # The end of a turn.

    def _stop(self) -> None:
        event = self._event
        with self._store.changing():
            name = self._session_name()
            if name is None:
                return
            turn = self._store.open_turn(name)
            if turn is None or turn.origin.get("session", event.session_id) != event.session_id:
                self._note_end(name)
                return
            if is_earlier(self._event, turn):
                return
            if event.prompt_id and not is_about(turn, event.prompt_id):
                self._note_end(name)  # a late stop of an earlier turn, or a stop that arrived before its prompt
                return
            session = self._store.session(name)
            if event.running:
                session.note(answered="yes")
            else:
                self._end(session, event.status or "done")

    def _note_end(self, name: str) -> None:
        """Remember a stop without an open turn, because its prompt may still arrive."""
        state = self._conversations.state(name)
        if state is not None and self._event.prompt_id and not self._is_over(state):
            state.stopped_prompt = self._event.prompt_id
            files = self._conversations.state_file(state)
            self._store.journal.carry_out([], files, what=f"stop in session {name}")

    def _end(self, session: Session, status: str) -> None:
        turn = self._store.open_turn(session.name)
        assert turn is not None
        if turn.agent == PERSON:  # most commands only read; a command without changes is no turn
            session.end_if_changed(exit_status=exit_status(self._event.reply))
            return
        remembered = self._remembered(turn)
        named = named_files(turn)
        base, top = turn.origin.get("cwd") or self._event.base, f"{os.fsdecode(self._store.root)}/"
        paths = full_paths(dict.fromkeys(remembered.paths), base)
        fresh, outside = sort_paths(session, [path for path in paths if path.removeprefix(top) not in named], base)
        if fresh or outside:
            session.touch(fresh, after=True, left_out=outside)
        if status == "done" and remembered.interrupted:
            status = "interrupted"  # opencode reports the end of an interrupted turn like any other
        session.end(scan=True if remembered.scans else None, status=status, **remembered.record)

    def _remembered(self, turn: OpenTurn) -> Any:
        from snapstore.agents.hooks.turn_record import Remembered, origin_of, remember

        event = self._event
        if turn.agent == PERSON:
            return Remembered()
        own = turn.origin.get("session") == event.session_id
        reply = event.reply if event.kind == STOP and own and is_about(turn, event.prompt_id) else ""
        return remember(turn.agent, origin_of(turn), turn.prompt, reply, after=self._last_message(turn))

    def _last_message(self, turn: OpenTurn) -> str:
        """Return the id of the previous turn's first message, if prompts have no ids.

        The previous turn may have had the same prompt.
        """
        state = self._conversations.state(turn.session) if not turn.origin.get("prompt_id") else None
        about = self._record(state.at).get("conversation") if state is not None and state.at else None
        return str(about.get("message_id") or "") if isinstance(about, dict) else ""

    def _complete(self, session: Session, commit: str) -> None:
        """Complete the last turn's record if the transcript lagged when the turn ended."""
        from snapstore.agents.hooks.turn_record import is_incomplete, remember

        if not commit:
            return
        record = self._record(commit)
        if not is_incomplete(record):
            return
        about = record["conversation"]
        prompt_id = str(about.get("prompt_id") or about.get("message_id") or "")
        if not prompt_id and record.get("prompt") == self._event.prompt:
            return  # the transcript may already contain the new prompt, which looks the same
        origin = {"session": str(about.get("agent_session", "")), "prompt_id": prompt_id}
        origin |= {"transcript": self._event.transcript, "cwd": self._event.cwd}
        found = remember(str(record.get("agent", "")), origin, str(record.get("prompt", "")))
        if len(found.record.get("lines", [])) > len(record.get("lines", [])):
            found.record["conversation"]["complete"] = True  # the conversation continued: no more lines will come
            session.amend(bytes.fromhex(commit), **found.record)

    def _record(self, commit: str) -> dict[str, Any]:
        from snapstore.agents.hooks.turn_record import read_record

        shadow, oid = self._store.shadow, bytes.fromhex(commit)
        return raw_lines.with_lines(shadow, oid, read_record(shadow.note(oid)))

    # The start and end of a conversation.

    def _start_or_end(self) -> None:
        """Handle the start or the end of a conversation.

        A compaction also sends a start, in the middle of a turn, and is ignored.
        """
        if self._event.source == "compact":
            return
        with self._store.changing():
            name = self._session_name() if self._event.kind == END else self._link_fork()
            if name is None:
                return
            state = self._conversations.state(name)
            if state is not None:
                self._complete(self._store.session(name), state.at)
            turn = self._own_turn()
            # A new conversation has no turn to close: its start event can arrive late, after its first prompt.
            opened = self._event.kind == START and self._event.source in _OPENED
            if turn is not None and not opened and not is_earlier(self._event, turn):
                self._end(self._store.session(name), self._left_status(turn))

    def _link_fork(self) -> str | None:
        """At a start, link a new agent session to the requested fork (S4-09, S4-10)."""
        from snapstore.agents.hooks.session_lookup import join
        from snapstore.timeline.history.graph import Graph
        from snapstore.timeline.record.conversation import look_again

        known = join(self._store, self._event, invent=False)
        if known is None:
            return None
        state = self._conversations.state(known.session)
        files = self._conversations.agent_session_file(known)
        if state is not None and state.switch_to(known):
            graph = Graph(self._store, known.session)
            look_again(state, graph, graph.cursor)
            files |= self._conversations.state_file(state)
        self._store.journal.carry_out([], files, what=f"session {known.id} of {known.agent}")
        return known.session

    def _session_name(self) -> str | None:
        if self._event.agent == PERSON:
            return shell_session(self._store, self._event)
        return self._conversations.session_of(self._event.session_id)

    def _session(self) -> tuple[Session, AgentSession | None]:
        """Return the session that the event belongs to, and its agent session."""
        if self._event.agent == PERSON:
            return self._store.session(shell_session(self._store, self._event)), None
        from snapstore.agents.hooks.session_lookup import join

        known = join(self._store, self._event, invent=True)
        assert known is not None
        return self._store.session(known.session), known

    def _about_undo(self, known: AgentSession | None) -> str:
        """Return one sentence on the turns that the agent remembers and that are undone, or ""."""
        from snapstore.timeline.record.conversation import undone_turns

        undone = undone_turns(self._store, known) if known is not None and self._store.header.tell_agents else []
        if not undone:
            return ""
        first = undone[-1].subject
        prompt = f'"{safe(first if len(first) <= _SHOWN else f"{first[:_SHOWN]}…")}"'
        what = f"your last turn ({prompt})" if len(undone) == 1 else f"your last {len(undone)} turns (from {prompt} on)"
        return (
            f"The user has undone {what} with snapstore: the files are without those changes, so do not rely on them, "
            f"and read a file again before you edit it."
        )
