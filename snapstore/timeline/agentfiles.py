"""The conversations that agents keep in the user's home, where that lies below a root.

They are the agents' own: written only by them, and never by a move (C1, S1-09, S4-01). In `~/.claude`, in a folder of
settings that it is a link into, or in a watched home, a scan would find them changed by every turn, and an undo would
cut them. So they are never captured, as if `never_capture` said so.
"""

from __future__ import annotations

import os

from snapstore.timeline.meant import pattern_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The variable that moves an agent's folder, where it is otherwise, the folder in it, and what there is a conversation.
_KEPT = (
    ("CLAUDE_CONFIG_DIR", ".claude", "projects", ("*.jsonl", "sessions-index.json")),
    ("CODEX_HOME", ".codex", "sessions", ("*",)),
    ("CODEX_HOME", ".codex", "archived_sessions", ("*",)),
    ("COPILOT_HOME", ".copilot", "session-state", ("*",)),
    ("", ".cursor", "projects", ("agent-transcripts/",)),
    ("", ".gemini", "tmp", ("chats/",)),
    ("XDG_DATA_HOME", ".local/share", "opencode", ("opencode.db*", "storage/")),
)


def kept_below(root: bytes) -> list[str]:
    """Patterns for the conversations below a root; most roots have none."""
    return list(_patterns(root.rstrip(b"/") + b"/"))


def _patterns(top: bytes) -> Iterator[str]:
    user = os.path.expanduser("~")
    for variable, usual, folder, names in _KEPT:
        base = os.environ.get(variable) or os.path.join(user, usual)
        place = os.fsencode(os.path.realpath(os.path.join(base, folder))) + b"/"
        if place.startswith(top):
            yield from (f"{pattern_of(place[len(top) : -1])}/**/{name}" for name in names)
        elif top.startswith(place):  # the root itself lies among them
            yield from names
