"""Gemini CLI's transcripts: JSONL of messages; older chats are one document.

A message may be written again under the same id.
"""

from __future__ import annotations

from snapstore.transcripts.lines import dump
from snapstore.transcripts.outline import Filler, Outline, get, moment, string, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.transcripts.lines import Ref
    from snapstore.transcripts.model import ConversationTurn
    from snapstore.transcripts.outline import Span

_TYPES = {"user", "gemini", "info", "error", "warning"}


class GeminiOutline(Outline):
    agent = "gemini"

    def __init__(self) -> None:
        super().__init__()
        self._where: dict[str, tuple[Span, int]] = {}  # per message: its turn, and its line number in the turn

    def feed(self, ref: Ref, record: dict[str, Any]) -> None:
        changes = record.get("$set")
        back = record.get("$rewindTo")
        if isinstance(back, str):
            self._rewind(back)
            self.keep(ref)
        elif isinstance(changes, dict):
            self.keep(ref)
            self.describe(changes)
        elif isinstance(record.get("id"), str):
            self._message(ref, record)
        elif "sessionId" in record:
            self.keep(ref)
            self.describe(record)
        else:
            self.unknown += 1
            self.keep(ref)

    def describe(self, fields: dict[str, Any]) -> None:
        self.session_id = string(fields, "sessionId") or self.session_id
        self.title = string(fields, "summary") or self.title
        folders = fields.get("directories")
        if isinstance(folders, list) and folders and isinstance(folders[0], str):
            self.cwd = folders[0]
        messages = fields.get("messages")
        if isinstance(messages, list) and messages:  # a new list replaces everything before
            if any(span.prompted for span in self.spans):
                self.cut(0)
            self._where.clear()
            for message in messages:
                if isinstance(message, dict):
                    self._message(dump(message), message)

    def _message(self, ref: Ref, record: dict[str, Any]) -> None:
        id = string(record, "id") or ""
        known = self._where.get(id)
        if known is not None:
            known[0].refs.append(ref)
            return
        kind = string(record, "type")
        if kind not in _TYPES:
            self.unknown += 1
        if kind == "user" and _is_said(record.get("content")):
            self.start(id)
        span = self.current()
        self._where[id] = (span, len(span.refs))
        self.keep(ref, spoken=kind == "gemini")

    def _rewind(self, message: str) -> None:
        """Remove this message and all after it.

        An unknown id removes everything, as in Gemini CLI itself.
        """
        found = self._where.get(message)
        if found is None:
            self.reached_outside = True
            self.cut(0)
        else:
            span, lines = found
            place = next((number for number, one in enumerate(self.spans) if one is span), len(self.spans))
            starts = span.key == message
            self.cut(place if starts else place + 1)
            if not starts:
                del span.refs[lines:]
        alive = {id(span): len(span.refs) for span in self.spans}
        self._where = {key: where for key, where in self._where.items() if where[1] < alive.get(id(where[0]), 0)}

    def filler(self, turn: ConversationTurn, span: Span) -> Filler:
        return GeminiFiller(turn, span)


def _is_said(content: Any) -> bool:
    """Return whether the user wrote the content.

    The result of a tool is also sent in the user's name.
    """
    if isinstance(content, list):
        return any(isinstance(part, str) or get(part, "functionResponse") is None for part in content)
    return content is not None


class GeminiFiller(Filler):
    def __init__(self, turn: ConversationTurn, span: Span) -> None:
        super().__init__(turn, span)
        self._messages: dict[str, dict[str, Any]] = {}

    def take(self, record: dict[str, Any]) -> None:
        id = record.get("id")
        if isinstance(id, str) and "$set" not in record:
            self._messages[id] = record  # the newest version, at the position of the first

    def finish(self) -> None:
        for id, record in self._messages.items():
            at = moment(record.get("timestamp"))
            self.time(at)
            if id == self.span.key:
                self.prompt(text_of(record.get("content")) or "", id, at)
            elif record.get("type") == "gemini":
                self._answer(id, record, at)
            elif record.get("type") == "info" and "cancel" in (text_of(record.get("content")) or "").lower():
                self.turn.interrupted = True
        super().finish()

    def _answer(self, id: str, record: dict[str, Any], at: str | None) -> None:
        thoughts, calls = record.get("thoughts"), record.get("toolCalls")
        for thought in thoughts if isinstance(thoughts, list) else []:
            self.think("\n".join(part for name in ("subject", "description") if (part := string(thought, name))))
        self.reply(text_of(record.get("content")), id, at)
        for call in calls if isinstance(calls, list) else []:
            key, status = get(call, "id"), get(call, "status")
            self.call(key, get(call, "name"), get(call, "args"))
            if isinstance(call, dict) and (call.get("result") is not None or status in ("error", "cancelled")):
                self.result(key, _result(call.get("result")), status in ("error", "cancelled"))
            if status == "cancelled":
                self.turn.interrupted = True


def _result(result: Any) -> str | None:
    """Return the text of function responses, or plain text."""
    parts = result if isinstance(result, list) else [result]
    texts = []
    for part in parts:
        answer = get(part, "functionResponse", "response")
        text = string(answer, "output") or string(answer, "error") or text_of(part)
        if text:
            texts.append(text)
    return "\n".join(texts) if texts else None
