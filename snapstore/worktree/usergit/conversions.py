"""Detects files whose blob may differ from the file on disk, because git converts content.

Line endings, `$Id$`, filters and encodings make the blob in the user's index differ from the file on disk. A store that
borrowed such a blob would restore other bytes than it recorded. So every path that a conversion could affect is
`suspect`, and is hashed. Too many paths may be suspect, but never too few: which attribute wins is not computed,
patterns match generously, and a line that cannot be parsed makes everything below its folder suspect.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping

from snapstore.worktree.usergit.config import DOUBT, read_text, truthy, user_file
from snapstore.worktree.usergit.user_repo import UserRepo

CONVERTING = frozenset((b"text", b"crlf", b"eol", b"ident", b"filter", b"working-tree-encoding"))
SYSTEM_ATTRIBUTES = (
    b"/etc/gitattributes",
    b"/usr/local/etc/gitattributes",
    b"/opt/homebrew/etc/gitattributes",
    b"/Library/Developer/CommandLineTools/usr/share/git-core/gitattributes",
    b"/Applications/Xcode.app/Contents/Developer/usr/share/git-core/gitattributes",
)
MACRO = b"[attr]"
BLANK = b" \t\r\n"
POINTER = 1024  # git-lfs writes at most this many bytes for a file
MANY_STARS = 4  # each further star multiplies the work of a failing match; no real pattern needs more
MANY_RULES = 5000
MANY_MACROS = 100
ANY_NAME = b"(?:.*/)?[^/]*"


class Conversions:
    """The conversions that git could apply to the files of a checkout.

    If `file_mode` or `symlinks` is false, git's index does not record modes or links as on disk.
    """

    __slots__ = ("_matches", "everything", "file_mode", "smallest", "symlinks")

    def __init__(self, everything: bool, file_mode: bool, symlinks: bool) -> None:
        self.everything = everything
        self.file_mode = file_mode
        self.symlinks = symlinks
        self.smallest = 0  # smaller files are suspect too: with git-lfs a blob may be a pointer of that size
        self._matches: Callable[[bytes], object] | None = None

    @property
    def nothing(self) -> bool:
        """Return whether no path at all is suspect."""
        return self._matches is None and not self.everything

    def suspect(self, path: bytes) -> bool:
        """Return whether a file must be hashed, because its blob may differ.

        The path starts at the top of the checkout.
        """
        if self._matches is None:
            return self.everything
        return self._matches(path) is not None


def read_conversions(
    repo: UserRepo,
    config: Mapping[str, str],
    attribute_files: Mapping[bytes, bytes],
    home: bytes | None = None,
    staged: Mapping[bytes, bytes] | None = None,
) -> Conversions:
    """Return what the configuration and all attribute files together could convert.

    `attribute_files` maps a folder (from the top, b"" for the top) to the text of its .gitattributes on disk. `staged`
    holds the index's entries: git falls back to the staged .gitattributes if there is none on disk, and a
    .gitattributes edited since may have been in force when the files were checked out. Both make their folder suspect.
    `home` defaults to $HOME.
    """
    found = Conversions(
        everything=_converts_all(config),
        file_mode=truthy(config.get("core.filemode", "true")),
        symlinks=truthy(config.get("core.symlinks", "true")),
    )
    if any(key.startswith("filter.lfs.") for key in config):
        found.smallest = POINTER
    if found.everything:
        return found
    rules = _Rules()
    home = home if home is not None else os.environb.get(b"HOME")
    for place in (*SYSTEM_ATTRIBUTES, os.path.join(repo.common_dir, b"info", b"attributes")):
        rules.read(b"", read_text(place))
    setting = config.get("core.attributesfile")
    own = user_file(repo, setting, home, b"attributes")
    if own or setting:
        rules.read(b"", read_text(own) if own else None)
    for folder, text in attribute_files.items():
        rules.read(folder, text)
    for folder in _unlike_staged(attribute_files, staged or {}):
        rules.read(folder, None)
    patterns = rules.patterns(two_spellings=truthy(config.get("core.precomposeunicode", "")))
    if b"" in patterns or len(patterns) > MANY_RULES:
        found.everything = True
    elif patterns:
        # Ignore case, because git does so under core.ignoreCase.
        found._matches = re.compile(b"|".join(patterns), re.DOTALL | re.IGNORECASE).fullmatch
    return found


def _converts_all(config: Mapping[str, str]) -> bool:
    return (
        DOUBT in config
        or "attr.tree" in config  # attributes come from some commit
        or truthy(config.get("core.autocrlf", ""))  # both true and input
        or config.get("core.eol", "").lower() == "crlf"
        # A filter may have run under attributes that no longer exist, and may have kept a file's size.
        or any(key.startswith("filter.") and not key.startswith("filter.lfs.") for key in config)
    )


def _unlike_staged(on_disk: Mapping[bytes, bytes], staged: Mapping[bytes, bytes]) -> Iterable[bytes]:
    for path, entry in staged.items():
        if path.endswith(b".gitattributes"):
            folder, _, name = path.rpartition(b"/")
            text = on_disk.get(folder)
            if name != b".gitattributes":
                continue
            blob = b"blob %d\0%b" % (len(text), text) if text is not None else b""
            if hashlib.sha1(blob, usedforsecurity=False).digest() != entry[40:60]:
                yield folder


class _Rules:
    """The lines of attribute files, kept until all macros are known."""

    __slots__ = ("_lines", "_macros", "_whole")

    def __init__(self) -> None:
        self._lines: list[tuple[bytes, bytes, list[bytes]]] = []  # folder, pattern, attributes switched on
        self._macros: list[tuple[bytes, list[bytes]]] = []
        self._whole: set[bytes] = set()

    def read(self, folder: bytes, text: bytes | None) -> None:
        if text is None or b"\0" in text:
            self._whole.add(folder)
            return
        for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            line = line.strip(BLANK)
            if not line or line.startswith(b"#"):
                continue
            if line.startswith(b'"'):
                pattern, states = _unquote(line)
                if pattern is None:
                    self._whole.add(folder)
                    continue
            else:
                pattern = line.replace(b"\t", b" ").replace(b"\r", b" ").partition(b" ")[0]
                states = line[len(pattern) :]
            on = [state.partition(b"=")[0] for state in states.split() if state[:1] not in (b"-", b"!")]
            if not on:
                continue
            if pattern.startswith(MACRO) and len(pattern) > len(MACRO):
                self._macros.append((pattern[len(MACRO) :].strip(BLANK), on))
            elif not pattern.startswith(b"!"):  # git accepts no negative pattern here
                self._lines.append((folder, pattern, on))

    def patterns(self, two_spellings: bool) -> set[bytes]:
        """Return a regular expression per line that could convert, for whole paths.

        The expression b"" stands for every path.
        """
        converting = set(CONVERTING)
        if len(self._macros) > MANY_MACROS:
            return {b""}
        for _ in self._macros:  # a macro may contain a macro
            converting.update(name for name, on in self._macros if not converting.isdisjoint(on))
        found = {_inside(folder) + b".*" if folder else b"" for folder in self._whole}
        for folder, pattern, on in self._lines:
            if not converting.isdisjoint(on):
                regex = _translate(pattern)
                # macOS may spell an accented name in two ways: hash the file instead of finding out which one git
                # compared.
                if two_spellings and not (folder + pattern).isascii():
                    found.add(b"")
                elif regex is not None:
                    found.add(_inside(folder) + regex if folder or regex != ANY_NAME else b"")
        return found


def _inside(folder: bytes) -> bytes:
    return re.escape(folder) + b"/" if folder else b""


def _translate(pattern: bytes) -> bytes | None:
    """Return a regular expression that matches at least what git's pattern matches.

    Return None for a pattern that matches only folders.
    """
    if pattern.endswith(b"/"):
        return None
    out = [b"" if b"/" in pattern else b"(?:.*/)?"]
    at = int(pattern.startswith(b"/"))
    stars = 0
    while at < len(pattern):
        char = pattern[at : at + 1]
        at += 1
        if char == b"*":
            stars += 1
            start = at
            while pattern[at : at + 1] == b"*":
                at += 1
            if stars > MANY_STARS:
                return b"".join([*out, b".*"])
            if at == start:
                out.append(b"[^/]*")
            elif pattern[at : at + 1] == b"/":
                out.append(b"(?:.*/)?")
                at += 1
            else:
                out.append(b".*")
        elif char == b"?":
            out.append(b"[^/]")
        elif char == b"[":
            # For a plain set, any one character counts as a match. The end of a set with escapes or classes is not
            # searched.
            plain = re.match(rb"[^][\\!^/:]+\]", pattern[at:])
            if plain is None:
                return b"".join([*out, b".*"])
            out.append(b"[^/]")
            at += plain.end()
        elif char == b"\\":
            if at == len(pattern):
                return b"".join([*out, b".*"])
            out.append(re.escape(pattern[at : at + 1]))
            at += 1
        else:
            out.append(re.escape(char))
    return b"".join(out)


def _unquote(line: bytes) -> tuple[bytes | None, bytes]:
    """Split a line into a C-quoted name and the rest; (None, b"") if malformed."""
    plain = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
    out = bytearray()
    at = 1
    while at < len(line):
        char = line[at : at + 1]
        at += 1
        if char == b'"':
            return bytes(out), line[at:]
        if char != b"\\":
            out += char
            continue
        char = line[at : at + 1]
        octal = line[at : at + 3]
        if char in (b'"', b"\\"):
            out += char
        elif char in plain:
            out += plain[char]
        elif len(octal) == 3 and char in (b"0", b"1", b"2", b"3") and not octal.strip(b"01234567"):
            out.append(int(octal, 8))
            at += 2
        else:
            break
        at += 1
    return None, b""
