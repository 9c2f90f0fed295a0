"""The operation log: every move and branch change, with what undoing it needs.

Each operation is one small file, written through the journal together with the change. Files lie in folders of one
thousand, so that the next number is found without reading them all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from snapstore.base.text import timestamp
from snapstore.errors import Corrupt, Unknown
from snapstore.git.objects.ids import Entry
from snapstore.git.ref_names import cursor_ref
from snapstore.git.refs import RefValue, spell, unspell
from snapstore.store.handle import StoreHandle
from snapstore.store.journal import spell_entry, unspell_entry
from snapstore.worktree.scan.compare import is_file, with_parents

RefMove = tuple[str, RefValue, RefValue]
FileStep = tuple[bytes, Entry | None, Entry | None]

FOLDER = "ops"
UNDO = "ops undo"  # kind of an operation that undoes others
CLONE = "clone"  # kind of the operation that filled the folder; it cannot be undone, since nothing came before
PRUNE, AUTO_PRUNE = "prune", "auto prune"  # started by a person, and automatic
_PER_FOLDER = 1000
_MOST_SEARCHED = 20  # operations to search: most files are restored soon after their removal
_MOST_REVERSED = 1000  # operations to follow back to another line


class Operation:
    """One move or branch change, as it happened."""

    __slots__ = (
        "arguments",
        "at",
        "files",
        "from_",
        "kind",
        "modes",
        "number",
        "refs",
        "safety",
        "scope",
        "session",
        "standing",
        "to",
        "undoes",
        "what",
    )

    def __init__(
        self,
        *,
        number: int,
        session: str,
        kind: str,
        at: str,
        what: str,
        from_: dict[str, Any] | None = None,
        to: dict[str, Any] | None = None,
        arguments: Iterable[str] = (),
        refs: Iterable[RefMove] = (),
        files: Iterable[FileStep] = (),
        safety: str | None = None,
        undoes: Iterable[int] = (),
        standing: Iterable[str] = (),
        modes: Mapping[bytes, int] | None = None,
        scope: str = "",
    ) -> None:
        self.number = number
        self.session = session
        self.kind = kind
        self.at = at
        self.what = what  # for people: "undo of 2 turns"
        self.from_ = from_  # cursor before the operation: {"commit", "branch"}; None if only branches changed
        self.to = to
        self.arguments = list(arguments)
        self.refs = list(refs)  # changes of branches and checkpoints
        self.files = list(files)  # changes of the user's files
        self.safety = safety  # ref of the commit of what was on disk before
        self.undoes = list(undoes)  # numbers of the operations that it undid
        self.scope = scope  # what a move along the history moved; empty for other operations and in old records
        self.standing = list(standing)  # folders that existed, without files, before it wrote files into them
        self.modes = dict(modes or {})  # permission bits of what it removed, if not readable to all

    def named_modes(self) -> dict[str, int]:
        """Return the permission bits of the operation's files and the folders above them."""
        named = {part for path, _, _ in self.files for part in with_parents(path)} if self.modes else set()
        return {os.fsdecode(path): mode for path, mode in sorted(self.modes.items()) if path in named}

    def document(self) -> tuple[str, bytes]:
        """Return the name and content of the operation's state file."""
        modes = self.named_modes()
        stored: dict[str, Any] = {
            "op": self.number,
            "session": self.session,
            "kind": self.kind,
            "at": self.at,
            "what": self.what,
            "from": self.from_,
            "to": self.to,
            "arguments": self.arguments,
            "refs": [[name, old and spell(old), new and spell(new)] for name, old, new in self.refs],
            "files": [[os.fsdecode(path), spell_entry(old), spell_entry(new)] for path, old, new in self.files],
            "safety_ref": self.safety,
            "undoes": self.undoes,
            "standing": self.standing,
            **({"scope": self.scope} if self.scope else {}),
            **({"modes": modes} if modes else {}),
        }
        return _name(self.number), json.dumps(stored).encode()


