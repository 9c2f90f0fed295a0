"""Qwen Code's transcripts: lines in a tree, as Claude Code's, with messages as Gemini CLI's.

Each line is read as the line that Claude Code would have written.
"""

from __future__ import annotations

from snapstore.transcripts.outline import get, string
from snapstore.transcripts.readers.claude import ClaudeFiller, ClaudeOutline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.transcripts.lines import Ref
    from snapstore.transcripts.model import ConversationTurn
    from snapstore.transcripts.outline import Filler, Span

_TYPED = "real_user"  # the provenance of what the user typed


class QwenOutline(ClaudeOutline):
    agent = "qwen"

    def feed(self, ref: Ref, record: dict[str, Any]) -> None:
        super().feed(ref, as_claude(record))

    def filler(self, turn: ConversationTurn, span: Span) -> Filler:
        return QwenFiller(turn, span)


class QwenFiller(ClaudeFiller):
    def take(self, record: dict[str, Any]) -> None:
        super().take(as_claude(record))


def as_claude(record: dict[str, Any]) -> dict[str, Any]:
    """Return a line in Claude Code's form."""
    parts = get(record, "message", "parts")
    if not isinstance(parts, list):
        return record
    kind = string(record, "type")
    made = {**record, "type": "user" if kind == "tool_result" else kind}
    made["message"] = {
        "role": "assistant" if kind == "assistant" else "user",
        "content": [block for part in parts if (block := _block(part)) is not None],
    }
    if kind == "user" and string(record, "provenance") not in (_TYPED, None):
        made["isMeta"] = True
    return made


def _block(part: Any) -> dict[str, Any] | None:
    call, answer = get(part, "functionCall"), get(part, "functionResponse")
    if isinstance(call, dict):
        return {"type": "tool_use", "id": call.get("id"), "name": call.get("name"), "input": call.get("args")}
    if isinstance(answer, dict):
        error = get(answer, "response", "error")
        told = get(answer, "response", "output") if error is None else error
        about = {"type": "tool_result", "tool_use_id": answer.get("id"), "is_error": error is not None}
        return {**about, "content": told if isinstance(told, str) else ""}
    text = string(part, "text")
    if text is None:
        return None
    thought = isinstance(part, dict) and part.get("thought") is True
    return {"type": "thinking", "thinking": text} if thought else {"type": "text", "text": text}
