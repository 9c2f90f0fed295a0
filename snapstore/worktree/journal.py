"""The journal: the one point at which a change happens.

A turn's end moves several refs and state files. Each alone is atomic, all together are not, so what is to happen is
written down first: objects made durable, then the journal, then refs and files, then the journal marked done. A kill
before the journal is whole leaves the old state; any time after it, the next command finishes the job from the journal.

The file is written in place, over the one before, and synced: no name changes, so that is one sync instead of two and
a rename. What a torn write leaves does not match its checksum, and then nothing had been moved yet. The mark `done` is
not synced: a journal that comes back after a power cut is carried out again to the same end.
"""

from __future__ import annotations

import json
import os
from hashlib import sha1

from snapstore.errors import Interrupted
from snapstore.git.packwriter import sync_folder
from snapstore.git.refs import RefValue, moved_meanwhile, spell, unspell
from snapstore.worktree import durable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.git.refs import Refs

RefMove = tuple[str, RefValue, RefValue]

_OPEN, _DONE, _VOID = b"open", b"done", b"void"
_HEADER = 64  # state, length and checksum of the body, one line
_PAGE = 4096


class Journal:
    def __init__(self, state: str, refs: Refs) -> None:
        self._state = state
        self._path = f"{state}/journal"
        self._refs = refs

    def pending(self) -> bool:
        return self._read() is not None

    def carry_out(self, refs: list[RefMove], files: dict[str, bytes | None], *, what: str) -> None:
        """Moves refs and replaces (None: removes) state files, all or nothing. Objects must be durable already."""
        for name, old, _ in refs:
            found = self._refs.value(name)
            if found != old:
                raise moved_meanwhile(name, old, found)
        moves = [[name, old and spell(old), new and spell(new)] for name, old, new in refs]
        texts = {name: data.decode("utf-8") if data is not None else None for name, data in files.items()}
        try:
            self._write(json.dumps({"what": what, "refs": moves, "files": texts}).encode())
            for move in refs:
                self._refs.update(*move)
        except BaseException as error:  # Ctrl-C too: what stays written down will be carried out
            self._take_back(refs, what, error)
            raise
        try:
            self._finish(texts)
        except OSError as error:
            raise _unfinished(what, error) from error
        self._log(refs)

    def _take_back(self, refs: list[RefMove], what: str, error: BaseException) -> None:
        """A ref could not be moved: those that did (it may itself, where only the last sync failed) go back."""
        try:
            for name, old, new in reversed(refs):
                if self._refs.value(name) == new:
                    self._refs.update(name, new, old)
            if self.pending():
                self._mark(_VOID, sync=True)
        except OSError:
            raise _unfinished(what, error) from error

    def recover(self) -> str | None:
        """Finishes what a killed process had begun; says what that was. Call under the lock."""
        body = self._read()
        if body is None:
            return None
        plan = json.loads(body)
        for name, old, new in plan["refs"]:
            found, want = self._refs.value(name), unspell(new)
            if found == want:
                continue
            if found != unspell(old):
                raise Interrupted(
                    f"an unfinished change ({plan['what']}) wants to move {name}, but something else moved it",
                    f"Put {name} back to {old or 'absent'}, or on to {new or 'absent'}, then run any command.",
                    ref=name,
                )
            self._refs.update(name, found, want)
        self._finish(plan["files"])
        self._log([(name, unspell(old), unspell(new)) for name, old, new in plan["refs"]])
        return str(plan["what"])

    def _log(self, refs: list[RefMove]) -> None:
        for move in refs:
            try:
                self._refs.log(*move)
            except OSError:
                pass  # a line less in the reflog: a dangling object more in `git fsck`, until gc

    def _finish(self, files: dict[str, str | None]) -> None:
        for name, text in files.items():
            path = f"{self._state}/{name}"
            if text is None:
                durable.remove(path)  # an open turn that comes back is known to be over by its cursor
            else:
                durable.write(path, text.encode("utf-8"))
        self._mark(_DONE)

    def _mark(self, state: bytes, sync: bool = False) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(fd, state, 0)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)

    def _write(self, body: bytes) -> None:
        header = b"%s %d %s" % (_OPEN, len(body), _checksum(body))
        data = header.ljust(_HEADER - 1) + b"\n" + body
        data += b"\n" * (-len(data) % _PAGE)  # whole pages: a shorter one leaves the file's size alone
        fresh = not os.path.exists(self._path)
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            view, at = memoryview(data), 0
            while at < len(data):
                at += os.pwrite(fd, view[at:], at)
            os.fsync(fd)
        finally:
            os.close(fd)
        if fresh:
            sync_folder(self._state)

    def _read(self) -> bytes | None:
        """What an unfinished journal says."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fields = os.pread(fd, _HEADER, 0).split()
            if len(fields) != 3 or fields[0] != _OPEN or not fields[1].isdigit():
                return None
            body = os.pread(fd, int(fields[1]), _HEADER)
        finally:
            os.close(fd)
        return body if _checksum(body) == fields[2] else None


def _unfinished(what: str, error: BaseException) -> Interrupted:
    why = error.strerror if isinstance(error, OSError) else error
    return Interrupted(
        f"the change ({what}) is written down, but could not be finished: {why}",
        "Mend the cause; the next command of any kind finishes it by itself.",
    )


def _checksum(body: bytes) -> bytes:
    return sha1(body, usedforsecurity=False).hexdigest().encode()
