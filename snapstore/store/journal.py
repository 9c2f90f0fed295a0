"""The journal: the one point at which a change happens.

A turn's end moves several refs and state files; an undo moves files of the user as well. Each alone is atomic, all
together are not, so what is to happen is written down first: objects made durable, then the journal, then the user's
files, the refs and the state files, then the journal marked done. A kill before the journal is whole leaves the old
state; any time after it, the next command finishes the job from the journal, or takes it back where it cannot.

The file is written in place, over the one before, and synced: no name changes, so that is one sync instead of two and
a rename. What a torn write leaves does not match its checksum, and then nothing had been moved yet.

The first word is the state: `open`, then `done`, or `void` where it was taken back. The header's last byte tells how
far an open change has come. Unstaged: no file of the user has been touched; only temporaries may lie beside them.
Staged: all temporaries are on disk, so files may have swapped places (beside.py). It is white space, which an older
version passes over and writes as a blank: such a version still finishes our change, and of its own changes we know that
the stage is not known. Every change of these marks is synced. An undo whose `done` was lost in a power cut would be
carried out a second time, over what the user saved since (test_powercut.py).

A change that is over carries the first characters of the boot id before the stage. After another boot its temporaries
are looked for once more: btrfs can bring one back that was removed and synced, when the file that it changed places
with is synced again (test_powercut.py, "undo beside an open turn").
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from hashlib import sha1
from typing import Any

from snapstore.base import files as durable
from snapstore.base import platform
from snapstore.base.files import sync_folder
from snapstore.errors import Corrupt, Interrupted
from snapstore.git.objects.ids import Entry
from snapstore.git.refs import Refs, RefValue, moved_meanwhile, spell, unspell
from snapstore.worktree.write.file_moves import FileMove
from snapstore.worktree.write.writer import Restore

RefMove = tuple[str, RefValue, RefValue]

_OPEN, _DONE, _VOID = b"open", b"done", b"void"  # of one length: each is written over the other
_UNSTAGED, _STAGED = b"\v", b"\t"
_HEADER = 64  # state, length and checksum of the body, stage, one line
_STAGE_AT = _HEADER - 2
_BOOT_AT = _STAGE_AT - 5  # room for the length of any body before it
_PAGE = 4096
_GIT_AT_WORK = 0.5  # seconds; it holds a ref's lock for milliseconds


class Journal:
    def __init__(
        self,
        state: str,
        refs: Refs,
        restore: Callable[[str, list[bytes]], Restore],
        follow_up: Callable[[str], None] | None = None,
        moved: Callable[[list[RefMove]], None] | None = None,
    ) -> None:
        self._state = state
        self._path = f"{state}/journal"
        self._refs = refs
        self._restore = restore  # the writer of the user's files, for a tag of ours and folders to keep
        self._follow_up = follow_up  # does what a change names as its last part, as often as it takes
        self._moved = moved  # hears of refs that have moved; may be called twice, or not at all where we are killed

    def pending(self) -> bool:
        return self._read() is not None

    def read(self) -> dict[str, Any] | None:
        """What an unfinished change wanted to do."""
        body = self._read()
        return None if body is None else dict(json.loads(body))

    def carry_out(
        self,
        refs: list[RefMove],
        files: dict[str, bytes | None],
        *,
        what: str,
        moves: Sequence[FileMove] = (),
        restore: Restore | None = None,
        then: str | None = None,
    ) -> dict[bytes, os.stat_result | None]:
        """Moves files of the user (`restore` has checked them), moves refs, and replaces (None: removes) state files,
        all or nothing. Objects must be durable already. Gives the stats of the files written. `then` names what follows
        once all that has happened, and cannot be taken back: the change is not over before that is done."""
        for name, old, _ in refs:
            found = self._refs.value(name)
            if found != old:
                raise moved_meanwhile(name, old, found)
        texts = {name: data.decode("utf-8") if data is not None else None for name, data in files.items()}
        plan: dict[str, Any] = {"what": what, "refs": _spelled(refs), "files": texts}
        stats: dict[bytes, os.stat_result | None] = {}
        if restore is not None and moves:
            plan |= {"tag": restore.tag, "tree": [_spelled_move(move) for move in moves]}
            plan["keep"] = [os.fsdecode(folder) for folder in sorted(restore.keep_folders | restore.standing(moves))]
        if then is not None:
            plan["then"] = then
        fd = self._open()  # where this fails nothing is written down, and nothing is to be taken back
        try:
            self._write(fd, json.dumps(plan).encode())
            if restore is not None and moves:
                stats = restore.apply(moves)
            self._refs.update_all(refs)
        except BaseException as error:  # Ctrl-C too: what stays written down will be carried out
            self._take_back(plan, error)
            raise
        try:
            self._finish(plan)
        except OSError as error:
            raise _unfinished(what, error) from error
        self._log(plan)
        return stats

    def _take_back(self, plan: dict[str, Any], error: BaseException) -> None:
        """Something could not be moved: what did (a ref may itself, where only the last sync failed) goes back."""
        try:
            self._back(plan)
        except OSError:
            raise _unfinished(plan["what"], error) from error

    def _back(self, plan: dict[str, Any]) -> list[bytes]:
        moves = [(name, unspell(new), unspell(old)) for name, old, new in reversed(plan["refs"])]
        self._refs.update_all([move for move in moves if self._refs.value(move[0]) == move[1]])
        self._refs.clear_locks(name for name, _, _ in plan["refs"])
        kept = self._files_of(plan).take_back(_moves(plan)) if plan.get("tree") else []
        if self.pending():
            self._close(_VOID)
        return kept

    def is_staged(self) -> bool | None:
        """Whether all temporaries of the unfinished change were on disk; None where an older version wrote it."""
        return {_STAGED: True, _UNSTAGED: False}.get(self._head()[_STAGE_AT : _STAGE_AT + 1])

    def mark_staged(self, staged: bool) -> None:
        self._mark(_STAGED if staged else _UNSTAGED, _STAGE_AT)

    def recover(self, *, back: bool = False) -> Recovery | None:
        """Finishes what a killed process had begun, or with `back` undoes it; says what that was. What cannot be
        finished is taken back. A file edited since the kill is left as it is. Call under the lock."""
        plan = self.read()
        if plan is None:
            return None
        # The killed process may have left a lock on a ref: under our own lock only a git at work could hold it now.
        patience, self._refs.stale_after = self._refs.stale_after, _GIT_AT_WORK
        try:
            return self._recover(plan, back)
        finally:
            self._refs.stale_after = patience

    def _recover(self, plan: dict[str, Any], back: bool) -> Recovery:
        if not back or plan.get("then"):
            try:
                return Recovery(str(plan["what"]), self._forward(plan), finished=True)
            except (Corrupt, OSError) as error:
                if not plan.get("tree"):
                    raise
                try:
                    return Recovery(str(plan["what"]), self._back(plan), finished=False)
                except OSError:
                    raise _unfinished(plan["what"], error) from error
        return Recovery(str(plan["what"]), self._back(plan), finished=False)

    def _forward(self, plan: dict[str, Any]) -> list[bytes]:
        moves = [(name, unspell(old), unspell(new)) for name, old, new in plan["refs"]]
        for name, old, new in moves:
            if self._refs.value(name) not in (old, new):
                raise Interrupted(
                    f"an unfinished change ({plan['what']}) wants to move {name}, but something else moved it",
                    f"Put it back to {spell(old) if old else 'absent'}, or on to {spell(new) if new else 'absent'}, "
                    "then run any command.",
                    ref=name,
                )
        kept = self._files_of(plan).finish(_moves(plan)) if plan.get("tree") else []
        self._refs.update_all([move for move in moves if self._refs.value(move[0]) != move[2]])
        self._refs.clear_locks(name for name, _, _ in moves)
        self._finish(plan)
        self._log(plan)
        return kept

    def _files_of(self, plan: dict[str, Any]) -> Restore:
        return self._restore(plan["tag"], [os.fsencode(folder) for folder in plan["keep"]])

    def _log(self, plan: dict[str, Any]) -> None:
        if plan.get("then"):
            return  # what refs led to before may be gone
        for name, old, new in plan["refs"]:
            try:
                self._refs.log(name, unspell(old), unspell(new))
            except OSError:
                pass  # a line less in the reflog: a dangling object more in `git fsck`, until gc
        if self._moved is not None:
            self._moved([(name, unspell(old), unspell(new)) for name, old, new in plan["refs"]])

    def _finish(self, plan: dict[str, Any]) -> None:
        for name, text in plan["files"].items():
            path = f"{self._state}/{name}"
            if text is None:
                durable.remove(path)
            else:
                durable.write(path, text.encode("utf-8"), make_folder=True)
        if plan.get("then") and self._follow_up is not None:
            self._follow_up(plan["then"])
            os.truncate(self._path, _HEADER)  # former, longer plans have left their ends in it
        self._close(_DONE)

    def is_of_another_boot(self) -> bool:
        """Whether the machine was started again since the last change was over."""
        head = self._head()
        boot = head[_BOOT_AT:_STAGE_AT].strip()
        return head.split(maxsplit=1)[:1] in ([_DONE], [_VOID]) and bool(boot) and boot != _boot().strip()

    def sweep_after_boot(self) -> None:
        """Removes what the last change left beside the user's files, where its content is in the store. Call under the
        lock."""
        if not self.is_of_another_boot():
            return
        head = self._head()
        body = self._body(head.split())
        plan = {} if body is None else json.loads(body)
        if plan.get("tree"):
            self._files_of(plan).sweep_known(_moves(plan))
        self._close(head[: len(_DONE)])

    def _close(self, state: bytes) -> None:
        self._mark(state + self._head()[len(state) : _BOOT_AT] + _boot())

    def _mark(self, state: bytes, at: int = 0) -> None:
        fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            former = os.pread(fd, len(state), at)
            os.pwrite(fd, state, at)
            try:
                durable.sync_data(fd)
            except OSError:
                # The mark may never reach the disk, though every program would read it, and a later sync would not
                # write it (test_fsync_fails.py). So it is taken back: the next command finds the change unfinished.
                os.pwrite(fd, former, at)
                raise
        finally:
            durable.close_quietly(fd)  # the mark counts: an error here would report a finished change as failed

    def _open(self) -> int:
        fresh = not os.path.exists(self._path)
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if fresh:
            try:
                sync_folder(self._state)
            except BaseException:
                os.close(fd)
                raise
        return fd

    def _write(self, fd: int, body: bytes) -> None:
        header = b"%s %d %s" % (_OPEN, len(body), _checksum(body))
        data = header.ljust(_STAGE_AT) + _UNSTAGED + b"\n" + body
        data += b"\n" * (-len(data) % _PAGE)  # whole pages: a shorter one leaves the file's size alone
        try:
            view, at = memoryview(data), 0
            while at < len(data):
                at += os.pwrite(fd, view[at:], at)
            os.fsync(fd)
        finally:
            os.close(fd)

    def _read(self) -> bytes | None:
        """What an unfinished journal says."""
        fields = self._head().split()
        return self._body(fields) if fields[:1] == [_OPEN] else None

    def _body(self, fields: list[bytes]) -> bytes | None:
        """The plan, if it is whole. `fields` are those of the header."""
        if len(fields) < 3 or not fields[1].isdigit():
            return None
        with open(self._path, "rb") as file:
            file.seek(_HEADER)
            body = file.read(int(fields[1]))
        return body if _checksum(body) == fields[2] else None

    def _head(self) -> bytes:
        """State, length, checksum and stage; nothing where there is no journal."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(fd, _HEADER, 0)
        finally:
            os.close(fd)


