"""A plan: what a move would do, path by path, with its conflicts, before anything is written.

Every move is a list of steps, one a path and a turn left or entered: the state the path should be in, and the one to
leave it in. Steps of one path that meet are one; where they do not, somebody's edit lies between two turns.
"""

from __future__ import annotations

from stat import S_IRWXU, S_IXUSR

from snapstore.errors import Usage
from snapstore.git.objects.ids import EXECUTABLE, FILE, LINK
from snapstore.worktree.write.file_moves import FileMove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from snapstore.git.objects.ids import Entry
    from snapstore.git.refs import RefValue
    from snapstore.worktree.write.safe_dirs import Known

    # What a file is in, or should be: an entry, or nothing. What is found can be odd as well: then in words.
    State = Entry | None
    Found = Entry | str | None
    Segment = tuple[State, State]
    PathStep = tuple[bytes, State, State]

# What becomes of a path.
WRITE, REMOVE, KEPT, SKIPPED, CONFLICT = "write", "remove", "kept", "skipped", "conflict"

# What to do about conflicts.
REFUSE, MERGE, MARKERS, FORCE, SKIP = WAYS = ("refuse", "merge", "markers", "force", "skip")

# The kind of a commit that holds what was on disk before a move.
SAFETY = "safety"

# What a move is about.
BOTH, FILES, CONVERSATION = SCOPES = ("both", "files", "conversation")


class Policy:
    """How conflicts are settled, for all files and for some: refuse, merge, markers (a merge, with markers in the file
    where both changed it), force (what is wanted) or skip (what is on disk). `ours` are skipped, `theirs` forced."""

    __slots__ = ("default", "each", "ours", "theirs")

    def __init__(
        self,
        default: str = REFUSE,
        ours: Iterable[bytes] = (),
        theirs: Iterable[bytes] = (),
        each: Mapping[bytes, str] | None = None,
    ) -> None:
        self.default = default
        self.each = {**dict.fromkeys(ours, SKIP), **dict.fromkeys(theirs, FORCE), **(each or {})}
        for way in (default, *self.each.values()):
            _check(way, WAYS, "way to settle conflicts")
        self.ours = frozenset(path for path, way in self.each.items() if way == SKIP)
        self.theirs = frozenset(path for path, way in self.each.items() if way == FORCE)

    def choice(self, path: bytes) -> str:
        return self.each.get(path, self.default)

    def with_default(self, default: str) -> Policy:
        return Policy(default, each=self.each)


class How:
    """How a move is to be made: what to do about conflicts, what to move, and whether to the byte."""

    __slots__ = ("exact", "policy", "scope")

    def __init__(self, policy: Policy | str | None = None, scope: str = BOTH, exact: bool = False) -> None:
        self.policy = policy if isinstance(policy, Policy) else Policy(policy or REFUSE)
        _check(scope, SCOPES, "part to move")
        self.scope = scope
        self.exact = exact


class PathMove:
    """One path's part in a move."""

    __slots__ = ("action", "changed_by", "found", "merged", "path", "result", "segments", "settled", "why")

    def __init__(self, path: bytes, segments: list[Segment]) -> None:
        self.path = path
        self.segments = segments
        self.found: Found = None  # on disk when the plan was made
        self.action = CONFLICT
        self.result: Found = None  # what will be on disk
        self.merged: bytes | None = None  # the result's bytes where a merge made them
        self.settled = ""  # how a conflict was settled: merge, markers, force, skip
        self.changed_by = ""  # whose change a conflict is about
        self.why = ""  # what the chosen way could not do about it

    @property
    def expected(self) -> State:
        return self.segments[0][0]

    @property
    def wanted(self) -> State:
        return self.segments[-1][1]

    @property
    def conflicting(self) -> bool:
        """Whether the disk held something else than the turns left there, however that was settled."""
        return self.action == CONFLICT or bool(self.settled)


class NewNode:
    """A node that the move puts on top of the line: a revert, an applied turn, restored files."""

    __slots__ = ("kind", "of", "subject")

    def __init__(self, kind: str, subject: str, of: bytes) -> None:
        self.kind = kind
        self.subject = subject
        self.of = of  # the commit it takes out, in, or from


