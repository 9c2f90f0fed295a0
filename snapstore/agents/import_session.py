"""A timeline from a conversation that is there already: its transcript found, replayed, and made a session.

The transcript is read twice, one turn at a time: for the work on files, and again for the records.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager

from snapstore.agents.hooks.turn_record import conversation_fields
from snapstore.base.paths import unsafe_parts
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

_KEPT = 4 << 20  # bytes of lines kept between the readings
_HEAD = 64 << 10
_LOOKED_AT = 50  # lines, to tell whose a transcript is
_ID = re.compile(r"[A-Za-z0-9._-]+")

# Where agents keep their transcripts: parts of the path.
_FOLDERS = {
    "claude": (".claude/projects/",),
    "codex": (".codex/sessions/", ".codex/archived_sessions/"),
    "copilot": (".copilot/session-state/",),
    "cursor": (".cursor/projects/", "/agent-transcripts/"),
    "gemini": (".gemini/tmp/",),
    "opencode": ("/opencode/opencode.db",),
}


class TurnToImport:
    """One turn as it will be: its prompt, its files (before and after), and what is not known of it."""

    __slots__ = ("changes", "prompt", "unknown")

    def __init__(self, prompt: str, replayed: ReplayedTurn) -> None:
        self.prompt = prompt
        self.unknown = replayed.unknown
        self.changes = {path: (_bytes(before), _bytes(after)) for path, (before, after) in replayed.changes.items()}

    def letter(self, path: bytes) -> str | None:
        """How the turn changed a file: A, M, D, or None where it left it as it was."""
        before, after = self.changes[path]
        if before == after:
            return None
        return "A" if before is None else "D" if after is None else "M"


class Import:
    """A transcript, replayed over a root: all that there is to know before anything is made. While it is open
    (`prepare`), `carry_out` makes a session of it."""

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
        """What the session is called when nobody says: the agent and the beginning of its session's id."""
        plain = "".join(_ID.findall(self.session_id))[:8].strip(".-")
        return check_name(f"{self.agent}-{plain}" if plain else f"{self.agent}-import")

    def recorded_in(self, store: Store) -> str | None:
        """The session that hooks have recorded the same conversation in."""
        try:
            return Conversations(store).session_of(self.session_id)
        except Unsafe:  # an id that no hook would have taken
            return None

    def carry_out(self, store: Store, name: str) -> Imported:
        now = timestamp(store.clock())
        turns = [
            ImportedTurn(turn.prompt, self.agent, turn.changes, self._record_of(number, now), answer)
            for number, (turn, answer) in enumerate(zip(self.turns, self._answers, strict=True))
        ]
        return import_session(store, check_name(name), turns, self._known(store, name, now))

    def _known(self, store: Store, name: str, now: str) -> AgentSession | None:
        """The agent's session, for hooks and forks to find; None where it has no id that one could go by."""
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
            # Said again when the turn is undone: these files stay as they are.
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
    """Reads and replays a transcript. Raises Corrupt where there is no conversation in it."""
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


class KeptConversation:
    """A conversation that an agent has kept, and the session that has recorded it."""

    __slots__ = ("id", "messages", "modified", "path", "prompt", "session")

    def __init__(
        self, id: str, path: str, *, prompt: str, modified: str, messages: int | None, session: str | None
    ) -> None:
        self.id = id
        self.path = path
        self.prompt = prompt  # the first one
        self.modified = modified
        self.messages = messages  # how many, where the agent's index knows it
        self.session = session


def importable(store: Store | None, cwd: str) -> list[KeptConversation]:
    """The conversations that Claude Code has kept for a project, newest first, with what its index knows of them
    (S1-13, S1-15), and the session that has recorded each, if one has."""
    conversations = Conversations(store) if store is not None else None
    found = []
    for entry in claude_sessions(cwd):
        path = entry["fullPath"]
        try:
            changed = os.stat(path).st_mtime
            prompt = entry.get("firstPrompt") or first_prompt(path, "claude")
        except (OSError, SnapstoreError):
            continue  # gone meanwhile, or no transcript
        id, count = entry["sessionId"], entry.get("messageCount")
        found.append(
            KeptConversation(
                id,
                path,
                prompt=str(prompt),
                modified=timestamp(changed),
                messages=count if isinstance(count, int) else None,
                session=conversations.session_of(id) if conversations is not None else None,
            )
        )
    return sorted(found, key=lambda kept: kept.modified, reverse=True)


# Which file, and whose.


def locate(transcript: str, agent: str | None, cwd: str) -> tuple[str, str, str | None]:
    """The file, its agent and, where one was asked for, the id of the session in it: from a path or a session's id."""
    if agent is not None and agent not in AGENTS:
        hint = did_you_mean(similar(agent, AGENTS), f"Known are {', '.join(AGENTS)}.")
        raise Unknown(f"no reader for the transcripts of {agent[:80]!r}", hint)
    if os.path.exists(transcript):
        return transcript, agent or detect(transcript), None
    if os.sep in transcript or transcript.endswith((".jsonl", ".json", ".db")):
        raise Unknown(f"there is no transcript {transcript[:200]!r}", "Check the path of the transcript.")
    # opencode's file is there whatever the session: the others first.
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
    """Whose transcript a file is: where it lies tells, or what is in it."""
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


# Names in a transcript.


class _Places:
    """Which path below the root a name in the transcript means. Nothing is looked up on disk for it: a name that
    would need a link or `..` to get there is another's."""

    def __init__(self, root: bytes, home: str, cwd: str | None) -> None:
        self._root = os.fsdecode(root).rstrip("/")
        self._own = os.path.relpath(home, self._root).encode("utf-8", "surrogateescape")
        self._cwd = (cwd or self._root).rstrip("/")
        real = os.path.realpath(self._cwd) if "\0" not in self._cwd else ""
        self.holds_cwd = real == self._root or real.startswith(self._root + "/")
        # The conversation may know the root by another name, through a link.
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
        if unsafe_parts(path) or mine or len(path) + len(self._root) >= LONGEST_PATH:
            return None
        return path


# What goes into a record.


def _bytes(text: str | None) -> bytes | None:
    return text.encode() if text is not None else None


def _moment(text: str | None) -> str | None:
    """A time of the transcript in the form of a record, None where it is none."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text or "")
        return timestamp((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError, OSError):
        return None
