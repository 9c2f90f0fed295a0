"""Read one session's tree of turns: lines, forks, what is undone.

Commits are read on demand, so that undoing one turn costs the same after ten turns as after ten thousand. Only `nodes`
and the members built on `nodes` read the whole tree. Nothing recurses.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from snapstore.errors import Corrupt, Unknown, did_you_mean, similar
from snapstore.git.objects.ids import COMMIT
from snapstore.git.ref_names import ARCHIVE, HEADS, MAIN, TAGS, archive_ref, branch_ref
from snapstore.git.refs import RefValue
from snapstore.store.handle import StoreHandle
from snapstore.timeline.history.commit_cache import MANY, CommitCache, Row, row_of
from snapstore.timeline.history.operations import cursor_value
from snapstore.timeline.history.turn_cache import turns_file
from snapstore.timeline.history.turn_facts import TurnFacts


class GraphNode:
    """One commit, with raw ids; `turn` is None for a node without a turn number."""

    __slots__ = ("agent", "kind", "oid", "parent", "seconds", "seq", "subject", "tree", "turn")

    def __init__(
        self,
        oid: bytes,
        parent: bytes | None,
        tree: bytes,
        seq: int,
        turn: int | None,
        kind: str,
        seconds: int,
        subject: str,
        agent: str,
    ) -> None:
        self.oid = oid
        self.parent = parent
        self.tree = tree
        self.seq = seq
        self.turn = turn
        self.kind = kind
        self.seconds = seconds
        self.subject = subject
        self.agent = agent


class Graph:
    """One session's tree at one moment. Make a new graph after a move."""

    def __init__(self, store: StoreHandle, session: str) -> None:
        self.store = store
        self.session = session
        self._shadow = store.shadow
        refs = store.shadow.refs
        self._cache = CommitCache(f"{store.state}/graph-{session}")
        self.turns = TurnFacts(self.node, store.shadow, turns_file(store.state, session))
        self._read: dict[bytes, GraphNode] = {}
        self.cursor_value: RefValue = cursor_value(store, session)
        cursor = refs.read(self.cursor_value) if isinstance(self.cursor_value, str) else self.cursor_value
        self.foreign = store.foreign()  # which refs belong to other machines
        newest = None if cursor is not None else self.foreign.newest(store.shadow, session)
        if newest is not None:
            cursor = newest[1]
        if cursor is None:
            raise Unknown(
                f"there is no session {session!r} in this store",
                did_you_mean(
                    similar(session, store.sessions()), f"Sessions here: {', '.join(store.sessions()) or 'none'}."
                ),
                session=session,
            )
        self.cursor = self.here = cursor  # a view of another line (agent_sessions.view) has another cursor
        if newest is not None:
            self.branch = newest[0]
        elif isinstance(self.cursor_value, str):
            self.branch = self.cursor_value.removeprefix(f"{HEADS}{session}/")
        else:
            state = store.documents.session(session)
            self.branch = state.branch if state else self._guess_branch()
        # The tip of the current branch. If that branch is gone, the line ends at the cursor.
        self.tip = self.tip_of(self.branch) or cursor

    @property
    def is_elsewhere(self) -> bool:
        """Return whether only other machines have this session, so that it has no cursor."""
        return self.cursor_value is None

    def _guess_branch(self) -> str:
        """Guess the current branch: `main`, or the newest that leads to the cursor."""
        tips = {**self.archived, **self.branches}
        if MAIN not in tips:
            for name, tip in sorted(tips.items(), key=lambda found: (self.node(found[1]).seconds, found), reverse=True):
                at: bytes | None = tip
                while at is not None:
                    if at == self.cursor:
                        return name
                    at = self.node(at).parent
        return MAIN

    def owner_of(self, branch: str) -> dict[str, str] | None:
        """Return the machine that a branch belongs to, None for our own."""
        places = (f"{HEADS}{self.session}/", f"{ARCHIVE}{self.session}/")
        return next((found for place in places if (found := self.foreign.owner(place + branch))), None)

    @cached_property
    def owner(self) -> dict[str, str] | None:
        """Return the machine that the session belongs to, None if a branch is ours."""
        names = [*self.branches, *self.archived]
        owners = [self.owner_of(name) for name in names]
        return self.owner_of(self.branch) if names and all(owners) else None

    def tip_of(self, branch: str) -> bytes | None:
        """Return the tip of a branch, listed or archived."""
        refs = self._shadow.refs
        listed = refs.read(branch_ref(self.session, branch))
        return listed or refs.read(archive_ref(self.session, branch))

    # Refs.

    @cached_property
    def branches(self) -> dict[str, bytes]:
        """Return the listed branches: name and tip."""
        return self._below(f"{HEADS}{self.session}/")

    @cached_property
    def archived(self) -> dict[str, bytes]:
        """Return the archived branches; skip refs that users pointed at other objects."""
        found = self._below(f"{ARCHIVE}{self.session}/")
        return {name: oid for name, oid in found.items() if self._shadow.objects.header(oid)[0] == COMMIT}

    @cached_property
    def checkpoints(self) -> dict[str, bytes]:
        """Return checkpoints and their nodes; skip tags that users put on other objects."""
        found = {}
        for name, oid in self._below(f"{TAGS}{self.session}/").items():
            commit = self.peel(oid)
            if commit is not None:
                found[name] = commit
        return found

    @cached_property
    def pinned(self) -> dict[bytes, list[str]]:
        """Return the checkpoints of each node that has any."""
        found: dict[bytes, list[str]] = {}
        for name, oid in self.checkpoints.items():
            found.setdefault(oid, []).append(name)
        return found

    def _below(self, prefix: str) -> dict[str, bytes]:
        return {name[len(prefix) :]: oid for name, oid in sorted(self._shadow.refs.list(prefix).items())}

    def peel(self, oid: bytes) -> bytes | None:
        """Return the commit that a ref's object leads to, None if there is none."""
        for _ in range(5):  # a tag can point to a tag
            if oid in self._cache.rows:
                return oid
            kind, data = self._shadow.objects.read(oid)
            if kind == COMMIT:
                return oid
            if kind != b"tag" or not data.startswith(b"object "):
                return None
            try:
                oid = bytes.fromhex(data[7:47].decode())
            except ValueError:
                return None
        return None

    # Nodes, one at a time.

    def node(self, oid: bytes) -> GraphNode:
        """Return the node of a commit, of this session or another."""
        found = self._read.get(oid) or self._look(oid)
        if found.seq < 0:
            # A commit made with git has no number: it sorts right after its nearest ancestor that has one.
            above = [found]
            while above[-1].seq < 0 and above[-1].parent is not None:
                above.append(self._read.get(above[-1].parent) or self._look(above[-1].parent))
            for node in above:
                node.seq = max(above[-1].seq, 0)
        return found

    def _look(self, oid: bytes) -> GraphNode:
        if len(self._read) >= MANY and not self._cache.opened:
            self.open()
        found = self._read[oid] = _node(self._cache.rows.get(oid) or self._row(oid))
        return found

    def _row(self, oid: bytes) -> Row:
        row = self.turns.cache.rows.get(oid)
        if row is None:
            row = row_of(oid, self._shadow.commit(oid))
            self.turns.cache.add(rows={oid: row})
        self._cache.add(row)
        return row

    def open(self) -> None:
        """Load all cached nodes, for callers that will read very many."""
        self._cache.open()
        self.turns.cache.open()

    def upwards(self, oid: bytes) -> Iterator[GraphNode]:
        """Yield a node and its ancestors, newest first."""
        at: bytes | None = oid
        while at is not None:
            node = self.node(at)
            yield node
            at = node.parent

    def line(self, tip: bytes) -> list[bytes]:
        """Return the nodes up to a tip, root first."""
        return [node.oid for node in self.upwards(tip)][::-1]

    def undone(self) -> list[bytes]:
        """Return the nodes that redo enters: after the cursor on the current branch."""
        found: list[bytes] = []
        for node in self.upwards(self.tip):
            if node.oid == self.cursor:
                return found[::-1]  # oldest first
            found.append(node.oid)
        return []  # the branch does not lead through the cursor: nothing to redo on it

    def fork_point(self, a: bytes, b: bytes) -> bytes:
        """Return the deepest node that both lines share."""
        found = self._meet(a, b)
        if found is None:
            raise Corrupt(f"commits {a.hex()[:8]} and {b.hex()[:8]} have no common root")
        return found

    def _meet(self, a: bytes, b: bytes) -> bytes | None:
        """Return where two lines meet; the cost grows with their distance only."""
        seen: tuple[set[bytes], set[bytes]] = ({a}, {b})
        ends: list[bytes | None] = [a, b]
        if a == b:
            return a
        while ends != [None, None]:
            for side in (0, 1):
                end = ends[side]
                if end is None:
                    continue
                if end in seen[1 - side]:
                    return end
                seen[side].add(end)
                ends[side] = self.node(end).parent
        return None

    def path(self, a: bytes, b: bytes) -> tuple[list[bytes], list[bytes]]:
        """Return the nodes left, newest first, and the nodes entered, oldest first."""
        fork = self.fork_point(a, b)
        return self._down_to(a, fork), self._down_to(b, fork)[::-1]

    def _down_to(self, oid: bytes, end: bytes) -> list[bytes]:
        found = []
        for node in self.upwards(oid):
            if node.oid == end:
                break
            found.append(node.oid)
        return found

    def turn_of(self, oid: bytes) -> int:
        """Return the number of the last turn at or before a node, 0 for none."""
        return next((node.turn for node in self.upwards(oid) if node.turn is not None), 0)

    # The whole tree.

    @cached_property
    def nodes(self) -> dict[bytes, GraphNode]:
        """Return every node that the session's refs lead to, parents first."""
        found: dict[bytes, GraphNode] = {}
        self._cache.open()
        ends = (self.branches, self.archived, self.checkpoints)
        for tip in (self.cursor, *(oid for refs in ends for oid in refs.values())):
            line = []
            at: bytes | None = tip
            while at is not None and at not in found:
                node = self.node(at)
                line.append(node)
                at = node.parent
            for node in reversed(line):
                found[node.oid] = node
        self._cache.save(list(found))
        return found

    def by_seq(self) -> list[GraphNode]:
        """Return every node in order of creation: a clock may go back, `seq` never does."""
        return self._ordered

    @cached_property
    def _ordered(self) -> list[GraphNode]:
        return sorted(self.nodes.values(), key=lambda node: node.seq)

    @cached_property
    def children(self) -> dict[bytes, list[bytes]]:
        """Return the children of each node that has any, in order of creation."""
        found: dict[bytes, list[bytes]] = {}
        for node in self._ordered:
            if node.parent is not None:
                found.setdefault(node.parent, []).append(node.oid)
        return found

    @cached_property
    def _branch_of_node(self) -> dict[bytes, str]:
        """Map each node to a branch: current, then listed, then archived, by last use."""
        found: dict[bytes, str] = {}
        current = {self.branch: self.tip} if self.branch in self.branches else {}
        for group in (current, self.branches, self.archived):
            for name, tip in sorted(group.items(), key=lambda ref: -self.nodes[ref[1]].seq):
                at: bytes | None = tip
                while at is not None and at not in found:  # each node is visited once
                    found[at] = name
                    at = self.nodes[at].parent
        return found

    def branch_of(self, oid: bytes) -> str | None:
        """Return the branch to use at a node, None if only a checkpoint or cursor has it."""
        return self._branch_of_node.get(oid)

    @cached_property
    def _shared(self) -> dict[bytes, int]:
        """Count the branches that lead through each node."""
        counts = dict.fromkeys(self.nodes, 0)
        for tip in (*self.branches.values(), *self.archived.values()):
            counts[tip] += 1
        for oid in reversed(self.nodes):
            parent = self.nodes[oid].parent
            if parent is not None:
                counts[parent] += counts[oid]
        return counts

    def fork_of(self, branch: str) -> bytes | None:
        """Return the deepest node that a branch shares with another branch."""
        at: bytes | None = self.branches.get(branch) or self.archived.get(branch)
        while at is not None and self._shared[at] < 2:
            at = self.nodes[at].parent
        return at

    def label(self, branch: str) -> str:
        """Return a branch's label: "Branch from turn 5" if its name is generated."""
        if branch == self.branch or not is_generated(branch):  # commands take the current branch's name
            return branch
        at = self.fork_of(branch)
        return branch if at is None else f"Branch from turn {self.turn_of(at)}"

    # Time, across all branches.

    def earlier(self, count: int | None = None, seconds: float | None = None) -> GraphNode | None:
        """Return the node some steps or seconds before the cursor, across branches.

        The oldest node if there are not that many; None if nothing is earlier.
        """
        before = self._ordered[: self._place]
        if not before:
            return None
        if seconds is not None:
            until = self.nodes[self.cursor].seconds - seconds
            return next((node for node in reversed(before) if node.seconds <= until), before[0])
        return before[-min(count or 1, len(before))]

    def later(self, count: int | None = None, seconds: float | None = None) -> GraphNode | None:
        """Return the node some steps or seconds after the cursor, across branches.

        The newest node if there are not that many; None if nothing is later, or nothing was recorded in that time.
        """
        after = self._ordered[self._place + 1 :]
        if seconds is not None:
            until = self.nodes[self.cursor].seconds + seconds
            return next((node for node in reversed(after) if node.seconds <= until), None)
        return after[min(count or 1, len(after)) - 1] if after else None

    @cached_property
    def _place(self) -> int:
        return self._ordered.index(self.nodes[self.cursor])


def _node(row: Row) -> GraphNode:
    oid, parent, tree, seq, turn, kind, seconds, subject, agent = row
    return GraphNode(oid, parent or None, tree, seq, turn if turn >= 0 else None, kind, seconds, subject, agent)


def is_generated(branch: str) -> bool:
    """Return whether snapstore generated a branch's name."""
    stem, _, number = branch.partition("-")
    return stem == MAIN and (branch == MAIN or (number.isdecimal() and number != "1"))


def last_turn(graph: Graph, target: bytes) -> GraphNode | None:
    """Return the last agent turn at or before a node."""
    return next((node for node in graph.upwards(target) if node.kind == "turn"), None)
