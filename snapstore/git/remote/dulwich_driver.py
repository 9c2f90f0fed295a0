"""Connections through dulwich's client, where git is not installed.

dulwich supports no credential helpers and no time limit over ssh, so git is preferred wherever installed. `lacks` tells
the user. Received objects pass through the same quarantine and the same checks.
"""

from __future__ import annotations

import gc
import logging
import os
import shutil
import socket
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, TypeVar

from dulwich.client import GitClient, HTTPUnauthorized, LocalGitClient, get_transport_and_path
from dulwich.config import StackedConfig, apply_instead_of
from dulwich.errors import ApplyDeltaError, ChecksumMismatch, GitProtocolError, HangupException, NotGitRepository
from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.object_store import DiskObjectStore, ObjectStoreGraphWalker
from dulwich.objects import ZERO_SHA
from dulwich.pack import UnpackedObject, write_pack_data

from snapstore.base.text import one_line
from snapstore.errors import Corrupt, Remote
from snapstore.git.objects.ids import COMMIT, KIND_NUMBERS
from snapstore.git.objects.reachability import commit_links
from snapstore.git.objects.store import Objects
from snapstore.git.remote import folders, urls
from snapstore.git.remote.connection import (
    MOVED,
    NOT_THIS_ONE,
    Connection,
    ConnectionFailed,
    Moves,
    NotAtomic,
    Options,
    is_ref,
)
from snapstore.git.remote.incoming import Incoming
from snapstore.git.remote.urls import Address

T = TypeVar("T")

_QUESTIONS = 3
_INSTALL = "Install git: with it, ssh settings, credential helpers and proxies work as usual."
# What dulwich raises for damaged data. A damaged pack can make dulwich's parser fail in any of these ways.
_DAMAGED = (
    ChecksumMismatch,
    ApplyDeltaError,
    zlib.error,
    AssertionError,
    BufferError,
    EOFError,
    LookupError,
    ValueError,
)


class DulwichConnection(Connection):
    lacks = (
        "git is not installed, so this goes without it: no credential helper is asked, git's settings for the network "
        "count only in part, and a silent ssh server is waited for without limit."
    )

    _who: tuple[str, str] | None = None

    def __init__(self, address: Address, options: Options) -> None:
        super().__init__(_led_to(address), options)

    def refs(self, *, push: bool = False) -> dict[str, bytes]:
        if self.address.scheme == "path":
            folders.refuse_missing(self.address.path, push=push)
            if push:
                folders.refuse_in_use(self.address.path)

        def asked(client: GitClient, path: str) -> dict[str, bytes]:
            answer = client.get_refs(os.fsencode(path))
            found = answer.refs
            self._head = (answer.symrefs or {}).get(b"HEAD", b"").decode("utf-8", "surrogateescape")  # type: ignore[call-overload]
            named = {name.decode("utf-8", "surrogateescape"): oid for name, oid in found.items() if oid}
            return {name: bytes.fromhex(oid.decode("ascii")) for name, oid in named.items() if is_ref(name)}

        found = self._with(asked)
        if self.address.scheme == "path":
            self._head = folders.head(self.address.path)
        return found

    def _fetch(self, wanted: list[bytes], tips: list[bytes], into: Objects) -> Incoming:
        incoming = Incoming(into, self._options.limits)

        def wants(refs: object, depth: int | None = None) -> list[Any]:
            return [_hex(oid) for oid in wanted]

        walker = ObjectStoreGraphWalker([_hex(oid) for oid in tips], lambda oid: _parents(into, oid))

        def asked(client: GitClient, path: str) -> None:
            with _pack_into(incoming, into) as file:

                def write(data: bytes) -> int:
                    if file.tell() + len(data) > incoming.limits.pack:
                        raise Remote(f"more than {incoming.limits.pack:,} bytes would come in", "Fetch less at once.")
                    file.write(data)
                    return len(data)

                client.fetch_pack(os.fsencode(path), wants, walker, write)

        try:
            self._with(asked)
        except BaseException:
            incoming.discard()
            raise
        return incoming.verify(wanted, tips)

    def _push(
        self, going: Moves, objects: Sequence[bytes], source: Objects, *, atomic: bool, has_parts: bool
    ) -> dict[str, str | None]:
        results: dict[str, str | None] = {}
        is_folder = self.address.scheme == "path"
        if is_folder:
            folders.refuse_in_use(self.address.path)
            elsewhere = folders.redirected_refs(self.address.path, going)
            if elsewhere:
                return {name: elsewhere.get(name, NOT_THIS_ONE) for name in going}
            if atomic:  # dulwich moves the refs of a folder one by one
                raise NotAtomic(f"{self.shown} cannot update several refs at once")

        def moves(there: Mapping[Any, Any]) -> dict[Any, Any]:
            results.clear()
            for name, (old, _) in going.items():
                results[name] = None if there.get(name.encode()) == (_hex(old) if old else None) else MOVED
            if atomic and any(results.values()):
                results.update({name: why or NOT_THIS_ONE for name, why in results.items()})
            fit = {name: going[name][1] for name, why in results.items() if why is None}
            return {name.encode(): _hex(new) if new else ZERO_SHA for name, new in fit.items()}

        def packed(*_: object, **__: object) -> tuple[int, Iterator[UnpackedObject]]:
            return len(objects), _unpacked(source, objects)

        def asked(client: GitClient, path: str) -> dict[bytes, str | None]:
            done = client.send_pack(os.fsencode(path), moves, packed, atomic=atomic)
            return dict(done.ref_status or {})

        said = self._with(asked)
        for name, why in said.items():
            if why is not None:
                results[name.decode("utf-8", "surrogateescape")] = one_line(str(why))[:300]
        if is_folder:
            folders.sync(self.address.path, going)
        return results

    # Connecting to the remote.

    def _with(self, work: Callable[[GitClient, str], T]) -> T:
        """Run `work` with a client, with a time limit, and ask for a password if needed."""
        before = socket.getdefaulttimeout()
        socket.setdefaulttimeout(self._options.timeout)
        try:
            # dulwich leaves its connection open when it fails. Collecting it here avoids a warning when the program
            # ends.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                result, refusal = self._tried(work)
                if refusal is not None:
                    gc.collect()
                    raise refusal
            return result  # type: ignore[return-value]
        finally:
            socket.setdefaulttimeout(before)

    def _tried(self, work: Callable[[GitClient, str], T]) -> tuple[T | None, BaseException | None]:
        for left in range(_QUESTIONS, -1, -1):
            client, path = self._client()
            try:
                return work(client, path), None
            except HTTPUnauthorized:
                if not left or not self._asked():
                    what = "refused the password" if self._who else "asks for a password"
                    return None, Remote(f"{self.shown} {what}", _INSTALL)
            except BaseException as error:
                return None, self._refusal(error)
            finally:
                client.close()
        raise AssertionError

    def _client(self) -> tuple[GitClient, str]:
        address = self.address
        if address.scheme == "path":
            return LocalGitClient(thin_packs=False), address.path
        user, password = self._who or (address.user, address.password)
        logging.getLogger("urllib3").setLevel(logging.ERROR)  # otherwise it prints each retry to the terminal
        return get_transport_and_path(
            address.without_secret,
            config=StackedConfig.default(),
            thin_packs=False,
            username=user if password else None,
            password=password or None,
            ssh_command=self._options.environment.get("GIT_SSH_COMMAND") or self._options.environment.get("GIT_SSH"),
        )

    def _asked(self) -> bool:
        if self._options.ask is None:
            return False
        user = self.address.user or self._options.ask(f"Username for {self.shown}", False)
        password = user and self._options.ask(f"Password for {user} at {self.shown}", True)
        self._who = (user, password) if user and password else None
        return self._who is not None

    def _refusal(self, error: BaseException) -> BaseException:
        """Return the snapstore error for an error of dulwich; other errors as they are."""
        words = one_line(str(error))[:300] or type(error).__name__
        if isinstance(error, NotGitRepository):
            return Remote(f"there is no repository at {self.shown}", "Check the address.")
        if isinstance(error, GitProtocolError) and "atomic" in words:
            return NotAtomic(f"{self.shown} cannot update several refs at once")
        # dulwich imports urllib3 only for http, and wraps its exceptions.
        web = next((e for e in (error, error.__cause__) if type(e).__module__.startswith("urllib3")), None)
        waited = isinstance(error, TimeoutError) or isinstance(error.__cause__, TimeoutError)
        if waited or (web is not None and "timed out" in words):
            return ConnectionFailed(f"{self.shown} did not answer in time", "Try again later, or check the network.")
        if isinstance(error, HangupException | GitProtocolError) and web is None:
            return Remote(f"{self.shown} refused or broke off: {words}", "Read its message, then try again.")
        if isinstance(error, OSError) or web is not None:
            return ConnectionFailed(f"{self.shown} cannot be reached: {words}", "Check the address and the network.")
        if isinstance(error, _DAMAGED):
            return Corrupt(f"what came from {self.shown} is damaged: {words}", "Nothing was imported.")
        return error


