"""Read a transcript in two passes: first the lines of each turn, then their text.

The first pass keeps positions, not text, so its memory use grows with the number of lines and not with their bytes. The
second pass reads one turn at a time. Both passes use the same small functions of the agent's reader to interpret a
line.
"""

from __future__ import annotations

from snapstore.transcripts.lines import clean
from snapstore.transcripts.model import ConversationTurn, Message, ToolCall
from snapstore.transcripts.tool_calls import classify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.transcripts.lines import Ref


class Span:
    """The lines of one turn.

    `key` is the id of the line that starts the turn, if lines have ids.
    """

    __slots__ = ("compacted", "ended", "key", "parent", "prompted", "refs", "spoken")

    def __init__(self, key: str | None = None, prompted: bool = False) -> None:
        self.key = key
        self.prompted = prompted
        self.refs: list[Ref] = []
        self.compacted = False
        self.ended = False
        self.spoken = False  # whether the agent said or did something
        self.parent: Span | None = None


class Outline:
    """The turns of a conversation that is a list whose end can be cut off.

    Conversations that are trees override `line`.
    """

    agent = ""

    def __init__(self) -> None:
        self.session_id: str | None = None
        self.forked_from: str | None = None
        self.cwd: str | None = None
        self.title: str | None = None
        self.unknown = 0
        self.malformed = 0
        self.is_tail = False  # whether the lines begin in the middle of the file
        self.reached_outside = False  # a line refers to a missing line: in a tail, to one before the tail
        self.spans: list[Span] = []
        self.left: list[tuple[int, list[Span]]] = []
        self._compacted = False

    def feed(self, ref: Ref, record: dict[str, Any]) -> None:
        raise NotImplementedError

    def feed_malformed(self, ref: Ref) -> None:
        self.malformed += 1
        self.keep(ref)

    def keep(self, ref: Ref, spoken: bool = False) -> None:
        span = self.current()
        span.refs.append(ref)
        span.spoken = span.spoken or spoken

    def line(self) -> list[Span]:
        return self.spans

    def branches(self) -> list[tuple[int, list[Span]]]:
        return self.left

    def filler(self, turn: ConversationTurn, span: Span) -> Filler:
        raise NotImplementedError

    # For conversations that are lists.

    def current(self) -> Span:
        if not self.spans:
            self.spans.append(Span())
        return self.spans[-1]

    def start(self, key: str | None, prompted: bool = True) -> Span:
        """Start a new turn.

        Lines before the first prompt (the session's header) belong to the first turn.
        """
        span = Span(key, prompted)
        span.compacted, self._compacted = self._compacted, False
        before = self.spans[0] if len(self.spans) == 1 else None
        if before and not (before.prompted or before.spoken or self.is_tail):
            span.refs = self.spans.pop().refs
        self.spans.append(span)
        return span

    def compact(self) -> None:
        self._compacted = True

    def cut(self, kept: int) -> None:
        """Abandon all turns after the first `kept`; the conversation continues there."""
        if kept < len(self.spans):
            self.left.append((kept, self.spans[kept:]))
            del self.spans[kept:]


class Filler:
    """Fills one turn from the turn's lines, in order."""

    def __init__(self, turn: ConversationTurn, span: Span) -> None:
        self.turn = turn
        self.span = span
        self._calls: dict[str, list[ToolCall]] = {}
        self._waiting: dict[str, tuple[str | None, bool, Any]] = {}

    def take(self, record: dict[str, Any]) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        for id, answer in self._waiting.items():  # with parallel writers, a result may come before its call
            for call in self._calls.get(id, ()):
                call.result, call.is_error, call.outcome = answer

    # The parts of a turn.

    def prompt(self, text: str, id: str | None, at: str | None) -> None:
        text = clean(text)
        turn = self.turn
        turn.prompt = text if turn.prompt is None else f"{turn.prompt}\n\n{text}"
        turn.prompt_id = turn.prompt_id or id
        turn.messages.append(Message("user", text, id, at))

    def reply(self, text: Any, id: str | None, at: str | None) -> None:
        if isinstance(text, str) and text.strip():
            text = clean(text)
            self.turn.replies.append(text)
            self.turn.messages.append(Message("assistant", text, id, at))

    def think(self, text: Any) -> None:
        if isinstance(text, str) and text.strip():
            self.turn.thinking.append(clean(text))

    def call(self, id: Any, name: Any, input: Any) -> None:
        id = id if isinstance(id, str) else None
        if id is not None and id in self._calls:
            return
        made = classify(id, clean(name) if isinstance(name, str) else "", input)
        self.turn.tool_calls.extend(made)
        if id is not None:
            self._calls[id] = made

    def result(self, id: Any, text: str | None, is_error: bool, outcome: Any = None) -> None:
        if isinstance(id, str):
            self._waiting[id] = (clean(text) if text is not None else None, is_error, outcome)

    def time(self, at: str | None) -> None:
        if at is not None:
            self.turn.started_at = self.turn.started_at or at
            self.turn.ended_at = at


# Readers for values of any type.


def get(record: Any, *names: str) -> Any:
    """Return record[a][b]…, or None if a value on the way is not an object."""
    for name in names:
        if not isinstance(record, dict):
            return None
        record = record.get(name)
    return record


def string(record: Any, name: str, *more: str) -> str | None:
    """Return a nested value like `get`, but only a non-empty string.

    The lookup is written out because it runs several times per line.
    """
    value = record.get(name) if isinstance(record, dict) else None
    for further in more:
        value = value.get(further) if isinstance(value, dict) else None
    return value if isinstance(value, str) and value else None


def text_of(content: Any) -> str | None:
    """Return the text of a message: a string, or blocks with a `text` each."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return None
    parts = [part if isinstance(part, str) else string(part, "text") for part in content]
    return "\n".join(part for part in parts if part)


def moment(value: Any) -> str | None:
    """Return a time as ISO text; agents write ISO text or milliseconds."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 253_402_300_799_000:
        from datetime import UTC, datetime

        return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return None
