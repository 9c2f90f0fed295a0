"""Define what snapstore knows about an agent: one `Agent` object per agent.

These are plain classes, because `dataclasses` and `typing` would double the start of a hook that has nothing to do
(test_an_agents_hook_loads_no_command_line_and_the_engine_only_to_record).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from snapstore.agents.events.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Entry = Callable[[str], dict[str, Any]]

# How a conversation can continue from an earlier turn.
AT_TURN, WHOLE, RESUME, NONE = "at-turn", "whole", "resume", "none"

LONG, SHORT = 120, 60  # seconds that a hook may take; a prompt or a stop may scan a large tree


class Forking:
    """How an agent's program continues or forks a conversation.

    `resume`, `fork` and `fresh` are commands; `{}` stands for the agent session's id. `notice` is what the user has to
    do, or why a fork is impossible.
    """

    __slots__ = ("fork", "fresh", "notice", "resume", "way")

    def __init__(self, *, way: str, resume: str = "", fork: str = "", fresh: str = "", notice: str = "") -> None:
        self.way = way
        self.resume = resume
        self.fork = fork
        self.fresh = fresh
        self.notice = notice


class SharedFile:
    """A JSON file of hooks, ours among others.

    `entries` maps each event to a function that makes its entry for a command. `field` holds the command in an entry,
    and `extras` are keys that the file must have besides its hooks.
    """

    __slots__ = ("entries", "extras", "field")

    def __init__(
        self, entries: Mapping[str, Entry], *, field: str = "command", extras: Mapping[str, Any] | None = None
    ) -> None:
        self.entries = entries
        self.field = field
        self.extras = extras


class Script:
    """A file that is ours alone.

    `make` returns the text for a command, and `find` returns the command in such a text.
    """

    __slots__ = ("comment", "executable", "find", "make")

    def __init__(
        self, *, make: Callable[[str], str], find: Callable[[str], str], comment: str, executable: bool = False
    ) -> None:
        self.make = make
        self.find = find
        self.comment = comment
        self.executable = executable


class HookFiles:
    """Where an agent looks for hooks, and what we write there.

    `user` is a folder below the home folder; the environment variable `variable`, if set, replaces it. `inside` is a
    path below either. `project` is a path below the project. `after` tells the user what to do next. `command` makes
    the command from our words and from the line for a shell; without it, the line itself is the command.
    `failure_refuses` tells whether the agent treats a failed hook as a refusal, and `tells_at` is the event
    whose hook can tell the agent something, "" if none can. `plugin` is the command that starts the agent with a plugin
    folder, `{}`, if it has such folders.
    """

    __slots__ = (
        "after",
        "command",
        "content",
        "failure_refuses",
        "files",
        "inside",
        "plugin",
        "project",
        "tells_at",
        "user",
        "variable",
    )

    def __init__(
        self,
        *,
        content: SharedFile | Script,
        user: str,
        project: str,
        files: Sequence[str],
        variable: str = "",
        inside: str = "",
        after: str = "",
        command: Callable[[Sequence[str], str], str] | None = None,
        failure_refuses: bool = False,
        tells_at: str = "",
        plugin: str = "",
    ) -> None:
        self.content = content
        self.user = user
        self.project = project
        self.files = files
        self.variable = variable
        self.inside = inside
        self.after = after
        self.command = command
        self.failure_refuses = failure_refuses
        self.tells_at = tells_at
        self.plugin = plugin


class Conversations:
    """An agent's conversations, which `transcripts.readers` can read.

    `base.agent_folders` says where they are; `parts` are other parts of paths that identify them. `in_one_file` tells
    whether all conversations share a file, which exists for any session id. `is_fork` tells whether an agent session
    of a project folder was forked from another, or None if that is not known. `stored` lists the conversations of a
    project folder, if the agent makes that possible: one mapping with `sessionId` and `fullPath` per conversation.
    """

    __slots__ = ("in_one_file", "is_fork", "parts", "stored")

    def __init__(
        self,
        *,
        parts: Sequence[str] = (),
        in_one_file: bool = False,
        is_fork: Callable[[str, str], bool | None] | None = None,
        stored: Callable[[str], list[dict[str, Any]]] | None = None,
    ) -> None:
        self.parts = parts
        self.in_one_file = in_one_file
        self.is_fork = is_fork
        self.stored = stored


class Agent:
    """One agent.

    `title` is its name as people write it. `conversations` is None if they cannot be read. `answer` is what a hook
    prints when it has nothing to say. `tells_afterwards` tells whether tools are reported only after they ran.
    """

    __slots__ = ("answer", "conversations", "events", "forking", "hooks", "name", "tells_afterwards", "title")

    def __init__(
        self,
        *,
        name: str,
        title: str,
        events: Callable[[dict[str, Any], Mapping[str, str]], list[Event]],
        hooks: HookFiles,
        forking: Forking,
        conversations: Conversations | None = None,
        answer: str = "",
        tells_afterwards: bool = False,
    ) -> None:
        self.name = name
        self.title = title
        self.events = events
        self.hooks = hooks
        self.forking = forking
        self.conversations = conversations
        self.answer = answer
        self.tells_afterwards = tells_afterwards


def group(matcher: str = "", **more: object) -> Entry:
    """Return a function that makes an entry in the format of Claude Code's hooks."""

    def make(command: str) -> dict[str, Any]:
        handler = {"type": "command", "command": command, **more}
        return {**({"matcher": matcher} if matcher else {}), "hooks": [handler]}

    return make
