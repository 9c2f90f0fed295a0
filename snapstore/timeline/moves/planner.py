"""Plan moves: the turns left and entered, and the steps per path. Read-only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import takewhile

from snapstore.base.text import listed
from snapstore.errors import Corrupt, Unknown, Usage
from snapstore.git.objects.ids import LINK
from snapstore.timeline.history.addresses import locate, resolve
from snapstore.timeline.history.agent_sessions import refuse_elsewhere, view
from snapstore.timeline.history.commit_cache import MANY
from snapstore.timeline.history.graph import Graph, GraphNode
from snapstore.timeline.history.nodes import git_parts, path_json, read_node
from snapstore.timeline.history.operations import UNDO, Operations
from snapstore.timeline.history.turn_cache import ODD
from snapstore.timeline.moves.caveats import caveats_of, leave_line
from snapstore.timeline.moves.conflicts import ConflictResolver
from snapstore.timeline.moves.exact_plan import exact_steps
from snapstore.timeline.moves.folder_state import private_modes
from snapstore.timeline.moves.plan import (
    BOTH,
    CONVERSATION,
    FILES,
    REMOVE,
    SAFETY_KIND,
    WRITE,
    MoveOptions,
    NewNode,
    PathMove,
    PathStep,
    Plan,
    Segment,
    ending_in,
    fold,
)
from snapstore.timeline.record.session import RecordingSession

EDITS = "edits"
UNSEEN = "{} is kept: snapstore had not seen it before and cannot tell whether it existed."


class Planner:
    """Makes the plan of one move of a session."""

    def __init__(self, session: RecordingSession, options: MoveOptions) -> None:
        self._session = session
        self._store = session.store
        self._shadow = session.store.shadow
        self._trees = session.store.shadow.trees
        self._options = options
        self._graph = Graph(session.store, session.name)
        self._seen = view(session) if session.speaks_for else self._graph  # what addresses and counts mean

    # Moves along the line and across branches.

    def undo(self, count: int) -> Plan:
        _check_count(count)
        left = self._numbered_before(count)
        target, branch = (left[-1].parent, self._seen.branch) if left else (self._graph.cursor, self._graph.branch)
        assert target is not None
        return self._travel("undo", target, branch, [str(count)]).note_fewer(count, len(left))

    def redo(self, count: int | None) -> Plan:
        _check_count(count)
        graph, ahead = self._graph, self._seen.undone()
        numbered = [oid for oid in ahead if graph.node(oid).turn is not None]
        arguments = ["--all"] if count is None else [str(count)]
        if not ahead or (not numbered and count is not None):
            return self._travel("redo", graph.cursor, graph.branch, arguments)
        target = ahead[-1] if count is None else numbered[:count][-1]
        plan = self._travel("redo", target, graph.branch, arguments, extend=True)
        return plan.note_fewer(count or 0, len(numbered))

    def goto(self, address: str, kind: str = "goto") -> Plan:
        target, branch = self._own(address)
        if branch is None:
            oldest = self._graph.node(target).seq
            line = takewhile(lambda node: node.seq >= oldest, self._graph.upwards(self._seen.tip))
            on_line = target in (node.oid for node in line)
            branch = self._seen.branch if on_line else self._graph.branch_of(target) or self._graph.branch
        turn = address.isdecimal() or ":" in address  # a turn: manual edits after the turn stay
        return self._travel(kind, target, branch, [address], extend=turn)

    def switch(self, address: str) -> Plan:
        if self._own(address)[1] is None:
            raise Unknown(f"there is no branch {address!r}", "`snapstore branches` lists them.", branch=address)
        return self.goto(address, "switch")

    def earlier(self, count: int | None, seconds: float | None) -> Plan:
        return self._in_time("earlier", self._seen.earlier(count, seconds), count, seconds)

    def later(self, count: int | None, seconds: float | None) -> Plan:
        return self._in_time("later", self._seen.later(count, seconds), count, seconds)

    # Moves that add a node: one turn, or some files.

    def revert(self, address: str | None) -> Plan:
        node = self._turn(address) if address is not None else self._last_turn()
        address = address or str(node.turn)
        plan = self._new_node("revert", f"Revert turn {node.turn}: {node.subject}", node.oid, address)
        self._fill_paths(plan, fold(self._steps([node.oid], [])))
        return self._add_notes(plan, [node.oid])

    def apply(self, address: str) -> Plan:
        node = self._turn(address)
        plan = self._new_node("apply", f"Apply turn {node.turn}: {node.subject}", node.oid, address)
        self._fill_paths(plan, fold(self._steps([], [node.oid])))
        return self._add_notes(plan, [node.oid])

    def restore(self, address: str | None, paths: Iterable[bytes]) -> Plan:
        source = resolve(self._graph, address := address or "@")
        tree, own = self._shadow.commit(source).tree, self._tree(self._graph.cursor)
        segments: dict[bytes, list[Segment]] = {}
        for path in paths:
            below = dict(self._trees.files_at(own, path)), dict(self._trees.files_at(tree, path))
            names = sorted(below[0].keys() | below[1].keys())
            if not names:
                name, where = path.decode("utf-8", "replace"), "the last turn" if address == "@" else address
                where = f"turn {where}" if where.isdecimal() else where
                hint = f"For a turn: `snapstore restore {name} -- PATH`." if name.isdecimal() else None
                raise Unknown(f"{name!r} is neither in {where} nor here", hint, **path_json(path))
            segments |= {name: [(below[0].get(name), below[1].get(name))] for name in names}
        shown = listed([path.decode("utf-8", "replace") for path in segments], 3)
        turn = self._shadow.commit(source).number("Turn")
        of = "before the first turn" if address == "0" else address if turn is None else f"turn {turn}"
        plan = self._new_node("restore", f"Restore {shown} from {of}", source, address)
        self._fill_paths(plan, segments)
        return self._add_notes(plan, [])

    def discard(self, paths: Iterable[bytes]) -> Plan:
        """Plan to throw away what changed on disk since the cursor's node, at some paths or everywhere."""
        self._refuse_elsewhere()
        graph, chosen = self._graph, [path.rstrip(b"/") for path in paths]
        plan = self._plan("discard", graph.cursor, graph.branch, [os.fsdecode(path) for path in chosen])
        plan.exact = True
        plan.source, steps, unknown = exact_steps(self._session, graph, graph.cursor, [])

        def named(path: bytes) -> bool:
            return not chosen or any(not top or path == top or path.startswith(top + b"/") for top in chosen)

        plan.notes += [UNSEEN.format(os.fsdecode(path)) for path in sorted(unknown) if named(path)]
        self._fill_paths(plan, fold(step for step in steps if named(step[0])))
        return plan

    # Operations.

    def ops_undo(self, number: int | None) -> Plan:
        """Plan to undo an operation, all later ones, and the turns recorded after them."""
        graph = self._graph
        back = Operations(self._store).to_undo(self._session.name, number)
        plan = self._plan(UNDO, graph.cursor, graph.branch, [str(back[-1].number)] if back else [])
        plan.undoes = [operation.number for operation in back]
        steps: list[PathStep] = []
        for operation in back:
            if operation.from_ is None or operation.to is None:
                continue
            left, entered = graph.path(plan.target, bytes.fromhex(operation.to["commit"]))
            steps += self._steps(*([oid for oid in way if graph.node(oid).turn is not None] for way in (left, entered)))
            steps += [(path, new, old) for path, old, new in operation.files]
            plan.target, plan.branch = bytes.fromhex(operation.from_["commit"]), operation.from_["branch"]
        if any(operation.refs for operation in back):
            from snapstore.timeline.moves.branches import Branches

            branches = Branches(self._session)
            plan.ref_moves, plan.state_files, plan.branch = branches.undo_operations(*back, target=plan.target)
        elif graph.tip_of(plan.branch) is None:
            plan.branch = graph.branch_of(plan.target) or graph.branch
        left, entered = graph.path(graph.cursor, plan.target)
        plan.undone = [oid for oid in left if graph.node(oid).turn is not None]
        plan.redone = [oid for oid in entered if graph.node(oid).turn is not None]
        plan.turn = graph.turn_of(plan.target)
        self._fill_paths(plan, fold(steps))
        return self._add_notes(plan, plan.undone)

    # Parts of planning.

    def _numbered_before(self, count: int) -> list[GraphNode]:
        """Return the last `count` numbered nodes up to the cursor, or all there are, newest first."""
        found: list[GraphNode] = []
        for node in self._graph.upwards(self._seen.cursor):
            if node.turn is not None:
                found.append(node)
                if len(found) == count:
                    break
        return found

    def _in_time(self, kind: str, node: GraphNode | None, count: int | None, seconds: float | None) -> Plan:
        graph = self._graph
        arguments = [f"{seconds:g}s" if seconds is not None else str(count or 1)]
        if node is None:
            return self._travel(kind, graph.cursor, graph.branch, arguments)
        return self._travel(kind, node.oid, graph.branch_of(node.oid) or graph.branch, arguments)

    def _travel(self, kind: str, target: bytes, branch: str, arguments: list[str], *, extend: bool = False) -> Plan:
        """Plan the way from the cursor to another node.

        With `extend`, the target is the last of the edits that directly follow it on its branch. They do not belong to
        a turn, so undoing later turns must not undo them.
        """
        graph, options = self._graph, self._options
        if not (kind in ("goto", "switch") and options.exact and options.scope == BOTH):
            self._refuse_elsewhere()
        if extend and not options.exact:
            target = self._past_edits(target, branch)
        left, entered = graph.path(graph.cursor, target)
        if len(left) + len(entered) >= MANY:
            graph.open()
        plan = self._plan(kind, target, branch, arguments)
        plan.undone = [oid for oid in left if graph.node(oid).turn is not None]
        plan.redone = [oid for oid in entered if graph.node(oid).turn is not None]
        if options.scope == FILES:
            plan.target, plan.branch, plan.turn = graph.cursor, graph.branch, plan.turn_before
        if options.exact:
            plan.exact = True
            plan.source, steps, unknown = exact_steps(self._session, graph, target, [*left, *entered])
            # Only the turns' changes are known of these files, so at least those are undone.
            known = [step for step in self._steps(plan.undone, plan.redone) if step[0] in unknown]
            unknown -= {path for path, _, _ in known}
            plan.notes += [UNSEEN.format(os.fsdecode(path)) for path in sorted(unknown)]
            self._fill_paths(plan, fold([*steps, *known]))
        elif options.scope != CONVERSATION:
            self._fill_paths(plan, self._along(plan, target, across=bool(left and entered)))
        elif target != graph.cursor:
            plan.notes.append("Files were left as they are: they may no longer match the conversation.")
        leave_line(plan, self._graph, self._seen)
        return self._add_notes(plan, plan.turns_undone)

    def _along(self, plan: Plan, target: bytes, *, across: bool) -> dict[bytes, list[Segment]]:
        """Return what moving to a node does to the files.

        The way back to another line reverses exactly what the moves that left it changed (M-17). Otherwise a file that
        the turns touch ends as that line recorded it, edits included: its turns alone may not have made the file.
        """
        segments = fold(self._steps(plan.undone, plan.redone))
        known = across and self._options.scope == BOTH
        if known and (back := Operations(self._store).way_back(plan.session, plan.start, target)) is not None:
            return fold(back)
        tree = self._tree(target)
        return ending_in(segments, lambda path: self._trees.file(tree, path)) if across else segments

    def _past_edits(self, target: bytes, branch: str) -> bytes:
        """Return the last of the edits that directly follow a node on a branch."""
        tip = self._graph.tip_of(branch) or self._graph.cursor
        after: list[GraphNode] = []
        for node in self._graph.upwards(tip):
            if node.oid == target:
                break
            after.append(node)
        else:
            return target  # not on that branch
        for node in reversed(after):
            if node.kind != EDITS:
                break
            target = node.oid
        return target

    def _plan(self, kind: str, target: bytes, branch: str, arguments: list[str]) -> Plan:
        graph = self._graph
        plan = Plan(
            kind=kind,
            session=self._session.name,
            start=graph.cursor,
            start_branch=graph.branch,
            cursor_value=graph.cursor_value,
            target=target,
            branch=branch,
            policy=self._options.policy.for_move(kind, auto_merge=self._store.header.auto_merge),
            scope=self._options.scope,
            arguments=arguments,
        )
        plan.speaks_for = self._session.speaks_for
        plan.turn_before, plan.turn = graph.turn_of(graph.cursor), graph.turn_of(target)
        return plan

    def _refuse_elsewhere(self) -> None:
        """Refuse another machine's session that was not checked out here."""
        graph = self._graph
        if graph.is_elsewhere:
            owner = graph.owner_of(graph.branch) or {"name": "another machine"}
            raise Usage(
                f"session {graph.session} belongs to {owner['name']} and is not checked out here",
                f"`snapstore goto --exact TURN --session {graph.session}` takes you there (what is on disk is saved "
                f"first); `snapstore apply {graph.session}/{graph.branch}:N` applies a single turn here.",
                session=graph.session,
            )

    def _new_node(self, kind: str, subject: str, of: bytes, address: str) -> Plan:
        self._refuse_elsewhere()
        refuse_elsewhere(self._session, f"a {kind}")
        plan = self._plan(kind, self._graph.cursor, self._graph.branch, [address])
        plan.new_node = NewNode(kind, subject, of)
        plan.turn = plan.turn_before + 1
        return plan

    def _fill_paths(self, plan: Plan, segments: dict[bytes, list[Segment]]) -> None:
        segments = self._without_never(plan, segments)
        plan.paths = [PathMove(path, parts) for path, parts in sorted(segments.items())]
        wanted = [move for move in plan.paths if move.wanted is not None]
        if wanted:
            replies_of = self._graph.turns.replies(self._describing(plan)).items()
            plan.modes = private_modes(self._shadow, [oid for oid, replies in replies_of if replies == ODD])
        ConflictResolver(self._session, self._graph, plan).run()
        # An existing file keeps its permission bits. Earlier operations are worth reading only for the other files.
        gone = [move.path for move in wanted if not isinstance(move.found, tuple) or move.found[0] == LINK]
        if gone:
            plan.modes |= Operations(self._store).modes_of(gone)
        if plan.new_node is not None and not plan.changing and not plan.conflicts:
            plan.new_node = None  # nothing to record
            plan.turn = plan.turn_before

    def _without_never(self, plan: Plan, segments: dict[bytes, list[Segment]]) -> dict[bytes, list[Segment]]:
        """Drop paths that are never captured: their content could not be restored."""
        policy = self._store.policy
        if not policy.excludes:
            return segments
        left = {path: None for path in sorted(segments) if policy.excluded(path)}
        plan.notes += [f"{os.fsdecode(path)} stays as it is: it is never captured." for path in left]
        return {path: parts for path, parts in segments.items() if path not in left}

    def _describing(self, plan: Plan) -> list[bytes]:
        """Return the nodes whose records may hold permission bits of restored files."""
        graph, target = self._graph, plan.target
        if plan.new_node is not None:
            target = plan.new_node.of
            if plan.new_node.kind != "restore" or self._shadow.commit(target).trailers.get("Kind") == SAFETY_KIND:
                return [target]
        try:
            left, entered = graph.path(graph.cursor, target)
        except Corrupt:  # a node of another session
            return [target]
        return [*left, *entered]

    def _steps(self, left: Iterable[bytes], entered: Iterable[bytes]) -> Iterator[PathStep]:
        """Yield each turn's changes, reversed for turns that are left."""
        for oid in left:
            for path, old, new in self._graph.turns.touched(oid):
                yield path, new, old
        for oid in entered:
            yield from self._graph.turns.touched(oid)

    def _add_notes(self, plan: Plan, turns: list[bytes]) -> Plan:
        """Add what is in the turns' records: messages, prompt, what cannot be undone."""
        changing, mentioned = set(plan.of(WRITE, REMOVE)), set[bytes]()
        first: bytes | None = None
        for oid, replies in self._graph.turns.replies(turns).items():
            prompted = bool(plan.turns_undone) and self._graph.node(oid).kind == "turn"
            first = oid if prompted else first
            if replies != ODD:
                plan.messages_removed += 1 + replies if prompted else 0
                continue
            node = read_node(self._shadow, oid, files=False)
            name = f"turn {node.turn}"
            if prompted:
                plan.messages_removed += 1 + len(node.record.get("replies", []))
            if moved := git_parts(node):
                plan.notes.append(f"Your own git repository changed in {name} ({moved}); that is not undone.")
            plan.notes += caveats_of(node, changing, mentioned)
        if first is not None:
            plan.prompt = read_node(self._shadow, first, files=False).prompt
        if plan.scope == FILES:
            plan.messages_removed, plan.prompt = 0, None
        self._graph.turns.keep()
        return plan

    def _last_turn(self) -> GraphNode:
        for node in self._numbered_before(1):
            return node
        raise Unknown("there is no turn before this", "`snapstore log` shows the turns.")

    def _turn(self, address: str) -> GraphNode:
        node = self._graph.node(resolve(self._graph, address))
        if node.turn is None:
            shown = f"{address} is" if len(address) < 40 else "the start is" if node.kind == "baseline" else "edits are"
            raise Unknown(f"{shown} no turn", "`snapstore log` shows the numbers of turns.", address=address)
        return node

    def _own(self, address: str) -> tuple[bytes, str | None]:
        """Return a node of this session, and the branch that the address names."""
        oid, branch = locate(self._seen, address)
        trailers = self._shadow.commit(oid).trailers
        # Another machine's session may have another name here than in its commits.
        own = trailers.get("Session") == self._session.name or oid in self._graph.nodes
        if not own or trailers.get("Kind") == SAFETY_KIND:
            raise Unknown(
                f"{address} is not a node of session {self._session.name}",
                f"`snapstore apply {address}` applies that turn here, `snapstore restore {address} -- PATH` its files.",
                address=address,
            )
        return oid, branch

    def _tree(self, oid: bytes) -> bytes:
        return self._graph.node(oid).tree


def _check_count(count: int | None) -> None:
    if count is not None and (not isinstance(count, int) or count < 1):
        raise Usage(f"{count!r} is not a number of turns", "Give a whole number of 1 or more.")
