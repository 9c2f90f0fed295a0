"""Read Cursor's transcripts: lines of `{role, message: {content: […]}}`.

The lines have neither ids nor times.
"""

from __future__ import annotations

from snapstore.transcripts.outline import Filler, Outline, get, moment, string, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.transcripts.lines import Ref
    from snapstore.transcripts.model import ConversationTurn
    from snapstore.transcripts.outline import Span


class CursorOutline(Outline):
    agent = "cursor"

    def feed(self, ref: Ref, record: dict[str, Any]) -> None:
        role = record.get("role")
        if role == "user" and _typed_text(record) is not None:
            self.start(None)
        elif role not in ("user", "assistant", "system", "tool") and record.get("type") != "turn_ended":
            self.unknown += 1
        self.keep(ref, spoken=role == "assistant")

    def filler(self, turn: ConversationTurn, span: Span) -> Filler:
        return CursorFiller(turn, span)


def _blocks(record: dict[str, Any]) -> list[Any]:
    content = get(record, "message", "content")
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _typed_text(record: dict[str, Any]) -> str | None:
    """Return what the user typed, or None if the line only has a tool's result."""
    blocks = _blocks(record)
    text = text_of([block for block in blocks if get(block, "type") == "text"]) or ""
    _, opened, rest = text.partition("<user_query>")
    if opened:
        text = rest.partition("</user_query>")[0].strip("\n")
    if text.strip() or any(get(block, "type") == "image" for block in blocks):
        return text
    return None


class CursorFiller(Filler):
    def take(self, record: dict[str, Any]) -> None:
        role = record.get("role")
        at = moment(record.get("timestamp"))
        self.time(at)
        if record.get("type") == "turn_ended" and record.get("status") in ("aborted", "cancelled"):
            self.turn.interrupted = True
        prompt = _typed_text(record) if role == "user" else None
        if prompt is not None:
            self.prompt(prompt, None, at)
        for block in _blocks(record) if role in ("user", "assistant", "tool") else []:
            kind = get(block, "type")
            if kind == "tool_use":
                self.call(block.get("id"), block.get("name"), block.get("input"))
            elif kind == "tool_result":
                failed = block.get("is_error") is True
                self.result(block.get("tool_use_id"), text_of(block.get("content")), failed)
            elif role == "assistant" and kind == "text":
                self.reply(block.get("text"), None, at)
            elif role == "assistant" and kind in ("thinking", "reasoning"):
                self.think(string(block, "thinking") or string(block, "text"))
