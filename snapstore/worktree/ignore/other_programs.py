"""What other programs keep below a root, and only they write: agents' conversations, and git's own folders.

A conversation is never written by a move (C1, S1-09, S4-01). In `~/.claude`, in a folder of settings that it is a link
into, or in a watched home, a scan would find it changed by every turn, and an undo would cut it. Nor is the user's
repository (P-04), which may have another name than `.git`. Both are never captured, as if `never_capture` said so.
"""

from __future__ import annotations

import os

from snapstore.base.paths import unsafe_parts
from snapstore.worktree.ignore.never_capture import pattern_of
from snapstore.worktree.usergit.repository import folders_elsewhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The variable that moves an agent's folder, where it is otherwise, the folder in it, and what there is a conversation.
_CONVERSATIONS = (
    ("CLAUDE_CONFIG_DIR", ".claude", "projects", ("*.jsonl", "sessions-index.json")),
    ("CODEX_HOME", ".codex", "sessions", ("*",)),
    ("CODEX_HOME", ".codex", "archived_sessions", ("*",)),
    ("COPILOT_HOME", ".copilot", "session-state", ("*",)),
    ("", ".cursor", "projects", ("agent-transcripts/",)),
    ("", ".gemini", "tmp", ("chats/",)),
    ("XDG_DATA_HOME", ".local/share", "opencode", ("opencode.db*", "storage/")),
)


def kept_below(root: bytes) -> list[str]:
    """Patterns for what is kept below a root; most roots have none."""
    top = root.rstrip(b"/") + b"/"
    return [*_conversations(top), *_repository(top)]


def _conversations(top: bytes) -> Iterator[str]:
    user = os.path.expanduser("~")
    for variable, usual, folder, names in _CONVERSATIONS:
        base = os.environ.get(variable) or os.path.join(user, usual)
        place = os.fsencode(os.path.realpath(os.path.join(base, folder))) + b"/"
        if place.startswith(top):
            yield from (f"{pattern_of(place[len(top) : -1])}/**/{name}" for name in names)
        elif top.startswith(place):  # the root itself lies among them
            yield from names


def _repository(top: bytes) -> Iterator[str]:
    for folder in folders_elsewhere(top.rstrip(b"/") or b"/"):
        if folder.startswith(top) and not unsafe_parts(folder[len(top) :]):  # what is called `.git` is safe already
            yield pattern_of(folder[len(top) :])
