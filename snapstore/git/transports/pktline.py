"""Packet lines: the framing of git's protocol, and what the two services say in it.

Ours, not dulwich's: `import dulwich.client` costs 87 ms, a whole `git push` of one commit to a folder 20 to 30.
"""

from __future__ import annotations

from snapstore.errors import Remote
from snapstore.git.commits import one_line
from snapstore.git.refs import bad_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    class Source(Protocol):
        def read(self, size: int) -> bytes: ...
        def read_some(self) -> bytes: ...

    # What is being done, how much of it, out of how much (0: unknown).
    Progress = Callable[[str, int, int], None]

FLUSH = b"0000"
AGENT = "agent=snapstore"
LONGEST = 65516
MOST_REFS = 1_000_000
ZEROS = "0" * 40


class Advertisement:
    """What a server offers: refs (without HEAD and what git would not call a ref), and what it can do."""

    __slots__ = ("capabilities", "haves", "refs")

    def __init__(self) -> None:
        self.refs: dict[str, bytes] = {}
        self.haves: set[bytes] = set()  # objects it has besides, from repositories it borrows from
        self.capabilities: dict[str, str] = {}


def packet(data: bytes) -> bytes:
    return b"%04x%s" % (len(data) + 4, data)


def packets(source: Source) -> Iterator[bytes]:
    """Lines up to a flush."""
    while (data := read_packet(source)) is not None:
        yield data


def read_packet(source: Source) -> bytes | None:
    """A line's data, None for a flush. A server's refusal is raised in its own words."""
    head = source.read(4)
    try:
        size = int(head, 16)
    except ValueError:
        said = one_line((head + source.read_some()).decode("utf-8", "replace"))[:200]
        raise Remote(f"the other side does not speak git; it says: {said}") from None
    if size == 0:
        return None
    if not 4 <= size <= 65520:
        raise Remote("the other side does not speak git as we know it")
    data = source.read(size - 4)
    if data.startswith(b"ERR "):
        raise refused(data[4:])
    return data


def refused(words: bytes) -> Remote:
    said = one_line(words.decode("utf-8", "replace"))[:500]
    return Remote(f"the other side refused: {said}")


def read_advertisement(source: Source) -> Advertisement:
    found = Advertisement()
    first = True
    for line in packets(source):
        if line.startswith(b"version "):
            continue
        if first:
            line, _, words = line.partition(b"\0")
            for word in words.decode("utf-8", "replace").split():
                key, _, value = word.partition("=")
                found.capabilities[key] = value
            first = False
        _advertised(found, line.rstrip(b"\n"))
        if len(found.refs) > MOST_REFS:
            raise Remote(f"the other side has more than {MOST_REFS:,} refs", "This is no place for turns; use another.")
    if found.capabilities.get("object-format", "sha1") != "sha1":
        raise Remote("the other side keeps its objects under another hash", "Use a repository made with sha1.")
    return found


def _advertised(found: Advertisement, line: bytes) -> None:
    digits, _, name = line.partition(b" ")
    if digits == b"shallow":
        raise Remote("the other side has only the end of its history", "Use a whole repository, not a shallow clone.")
    try:
        oid = bytes.fromhex(digits.decode("ascii"))
    except ValueError:
        oid = b""
    if len(oid) != 20:
        raise Remote("the other side names its refs in a way that git does not")
    ref = name.decode("utf-8", "surrogateescape")
    if name == b".have":
        found.haves.add(oid)
    elif is_ref(ref):
        found.refs[ref] = oid


def is_ref(name: str) -> bool:
    parts = name.split("/")
    return len(parts) >= 3 and parts[0] == "refs" and not any(bad_part(part) for part in parts) and len(name) < 1024


def side_band(source: Source, progress: Progress | None) -> Iterator[bytes]:
    """The data of channel 1. What the server says meanwhile goes to `progress`, and its last words are raised."""
    for line in packets(source):
        if line[:1] == b"\1":
            yield line[1:]
        elif line[:1] == b"\2":
            if progress is not None:
                _pass_on(line[1:], progress)
        elif line[:1] == b"\3":
            raise refused(line[1:])


def _pass_on(words: bytes, progress: Progress) -> None:
    """`Counting objects:  40% (4/10)` as numbers; whatever else a server wants to say stays unsaid."""
    for text in words.decode("utf-8", "replace").replace("\r", "\n").split("\n"):
        what, separator, rest = text.partition(":")
        done, slash, total = rest.partition("(")[2].partition(")")[0].partition("/")
        if separator and slash and done.isdecimal() and total.isdecimal() and len(done) < 18 and len(total) < 18:
            progress(one_line(what).removeprefix("remote: ")[:60], int(done), int(total))
