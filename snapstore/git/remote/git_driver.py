"""Speaks to a remote through the git program: `ls-remote`, `fetch` and `push`.

The user's own configuration counts (ssh, credential helpers, proxies, certificates, `insteadOf`); that of the project
one stands in never does, and the store's own is checked. What git would run or follow besides is switched off.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TypeVar

from snapstore.errors import Corrupt, Remote
from snapstore.git.odb import Objects
from snapstore.git.program import refuse_planted
from snapstore.git.remote import folders, process
from snapstore.git.remote.answers import RESULT, batches, listed_refs, or_empty, push_results
from snapstore.git.remote.connection import (
    MOVED,
    NOT_THIS_ONE,
    Ask,
    Broken,
    Connection,
    Moves,
    Progress,
)
from snapstore.git.remote.failures import failure, refused, told, unpacking
from snapstore.git.remote.incoming import Incoming, Limits
from snapstore.git.remote.questions import Questions
from snapstore.git.remote.urls import Address

T = TypeVar("T")

OLDEST = "2.29"  # git: `fetch --stdin` and `--no-write-fetch-head`
PAUSES = (0.2, 0.8)  # seconds before a broken connection is made anew
_WORKING = 5  # times the usual patience: a server that packs or stores may say nothing for a while
_AT_WINDOW = 300.0  # seconds that a helper may wait for a person
_QUESTIONS = 3

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
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "advice.pushUpdateRejected=false",
)
# What git would refuse and is harmless: a file named .gitmodules or .gitattributes in a turn is the user's data,
# whatever it holds; and a clock may have been far off.
_HARMLESS = (
    "badDate",
    "badDateOverflow",
    "badTimezone",
    "gitmodulesBlob",
    "gitmodulesLarge",
    "gitmodulesMissing",
    "gitmodulesName",
    "gitmodulesParse",
    "gitmodulesPath",
    "gitmodulesSymlink",
    "gitmodulesUpdate",
    "gitmodulesUrl",
    "gitattributesBlob",
    "gitattributesLarge",
    "gitattributesLineLength",
    "gitattributesMissing",
)
_FETCH_SETTINGS = (
    "fetch.unpackLimit=1",
    "fetch.fsckObjects=true",
    "fetch.writeCommitGraph=false",
    "fetch.uriProtocols=",
    "core.fsync=none",  # what is accepted is synced then
    *(f"fetch.fsck.{name}=ignore" for name in _HARMLESS),
)
_PUSH_SETTINGS = ("push.gpgSign=false", "push.followTags=false")
# One allocation of git's may be no larger: a few bytes can say that they hold a terabyte. (Not documented by git;
# test_incoming_hostile.py shows that it holds.) git makes no deltas of files over 512 MiB.
_ALLOCATION = "520m"


class GitConnection(Connection):
    def __init__(
        self,
        address: Address,
        progress: Progress | None,
        environment: Mapping[str, str],
        ask: Ask | None,
        timeout: float,
        limits: Limits | None,
        *,
        program: str,
    ) -> None:
        super().__init__(address, progress, environment, ask, timeout, limits)
        self._program = program
        self._is_folder = address.scheme == "path"
        self._questions: Questions | None = None
        self._is_empty = False
        # An address that knows its password: helpers are neither asked nor told.
        self._helpers = not any(address.secret)

    def refs(self, *, push: bool = False) -> dict[str, bytes]:
        if self._is_folder:
            folders.refuse_missing(self.address.path, push=push)
            if push:
                folders.refuse_in_use(self.address.path)
            self._head = folders.head(self.address.path)
            found = folders.plain_refs(self.address.path)
            if found is not None:
                return found
        # Not ssh: a wrong key would be offered three times.
        return self._again(self._ls_remote, self.address.scheme not in ("path", "ssh"))

    def _ls_remote(self) -> dict[str, bytes]:
        words = ["ls-remote", "--symref", "--quiet", *self._service("upload-pack"), "--", self._url]
        done = self._run([], words, {"GIT_DIR": os.devnull}, silence=self._patience)
        found, head = listed_refs(done.output)
        if not self._is_folder:
            self._head, self._is_empty = head, not found
        if not found and self.address.scheme in ("http", "https"):
            self._refuse_speechless(words)
        return found

    def default_branch(self) -> str:
        if self._is_empty and not self._head:
            self._head = self._unborn_head()
        return super().default_branch()

    def _unborn_head(self) -> str:
        """Return what HEAD of an empty repository stands for: `ls-remote` does not tell, a clone of nothing does."""
        with tempfile.TemporaryDirectory(prefix="snapstore-") as folder:
            words = ["clone", "--bare", "--quiet", "--depth=1", "--no-tags", "--template=", "--", self._url]
            try:
                self._run([], [*words, f"{folder}/empty.git"], {}, silence=self._patience)
            except Remote:
                return ""
            return folders.head(f"{folder}/empty.git")

    def _refuse_speechless(self, words: Sequence[str]) -> None:
        """Raise Broken where a web server answers, but not as git does.

        git takes an answer that breaks off in its headers for that of a plain web server with an empty list of refs,
        and calls it a success (test_transport_faults.py).
        """
        heard = self._run([], words, {"GIT_DIR": os.devnull, "GIT_TRACE_PACKET": "1"}, silence=self._patience)
        if not any(" packet: " in line for line in heard.said):
            raise Broken(
                f"{self.shown} is no repository, or its server does not speak git's smart protocol",
                "Check the address; a clone address often ends in .git.",
                again=True,
            )

    def _fetch(self, wanted: list[bytes], tips: list[bytes], into: Objects) -> Incoming:
        refuse_planted(os.path.dirname(into.folder))
        retried = self.address.scheme != "ssh"
        incoming = self._again(lambda: self._fetched(wanted, into), retried)
        counted_on = incoming.is_empty  # git found all of it in the store, left by a pull that failed
        try:
            return incoming.verify(wanted, tips)
        except Corrupt:
            if not counted_on:
                raise
            # A gc has removed a part of it since.
            return self._again(lambda: self._fetched(wanted, into), retried).verify(wanted, tips)

    def _fetched(self, wanted: list[bytes], into: Objects) -> Incoming:
        incoming = Incoming(into, self._limits)
        try:
            words = ["fetch", "--stdin", "--no-tags", "--no-write-fetch-head", "--refmap=", "--no-auto-maintenance"]
            words += ["--recurse-submodules=no", "--progress", *self._service("upload-pack"), "--", self._url]
            feed = "".join(f"{oid.hex()}\n" for oid in wanted).encode()
            receive(self._run, incoming, _FETCH_SETTINGS, words, feed, self._progress, self._patience * _WORKING)
        except BaseException:
            incoming.discard()
            raise
        return incoming

    def _push(
        self, going: Moves, objects: Sequence[bytes], source: Objects, *, atomic: bool, has_parts: bool
    ) -> dict[str, str | None]:
        refuse_planted(os.path.dirname(source.folder))
        variables = {"GIT_DIR": os.path.dirname(source.folder)}
        if has_parts:
            # With a list of cut-off history, even an empty one, git takes every tree of what the server has for known,
            # not only those on the way to it. (Not documented by git; test_share_parts.py shows that it holds.)
            variables["GIT_SHALLOW_FILE"] = os.devnull

        def pushed(moves: Moves) -> dict[str, str | None]:
            results: dict[str, str | None] = {}
            for some in batches(moves):
                results |= self._pushed(some, variables, atomic=atomic)
            return results

        if not self._is_folder:
            return pushed(going)
        path = self.address.path
        folders.refuse_missing(path, push=True)
        folders.refuse_in_use(path)
        elsewhere = folders.in_the_way(path, going)
        if elsewhere:
            return {name: elsewhere.get(name, NOT_THIS_ONE) for name in going}
        results = pushed(going)
        if any(results.values()) and folders.clear_dead_locks(path):
            results |= pushed({name: going[name] for name, why in results.items() if why is not None})
        folders.sync(path, going)
        return results

    def _pushed(self, going: Moves, variables: Mapping[str, str], *, atomic: bool) -> dict[str, str | None]:
        words = ["push", "--porcelain", "--progress", "--no-verify", "--recurse-submodules=no"]
        words += [*(["--atomic"] if atomic else []), *self._service("receive-pack")]
        words += [f"--force-with-lease={name}:{or_empty(old)}" for name, (old, _) in going.items()]
        words += ["--", self._url]
        words += [f"{or_empty(new)}:{name}" for name, (_, new) in going.items()]
        done = self._run(
            _PUSH_SETTINGS, words, variables, silence=self._patience * _WORKING, progress=self._progress, may_fail=True
        )
        if done.status and not RESULT.search(done.output):
            raise failure(self.shown, done.said, done.status)
        results = push_results(done.output, going)
        if any(why is not None and why.startswith("unpacker error") for why in results.values()):
            raise unpacking(self.shown, done.said)
        said = told(line.removeprefix("remote: ") for line in done.said if line.startswith("remote: "))
        return {
            name: f"{why}: {said}" if why is not None and said and why not in (MOVED, NOT_THIS_ONE) else why
            for name, why in results.items()
        }

    # Running git.

    @property
    def _url(self) -> str:
        """The address as git gets it: it is seen by everybody on this machine, so it holds no password."""
        return self.address.path if self._is_folder else self.address.without_secret

    @property
    def _patience(self) -> float:
        return self._timeout if self._ask is None else max(self._timeout, _AT_WINDOW)

    def _service(self, name: str) -> list[str]:
        return [f"--{name}={folders.service(name, self.address.path)}"] if self._is_folder else []

    def _again(self, work: Callable[[], T], retried: bool) -> T:
        """Make a broken connection anew, where that does no harm."""
        for pause in PAUSES if retried else ():
            try:
                return work()
            except Broken as error:
                if not error.again:
                    raise
            time.sleep(pause)
        return work()

    def _run(
        self,
        settings: Sequence[str],
        words: Sequence[str],
        variables: Mapping[str, str],
        *,
        silence: float,
        feed: bytes | IO[bytes] = b"",
        progress: Progress | None = None,
        watch: Callable[[], None] | None = None,
        may_fail: bool = False,
    ) -> process.Finished:
        """Run git; ask again for a password that was mistyped."""
        if self._questions is None and (self._ask is not None or any(self.address.secret)):
            self._questions = Questions((self.address.scheme, self.address.place), *self.address.secret, self._ask)
        for left in range(_QUESTIONS, -1, -1):
            try:
                return self._finished(settings, words, variables, silence, feed, progress, watch, may_fail)
            except Remote as error:
                if not left or self._ask is None or self._questions is None or error.message != refused(self.shown):
                    raise
                self._helpers = self._helpers and self._questions.asked  # what a helper says again is as wrong
                self._questions.forget()
        raise AssertionError

    def close(self) -> None:
        if self._questions is not None:
            self._questions.close()
            self._questions = None

    def _finished(
        self,
        settings: Sequence[str],
        words: Sequence[str],
        variables: Mapping[str, str],
        silence: float,
        feed: bytes | IO[bytes],
        progress: Progress | None,
        watch: Callable[[], None] | None,
        may_fail: bool,
    ) -> process.Finished:
        settings = [*_SETTINGS, *settings]
        if not self._helpers:
            settings.append("credential.helper=")
        command = [self._program, *(word for setting in settings for word in ("-c", setting)), *words]
        done = process.run(
            command,
            {**environment(self._environment, self._questions), **variables},
            who=self.shown,
            silence=silence,
            feed=feed,
            progress=progress,
            watch=watch,
            questions=self._questions,
        )
        refuse_unusable(done, command[0])
        if done.status and not (may_fail and done.status == 1):
            raise failure(self.shown, done.said, done.status)
        return done


def receive(
    run: process.Runner,
    incoming: Incoming,
    settings: Sequence[str],
    words: Sequence[str],
    feed: bytes | IO[bytes],
    progress: Progress | None,
    silence: float,
) -> None:
    """Run a git that receives objects into the quarantine, within its limits."""

    def told(what: str, done: int, total: int) -> None:
        if what == "receiving" and total > incoming.limits.objects:
            raise Remote(f"more than {incoming.limits.objects:,} objects would come in", "Fetch less at once.")
        if progress is not None:
            progress(what, done, total)

    variables = {**incoming.environment(), "GIT_ALLOC_LIMIT": _ALLOCATION}
    run(settings, words, variables, silence=silence, feed=feed, progress=told, watch=incoming.watch)


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