class Operations:
    """Reads a store's operation log."""

    def __init__(self, store: StoreHandle) -> None:
        self._state = store.state
        self._refs = store.shadow.refs
        self._objects = store.shadow.objects

    def next_number(self) -> int:
        """Return the number for a new operation. Call under the lock."""
        for folder in self._folders(newest_first=True):
            numbers = self._numbers(folder)
            if numbers:
                return numbers[-1] + 1
        return 1

    def get(self, number: int) -> Operation:
        try:
            with open(f"{self._state}/{_name(number)}", "rb") as file:
                return _parse(json.loads(file.read()))
        except FileNotFoundError:
            raise Unknown(f"there is no operation {number}", "`snapstore ops` lists them.") from None
        except (ValueError, KeyError, TypeError):
            raise Corrupt(f"the record of operation {number} is damaged", "The others still work.", op=number) from None

    def newest_first(self) -> Iterator[Operation]:
        """Yield all readable operations; a damaged record hides no other."""
        for folder in self._folders(newest_first=True):
            for number in reversed(self._numbers(folder)):
                try:
                    yield self.get(number)
                except Corrupt:
                    continue

    def modes_of(self, paths: Iterable[bytes]) -> dict[bytes, int]:
        """Return unusual permission bits that paths had when a move last removed them.

        Folders above the paths are included. A key that was made private after its turn must not become readable to all
        when it is restored.
        """
        missing, found = set(paths), dict[bytes, int]()
        for operation in islice(self.newest_first() if missing else (), _MOST_SEARCHED):
            removed = {path for path, _, new in operation.files if not is_file(new)}
            if operation.modes:
                named = {part for path in missing & removed for part in with_parents(path)}
                found = {path: mode for path, mode in operation.modes.items() if path in named} | found
            missing -= removed
            if not missing:
                break
        return found

    @staticmethod
    def undone_by(newest_first: Iterable[Operation]) -> dict[int, int]:
        """Return the undone operations, each with the operation that undid it."""
        found: dict[int, int] = {}
        for one in newest_first:
            if one.number not in found:  # an undo that was undone itself undoes nothing
                found.update(dict.fromkeys(one.undoes, one.number))
        return found

    def damaged(self) -> list[int]:
        """Return the numbers of the records that cannot be read."""
        found = []
        for folder in self._folders(newest_first=True):
            for number in self._numbers(folder):
                try:
                    self.get(number)
                except Corrupt:
                    found.append(number)
        return found

    def to_undo(self, session: str, number: int | None) -> list[Operation]:
        """Return the operations to undo for `ops undo NUMBER`, newest first.

        Without a number, undo the last operation that is not undone yet. A prune that gc has made final is skipped,
        with the earlier changes of its branches. So is an automatic prune, unless it concerns a branch that the
        operations to undo changed.
        """
        found: list[Operation] = []
        passed: list[Operation] = []
        cancelled: set[int] = set()
        lost: set[tuple[str, RefValue]] = set()  # refs and their values that a final prune removed
        for operation in self.newest_first():
            if operation.session != session:
                continue
            if operation.kind == CLONE:
                if operation.number == number:
                    raise Unknown(
                        f"operation {number} is the clone that filled the folder, so there is nothing to go back to",
                        "`snapstore goto --exact` goes to any turn.",
                    )
                continue
            if operation.number in cancelled:
                if operation.number == number:
                    raise Unknown(f"operation {number} was already undone", "`snapstore ops` lists the operations.")
                continue
            if operation.kind == UNDO and operation.number != number:
                cancelled.update(operation.undoes)  # an undo and what it undid cancel out
                continue
            if operation.number != number and operation.kind in (PRUNE, AUTO_PRUNE):
                if self._is_final(operation):
                    lost.update((name, old) for name, old, new in operation.refs if new is None)
                    continue
                if number is None and operation.kind == AUTO_PRUNE:
                    passed.append(operation)
                    continue
            if operation.number != number and _is_pruned(operation, lost):
                lost.update((name, old) for name, old, _ in operation.refs if old is not None)
                continue
            found.append(operation)
            if number in (None, operation.number):
                self._refuse_pruned(found)
                names = {name for one in found for name, _, _ in one.refs}
                found += [one for one in passed if any(name in names for name, _, _ in one.refs)]
                return sorted(found, key=lambda one: -one.number)
        if number is None:
            return []
        raise Unknown(f"there is no operation {number} in session {session}", "`snapstore ops` lists them.")

    def way_back(self, session: str, start: bytes, target: bytes) -> list[FileStep] | None:
        """Return the file changes that lead back to where the session's last moves came from.

        The result is None unless an unbroken row of moves, with nothing recorded in between, led from `target` to
        `start`. Reversing what these moves changed leaves every file as it was, whoever wrote it (M-17).
        """
        steps: list[FileStep] = []
        own = (operation for operation in self.newest_first() if operation.session == session)
        for operation in islice(own, _MOST_REVERSED):
            if operation.from_ is None or operation.to is None:
                continue  # only branches changed
            if operation.scope != "both" or operation.to["commit"] != start.hex():
                return None
            steps += [(path, new, old) for path, old, new in operation.files]
            start = bytes.fromhex(operation.from_["commit"])
            if start == target:
                return steps
        return None

    def _refuse_pruned(self, back: list[Operation]) -> None:
        """Refuse if an operation started from a turn that is gone."""
        for operation in back:
            commit = (operation.from_ or {}).get("commit")
            if commit and not self._objects.contains(bytes.fromhex(commit)):
                raise Unknown(
                    f"operation {operation.number} ({operation.what}) cannot be undone: the turn before it was pruned",
                    "`snapstore goto` goes to any turn that is left; `snapstore ops` lists what happened.",
                    op=operation.number,
                )

    def _is_final(self, prune: Operation) -> bool:
        """Return whether gc has removed what a prune set aside."""
        return all(self._refs.value(name) is None for name, _, new in prune.refs if new is not None)

    def _folders(self, newest_first: bool) -> list[int]:
        return sorted(_numeric(f"{self._state}/{FOLDER}", ""), reverse=newest_first)

    def _numbers(self, folder: int) -> list[int]:
        return sorted(_numeric(f"{self._state}/{FOLDER}/{folder}", ".json"))


