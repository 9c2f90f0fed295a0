"""Replay a conversation's file changes, turn by turn.

For each turn the result has the files whose state before and after the turn is known, and the reason for each that is
not.

The operations on one file form a chain. Some states of the file are in the transcript in full. The others follow from
them, forwards (an edit is applied again) or backwards (an edit is reverted, if only one place is possible), and finally
from the content on disk. Nothing is read or written here.
"""

from __future__ import annotations

from codecs import BOM_UTF8 as BOM

from snapstore.transcripts.replay.operations import State, operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from snapstore.transcripts.model import ConversationTurn
    from snapstore.transcripts.replay.operations import Operation

    # The content on disk: bytes, None for no file, or the reason the path cannot be used.
    Found = bytes | str | None
    Change = tuple[str | None, str | None]

OUTSIDE = "outside the root"
BEFORE_UNKNOWN = "its content before is not in the transcript"
AFTER_UNKNOWN = "the result of the edit is not certain"
TOO_MUCH = "there is too much text to reconstruct it"
NEITHER_KNOWN = "the transcript shows neither its content before nor after"
CHANGED_BETWEEN = "something else changed it in between"
LINE_ENDS = "its line endings or its byte order mark are not in the transcript"
FILE_AND_FOLDER = "it was a file at one time and a folder at another"
_ROOM = 256 << 20  # characters computed for all files together: edits can be crafted to double a text forty times


class ReplayedTurn:
    """The files one turn changed.

    `changes` maps a path to the text before and after; None means no file. `unknown` lists a path (None: any) and a
    reason.
    """

    __slots__ = ("changes", "unknown")

    def __init__(self) -> None:
        self.changes: dict[bytes, Change] = {}
        self.unknown: list[tuple[str | None, str]] = []


class Replay:
    """Collects turns one by one, then finds the states of the files.

    `place` maps a name in the transcript to a path below the root, or to None for any other path.
    """

    def __init__(self, agent: str, place: Callable[[str], bytes | None]) -> None:
        self._agent = agent
        self._place = place
        self._chains: dict[bytes, _Chain] = {}
        self._room = _Room()
        self._texts: dict[str, str] = {}  # one copy per text: most are the result of one edit and the input of the next
        self.turns: list[ReplayedTurn] = []

    @property
    def paths(self) -> list[bytes]:
        return list(self._chains)

    def take(self, turn: ConversationTurn) -> None:
        replayed = ReplayedTurn()
        number = len(self.turns)
        outside: dict[str | None, str] = {}
        found, remarks = operations(turn, self._agent)
        for operation in found:
            path = self._place(operation.path) if operation.path else None
            if path is None:
                outside[operation.path or None] = OUTSIDE if operation.path else operation.why
                continue
            for state in (operation.before, operation.after):
                if state is not None and state.text is not None:
                    state.text = self._texts.setdefault(state.text, state.text)
            self._chains.setdefault(path, _Chain(self._room)).add(number, operation)
        replayed.unknown += [*outside.items(), *((None, remark) for remark in remarks)]
        self.turns.append(replayed)

    def settle(self, disk: Mapping[bytes, Found]) -> tuple[list[bytes], list[bytes]]:
        """Fill the turns; return the paths that match the disk, and those that do not.

        A path matches if its last known state is on disk. Otherwise the file has changed since.
        """
        verified: list[bytes] = []
        moved_on: list[bytes] = []
        folders = {folder for path in self._chains for folder in _way_up(path)}
        for path, chain in self._chains.items():
            is_both = path in folders or any(folder in self._chains for folder in _way_up(path))
            found = FILE_AND_FOLDER if is_both else disk[path]
            if isinstance(found, str):
                for number in dict.fromkeys(chain.turns):
                    self._unknown(number, path, found)
                continue
            refused = chain.settle(found)
            known = False
            for number, before, after, why in chain.by_turn():
                if refused or before is None or after is None:
                    self._unknown(number, path, refused or why)
                else:
                    known = True
                    self.turns[number].changes[path] = (before.text, after.text)
            if known:
                (verified if chain.ends_with(found) else moved_on).append(path)
        return verified, moved_on

    def _unknown(self, number: int, path: bytes, why: str) -> None:
        self.turns[number].unknown.append((path.decode("utf-8", "surrogateescape"), why))


class _Room:
    """The amount of text that may still be computed."""

    def __init__(self) -> None:
        self.left = _ROOM

    def take(self, text: str | None) -> bool:
        self.left -= len(text or "")
        return self.left >= 0


