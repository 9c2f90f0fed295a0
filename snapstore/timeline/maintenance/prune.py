"""What may go (C18): branches that are in the archive or deleted, that nobody used for long, and that nothing pins.

Never the line that a session stands on, nor what an open turn began from, nor a branch with a checkpoint of its own,
nor, where there are remotes, one that none of them has. What was saved before forced moves goes only where somebody
asks for it. What goes is out of every list at once, and `ops undo` brings
it back until the grace time of `gc` is over: only then are its turns, and what was recorded of them, gone for good.
"""

from __future__ import annotations

from snapstore.base.text import seconds_of
from snapstore.errors import Corrupt, SnapstoreError, Unknown, Usage, did_you_mean, similar
from snapstore.git.objects import notes
from snapstore.git.objects.ids import COMMIT, EMPTY_TREE
from snapstore.git.objects.reachability import commit_links
from snapstore.git.ref_names import MAIN
from snapstore.store.state import SessionState, encode, timestamp
from snapstore.timeline.history.nodes import highest_seq
from snapstore.timeline.history.operations import AUTO_PRUNE, PRUNE, Operation, Operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable
    from typing import Any

    from snapstore.store.handle import StoreHandle
    from snapstore.timeline.history.operations import RefMove

DAY = 86400
ARCHIVE, DELETED, PRUNED = "refs/snapstore/archive/", "refs/snapstore/deleted/", "refs/snapstore/pruned/"
SAFETY = "refs/snapstore/safety/"
PLACES = {ARCHIVE: "archived", DELETED: "deleted", SAFETY: "safety"}


class Prunable:
    """A branch out of the list, or what was saved before a move: since when, and if it stays, why."""

    __slots__ = ("kept", "name", "own", "ref", "session", "size", "state", "tip", "used")

    def __init__(self, ref: str, tip: bytes, used: float, own: set[bytes]) -> None:
        place = next(place for place in PLACES if ref.startswith(place))
        self.ref = ref
        self.state = PLACES[place]
        self.session, self.name = ref[len(place) :].split("/", 1)[0], ref.rpartition("/")[2]
        self.tip = tip
        self.used = used  # its last node, or when it left the list, whichever came later
        self.own = own  # its commits that no other ref holds
        self.kept: str | None = None
        self.size = 0  # bytes that go with it


def find(
    store: StoreHandle,
    *,
    older: float | None = None,
    keep: Collection[str] = (),
    on_remotes: Container[bytes] | None = None,
    safety: bool = False,
) -> tuple[list[Prunable], list[Prunable]]:
    """What may go, and what was old enough and stays all the same, with why. `older` is in seconds, else the setting.
    `keep` are names of branches, or `session/branch`. `on_remotes` are the commits that remotes are known to have; None
    where there is no remote, and nothing to wait for. With `safety` what was saved before forced moves, instead."""
    limit = store.header.prune_after_days * DAY if older is None else older
    if older is None and not limit:
        return [], []
    refs = store.shadow.refs.list("refs/")
    places = SAFETY if safety else (ARCHIVE, DELETED)
    # What stands for another ref is somebody's, made with git.
    value = store.shadow.refs.value
    listed = {name: oid for name, oid in refs.items() if name.startswith(places) and isinstance(value(name), bytes)}
    pins = {oid for name, oid in refs.items() if name.startswith("refs/tags/")}
    # Neither checkpoints nor cursors hold a line: they are why it stays.
    apart = ("refs/tags/", "refs/snapstore/cursor/", PRUNED)
    others = [oid for name, oid in refs.items() if name not in listed and not name.startswith(apart)]
    held = ancestors(store, others, set())
    stood_on = _stood_on(store)
    foreign = store.foreign().refs
    left_at = _left_the_list(store, listed)
    going: list[Prunable] = []
    staying: list[Prunable] = []
    for ref, tip in sorted(listed.items()):
        try:
            seconds = store.shadow.commit(tip).seconds
        except Corrupt:
            continue  # no branch of ours: somebody put it there, and `check` tells
        found = Prunable(ref, tip, max(seconds, left_at.get(ref, 0.0)), ancestors(store, [tip], held))
        if store.clock() - found.used <= limit:
            continue
        found.kept = _reason(found, foreign, keep, pins, stood_on, on_remotes)
        (going if found.kept is None else staying).append(found)
    return going, staying


