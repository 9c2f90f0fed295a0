"""Manage the remotes of a store: names for addresses, and which get every turn.

No credentials are stored: git's credential helpers, the ssh agent and the server decide who may push.
"""

from __future__ import annotations

import os
from typing import Any

from snapstore.errors import Unknown, Unsafe, Usage, did_you_mean, similar
from snapstore.git.remote.urls import is_token, shown
from snapstore.store import log
from snapstore.store.handle import StoreHandle
from snapstore.store.state import check_name, encode

DEFAULT = "origin"
DOCUMENT = "remotes.json"


class _Document:
    __slots__ = ("remotes",)

    def __init__(self, *, remotes: dict[str, dict[str, Any]] | None = None) -> None:
        self.remotes = remotes or {}


class Remote:
    """Where to push and pull; a remote given by its address alone has no name."""

    __slots__ = ("auto", "name", "url")

    def __init__(self, name: str, url: str, auto: bool = False) -> None:
        self.name = name
        self.url = url
        self.auto = auto

    @property
    def shown(self) -> str:
        """Return the address without secrets."""
        return shown(self.url)


class Remotes:
    """The remotes of one store."""

    def __init__(self, store: StoreHandle) -> None:
        self._store = store

    def list(self) -> list[Remote]:
        document = self._store.documents.read(_Document, DOCUMENT) or _Document()
        return [Remote(name, row["url"], bool(row.get("auto"))) for name, row in sorted(document.remotes.items())]

    def add(self, name: str, url: str, *, auto: bool = False) -> Remote:
        """Name an address; repeating the same name and address changes nothing but `auto`."""
        check_name(name, "remote")
        refuse_password(url)
        url = absolute(url)
        with self._store.changing():
            known = {remote.name: remote for remote in self.list()}
            if name in known and known[name].url != url:
                raise Usage(
                    f"remote {name} already exists: {known[name].shown}",
                    f"Choose another name, or run `snapstore remote remove {name}` first.",
                )
            known[name] = Remote(name, url, auto or (name in known and known[name].auto))
            self._write(known.values(), f"remote {name}")
        self._update_setting()
        return known[name]

    def remove(self, name: str) -> Remote:
        """Remove a remote; the server does not change, and what was pulled from it stays."""
        with self._store.changing():
            known = {remote.name: remote for remote in self.list()}
            gone = known.pop(name, None)
            if gone is None:
                raise self._unknown(name)
            self._write(known.values(), f"remote {name} removed")
        self._clear_notice(name)
        self._update_setting()
        return gone

    def make_automatic(self, name: str, auto: bool) -> Remote:
        """Set whether every turn is pushed to the remote automatically."""
        with self._store.changing():
            known = {remote.name: remote for remote in self.list()}
            if name not in known:
                raise self._unknown(name)
            known[name].auto = auto
            self._write(known.values(), f"remote {name} {'automatic' if auto else 'by hand'}")
        if not auto:
            self._clear_notice(name)
        self._update_setting()
        return known[name]

    def find(self, name: str | None) -> Remote:
        """Find a remote by name or address; without either, the only one or `origin`."""
        known = {remote.name: remote for remote in self.list()}
        if name is None:
            if len(known) == 1:
                return next(iter(known.values()))
            if DEFAULT in known:
                return known[DEFAULT]
            if not known:
                raise Unknown("this store has no remote", "Add one: `snapstore remote add origin URL`.")
            raise Usage("this store has several remotes, none called origin", f"Name one of {', '.join(known)}.")
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

    def _clear_notice(self, name: str) -> None:
        """Clear the notice about failed automatic pushes; there will be no more pushes."""
        log.clear_notice(f"{self._store.folder}/log", f"push-{name}")

    def _update_setting(self) -> None:
        """Update the `auto_push` setting, which every turn reads, from the remotes."""
        wanted = any(remote.auto for remote in self.list())
        if self._store.header.auto_push != wanted:
            self._store.configure(auto_push=wanted)


def is_address(text: str) -> bool:
    """Return whether a text is an address (URL, host and path, or path) and not a name."""
    return "://" in text or ":" in text or "/" in text or text in (".", "..")


def refuse_password(url: str) -> None:
    """Raise Unsafe for an address with a password, which the store must not contain.

    Anyone who can read the store's file could push.
    """
    authority = url.partition("://")[2].partition("/")[0]
    user = authority.rpartition("@")[0]
    if ":" in user or (is_token(user) and url.lower().startswith("http")):
        raise Unsafe(
            f"an address with a {'password' if ':' in user else 'token'} in it is not stored",
            "Leave it out of the address; git's credential helpers (`git config credential.helper`) supply it.",
        )


def absolute(url: str) -> str:
    """Make a path absolute, so that it means the same from every folder."""
    if "://" in url or url.startswith("-"):
        return url
    head = url.partition("/")[0]
    if ":" in head:
        return url
    return os.path.abspath(os.path.expanduser(url))
