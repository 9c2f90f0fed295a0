"""Run the git program for the user: environment, config, and questions.

The user's own config applies (ssh, credential helpers, proxies, certificates, `insteadOf`). The config of the project
in the current directory never applies. Everything else that git could run or follow is switched off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from snapstore.errors import Remote
from snapstore.git.remote import process
from snapstore.git.remote.connection import Options
from snapstore.git.remote.failures import failure, refused, summary
from snapstore.git.remote.incoming import Incoming
from snapstore.git.remote.process import Finished, Job
from snapstore.git.remote.questions import Questions
from snapstore.git.remote.urls import Address

OLDEST = "2.32"  # git: an older one does not know the variables that keep the user's config away (git/program.py)
_QUESTIONS = 3
_AT_WINDOW = 300.0  # seconds that a helper may wait for a person

# The caller's GIT_* variables that concern the network. All others could lead git to another repository, as they do
# inside a hook.
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
# The limit for one allocation of git: a few bytes can claim to hold a terabyte. (Not documented by git;
# test_incoming_hostile.py shows that it holds.) git makes no deltas of files over 512 MiB.
_ALLOCATION = "520m"


@dataclass(frozen=True, slots=True)
class Fence:
    """Where git must not go, whatever the user's config rewrites the address to.

    The check costs no process: git itself refuses, and only then is the config read.
    """

    settings: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


SERVERS = Fence(settings=("protocol.file.allow=never",))
FOLDERS = Fence(variables={"GIT_ALLOW_PROTOCOL": "file"})


class GitRunner:
    """Runs git for one remote. Close it after use."""

    def __init__(self, program: str, address: Address, options: Options, fence: Fence) -> None:
        self._program = program
        self._address = address
        self._options = options
        self._fence = fence
        self._questions: Questions | None = None
        # If the address includes its password, credential helpers are neither asked nor told.
        self._helpers = not any(address.secret)

    @property
    def patience(self) -> float:
        """Return the seconds of silence to tolerate: a helper may wait for a person."""
        timeout = self._options.timeout
        return timeout if self._options.ask is None else max(timeout, _AT_WINDOW)

    def run(self, job: Job) -> Finished:
        """Run git, and ask again for a mistyped password."""
        address, ask = self._address, self._options.ask
        if self._questions is None and (ask is not None or any(address.secret)):
            self._questions = Questions((address.scheme, address.place), *address.secret, ask)
        for left in range(_QUESTIONS, -1, -1):
            try:
                return self._finished(job)
            except Remote as error:
                if not left or ask is None or self._questions is None or error.message != refused(address.shown):
                    raise
                self._helpers = self._helpers and self._questions.asked  # a helper would repeat its wrong answer
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
    """Run a git job that receives objects into the quarantine, within its limits."""

    def report(what: str, done: int, total: int) -> None:
        if what == "receiving" and total > incoming.limits.objects:
            raise Remote(f"more than {incoming.limits.objects:,} objects would come in", "Fetch less at once.")
        if job.progress is not None:
            job.progress(what, done, total)

    variables = {**job.variables, **incoming.environment(), "GIT_ALLOC_LIMIT": _ALLOCATION}
    run(replace(job, variables=variables, progress=report, watch=incoming.watch))


def environment(caller: Mapping[str, str], questions: Questions | None = None) -> dict[str, str]:
    """Return the variables for a git that uses the network for the user, in English."""
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
    """Raise Remote if git does not support a command or option."""
    if done.status == 129 or any("is not a git command" in line for line in done.said):
        raise Remote(
            f"the git program {program} is too old, or does not know an option: {summary(done.said[:1])}",
            f"Install git {OLDEST} or later.",
        )
