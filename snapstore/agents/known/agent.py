"""What snapstore knows about an agent: one `Agent` object per agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from snapstore.agents.events.event import Event

# How a conversation can continue from an earlier turn.
AT_TURN, WHOLE, RESUME, NONE = "at-turn", "whole", "resume", "none"

LONG, SHORT = 120, 60  # seconds that a hook may take; a prompt or a stop may scan a large tree

Entry = Callable[[str], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forking:
    """How an agent's program continues or forks a conversation.

    `resume`, `fork` and `fresh` are commands; `{}` stands for the agent session's id. `notice` is what the user has to
    do, or why a fork is impossible.
    """

    way: str
    resume: str = ""
    fork: str = ""
    fresh: str = ""
    notice: str = ""


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A JSON file of hooks, ours among others.

    `entries` maps each event to a function that makes its entry for a command. `field` holds the command in an entry,
    and `extras` are keys that the file must have besides its hooks.
    """

    entries: Mapping[str, Entry]
    field: str = "command"
    extras: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A file that is ours alone.

    `make` returns the text for a command, and `find` returns the command in such a text.
    """

    make: Callable[[str], str]
    find: Callable[[str], str]
    comment: str
    executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFiles:
    """Where an agent looks for hooks, and what we write there.

    `user` is a folder below the home folder; the environment variable `variable`, if set, replaces it. `inside` is a
    path below either. `project` is a path below the project. `after` tells the user what to do next. `command` makes
    the command from our words and from the line for a shell; without it, the line itself is the command.
    """

    content: SharedFile | Script
    user: str
    project: str
    files: Sequence[str]
    variable: str = ""
    inside: str = ""
    after: str = ""
    command: Callable[[Sequence[str], str], str] | None = None
    failure_refuses: bool = False  # whether the agent treats a failed hook as a refusal
    can_tell: bool = False  # whether a hook can tell the agent something
    plugin: str = ""  # the command that starts the agent with a plugin folder, `{}`, if it has such folders


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """Where an agent keeps its conversations, which `transcripts.readers` can read.

    `parts` are parts of the paths. `stored` lists the conversations of a project folder, if the agent makes that
    possible: one mapping with `sessionId` and `fullPath` per conversation.
    """

    parts: Sequence[str]
    in_one_file: bool = False  # whether all conversations share a file, which exists for any session id
    stored: Callable[[str], list[dict[str, Any]]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent. `title` is its name as people write it."""

    name: str
    title: str
    events: Callable[[dict[str, Any], Mapping[str, str]], list[Event]]
    hooks: HookFiles
    forking: Forking
    conversations: Conversations | None = None  # None: its conversations cannot be read
    answer: str = ""  # what a hook prints when it has nothing to say
    tells_afterwards: bool = False  # whether tools are reported only after they ran


def group(matcher: str = "", **more: object) -> Entry:
    """Return a function that makes an entry in the format of Claude Code's hooks."""

    def make(command: str) -> dict[str, Any]:
        handler = {"type": "command", "command": command, **more}
        return {**({"matcher": matcher} if matcher else {}), "hooks": [handler]}

    return make
