"""Names that must never be captured or written: everything that a file system may take for `.git`."""

from __future__ import annotations

# Code points that HFS+ ignores when it compares names (U+200C and similar).
_HFS_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF], None)

LONGEST_PATH = 4095  # bytes; the longest path that the operating system accepts

# The possible first bytes of a spelling of `.git`: one lookup rules out most names.
GIT_BEGINNINGS = frozenset(b".gG\xe2\xef")


def is_git(name: bytes) -> bool:
    """Return whether some file system takes a name for `.git`.

    Variants are upper case, trailing dots and spaces, the short name `git~1`, an NTFS stream, and code points that HFS+
    ignores.
    """
    if len(name) < 4 or name[0] not in GIT_BEGINNINGS:
        return False
    plain = name.split(b":", 1)[0].rstrip(b" .").lower()
    if plain in (b".git", b"git~1"):
        return True
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return text.translate(_HFS_IGNORED).lower() == ".git"


def has_unsafe_part(path: bytes) -> bool:
    """Return whether a path has a part that must not be followed or written."""
    return any(
        not part or part in (b".", b"..") or b"\0" in part or len(part) > 255 or is_git(part)
        for part in path.split(b"/")
    )
