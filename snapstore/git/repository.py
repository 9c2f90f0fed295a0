"""The shadow repository: created once, opened by every command."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property

from snapstore.base.files import sync_folder
from snapstore.errors import Corrupt
from snapstore.git import config_file
from snapstore.git.objects import commits, notes
from snapstore.git.objects.ids import COMMIT
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.objects.store import Objects
from snapstore.git.objects.trees import Trees
from snapstore.git.refs import Refs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.git.dulwich_repo import Repository

# A user's .gitmodules is plain data in the store, whatever its content.
#
# Files over the threshold are never stored as deltas, so they can always be streamed. The threshold is in bytes, since
# dulwich does not parse units.
_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tlogallrefupdates = false
\tbigfilethreshold = 16777216
[fsck]
\tgitmodulesSymlink = ignore
\tgitmodulesBlob = ignore
\tgitmodulesName = ignore
\tgitmodulesUrl = ignore
\tgitmodulesPath = ignore
\tgitmodulesUpdate = ignore
[gc]
\tauto = 0
[gc "refs/notes/*"]
\treflogexpire = 1.day
\treflogexpireunreachable = 1.day
[gc "refs/snapstore/disk"]
\treflogexpire = 1.day
\treflogexpireunreachable = 1.day
"""

# Ordinary git on the shadow repository must not change a byte either.
_ATTRIBUTES = "* -text -crlf -ident -filter -working-tree-encoding !eol\n"

_CACHED_COMMITS = 512

SNAPSTORE = commits.Identity("snapstore", "snapstore@localhost")


class Shadow:
    """A bare repository: its objects, trees and refs, and dulwich's `Repo`."""

    def __init__(self, git_dir: str) -> None:
        if not os.path.isdir(f"{git_dir}/objects") or not os.path.isdir(f"{git_dir}/refs"):
            raise Corrupt(f"{git_dir} is not a git repository", "Restore it from a clone or a backup.")
        self.git_dir = git_dir
        self.objects = Objects(git_dir)
        self.trees = Trees(self.objects)
        self.refs = Refs(git_dir)
        self._commits: dict[bytes, commits.Commit] = {}

    @cached_property
    def repo(self) -> Repository:
        """Open the repository as dulwich's `Repo`, for an embedding program.

        Loading that class takes as long as starting the interpreter, and no command or hook needs it.
        """
        from snapstore.git.dulwich_repo import Repository

        return Repository(self.git_dir, self.objects.store, self.refs.container)

    def commit(self, oid: bytes) -> commits.Commit:
        found = self._commits.get(oid)
        if found is None:
            if len(self._commits) >= _CACHED_COMMITS:
                del self._commits[next(iter(self._commits))]
            found = self._commits[oid] = commits.read(self.objects, oid)
        return found

    def note(self, commit: bytes) -> bytes | None:
        """Return the record of a commit."""
        return self._note(notes.REF, commit)

    def transcript(self, commit: bytes) -> bytes | None:
        """Return the raw transcript lines of a commit."""
        return self._note(notes.TRANSCRIPTS, commit)

    def _note(self, ref: str, commit: bytes) -> bytes | None:
        tip = self.refs.read(ref)
        return tip and notes.read(self.objects, self.trees, self.commit(tip).tree, commit)

    def add_notes(
        self, writer: PackWriter, ref: str, blobs: Iterable[tuple[bytes, bytes]], seconds: int
    ) -> tuple[bytes | None, bytes]:
        """Add notes, whose blobs are already stored, in a new notes commit.

        Returns the current value of the notes ref and the value that the ref should move to. The commit has no parent:
        records never change, so their history says nothing, and `git log --graph --all` would show that history as a
        second line of commits next to the turns.
        """
        old = self.refs.read(ref)
        tree = notes.put(self.trees, writer, old and self.commit(old).tree, blobs)
        return old, self.notes_commit(writer, tree, seconds)

    def notes_commit(self, writer: PackWriter, tree: bytes, seconds: int, parents: Iterable[bytes] = ()) -> bytes:
        data = commits.encode(tree, [*parents], SNAPSTORE, SNAPSTORE, seconds, "Records of turns\n")
        return writer.add(COMMIT, data)

    def needs_upgrade(self) -> bool:
        """Return whether an earlier version made the store in a form dulwich cannot open."""
        return config_file.has_units(self.git_dir)

    def upgrade(self) -> None:
        """Upgrade the store so that dulwich can open it. Call under the store's lock."""
        # Earlier versions wrote peeled tags into packed-refs without declaring them in its header, and dulwich refuses
        # such a file.
        self.refs.container.add_packed_refs({})
        config_file.write_out_units(self.git_dir)

    def close(self) -> None:
        self.objects.store.close()


def create(git_dir: str, head: str) -> None:
    """Create an empty bare repository.

    No template folder is read, since a user's template may contain hooks.
    """
    for folder in (
        "",
        "/objects",
        "/objects/info",
        "/objects/pack",
        "/refs",
        "/refs/heads",
        "/refs/tags",
        "/info",
    ):
        os.mkdir(git_dir + folder, 0o700)
    for name, text in (("config", _CONFIG), ("info/attributes", _ATTRIBUTES), ("HEAD", f"ref: {head}\n")):
        fd = os.open(f"{git_dir}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(fd, text.encode())
            os.fsync(fd)
        finally:
            os.close(fd)
    for folder in ("/info", "/objects", "/refs", ""):
        sync_folder(git_dir + folder)