def cursor_value(store: StoreHandle, session: str) -> RefValue:
    """Return where a session stands; if its cursor was deleted by hand, make the cursor again."""
    value = store.shadow.refs.value(cursor_ref(session))
    if value is not None or store.lost_branch(session) is None:
        return value
    with store.lock:
        branch = store.lost_branch(session)
        if branch is not None and not store.journal.pending():
            at = _last_place(store, session, branch)
            what = f"a new cursor for session {session}"
            store.journal.carry_out([(cursor_ref(session), None, at or branch)], {}, what=what)
            store.say(f"the cursor of session {session} was gone; it is back on branch {branch.rpartition('/')[2]}")
        return store.shadow.refs.value(cursor_ref(session))


def _last_place(store: StoreHandle, session: str, branch: str) -> bytes | None:
    """Return the commit before the tip of a branch that the session last stood on, None for the tip."""
    tip = store.shadow.refs.read(branch)
    turn = store.documents.open_turn(session)
    place = turn.before if turn is not None else ""
    if not place and tip is not None:
        moves = (one for one in Operations(store).newest_first() if one.session == session and one.to is not None)
        last = next(moves, None)
        recorded = timestamp(store.shadow.commit(tip).seconds)
        if last is not None and last.to is not None and recorded <= last.at:  # nothing was recorded after that move
            place = last.to["commit"]
    at = tip
    while at is not None and place:
        if at.hex() == place:
            return at if at != tip else None
        at = next(iter(store.shadow.commit(at).parents), None)
    return None


def _is_pruned(operation: Operation, lost: set[tuple[str, RefValue]]) -> bool:
    """Return whether an operation only changed branches that a final prune removed."""
    made = [(name, new) for name, _, new in operation.refs if new is not None]
    return operation.from_ is None and bool(made) and all(one in lost for one in made)


def _numeric(folder: str, ending: str) -> list[int]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    stems = [name[: len(name) - len(ending)] for name in names if name.endswith(ending)]
    return [int(stem) for stem in stems if stem.isdecimal()]


def _name(number: int) -> str:
    return f"{FOLDER}/{number // _PER_FOLDER}/{number}.json"


def _parse(data: dict[str, Any]) -> Operation:
    return Operation(
        number=int(data["op"]),
        session=str(data["session"]),
        kind=str(data["kind"]),
        at=str(data["at"]),
        what=str(data["what"]),
        from_=data["from"],
        to=data["to"],
        arguments=data["arguments"],
        refs=[(name, unspell(old), unspell(new)) for name, old, new in data["refs"]],
        files=[(os.fsencode(path), unspell_entry(old), unspell_entry(new)) for path, old, new in data["files"]],
        safety=data["safety_ref"],
        undoes=data["undoes"],
        standing=data.get("standing", ()),
        scope=str(data.get("scope", "")),
        modes={os.fsencode(path): int(mode) & 0o777 | 0o400 for path, mode in data.get("modes", {}).items()},
    )