def _led_to(address: Address) -> Address:
    """Return the folder that the user's `insteadOf` leads to, else the address.

    dulwich would follow `insteadOf` by itself. Raises Unsafe if the target is not a plain address.
    """
    if address.scheme == "path":
        return address
    led = apply_instead_of(StackedConfig.default(), address.without_secret)
    found = address if led == address.without_secret else urls.parse(led)
    return found if found.scheme == "path" else address


def write_pack(file: IO[bytes], source: Objects, ids: Sequence[bytes]) -> None:
    """Write a pack of the listed objects."""
    write_pack_data(file.write, _unpacked(source, ids), num_records=len(ids), object_format=DEFAULT_OBJECT_FORMAT)


def receive_pack(incoming: Incoming, into: Objects, file: IO[bytes]) -> None:
    """Read a pack from a file into the quarantine.

    Raises Corrupt if the pack is damaged.
    """
    try:
        with _pack_into(incoming, into) as target:
            shutil.copyfileobj(file, target)
    except _DAMAGED as error:
        raise Corrupt(f"the received pack is damaged: {one_line(str(error))[:300]}", "Nothing was imported.") from None


@contextmanager
def _pack_into(incoming: Incoming, into: Objects) -> Iterator[Any]:
    """Yield a file in the quarantine, and turn its content into an indexed pack."""
    store = DiskObjectStore(incoming.folder)
    try:
        store.alternates.append(DiskObjectStore(into.folder))  # for the bases of a thin pack
        file, commit, abort = store.add_pack()
        try:
            yield file
        except BaseException:
            abort()
            raise
        made = commit()
        if made is not None:
            made.close()
    finally:
        store.close()


def _unpacked(source: Objects, ids: Sequence[bytes]) -> Iterator[UnpackedObject]:
    for oid in ids:
        kind, data = source.read(oid)
        yield UnpackedObject(KIND_NUMBERS[kind], sha=oid, decomp_chunks=[data])


def _parents(objects: Objects, oid: bytes) -> list[Any]:
    raw = bytes.fromhex(oid.decode("ascii"))
    kind, data = objects.read(raw)
    return [_hex(parent) for parent in commit_links(data, raw)[1]] if kind == COMMIT else []


def _hex(oid: bytes) -> Any:
    return oid.hex().encode("ascii")