def prune(store: StoreHandle, going: Iterable[Prunable], *, by_itself: bool = False) -> list[Operation]:
    """Takes branches out of every list, each session's as one operation. Call it with what `find` gave, inside the
    same `store.changing()`, or they may have moved meanwhile."""
    by_session: dict[str, list[Prunable]] = {}
    for found in going:
        by_session.setdefault(found.session, []).append(found)
    operations: list[Operation] = []
    with store.changing():
        for session, branches in by_session.items():
            number = Operations(store).next_number()
            moves: list[RefMove] = []
            for found in branches:
                moves += [(_pruned(found.ref, session, number), None, found.tip), (found.ref, found.tip, None)]
            names = [found.name for found in branches]
            operation = Operation(
                number=number,
                session=session,
                kind=AUTO_PRUNE if by_itself else PRUNE,
                at=timestamp(store.clock()),
                what=_in_words(branches),
                arguments=names,
                refs=moves,
            )
            name, data = operation.document()
            store.journal.carry_out(moves, {name: data}, what=operation.what)
            operations.append(operation)
    return operations


def _in_words(pruned: list[Prunable]) -> str:
    number = len(pruned)
    if pruned[0].state == PLACES[SAFETY]:
        return f"prune of {number:,} saved {'state' if number == 1 else 'states'}"
    return f"prune of branch {pruned[0].name}" if number == 1 else f"prune of {number:,} branches"


def expire(store: StoreHandle, grace: float) -> int:
    """Forgets for good what was pruned longer ago than that: refs, and the records of turns that nothing else holds.
    Call under the lock. Gives how many branches that were; their objects are left to gc."""
    refs = store.shadow.refs
    pruned = refs.list(PRUNED)
    if not pruned:
        return 0
    going = {name: oid for name, oid in pruned.items() if _pruned_before(store, name, store.clock() - grace)}
    if not going:
        return 0
    rest = [oid for name, oid in refs.list("refs/").items() if name not in going and name not in notes.REFS]
    lost = ancestors(store, going.values(), ancestors(store, rest, set()))
    moves: list[RefMove] = [(name, oid, None) for name, oid in going.items()]
    files: dict[str, bytes | None] = {}
    for session in {name[len(PRUNED) :].partition("/")[0] for name in going}:
        files[f"sessions/{session}.json"] = encode(_with_floor(store, session))
    writer = store.shadow.objects.writer()
    try:
        moves += _without_records(store, writer, lost)
        pack = store.shadow.objects.finish(writer)
    except BaseException:
        writer.abandon()
        raise
    store.journal.carry_out(moves, files, what=f"forgetting of {len(going)} pruned branches")
    store.shadow.objects.release(pack)
    return len(going)


def _reason(
    found: Prunable,
    foreign: Container[str],
    keep: Collection[str],
    pins: set[bytes],
    stood_on: tuple[set[str], set[bytes]],
    on_remotes: Container[bytes] | None,
) -> str | None:
    """Why it stays."""
    names, nodes = stood_on
    if found.ref in foreign:
        return "it is another machine's"
    if found.name in keep or f"{found.session}/{found.name}" in keep:
        return "you said so"
    if f"{found.session}/{found.name}" in names and found.state == "archived":
        return "a session stands on it"
    if found.own & nodes:
        return "a session stands on one of its turns"
    if (found.own | {found.tip}) & pins:
        return "a checkpoint is on it"
    if on_remotes is not None and found.tip not in on_remotes and found.state != PLACES[SAFETY]:
        return "no remote has it"
    return None


