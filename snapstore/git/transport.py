"""The other side of a remote: its refs, what to fetch from it, what to push to it.

`open_remote` gives a Connection for a path or an https, http, ssh, git or file address. A Connection asks on first use.
The protocol is git's version 0, which every server speaks.
"""

from __future__ import annotations

import os
import time

from snapstore.git import missing, outgoing
from snapstore.git.transports import report, urls
from snapstore.git.transports.pktline import (
    FLUSH,
    is_ref,
    packet,
    packets,
    read_advertisement,
    refused,
    side_band,
)
from snapstore.git.transports.stream import Broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from snapstore.git.odb import Objects
    from snapstore.git.receive import Incoming, Limits
    from snapstore.git.transports.negotiation import Negotiation
    from snapstore.git.transports.pktline import Advertisement, Progress, Source
    from snapstore.git.transports.report import Moves
    from snapstore.git.transports.stream import Stream

    T = TypeVar("T")
    # Asks a person: what for, and whether the answer is secret. None where nobody answers.
    Ask = Callable[[str, bool], str | None]

MOVED = "it moved meanwhile"
FETCH, PUSH = "git-upload-pack", "git-receive-pack"
TIMEOUT = 60.0
_PAUSES = (0.2, 0.8)


def open_remote(
    url: str,
    *,
    progress: Progress | None = None,
    environment: Mapping[str, str] | None = None,
    ask: Ask | None = None,
    timeout: float = TIMEOUT,
    limits: Limits | None = None,
) -> Connection:
    """Raises Unsafe for an address that must not be followed; nothing is asked of the other side yet. `ask` is given
    only where a person sits at a terminal."""
    address = urls.parse(url)
    options = (address, progress, os.environ if environment is None else environment, ask, timeout, limits)
    if address.scheme in ("http", "https"):
        from snapstore.git.transports.http import HttpConnection

        return HttpConnection(*options)
    if address.scheme == "path":
        from snapstore.git.transports.folder import FolderConnection

        return FolderConnection(*options)
    return Connection(*options)


