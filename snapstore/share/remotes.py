"""The remotes of a store: a short name for an address, and whether every turn goes there by itself.

No credentials are kept: who may push is between git's credential helpers, the ssh agent and the server.
"""

from __future__ import annotations

import os

from snapstore.errors import Unknown, Unsafe, Usage, did_you_mean, similar
from snapstore.git.remote.urls import is_token, shown
from snapstore.store import log
from snapstore.store.state import check_name, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.store.handle import StoreHandle

DEFAULT = "origin"
DOCUMENT = "remotes.json"


class _Document:
    __slots__ = ("remotes",)

    def __init__(self, *, remotes: dict[str, dict[str, Any]] | None = None) -> None:
        self.remotes = remotes or {}


class Remote:
    """Where to push and pull. One that is given by its address alone has no name."""

    __slots__ = ("auto", "name", "url")

    def __init__(self, name: str, url: str, auto: bool = False) -> None:
        self.name = name
        self.url = url
        self.auto = auto

    @property
    def shown(self) -> str:
        """The address without anything secret."""
        return shown(self.url)


class Remotes:
    def __init__(self, store: StoreHandle) -> None:
        self._store = store

    def list(self) -> list[Remote]:
        document = self._store.documents.read(_Document, DOCUMENT) or _Document()
        return [Remote(name, row["url"], bool(row.get("auto"))) for name, row in sorted(document.remotes.items())]

    def add(self, name: str, url: str, *, auto: bool = False) -> Remote:
        """A name for an address. The same again changes nothing but `auto`."""
        check_name(name, "remote")
        refuse_password(url)
        url = absolute(url)
        with self._store.changing():
            known = {remote.name: remote for remote in self.list()}
            if name in known and known[name].url != url:
                raise Usage(
                    f"there is a remote {name} already: {known[name].shown}",
                    f"Choose another name, or `snapstore remote remove {name}` first.",
                )
            known[name] = Remote(name, url, auto or (name in known and known[name].auto))
            self._write(known.values(), f"remote {name}")
        self._follow()
        return known[name]

    def remove(self, name: str) -> Remote:
        """Forgets an address. Nothing changes there, and what was pulled from it stays."""
        with self._store.changing():
            known = {remote.name: remote for remote in self.list()}
            gone = known.pop(name, None)
            if gone is None:
                raise self._unknown(name)
            self._write(known.values(), f"remote {name} removed")
        self._hush(name)
        self._follow()
        return gone

    def make_automatic(self, name: str, auto: bool) -> Remote:
        """Whether every turn goes there by itself."""
        with self._store.changing():
            known = {remote.name: remote for remote in self.list()}
            if name not in known:
                raise self._unknown(name)
            known[name].auto = auto
            self._write(known.values(), f"remote {name} {'automatic' if auto else 'by hand'}")
        if not auto:
            self._hush(name)
        self._follow()
        return known[name]

    def find(self, name: str | None) -> Remote:
        """By name or by address; without either, the only one or `origin`."""
        known = {remote.name: remote for remote in self.list()}
        if name is None:
            if len(known) == 1:
                return next(iter(known.values()))
            if DEFAULT in known:
                return known[DEFAULT]
            if not known:
                raise Unknown("this store has no remote", "Name one: `snapstore remote add origin URL`.")
            raise Usage("which remote?", f"There are {', '.join(known)}.")
        if name in known:
            return known[name]
        if is_address(name):
            url = absolute(name)
            return next((remote for remote in known.values() if remote.url == url), Remote("", url))
        raise self._unknown(name)

    def _unknown(self, name: str) -> Unknown:
        known = [remote.name for remote in self.list()]
        hint = did_you_mean(similar(name, known), f"Remotes here: {', '.join(known) or 'none'}.")
        return Unknown(f"there is no remote {name!r}", hint, remote=name)

    def _write(self, remotes: Any, what: str) -> None:
        document = _Document(remotes={one.name: {"url": one.url, "auto": one.auto} for one in remotes})
        self._store.journal.carry_out([], {DOCUMENT: encode(document)}, what=what)

    def _hush(self, name: str) -> None:
        """That a push by itself did not get there is of no interest any more: there will be none."""
        log.settle(f"{self._store.folder}/log", f"push-{name}")

    def _follow(self) -> None:
        """The setting that every turn looks at follows what the remotes say."""
        wanted = any(remote.auto for remote in self.list())
        if self._store.header.auto_push != wanted:
            self._store.configure(auto_push=wanted)


def is_address(text: str) -> bool:
    """Whether it is an address, not a remote's name: with a scheme, a host and a path, or a path."""
    return "://" in text or ":" in text or "/" in text or text in (".", "..")


def refuse_password(url: str) -> None:
    """Raises Unsafe for an address with a password in it: whoever can read the file could push."""
    authority = url.partition("://")[2].partition("/")[0]
    user = authority.rpartition("@")[0]
    if ":" in user or (is_token(user) and url.lower().startswith("http")):
        raise Unsafe(
            f"an address with a {'password' if ':' in user else 'token'} in it is not kept",
            "Leave it out; git's credential helpers (`git config credential.helper`) are asked for it.",
        )


def absolute(url: str) -> str:
    """A path means the same from every folder."""
    if "://" in url or url.startswith("-"):
        return url
    head = url.partition("/")[0]
    if ":" in head:
        return url
    return os.path.abspath(os.path.expanduser(url))
