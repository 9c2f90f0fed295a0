"""What an agent's hooks say, in one shape for all of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# A conversation is opened or taken up again; a prompt was given; a file is about to be written, or has been; a program
# runs that may write any file; the agent has answered; the conversation is closed.
START, PROMPT, BEFORE, AFTER, SHELL, STOP, END = "start", "prompt", "before", "after", "shell", "stop", "end"

_SHORT = 8
_LONGEST = 200  # bytes of a session's name


class Event:
    """One thing that happened. What the agent did not say is empty."""

    __slots__ = (
        "agent",
        "base",
        "cwd",
        "goes_on",
        "kind",
        "parent",
        "paths",
        "prompt",
        "prompt_id",
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
    ) -> None:
        self.kind = kind
        self.agent = agent
        self.session_id = session_id
        self.cwd = cwd  # where the agent stands: the project's folder where it names one, else its current folder
        self.base = base or cwd  # what the names of files start from
        self.prompt = prompt
        self.prompt_id = prompt_id  # tells one prompt from another, where the agent numbers them
        self.paths = paths
        self.transcript = transcript
        self.parent = parent  # the session this one was forked from, or whose helper it is
        self.source = source  # of a start: startup, resume, clear, compact, fork
        self.reply = reply  # of a stop: the last thing said
        self.status = status  # of a stop: done, interrupted
        self.running = running  # of a stop: helpers or programs are still at work for the turn
        self.goes_on = goes_on  # of a prompt: it is the agent's own, and goes on with the turn before
        self.title = title

    @property
    def short_name(self) -> str:
        """`claude-3f2a9c1d`: what the session is called here. Long enough to tell them apart, short enough to type."""
        plain = self.session_id.removeprefix(f"{self.agent}-")
        short = plain[:_SHORT].strip(".-")
        if not short or short.endswith(".lock"):  # git's own name for its locks
            return self.full_name
        return f"{self.agent}-{short}"

    @property
    def full_name(self) -> str:
        """The same where the short one is taken."""
        full = f"{self.agent}-{self.session_id}"
        if len(full.encode("utf-8", "surrogateescape")) <= _LONGEST:
            return full
        from hashlib import sha1

        return f"{self.agent}-{sha1(full.encode('utf-8', 'surrogateescape'), usedforsecurity=False).hexdigest()}"