class Connection:
    """One remote. Close it, or use it in a `with` block."""

    def __init__(
        self,
        address: urls.Address,
        progress: Progress | None,
        environment: Mapping[str, str],
        ask: Ask | None,
        timeout: float,
        limits: Limits | None,
    ) -> None:
        self.address = address
        self._progress = progress
        self._environment = environment
        self._ask = ask
        self._timeout = timeout
        self._limits = limits
        self._stream: Stream | None = None
        self._service = ""
        self._offered: Advertisement | None = None

    @property
    def shown(self) -> str:
        """The address without anything secret."""
        return self.address.shown

    @property
    def capabilities(self) -> dict[str, str]:
        """What the service asked last can do."""
        return dict(self._offered.capabilities) if self._offered is not None else {}

    def refs(self, *, push: bool = False) -> dict[str, bytes]:
        """Every ref there, by full name. With `push`, asked from the service that a push then goes on speaking to: one
        process or request less."""
        return dict(self._ask_for(PUSH if push else FETCH, anew=True).refs)

    def fetch(self, wants: Collection[bytes], haves: Iterable[bytes], into: Objects) -> Incoming:
        """Brings in what the wanted tips need and the store lacks. `haves` are tips of ours, whole with all their
        history. What came is checked in full, and invisible until `Incoming.accept`."""
        from snapstore.git.receive import Incoming  # a push does without

        tips = [oid for oid in haves if into.contains(oid, fresh=False)]
        wanted = list(dict.fromkeys(wants))
        if all(oid in tips for oid in wanted):
            return Incoming(into, self._limits, self._progress)
        return self._again(lambda: self._fetch(wanted, tips, into), self.address.scheme != "path")

    def push(
        self,
        updates: Moves,
        objects: Sequence[bytes],
        source: Objects,
        *,
        atomic: bool = True,
        forced: Collection[str] = (),
    ) -> dict[str, str | None]:
        """Moves refs there from the value seen to a new one (None: absent), sending the listed objects (see
        git/missing.py). Gives for each ref None, or why it stayed. A ref only advances, unless it is named in `forced`.
        With `atomic` all move or none, where the server can (capability `atomic`)."""
        offered = self._ask_for(PUSH)
        results = {
            name: _unfit(name, old, new, offered, source, name in forced) for name, (old, new) in updates.items()
        }
        going = {name: updates[name] for name, why in results.items() if why is None}
        if atomic and len(going) != len(updates):
            going = {}
            results = {name: why or "another ref of the same push cannot move" for name, why in results.items()}
        going = {name: (old, new) for name, (old, new) in going.items() if old != new}
        if not going:
            return results
        try:
            can = "atomic" in offered.capabilities
            results.update(self._moved(going, objects, source, offered, atomic=atomic and can))
        finally:
            self.close()
        return results

    def close(self) -> None:
        stream, self._stream, self._offered, self._service = self._stream, None, None, ""
        if stream is not None:
            stream.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # What differs between a stream and http.

    def _open(self, service: str) -> Advertisement:
        from snapstore.git.transports.local import reach

        self._stream = reach(self.address, service, self._environment, self._timeout, interactive=self._ask is not None)
        try:
            return read_advertisement(self._stream)
        except BaseException:
            stream, self._stream = self._stream, None
            stream.close()
            raise

    def _packed(self, talk: Negotiation) -> Iterator[bytes]:
        stream = self._stream
        assert stream is not None
        stream.write(talk.wants)
        for words in talk.rounds():
            if talk.talks:
                stream.write(words + FLUSH)
                talk.hear(stream)
            else:
                stream.write(words)
        stream.write(packet(b"done\n"))
        talk.hear_last(stream)
        yield from unpacked(stream, talk, self._progress)

    def _exchange(self, commands: bytes, pack: Callable[[], Iterable[bytes]]) -> Source:
        stream = self._stream
        assert stream is not None
        try:
            stream.write(commands)
            for piece in pack():
                stream.write(piece)
        except Broken as error:
            # It hung up because it had seen enough: what it said before that is the reason.
            try:
                self._heard(stream)
            except Broken:
                raise error from None
        return stream

    def _heard(self, stream: Stream) -> None:
        """Raises what the server said before it hung up."""
        for line in packets(stream):
            if line[:1] == b"\3":
                raise refused(line[1:])

    # The same for both.

    def _fetch(self, wanted: list[bytes], tips: list[bytes], into: Objects) -> Incoming:
        from snapstore.git.receive import Incoming
        from snapstore.git.transports.negotiation import Negotiation

        incoming = Incoming(into, self._limits, self._progress)
        try:
            offered = self._ask_for(FETCH)
            talk = Negotiation(offered, wanted, tips, into, quiet=self._progress is None)
            return incoming.receive(self._packed(talk), wanted, tips)
        except BaseException:
            incoming.discard()
            raise
        finally:
            self.close()

    def _again(self, work: Callable[[], T], retried: bool) -> T:
        """A broken connection is made anew, where that does no harm."""
        for pause in _PAUSES if retried else ():
            try:
                return work()
            except Broken as error:
                if not error.again:
                    raise
            time.sleep(pause)
        return work()

    def _ask_for(self, service: str, *, anew: bool = False) -> Advertisement:
        """What the service offers; asked once, and again after a fetch or push has used it up."""
        if self._offered is None or self._service != service or anew:
            self.close()
            # Not ssh: a wrong key would be offered three times.
            self._offered = self._again(lambda: self._open(service), self.address.scheme == "git")
            self._service = service
        return self._offered

    def _moved(
        self, going: Moves, objects: Sequence[bytes], source: Objects, offered: Advertisement, *, atomic: bool
    ) -> dict[str, str | None]:
        sends = any(new is not None for _, new in going.values())
        pack = (lambda: self._counted(source, objects, offered)) if sends else tuple
        answer = self._exchange(report.commands(going, offered, atomic), pack)
        return self._report(answer, going, offered)

    def _counted(self, source: Objects, objects: Sequence[bytes], offered: Advertisement) -> Iterator[bytes]:
        progress = self._progress
        total = len(objects)
        count = (lambda done: progress("sending", done, total)) if progress is not None else None
        return outgoing.pack(source, objects, offset_deltas="ofs-delta" in offered.capabilities, count=count)

    def _report(self, answer: Source, going: Moves, offered: Advertisement) -> dict[str, str | None]:
        if "report-status" not in offered.capabilities:
            self.close()
            found = self.refs(push=True)
            return {
                name: None if found.get(name) == new else "the other side did not take it"
                for name, (_, new) in going.items()
            }
        if "side-band-64k" in offered.capabilities:
            return report.results(report.Lines(side_band(answer, self._progress)), going)
        return report.results(answer, going)


def unpacked(source: Source, talk: Negotiation, progress: Progress | None) -> Iterator[bytes]:
    """The pack's bytes out of what follows the last word of a negotiation."""
    if talk.side_band:
        yield from side_band(source, progress)
    else:
        while piece := source.read_some():
            yield piece


def _unfit(
    name: str, old: bytes | None, new: bytes | None, offered: Advertisement, source: Objects, forced: bool
) -> str | None:
    """Why a ref cannot move, as far as we can tell without sending anything."""
    if not is_ref(name):
        return "not a ref name"
    if offered.refs.get(name) != old:
        return MOVED
    if new is None:
        return None if "delete-refs" in offered.capabilities else "the other side deletes no refs"
    if old is None or old == new or forced:
        return None
    if not source.contains(old) or not missing.is_ancestor(source, old, new):
        return "it would not simply advance"
    return None
