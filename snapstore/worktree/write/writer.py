"""The writer of the user's files: executes, finishes and rolls back moves.

A move is a list of files, each with its present state and its wanted state. All new contents are first written to
temporary files beside their targets and synced (temp_files.py). Only then are targets removed and replaced. Each target
is checked just before the swap and again after it was swapped out (atomic_swap.py): if another program saved the file
in between, that file is put back. A move that fails is rolled back. A move that is killed is finished or rolled back by
the next command. The journal holds the list of files, and the files on disk show how far the move got.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence

from snapstore.errors import Interrupted
from snapstore.git.objects.ids import Entry
from snapstore.git.objects.store import Objects
from snapstore.worktree.ignore.policy import CapturePolicy
from snapstore.worktree.scan.case_folding import clashing, folded
from snapstore.worktree.scan.compare import ORDINARY
from snapstore.worktree.write import atomic_swap
from snapstore.worktree.write.file_moves import (
    Contents,
    FileMove,
    Stage,
    above,
    check_moves,
    disappeared,
    folders_above,
    others_in,
    unexpected_state,
    way_up,
)
from snapstore.worktree.write.safe_dirs import (
    CHANGING_THERE,
    FILE_IN_THE_WAY,
    FOLDER_THERE,
    LINK_IN_THE_WAY,
    OTHER_CASE_THERE,
    InTheWay,
    Known,
    SafeDirs,
    State,
    unsafe_path,
)
from snapstore.worktree.write.temp_files import Ready, Step, TempFiles, sync_all

_NOT_TO_BE_REMOVED = (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY, errno.ENOTDIR)


class Writer:
    """One move in one root.

    `tag` is also in the journal, so that a recovery recognizes this move's temporary files. `stage` is the journal,
    which records across a power cut whether all temporary files were on disk.
    """

    def __init__(
        self,
        root: bytes,
        objects: Objects,
        tag: str,
        keep_folders: Collection[bytes] = (),
        known: Known | None = None,
        *,
        policy: CapturePolicy | None = None,
        stage: Stage | None = None,
    ) -> None:
        self.tag = tag
        self._stage = stage
        self._staged: bool | None = False  # None: an older version began the move and did not record this
        self._policy = policy or CapturePolicy(root)
        self.keep_folders = frozenset(keep_folders)
        self._contents = Contents(objects)
        self.modes: dict[bytes, int] = {}  # permission bits of the files observed
        self.known: Known = {} if known is None else known
        self._targets = SafeDirs(root, self.known)
        self._beside = TempFiles(root, self._contents, tag)
        self._paths: set[bytes] = set()  # all paths of the move
        self._folders: set[bytes] = set()  # all folders above them
        self._clashing: set[str] | None = None  # keys of the paths that differ only in case
        self._modes: dict[bytes, int] = {}  # known permission bits of files that do not exist
        # What has happened so far, so that a failed move can be rolled back exactly.
        self._applied = False
        self._begun: set[bytes] = set()
        self._made: set[bytes] = set()
        self._was: dict[bytes, os.stat_result] = {}
        self.folder_modes: dict[bytes, int] = {}  # folders that may have to be made: known, or removed here
        self._after: dict[bytes, os.stat_result | None] = {}

    def close(self) -> None:
        self._targets.close()
        self._beside.close()

    def observe(self, path: bytes) -> State:
        """Return the state of a path: an entry, None for nothing, or a text of safe_dirs."""
        state, st = self._targets.observe(path)
        if st is not None and stat.S_ISREG(st.st_mode):
            self.modes[path] = stat.S_IMODE(st.st_mode) & 0o777
        return state

    def holds_only(self, folder: bytes, removed: set[bytes]) -> bool:
        """Return whether a folder would be empty without these files."""
        return not others_in(folder, self._targets, removed, folders_above(removed))

    def private_above(self, paths: Iterable[bytes]) -> dict[bytes, int]:
        """Return the folders above files that not everyone may enter, with their modes."""
        found: dict[bytes, int] = {}
        for folder in sorted(folders_above(paths) - {b""}):
            try:
                mode = stat.S_IMODE(os.fstat(self._targets.enter(folder)).st_mode) & 0o777
            except (FileNotFoundError, InTheWay):
                continue
            if mode not in ORDINARY:
                found[folder] = mode
        return found

    def read(self, path: bytes, limit: int, *, link: bool = False) -> bytes | None:
        """Return a file's first bytes or a link's target; None if gone or changed in kind."""
        return self._targets.read(path, limit, link=link)

    def existing_folders(self, moves: Iterable[FileMove]) -> set[bytes]:
        """Return the existing folders that new files go into, which may be empty.

        A recovery that rolls back the move must keep these folders.
        """
        return {self._targets.nearest(above(move.path)) for move in moves if move.old is None}

    def _set_moves(self, moves: Iterable[FileMove]) -> None:
        self._paths = {move.path for move in moves}
        self._beside.set_moves(moves)
        self._clashing = None
        self._folders = folders_above(self._paths)
        self._modes = {move.path: move.mode for move in moves if move.mode is not None}
        for path in self._paths:
            self._targets.check(path)
            if self._beside.prefix in path or self._policy.is_store(path):
                raise unsafe_path(path)

    def check(self, moves: Sequence[FileMove], unsaved: Collection[bytes] = ()) -> None:
        """Refuse a move that is certain to fail, before the first write; only reads.

        For `unsaved` paths only the place is checked: a plan that is only shown has not saved their contents."""
        self._set_moves(moves)
        self.close()
        check_moves(moves, self._contents, self._targets, unsaved)
        self.close()

    # The ways to execute a move.

    def apply(self, moves: Sequence[FileMove]) -> dict[bytes, os.stat_result | None]:
        """Bring all files from old to new, or none; return stats per changed path.

        The stat of a removed path is None. Raise Interrupted if the move failed and could not be rolled back either.
        After every other error all files are as before."""
        self._set_moves(moves)
        self.close()
        self._applied = True
        self._staged = False
        try:
            self._bring([(move.path, move.old, move.new) for move in moves], self.keep_folders, None)
        except BaseException as error:  # including Ctrl-C
            try:
                # Only the files begun here: another program's edit may look like ours.
                begun = [(move.path, move.new, move.old) for move in moves if move.path in self._begun]
                self._recover(begun, self.keep_folders | (self._folders - self._made))
            except BaseException as second:
                raise Interrupted(
                    f"a move failed ({error}) and could not be rolled back ({second})",
                    "Fix the problem; the next snapstore command finishes this automatically.",
                ) from error
            if isinstance(error, InTheWay):
                raise unexpected_state(moves[0].path, error.state) from None
            if isinstance(error, FileNotFoundError | NotADirectoryError) and self._lost_a_folder(moves):
                raise disappeared(error) from error
            raise
        finally:
            self.close()
        return self._after

    def _lost_a_folder(self, moves: Sequence[FileMove]) -> bool:
        """Return whether a folder that held files of a rolled-back move is missing."""
        self.close()
        folders = {above(move.path) for move in moves if move.old is not None}
        return any(self._targets.nearest(folder) != folder for folder in folders)

    def roll_back(self, moves: Sequence[FileMove]) -> list[bytes]:
        """Roll back a killed move: restore `old` where the disk shows `new`.

        Paths in neither state are left alone and returned."""
        self._set_moves(moves)
        self._staged = self._stage.is_staged() if self._stage is not None else False
        # In the process that applied the move, `_made` tells which folders it made.
        keep = self._folders - self._made if self._applied else frozenset()
        return self._recover([(move.path, move.new, move.old) for move in moves], self.keep_folders | keep)

    def finish(self, moves: Sequence[FileMove]) -> list[bytes]:
        """Finish a killed move: write `new` where the disk shows `old`.

        Paths in neither state are left alone and returned."""
        self._set_moves(moves)
        self._staged = self._stage.is_staged() if self._stage is not None else False
        return self._recover([(move.path, move.old, move.new) for move in moves], self.keep_folders)

    def sweep_known(self, moves: Sequence[FileMove]) -> None:
        """After a reboot, remove a past move's temporary files whose content is stored."""
        self._set_moves(moves)
        self.close()
        try:
            if self._beside.sweep(self._folders, staged=True, known_only=True):
                self._sync_folders(set(self._folders), [])
        finally:
            self.close()

    def _recover(self, steps: list[Step], keep: Collection[bytes]) -> list[bytes]:
        self.close()
        edited: list[bytes] = []
        try:
            if self._beside.sweep(self._folders, staged=self._staged):
                # Files that went back to their place must be on disk before the mark is cleared: without the mark every
                # temporary file counts as ours. Removed files must not come back after the mark is set again: such a
                # file may be torn and would count as another program's (test_reordering.py, a second power cut).
                self._sync_folders(set(self._folders), edited)
            self._mark_staged(False)
            self._bring(steps, keep, edited)
            if edited:
                self._beside.sweep(self._folders, staged=self._staged)
        except InTheWay as way:  # a link or file was swapped in at this very moment
            raise OSError(errno.ELOOP, way.state) from None
        finally:
            self.close()
        return sorted(edited)

    def _mark_staged(self, staged: bool) -> None:
        if staged != self._staged:
            if self._stage is not None:
                self._stage.mark_staged(staged)
            self._staged = staged

    def _bring(self, steps: list[Step], keep: Collection[bytes], edited: list[bytes] | None) -> None:
        """Bring each file from one state to the other, skipping files that are there.

        A file in a third state is added to `edited`, or is an error if `edited` is None."""
        steps = sorted((step for step in steps if step[1] != step[2]), key=lambda step: step[0])
        # A recovery cannot know which folders were synced before the kill.
        touched = set(self._folders) if edited is not None else set()
        todo, emptied = self._compare(steps, edited)
        ready = self._beside.write(todo, self._was, self._modes)
        if todo:
            self._mark_staged(True)
        self.close()  # meanwhile a folder may have been moved and replaced by a link
        for path, present, wanted in reversed(todo):
            if wanted is None and self._remove(path, present, edited):
                emptied.add(above(path))
                touched.add(above(path))
        puts = {path for path, _, wanted in steps if wanted is not None}
        for folder in sorted(emptied | self._made, reverse=True):
            self._remove_folders(folder, keep, puts, touched)
        for file in ready:
            self._put(file, edited)
            touched.add(above(file[0]))
        touched.update(map(above, self._made))
        self._sync_folders(touched, edited)

    def _compare(self, steps: list[Step], edited: list[bytes] | None) -> tuple[list[Step], set[bytes]]:
        """Return the steps still to do, and the folders whose files are already removed."""
        todo: list[Step] = []
        emptied: set[bytes] = set()
        for step in steps:
            path, present, wanted = step
            state, st = self._targets.look(path)
            if self._counts_as_absent(path, state):
                state = None
            elif state == FOLDER_THERE and wanted is not None and self.holds_only(path, set()):
                state = None
                emptied.add(path)
            if state == present:
                todo.append(step)
                if st is not None and stat.S_ISREG(st.st_mode):
                    self._was.setdefault(path, st)
            elif edited is None:
                raise unexpected_state(path, state)
            elif state != wanted:
                edited.append(path)
            elif wanted is None:
                emptied.add(above(path))
        return todo, emptied

    def _counts_as_absent(self, path: bytes, state: State) -> bool:
        """Return whether a state counts as absent, as when file and folder swap places."""
        if state == FOLDER_THERE:
            return path in self._folders
        if state == OTHER_CASE_THERE:  # the same file's other name, if only the case changes
            if self._clashing is None:
                self._clashing = clashing(self._paths)
            return folded(path) in self._clashing
        return state in (FILE_IN_THE_WAY, LINK_IN_THE_WAY) and any(folder in self._paths for folder in way_up(path))

    def _remove(self, path: bytes, present: Entry | None, edited: list[bytes] | None) -> bool:
        state, st = self._targets.look(path)
        folder, _, name = path.rpartition(b"/")
        if state == present:
            self._begun.add(path)
            fd = self._targets.enter(folder)
            if atomic_swap.remove(fd, name, self._beside.name(path), self._unchanged(st, present)):
                self._after[path] = None
                return True
            state = self._state_after_lost_race(path, present)
        _refuse_or_add(path, state, edited)
        return False

    def _unchanged(self, st: os.stat_result | None, entry: Entry | None) -> atomic_swap.Unchanged:
        return lambda folder, name: (
            st is not None and entry is not None and self._targets.is_still(folder, name, st, entry)
        )

    def _state_after_lost_race(self, path: bytes, present: Entry | None) -> State:
        """Return what is at a path where another program was faster."""
        self._begun.discard(path)
        state = self._targets.look(path)[0]
        return CHANGING_THERE if state == present else state

    def _remove_folders(self, folder: bytes, keep: Collection[bytes], puts: set[bytes], touched: set[bytes]) -> None:
        """Remove a folder that this move emptied, and parents that held nothing else.

        A folder whose place a file takes is removed even if it is in `keep`."""
        while folder and (folder not in keep or folder in puts or any(parent in puts for parent in way_up(folder))):
            parent, _, name = folder.rpartition(b"/")
            try:
                fd = self._targets.enter(parent)
                mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
                self.folder_modes[folder] = stat.S_IMODE(mode)
                os.rmdir(name, dir_fd=fd)
                touched.add(parent)
            except FileNotFoundError:
                pass
            except InTheWay:
                return
            except OSError as error:
                if error.errno in _NOT_TO_BE_REMOVED:
                    return
                raise
            touched.discard(folder)
            folder = parent

    def _put(self, file: Ready, edited: list[bytes] | None) -> None:
        path, present, beside, temporary, written = file
        folder, _, name = path.rpartition(b"/")
        try:
            source = self._beside.enter(beside)
            target = self._targets.make(folder, self._made, self.folder_modes)
            state, was = self._targets.look(path)
        except InTheWay as way:
            state = way.state
        if state == present:
            self._begun.add(path)
            try:
                if present is None:
                    done = atomic_swap.place(source, temporary, target, name)
                else:
                    done = atomic_swap.replace(source, temporary, target, name, written, self._unchanged(was, present))
            except OSError as error:
                error.filename = path  # the temporary file's name would mean nothing to the user
                raise
            if not done:
                state = self._state_after_lost_race(path, present)
        if state != present:
            _refuse_or_add(path, state, edited)
            return  # the temporary file is swept at the end
        self._after[path] = written
        try:
            st = os.stat(name, dir_fd=target, follow_symlinks=False)
        except FileNotFoundError:
            return  # removed by another program right after the swap
        # If the file was already edited, its stat must not be taken for that of our content.
        if atomic_swap.same_content(st, written):
            self._after[path] = st

    def _sync_folders(self, touched: set[bytes], edited: list[bytes] | None) -> None:
        self._targets.close()
        sync_all(self._still_there(touched, edited), len(touched))

    def _still_there(self, folders: Iterable[bytes], edited: list[bytes] | None) -> Iterator[int]:
        for folder in sorted(folders):
            try:
                yield self._targets.enter(folder)
            except FileNotFoundError:
                continue  # removed; its parent is synced
            except InTheWay as way:
                if edited is None:  # swapped in during the move: our files are not in their place
                    raise unexpected_state(folder, way.state) from None


def _refuse_or_add(path: bytes, state: State, edited: list[bytes] | None) -> None:
    if edited is None:
        raise unexpected_state(path, state)
    edited.append(path)