class Recovery:
    """What became of a change that was cut short: finished or taken back, and files edited since that were kept."""

    __slots__ = ("finished", "kept", "what")

    def __init__(self, what: str, kept: list[bytes], *, finished: bool) -> None:
        self.what = what
        self.kept = kept
        self.finished = finished


def _spelled(refs: list[RefMove]) -> list[list[str | None]]:
    return [[name, spell(old) if old else None, spell(new) if new else None] for name, old, new in refs]


def _spelled_move(move: FileMove) -> list[Any]:
    return [os.fsdecode(move.path), spell_entry(move.old), spell_entry(move.new), move.mode]


def spell_entry(entry: Entry | None) -> str | None:
    return entry and f"{entry[0].decode()} {entry[1].hex()}"


def unspell_entry(text: str | None) -> Entry | None:
    if text is None:
        return None
    mode, _, oid = text.partition(" ")
    return mode.encode(), bytes.fromhex(oid)


def _moves(plan: dict[str, Any]) -> list[FileMove]:
    return [
        FileMove(os.fsencode(path), unspell_entry(old), unspell_entry(new), *mode)
        for path, old, new, *mode in plan["tree"]
    ]


def _unfinished(what: str, error: BaseException) -> Interrupted:
    why = error.strerror if isinstance(error, OSError) else error
    return Interrupted(
        f"the change ({what}) is written down, but could not be finished: {why}",
        "Mend the cause; the next command of any kind finishes it by itself.",
    )


def _boot() -> bytes:
    return platform.boot_id()[: _STAGE_AT - _BOOT_AT].encode().ljust(_STAGE_AT - _BOOT_AT)


def _checksum(body: bytes) -> bytes:
    return sha1(body, usedforsecurity=False).hexdigest().encode()
