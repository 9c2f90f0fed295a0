"""The handle of one root's store: opens, checks, recovers and locks the store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from snapstore.base import files as durable
from snapstore.errors import Corrupt, Failed, NoStore, SnapstoreError
from snapstore.git.objects.commits import Identity
from snapstore.git.ref_names import ARCHIVE, CURSORS, HEADS, cursor_ref
from snapstore.git.repository import Shadow
from snapstore.store import branch_titles, config, locations, root_index
from snapstore.store import log as logbook
from snapstore.store.journal import Journal, Recovery, RefMove
from snapstore.store.lock import StoreLock
from snapstore.store.owners import Owners, read_foreign
from snapstore.store.settings import BY_NAME
from snapstore.store.state import Documents, Header, OpenTurn, encode
from snapstore.worktree.ignore.other_programs import patterns_below
from snapstore.worktree.ignore.policy import CapturePolicy
from snapstore.worktree.scan.stat_cache import StatCache
from snapstore.worktree.usergit import repository
from snapstore.worktree.usergit.user_repo import UserRepo
from snapstore.worktree.write.safe_dirs import Known
from snapstore.worktree.write.writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:  # loaded only when an embedding program asks for it
    from snapstore.git.dulwich_repo import Repository as Repo

DEFAULT_SESSION = "shell"

Say = Callable[[str], None]
Progress = Callable[[int], None]


class StoreHandle:
    """One root's shadow repository and state, for the packages below `api`.

    `api.Store` adds sessions and creation.
    """

    def __init__(
        self,
        home: str,
        root: bytes,
        folder: str,
        *,
        say: Say | None = None,
        progress: Progress | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.home = home
        self.root = root
        self.folder = folder
        self.state = f"{folder}/state"
        self.say: Say = say or (lambda text: None)
        self.progress = progress
        self.clock = clock
        self.recovered: str | None = None  # the interrupted change that opening the store finished
        locations.refuse_foreign(folder)
        self.documents = Documents(self.state)
        self.header: Header = self.documents.header()
        self._header_is_written = True
        self._policy: CapturePolicy | None = None
        self._others: list[str] | None = None  # patterns of files that other programs keep below the root, once read
        self._unlogged: list[config.Problem] = []  # problems in `config.toml` that are not logged yet
        self._look_at_config()
        self.shadow = Shadow(f"{folder}/store.git")
        self.cache = StatCache(self.state)
        self.journal = Journal(self.state, self.shadow.refs, self.writer, self.follow_up, self._refs_moved)
        self.lock = StoreLock(f"{self.state}/lock", lambda who: self.say(f"waiting for {who}"))

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] = ".",
        *,
        recover: bool = True,
        home: str | None = None,
        say: Say | None = None,
        progress: Progress | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open the store that covers a folder, found by walking up from the folder.

        An interrupted change is finished first, unless `recover` is false because the caller wants to inspect the
        change.
        """
        try:
            home = home or locations.home_folder()
            root = locations.find(home, os.fspath(path))
            if root is None:
                raise NoStore(f"no store watches over {os.path.abspath(path)}")
            store = cls._at(home, root, say, progress, clock)
            if recover:
                store.recover()
                store._upgrade()
            return store
        except OSError as error:
            raise failed(error) from error

    @classmethod
    def _at(
        cls,
        home: str,
        root: bytes,
        say: Say | None,
        progress: Progress | None,
        clock: Callable[[], float],
    ) -> Self:
        store = cls(home, root, locations.store_folder(home, root), say=say, progress=progress, clock=clock)
        if store.header.root_hash != locations.root_hash(root):
            raise Corrupt(
                f"the store {store.folder} belongs to another folder ({store.header.root})",
                "If that folder moved here, run `snapstore init --adopt`.",
            )
        root_index.mark(home, root)
        return store

    @property
    def repo(self) -> Repo:
        """Return the shadow repository as dulwich's `Repo`, closed with the store.

        Reading is always safe. Write within `changing` only, which holds the store's lock.
        """
        return self.shadow.repo

    def active_session(self) -> str:
        head = self.shadow.refs.value("HEAD")
        parts = head.split("/") if isinstance(head, str) else []
        return parts[2] if len(parts) == 4 and parts[:2] == ["refs", "heads"] else DEFAULT_SESSION

    def sessions(self) -> list[str]:
        """Return the sessions recorded here and those of other machines.

        Other branches without a cursor were made by hand with git.
        """
        return sorted({*self.own_sessions(), *self.foreign().sessions()})

    def own_sessions(self) -> list[str]:
        """Return the sessions with a cursor here, or with one that was deleted by hand."""
        found = {name.rpartition("/")[2] for name in self.shadow.refs.list(CURSORS)}
        without = set(self.documents.sessions()) - found
        return sorted(found | {name for name in without if self.lost_branch(name) is not None})

    def lost_branch(self, session: str) -> str | None:
        """Return the last branch of a session whose cursor was deleted by hand, else None.

        snapstore never deletes a cursor, and writes a session's document together with its first one.
        """
        refs, known = self.shadow.refs, self.documents.optional(f"sessions/{session}.json")
        if known is None or refs.value(cursor_ref(session)) is not None:
            return None
        foreign = self.foreign().refs
        for place in (f"{HEADS}{session}/", f"{ARCHIVE}{session}/"):
            tips = {name: oid for name, oid in refs.list(place).items() if name not in foreign}
            if (last := f"{place}{known.get('branch')}") in tips:
                return last
            if tips:
                return max(tips, key=lambda name: self.shadow.commit(tips[name]).seconds)
        return None

    def foreign(self) -> Owners:
        """Return which of the store's refs belong to other machines."""
        return read_foreign(self.documents)

    def open_turn(self, session: str) -> OpenTurn | None:
        """Return the session's open turn, or None.

        A document of an open turn counts only while the session's cursor is where the turn began.
        """
        turn = self.documents.open_turn(session)
        if turn is None:
            return None
        cursor = self.shadow.refs.read(cursor_ref(session))
        if cursor is None:
            return turn if self.lost_branch(session) is not None else None
        return turn if cursor.hex() == turn.before else None

    def open_turns(self, *, besides: str | None = None) -> list[OpenTurn]:
        names = self.documents.sessions_with_open_turns()
        found = [self.open_turn(name) for name in names if name != besides]
        return [turn for turn in found if turn is not None]

    def writer(self, tag: str, keep: list[bytes], known: Known | None = None) -> Writer:
        """Return a writer of the user's files; `known` holds states already read."""
        return Writer(self.root, self.shadow.objects, tag, keep, known, policy=self.policy, stage=self.journal)

    @property
    def policy(self) -> CapturePolicy:
        """Return the policy on which paths may be captured or written."""
        if self._policy is None or self._policy.never_capture != self.header.never_capture:
            if self._others is None:
                self._others = patterns_below(self.root)
            stores = locations.stores_below(self.home, self.root)
            self._policy = CapturePolicy(
                self.root, store=stores, others=self._others, never_capture=self.header.never_capture
            )
        return self._policy

    def left_out(self) -> dict[bytes, str]:
        """Return the paths that the last scan left out and should report, with reasons."""
        found: Any = (self.cache.coverage or {}).get("left_out", {})
        return {path: why for path, (why, _) in sorted(found.items()) if not self.policy.is_others(path)}

    def recover(self, *, back: bool = False) -> Recovery | None:
        """Finish a change that a killed process left half done, or with `back` undo it.

        Every command does this first.
        """
        if self.journal.is_of_another_boot():
            self._sweep_after_boot()
        if not self.journal.pending():
            return None
        with self.lock:
            self.shadow.objects.refresh()
            recovery = self.journal.recover(back=back)
            if recovery is not None:
                self.header = self.documents.header()  # the change may have replaced the file
                self._look_at_config()
                self.recovered = recovery.what
                done = "finished" if recovery.finished else "undid"
                self.say(f"{done} an interrupted change: {recovery.what}")
                for path in recovery.kept:
                    self.say(f"kept your edit of {os.fsdecode(path)}, made after the interruption")
            return recovery

    def _sweep_after_boot(self) -> None:
        try:
            with self.lock:
                self.journal.sweep_after_boot()
        except (OSError, SnapstoreError) as error:  # costs a leftover file; the next command tries again
            self.log(f"leftover temporary files of the last change could not be removed: {error}")

    def _upgrade(self) -> None:
        """Upgrade a store that an earlier version made, so that dulwich can open it.

        If another process holds the lock, that process or the next command does the upgrade.
        """
        if self.shadow.needs_upgrade():
            try:
                with self.lock.if_free() as held:
                    if held:
                        self.shadow.upgrade()
            except (OSError, SnapstoreError) as error:
                self.log(f"the store's git configuration could not be upgraded: {error}")

    def follow_up(self, what: str) -> None:
        """Do the last part of a change, by name; `api.Store` knows the names."""
        raise NotImplementedError(what)

    def after_commit(self, *, folded: bool) -> None:
        """React to new commits; `folded` tells whether small packs were folded into one."""

    def _refs_moved(self, moves: list[RefMove]) -> None:
        """Move branch descriptions along when refs are created or removed."""
        if any(old is None or new is None for _, old, new in moves):
            branch_titles.follow(self.shadow, self.log, moves)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the store's lock for a change: one writer at a time."""
        try:
            with self.lock:
                self.recover()
                self._look_at_config()
                if not self._header_is_written:
                    self._write_header()
                yield
        except OSError as error:
            raise failed(error) from error

    def log(self, text: str) -> None:
        """Log a message that could not be printed; `status` shows it."""
        logbook.note(f"{self.folder}/log", text, self.clock())

    def user_repo(self) -> UserRepo | None:
        """Return the user's own git checkout around the root; snapstore only reads it."""
        return repository.find_repo(self.root)

    @property
    def user(self) -> Identity:
        name = self.header.user_name or _login()
        return Identity(name, self.header.user_email or f"{name}@localhost")

    def configure(self, **settings: Any) -> None:
        """Change some settings; None restores the default."""
        with self.changing():
            files = config.journal_entry(self, config.change(self, settings))
            for name, value in settings.items():
                default = BY_NAME[name].default
                setattr(self.header, name, default if value is None else value)
            self.header.config = None  # the file's new stat is not known yet: the next check reads the file again
            files["format"] = encode(self.header)
            self.journal.carry_out([], files, what=f"setting of {', '.join(settings)}")
        if "auto_push" in settings and not self.header.auto_push:
            logbook.clear_notice(f"{self.folder}/log", "push")

    def _look_at_config(self) -> None:
        """Load `config.toml` if its stat changed."""
        try:
            st = os.stat(f"{self.folder}/config.toml")
            found: list[int] | None = [st.st_mtime_ns, st.st_size, st.st_ino]
        except (FileNotFoundError, NotADirectoryError):
            found = None
        except OSError as error:  # a symbolic link loop, for example
            found = [0, 0, -(error.errno or 1)]
        if found != self.header.config:
            self._unlogged = config.refresh(self, found)
            self._header_is_written = False

    def _write_header(self) -> None:
        """Write the header, so that the next command need not read `config.toml`.

        Errors are only logged, so that no turn fails because of them.
        """
        try:
            durable.write(f"{self.state}/format", encode(self.header))
            self._header_is_written = True
            for problem in self._unlogged:
                self.log(f"{problem}. {problem.hint}")
            self._unlogged = []
        except OSError as error:
            self.log(f"the settings could not be saved in the store: {error.strerror}")

    def close(self) -> None:
        self.shadow.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class SessionHandle:
    """A session by name: one conversation with an agent, or one person at a shell.

    Each session owns one tree of turns. `speaks_for` is the agent session by whose id it was opened, if it was: then it
    is seen from that agent session's line (`timeline.history.agent_sessions.view`).
    """

    def __init__(self, store: StoreHandle, name: str, speaks_for: str = "") -> None:
        store.documents.refuse_other_spelling(name)
        self.store = store
        self.name = name
        self.speaks_for = speaks_for


def failed(error: OSError) -> SnapstoreError:
    """Return the refusal for a system error after which nothing was recorded."""
    where = f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, str | bytes) else ""
    return Failed(f"{error.strerror or error}{where}")


def _login() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return "user"
