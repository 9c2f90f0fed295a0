"""Import an existing conversation: its transcript is replayed into a session.

The transcript is read twice, one turn at a time: first for the file changes, then for the records.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager

from snapstore.agents.hooks.turn_record import conversation_fields
from snapstore.agents.known.registry import load, load_all
from snapstore.base.agent_folders import CONVERSATION_FOLDERS
from snapstore.base.text import timestamp
from snapstore.errors import Corrupt, SnapstoreError, Unknown, Unsafe, did_you_mean, similar
from snapstore.git.objects.commits import LONGEST_ANSWER
from snapstore.store.conversations import AgentSession, Conversations
from snapstore.store.locations import stores_below
from snapstore.store.state import check_name
from snapstore.timeline.record.import_turns import REPLAYED, ImportedTurn, import_session, read_files
from snapstore.transcripts.lines import Source, opened
from snapstore.transcripts.locate import find_transcript
from snapstore.transcripts.readers.detect import detect_agent
from snapstore.transcripts.readers.read import AGENTS, first_prompt, read_outline, read_turn
from snapstore.transcripts.replay.replay import OUTSIDE, Replay
from snapstore.worktree.ignore.policy import CapturePolicy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from snapstore.api import Store
    from snapstore.timeline.record.import_turns import Imported
    from snapstore.transcripts.model import ConversationTurn
    from snapstore.transcripts.outline import Outline
    from snapstore.transcripts.replay.replay import ReplayedTurn

_KEPT = 4 << 20  # bytes of lines cached between the two readings
_ID = re.compile(r"[A-Za-z0-9._-]+")


class TurnToImport:
    """One turn to import: its prompt, its files before and after, and unknown paths."""

    __slots__ = ("changes", "prompt", "unknown")

    def __init__(self, prompt: str, replayed: ReplayedTurn) -> None:
        self.prompt = prompt
        self.unknown = replayed.unknown
        self.changes = {path: (_bytes(before), _bytes(after)) for path, (before, after) in replayed.changes.items()}

    def letter(self, path: bytes) -> str | None:
        """Return how the turn changed a file: A, M or D, or None if it did not."""
        before, after = self.changes[path]
        if before == after:
            return None
        return "A" if before is None else "D" if after is None else "M"


class Import:
    """A transcript replayed over a root, before anything is written.

    While the import is open (`prepare`), `carry_out` makes a session from it.
    """

    def __init__(self, path: str, source: Source, outline: Outline, session_id: str, root: bytes, home: str) -> None:
        self._path = path
        self._title = outline.title
        self._source = source
        self._outline = outline
        self._spans = outline.line()
        self.agent = outline.agent
        self.session_id = session_id
        branches = outline.branches()
        self.left_out_branches = len(branches)
        self.left_out_turns = sum(len(spans) for _, spans in branches)
        self.warnings: list[str] = []
        self._places = _Places(root, home, outline.cwd)
        if outline.cwd is not None and not self._places.holds_cwd:
            self.warnings.append(
                f"the conversation took place in {outline.cwd}, not in {os.fsdecode(root)}: "
                "only files of the latter are imported"
            )
        replay = Replay(self.agent, self._places.below)
        prompts, answers = [], []
        for turn in self._turns():
            prompts.append(turn.prompt or "")
            answers.append(turn.replies[-1][: LONGEST_ANSWER + 1] if turn.replies else "")
            replay.take(turn)
        self.verified, self.moved_on = replay.settle(read_files(root, replay.paths))
        self.turns = [TurnToImport(*row) for row in zip(prompts, replay.turns, strict=True)]
        self._answers = answers

    def session_name(self) -> str:
        """Return the default session name: the agent and the start of its session id."""
        plain = "".join(_ID.findall(self.session_id))[:8].strip(".-")
        return check_name(f"{self.agent}-{plain}" if plain else f"{self.agent}-import")

    def recorded_in(self, store: Store) -> str | None:
        """Return the session in which hooks recorded this conversation, or None."""
        try:
            return Conversations(store).session_of(self.session_id)
        except Unsafe:  # an id that no hook would have accepted
            return None

    def carry_out(self, store: Store, name: str) -> Imported:
        now = timestamp(store.clock())
        turns = [
            ImportedTurn(turn.prompt, self.agent, turn.changes, self._record_of(number, now), answer)
            for number, (turn, answer) in enumerate(zip(self.turns, self._answers, strict=True))
        ]
        return import_session(store, check_name(name), turns, self._known(store, name, now))

    def _known(self, store: Store, name: str, now: str) -> AgentSession | None:
        """Return the agent session, so that hooks and forks find it later.

        Return None if the transcript has no usable session id.
        """
        try:
            id = check_name(self.session_id, "agent session")
        except Unsafe:
            return None
        known = AgentSession(id=id, agent=self.agent, session=name, created=now, title=self._title)
        known.transcript, known.cwd = os.path.abspath(self._path), os.fsdecode(store.root)
        return known

    def _turns(self) -> Iterator[ConversationTurn]:
        for number, span in enumerate(self._spans, 1):
            yield read_turn(self._source, self._outline, span, number)

    def _record_of(self, number: int, now: str) -> Any:
        def record() -> dict[str, Any]:
            turn = read_turn(self._source, self._outline, self._spans[number], number + 1)
            return self._record(turn, self.turns[number], now)

        return record

    def _record(self, turn: ConversationTurn, own: TurnToImport, now: str) -> dict[str, Any]:
        said = next((message for message in turn.messages if message.role == "user"), None)
        return {
            "prompt": own.prompt,
            **conversation_fields(turn),
            "agent": self.agent,
            "started_at": _moment(turn.started_at) or now,
            "ended_at": _moment(turn.ended_at) or now,
            "status": "interrupted" if turn.interrupted else "done",
            "found_by": REPLAYED,
            # Undoing the turn reports these files again: they are left unchanged.
            "left_out": [{"path": path, "why": why} for path, why in own.unknown if path and why != OUTSIDE],
            "first_seen": [],
            "unknown": [{"path": path, "why": why} for path, why in own.unknown],
            "imported": True,
            "conversation": {
                "agent_session": self.session_id,
                "prompt_id": turn.prompt_id,
                "message_id": said.id if said is not None else None,
            },
        }


@contextmanager
def prepare(
    path: str | os.PathLike[str], agent: str, session_id: str | None, root: bytes, home: str
) -> Iterator[Import]:
    """Read and replay a transcript; raise Corrupt if it holds no conversation."""
    with opened(path) as file:
        source = Source(file, _KEPT)
        outline = read_outline(source, path, agent, session_id)
        if not any(span.prompted for span in outline.line()):
            raise Corrupt(
                f"there is no conversation of {agent} in {os.fspath(path)!r}",
                "Give the agent's own transcript, and name the agent with `--agent NAME`.",
            )
        yield Import(os.fspath(path), source, outline, outline.session_id or session_id or _stem(path), root, home)


class StoredConversation:
    """A conversation stored by an agent, and the session that recorded it, if any."""

    __slots__ = ("id", "messages", "modified", "path", "prompt", "session")

    def __init__(
        self, id: str, path: str, *, prompt: str, modified: str, messages: int | None, session: str | None
    ) -> None:
        self.id = id
        self.path = path
        self.prompt = prompt  # the first prompt
        self.modified = modified
        self.messages = messages  # the number of messages, if the agent's index has it
        self.session = session


def importable(store: Store | None, cwd: str) -> list[StoredConversation]:
    """Return the conversations that agents have stored for a project, newest first.

    Each comes with the details from the agent's index (S1-13, S1-15) and with the session that recorded the
    conversation, if there is one. Only Claude Code's conversations can be listed.
    """
    conversations = Conversations(store) if store is not None else None
    found = []
    for agent, entry in _stored(cwd):
        path = entry["fullPath"]
        try:
            changed = os.stat(path).st_mtime
            prompt = entry.get("firstPrompt") or first_prompt(path, agent)
        except (OSError, SnapstoreError):
            continue  # deleted meanwhile, or not a transcript
        id, count = entry["sessionId"], entry.get("messageCount")
        found.append(
            StoredConversation(
                id,
                path,
                prompt=str(prompt),
                modified=timestamp(changed),
                messages=count if isinstance(count, int) else None,
                session=conversations.session_of(id) if conversations is not None else None,
            )
        )
    return sorted(found, key=lambda kept: kept.modified, reverse=True)


def _stored(cwd: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for agent in load_all():
        if agent.conversations is not None and agent.conversations.stored is not None:
            yield from ((agent.name, entry) for entry in agent.conversations.stored(cwd))


# Finding the file, and the agent that wrote it.


def locate(transcript: str, agent: str | None, cwd: str) -> tuple[str, str, str | None]:
    """Find a transcript by path or session id; return its path, agent and session id.

    The session id is None if a path was given.
    """
    if agent is not None and agent not in AGENTS:
        hint = did_you_mean(similar(agent, AGENTS), f"Known are {', '.join(AGENTS)}.")
        raise Unknown(f"snapstore cannot read the transcripts of {agent[:80]!r}", hint)
    if os.path.exists(transcript):
        return transcript, agent or detect(transcript), None
    if os.sep in transcript or transcript.endswith((".jsonl", ".json", ".db")):
        raise Unknown(f"there is no transcript {transcript[:200]!r}", "Check its path.")
    # A database for all sessions exists for any id, so the agents with one file per session are tried first.
    for name in [agent] if agent else sorted(AGENTS, key=_is_in_one_file):
        try:
            return find_transcript(name, transcript, cwd), name, transcript
        except Unknown:
            continue
    raise Unknown(
        f"no agent has a session {transcript[:80]!r} here",
        "Give the path of its transcript, or the whole id as the agent shows it.",
    )


def detect(path: str) -> str:
    """Detect which agent wrote a transcript, from its path or its content."""
    full = os.path.abspath(path)
    for agent in load_all():
        if agent.conversations is not None:
            usual = [f"/{folder.usual}/" for folder in CONVERSATION_FOLDERS[agent.name]]
            if any(part in full for part in (*agent.conversations.parts, *usual)):
                return agent.name
    found = detect_agent(path)
    if found is not None:
        return found
    raise Corrupt(
        f"cannot tell which agent wrote the transcript {path!r} is",
        f"Name the agent: `--agent NAME`, one of {', '.join(AGENTS)}. Transcripts of other agents cannot be imported.",
    )


def _is_in_one_file(agent: str) -> bool:
    conversations = load(agent).conversations
    return conversations is not None and conversations.in_one_file


def _stem(path: str | os.PathLike[str]) -> str:
    folder, name = os.path.split(os.path.abspath(os.fspath(path)))
    return os.path.basename(folder) if name == "events.jsonl" else name.partition(".")[0]


# Paths in a transcript.


class _Places:
    """Maps a path named in a transcript to a path below the root.

    The disk is not consulted per path: a path that reaches the root only through a link or `..` counts as outside.
    """

    def __init__(self, root: bytes, home: str, cwd: str | None) -> None:
        self._root = os.fsdecode(root).rstrip("/")
        self._policy = CapturePolicy(root, store=stores_below(home, root))
        self._cwd = (cwd or self._root).rstrip("/")
        real = os.path.realpath(self._cwd) if "\0" not in self._cwd else ""
        self.holds_cwd = real == self._root or real.startswith(self._root + "/")
        # The conversation may know the root by another path, through a symbolic link.
        below = real[len(self._root) :]
        alias = self._cwd.removesuffix(below) if self.holds_cwd and self._cwd.endswith(below) else None
        self._tops = tuple(dict.fromkeys(f"{top}/" for top in (self._root, alias) if top is not None))

    def below(self, name: str) -> bytes | None:
        full = name if name.startswith("/") else f"{self._cwd}/{name.removeprefix('./')}"
        top = next((top for top in self._tops if full.startswith(top)), None)
        if top is None:
            return None
        try:
            path = os.fsencode(full[len(top) :])
        except UnicodeEncodeError:
            return None
        return None if self._policy.is_unsafe(path) else path


# Values for a record.


def _bytes(text: str | None) -> bytes | None:
    return text.encode() if text is not None else None


def _moment(text: str | None) -> str | None:
    """Convert a transcript's time to a record's format; None if it is not a time."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text or "")
        return timestamp((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError, OSError):
        return None
