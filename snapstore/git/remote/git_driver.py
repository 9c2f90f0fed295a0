"""Connections through the git program: `ls-remote`, `fetch` and `push`.

The store's own config is checked before git reads it. `git_runner.py` states which other settings apply.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from snapstore.errors import Corrupt, Remote
from snapstore.git.objects.store import Objects
from snapstore.git.program import refuse_planted
from snapstore.git.remote import folders
from snapstore.git.remote.answers import RESULT, batches, listed_refs, or_empty, push_results
from snapstore.git.remote.connection import MOVED, NOT_THIS_ONE, Connection, ConnectionFailed, Moves, Options
from snapstore.git.remote.failures import failure, summary, unpacking
from snapstore.git.remote.git_runner import Fence, GitRunner, receive
from snapstore.git.remote.incoming import Incoming
from snapstore.git.remote.process import Finished, Job
from snapstore.git.remote.urls import Address

T = TypeVar("T")

PAUSES = (0.2, 0.8)  # seconds before each retry of a broken connection
_WORKING = 5  # factor on the usual patience: a server may be silent while it packs or stores

# What git would refuse although it is harmless: a file named .gitmodules or .gitattributes in a turn is the user's
# data, whatever its content; and a clock may have been far off.
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
    "core.fsync=none",  # accepted packs are synced later
    *(f"fetch.fsck.{name}=ignore" for name in _HARMLESS),
)
_PUSH_SETTINGS = ("push.gpgSign=false", "push.followTags=false")


class GitConnection(Connection):
    """A repository that git can reach; `fence` tells where git must not go."""

    fence: Fence

    def __init__(self, address: Address, options: Options, program: str) -> None:
        super().__init__(address, options)
        self._git = GitRunner(program, address, options, self.fence)
        self._is_empty = False
        self._retried = address.scheme != "ssh"  # a wrong key would be offered three times

    def refs(self, *, push: bool = False) -> dict[str, bytes]:
        return self._again(self._ls_remote)

    def _ls_remote(self) -> dict[str, bytes]:
        words = ["ls-remote", "--symref", "--quiet", *self._service("upload-pack"), "--", self._url]
        done = self._run(words, {"GIT_DIR": os.devnull})
        found, self._head = listed_refs(done.output)
        self._is_empty = not found
        if not found and self.address.scheme in ("http", "https"):
            self._refuse_speechless(words)
        return found

    def default_branch(self) -> str:
        if self._is_empty and not self._head:
            self._head = self._unborn_head()
        return super().default_branch()

    def _unborn_head(self) -> str:
        """Return the target of HEAD of an empty repository.

        `ls-remote` does not report the target, but a clone of the empty repository does.
        """
        with tempfile.TemporaryDirectory(prefix="snapstore-") as folder:
            words = ["clone", "--bare", "--quiet", "--depth=1", "--no-tags", "--template=", "--", self._url]
            try:
                self._run([*words, f"{folder}/empty.git"], {})
            except Remote:
                return ""
            return folders.head(f"{folder}/empty.git")

    def _refuse_speechless(self, words: Sequence[str]) -> None:
        """Raise ConnectionFailed if a web server answers, but not with git's protocol.

        If an answer breaks off in its headers, git believes that a plain web server sent an empty list of refs, and
        reports success (test_transport_faults.py).
        """
        heard = self._run(words, {"GIT_DIR": os.devnull, "GIT_TRACE_PACKET": "1"})
        if not any(" packet: " in line for line in heard.said):
            raise ConnectionFailed(
                f"{self.shown} is not a repository, or its server does not speak git's smart protocol",
                "Check the address; a clone address often ends in .git.",
                again=True,
            )

    def _fetch(self, wanted: list[bytes], tips: list[bytes], into: Objects) -> Incoming:
        refuse_planted(os.path.dirname(into.folder))
        incoming = self._again(lambda: self._fetched(wanted, into))
        counted_on = incoming.is_empty  # git found everything in the store, left by a failed pull
        try:
            return incoming.verify(wanted, tips)
        except Corrupt:
            if not counted_on:
                raise
            # A gc has removed some of these objects since.
            return self._again(lambda: self._fetched(wanted, into)).verify(wanted, tips)

    def _fetched(self, wanted: list[bytes], into: Objects) -> Incoming:
        incoming = Incoming(into, self._options.limits)
        try:
            words = ["fetch", "--stdin", "--no-tags", "--no-write-fetch-head", "--refmap=", "--no-auto-maintenance"]
            words += ["--recurse-submodules=no", "--progress", *self._service("upload-pack"), "--", self._url]
            feed = "".join(f"{oid.hex()}\n" for oid in wanted).encode()
            receive(self._git.run, incoming, self._work(words, settings=_FETCH_SETTINGS, feed=feed))
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
            # With a list of shallow commits, even an empty one, git considers every tree reachable from the server's
            # refs as known, not only those on the way to them. (Not documented by git; test_share_parts.py shows that
            # it holds.)
            variables["GIT_SHALLOW_FILE"] = os.devnull

        results: dict[str, str | None] = {}
        for some in batches(going):
            results |= self._pushed(some, variables, atomic=atomic)
        return results

    def _pushed(self, going: Moves, variables: Mapping[str, str], *, atomic: bool) -> dict[str, str | None]:
        words = ["push", "--porcelain", "--progress", "--no-verify", "--recurse-submodules=no"]
        words += [*(["--atomic"] if atomic else []), *self._service("receive-pack")]
        words += [f"--force-with-lease={name}:{or_empty(old)}" for name, (old, _) in going.items()]
        words += ["--", self._url]
        words += [f"{or_empty(new)}:{name}" for name, (_, new) in going.items()]
        done = self._git.run(self._work(words, variables, settings=_PUSH_SETTINGS, may_fail=True))
        if done.status and not RESULT.search(done.output):
            raise failure(self.shown, done.said, done.status)
        results = push_results(done.output, going)
        if any(why is not None and why.startswith("unpacker error") for why in results.values()):
            raise unpacking(self.shown, done.said)
        said = summary(line.removeprefix("remote: ") for line in done.said if line.startswith("remote: "))
        return {
            name: f"{why}: {said}" if why is not None and said and why not in (MOVED, NOT_THIS_ONE) else why
            for name, why in results.items()
        }

    # Running git.

    @property
    def _url(self) -> str:
        """Return the address for git's command line, without a password.

        Everybody on this machine can see command lines.
        """
        return self.address.without_secret

    def _service(self, name: str) -> list[str]:
        """Return the option that names the remote's `upload-pack` or `receive-pack`."""
        return []

    def _run(self, words: Sequence[str], variables: Mapping[str, str]) -> Finished:
        return self._git.run(Job(words, self._git.patience, variables=variables))

    def _work(
        self,
        words: Sequence[str],
        variables: Mapping[str, str] | None = None,
        *,
        settings: Sequence[str],
        feed: bytes = b"",
        may_fail: bool = False,
    ) -> Job:
        """Return a job that transfers objects."""
        silence = self._git.patience * _WORKING
        return Job(words, silence, settings, variables or {}, feed, progress=self._options.progress, may_fail=may_fail)

    def close(self) -> None:
        self._git.close()

    def _again(self, work: Callable[[], T]) -> T:
        """Retry a broken connection, unless retries do harm."""
        for pause in PAUSES if self._retried else ():
            try:
                return work()
            except ConnectionFailed as error:
                if not error.again:
                    raise
            time.sleep(pause)
        return work()
