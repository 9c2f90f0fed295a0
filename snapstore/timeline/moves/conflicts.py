"""Compare a plan with the disk: find conflicts and resolve them by policy."""

from __future__ import annotations

import os

from snapstore.git.objects.ids import BLOB, LINK, object_id
from snapstore.timeline.history.graph import Graph, GraphNode
from snapstore.timeline.moves.plan import (
    CONFLICT,
    FORCE,
    KEPT,
    MARKERS,
    REFUSE,
    REMOVE,
    SKIP,
    SKIPPED,
    WRITE,
    PathMove,
    Plan,
    State,
)
from snapstore.timeline.moves.safety import stale
from snapstore.timeline.record.session import RecordingSession
from snapstore.worktree.scan.case_folding import folded
from snapstore.worktree.write.file_moves import folders_above, way_up
from snapstore.worktree.write.safe_dirs import FILE_IN_THE_WAY, FOLDER_THERE, LINK_IN_THE_WAY, OTHER_CASE_THERE


class ConflictResolver:
    """Compares one plan with the disk, once."""

    def __init__(self, session: RecordingSession, graph: Graph, plan: Plan) -> None:
        self._store = session.store
        self._graph = graph
        self._plan = plan
        self._restore = session.store.writer("plan", [], plan.known)
        self._made: dict[bytes, bytes] = {}  # blobs that merges made
        self._going: set[str] | None = None  # case-folded paths that the move removes
        self._others: dict[str, Graph] = {}  # graphs of other sessions; each is read once, however many files changed

    def run(self) -> None:
        plan = self._plan
        for move in plan.paths:
            move.found = self._restore.observe(move.path)
        # Recorded with the operation, so that undoing the operation restores them.
        plan.modes.update(self._restore.modes)
        removed = {move.path for move in plan.paths if self._removes(move)}
        emptied = folders_above(removed)
        for move in plan.paths:
            self._clear_the_way(move, removed, emptied)
            self._compare(move)
        self._mark_clashes()

    def _mark_clashes(self) -> None:
        """Mark paths as conflicts where a file and a folder would share a name.

        Edits between the turns can turn a file into a folder, or a folder into a file. The move would then want both.
        """
        paths = self._plan.paths
        files = {move.path for move in paths if isinstance(move.result, tuple) and move.action != CONFLICT}
        clashing = files & folders_above(files)
        for move in paths if clashing else ():
            if move.action == WRITE and (move.path in clashing or any(top in clashing for top in way_up(move.path))):
                if move.path in self._plan.policy.ours:
                    move.action, move.result, move.settled = SKIPPED, move.found, SKIP
                else:
                    move.action, move.changed_by = CONFLICT, "edits between the turns"
                    move.why = "a file and a folder would be in the same place"

    def _removes(self, move: PathMove) -> bool:
        """Return whether the move removes the file at this path."""
        forced = isinstance(move.found, tuple) and self._plan.policy.choice(move.path) == FORCE
        return move.wanted is None and (forced or (move.found == move.expected and len(move.segments) == 1))

    def _clear_the_way(self, move: PathMove, removed: set[bytes], emptied: set[bytes]) -> None:
        """Treat an obstacle as absent if this same move removes it.

        A file may turn into a folder, a folder into a file, or a name may change its case.
        """
        if move.found == FOLDER_THERE:
            # An empty folder holds no bytes, so an exact or forced move puts the file in its place.
            forced = self._plan.exact or self._plan.policy.choice(move.path) == FORCE
            goes = move.path in emptied or forced
            if move.wanted is None or (goes and self._restore.holds_only(move.path, removed)):
                move.found = None
        elif move.found in (FILE_IN_THE_WAY, LINK_IN_THE_WAY):
            folder = move.path.rpartition(b"/")[0]
            while folder and folder not in removed:
                folder = folder.rpartition(b"/")[0]
            if folder or move.wanted is None:
                move.found = None
        elif move.found == OTHER_CASE_THERE:
            if self._going is None:
                self._going = {folded(path) for path in removed}
            if move.wanted is None or folded(move.path) in self._going:
                move.found = None

    def _compare(self, move: PathMove) -> None:
        if move.found == move.wanted:
            move.action, move.result = KEPT, move.found
        elif move.found == move.expected and len(move.segments) == 1:
            self._will_be(move, move.wanted)
        elif move.found is None and move.path not in self._plan.policy.each:
            self._will_be(move, move.wanted)  # nothing can be lost (M-18)
        else:
            move.changed_by = self._changed_by(move)
            self._resolve(move, self._plan.policy.choice(move.path))

    def _will_be(self, move: PathMove, result: State) -> None:
        move.result = result
        move.action = KEPT if result == move.found else REMOVE if result is None else WRITE

    def _resolve(self, move: PathMove, choice: str) -> None:
        """Resolve a conflict by the policy's choice; otherwise leave it a conflict."""
        move.action = CONFLICT
        if choice == REFUSE:
            return
        if choice == SKIP:
            move.action, move.result, move.settled = SKIPPED, move.found, SKIP
            return
        if isinstance(move.found, str):
            move.why = f"{move.found} is there, which cannot be saved first"
            return
        if choice == FORCE:
            self._will_be(move, move.wanted)
            move.settled = FORCE
            return
        merged = self._merge(move, markers=choice == MARKERS)
        if not move.why:
            self._will_be(move, merged)
            move.merged = self._made.get(merged[1]) if isinstance(merged, tuple) else None
            move.settled = choice

    # Three-way merge: base is what the turns left, mine is on disk, theirs is what the move wants.

    def _merge(self, move: PathMove, *, markers: bool) -> State:
        assert not isinstance(move.found, str)
        state = move.found
        for base, wanted in move.segments:
            if state == base:
                state = wanted
            elif state != wanted:
                state = self._merge_one(move, base, state, wanted, markers)
                if move.why:
                    break
        return state

    def _merge_one(self, move: PathMove, base: State, mine: State, theirs: State, markers: bool) -> State:
        from snapstore.git.merge import merge, why_not

        if mine is None or theirs is None:
            move.why = "deleted on one side, changed on the other"
            return mine
        if LINK in (mine[0], theirs[0]):
            move.why = "a link cannot be merged"
            return mine
        old = base if base is not None and base[0] != LINK else None
        mode = theirs[0] if old is None or mine[0] == old[0] else mine[0]
        sides = self._data(move, old), self._data(move, mine), self._data(move, theirs)
        labels = ("on disk", "before", f"{self._plan.kind} {' '.join(self._plan.arguments)}")
        data = merge(*sides, labels=labels, markers=markers, folder=self._store.state)
        if data is None:
            move.why = why_not(*sides)
            return mine
        oid = object_id(BLOB, data)
        self._made[oid] = data
        return mode, oid

    def _data(self, move: PathMove, state: State) -> bytes:
        from snapstore.git.diff.patch import LARGEST

        if state is None:
            return b""
        made = self._made.get(state[1])
        if made is not None:
            return made
        objects = self._store.shadow.objects
        if not objects.contains(state[1], fresh=False):  # the content is on disk only
            data = self._restore.read(move.path, LARGEST + 1)
            if data is None or (len(data) <= LARGEST and object_id(BLOB, data) != state[1]):
                raise stale(f"{os.fsdecode(move.path)} changed while the plan was made")
            return data
        return objects.read(state[1])[1] if objects.header(state[1])[1] <= LARGEST else b"\0"

    # Who made a conflicting change.

    def _changed_by(self, move: PathMove) -> str:
        if move.found == move.expected:  # the disk is as the turns left it, so the edits lie between two turns
            return self._edits_between(move)
        graph, trees = self._graph, self._store.shadow.trees
        for node in graph.upwards(graph.cursor):
            if node.parent is None:
                break
            if trees.file(node.tree, move.path) != trees.file(graph.node(node.parent).tree, move.path):
                if trees.file(node.tree, move.path) == move.found:
                    return _name(node)
                break
        return self._other_session(move) or f"edits since turn {self._plan.turn_before}"

    def _edits_between(self, move: PathMove) -> str:
        """Name the edits that lie between the turns of this move."""
        graph, trees = self._graph, self._store.shadow.trees
        states = {state for segment in move.segments for state in segment}
        for node in graph.upwards(graph.cursor):
            if node.parent is None:
                break
            now, before = (trees.file(tree, move.path) for tree in (node.tree, graph.node(node.parent).tree))
            if node.turn is None and now != before and (now in states or before in states):
                return _name(node)
        return "edits between the turns"

    def _other_session(self, move: PathMove) -> str:
        trees = self._store.shadow.trees
        for name in self._store.sessions():
            if name == self._graph.session:
                continue
            other = self._others.get(name) or Graph(self._store, name)
            self._others[name] = other
            last: GraphNode | None = None
            for node in other.upwards(other.cursor):
                if trees.file(node.tree, move.path) != move.found:
                    break
                last = node
            else:
                continue  # the file is as it was when that session began: not that session's change
            if last is not None and last.turn is not None:
                return f"{_name(last)} of session {name}"
        return ""


def _name(node: GraphNode) -> str:
    return f"turn {node.turn}" if node.turn is not None else f"edits #{node.seq}"
