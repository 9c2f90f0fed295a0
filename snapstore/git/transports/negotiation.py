"""What to fetch, told in as few words as possible: wants, and what we have, until the server knows enough."""

from __future__ import annotations

from itertools import islice

from snapstore.git.missing import ancestors, reached
from snapstore.git.transports.pktline import AGENT, FLUSH, packet, packets, read_packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from snapstore.git.odb import Objects
    from snapstore.git.transports.pktline import Advertisement, Source

_FIRST_ROUND = 32
_IN_VAIN = 512  # haves that led nowhere; the rest is fetched anew


class Negotiation:
    """One fetch. The same words serve a stream, where each is said once, and http, where all are said each time."""

    def __init__(
        self, offered: Advertisement, wants: Iterable[bytes], tips: Iterable[bytes], into: Objects, *, quiet: bool
    ) -> None:
        able = offered.capabilities
        wished = ["multi_ack_detailed", "side-band-64k", "ofs-delta"] + ["no-progress"] * quiet
        words = [word for word in wished if word in able] + [AGENT]
        self.side_band = "side-band-64k" in able
        # Without detailed answers there is no telling what a server has found out: it gets everything at once.
        self.talks = "multi_ack_detailed" in able
        lines = [f"want {oid.hex()}" for oid in wants]
        lines[0] += " " + " ".join(words)
        self.wants = b"".join(packet(line.encode() + b"\n") for line in lines) + FLUSH
        self.shared: list[bytes] = []
        self._shared: set[bytes] = set()
        # What it offers and our refs lead to is common for certain, and is said first. That it is stored here is not
        # enough: what is left of a failed fetch may lack parts, and a gc may remove it while we talk.
        common = dict.fromkeys(reached(into, tips := list(tips), offered.refs.values()))
        self._haves = _each_once(common, ancestors(into, [*common, *tips], self._shared))
        self._round = _FIRST_ROUND
        self._vain = 0
        self._ready = False

    def rounds(self) -> Iterator[bytes]:
        """The next things to say that we have; ends when the server is ready or there is nothing more to say."""
        while not self._ready and self._vain < _IN_VAIN:
            batch = list(islice(self._haves, self._round))
            if not batch:
                return
            self._vain += len(batch)
            self._round = min(256, self._round * 2)
            yield haves(batch)

    def hear(self, source: Source) -> None:
        """The answer to one round."""
        while (line := read_packet(source)) is not None:
            words = line.split()
            if words[:1] == [b"NAK"]:
                return
            if words[:1] == [b"ACK"] and len(words) == 3:
                self._acknowledged(words[1], words[2])

    def hear_last(self, source: Source) -> None:
        """The answer to `done`, up to where the pack begins."""
        for line in packets(source):
            words = line.split()
            if words[:1] == [b"NAK"] or (words[:1] == [b"ACK"] and len(words) == 2):
                return

    def _acknowledged(self, digits: bytes, how: bytes) -> None:
        try:
            oid = bytes.fromhex(digits.decode("ascii"))
        except ValueError:
            return
        self._ready = self._ready or how == b"ready"
        if oid not in self._shared:
            self._vain = 0
            self._shared.add(oid)
            self.shared.append(oid)


def haves(ids: Iterable[bytes]) -> bytes:
    return b"".join(packet(f"have {oid.hex()}\n".encode()) for oid in ids)


def _each_once(first: dict[bytes, None], then: Iterator[bytes]) -> Iterator[bytes]:
    yield from first
    for oid in then:
        if oid not in first:
            yield oid
