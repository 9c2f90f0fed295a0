"""A repository in a folder of this machine: read and written in place where it is plain, through git where not.

Measured for one turn: `git receive-pack` and the three programs it starts take 13 ms of processor time, all of ours 2.
So a plain repository (bare, made by `git init`, ours, with nothing special in its configuration) gets the pack through
the same door as the store itself, and its refs moved under git's own lock files. That needs no git program, either.
Whatever is not plain goes to git, and so does a large fetch: it packs sixty thousand objects faster than we do.
"""

from __future__ import annotations

import os
import stat
import time
from itertools import islice

from snapstore.errors import Corrupt, Failed, Remote, SnapstoreError, Unsafe
from snapstore.git import missing, outgoing
from snapstore.git.odb import Objects
from snapstore.git.refs import Refs
from snapstore.git.transport import MOVED, PUSH, Connection
from snapstore.git.transports.pktline import Advertisement
from snapstore.git.transports.refmoves import move, sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from snapstore.git.receive import Incoming
    from snapstore.git.transports.report import Moves

_FEW = 2000  # objects
_PACKS = 40  # beyond it a push goes through git, which then looks whether its gc has work
_LARGEST = 1 << 27
_WALKED = 256
# What `git init --bare` writes, and what changes nothing for us.
_PLAIN = {
    "core.repositoryformatversion": ("0",),
    "core.bare": ("true",),
    "core.filemode": ("true", "false"),
    "core.ignorecase": ("true", "false"),
    "core.precomposeunicode": ("true", "false"),
    "http.receivepack": ("true", "false"),
}
_PARTS = (".", "objects", "objects/pack", "refs", "config", "HEAD")
_UNUSUAL = ("objects/info/alternates", "objects/info/http-alternates", "commondir", "shallow", "config.worktree")
_GUARDS = ("pre-receive", "update", "proc-receive", "reference-transaction")
_CAPABILITIES = ("atomic", "report-status", "delete-refs", "ofs-delta")
KEPT = b"snapstore push\n"
_KEPT_AT_MOST = 600.0  # seconds from the objects to their refs