def _stood_on(store: StoreHandle) -> tuple[set[str], set[bytes]]:
    """The branches and nodes that sessions and open turns stand on."""
    names: set[str] = set()
    nodes = set(store.shadow.refs.list("refs/snapstore/cursor/").values())
    for session in store.sessions():
        value = store.shadow.refs.value(f"refs/snapstore/cursor/{session}")
        if isinstance(value, str):
            names.add(f"{session}/{value.rpartition('/')[2]}")
        state = store.documents.session(session)
        if state is not None:
            names.add(f"{session}/{state.branch}")
    for name in store.documents.sessions_with_open_turns():
        turn = store.documents.open_turn(name)
        if turn is not None:
            nodes.add(bytes.fromhex(turn.before))
            nodes.update(bytes.fromhex(one) for one in turn.captured_by_others if isinstance(one, str))
    return names, nodes


def _left_the_list(store: StoreHandle, names: Container[str]) -> dict[str, float]:
    """When each ref came to be, as far as operations tell."""
    found: dict[str, float] = {}
    for operation in Operations(store).newest_first():
        for name, _, new in operation.refs:
            if new is not None and name in names and name not in found:
                found[name] = seconds_of(operation.at) or 0.0
    return found


def ancestors(store: StoreHandle, tips: Iterable[bytes], held: set[bytes]) -> set[bytes]:
    """The commits that tips reach, besides those held already."""
    found: set[bytes] = set()
    waiting = list(tips)
    objects = store.shadow.objects
    while waiting:
        oid = waiting.pop()
        if oid in found or oid in held:
            continue
        try:
            kind, data = objects.read(oid)
        except SnapstoreError:
            continue  # `check` tells
        if kind == COMMIT:
            found.add(oid)
            waiting += commit_links(data, oid)[1]
    return found


def _pruned(ref: str, session: str, number: int) -> str:
    """Where a ref waits for its end. What it was is part of the name: one name may have been deleted twice."""
    rest = ref.removeprefix("refs/snapstore/").split("/")
    del rest[1]  # the session
    return f"{PRUNED}{session}/{number}/{'/'.join(rest)}"


def _pruned_before(store: StoreHandle, ref: str, moment: float) -> bool:
    try:
        at = seconds_of(Operations(store).get(int(ref.split("/")[4])).at)
    except (SnapstoreError, ValueError, IndexError):
        return False  # not ours, or its record is damaged: rather kept
    return at is not None and at <= moment


def _with_floor(store: StoreHandle, session: str) -> SessionState:
    """What the session remembers, with the numbers of the turns that go: they are never given again."""
    state = store.documents.session(session)
    if state is None:
        from snapstore.timeline.history.graph import Graph

        try:
            branch = Graph(store, session).branch
        except Unknown:  # another machine's, or somebody removed its cursor
            branch = MAIN
        state = SessionState(session=session, branch=branch, floor=-1)
    state.floor = max(state.floor, highest_seq(store, session))
    return state


def _without_records(store: StoreHandle, writer: Any, lost: set[bytes]) -> list[RefMove]:
    shadow = store.shadow
    seconds = max(0, int(store.clock()))
    moves: list[RefMove] = []
    for ref in notes.REFS:
        tip = shadow.refs.read(ref)
        tree = shadow.commit(tip).tree if tip is not None else EMPTY_TREE
        left = notes.drop(shadow.trees, writer, tree, lost)
        if left != tree:
            moves.append((ref, tip, shadow.notes_commit(writer, left, seconds)))
    return moves


def must_be_known(store: StoreHandle, names: Iterable[str]) -> None:
    """A name to be kept that no branch has is a slip of the pen: better said than pruned."""
    refs = store.shadow.refs.list("refs/")
    known = {name.rpartition("/")[2] for name in refs}
    known |= {f"{parts[-2]}/{parts[-1]}" for parts in (name.split("/") for name in refs)}
    known |= {f"{name.split('/')[3]}/{name.rpartition('/')[2]}" for name in refs if name.startswith(DELETED)}
    for name in names:
        if name not in known:
            hint = did_you_mean(similar(name, known), "`snapstore branches --all` lists them.")
            raise Usage(f"there is no branch {name!r} to keep", hint)
