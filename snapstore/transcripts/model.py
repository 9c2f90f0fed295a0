"""Define the model of every agent's conversation.

A conversation has turns with a prompt, replies, thinking, tool calls and raw lines. The classes are plain because a
hook imports them: importing dataclasses takes as long as starting two interpreters.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EDIT, WRITE, SHELL, OTHER = "Edit", "Write", "shell", "other"


class Message:
    """A message. `at` is its time according to the agent (ISO 8601), or None."""

    __slots__ = ("at", "id", "role", "text")

    def __init__(self, role: str, text: str, id: str | None = None, at: str | None = None) -> None:
        self.role = role
        self.text = text
        self.id = id
        self.at = at


class ToolCall:
    """One tool call; a call that names several files (a patch) has one per file.

    `type` is Edit, Write, shell or other. `result` is the text the model saw. `outcome` is the structured result, if
    the agent keeps one (Claude Code's contains the file as it was before).
    """

    __slots__ = (
        "content",
        "file_path",
        "id",
        "input",
        "is_error",
        "name",
        "new_string",
        "old_string",
        "outcome",
        "result",
        "type",
    )

    def __init__(self, id: str | None, name: str, input: Any = None, type: str = OTHER) -> None:
        self.id = id
        self.name = name
        self.type = type
        self.input = input
        self.file_path: str | None = None
        self.old_string: str | None = None
        self.new_string: str | None = None
        self.content: str | None = None
        self.result: str | None = None
        self.outcome: Any = None
        self.is_error = False

    def fields(self) -> dict[str, Any]:
        """Return the call's known fields, as a turn's record stores them."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}


class ConversationTurn:
    """A prompt and everything that followed until the next one (S2-09).

    `index` counts from 1 on the turn's line, or back from -1 in the result of `last_turns`. `prompt` is None for lines
    before any prompt. `lines` are the bytes of the file, with their line endings.
    """

    __slots__ = (
        "compacted_before",
        "ended_at",
        "index",
        "interrupted",
        "lines",
        "messages",
        "prompt",
        "prompt_id",
        "replies",
        "started_at",
        "thinking",
        "tool_calls",
    )

    def __init__(self, index: int) -> None:
        self.index = index
        self.prompt: str | None = None
        self.prompt_id: str | None = None
        self.messages: list[Message] = []
        self.replies: list[str] = []
        self.thinking: list[str] = []
        self.tool_calls: list[ToolCall] = []
        self.lines: list[bytes] = []
        self.started_at: str | None = None
        self.ended_at: str | None = None
        self.interrupted = False
        self.compacted_before = False
