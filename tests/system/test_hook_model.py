"""Agents, a user and undo at once, in any order: each turn's undo takes back what its agent wrote, and nothing else.

Events come as real agents send them: a tool is told of before it writes (Cursor: afterwards, before the stop). Beyond
that anything goes: events told again at any time, news that come late, prompts without a stop, stops without a prompt,
starts and ends between, agents in parallel, undo and redo between turns, and a user who edits all the while.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from helpers import assert_whole, quick_folder
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from snapstore import Store, Unknown
from snapstore.agents.events.event import AFTER, BEFORE, END, PROMPT, SHELL, START, STOP, Event
from snapstore.agents.hooks.turns import handle
from snapstore.store.conversations import Conversations

AGENTS = {"one": "claude", "two": "claude", "three": "gemini", "four": "cursor"}
NUMBERED = ("claude", "cursor")  # those that tell one prompt from another
WHO = st.sampled_from(list(AGENTS))
WHICH = st.sampled_from(["first", "second", "below/third"])


class Speaker:
    """An agent, and what is true of it."""

    def __init__(self, id: str, agent: str) -> None:
        self.id = id
        self.agent = agent
        self.prompts = 0
        self.prompted = False
        self.shell = False
        self.about_to: str | None = None  # write this file: it was told of
        self.late: list[Event] = []  # news on their way
        self.told: list[Event] = []


class Hooks(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = self.stack.enter_context(quick_folder())
        patch = self.stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("SNAPSTORE_HOME", str(folder / "home"))
        self.root = folder / "root"
        self.root.mkdir()
        self.speakers = {id: Speaker(id, agent) for id, agent in AGENTS.items()}
        self.count = 0
        self.files: dict[str, str] = {}  # what must be on disk
        self.first: dict[str, str] = {}  # what was there to begin with

    @initialize()
    def begin(self) -> None:
        for name in (*AGENTS, "user"):
            self._put(f"{name}/first", "to begin with")
        self.first = dict(self.files)
        Store.open(self.root, create=True).close()

    def teardown(self) -> None:
        try:
            self._settle()
        finally:
            self.stack.close()

    # What agents do.

    @rule(who=WHO, again=st.booleans())
    def prompt(self, who: str, again: bool) -> None:
        speaker = self.speakers[who]
        # Of Cursor nothing is known when it is cut off, nor when it names nothing: any turn of it may have to scan.
        scans = speaker.agent == "cursor"
        if self._is_idle(speaker) and not (scans and self._runs_elsewhere(speaker)):
            speaker.prompts += 1
            speaker.prompted, speaker.shell = True, scans
            self._tell(speaker, PROMPT, prompt=f"prompt {speaker.prompts}")
            if again:
                handle(speaker.told[-1])

    @rule(who=WHO, which=WHICH, at_once=st.booleans(), late=st.booleans())
    def edit(self, who: str, which: str, at_once: bool, late: bool) -> None:
        """Tells of a write. Whether it happens at once or after what others do is for later rules to say."""
        speaker = self.speakers[who]
        if not self._is_idle(speaker) or (speaker.agent == "cursor" and not speaker.prompted):
            return
        speaker.prompted = True
        name = f"{who}/{which}"
        if speaker.agent != "cursor":
            self._tell(speaker, BEFORE, paths=[str(self.root / name)])
        speaker.about_to = name
        if at_once:
            self._write(speaker)
            if late and speaker.agent != "cursor":
                speaker.late.append(self._event(speaker, AFTER, paths=[str(self.root / name)]))
            else:
                self._tell(speaker, AFTER, paths=[str(self.root / name)])

    @rule(who=WHO)
    def finish(self, who: str) -> None:
        speaker = self.speakers[who]
        if speaker.about_to is not None:
            name = speaker.about_to
            self._write(speaker)
            self._tell(speaker, AFTER, paths=[str(self.root / name)])

    @rule(who=WHO)
    def run(self, who: str) -> None:
        """A program: nobody names what it writes. Only one at a time, or it could not be told whose work it is."""
        speaker = self.speakers[who]
        if not self._is_idle(speaker) or self._runs_elsewhere(speaker):
            return
        if speaker.agent == "cursor" and not speaker.prompted:
            return
        speaker.prompted = speaker.shell = True
        if speaker.agent != "cursor":
            self._tell(speaker, SHELL)
        self._put(f"{who}/made")
        if speaker.agent == "cursor":
            self._tell(speaker, SHELL)

    @rule(who=WHO, again=st.booleans())
    def stop(self, who: str, again: bool) -> None:
        speaker = self.speakers[who]
        if self._is_idle(speaker):
            speaker.prompted = speaker.shell = False
            self._tell(speaker, STOP, status="done")
            if again:
                handle(speaker.told[-1])

    @rule(who=WHO)
    def end(self, who: str) -> None:
        speaker = self.speakers[who]
        if self._is_idle(speaker):
            speaker.prompted = speaker.shell = False
            self._tell(speaker, END)

    @rule(who=WHO, source=st.sampled_from(["startup", "compact", "resume"]))
    def start(self, who: str, source: str) -> None:
        speaker = self.speakers[who]
        if self._is_idle(speaker) and not (source == "resume" and speaker.agent == "cursor"):
            if source == "resume":
                speaker.prompted = speaker.shell = False
            self._tell(speaker, START, source=source)

    # What goes wrong.

    @rule(who=WHO)
    def late_news(self, who: str) -> None:
        speaker = self.speakers[who]
        for event in speaker.late:
            handle(event)
        speaker.late.clear()

    @rule(who=WHO, index=st.integers(0, 30))
    def told_again(self, who: str, index: int) -> None:
        """Any event of the past, once more, where no turn of today is open. One that tells of a program opens one."""
        speaker = self.speakers[who]
        if self._is_idle(speaker) and not speaker.prompted and speaker.told:
            event = speaker.told[index % len(speaker.told)]
            scans = event.kind == SHELL or speaker.agent == "cursor"
            if not (scans and self._runs_elsewhere(speaker)):
                # Whether it opens a turn is not for sure: Cursor, which tells afterwards, could not count on one.
                speaker.prompted = speaker.agent != "cursor" and event.kind in (PROMPT, BEFORE, SHELL)
                speaker.shell = scans
                handle(event)

    # What people do.

    @precondition(lambda self: not any(speaker.shell for speaker in self.speakers.values()))
    @rule(which=WHICH)
    def edit_by_hand(self, which: str) -> None:
        self._put(f"user/{which}")

    @rule(who=WHO, count=st.integers(1, 3), forward=st.booleans())
    def undo(self, who: str, count: int, forward: bool) -> None:
        speaker = self.speakers[who]
        with Store.open(self.root) as store:
            name = Conversations(store).session_of(speaker.id)
            if name is None or store.open_turn(name) is not None:
                return
            session = store.session(name)
            before = self._on_disk()
            try:
                plan = session.plan_undo(count)
            except Unknown:
                return  # not so many
            session.move(plan)
            if forward and plan.undone:
                session.move(session.plan_redo(len(plan.undone)))
                assert self._on_disk() == before
            self._expect_change_of(who, before)

    # The truth.

    def _settle(self) -> None:
        """Everybody stops. Nothing is open, all is whole, and each agent's turns take back its own files only."""
        for speaker in self.speakers.values():
            if speaker.about_to is not None:
                self.finish(speaker.id)
            self._tell(speaker, STOP, status="done")
            self._tell(speaker, STOP, status="done", prompt_id="")
        assert self._on_disk() == self.files
        with Store.open(self.root) as store:
            assert [turn.session for turn in store.open_turns()] == []
            assert_whole(store)
            conversations = Conversations(store)
            for who, speaker in self.speakers.items():
                name = conversations.session_of(speaker.id)
                if name is None:
                    continue
                session = store.session(name)
                before = self._on_disk()
                session.move(session.plan_goto("0"))
                self._expect_change_of(who, before)
                mine = {path: text for path, text in self.files.items() if path.startswith(f"{who}/")}
                assert mine == {path: text for path, text in self.first.items() if path.startswith(f"{who}/")}

    def _expect_change_of(self, who: str, before: dict[str, str]) -> None:
        """A move of one agent's turns changed its own files at most."""
        now = self._on_disk()
        changed = {path for path in before | now if before.get(path) != now.get(path)}
        assert all(path.startswith(f"{who}/") for path in changed), changed
        self.files = now

    def _is_idle(self, speaker: Speaker) -> bool:
        return speaker.about_to is None

    def _runs_elsewhere(self, speaker: Speaker) -> bool:
        return any(other.shell for other in self.speakers.values() if other is not speaker)

    def _write(self, speaker: Speaker) -> None:
        assert speaker.about_to is not None
        self._put(speaker.about_to)
        speaker.about_to = None

    def _put(self, name: str, text: str = "") -> None:
        self.count += 1
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text or f"text {self.count}")
        self.files[name] = text or f"text {self.count}"

    def _event(self, speaker: Speaker, kind: str, **fields: Any) -> Event:
        number = f"{speaker.id}-{speaker.prompts}" if speaker.agent in NUMBERED and speaker.prompts else ""
        return Event(kind, speaker.agent, speaker.id, cwd=str(self.root), **{"prompt_id": number, **fields})

    def _tell(self, speaker: Speaker, kind: str, **fields: Any) -> None:
        event = self._event(speaker, kind, **fields)
        speaker.told.append(event)
        handle(event)
        assert self._on_disk() == self.files

    def _on_disk(self) -> dict[str, str]:
        return {str(path.relative_to(self.root)): path.read_text() for path in self.root.rglob("*") if path.is_file()}


def _run(examples: int, steps: int) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Hooks,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


def test_agents_in_any_order() -> None:
    _run(25, 25)


@pytest.mark.deep
def test_agents_in_any_order_for_long() -> None:
    _run(2000, 60)
