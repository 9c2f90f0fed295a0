"""A repository on a server, through git; or a folder that `insteadOf` leads to.

Such a folder is accessed like any other folder, so that the rules that protect its owner apply (folders.py). git is not
allowed to access a folder by itself. If git refuses, the user's config is read to find the folder. Other addresses are
left to git.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from snapstore.git.objects.store import Objects
from snapstore.git.remote import urls
from snapstore.git.remote.connection import Moves, Options, RedirectRefused
from snapstore.git.remote.folder_driver import FolderConnection
from snapstore.git.remote.git_driver import GitConnection
from snapstore.git.remote.git_runner import SERVERS
from snapstore.git.remote.incoming import Incoming
from snapstore.git.remote.process import Job
from snapstore.git.remote.urls import Address


class ServerConnection(GitConnection):
    fence = SERVERS

    def __init__(self, address: Address, options: Options, program: str) -> None:
        super().__init__(address, options, program)
        self._program = program

    def refs(self, *, push: bool = False) -> dict[str, bytes]:
        try:
            return self._again(self._ls_remote)
        except RedirectRefused as refusal:
            folder = self._folder(refusal)
            found = folder.refs(push=push)
            self._head = folder.default_branch()
            return found

    def _fetch(self, wanted: list[bytes], tips: list[bytes], into: Objects) -> Incoming:
        try:
            return super()._fetch(wanted, tips, into)
        except RedirectRefused as refusal:
            return self._folder(refusal)._fetch(wanted, tips, into)

    def _push(
        self, going: Moves, objects: Sequence[bytes], source: Objects, *, atomic: bool, has_parts: bool
    ) -> dict[str, str | None]:
        try:
            return super()._push(going, objects, source, atomic=atomic, has_parts=has_parts)
        except RedirectRefused as refusal:
            folder = self._folder(refusal, push=True)
            return folder._push(going, objects, source, atomic=atomic, has_parts=has_parts)

    def _folder(self, refusal: RedirectRefused, *, push: bool = False) -> FolderConnection:
        """Return a connection to the folder that the config leads to.

        Raises the refusal if the target is not a folder.
        """
        if refusal.protocol != "file":
            raise refusal
        url = rewritten(self._url, self._rewrites(), push=push)
        # A relative path would be relative to git's working directory.
        address = urls.parse(url if "://" in url else os.path.join("/", url))
        if address.scheme != "path":
            raise refusal
        return FolderConnection(address, self._options, self._program)

    def _rewrites(self) -> list[tuple[str, bool, str]]:
        """Return the user's rewrite rules: prefix, whether only for pushes, replacement."""
        words = ["config", "--null", "--get-regexp", r"^url\..*\.(push)?insteadof$"]
        found: list[tuple[str, bool, str]] = []
        done = self._git.run(Job(words, self._git.patience, variables={"GIT_DIR": os.devnull}, may_fail=True))
        for line in os.fsdecode(done.output).split("\0"):
            key, _, beginning = line.partition("\n")
            base, _, kind = key.removeprefix("url.").rpartition(".")
            if beginning:
                found.append((beginning, kind == "pushinsteadof", base))
        return found


def rewritten(url: str, rewrites: Sequence[tuple[str, bool, str]], *, push: bool) -> str:
    """Return the address that git uses after rewriting.

    The longest matching prefix wins. For a push, rules for pushes come first.
    """
    for for_push in (True, False) if push else (False,):
        fit = [rule for rule in rewrites if rule[1] == for_push and url.startswith(rule[0])]
        if fit:
            beginning, _, base = max(fit, key=lambda rule: len(rule[0]))
            return base + url[len(beginning) :]
    return url
