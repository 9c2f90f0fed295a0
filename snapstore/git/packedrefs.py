"""The file of all the refs that have none of their own: a line for each, sorted by name."""

from __future__ import annotations

import os

from snapstore.errors import Corrupt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

NAME = "packed-refs"


def lines(git_dir: str) -> list[bytes]:
    try:
        with open(f"{git_dir}/{NAME}", "rb") as file:
            return file.readlines()
    except FileNotFoundError:
        return []


def parse(rows: Iterable[bytes]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for line in rows:
        if line[:1] not in b"#^" and len(line) > 41:
            try:
                oid = bytes.fromhex(line[:40].decode())
            except ValueError:
                raise Corrupt(f"{NAME} is damaged", ref=NAME) from None
            found[line[41:].rstrip(b"\n").decode("utf-8", "surrogateescape")] = oid
    return found


def changed(rows: Iterable[bytes], changes: Mapping[str, bytes | None]) -> Iterator[bytes]:
    """The lines with some refs made, or taken away (None)."""
    kept: dict[bytes, list[bytes]] = {}
    name = b""
    for line in rows:
        if line[:1] != b"^":  # what the tag above it leads to: it stays with that
            name = line[41:].rstrip(b"\n")
        if line[:1] != b"#" and os.fsdecode(name) not in changes:
            kept.setdefault(name, []).append(line)
    for ref, new in changes.items():
        if new is not None:
            kept[os.fsencode(ref)] = [b"%s %s\n" % (new.hex().encode(), os.fsencode(ref))]
    yield b"# pack-refs with: sorted \n"  # not `peeled`: of a new one git is to look itself whether it is a tag
    for _, found in sorted(kept.items()):
        yield from found
