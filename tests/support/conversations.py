"""Read a whole conversation of an agent, with the turns that were rewound or abandoned."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from snapstore.transcripts.lines import Source, opened
from snapstore.transcripts.model import ConversationTurn
from snapstore.transcripts.readers.read import read_outline, read_turn


@dataclass
class Branch:
    """Turns that the conversation has abandoned, and the number of the turn that they follow."""

    after: int
    turns: list[ConversationTurn]


@dataclass
class Conversation:
    """One conversation: its current line of turns, its branches, and its number of unknown and malformed lines."""

    agent: str
    session_id: str | None
    forked_from: str | None
    cwd: str | None
    title: str | None
    unknown_lines: int
    malformed_lines: int
    turns: list[ConversationTurn] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)


def read_conversation(path: str | os.PathLike[str], agent: str, session_id: str | None = None) -> Conversation:
    """Read a conversation; `session_id` is needed for opencode's database, which has many sessions."""
    with opened(path) as file:
        source = Source(file, 256 << 20)
        outline = read_outline(source, path, agent, session_id)
        conversation = Conversation(
            outline.agent,
            outline.session_id or session_id or _session_from(path, agent),
            outline.forked_from,
            outline.cwd,
            outline.title,
            outline.unknown,
            outline.malformed,
        )
        conversation.turns = [read_turn(source, outline, span, n) for n, span in enumerate(outline.line(), 1)]
        for after, spans in outline.branches():
            turns = [read_turn(source, outline, span, n) for n, span in enumerate(spans, after + 1)]
            conversation.branches.append(Branch(after, turns))
        return conversation


def _session_from(path: str | os.PathLike[str], agent: str) -> str | None:
    """Return the session id from the path: Cursor and Copilot name the file or its folder after the session."""
    name = os.path.basename(os.fsdecode(os.path.dirname(path) if agent == "copilot" else path))
    return name.removesuffix(".jsonl") or None if agent in ("cursor", "copilot") else None
