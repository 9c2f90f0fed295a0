"""A plan: what a move would do, path by path, before anything is written.

Every move is a list of steps, one per path and turn left or entered. A step holds the state that the path should be in
and the state to leave it in. Steps of one path are joined where one begins with the state in which the other ends.
Where steps do not meet, somebody's edit lies between two turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from stat import S_IRWXU, S_IXUSR
from typing import Self

from snapstore.base.text import turns_text
from snapstore.errors import Usage
from snapstore.git.objects.ids import EXECUTABLE, FILE, LINK, Entry
from snapstore.git.refs import RefValue
from snapstore.worktree.write.file_moves import FileMove
from snapstore.worktree.write.safe_dirs import Known

# The state that a file has or should have: an entry, or None for no file. Anything else found on disk is described
# by a text.
State = Entry | None
Found = Entry | str | None
Segment = tuple[State, State]
PathStep = tuple[bytes, State, State]

# What happens to a path.
WRITE, REMOVE, KEPT, SKIPPED, CONFLICT = "write", "remove", "kept", "skipped", "conflict"

# How to resolve conflicts.
REFUSE, MERGE, MARKERS, FORCE, SKIP = WAYS = ("refuse", "merge", "markers", "force", "skip")

# The kind of the commit that holds what was on disk before a move.
SAFETY_KIND = "safety"

# What a move applies to.
BOTH, FILES, CONVERSATION = SCOPES = ("both", "files", "conversation")


class Policy:
    """How to resolve conflicts, for all files and for single files.

    - None, as the default: as the move does by itself, see `for_move`
    - refuse: the conflict refuses the move
    - merge: three-way merge; where both sides changed the same lines, the conflict refuses the move
    - markers: three-way merge, with conflict markers where both sides changed the file
    - force: the wanted state (files in `theirs`)
    - skip: what is on disk (files in `ours`)
    """

    __slots__ = ("default", "each", "ours", "theirs")

    def __init__(
        self,
        default: str | None = None,
        ours: Iterable[bytes] = (),
        theirs: Iterable[bytes] = (),
        each: Mapping[bytes, str] | None = None,
    ) -> None:
        self.default = default
        self.each = {**dict.fromkeys(ours, SKIP), **dict.fromkeys(theirs, FORCE), **(each or {})}
        for way in (default or REFUSE, *self.each.values()):
            _check(way, WAYS, "way to resolve conflicts")
        self.ours = frozenset(path for path, way in self.each.items() if way == SKIP)
        self.theirs = frozenset(path for path, way in self.each.items() if way == FORCE)

    def choice(self, path: bytes) -> str:
        return self.each.get(path, self.default or REFUSE)

    def for_move(self, kind: str, *, auto_merge: bool) -> Policy:
        """Return the policy with what a move of this kind does by itself as its default.

        A restore replaces whole files, so an edit in one of them is a conflict. Other moves merge cleanly where they
        can, unless the setting `auto_merge` is off (M-19). Revert and apply always do: later turns lie above the turn.
        """
        if self.default is not None:
            return self
        merges = kind in ("revert", "apply") or (auto_merge and kind != "restore")
        return Policy(MERGE if merges else REFUSE, each=self.each)


class MoveOptions:
    """How to make a move: conflict policy, scope, and whether it is exact."""

    __slots__ = ("exact", "policy", "scope")

    def __init__(self, policy: Policy | str | None = None, scope: str = BOTH, exact: bool = False) -> None:
        self.policy = policy if isinstance(policy, Policy) else Policy(policy)
        _check(scope, SCOPES, "part to move")
        self.scope = scope
        self.exact = exact


class PathMove:
    """What a move does to one path."""

    __slots__ = ("action", "changed_by", "found", "merged", "path", "result", "segments", "settled", "why")

    def __init__(self, path: bytes, segments: list[Segment]) -> None:
        self.path = path
        self.segments = segments
        self.found: Found = None  # on disk when the plan was made
        self.action = CONFLICT
        self.result: Found = None  # on disk after the move
        self.merged: bytes | None = None  # the result's bytes, if a merge made them
        self.settled = ""  # how a conflict was resolved: merge, markers, force, skip
        self.changed_by = ""  # who made the conflicting change
        self.why = ""  # why the chosen way could not resolve the conflict

    @property
    def expected(self) -> State:
        return self.segments[0][0]

    @property
    def wanted(self) -> State:
        return self.segments[-1][1]

    @property
    def conflicting(self) -> bool:
        """Return whether the disk differed from what the turns left, resolved or not."""
        return self.action == CONFLICT or bool(self.settled)


class NewNode:
    """A node that a move adds to the line: revert, applied turn or restored files."""

    __slots__ = ("kind", "of", "subject")

    def __init__(self, kind: str, subject: str, of: bytes) -> None:
        self.kind = kind
        self.subject = subject
        self.of = of  # the commit that is reverted, applied or restored from


class Plan:
    """A move as data.

    Make a plan with `session.plan_undo(2)` or a similar method and carry it out with `session.move(plan)`.
    """

    __slots__ = (
        "arguments",
        "branch",
        "cursor_value",
        "exact",
        "kind",
        "known",
        "messages_removed",
        "modes",
        "new_node",
        "notes",
        "on_line",
        "paths",
        "policy",
        "prompt",
        "redone",
        "ref_moves",
        "scope",
        "session",
        "source",
        "speaks_for",
        "start",
        "start_branch",
        "state_files",
        "target",
        "turn",
        "turn_before",
        "undoes",
        "undone",
    )

    def __init__(
        self,
        *,
        kind: str,
        session: str,
        start: bytes,
        start_branch: str,
        cursor_value: RefValue,
        target: bytes,
        branch: str,
        policy: Policy,
        scope: str = BOTH,
        arguments: list[str] | None = None,
    ) -> None:
        self.kind = kind
        self.session = session
        self.start = start  # the cursor before the move
        self.start_branch = start_branch
        self.cursor_value = cursor_value  # value of the cursor ref: the plan is stale once the ref changed
        self.target = target  # the cursor after the move
        self.branch = branch  # the branch that redo would follow from the target
        self.policy = policy
        self.scope = scope
        self.arguments = arguments or []
        self.exact = False
        self.undone: list[bytes] = []  # turns left, newest first
        self.redone: list[bytes] = []  # turns entered, oldest first
        self.speaks_for = ""  # the agent session that the session was opened for
        self.on_line: list[bytes] | None = None  # turns undone on its line, if another line is left for it
        self.paths: list[PathMove] = []
        self.known: Known = {}  # file states that planning read; not read again while the files look unchanged
        self.modes: dict[bytes, int] = {}  # known permission bits
        self.new_node: NewNode | None = None
        self.source: bytes | None = None  # the disk's tree, if planning scanned the whole disk
        self.notes: list[str] = []  # notes for the user
        self.prompt: str | None = None  # prompt of the earliest turn undone, returned for editing
        self.messages_removed = 0
        self.turn_before = 0  # number of the turn at the start
        self.turn = 0  # number of the turn at the target
        self.undoes: list[int] = []  # numbers of the operations to undo
        self.ref_moves: list[tuple[str, RefValue, RefValue]] = []  # branches and checkpoints to move back
        self.state_files: dict[str, bytes | None] = {}  # state files that go with `ref_moves`

    @property
    def turns_undone(self) -> list[bytes]:
        """Return the turns that this undoes, newest first: those of the line that was asked for."""
        return self.undone if self.on_line is None else self.on_line

    @property
    def turns_redone(self) -> list[bytes]:
        return self.redone if self.on_line is None else []

    @property
    def nothing_to_do(self) -> bool:
        """Return whether the session is there already and no file would change."""
        idle = not self.changing and not self.conflicts and self.new_node is None and not self.ref_moves
        return idle and self.target == self.start and self.branch == self.start_branch

    @property
    def saves(self) -> bool:
        """Return whether the move first saves what is on disk."""
        return self.exact or any(move.settled for move in self.paths)

    @property
    def changing(self) -> list[PathMove]:
        return [move for move in self.paths if move.action in (WRITE, REMOVE)]

    @property
    def conflicts(self) -> list[PathMove]:
        """Return the unresolved conflicts."""
        return [move for move in self.paths if move.action == CONFLICT]

    def file_moves(self) -> list[FileMove]:
        """Return the files to write or remove, for `worktree.write.writer`."""
        moves = []
        for move in self.changing:
            assert not isinstance(move.found, str) and not isinstance(move.result, str)
            moves.append(FileMove(move.path, move.found, move.result, self.modes.get(move.path)))
        return moves

    def folder_modes(self) -> dict[bytes, int]:
        """Return the known permission bits of folders, writable for the move itself."""
        files = {move.path for move in self.paths}
        return {path: mode | S_IRWXU for path, mode in self.modes.items() if path not in files and mode & S_IXUSR}

    def note_fewer(self, asked: int, there: int) -> Self:
        """Note that there were fewer turns than asked for (M-13)."""
        if 0 < there < asked:
            self.notes.append(f"There {'was' if there == 1 else 'were'} only {turns_text(there)} to {self.kind}.")
        return self

    def of(self, *actions: str) -> list[bytes]:
        """Return the paths with one of these actions."""
        return [move.path for move in self.paths if move.action in actions]


def fold(steps: Iterable[PathStep]) -> dict[bytes, list[Segment]]:
    """Group steps by path and join steps that meet.

    A path that ends as it began is left out.
    """
    folded: dict[bytes, list[Segment]] = {}
    for path, old, new in steps:
        segments = folded.setdefault(path, [])
        if segments and segments[-1][1] == old:
            segments[-1] = (segments[-1][0], new)
        else:
            segments.append((old, new))
    return {path: parts for path, parts in folded.items() if len(parts) > 1 or parts[0][0] != parts[0][1]}


def ending_in(segments: Mapping[bytes, list[Segment]], wanted: Callable[[bytes], State]) -> dict[bytes, list[Segment]]:
    """Add a last step to each path that does not end in the wanted state."""
    steps = [(path, old, new) for path, parts in segments.items() for old, new in parts]
    ends = ((path, parts[-1][1], wanted(path)) for path, parts in segments.items())
    return fold([*steps, *(step for step in ends if step[1] != step[2])])


_KINDS = {FILE: "file", EXECUTABLE: "executable", LINK: "link"}


def state_text(state: Found) -> str:
    """Return a state for people and programs: `missing`, `file 5f3a…`, `link …`."""
    if state is None:
        return "missing"
    if isinstance(state, str):
        return state
    mode, oid = state
    return f"{_KINDS.get(mode) or mode.decode('ascii', 'replace')} {oid.hex()}"


def _check(word: str, known: tuple[str, ...], what: str) -> None:
    if word not in known:
        raise Usage(f"{word!r} is not a {what}", f"Use one of {', '.join(known)}.")
