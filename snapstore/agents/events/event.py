"""Define hook events, in one format for all agents."""

from __future__ import annotations

from collections.abc import Sequence

# START: a conversation is opened or resumed. PROMPT: the user sent a prompt. BEFORE, AFTER: a file is about to be
# written, or was written. SHELL: a program runs that may write any file. STOP: the agent has answered. END: the
# conversation is closed.
START, PROMPT, BEFORE, AFTER, SHELL, STOP, END = "start", "prompt", "before", "after", "shell", "stop", "end"

_SHORT = 8
_LONGEST = 200  # bytes of a session name


class Event:
    """One hook event. Fields the agent did not report are empty."""

    __slots__ = (
        "agent",
        "at",
        "base",
        "cwd",
        "goes_on",
        "kind",
        "parent",
        "paths",
        "prompt",
        "prompt_id",
        "ran",
        "reply",
        "running",
        "session_id",
        "source",
        "status",
        "title",
        "transcript",
    )

    def __init__(
        self,
        kind: str,
        agent: str,
        session_id: str,
        *,
        cwd: str = "",
        base: str = "",
        at: float = 0.0,
        prompt: str = "",
        prompt_id: str = "",
        paths: Sequence[str] = (),
        transcript: str = "",
        parent: str = "",
        source: str = "",
        reply: str = "",
        status: str = "",
        title: str = "",
        running: bool = False,
        goes_on: bool = False,
        ran: bool = False,
    ) -> None:
        self.kind = kind
        self.agent = agent
        self.session_id = session_id
        self.cwd = cwd  # the project folder if the agent reports one, else the agent's current folder
        self.base = base or cwd  # the folder that relative file paths start from
        self.at = at  # when the agent says that it happened, in milliseconds: hooks may arrive in another order
        self.prompt = prompt
        self.prompt_id = prompt_id  # distinguishes prompts, if the agent numbers them
        self.paths = paths
        self.transcript = transcript
        self.parent = parent  # the session this one was forked from, or the parent session of a subagent
        self.source = source  # START only: startup, resume, clear, compact, fork
        self.reply = reply  # STOP only: the last reply
        self.status = status  # STOP only: done, interrupted
        self.running = running  # STOP only: subagents of the turn are still running
        self.goes_on = goes_on  # PROMPT only: the agent sent the prompt itself and continues the previous turn
        self.ran = ran  # SHELL only: the program has run, so it opens no turn
        self.title = title

    @property
    def short_name(self) -> str:
        """Return the session name, such as `claude-3f2a9c1d`: unique enough, easy to type."""
        plain = self.session_id.removeprefix(f"{self.agent}-")
        short = plain[:_SHORT].strip(".-")
        if not short or short.endswith(".lock"):  # git uses this suffix for its lock files
            return self.full_name
        return f"{self.agent}-{short}"

    @property
    def full_name(self) -> str:
        """Return the session name to use if the short name is taken."""
        full = f"{self.agent}-{self.session_id}"
        if len(full.encode("utf-8", "surrogateescape")) <= _LONGEST:
            return full
        from hashlib import sha1

        return f"{self.agent}-{sha1(full.encode('utf-8', 'surrogateescape'), usedforsecurity=False).hexdigest()}"