class FolderConnection(Connection):
    _through_git = False

    def _open(self, service: str) -> Advertisement:
        if service == PUSH:
            _refuse_in_use(self.address.path)
            try:
                sweep(self.address.path)  # whoever writes it: git would wait for locks of the dead for ever
            except OSError:
                pass  # it will say so itself
        if not self._through_git and _plain(self.address.path):
            try:
                found = Advertisement()
                found.refs = Refs(self.address.path).list("refs/")
                found.capabilities = dict.fromkeys(_CAPABILITIES, "")
                return found
            except (SnapstoreError, OSError):
                pass  # git may know what to make of it
        self._through_git = True
        return super()._open(service)

    def close(self) -> None:
        super().close()
        self._through_git = False

    def _fetch(self, wanted: list[bytes], tips: list[bytes], into: Objects) -> Incoming:
        self._ask_for("git-upload-pack")
        if not self._through_git:
            try:
                theirs = Guarded(self.address.path)
                known = _shared(into, tips, theirs)
                ids = list(islice((item[0] for item in missing.between(theirs, wanted, known)), _FEW + 1))
            except (SnapstoreError, OSError):
                ids = None
            if ids is not None and len(ids) <= _FEW:
                from snapstore.git.receive import Incoming

                self.close()
                return Incoming(into, self._limits, self._progress).receive(outgoing.pack(theirs, ids), wanted, tips)
            self._turn_to_git("git-upload-pack")
        return super()._fetch(wanted, tips, into)

    def _moved(
        self, going: Moves, objects: Sequence[bytes], source: Objects, offered: Advertisement, *, atomic: bool
    ) -> dict[str, str | None]:
        if not self._through_git:
            path = self.address.path
            deletes = any(new is None for _, new in going.values())
            if not deletes and len(os.listdir(f"{path}/objects/pack")) <= 3 * _PACKS:
                return self._written(going, objects, source, offered, atomic=atomic)
            offered = self._turn_to_git("git-receive-pack")
            if any(offered.refs.get(name) != old for name, (old, _) in going.items()):
                return dict.fromkeys(going, MOVED)
        return super()._moved(going, objects, source, offered, atomic=atomic and "atomic" in offered.capabilities)

    def _turn_to_git(self, service: str) -> Advertisement:
        self.close()
        self._through_git = True
        self._offered, self._service = self._open(service), service
        return self._offered

    def _written(
        self, going: Moves, objects: Sequence[bytes], source: Objects, offered: Advertisement, *, atomic: bool
    ) -> dict[str, str | None]:
        """Objects first, checked and durable; then the refs."""
        from snapstore.git.receive import Incoming

        theirs = Guarded(self.address.path)
        tips = [new for _, new in going.values() if new is not None]
        try:
            _sweep(theirs.pack_folder)
            incoming = Incoming(theirs, self._limits, self._progress)
            try:
                incoming.take_over(source, objects, tips, offered.refs.values())
            except (Corrupt, Unsafe) as error:
                hint = "Run `snapstore check`; nothing was pushed."
                raise Corrupt(f"what would be pushed is not whole: {error.message}", hint, **error.details) from None
            base = incoming.accept(KEPT)
            try:
                _must_be_kept(base)
                self._must_be_held(theirs, incoming.builds_on)
                return move(self.address.path, going, offered.refs, atomic=atomic)
            finally:
                # Whether the refs moved or not, the pack itself stays: a git there may count on it by now.
                theirs.release(base)
        except (Failed, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error.message.rpartition(": ")[2]
            raise Remote(f"{self.address.path} cannot be written: {why}", "Mend the cause, then push again.") from None
        finally:
            theirs.close()

    def _must_be_held(self, theirs: Objects, builds_on: Sequence[bytes]) -> None:
        """What is sent builds on what refs led to when we began. Raises Remote where they do no longer: a gc there may
        remove it at any moment."""
        tips = set(Refs(self.address.path).list("refs/").values())
        if not tips.issuperset(builds_on) and not missing.reached(theirs, tips, builds_on).issuperset(builds_on):
            raise Remote(f"refs went away in {self.address.path} meanwhile", "Nothing was pushed; push again.")


class Guarded(Objects):
    """Somebody's objects: none that must be held in memory may be larger than it is worth."""

    def read(self, oid: bytes) -> tuple[bytes, bytes]:
        if self.header(oid)[1] > _LARGEST:
            raise Remote(f"object {oid.hex()} there is too large")
        return super().read(oid)


def _shared(into: Objects, tips: list[bytes], theirs: Objects) -> list[bytes]:
    """What both have, as near to the tips as it can be found."""
    shared: set[bytes] = set()
    found: list[bytes] = []
    for oid in islice(missing.ancestors(into, tips, shared), _WALKED):
        if theirs.contains(oid, fresh=False):
            shared.add(oid)
            found.append(oid)
    return found


def _refuse_in_use(path: str) -> None:
    """Raises Unsafe for a repository that somebody works in: turns do not belong among a person's own branches, and
    what a store holds changes under its own lock only. And Remote for one that is guarded by hooks."""
    hint = "Use a repository of its own: `git init --bare FOLDER`."
    if os.path.lexists(f"{path}/.git") or _says_checkout(path):
        raise Unsafe(f"{path} is a checkout", hint)
    guard = next((name for name in _GUARDS if os.access(f"{path}/hooks/{name}", os.X_OK)), None)
    if guard is not None:  # run, it could do anything: the folder may have come in an archive. Passed by, it guards not
        raise Remote(
            f"{path} has a {guard} hook, and hooks of a folder are not run",
            "Push to it by way of a server (ssh, https, git daemon), or take the hook away.",
        )
    if os.path.exists(f"{os.path.dirname(path)}/state/format") and os.path.basename(path) == "store.git":
        raise Unsafe(f"{path} is a store that is in use", hint)


def _says_checkout(path: str) -> bool:
    try:
        with open(f"{path}/config", "rb") as file:
            lines = file.read(1 << 16).lower().split(b"\n")
    except OSError:
        return False
    return any(line.replace(b" ", b"").strip() == b"bare=false" for line in lines)


def _plain(path: str) -> bool:
    """Whether a folder is a bare repository of ours, as git makes them and nothing more."""
    try:
        for name in _PARTS:
            st = os.lstat(f"{path}/{name}")
            if st.st_uid != os.geteuid() or stat.S_ISLNK(st.st_mode):
                return False
        if any(os.path.lexists(f"{path}/{name}") for name in _UNUSUAL):
            return False
        with open(f"{path}/config", encoding="utf-8") as file:
            return _plain_config(file.read(1 << 16))
    except (OSError, UnicodeDecodeError):
        return False


def _plain_config(text: str) -> bool:
    section = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].lower()
        elif line and not line.startswith(("#", ";")):
            key, _, value = line.partition("=")
            if value.strip().lower() not in _PLAIN.get(f"{section}.{key.strip().lower()}", ()):
                return False
    return True


def _must_be_kept(base: str | None) -> None:
    """A push that was stopped for minutes may have been taken for a dead one, and its objects for garbage."""
    if base is not None and not os.path.exists(f"{base}.keep"):
        raise Failed("the push took too long, and what it sent may be gone: try again")


def _sweep(folder: str) -> None:
    """A push that was killed between its objects and its refs has left the word that keeps gc off them. Only that word
    goes, never the pack: a git may have left its objects out of a newer pack meanwhile."""
    for name in os.listdir(folder):
        if name.endswith(".keep"):
            path = f"{folder}/{name}"
            try:
                with open(path, "rb") as file:
                    ours = file.read(64) == KEPT
                if ours and time.time() - os.stat(path).st_mtime > _KEPT_AT_MOST:
                    os.unlink(path)
            except FileNotFoundError:
                continue  # another push is done with it
