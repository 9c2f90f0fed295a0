"""Prune archived or deleted branches that are old and not in use (C18).

These are never pruned: the line of a session's cursor, the node an open turn began from, a branch with a checkpoint of
its own, and, where there are remotes, a branch that not every remote is known to have. Safety commits from before
forced moves are pruned only on request. A pruned branch disappears from every list at once, and `ops undo` restores it
until the grace time of `gc` is over. Only then are its turns and their records deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from typing import Any

from snapstore.base.text import counted, seconds_of, timestamp
from snapstore.errors import Corrupt, SnapstoreError, Unknown, Usage, did_you_mean, similar
from snapstore.git.objects import notes
from snapstore.git.objects.ids import COMMIT, EMPTY_TREE
from snapstore.git.objects.reachability import commit_links
from snapstore.git.ref_names import ARCHIVE, CURSORS, DELETED, MAIN, PRUNED, SAFETY, TAGS, cursor_ref
from snapstore.store.handle import StoreHandle
from snapstore.store.state import SessionState, encode
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.nodes import highest_seq
from snapstore.timeline.history.operations import AUTO_PRUNE, PRUNE, Operation, Operations, RefMove

DAY = 86400
PLACES = {ARCHIVE: "archived", DELETED: "deleted", SAFETY: "safety"}


class Prunable:
    """An archived or deleted branch, or a safety commit; `kept` is why it must stay."""

    __slots__ = ("kept", "name", "own", "ref", "session", "size", "state", "tip", "used")

    def __init__(self, ref: str, tip: bytes, used: float, own: set[bytes]) -> None:
        place = next(place for place in PLACES if ref.startswith(place))
        self.ref = ref
        self.state = PLACES[place]
        self.session, self.name = ref[len(place) :].split("/", 1)[0], ref.rpartition("/")[2]
        self.tip = tip
        self.used = used  # the time of its last node, or when it was archived or deleted, whichever is later
        self.own = own  # its commits that no other ref reaches
        self.kept: str | None = None
        self.size = 0  # bytes that pruning it frees


def find(
    store: StoreHandle,
    *,
    older: float | None = None,
    keep: Collection[str] = (),
    on_remotes: Container[bytes] | None = None,
    safety: bool = False,
) -> tuple[list[Prunable], list[Prunable]]:
    """Return what may be pruned, and what is old enough but must stay.

    `older` is in seconds; the default is the setting. `keep` has names of branches, or `session/branch`. `on_remotes`
    has the commits that every remote is known to have; None means that there is no remote to wait for. With `safety`,
    look at safety commits instead of branches.
    """
    limit = store.header.prune_after_days * DAY if older is None else older
    if older is None and not limit:
        return [], []
    refs = store.shadow.refs.list("refs/")
    places = SAFETY if safety else (ARCHIVE, DELETED)
    # A symbolic ref here was made by a user with git.
    value = store.shadow.refs.value
    listed = {name: oid for name, oid in refs.items() if name.startswith(places) and isinstance(value(name), bytes)}
    pins = {oid for name, oid in refs.items() if name.startswith(TAGS)}
    # Checkpoints and cursors are left out here: `_reason` reports them as the reason to keep a branch.
    apart = (TAGS, CURSORS, PRUNED)
    others = [oid for name, oid in refs.items() if name not in listed and not name.startswith(apart)]
    held = ancestors(store, others, set())
    in_use = _in_use(store)
    foreign = store.foreign().refs
    unlisted_at = _unlisted_at(store, listed)
    going: list[Prunable] = []
    staying: list[Prunable] = []
    for ref, tip in sorted(listed.items()):
        try:
            seconds = store.shadow.commit(tip).seconds
        except Corrupt:
            continue  # a ref made by hand: `check` reports it
        found = Prunable(ref, tip, max(seconds, unlisted_at.get(ref, 0.0)), ancestors(store, [tip], held))
        if store.clock() - found.used <= limit:
            continue
        found.kept = _reason(found, foreign, keep, pins, in_use, on_remotes)
        (going if found.kept is None else staying).append(found)
    return going, staying


def prune(store: StoreHandle, going: Iterable[Prunable], *, automatic: bool = False) -> list[Operation]:
    """Remove branches from every list, with one operation per session.

    Call with the result of `find` inside the same `store.changing()`; otherwise the branches may have moved meanwhile.
    """
    by_session: dict[str, list[Prunable]] = {}
    for found in going:
        by_session.setdefault(found.session, []).append(found)
    operations: list[Operation] = []
    with store.changing():
        for session, branches in by_session.items():
            number = Operations(store).next_number()
            moves: list[RefMove] = []
            for found in branches:
                moves += [(_pruned_ref(found.ref, session, number), None, found.tip), (found.ref, found.tip, None)]
            names = [found.name for found in branches]
            operation = Operation(
                number=number,
                session=session,
                kind=AUTO_PRUNE if automatic else PRUNE,
                at=timestamp(store.clock()),
                what=_description(branches),
                arguments=names,
                refs=moves,
            )
            name, data = operation.document()
            store.journal.carry_out(moves, {name: data}, what=operation.what)
            operations.append(operation)
    return operations


def _description(pruned: list[Prunable]) -> str:
    number = len(pruned)
    if pruned[0].state == PLACES[SAFETY]:
        return f"prune of {counted(number, 'saved state')}"
    return f"prune of branch {pruned[0].name}" if number == 1 else f"prune of {number:,} branches"


def expire(store: StoreHandle, grace: float) -> int:
    """Delete branches pruned more than `grace` seconds ago; return their number.

    Their refs are deleted, and the records of turns that nothing else reaches; `ops undo` can no longer restore them.
    Their objects are left to gc. Call under the lock.
    """
    refs = store.shadow.refs
    pruned = refs.list(PRUNED)
    if not pruned:
        return 0
    going = {name: oid for name, oid in pruned.items() if _is_expired(store, name, store.clock() - grace)}
    if not going:
        return 0
    rest = [oid for name, oid in refs.list("refs/").items() if name not in going and name not in notes.REFS]
    lost = ancestors(store, going.values(), ancestors(store, rest, set()))
    moves: list[RefMove] = [(name, oid, None) for name, oid in going.items()]
    files: dict[str, bytes | None] = {}
    for session in {name[len(PRUNED) :].partition("/")[0] for name in going}:
        files[f"sessions/{session}.json"] = encode(_state_with_floor(store, session))
    writer = store.shadow.objects.writer()
    try:
        moves += _drop_records(store, writer, lost)
        pack = store.shadow.objects.finish(writer)
    except BaseException:
        writer.abandon()
        raise
    store.journal.carry_out(moves, files, what=f"expiry of {counted(len(going), 'pruned branch', 'pruned branches')}")
    store.shadow.objects.release(pack)
    return len(going)


def _reason(
    found: Prunable,
    foreign: Container[str],
    keep: Collection[str],
    pins: set[bytes],
    in_use: tuple[set[str], set[bytes]],
    on_remotes: Container[bytes] | None,
) -> str | None:
    """Return why a branch must stay, or None."""
    names, nodes = in_use
    if found.ref in foreign:
        return "it belongs to another machine"
    if found.name in keep or f"{found.session}/{found.name}" in keep:
        return "--keep names it"
    if f"{found.session}/{found.name}" in names and found.state == "archived":
        return "it is a session's current branch"
    if found.own & nodes:
        return "a session is on one of its turns"
    if (found.own | {found.tip}) & pins:
        return "it has a checkpoint"
    if on_remotes is not None and found.tip not in on_remotes and found.state != PLACES[SAFETY]:
        return "not every remote has it"
    return None


def _in_use(store: StoreHandle) -> tuple[set[str], set[bytes]]:
    """Return the current branches of sessions, and the nodes of cursors and open turns."""
    names: set[str] = set()
    nodes = set(store.shadow.refs.list(CURSORS).values())
    for session in store.sessions():
        value = store.shadow.refs.value(cursor_ref(session))
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


def _unlisted_at(store: StoreHandle, names: Container[str]) -> dict[str, float]:
    """Return when each branch was archived or deleted, as far as the log tells."""
    found: dict[str, float] = {}
    for operation in Operations(store).newest_first():
        for name, _, new in operation.refs:
            if new is not None and name in names and name not in found:
                found[name] = seconds_of(operation.at) or 0.0
    return found


def ancestors(store: StoreHandle, tips: Iterable[bytes], held: set[bytes]) -> set[bytes]:
    """Return the commits that `tips` reach, except those in `held`."""
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
            continue  # `check` reports it
        if kind == COMMIT:
            found.add(oid)
            waiting += commit_links(data, oid)[1]
    return found


def _pruned_ref(ref: str, session: str, number: int) -> str:
    """Return the ref that holds a pruned branch until it expires.

    The previous ref is part of the name, because the same name may have been deleted twice.
    """
    rest = ref.removeprefix("refs/snapstore/").split("/")
    del rest[1]  # the session
    return f"{PRUNED}{session}/{number}/{'/'.join(rest)}"


def _is_expired(store: StoreHandle, ref: str, moment: float) -> bool:
    try:
        at = seconds_of(Operations(store).get(int(ref.split("/")[4])).at)
    except (SnapstoreError, ValueError, IndexError):
        return False  # a ref made by hand, or its operation is damaged: keep it
    return at is not None and at <= moment


def _state_with_floor(store: StoreHandle, session: str) -> SessionState:
    """Return the session's state with a floor above all numbers of expired turns."""
    state = store.documents.session(session)
    if state is None:
        try:
            branch = Graph(store, session).branch
        except Unknown:  # the session belongs to another machine, or somebody removed its cursor
            branch = MAIN
        state = SessionState(session=session, branch=branch, floor=-1)
    state.floor = max(state.floor, highest_seq(store, session))
    return state


def _drop_records(store: StoreHandle, writer: Any, lost: set[bytes]) -> list[RefMove]:
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


def refuse_unknown(store: StoreHandle, names: Iterable[str]) -> None:
    """Refuse a name to keep that no branch has: it is probably a typo."""
    refs = store.shadow.refs.list("refs/")
    known = {name.rpartition("/")[2] for name in refs}
    known |= {f"{parts[-2]}/{parts[-1]}" for parts in (name.split("/") for name in refs)}
    known |= {f"{name.split('/')[3]}/{name.rpartition('/')[2]}" for name in refs if name.startswith(DELETED)}
    for name in names:
        if name not in known:
            hint = did_you_mean(similar(name, known), "`snapstore branches --all` lists them.")
            raise Usage(f"there is no branch {name!r} to keep", hint)
