"""Agents' conversation files, read into one shape. Nothing here ever writes a file that an agent owns."""

from snapstore.transcripts.find import find_transcript
from snapstore.transcripts.follow import Follower
from snapstore.transcripts.reading import AGENTS, iter_turns, last_turns, read_conversation
from snapstore.transcripts.shape import Branch, Conversation, ConversationTurn, Message, ToolCall

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