class Plan:
    """A move as data. Make one with `session.plan_undo(2)` and its like, carry it out with `session.move(plan)`."""

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
        "paths",
        "policy",
        "prompt",
        "redone",
        "ref_moves",
        "scope",
        "session",
        "source",
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
        self.start = start  # where the session stands
        self.start_branch = start_branch
        self.cursor_value = cursor_value  # what the cursor's ref holds: a plan is stale when that changed
        self.target = target  # where it would stand
        self.branch = branch  # and the branch that redo would follow from there
        self.policy = policy
        self.scope = scope
        self.arguments = arguments or []
        self.exact = False
        self.undone: list[bytes] = []  # turns left, newest first
        self.redone: list[bytes] = []  # turns entered, oldest first
        self.paths: list[PathMove] = []
        self.known: Known = {}  # what was read to make it: not read again while it looks the same
        self.modes: dict[bytes, int] = {}  # permission bits that the turns' records know of
        self.new_node: NewNode | None = None
        self.source: bytes | None = None  # the tree of the disk, where the plan looked at all of it
        self.notes: list[str] = []  # what a person should know about it
        self.prompt: str | None = None  # of the first turn undone: handed back for editing
        self.messages_removed = 0
        self.turn_before = 0  # the number of the turn it starts at
        self.turn = 0  # and of the one it leads to
        self.undoes: list[int] = []  # operations that it takes back
        self.ref_moves: list[tuple[str, RefValue, RefValue]] = []  # of branches and checkpoints that it takes back
        self.state_files: dict[str, bytes | None] = {}  # and the documents that go with them

    @property
    def nothing_to_do(self) -> bool:
        """Whether the session stands there already and no file would change."""
        idle = not self.changing and not self.conflicts and self.new_node is None and not self.ref_moves
        return idle and self.target == self.start and self.branch == self.start_branch

    @property
    def saves(self) -> bool:
        """Whether what is on disk is saved first."""
        return self.exact or any(move.settled for move in self.paths)

    @property
    def changing(self) -> list[PathMove]:
        return [move for move in self.paths if move.action in (WRITE, REMOVE)]

    @property
    def conflicts(self) -> list[PathMove]:
        """Those that stand in the way."""
        return [move for move in self.paths if move.action == CONFLICT]

    def file_moves(self) -> list[FileMove]:
        """What is to be written, as the writer of files wants it."""
        moves = []
        for move in self.changing:
            assert not isinstance(move.found, str) and not isinstance(move.result, str)
            moves.append(FileMove(move.path, move.found, move.result, self.modes.get(move.path)))
        return moves

    def folder_modes(self) -> dict[bytes, int]:
        """Those of the known permission bits that are folders'. The move itself must be able to write into them."""
        files = {move.path for move in self.paths}
        return {path: mode | S_IRWXU for path, mode in self.modes.items() if path not in files and mode & S_IXUSR}

    def of(self, *actions: str) -> list[bytes]:
        return [move.path for move in self.paths if move.action in actions]


def fold(steps: Iterable[PathStep]) -> dict[bytes, list[Segment]]:
    """Steps by path, those that meet made one. A path that ends as it began is left out: it is nobody's business."""
    folded: dict[bytes, list[Segment]] = {}
    for path, old, new in steps:
        segments = folded.setdefault(path, [])
        if segments and segments[-1][1] == old:
            segments[-1] = (segments[-1][0], new)
        else:
            segments.append((old, new))
    return {path: parts for path, parts in folded.items() if len(parts) > 1 or parts[0][0] != parts[0][1]}


_KINDS = {FILE: "file", EXECUTABLE: "executable", LINK: "link"}


def state_text(state: Found) -> str:
    """A state for people and programs: `missing`, `file 5f3a…`, `link …`."""
    if state is None:
        return "missing"
    if isinstance(state, str):
        return state
    mode, oid = state
    return f"{_KINDS.get(mode) or mode.decode('ascii', 'replace')} {oid.hex()}"


def _check(word: str, known: tuple[str, ...], what: str) -> None:
    if word not in known:
        raise Usage(f"{word!r} is no {what}", f"There are {', '.join(known)}.")
