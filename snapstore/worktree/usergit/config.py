"""The user's git configuration: ignore files, conversions, the user's name.

This module only reads, and ignores all GIT_* variables. If a configuration file cannot be read or may not apply, every
file of the checkout is hashed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from snapstore.worktree.usergit.index import read_regular
from snapstore.worktree.usergit.user_repo import UserRepo

MANY_FILES = 100
LARGE = 1 << 28  # limit for packed-refs and configuration files

SYSTEM_CONFIG = b"/etc/gitconfig"
# The system configuration of other builds of git (Homebrew, Apple's). This module does not know which git the user
# runs, so these files are doubtful: see _Settings.
OTHER_SYSTEM_CONFIGS = (
    b"/usr/local/etc/gitconfig",
    b"/opt/homebrew/etc/gitconfig",
    b"/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig",
    b"/Applications/Xcode.app/Contents/Developer/usr/share/git-core/gitconfig",
)

# The key in user_config's result which says that a setting with a conversion may or may not apply.
DOUBT = "snapstore.doubt"
FALSE = frozenset(("false", "no", "off", "0", ""))


def user_config(repo: UserRepo | None, home: bytes | None) -> dict[str, str]:
    """Return git's configuration for `repo`, the last value per key.

    Keys are spelled as in `git config -l`.
    """
    settings = _Settings(repo, home)
    for place in OTHER_SYSTEM_CONFIGS:
        settings.read(place, sure=False)
    settings.read(SYSTEM_CONFIG)
    folder = config_folder(home)
    if folder:
        settings.read(os.path.join(folder, b"config"))
    if home:
        settings.read(os.path.join(home, b".gitconfig"))
    if repo:
        settings.read(os.path.join(repo.common_dir, b"config"))
        if truthy(settings.values.get("extensions.worktreeconfig", "")):
            settings.read(os.path.join(repo.git_dir, b"config.worktree"))
    return settings.values


def ignore_sources(repo: UserRepo | None, config: dict[str, str], home: bytes | None) -> list[bytes]:
    """Return the ignore files outside the tree, strongest last; they may not exist."""
    sources = [user_file(repo, config.get("core.excludesfile"), home, b"ignore")]
    if repo:
        sources.append(os.path.join(repo.common_dir, b"info", b"exclude"))
    return [source for source in sources if source]


def user_identity(config: dict[str, str]) -> tuple[str, str] | None:
    name, email = config.get("user.name"), config.get("user.email")
    return (name, email) if name and email else None


def user_file(repo: UserRepo | None, setting: str | None, home: bytes | None, default: bytes) -> bytes | None:
    """Return the file that a setting such as core.excludesFile names.

    If the setting is unset, return `default` in the user's git folder.
    """
    if setting is None:
        folder = config_folder(home)
        return os.path.join(folder, default) if folder else None
    return expand(setting, home, repo.top if repo else b"/") if setting else None


def config_folder(home: bytes | None) -> bytes | None:
    base = os.environb.get(b"XDG_CONFIG_HOME") or (os.path.join(home, b".config") if home else None)
    return os.path.join(base, b"git") if base else None


def expand(value: str, home: bytes | None, base: bytes) -> bytes | None:
    """Expand a path of the configuration: ~ and ~user, otherwise relative to `base`."""
    path = value.encode("utf-8", "surrogateescape")
    path = path.removeprefix(b":(optional)")
    if b"\0" in path or path.startswith(b"%(prefix)"):
        return None
    if path == b"~" or path.startswith(b"~/"):
        return os.path.join(home, path[2:]) if home else None
    return os.path.join(base, os.path.expanduser(path))


def truthy(value: str) -> bool:
    return value.lower() not in FALSE


def parse_config(text: bytes) -> tuple[list[tuple[str, str]], bool]:
    """Parse git's configuration syntax.

    Return (key, value) pairs in their order, and whether the whole text was valid.
    """
    pairs: list[tuple[str, str]] = []
    section = b""
    lines = iter(text.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n"))
    for line in lines:
        line = line.lstrip()
        while line.startswith(b"["):
            section, line = _section(line)
            if not section:
                return pairs, False
            line = line.lstrip()
        if not line or line[0] in b"#;":
            continue
        name, equals, rest = line.partition(b"=")
        name = name.rstrip().lower()
        if not section or not name[:1].isalpha() or not name.replace(b"-", b"").isalnum():
            return pairs, False
        value = _value(rest, lines) if equals else b"true"
        if value is None:
            return pairs, False
        key = section + b"." + name
        pairs.append((key.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape")))
    return pairs, True


def _section(line: bytes) -> tuple[bytes, bytes]:
    """Split `[core] rest` or `[remote "Origin"] rest` into section and rest.

    The section is spelled as in keys, and is b"" if malformed.
    """
    head, quote, tail = line.partition(b'"')
    if not quote or b"]" in head:
        name, closed, rest = line[1:].partition(b"]")
        return (name.lower() if closed and name else b""), rest
    sub = bytearray()
    at = 0
    while at < len(tail) and tail[at : at + 1] != b'"':
        at += tail[at : at + 1] == b"\\"
        sub += tail[at : at + 1]
        at += 1
    if tail[at + 1 : at + 2] != b"]":
        return b"", b""
    return head[1:].strip().lower() + b"." + bytes(sub), tail[at + 2 :]


def _value(rest: bytes, lines: Iterator[bytes]) -> bytes | None:
    """Return the value after `=`, with continuation lines; None if malformed."""
    if not any(mark in rest for mark in (b"\\", b'"', b"#", b";")):
        return rest.strip()
    out = bytearray()
    solid = 0  # spaces after this position are trailing, so far
    quoted = False
    at = 0
    while at < len(rest):
        char = rest[at : at + 1]
        at += 1
        if char == b'"':
            quoted = not quoted
        elif char == b"\\" and at == len(rest):
            rest, at = next(lines, b""), 0
        elif char == b"\\":
            plain = {b"n": b"\n", b"t": b"\t", b"b": b"\b", b"\\": b"\\", b'"': b'"'}.get(rest[at : at + 1])
            if plain is None:
                return None
            out += plain
            solid = len(out)
            at += 1
        elif char in b"#;" and not quoted:
            break
        elif quoted or not char.isspace():
            out += char
            solid = len(out)
        elif out:
            out += char
    return None if quoted else bytes(out[:solid])


class _Settings:
    """Configuration files, each overriding those read before.

    A file is doubtful if it may not apply: the system file of another build, or an includeIf whose condition is not
    plainly true (wildcards, branches and remotes are not evaluated). From a doubtful file only settings that could make
    the bytes on disk differ from git's blobs are used, and only in that direction: too many files may be hashed, never
    too few.
    """

    __slots__ = ("files", "home", "repo", "values")

    def __init__(self, repo: UserRepo | None, home: bytes | None) -> None:
        self.repo = repo
        self.home = home
        self.values: dict[str, str] = {}
        self.files = 0  # number of files read: files may include each other endlessly

    def read(self, path: bytes, sure: bool = True) -> None:
        self.files += 1
        text = read_text(path)
        pairs, whole = parse_config(text or b"")
        if text is None or not whole:
            self.values[DOUBT] = "true"
        base = os.path.dirname(path)
        for key, value in pairs:
            if key == "include.path" or (key.startswith("includeif.") and key.endswith(".path")):
                holds = key == "include.path" or self._holds(key[len("includeif.") : -len(".path")], base)
                included = expand(value, self.home, base)
                if included is None or self.files > MANY_FILES:
                    self.values[DOUBT] = "true"
                else:
                    self.read(included, sure and holds)
            elif sure:
                self.values[key] = value
            else:
                self._set_doubtful(key, value)

    def _set_doubtful(self, key: str, value: str) -> None:
        if key in ("core.attributesfile", "attr.tree"):
            self.values[DOUBT] = "true"
        elif key.startswith("filter."):
            self.values[key] = value
        elif key in ("core.autocrlf", "core.eol", "core.precomposeunicode", "core.ignorecase"):
            if truthy(value):
                self.values[key] = value
        elif key in ("core.filemode", "core.symlinks") and not truthy(value):
            self.values[key] = value

    def _holds(self, condition: str, base: bytes) -> bool:
        kind, _, rest = condition.partition(":")
        if self.repo is None or kind not in ("gitdir", "gitdir/i") or not rest:
            return False
        pattern = rest.encode("utf-8", "surrogateescape")
        if pattern.startswith(b"~/") and self.home:
            pattern = os.path.join(os.path.realpath(self.home), pattern[2:])
        elif pattern.startswith(b"./"):
            pattern = os.path.join(os.path.realpath(base), pattern[2:])
        pattern = pattern.removesuffix(b"**") if pattern.endswith(b"/**") else pattern
        if any(mark in pattern for mark in (b"*", b"?", b"[", b"\\")):
            return False
        git_dir = os.path.realpath(self.repo.git_dir)
        if kind == "gitdir/i":
            pattern, git_dir = pattern.lower(), git_dir.lower()
        inside = pattern.endswith(b"/")
        if pattern.startswith(b"/"):
            return git_dir.startswith(pattern) if inside else git_dir == pattern
        return b"/" + pattern in git_dir if inside else git_dir.endswith(b"/" + pattern)


def read_text(path: bytes) -> bytes | None:
    """Read a settings or rules file: b"" if missing, None if unreadable."""
    try:
        return read_regular(path, LARGE)[0]
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except (OSError, ValueError):
        return b"" if path == os.devnull.encode() else None
