"""The journal: the one commit point of every change.

The end of a turn moves several refs and state files; an undo also changes the user's files. Each of these steps is
atomic, but all of them together are not. So the whole change is written to the journal before it is executed. The order
is: make the objects durable, write the journal, change the user's files, the refs and the state files, mark the journal
done. A kill before the journal is complete leaves the old state. After a later kill, the next command finishes the
change from the journal, or undoes the change if it cannot be finished.

The file is overwritten in place. No name changes, so one sync replaces two syncs and a rename. A torn write does not
match its checksum, and then nothing has been changed yet.

The first word is the state: `open`, then `done`, or `void` if the change was undone. The header's last byte is the
stage of an open change. Unstaged: none of the user's files has been touched, but temporary files may lie beside them.
Staged: all temporary files are on disk, so files may have been swapped (worktree/write/temp_files.py). The stage is a
whitespace character, which earlier versions ignore and write as a blank. So an earlier version can still finish a
change of this version, and in changes of earlier versions the stage reads as unknown. Every change of these marks is
synced. Otherwise an undo whose `done` mark was lost in a power cut would be executed a second time, over files that the
user saved since (test_powercut.py).

In a `done` or `void` journal the first characters of the boot id precede the stage. After a reboot the change's
temporary files are searched for once more: btrfs can bring back a temporary file that was removed and synced, when the
file it was swapped with is synced again (test_powercut.py, "undo beside an open turn").
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
from snapstore.git.refs import Refs, RefValue, spell, stale_ref_error, unspell
from snapstore.worktree.write.file_moves import FileMove
from snapstore.worktree.write.writer import Writer

RefMove = tuple[str, RefValue, RefValue]

_OPEN, _DONE, _VOID = b"open", b"done", b"void"  # of equal length, because each overwrites another
_UNSTAGED, _STAGED = b"\v", b"\t"
_HEADER = 64  # state, length and checksum of the body, stage: one line
_STAGE_AT = _HEADER - 2
_BOOT_AT = _STAGE_AT - 5  # leaves enough room for the length of any body
_PAGE = 4096
_GIT_AT_WORK = 0.5  # seconds; git holds a ref's lock for milliseconds


class Journal:
    def __init__(
        self,
        state: str,
        refs: Refs,
        make_writer: Callable[[str, list[bytes]], Writer],
        follow_up: Callable[[str], None] | None = None,
        moved: Callable[[list[RefMove]], None] | None = None,
    ) -> None:
        self._state = state
        self._path = f"{state}/journal"
        self._refs = refs
        self._make_writer = make_writer  # makes a writer of the user's files from a tag and the folders to keep
        self._follow_up = follow_up  # does the last part of a change, by name; may be called again after a kill
        self._moved = moved  # called after refs have moved; a kill may cause a second call or none

    def pending(self) -> bool:
        """Return whether there is an unfinished change."""
        return self._read() is not None

    def read(self) -> dict[str, Any] | None:
        """Return the plan of the unfinished change, or None."""
        body = self._read()
        return None if body is None else dict(json.loads(body))

    def carry_out(
        self,
        refs: list[RefMove],
        files: dict[str, bytes | None],
        *,
        what: str,
        moves: Sequence[FileMove] = (),
        writer: Writer | None = None,
        then: str | None = None,
    ) -> dict[bytes, os.stat_result | None]:
        """Change the user's files, refs and state files, all or nothing.

        `writer` executes the file moves, and has already checked them. A state file of None is removed. Objects must
        already be durable. `then` names a last part that runs after all the rest and cannot be undone; the change is
        done only when its last part is. Return the stats of the files written.
        """
        for name, old, _ in refs:
            found = self._refs.value(name)
            if found != old:
                raise stale_ref_error(name, old, found)
        texts = {name: data.decode("utf-8") if data is not None else None for name, data in files.items()}
        plan: dict[str, Any] = {"what": what, "refs": _spelled(refs), "files": texts}
        plan["before"] = {name: self._text(name) for name in texts}
        stats: dict[bytes, os.stat_result | None] = {}
        if writer is not None and moves:
            plan |= {"tag": writer.tag, "tree": [_spelled_move(move) for move in moves]}
            plan["keep"] = [
                os.fsdecode(folder) for folder in sorted(writer.keep_folders | writer.existing_folders(moves))
            ]
        if then is not None:
            plan["then"] = then
        fd = self._open()  # if this fails, there is nothing to undo
        try:
            self._write(fd, json.dumps(plan).encode())
            if writer is not None and moves:
                stats = writer.apply(moves)
            self._refs.update_all(refs)
        except BaseException as error:  # Ctrl-C too: otherwise the next command would finish the change
            self._undo_failed(plan, error)
            raise
        try:
            self._finish(plan)
        except OSError as error:
            raise _unfinished(what, error) from error
        self._log(plan)
        return stats

    def _undo_failed(self, plan: dict[str, Any], error: BaseException) -> None:
        """Undo a change that failed midway; a ref may have moved if only its sync failed."""
        try:
            self._undo(plan)
        except OSError:
            raise _unfinished(plan["what"], error) from error

    def _undo(self, plan: dict[str, Any]) -> list[bytes]:
        """Undo a change, and return the files that were edited since and kept."""
        moves = [(name, unspell(new), unspell(old)) for name, old, new in reversed(plan["refs"])]
        self._refs.update_all([move for move in moves if self._refs.value(move[0]) == move[1]])
        self._refs.clear_locks(name for name, _, _ in plan["refs"])
        kept = self._writer_of(plan).roll_back(_moves(plan)) if plan.get("tree") else []
        for name, text in plan.get("before", {}).items():  # earlier versions wrote no such list
            if self._text(name) != text:
                self._replace(name, text)
        if self.pending():
            self._close(_VOID)
        return kept

    def _text(self, name: str) -> str | None:
        """Return the text of a state file; a damaged one is preserved byte for byte."""
        try:
            with open(f"{self._state}/{name}", encoding="utf-8", errors="surrogateescape", newline="") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _replace(self, name: str, text: str | None) -> None:
        path = f"{self._state}/{name}"
        if text is None:
            durable.remove(path)
        else:
            durable.write(path, text.encode("utf-8", "surrogateescape"), make_folder=True)

    def is_staged(self) -> bool | None:
        """Return whether all temporary files of the unfinished change were on disk.

        Return None if an earlier version wrote the journal.
        """
        return {_STAGED: True, _UNSTAGED: False}.get(self._head()[_STAGE_AT : _STAGE_AT + 1])

    def mark_staged(self, staged: bool) -> None:
        self._mark(_STAGED if staged else _UNSTAGED, _STAGE_AT)

    def recover(self, *, back: bool = False) -> Recovery | None:
        """Finish the change of a killed process, or undo it. Call under the store's lock.

        The change is undone with `back`, or if it cannot be finished. Files edited since the kill are left alone.
        """
        plan = self.read()
        if plan is None:
            return None
        # The killed process may have left a lock on a ref. Under the store's lock, only a running git could hold such a
        # lock now.
        patience, self._refs.stale_after = self._refs.stale_after, _GIT_AT_WORK
        try:
            return self._recover(plan, back)
        finally:
            self._refs.stale_after = patience

    def _recover(self, plan: dict[str, Any], back: bool) -> Recovery:
        if not back or plan.get("then"):
            try:
                return Recovery(str(plan["what"]), self._redo(plan), finished=True)
            except (Corrupt, OSError) as error:
                if not plan.get("tree"):
                    if isinstance(error, OSError):  # refs may have moved: "nothing was recorded" would be false
                        raise _unfinished(plan["what"], error) from error
                    raise
                try:
                    return Recovery(str(plan["what"]), self._undo(plan), finished=False)
                except OSError:
                    raise _unfinished(plan["what"], error) from error
        return Recovery(str(plan["what"]), self._undo(plan), finished=False)

    def _redo(self, plan: dict[str, Any]) -> list[bytes]:
        """Finish a change, and return the files that were edited since and kept."""
        moves = [(name, unspell(old), unspell(new)) for name, old, new in plan["refs"]]
        for name, old, new in moves:
            if self._refs.value(name) not in (old, new):
                raise Interrupted(
                    f"an unfinished change ({plan['what']}) cannot move {name}, because another program moved it",
                    f"Set it to {spell(old) if old else 'absent'} (as before the change) or to "
                    f"{spell(new) if new else 'absent'} (as after it), then run any snapstore command.",
                    ref=name,
                )
        kept = self._writer_of(plan).finish(_moves(plan)) if plan.get("tree") else []
        self._refs.update_all([move for move in moves if self._refs.value(move[0]) != move[2]])
        self._refs.clear_locks(name for name, _, _ in moves)
        self._finish(plan)
        self._log(plan)
        return kept

    def _writer_of(self, plan: dict[str, Any]) -> Writer:
        return self._make_writer(plan["tag"], [os.fsencode(folder) for folder in plan["keep"]])

    def _log(self, plan: dict[str, Any]) -> None:
        if plan.get("then"):
            return  # the objects that the refs led to before may be gone
        for name, old, new in plan["refs"]:
            try:
                self._refs.log(name, unspell(old), unspell(new))
            except OSError:
                pass  # without its reflog line, `git fsck` reports a dangling commit until the next gc
        if self._moved is not None:
            self._moved([(name, unspell(old), unspell(new)) for name, old, new in plan["refs"]])

    def _finish(self, plan: dict[str, Any]) -> None:
        for name, text in plan["files"].items():
            self._replace(name, text)
        if plan.get("then") and self._follow_up is not None:
            self._follow_up(plan["then"])
            os.truncate(self._path, _HEADER)  # removes what earlier, longer plans left in the file
        self._close(_DONE)

    def is_of_another_boot(self) -> bool:
        """Return whether the machine was rebooted since the last change ended."""
        head = self._head()
        boot = head[_BOOT_AT:_STAGE_AT].strip()
        return head.split(maxsplit=1)[:1] in ([_DONE], [_VOID]) and bool(boot) and boot != _boot().strip()

    def sweep_after_boot(self) -> None:
        """Remove temporary files of the last change whose content is in the store.

        Call under the store's lock.
        """
        if not self.is_of_another_boot():
            return
        head = self._head()
        body = self._body(head.split())
        plan = {} if body is None else json.loads(body)
        if plan.get("tree"):
            self._writer_of(plan).sweep_known(_moves(plan))
        self._close(head[: len(_DONE)])

    def _close(self, state: bytes) -> None:
        self._mark(state + self._head()[len(state) : _BOOT_AT] + _boot())

    def _mark(self, state: bytes, at: int = 0) -> None:
        fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            before = os.pread(fd, len(state), at)
            os.pwrite(fd, state, at)
            try:
                durable.sync_data(fd)
            except OSError:
                # The new mark can be read, but may never reach the disk, even with a later sync (test_fsync_fails.py).
                # Restore the old mark, so that the next command finds the change unfinished.
                os.pwrite(fd, before, at)
                raise
        finally:
            durable.close_quietly(fd)  # the mark is on disk: an error here would report a finished change as failed

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
        data += b"\n" * (-len(data) % _PAGE)  # whole pages, so that the file's size rarely changes
        try:
            view, at = memoryview(data), 0
            while at < len(data):
                at += os.pwrite(fd, view[at:], at)
            os.fsync(fd)
        finally:
            os.close(fd)

    def _read(self) -> bytes | None:
        """Return the body of the journal if the change is unfinished, else None."""
        fields = self._head().split()
        return self._body(fields) if fields[:1] == [_OPEN] else None

    def _body(self, fields: list[bytes]) -> bytes | None:
        """Return the body if it matches the length and checksum in the header's fields."""
        if len(fields) < 3 or not fields[1].isdigit():
            return None
        with open(self._path, "rb") as file:
            file.seek(_HEADER)
            body = file.read(int(fields[1]))
        return body if _checksum(body) == fields[2] else None

    def _head(self) -> bytes:
        """Return the header (state, length, checksum, stage), or b"" without a journal."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(fd, _HEADER, 0)
        finally:
            os.close(fd)


class Recovery:
    """The outcome of a recovery: finished or undone, and which edited files were kept."""

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
        f"the change ({what}) was begun, but could not be finished: {why}",
        "Fix the problem; the next snapstore command finishes this automatically.",
    )


def _boot() -> bytes:
    return platform.boot_id()[: _STAGE_AT - _BOOT_AT].encode().ljust(_STAGE_AT - _BOOT_AT)


def _checksum(body: bytes) -> bytes:
    return sha1(body, usedforsecurity=False).hexdigest().encode()
