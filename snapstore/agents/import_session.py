"""Imports an existing conversation: its transcript is replayed into a session.

The transcript is read twice, one turn at a time: first for the file changes, then for the records.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager

from snapstore.agents.hooks.turn_record import conversation_fields
from snapstore.base.paths import has_unsafe_part
from snapstore.errors import Corrupt, SnapstoreError, Unknown, Unsafe, did_you_mean, similar
from snapstore.git.objects.commits import LONGEST_ANSWER
from snapstore.store.conversations import AgentSession, Conversations
from snapstore.store.state import check_name, timestamp
from snapstore.timeline.record.import_turns import REPLAYED, ImportedTurn, import_session, read_files
from snapstore.timeline.record.session import LONGEST_PATH
from snapstore.transcripts.lines import Source, lines, opened, parse
from snapstore.transcripts.locate import claude_sessions, find_transcript
from snapstore.transcripts.readers.read import AGENTS, described, filled, first_prompt, outlined
from snapstore.transcripts.replay.replay import OUTSIDE, Replay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from snapstore.api import Store
    from snapstore.timeline.record.import_turns import Imported
    from snapstore.transcripts.model import Conversation, ConversationTurn
    from snapstore.transcripts.outline import Outline
    from snapstore.transcripts.replay.replay import ReplayedTurn

_KEPT = 4 << 20  # bytes of lines cached between the two readings
_HEAD = 64 << 10
_LOOKED_AT = 50  # lines inspected to detect which agent wrote a transcript
_ID = re.compile(r"[A-Za-z0-9._-]+")

# Parts of the paths where agents keep their transcripts.
_FOLDERS = {
    "claude": (".claude/projects/",),
    "codex": (".codex/sessions/", ".codex/archived_sessions/"),
    "copilot": (".copilot/session-state/",),
    "cursor": (".cursor/projects/", "/agent-transcripts/"),
    "gemini": (".gemini/tmp/",),
    "opencode": ("/opencode/opencode.db",),
}


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

    def __init__(
        self, path: str, source: Source, outline: Outline, conversation: Conversation, root: bytes, home: str
    ) -> None:
        self._path = path
        self._title = conversation.title
        self._source = source
        self._outline = outline
        self._spans = outline.line()
        self.agent = conversation.agent
        self.session_id = conversation.session_id or ""
        branches = outline.branches()
        self.left_out_branches = len(branches)
        self.left_out_turns = sum(len(spans) for _, spans in branches)
        self.warnings: list[str] = []
        self._places = _Places(root, home, conversation.cwd)
        if conversation.cwd is not None and not self._places.holds_cwd:
            self.warnings.append(
                f"the conversation took place in {conversation.cwd}, not in {os.fsdecode(root)}: "
                "only files of the latter are taken"
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
            yield filled(self._source, self._outline, span, number)

    def _record_of(self, number: int, now: str) -> Any:
        def record() -> dict[str, Any]:
            turn = filled(self._source, self._outline, self._spans[number], number + 1)
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
        outline = outlined(source, path, agent, session_id)
        conversation = described(outline)
        conversation.session_id = conversation.session_id or session_id or _stem(path)
        if not any(span.prompted for span in outline.line()):
            raise Corrupt(
                f"there is no conversation of {agent} in {os.fspath(path)!r}",
                "Give the agent's own transcript, and say whose it is with `--agent NAME`.",
            )
        yield Import(os.fspath(path), source, outline, conversation, root, home)


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
    """Return the conversations Claude Code has stored for a project, newest first.

    Each comes with the details from Claude Code's index (S1-13, S1-15) and with the session that recorded the
    conversation, if there is one.
    """
    conversations = Conversations(store) if store is not None else None
    found = []
    for entry in claude_sessions(cwd):
        path = entry["fullPath"]
        try:
            changed = os.stat(path).st_mtime
            prompt = entry.get("firstPrompt") or first_prompt(path, "claude")
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


# Finding the file, and the agent that wrote it.


def locate(transcript: str, agent: str | None, cwd: str) -> tuple[str, str, str | None]:
    """Find a transcript by path or session id; return its path, agent and session id.

    The session id is None if a path was given.
    """
    if agent is not None and agent not in AGENTS:
        hint = did_you_mean(similar(agent, AGENTS), f"Known are {', '.join(AGENTS)}.")
        raise Unknown(f"no reader for the transcripts of {agent[:80]!r}", hint)
    if os.path.exists(transcript):
        return transcript, agent or detect(transcript), None
    if os.sep in transcript or transcript.endswith((".jsonl", ".json", ".db")):
        raise Unknown(f"there is no transcript {transcript[:200]!r}", "Check the path of the transcript.")
    # opencode has one database for all sessions, which exists for any id, so the other agents are tried first.
    for name in [agent] if agent else sorted(AGENTS, key=lambda name: name == "opencode"):
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
    for agent, parts in _FOLDERS.items():
        if any(part in full for part in parts):
            return agent
    with opened(path) as file:
        head = file.read(_HEAD)
        if head.startswith(b"SQLite format 3\0"):
            return "opencode"
        for number, (_, raw) in enumerate(lines(file)):
            found = _agent_of(parse(raw) or {})
            if found is not None:
                return found
            if number >= _LOOKED_AT:
                break
    if b'"projectHash"' in head or (b'"sessionId"' in head and b'"startTime"' in head):
        return "gemini"
    if b'"info"' in head and b'"messages"' in head:
        return "opencode"
    raise Corrupt(
        f"it cannot be told whose transcript {path!r} is",
        f"Say so: `--agent NAME`, one of {', '.join(AGENTS)}. If it is none of theirs, it cannot be imported.",
    )


def _agent_of(record: dict[str, Any]) -> str | None:
    kind = record.get("type")
    if "parentUuid" in record or (kind in ("summary", "file-history-snapshot") and "payload" not in record):
        return "claude"
    if kind in ("session_meta", "response_item", "event_msg", "turn_context") and "payload" in record:
        return "codex"
    if isinstance(kind, str) and "." in kind and isinstance(record.get("data"), dict):
        return "copilot"
    if "projectHash" in record or "$set" in record or ("sessionId" in record and "startTime" in record):
        return "gemini"
    if isinstance(record.get("info"), dict) and isinstance(record.get("messages"), list):
        return "opencode"
    if record.get("role") in ("user", "assistant") and isinstance(record.get("message"), dict):
        return "cursor"
    return None


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
        self._own = os.path.relpath(home, self._root).encode("utf-8", "surrogateescape")
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
        mine = path == self._own or path.startswith(self._own + b"/")
        if has_unsafe_part(path) or mine or len(path) + len(self._root) >= LONGEST_PATH:
            return None
        return path


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
