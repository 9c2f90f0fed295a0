"""Read Cline's transcripts: one JSON document of messages, in Anthropic's blocks.

The working folder is not in this file but in the session's own document next to it (`ID.json`).
"""

from __future__ import annotations

import json
import os
import re

from snapstore.errors import SnapstoreError
from snapstore.transcripts.lines import document, dump, open_file
from snapstore.transcripts.outline import Filler, Outline, get, moment, string, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.transcripts.model import ConversationTurn
    from snapstore.transcripts.outline import Span

_TYPED = re.compile(r"<user_input\b[^>]*>(.*)</user_input>", re.DOTALL)
_ENDING = ".messages.json"


class ClineOutline(Outline):
    agent = "cline"

    def describe(self, fields: dict[str, Any]) -> None:
        self.session_id = string(fields, "sessionId")
        messages = fields.get("messages")
        for message in messages if isinstance(messages, list) else []:
            if isinstance(message, dict):
                self._message(message)

    def _message(self, message: dict[str, Any]) -> None:
        role = message.get("role")
        if role == "user" and _typed_text(message) is not None:
            self.start(string(message, "id"))
        elif role not in ("user", "assistant"):
            self.unknown += 1
        self.keep(dump(message), spoken=role == "assistant")

    def describe_session(self, path: str) -> None:
        """Read the folder and title from the session's own document, if it exists."""
        name = os.path.basename(path)
        if not name.endswith(_ENDING):
            return
        session_file = os.path.join(os.path.dirname(path), f"{name.removesuffix(_ENDING)}.json")
        try:
            with open_file(session_file) as file:
                fields = document(file, session_file)
        except (SnapstoreError, OSError):
            return
        self.cwd = string(fields, "cwd")
        self.title = string(fields, "metadata", "title")

    def filler(self, turn: ConversationTurn, span: Span) -> Filler:
        return ClineFiller(turn, span)


def _blocks(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _typed_text(message: dict[str, Any]) -> str | None:
    """Return what the user typed, None for tool results and Cline's own messages."""
    if get(message, "metadata", "displayRole") == "system":
        return None
    blocks = _blocks(message)
    text = text_of([block for block in blocks if get(block, "type") == "text"]) or ""
    found = _TYPED.search(text)
    if found is not None:
        return found[1]
    return text if text.strip() or any(get(block, "type") == "image" for block in blocks) else None


class ClineFiller(Filler):
    def take(self, record: dict[str, Any]) -> None:
        role, id, at = record.get("role"), string(record, "id"), moment(record.get("ts"))
        self.time(at)
        text = _typed_text(record) if role == "user" else None
        if text is not None:
            self.prompt(text, id, at)
        for block in _blocks(record):
            kind = get(block, "type")
            if kind == "tool_use":
                self.call(block.get("id"), block.get("name"), block.get("input"))
            elif kind == "tool_result":
                self._result(block)
            elif role == "assistant" and kind == "text":
                self.reply(block.get("text"), id, at)
            elif role == "assistant" and kind == "thinking":
                self.think(block.get("thinking"))

    def _result(self, block: dict[str, Any]) -> None:
        """Read a tool's result: `{query, result, success}` or a list of those, also as JSON."""
        content = block.get("content")
        try:
            result = json.loads(content) if isinstance(content, str) else content
        except (ValueError, RecursionError):
            result = content
        parts = result if isinstance(result, list) else [result]
        failed = block.get("is_error") is True or any(get(part, "success") is False for part in parts)
        texts = [found for part in parts if (found := string(part, "result") or string(part, "error"))]
        self.result(block.get("tool_use_id"), "\n".join(texts) or text_of(content), failed)
