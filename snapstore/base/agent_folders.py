"""Where agents keep their conversations: the folders, and the names of the files in them.

`transcripts.locate` looks there for a conversation, `agents.known` tells by them whose a file is, and `worktree.ignore`
never captures what is there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping


class ConversationFolder:
    """A folder of one agent that holds conversations.

    `home` is the agent's folder below the user's home folder; the environment variable `variable`, if set, replaces it.
    `inside` is the path below either. `names` are patterns of the conversations in it, in `.gitignore` syntax.
    """

    __slots__ = ("home", "inside", "names", "variable")

    def __init__(self, home: str, inside: str, names: tuple[str, ...] = ("*",), *, variable: str = "") -> None:
        self.home = home
        self.inside = inside
        self.names = names
        self.variable = variable

    @property
    def usual(self) -> str:
        """Return the path below the user's home folder if no variable is set."""
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
    "opencode": (
        ConversationFolder(".local/share", "opencode", ("opencode.db*", "storage/"), variable="XDG_DATA_HOME"),
    ),
}


def conversation_folders(agent: str, user: str, environ: Mapping[str, str]) -> list[str]:
    """Return the folders where an agent keeps conversations."""
    return [folder.path(user, environ) for folder in CONVERSATION_FOLDERS[agent]]
