"""The user's own git repository, seen from outside: where it is, where it stands, how it is configured.

Read only. No program is run and no GIT_* variable is followed: an agent's shell may have set them for another
repository. Nothing here raises on a broken repository; what cannot be read is None or absent.
"""

from __future__ import annotations

import hashlib
import os
import stat

from .gitindex import IndexUnreadable, entries_digest, read_regular

TYPE_CHECKING = False  # typing itself would cost a hook 16 ms
if TYPE_CHECKING:
    from collections.abc import Iterator

MANY_BRANCHES = 1000
MANY_FILES = 100
SMALL = 1 << 16  # HEAD, a loose ref, a .git file
LARGE = 1 << 28  # packed-refs, configuration

SYSTEM_CONFIG = b"/etc/gitconfig"
# Where other builds of git (Homebrew, Apple's) keep theirs. Which git the user runs is not known here, so
# these are doubtful: see _Settings.
OTHER_SYSTEM_CONFIGS = (
    b"/usr/local/etc/gitconfig",
    b"/opt/homebrew/etc/gitconfig",
    b"/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig",
    b"/Applications/Xcode.app/Contents/Developer/usr/share/git-core/gitconfig",
)

# Set in user_config's answer when something that could switch a conversion on may or may not apply.
DOUBT = "snapstore.doubt"
FALSE = frozenset(("false", "no", "off", "0", ""))


class UserRepo:
    """`git_dir` is this checkout's own (HEAD, index); linked worktrees share `common_dir` (refs, objects)."""

    __slots__ = ("common_dir", "git_dir", "object_format", "partial", "reftable", "top")

    def __init__(self, top: bytes, git_dir: bytes, common_dir: bytes) -> None:
        self.top = top
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.object_format = b"sha1"
        self.partial = False
        self.reftable = False

    @property
    def hash_size(self) -> int:
        return 32 if self.object_format == b"sha256" else 20


def find_repo(folder: bytes) -> UserRepo | None:
    """The checkout that git would work on in `folder`, symlinks resolved; like git, on one file system."""
    try:
        start = here = os.path.realpath(folder)
        device = os.stat(here).st_dev
        while True:
            dot_git = os.path.join(here, b".git")
            kind = _kind(dot_git)
            if kind == stat.S_IFREG:
                # Git refuses to go on past a broken .git file: the folder above is surely not what is meant.
                git_dir = _follow(dot_git, here)
                common = _common_dir(git_dir) if git_dir else None
                return _describe(start, here, git_dir, common) if git_dir and common else None
            if kind == stat.S_IFDIR and (common := _common_dir(dot_git)):
                return _describe(start, here, dot_git, common)
            if _common_dir(here):
                return None  # a bare repository, or the inside of a .git
            above = os.path.dirname(here)
            if above == here or os.stat(above).st_dev != device:
                return None
            here = above
    except (OSError, ValueError):
        return None


def observe(repo: UserRepo, memo: dict[str, object] | None = None) -> tuple[dict[str, object], dict[str, object]]:
    """Where HEAD, the branches and what is staged stand now, as JSON; hand the memo back to the next call."""
    # Loose refs before packed ones: git packs a ref first and removes the loose file after.
    refs = _Refs(repo)
    head: bytes | None = None
    commit: bytes | None = None
    if not repo.reftable:
        head = _head(repo.git_dir)
        commit = refs.resolve(head) if head else None
        if head and not head.startswith(b"refs/"):
            head = commit
    branches = refs.branches()
    index, memo = _index_digest(repo, memo or {})
    seen: dict[str, object] = {
        "head": _text(head),
        "head_commit": _text(commit),
        "index": index,
        "branches": branches,
    }
    if len(branches) > MANY_BRANCHES:
        listed = "\0".join(f"{name} {branches[name]}" for name in sorted(branches))
        digest = hashlib.sha1(listed.encode("utf-8", "surrogateescape"), usedforsecurity=False)
        seen["branches"] = {}
        seen["branches_digest"] = digest.hexdigest()
    return seen, memo


