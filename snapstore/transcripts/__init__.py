"""Agents' conversation files, read into one shape. Nothing here ever writes a file that an agent owns.

Names are imported when they are used: a hook that only reads the last turn should not wait for the rest."""

from __future__ import annotations

_ROOM = "snapstore.transcripts"
_PLACES = {
    "find_transcript": f"{_ROOM}.locate",
    "Follower": f"{_ROOM}.follow",
    **dict.fromkeys(("AGENTS", "iter_turns", "last_turns", "read_conversation"), f"{_ROOM}.readers.read"),
    **dict.fromkeys(("Branch", "Conversation", "ConversationTurn", "Message", "ToolCall"), f"{_ROOM}.model"),
}

__all__ = [
    "AGENTS",
    "Branch",
    "Conversation",
    "ConversationTurn",
    "Follower",
    "Message",
    "ToolCall",
    "find_transcript",
    "iter_turns",
    "last_turns",
    "read_conversation",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.transcripts.follow import Follower
    from snapstore.transcripts.locate import find_transcript
    from snapstore.transcripts.model import Branch, Conversation, ConversationTurn, Message, ToolCall
    from snapstore.transcripts.readers.read import AGENTS, iter_turns, last_turns, read_conversation


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {_ROOM!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
