"""A push in words: the moves that are asked for, and what the other side says became of each."""

from __future__ import annotations

from snapstore.errors import Remote
from snapstore.git.commits import one_line
from snapstore.git.transports.pktline import AGENT, FLUSH, ZEROS, packet, packets
from snapstore.git.transports.stream import Broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from snapstore.git.transports.pktline import Advertisement, Source

    Moves = Mapping[str, tuple[bytes | None, bytes | None]]


def commands(going: Moves, offered: Advertisement, atomic: bool) -> bytes:
    able = offered.capabilities
    wished = ["report-status", "side-band-64k", "ofs-delta", "delete-refs", "quiet"] + ["atomic"] * atomic
    words = [word for word in wished if word in able] + [AGENT]
    lines = [
        f"{old.hex() if old else ZEROS} {new.hex() if new else ZEROS} {name}".encode("utf-8", "surrogateescape")
        for name, (old, new) in going.items()
    ]
    lines[0] += b"\0 " + " ".join(words).encode()
    return b"".join(packet(line + b"\n") for line in lines) + FLUSH


def results(said: Source, going: Mapping[str, object]) -> dict[str, str | None]:
    results: dict[str, str | None] = dict.fromkeys(going, "the other side said nothing about it")
    unpacking = ""
    for line in packets(said):
        word, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
        if word == "unpack" and rest != "ok":
            unpacking = _words(rest)
        elif word == "ok" and rest in results:
            results[rest] = None
        elif word == "ng":
            name, _, why = rest.partition(" ")
            if name in results:
                results[name] = _words(why) or "refused"
    if unpacking:
        raise Remote(f"the other side could not store what was sent: {unpacking}")
    return results


def _words(text: str) -> str:
    return one_line(text)[:300]


class Lines:
    """Pieces as something to read from."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._buffer = b""

    def read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            piece = next(self._pieces, None)
            if piece is None:
                raise Broken("the other side broke off before it said what became of the push")
            self._buffer += piece
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def read_some(self) -> bytes:
        data, self._buffer = self._buffer, b""
        return data or next(self._pieces, b"")