def compare(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    """What moved between two observations; {} when nothing did."""
    moved: dict[str, object] = {}
    for name in ("head", "head_commit", "branches_digest"):
        if before.get(name) != after.get(name):
            moved[name] = [before.get(name), after.get(name)]
    if before.get("index") != after.get("index"):
        moved["index"] = True
    old, new = before.get("branches"), after.get("branches")
    # On either side of the limit the names are not given: the digest alone says that something moved.
    if isinstance(old, dict) and isinstance(new, dict) and "branches_digest" not in moved:
        names = sorted(set(old) | set(new))
        changed = {name: [old.get(name), new.get(name)] for name in names if old.get(name) != new.get(name)}
        if changed:
            moved["branches"] = changed
    return moved


def user_config(repo: UserRepo | None, home: bytes | None) -> dict[str, str]:
    """Git's configuration as it holds in `repo`; keys as `git config -l` spells them; the last one wins."""
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
    """The ignore files outside the tree, the stronger one last; they need not exist."""
    sources = [user_file(repo, config.get("core.excludesfile"), home, b"ignore")]
    if repo:
        sources.append(os.path.join(repo.common_dir, b"info", b"exclude"))
    return [source for source in sources if source]


def user_identity(config: dict[str, str]) -> tuple[str, str] | None:
    name, email = config.get("user.name"), config.get("user.email")
    return (name, email) if name and email else None


def user_file(repo: UserRepo | None, setting: str | None, home: bytes | None, default: bytes) -> bytes | None:
    """The file that core.excludesFile or its like names; unset, it is `default` in the user's git folder."""
    if setting is None:
        folder = config_folder(home)
        return os.path.join(folder, default) if folder else None
    return expand(setting, home, repo.top if repo else b"/") if setting else None


def config_folder(home: bytes | None) -> bytes | None:
    base = os.environb.get(b"XDG_CONFIG_HOME") or (os.path.join(home, b".config") if home else None)
    return os.path.join(base, b"git") if base else None


def expand(value: str, home: bytes | None, base: bytes) -> bytes | None:
    """A path of the configuration: ~ and ~user are known, the rest is relative to `base`."""
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
    """Git's configuration syntax: (key, value) pairs in order, and whether all of the text made sense."""
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
    """`[core] rest`, `[remote "Origin"] rest`: the section as keys spell it, the rest; b"" if malformed."""
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
    """The value after the `=`, from further lines too when it goes on there; None when malformed."""
    if not any(mark in rest for mark in (b"\\", b'"', b"#", b";")):
        return rest.strip()
    out = bytearray()
    solid = 0  # spaces beyond here are at the end, so far
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
    """Configuration files, one laid over the other.

    A file is doubtful when it may not apply: another build's system file, or an includeIf whose condition is
    not plainly true (wildcards, branches and remotes are not evaluated). Of such a file only what could make
    the bytes on disk differ from git's blobs is heeded, and only in that direction: too much is hashed then,
    never too little.
    """

    __slots__ = ("files", "home", "repo", "values")

    def __init__(self, repo: UserRepo | None, home: bytes | None) -> None:
        self.repo = repo
        self.home = home
        self.values: dict[str, str] = {}
        self.files = 0  # read so far: files may include each other for ever

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
                self._heed(key, value)

    def _heed(self, key: str, value: str) -> None:
        if key in ("core.attributesfile", "attr.tree"):
            self.values[DOUBT] = "true"
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


class _Refs:
    """Branches as files of refs/heads and lines of packed-refs, read once."""

    __slots__ = ("_loose", "_packed", "_repo")

    def __init__(self, repo: UserRepo) -> None:
        self._repo = repo
        self._loose: dict[bytes, bytes] = {}
        self._packed = b""
        if not repo.reftable:
            self._walk(b"refs/heads")
            self._packed = read_text(os.path.join(repo.common_dir, b"packed-refs")) or b""

    def _walk(self, folder: bytes) -> None:
        try:
            with os.scandir(os.path.join(self._repo.common_dir, folder)) as entries:
                for entry in entries:
                    name = folder + b"/" + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        self._walk(name)
                    elif not name.endswith(b".lock"):
                        self._loose[name] = _small(entry.path) or b""
        except (OSError, RecursionError):
            pass

    def resolve(self, name: bytes) -> bytes | None:
        """The commit that HEAD, a ref or an id stands for."""
        for _ in range(6):
            if len(name) == 2 * self._repo.hash_size and not name.strip(b"0123456789abcdefABCDEF"):
                return name.lower()
            parts = name.split(b"/")
            if parts[0] != b"refs" or any(not part or part[:1] == b"." for part in parts):
                return None
            found = self._loose.get(name) if name in self._loose else _small(self._place(name))
            if not found:
                line = self._packed.find(b" " + name + b"\n")
                found = self._packed[self._packed.rfind(b"\n", 0, line) + 1 : line] if line > 0 else b""
            name = found[4:].strip() if found.startswith(b"ref:") else found
        return None

    def _place(self, name: bytes) -> bytes:
        own = name.startswith((b"refs/bisect/", b"refs/worktree/", b"refs/rewritten/"))
        return os.path.join(self._repo.git_dir if own else self._repo.common_dir, name)

    def branches(self) -> dict[str, str]:
        heads = dict(self._loose)
        packed = self._packed
        at = packed.find(b" refs/heads/")
        while at >= 0:
            end = packed.find(b"\n", at)
            end = end if end >= 0 else len(packed)
            heads.setdefault(packed[at + 1 : end], packed[packed.rfind(b"\n", 0, at) + 1 : at])
            at = packed.find(b" refs/heads/", end)
        found: dict[str, str] = {}
        for name in sorted(heads):
            target = heads[name]
            commit = self.resolve(target[4:].strip() if target.startswith(b"ref:") else target or name)
            if commit:
                short = name[len(b"refs/heads/") :]
                found[short.decode("utf-8", "surrogateescape")] = commit.decode()
        return found


def _index_digest(repo: UserRepo, memo: dict[str, object]) -> tuple[str | None, dict[str, object]]:
    path = os.path.join(repo.git_dir, b"index")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            seen = os.fstat(fd)
            trailer = os.pread(fd, repo.hash_size, max(seen.st_size - repo.hash_size, 0))
        finally:
            os.close(fd)
        stamp: list[object] = [seen.st_mtime_ns, seen.st_size, seen.st_ino, trailer.hex()]
        known = memo.get("digest")
        if memo.get("stamp") == stamp and isinstance(known, str):
            return known, memo
        digest = entries_digest(path, repo.hash_size).hex()
    except (OSError, IndexUnreadable):
        return None, {}
    return digest, {"stamp": stamp, "digest": digest}


def _describe(start: bytes, here: bytes, git_dir: bytes, common: bytes) -> UserRepo | None:
    """The repository's own configuration, without includes: git too takes the format from nowhere else."""
    values = dict(parse_config(read_text(os.path.join(common, b"config")) or b"")[0])
    own = git_dir == common
    if truthy(values.get("extensions.worktreeconfig", "")):
        values.update(parse_config(read_text(os.path.join(git_dir, b"config.worktree")) or b"")[0])
        own = True
    repo = UserRepo(here, git_dir, common)
    # A linked worktree of a bare repository is not bare itself: git ignores the shared file's two keys there.
    if own:
        if truthy(values.get("core.bare", "")):
            return None
        if "core.worktree" in values:
            elsewhere = values["core.worktree"].encode("utf-8", "surrogateescape")
            repo.top = os.path.realpath(os.path.join(git_dir, elsewhere))
            if start != repo.top and not start.startswith(os.path.join(repo.top, b"")):
                return None
    repo.object_format = values.get("extensions.objectformat", "sha1").lower().encode()
    repo.reftable = values.get("extensions.refstorage", "files").lower().startswith("reftable")
    repo.partial = "extensions.partialclone" in values or any(
        key.startswith("remote.") and key.endswith(".promisor") and truthy(value) for key, value in values.items()
    )
    return repo if repo.object_format in (b"sha1", b"sha256") else None


def _common_dir(git_dir: bytes) -> bytes | None:
    """The folder that holds `git_dir`'s objects and refs, or None when it is no git folder."""
    if not _head(git_dir):
        return None
    shared = _small(os.path.join(git_dir, b"commondir"))
    common = os.path.realpath(os.path.join(git_dir, shared)) if shared else git_dir
    whole = all(os.access(os.path.join(common, part), os.X_OK) for part in (b"objects", b"refs"))
    return common if whole else None


def _head(git_dir: bytes) -> bytes | None:
    """What HEAD says: a ref's name or an id."""
    path = os.path.join(git_dir, b"HEAD")
    try:
        target = os.readlink(path)  # as git made it long ago
    except OSError:
        target = b""
    if target:
        return target if target.startswith(b"refs/") else None
    text = _small(path) or b""
    if text.startswith(b"ref:"):
        target = text[4:].strip()
        return target if target.startswith(b"refs/") else None
    return text if len(text) in (40, 64) and not text.strip(b"0123456789abcdefABCDEF") else None


def _follow(dot_git: bytes, folder: bytes) -> bytes | None:
    text = _small(dot_git) or b""
    target = text.removeprefix(b"gitdir: ")
    return os.path.realpath(os.path.join(folder, target)) if target != text and target else None


def _kind(path: bytes) -> int:
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except OSError:
        return 0


def _small(path: bytes) -> bytes | None:
    try:
        return read_regular(path, SMALL)[0].rstrip(b"\r\n \t")
    except (OSError, ValueError):
        return None


def read_text(path: bytes) -> bytes | None:
    """A file of settings or rules: b"" when there is none, None when there is one that cannot be read."""
    try:
        return read_regular(path, LARGE)[0]
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except (OSError, ValueError):
        return b"" if path == os.devnull.encode() else None


def _text(value: bytes | None) -> str | None:
    return value.decode("utf-8", "surrogateescape") if value is not None else None
