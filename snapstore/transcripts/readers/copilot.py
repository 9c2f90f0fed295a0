"""Read Copilot CLI's transcripts: events.jsonl, a list of events.

Each event has the form `{type, data, id, timestamp, parentId}`.
"""

from __future__ import annotations

from snapstore.transcripts.outline import Filler, Outline, get, moment, string, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.transcripts.lines import Ref
    from snapstore.transcripts.model import ConversationTurn
    from snapstore.transcripts.outline import Span

_FAMILIES = {
    *("session", "user", "assistant", "tool", "system", "hook", "subagent", "skill", "permission", "abort"),
    *("elicitation", "user_input", "pending_messages", "command", "commands", "mcp", "external_tool"),
}


class CopilotOutline(Outline):
    agent = "copilot"

    def __init__(self) -> None:
        super().__init__()
        self._where: dict[str, tuple[int, int]] = {}  # per event: its turn, and its line number in the turn

    def feed(self, ref: Ref, record: dict[str, Any]) -> None:
        kind = record.get("type")
        data = record.get("data")
        family = kind.partition(".")[0] if isinstance(kind, str) else ""
        if family not in _FAMILIES:
            self.unknown += 1
        if kind in ("session.start", "session.resume"):
            self.session_id = self.session_id or string(data, "sessionId")
            self.cwd = self.cwd or string(data, "context", "cwd") or string(data, "cwd")
        elif kind == "session.title_changed":
            self.title = string(data, "title") or self.title
        elif kind == "session.compaction_complete":
            self.compact()
        elif kind == "session.snapshot_rewind":
            self._rewind(string(data, "upToEventId"))
        elif kind == "user.message" and not _is_aside(record):
            self.start(string(record, "id"))
        id = string(record, "id")
        span = self.current()
        if id is not None:
            self._where[id] = (len(self.spans) - 1, len(span.refs))
        self.keep(ref, spoken=family in ("assistant", "tool"))

    def _rewind(self, id: str | None) -> None:
        """Remove this event and all after it."""
        found = self._where.get(id) if id else None
        if found is None:
            self.reached_outside = True
            return
        place, lines = found
        starts = place < len(self.spans) and self.spans[place].key == id
        self.cut(place if starts else place + 1)
        if not starts:
            del self.spans[place].refs[lines:]
        self._where = {key: where for key, where in self._where.items() if where < found}

    def filler(self, turn: ConversationTurn, span: Span) -> Filler:
        return CopilotFiller(turn, span)


def _is_aside(record: dict[str, Any]) -> bool:
    """Return whether a message is to or from a subagent."""
    data = record.get("data")
    return bool(record.get("agentId") or get(data, "parentToolCallId"))


class CopilotFiller(Filler):
    def take(self, record: dict[str, Any]) -> None:
        kind, data = record.get("type"), record.get("data")
        at = moment(record.get("timestamp"))
        if not isinstance(kind, str) or not isinstance(data, dict):
            return
        if not kind.startswith("session."):
            self.time(at)
        if kind == "user.message" and string(record, "id") == self.span.key:
            self.prompt(text_of(data.get("content")) or "", self.span.key, at)
        elif kind == "assistant.message":
            self._answer(record, data, at)
        elif kind == "assistant.reasoning" and not _is_aside(record):
            self.think(data.get("content"))
        elif kind == "tool.execution_start":
            self.call(data.get("toolCallId"), data.get("toolName"), data.get("arguments"))
        elif kind == "tool.execution_complete":
            self._complete(data)
        elif kind == "abort":
            self.turn.interrupted = True

    def _answer(self, record: dict[str, Any], data: dict[str, Any], at: str | None) -> None:
        if not _is_aside(record):
            if not self.turn.thinking or self.turn.thinking[-1] != data.get("reasoningText"):
                self.think(data.get("reasoningText"))
            self.reply(data.get("content"), string(data, "messageId") or string(record, "id"), at)
        requests = data.get("toolRequests")
        for request in requests if isinstance(requests, list) else []:
            self.call(get(request, "toolCallId"), get(request, "name"), get(request, "arguments"))

    def _complete(self, data: dict[str, Any]) -> None:
        failed = data.get("success") is False
        result = data.get("result")
        text = string(result, "content") or text_of(result) or string(data, "error", "message")
        self.result(data.get("toolCallId"), text, failed, result if isinstance(result, dict) else None)
