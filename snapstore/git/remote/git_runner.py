"""Runs the git program on the user's behalf: what of the environment and configuration counts, and who is asked.

The user's own configuration counts (ssh, credential helpers, proxies, certificates, `insteadOf`); that of the project
one stands in never does. What git would run or follow besides is switched off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from snapstore.errors import Remote
from snapstore.git.remote import process
from snapstore.git.remote.connection import Options
from snapstore.git.remote.failures import failure, refused, told
from snapstore.git.remote.incoming import Incoming
from snapstore.git.remote.process import Finished, Job
from snapstore.git.remote.questions import Questions
from snapstore.git.remote.urls import Address

OLDEST = "2.29"  # git: `fetch --stdin` and `--no-write-fetch-head`
_QUESTIONS = 3
_AT_WINDOW = 300.0  # seconds that a helper may wait for a person

# What of a caller's GIT_* variables is about the network. All others could lead git to another repository: run inside a
# hook they do.
_KEPT = re.compile(
    r"GIT_(SSH(_COMMAND|_VARIANT)?|SSL_.*|HTTP_.*|PROXY_COMMAND|EXEC_PATH|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)"
    r"|PROXY_SSL_.*)"
)
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.alternateRefsCommand=true",
    "protocol.ext.allow=never",
    "protocol.fd.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "advice.pushUpdateRejected=false",
)
# One allocation of git's may be no larger: a few bytes can say that they hold a terabyte. (Not documented by git;
# test_incoming_hostile.py shows that it holds.) git makes no deltas of files over 512 MiB.
_ALLOCATION = "520m"


@dataclass(frozen=True, slots=True)
class Fence:
    """Where git must not go, whatever address the user's configuration puts in the place of the one we give it.

    That costs no process: git itself refuses, and only then somebody looks what the configuration says.
    """

    settings: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


SERVERS = Fence(settings=("protocol.file.allow=never",))
FOLDERS = Fence(variables={"GIT_ALLOW_PROTOCOL": "file"})


class GitRunner:
    """Runs git for one remote. Close it."""

    def __init__(self, program: str, address: Address, options: Options, fence: Fence) -> None:
        self._program = program
        self._address = address
        self._options = options
        self._fence = fence
        self._questions: Questions | None = None
        # An address that knows its password: helpers are neither asked nor told.
        self._helpers = not any(address.secret)

    @property
    def patience(self) -> float:
        """How many seconds of silence are borne: a helper may wait for a person."""
        timeout = self._options.timeout
        return timeout if self._options.ask is None else max(timeout, _AT_WINDOW)

    def run(self, job: Job) -> Finished:
        """Run git; ask again for a password that was mistyped."""
        address, ask = self._address, self._options.ask
        if self._questions is None and (ask is not None or any(address.secret)):
            self._questions = Questions((address.scheme, address.place), *address.secret, ask)
        for left in range(_QUESTIONS, -1, -1):
            try:
                return self._finished(job)
            except Remote as error:
                if not left or ask is None or self._questions is None or error.message != refused(address.shown):
                    raise
                self._helpers = self._helpers and self._questions.asked  # what a helper says again is as wrong
                self._questions.forget()
        raise AssertionError

    def close(self) -> None:
        if self._questions is not None:
            self._questions.close()
            self._questions = None

    def _finished(self, job: Job) -> Finished:
        helpers = [] if self._helpers else ["credential.helper="]
        settings = [*_SETTINGS, *self._fence.settings, *job.settings, *helpers]
        variables = {**environment(self._options.environment, self._questions), **self._fence.variables}
        who = self._address.shown
        job = replace(job, settings=settings)
        done = process.run(job, self._program, variables, who=who, questions=self._questions)
        refuse_unusable(done, self._program)
        if done.status and not (job.may_fail and done.status == 1):
            raise failure(who, done.said, done.status)
        return done


def receive(run: process.Runner, incoming: Incoming, job: Job) -> None:
    """Run a git that receives objects into the quarantine, within its limits."""

    def told(what: str, done: int, total: int) -> None:
        if what == "receiving" and total > incoming.limits.objects:
            raise Remote(f"more than {incoming.limits.objects:,} objects would come in", "Fetch less at once.")
        if job.progress is not None:
            job.progress(what, done, total)

    variables = {**job.variables, **incoming.environment(), "GIT_ALLOC_LIMIT": _ALLOCATION}
    run(replace(job, variables=variables, progress=told, watch=incoming.watch))


def environment(caller: Mapping[str, str], questions: Questions | None = None) -> dict[str, str]:
    """Return the variables for a git that speaks to the network on the user's behalf, in English."""
    kept = {key: value for key, value in caller.items() if not key.startswith("GIT_") or _KEPT.fullmatch(key)}
    kept.pop("LANGUAGE", None)
    asking = {"GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never"}
    if questions is not None:
        program = questions.program
        asking = {"GIT_ASKPASS": program, "SSH_ASKPASS": program, "SSH_ASKPASS_REQUIRE": "force"}
    else:
        kept.pop("SSH_ASKPASS", None)
    return {**kept, **asking, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1"}


def refuse_unusable(done: process.Finished, program: str) -> None:
    """Raise Remote for a git that does not know what is asked of it."""
    if done.status == 129 or any("is not a git command" in line for line in done.said):
        raise Remote(
            f"the git program {program} is too old, or does not know an option: {told(done.said[:1])}",
            f"Install git {OLDEST} or later.",
        )
