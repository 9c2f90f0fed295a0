"""Reads the ignore rules of a root, and detects changes of them."""

from __future__ import annotations

import os

from snapstore.base.platform import READ_FLAGS
from snapstore.worktree.ignore.rules import MACHINE_MADE, RuleBook
from snapstore.worktree.scan.stat_cache import StatCache
from snapstore.worktree.usergit import config as gitconfig
from snapstore.worktree.usergit.user_repo import UserRepo

GIT_NAME, OWN_NAME = b".gitignore", b".snapstoreignore"
_LARGEST = 1 << 24


class RuleReader:
    """Holds the rules in force at the last scan (`book`), and reads the current ones."""

    def __init__(self, root: bytes, cache: StatCache, repo: UserRepo | None, home: bytes | None) -> None:
        self._root = root
        self._cache = cache
        self._repo = repo
        self._home = home
        self._prefix = b""
        if repo is not None and root.startswith(repo.top.rstrip(b"/") + b"/"):
            self._prefix = root[len(repo.top.rstrip(b"/")) + 1 :]
        coverage = cache.coverage
        self.book = RuleBook(*coverage["rules"]) if coverage else RuleBook()  # type: ignore[misc]

    def changed(self) -> bool:
        """Return whether a rule file changed that is not captured.

        Such a file lies outside the root, or is itself ignored.
        """
        prefix, excludes, git, own, fold = self.book.sources()
        if prefix != self._prefix or (list(excludes), fold) != self._outside():
            return True
        above = self._above()
        known_above = {folder: text for folder, text in git.items() if not self._inside(folder)}
        if above != known_above:
            return True
        for name, texts in ((GIT_NAME, git), (OWN_NAME, own)):
            for folder, text in texts.items():
                if self._inside(folder):
                    path = _join(self._below(folder), name)
                    if path not in self._cache.files and self._read(path) != text:
                        return True
        return False

    def reread(self) -> RuleBook:
        """Return a book of the rules from outside the root; the walk adds the others."""
        excludes, fold = self._outside()
        return RuleBook(self._prefix, excludes, self._above(), {}, fold)

    def enter(self, book: RuleBook, folder: bytes) -> tuple[bytes | None, bytes | None]:
        """Read a folder's rule files into the book and return their texts."""
        git, own = self._read(_join(folder, GIT_NAME)), self._read(_join(folder, OWN_NAME))
        if git is not None or own is not None:
            book.add(folder, git, own)
        return git, own

    def differs(self, path: bytes) -> bool:
        """Return whether the rule file at a path differs from the book."""
        folder, _, name = path.rpartition(b"/")
        _, _, git, own, _ = self.book.sources()
        texts = git if name == GIT_NAME else own
        return self._read(path) != texts.get(_join(self._prefix, folder) if folder else self._prefix)

    def coverage(self, book: RuleBook) -> dict[str, object]:
        """Return the part of a scan's coverage that records the rules in force."""
        return {"rules": book.sources()}

    def _outside(self) -> tuple[list[bytes], bool]:
        """Return rule texts from outside the root, weakest first, and `core.ignorecase`.

        A root without rules of its own gets the list of machine-made folders.
        """
        texts: list[bytes] = []
        ruled = self._repo is not None or any(
            os.path.lexists(os.path.join(self._root, name)) for name in (GIT_NAME, OWN_NAME)
        )
        if not ruled:
            texts.append(MACHINE_MADE)
        config = gitconfig.user_config(self._repo, self._home)
        for path in gitconfig.ignore_sources(self._repo, config, self._home):
            text = _read_text(path, follow=True)
            if text is not None:
                texts.append(text)
        return texts, self._repo is not None and gitconfig.truthy(config.get("core.ignorecase", "false"))

    def _above(self) -> dict[bytes, bytes]:
        """Return the .gitignore files between the top of the user's checkout and the root."""
        texts: dict[bytes, bytes] = {}
        if self._repo is None or not self._prefix:
            return texts
        folder = b""
        for part in [b"", *self._prefix.split(b"/")[:-1]]:
            folder = _join(folder, part) if part else folder
            text = _read_text(_join(os.path.join(self._repo.top, folder) if folder else self._repo.top, GIT_NAME))
            if text is not None:
                texts[folder] = text
        return texts

    def _inside(self, folder: bytes) -> bool:
        return not self._prefix or folder == self._prefix or folder.startswith(self._prefix + b"/")

    def _below(self, folder: bytes) -> bytes:
        return folder[len(self._prefix) :].lstrip(b"/") if self._prefix else folder

    def _read(self, path: bytes) -> bytes | None:
        return _read_text(_join(self._root, path))


def _read_text(path: bytes, follow: bool = False) -> bytes | None:
    """Read a rule file, or return None.

    As in git, a .gitignore that is a link is not followed, but a linked excludes file is.
    """
    try:
        fd = os.open(path, READ_FLAGS & ~os.O_NOFOLLOW if follow else READ_FLAGS)
    except OSError:
        return None
    try:
        return os.read(fd, _LARGEST)
    except OSError:
        return None
    finally:
        os.close(fd)


def _join(folder: bytes, name: bytes) -> bytes:
    return folder.rstrip(b"/") + b"/" + name if folder else name
