"""Read Gemini CLI's transcripts: JSONL of messages, or one document for older chats.

A message may be written again under the same id. A resumed chat writes the whole conversation anew, as one list: first
one that holds nothing but the session's context, then one with the messages so far, under the ids that they had.
"""

from __future__ import annotations

import re

from snapstore.transcripts.lines import dump
from snapstore.transcripts.outline import Filler, Outline, Span, get, moment, string, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.transcripts.lines import Ref
    from snapstore.transcripts.model import ConversationTurn

    Key = tuple[str, str]

_TYPES = {"user", "gemini", "info", "error", "warning"}
_CONTEXT = ("<session_context>", "This is the Gemini CLI. We are setting up the context")
_EXIT = re.compile(r"^Exit Code: [1-9]", re.MULTILINE)


class GeminiOutline(Outline):
    agent = "gemini"

    def __init__(self) -> None:
        super().__init__()
        self._where: dict[Key, tuple[Span, int]] = {}  # per message: its turn, and its line number in the turn
        self._lines: dict[Key, list[Ref]] = {}  # the lines of each message, also of those that a new list replaced
        self._replaced: list[Span] = []  # turns before a list of the context alone: the next list has them again

    def line(self) -> list[Span]:
        if self._replaced and not any(span.prompted for span in self.spans):
            return self._replaced  # resumed, and ended before anything was said
        return self.spans

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
        if isinstance(messages, list) and messages:
            self._replace([message for message in messages if isinstance(message, dict)])

    def _replace(self, messages: list[dict[str, Any]]) -> None:
        """Take a new list of messages, which replaces everything before.

        Messages that were there keep their own lines, which say more than the list.
        """
        before = self._replaced + [span for span in self.spans if span.prompted]
        opening = [] if before else self.spans  # the file's header
        self.spans, self._replaced = opening, []
        self._where.clear()
        for message in messages:
            key = _key(message)
            known = self._lines.pop(key, [])
            self._message(known.pop(0) if known else dump(message), message)
            for ref in known:
                self._message(ref, message)
        keys = {span.key for span in self.spans if span.prompted}
        if not keys:
            self._replaced = before
            return
        left = [span for span in before if span.key not in keys]
        if left:
            self.left.append((sum(span.key in keys for span in before), left))

    def _message(self, ref: Ref, record: dict[str, Any]) -> None:
        key = _key(record)
        self._lines.setdefault(key, []).append(ref)
        known = self._where.get(key)
        if known is not None:
            known[0].refs.append(ref)
            return
        id, kind = key
        if kind not in _TYPES:
            self.unknown += 1
        if kind == "user" and _is_typed(record.get("content")):
            if self._replaced:  # the conversation does not go on from them
                self.left.append((0, self._replaced))
                self._replaced = []
            self.start(id)
        span = self.current()
        self._where[key] = (span, len(span.refs))
        self.keep(ref, spoken=kind == "gemini")

    def _rewind(self, message: str) -> None:
        """Remove this message and all after it.

        An unknown id removes everything, as in Gemini CLI itself.
        """
        found = next((where for key, where in self._where.items() if key[0] == message), None)
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


def _key(message: dict[str, Any]) -> Key:
    """Return what identifies a message: a call and its answer may share an id."""
    return string(message, "id") or "", string(message, "type") or ""


def _is_typed(content: Any) -> bool:
    """Return whether the user typed the content.

    Tool results and the session's context are user messages too.
    """
    if (text_of(content) or "").lstrip().startswith(_CONTEXT):
        return False
    if isinstance(content, list):
        return any(isinstance(part, str) or get(part, "functionResponse") is None for part in content)
    return content is not None


class GeminiFiller(Filler):
    def __init__(self, turn: ConversationTurn, span: Span) -> None:
        super().__init__(turn, span)
        self._messages: dict[Key, dict[str, Any]] = {}
        self._answered: set[str] = set()  # calls whose outcome Gemini CLI itself told

    def take(self, record: dict[str, Any]) -> None:
        if isinstance(record.get("id"), str) and "$set" not in record:
            self._messages[_key(record)] = record  # the newest version, at the position of the first

    def finish(self) -> None:
        for (id, kind), record in self._messages.items():
            at = moment(record.get("timestamp"))
            self.time(at)
            content = record.get("content")
            if kind == "user" and id == self.span.key:
                self.prompt(text_of(content) or "", id, at)
            elif kind == "gemini":
                self._answer(id, record, at)
            elif kind == "info" and "cancel" in (text_of(content) or "").lower():
                self.turn.interrupted = True
            for part in content if isinstance(content, list) else []:
                self._part(part)
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
                self._outcome(key, call.get("result"), status in ("error", "cancelled"))
                self._answered.add(str(key))
            if status == "cancelled":
                self.turn.interrupted = True

    def _part(self, part: Any) -> None:
        """Take a call or its result in the form in which a resumed chat has them."""
        call, answer = get(part, "functionCall"), get(part, "functionResponse")
        if isinstance(call, dict):
            self.call(call.get("id"), call.get("name"), call.get("args"))
        if isinstance(answer, dict) and str(answer.get("id")) not in self._answered:
            self._outcome(answer.get("id"), part, get(answer, "response", "error") is not None)

    def _outcome(self, id: Any, result: Any, failed: bool) -> None:
        text = _result(result)
        self.result(id, text, failed or _EXIT.search(text or "") is not None)


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
