"""The folders where agents keep conversations, and the names of the files in them.

`transcripts.locate` searches these folders, `agents.known` tells from them which agent wrote a file, and
`worktree.ignore` never captures these files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping


class ConversationFolder:
    """A folder of one agent that holds conversations.

    `home` is the agent's own folder, relative to the user's home folder. The environment variable `variable`, if set,
    overrides `home`. `inside` is the path of the conversations below the agent's folder. `names` are patterns for the
    conversation files, in `.gitignore` syntax.
    """

    __slots__ = ("home", "inside", "names", "variable")

    def __init__(self, home: str, inside: str, names: tuple[str, ...] = ("*",), *, variable: str = "") -> None:
        self.home = home
        self.inside = inside
        self.names = names
        self.variable = variable

    @property
    def usual(self) -> str:
        """Return the default path, relative to the user's home folder."""
        return f"{self.home}/{self.inside}"

    def path(self, user: str, environ: Mapping[str, str]) -> str:
        return os.path.join(environ.get(self.variable) or os.path.join(user, self.home), self.inside)


CONVERSATION_FOLDERS = {
    "claude": (
        ConversationFolder(".claude", "projects", ("*.jsonl", "sessions-index.json"), variable="CLAUDE_CONFIG_DIR"),
    ),
    "cline": (ConversationFolder(".cline/data", "sessions", variable="CLINE_DATA_DIR"),),
    "codex": (
        ConversationFolder(".codex", "sessions", variable="CODEX_HOME"),
        ConversationFolder(".codex", "archived_sessions", variable="CODEX_HOME"),
    ),
    "copilot": (ConversationFolder(".copilot", "session-state", variable="COPILOT_HOME"),),
    "cursor": (ConversationFolder(".cursor", "projects", ("agent-transcripts/",)),),
    "gemini": (ConversationFolder(".gemini", "tmp", ("chats/",)),),
    "qwen": (ConversationFolder(".qwen", "projects", ("chats/",)),),
    "opencode": (
        ConversationFolder(".local/share", "opencode", ("opencode.db*", "storage/"), variable="XDG_DATA_HOME"),
    ),
}


def conversation_folders(agent: str, user: str, environ: Mapping[str, str]) -> list[str]:
    """Return the paths of the folders where an agent keeps conversations."""
    return [folder.path(user, environ) for folder in CONVERSATION_FOLDERS[agent]]