class _Chain:
    """The operations on one file, with the states before and after each."""

    def __init__(self, room: _Room) -> None:
        self._room = room
        self.turns: list[int] = []
        self._operations: list[Operation] = []
        self._before: list[State | None] = []
        self._after: list[State | None] = []
        self._clashes: set[int] = set()

    def add(self, turn: int, operation: Operation) -> None:
        self.turns.append(turn)
        self._operations.append(operation)
        self._before.append(operation.before if operation.before is not None and operation.before.certain else None)
        self._after.append(operation.after)

    def settle(self, found: bytes | None) -> str:
        """Derive the unknown states; return a reason to distrust all of them, or ""."""
        for number, before in enumerate(self._before):
            if before is not None:
                self._apply(number)
        while self._forwards() | self._backwards(None):
            pass
        if self._after[-1] is None and self._start_from_disk(found):
            while self._forwards() | self._backwards(None):
                pass
        self._drop_contradictions()
        return LINE_ENDS if found is not None and not self.ends_with(found) and self._is_foreign(found) else ""

    def _is_foreign(self, found: bytes) -> bool:
        """Return whether the disk has bytes that agents drop and the transcript lacks.

        Carriage returns and a byte order mark are such bytes.
        """
        known = [state.text for state in (*self._before, *self._after) if state is not None and state.text is not None]
        if not known and any(operation.why for operation in self._operations):
            return False  # the operation has a better reason
        returns = b"\r" in found and not any("\r" in text for text in known)
        return returns or (found.startswith(BOM) and not any(text.startswith("\ufeff") for text in known))

    def ends_with(self, found: bytes | None) -> bool:
        last = self._after[-1]
        return last is not None and (last.text.encode() if last.text is not None else None) == found

    def by_turn(self) -> list[tuple[int, State | None, State | None, str]]:
        """Return per turn its first state, its last state, and why one is unknown."""
        rows = []
        by_turn: dict[int, list[int]] = {}
        for number, turn in enumerate(self.turns):
            by_turn.setdefault(turn, []).append(number)
        for turn, own in by_turn.items():
            before, after = self._before[own[0]], self._after[own[-1]]
            why = next((self._operations[number].why for number in own if self._operations[number].why), "")
            if any(number in self._clashes for number in own):
                why = CHANGED_BETWEEN
            elif self._room.left < 0:
                why = TOO_MUCH
            elif not why:
                why = NEITHER_KNOWN if before is after is None else BEFORE_UNKNOWN if before is None else AFTER_UNKNOWN
            rows.append((turn, before, after, why))
        return rows

    def _apply(self, number: int) -> bool:
        before = self._before[number]
        if before is None or self._after[number] is not None or self._room.left < 0:
            return False
        outcomes = self._operations[number].outcomes(before.text)
        if len(outcomes) != 1 or not self._room.take(outcomes[0]):
            return False
        self._after[number] = State(outcomes[0], before.certain)
        return True

    def _forwards(self) -> bool:
        """Take the state after each operation as the state before the next."""
        changed = False
        for number, operation in enumerate(self._operations):
            if self._before[number] is None:
                left = self._after[number - 1] if number else operation.before
                if left is not None:
                    if operation.why or operation.outcomes(left.text):
                        self._before[number] = State(left.text)
                        changed = True
                    else:
                        self._clashes.add(number)
            changed = self._apply(number) or changed
        return changed

    def _backwards(self, end: State | None) -> bool:
        """Take the state before each operation as the state after the previous one."""
        changed = False
        for number in reversed(range(len(self._operations))):
            operation = self._operations[number]
            if self._room.left < 0:
                return False
            follows = self._before[number + 1] if number + 1 < len(self._operations) else end
            before, after = self._before[number], self._after[number]
            if after is None and follows is not None:
                if before is not None:
                    fits = bool(operation.why) or follows.text in operation.outcomes(before.text)
                else:
                    before = self._source(operation, follows.text)
                    fits = bool(operation.why) or before is not None
                if fits:
                    self._after[number], self._before[number] = State(follows.text), before
                    changed = True
            elif after is not None and before is None:
                self._before[number] = self._source(operation, after.text)
                changed = changed or self._before[number] is not None
        return changed

    def _source(self, operation: Operation, text: str | None) -> State | None:
        found = operation.source(text)
        return found if found is not None and self._room.take(found.text) else None

    def _start_from_disk(self, found: bytes | None) -> bool:
        """Use the content on disk as the state after the last operation.

        The disk counts only if nothing else determines the last state, and only for text that agents read without loss.
        """
        if found is None or b"\r" in found or found.startswith(BOM) or self._operations[-1].why:
            return False
        try:
            text = found.decode()
        except UnicodeDecodeError:
            return False
        # An agent leaves U+FFFD for bytes that it could not read. The original bytes are lost.
        return "\ufffd" not in text and self._backwards(State(text))

    def _drop_contradictions(self) -> None:
        """Drop derived states that contradict a state from the transcript.

        States that the transcript contains in full take precedence.
        """
        for number in range(1, len(self._operations)):
            left, found = self._after[number - 1], self._before[number]
            if left is None or found is None or left.text == found.text or left.certain or not found.certain:
                continue
            for place in reversed(range(number)):
                self._clashes.add(place)
                self._after[place] = None
                before = self._before[place]
                if before is None or before.certain:
                    break
                self._before[place] = None
                earlier = self._after[place - 1] if place else None
                if earlier is None or earlier.certain:
                    break


def _way_up(path: bytes) -> Iterator[bytes]:
    while path := path.rpartition(b"/")[0]:
        yield path
