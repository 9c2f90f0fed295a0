"""Ignore rules: which paths a scan leaves out, exactly as git would.

This module reads no files. The caller passes the texts of `.gitignore`, `info/exclude`, the global excludes file and
`.snapstoreignore`. Paths are bytes with `/` between parts, without a leading slash.

    Rule        one line of a text
    Sheet       one text; a sheet does not know its folder, so equal texts share one sheet
    Chain       the sheets in force in a folder, weakest first; folders without a text share their parent's
    FolderRules answers for each name in a folder during a walk
    RuleBook    all rules of one root

A walk checks tens of thousands of names, and most match no rule. So `FolderRules` first checks whether any rule could
match: with a set, a tuple of suffixes, and one regular expression per sheet. Only then does it search for the last
matching rule, which decides. A rule with a path (`docs/_build`) takes part only in folders where it can match a child.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from snapstore.worktree.ignore.glob import translate

Search = Callable[[bytes], object]
Placed = tuple[bytes, "_Sheet"]
Live = tuple[bytes, "_Sheet", tuple["_Rule", ...]]

# The rules for roots without rule files: folders that tools regenerate and nobody edits by hand. An undo does not cover
# files that are left out, so a name is listed only if it is unambiguous. `build`, `dist`, `out`, `bin`, `env` and
# `target` may also hold a person's own work: capturing a cargo `target` only costs disk space, but leaving out a
# hand-written one costs the work. `venv` is listed because most folders of that name are virtual environments.
MACHINE_MADE = b"""\
node_modules/
.venv/
venv/
__pycache__/
*.pyc
.mypy_cache/
.pytest_cache/
.ruff_cache/
.tox/
.nox/
.gradle/
.cache/
.next/
.nuxt/
.terraform/
.DS_Store
"""

_WILD = re.compile(rb"[*?\[\\]").search


class _Rule:
    """One line of an ignore file.

    A `placed` rule is matched against the path relative to its folder, any other rule against a name. Exactly one of
    `literal`, `suffix` and `regex` is set. `head` is the leading folders without a wildcard (`a/b/`). `slashes` is the
    number of slashes in a match (-1: any number). A folded rule is matched against text in lower case (ASCII letters
    only, as in git).
    """

    __slots__ = ("_search", "dir_only", "head", "literal", "negated", "placed", "regex", "slashes", "suffix")

    def __init__(self, line: bytes, fold: bool) -> None:
        self.literal: bytes | None = None
        self.suffix: bytes | None = None
        self.regex: bytes | None = None
        self._search: Search | None = None
        self.negated = line.startswith(b"!")
        glob = line[1:] if self.negated else line
        self.dir_only = glob.endswith(b"/")
        glob = glob.removesuffix(b"/")
        self.placed = b"/" in glob
        glob = glob.removeprefix(b"/")
        if glob.startswith(b"**/") and b"/" not in glob[3:]:
            glob = glob[3:]  # `**/name` matches in every folder, so it is not placed
            self.placed = False
        if not glob:
            raise LookupError(line)
        wild = _WILD(glob)
        plain = glob[: wild.start()] if wild else glob
        rest = glob[len(plain) :]
        plain = plain.lower() if fold else plain
        self.head = plain[: plain.rfind(b"/") + 1]
        self.slashes = plain.count(b"/")
        if not wild:
            self.literal = plain
        elif not self.placed and glob.startswith(b"*") and not _WILD(glob, 1):
            self.suffix = glob[1:].lower() if fold else glob[1:]
        else:
            # Git compares the text before the first wildcard literally and treats the rest as a separate glob. In
            # `a**/b` that glob begins with `**`, so it matches across folders.
            regex, slashes = translate(rest.decode("latin-1"), fold)
            self.regex = re.escape(plain) + regex.encode("latin-1")
            self.slashes = -1 if slashes < 0 else self.slashes + slashes

    def reaches(self, below: bytes, depth: int) -> bool:
        """Return whether this placed rule can match a child of folder `below` (as `a/b/`)."""
        return (self.slashes < 0 or self.slashes == depth) and below.startswith(self.head)

    def matches(self, text: bytes) -> bool:
        if self.literal is not None:
            return text == self.literal
        if self.suffix is not None:
            return text.endswith(self.suffix)
        if self._search is None:
            self._search = _join([self])
        return self._search(text) is not None


def _join(rules: Iterable[_Rule]) -> Search:
    return re.compile(b"|".join(rule.regex for rule in rules if rule.regex), re.DOTALL).fullmatch


class _Sheet:
    """The rules of one text in their order, with quick checks for all of them at once."""

    __slots__ = ("_joined", "literals", "named", "placed", "rules", "suffixes")

    def __init__(self, text: bytes, fold: bool) -> None:
        self.rules: list[_Rule] = []
        for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            if line and not line.startswith(b"#"):
                try:
                    self.rules.append(_Rule(_trim(line), fold))
                except LookupError:
                    continue
        self.placed = [rule for rule in self.rules if rule.placed]
        names = [rule for rule in self.rules if not rule.placed]
        self.literals = {rule.literal for rule in names if rule.literal is not None}
        self.suffixes = {rule.suffix for rule in names if rule.suffix is not None}
        self.named = tuple(rule for rule in names if rule.regex)
        self._joined: dict[tuple[_Rule, ...], Search] = {}

    def joined(self, rules: tuple[_Rule, ...]) -> Search:
        """Return one search for several rules, cached because folders often share rules."""
        search = self._joined.get(rules)
        if search is None:
            search = self._joined[rules] = _join(rules)
        return search


def _trim(line: bytes) -> bytes:
    """Trim a line as git does.

    Remove one CR at the end, then everything after a NUL, then trailing spaces without a backslash before them.
    """
    line = line.removesuffix(b"\r").partition(b"\0")[0]
    if not line.endswith(b" "):
        return line
    bare = line.rstrip(b" ")
    escaped = (len(bare) - len(bare.rstrip(b"\\"))) % 2
    return line[: len(bare) + escaped]


class _Chain:
    """The sheets in force, each with its folder.

    A folder is written as `a/b/`, from the top of the checkout.
    """

    __slots__ = ("everywhere", "fold", "git", "literals", "own", "searches", "suffixes")

    def __init__(self, git: tuple[Placed, ...], own: tuple[Placed, ...], fold: bool) -> None:
        self.fold = fold
        self.git = git
        self.own = own
        sheets = [sheet for _, sheet in git + own]
        self.literals = frozenset[bytes]().union(*(sheet.literals for sheet in sheets))
        self.suffixes = tuple(frozenset[bytes]().union(*(sheet.suffixes for sheet in sheets)))
        self.searches = [(b"", sheet.joined(sheet.named)) for sheet in sheets if sheet.named]
        self.everywhere = FolderRules(self, [(b"", sheet, ()) for sheet in sheets])

    def at(self, where: bytes) -> FolderRules:
        """Return the rules for the children of `where` (as `a/b/`)."""
        live: list[Live] = []
        for base, sheet in self.git + self.own:
            below = where[len(base) :].lower() if self.fold else where[len(base) :]
            depth = below.count(b"/")
            live.append((below, sheet, tuple(rule for rule in sheet.placed if rule.reaches(below, depth))))
        return FolderRules(self, live) if any(rules for _, _, rules in live) else self.everywhere


class FolderRules:
    """The rules for the children of one folder that is not itself ignored.

    `live` holds per sheet the path from the sheet's folder to this one, and the placed rules that matter here.
    """

    __slots__ = ("_literals", "_live", "_order", "_searches", "_suffixes", "chain")

    def __init__(self, chain: _Chain, live: list[Live]) -> None:
        self.chain = chain
        self._live = live
        self._order: list[tuple[bytes, _Rule]] = []
        self._suffixes = chain.suffixes
        self._literals = chain.literals.union(
            rule.literal.rpartition(b"/")[2] for _, _, rules in live for rule in rules if rule.literal
        )
        self._searches = chain.searches + [
            (below, sheet.joined(rules)) for below, sheet, rules in live if any(rule.regex for rule in rules)
        ]

    def ignored(self, name: bytes, is_dir: bool) -> bool:
        """Return whether the child `name` is ignored."""
        name = name.lower() if self.chain.fold else name
        if name in self._literals or name.endswith(self._suffixes):
            return self._decide(name, is_dir)
        for below, search in self._searches:
            if search(below + name) is not None:
                return self._decide(name, is_dir)
        return False

    def _decide(self, name: bytes, is_dir: bool) -> bool:
        if not self._order:
            self._order = [
                (below if rule.placed else b"", rule)
                for below, sheet, placed in reversed(self._live)
                for rule in reversed(sheet.rules)
                if not rule.placed or rule in placed
            ]
        for below, rule in self._order:
            if (is_dir or not rule.dir_only) and rule.matches(below + name):
                return not rule.negated
        return False


def _below(folder: bytes, path: bytes) -> bytes:
    return folder + b"/" + path if folder and path else folder or path


class RuleBook:
    """All ignore rules in force for one root.

    `prefix` is the path of the root below the top of its git checkout, because `.gitignore` files above the root count
    too. The keys of `git` and `own` are folders relative to that top. From weakest to strongest: `excludes` in their
    order, then `git` (`.gitignore`), then `own` (`.snapstoreignore`), in each of them deeper folders over higher ones.
    Callers pass paths relative to the root. The root itself is never ignored. With `fold`, matching ignores case
    (`core.ignorecase`).
    """

    __slots__ = ("_excludes", "_folders", "_git", "_own", "_prefix", "_sheets", "fold")

    def __init__(
        self,
        prefix: bytes = b"",
        excludes: Sequence[bytes] = (),
        git: Mapping[bytes, bytes] = {},
        own: Mapping[bytes, bytes] = {},
        fold: bool = False,
    ) -> None:
        self.fold = fold
        self._prefix = prefix
        self._excludes = list(excludes)
        self._git = dict(git)
        self._own = dict(own)
        self._sheets: dict[bytes, _Sheet] = {}
        self._folders: dict[bytes, FolderRules] = {}  # a folder is present only if all its parents are

    def add(self, folder: bytes, git_text: bytes | None, own_text: bytes | None) -> None:
        """Set the rule texts that a walk found in a folder.

        None means that the folder has no such file (any more).
        """
        top = _below(self._prefix, folder)
        if self._git.get(top) == git_text and self._own.get(top) == own_text:
            return
        for texts, text in ((self._git, git_text), (self._own, own_text)):
            if text is None:
                texts.pop(top, None)
            else:
                texts[top] = text
        if folder in self._folders:
            inside = folder + b"/" if folder else b""
            for path in [path for path in self._folders if path == folder or path.startswith(inside)]:
                del self._folders[path]

    def folder(self, path: bytes) -> FolderRules:
        """Return the rules for the children of a folder, assuming it is not ignored."""
        rules = self._folders.get(path)
        return rules if rules is not None else self._enter(path)

    def ignored(self, path: bytes, is_dir: bool) -> bool:
        """Return whether the path or a folder above it is ignored.

        As in git, no rule can re-include a path below an ignored folder.
        """
        folder = b""
        *parents, name = path.split(b"/")
        for parent in parents:
            if self.folder(folder).ignored(parent, True):
                return True
            folder = _below(folder, parent)
        return self.folder(folder).ignored(name, is_dir)

    def sources(self) -> tuple[bytes, list[bytes], dict[bytes, bytes], dict[bytes, bytes], bool]:
        """Return the constructor arguments that make an equal book."""
        return self._prefix, list(self._excludes), dict(self._git), dict(self._own), self.fold

    def _enter(self, path: bytes) -> FolderRules:
        unknown = [path]
        while path and (path := path.rpartition(b"/")[0]) not in self._folders:
            unknown.append(path)
        for path in reversed(unknown):
            above = self._folders[path.rpartition(b"/")[0]].chain if path else self._above_root()
            top = _below(self._prefix, path)
            rules = self._folders[path] = self._lengthen(above, top).at(top + b"/" if top else b"")
        return rules

    def _above_root(self) -> _Chain:
        chain = _Chain(tuple((b"", self._sheet(text)) for text in self._excludes), (), self.fold)
        folder = b""
        for part in self._prefix.split(b"/") if self._prefix else ():
            chain = self._lengthen(chain, folder)
            folder = _below(folder, part)
        return chain

    def _lengthen(self, chain: _Chain, top: bytes) -> _Chain:
        git, own = self._git.get(top), self._own.get(top)
        if not git and not own:
            return chain
        base = top + b"/" if top else b""
        return _Chain(
            (*chain.git, (base, self._sheet(git))) if git else chain.git,
            (*chain.own, (base, self._sheet(own))) if own else chain.own,
            self.fold,
        )

    def _sheet(self, text: bytes) -> _Sheet:
        sheet = self._sheets.get(text)
        if sheet is None:
            sheet = self._sheets[text] = _Sheet(text, self.fold)
        return sheet
