"""Carry out a plan: check, save, journal, write, move refs, mark done.

Every change of the user's files starts here.
"""

from __future__ import annotations

import os
import time

from snapstore.base.text import files_text, listed, timestamp, turns_text
from snapstore.errors import Busy, Conflict, SnapstoreError, Unknown
from snapstore.git.ref_names import archive_ref, branch_ref, cursor_ref
from snapstore.git.refs import RefValue
from snapstore.store.background import start_push
from snapstore.store.conversations import Conversations, ConversationState
from snapstore.store.journal import RefMove, spell_entry
from snapstore.store.state import OpenTurn, SessionState, encode
from snapstore.timeline.capture.disk_snapshot import Capture
from snapstore.timeline.history.commit_cache import MANY
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.nodes import highest_seq
from snapstore.timeline.history.operations import Operation, Operations
from snapstore.timeline.moves.folder_state import existing_empty_folders, folders_to_keep
from snapstore.timeline.moves.moved import Moved
from snapstore.timeline.moves.plan import CONVERSATION, FILES, KEPT, REMOVE, SKIPPED, WRITE, PathMove, Plan, State
from snapstore.timeline.moves.safety import Saved, save, stale
from snapstore.timeline.record.conversation import stand
from snapstore.timeline.record.line_writer import LineWriter
from snapstore.timeline.record.session import RecordingSession, is_held
from snapstore.worktree.scan.compare import ORDINARY, is_file, row_of
from snapstore.worktree.scan.stat_cache import FileStat
from snapstore.worktree.write.writer import Writer


class Mover:
    """Carries out one move under the store's lock."""

    def __init__(self, session: RecordingSession, plan: Plan) -> None:
        self._session = session
        self._store = session.store
        self._shadow = session.store.shadow
        self._plan = plan
        self._number = 0
        self._moved = Moved(session, plan)
        self._files: dict[str, bytes | None] = {}
        self._saved = Saved()
        self._standing: list[str] = []
        self._modes: dict[bytes, int] = {}  # permission bits of folders that files are removed from

    def run(self) -> Moved:
        plan = self._plan
        with self._store.changing():
            self._refuse()
            if plan.nothing_to_do:
                self._predict_fork()
                return self._moved
            self._number = Operations(self._store).next_number()
            self._saved = save(self._store, plan, self._number, self.what)
            try:
                tag = f"{self._number}-{os.urandom(3).hex()}"
                restore = self._store.writer(tag, self._folders_to_keep(), plan.known)
                restore.folder_modes.update(plan.folder_modes())
                self._modes = restore.private_above(plan.of(REMOVE))
                for move in plan.paths:
                    if move.action in (KEPT, SKIPPED) and not self._as_found(restore, move):
                        raise stale(f"{os.fsdecode(move.path)} changed since the plan was made")
                restore.check(plan.file_moves())
                stats = self._carry_out(restore)
            except BaseException:
                self._discard()
                raise
            self._moved.safety, self._moved.safety_ref = self._saved.commit, self._saved.ref
            try:
                self._shadow.objects.release(self._saved.pack)
                self._update_cache(stats)
            except Exception as error:  # a step that only saves space or time must not fail the move
                self._store.log(f"after a move: {type(error).__name__}: {error}")
        if plan.new_node is not None:
            start_push(self._store)
        return self._moved

    def _folders_to_keep(self) -> list[bytes]:
        last = None
        if self._plan.of(REMOVE):
            log = Operations(self._store).newest_first()
            last = next((operation for operation in log if operation.session == self._plan.session), None)
        graph = Graph(self._store, self._plan.session)
        if len(self._plan.undone) + len(self._plan.redone) >= MANY:
            graph.open()
        return folders_to_keep(graph, self._plan, last)

    def _as_found(self, restore: Writer, move: PathMove) -> bool:
        found = restore.observe(move.path)
        return found == move.found or (move.found is None and isinstance(found, str))

    def _discard(self) -> None:
        """Discard the pack saved for a failed move, unless a ref or the journal needs it."""
        refs, plan = self._shadow.refs, self._plan
        try:
            needed = self._store.journal.pending() or refs.read(cursor_ref(plan.session)) != plan.start
            needed = needed or any(refs.read(name) is not None for name, _, _ in self._saved.refs)
        except (OSError, SnapstoreError):
            needed = True
        if not needed:
            self._shadow.objects.give_up(self._saved.pack, retried=True)

    def preview(self) -> Moved:
        """Return what the move would do, after checking every path and object.

        Conflicts are part of the result.
        """
        plan = self._plan
        self._refuse_to_start()
        contains = self._shadow.objects.contains
        saved = {  # the move itself would store these first
            move.path
            for move in plan.changing
            if move.settled or (isinstance(move.found, tuple) and not contains(move.found[1], fresh=False))
        }
        restore = self._store.writer("preview", self._folders_to_keep())
        restore.check(plan.file_moves(), unsaved=saved)
        self._predict_fork()
        return self._moved

    def _refuse(self) -> None:
        self._refuse_to_start()
        if self._plan.conflicts:
            raise conflict(self._plan)

    def _refuse_to_start(self) -> None:
        """Refuse the move as a whole: a turn is open, or the plan is stale."""
        store, plan = self._store, self._plan
        turn = store.open_turn(plan.session)
        if turn is not None:
            raise Busy(f"a turn is open in session {plan.session}", _busy_hint(turn), session=plan.session)
        graph = Graph(store, plan.session)
        # A symbolic cursor keeps its value when its branch advances, so the node is compared too.
        if graph.cursor_value != plan.cursor_value or graph.cursor != plan.start:
            raise stale("the session has moved since the plan was made")
        if graph.branch != plan.start_branch or (graph.tip_of(plan.branch) is None and not plan.ref_moves):
            raise stale("the session's branches have changed since the plan was made")
        # Since the plan was made, a gc may have removed a turn that only the operation log still named.
        commits = [plan.target, *(value for _, _, value in plan.ref_moves if isinstance(value, bytes))]
        if not all(self._shadow.objects.contains(oid) for oid in commits):
            raise Unknown(
                "a turn that this move needs was pruned after the plan was made",
                "`snapstore goto` goes to any turn that is left; `snapstore ops` lists what happened.",
            )

    # Journal, write, refs, done.

    def _carry_out(self, restore: Writer) -> dict[bytes, os.stat_result | None]:
        plan, store = self._plan, self._store
        refs: list[RefMove] = [*plan.ref_moves, *self._saved.refs]
        self._tell_others()
        self._standing = existing_empty_folders(self._shadow, plan, restore, self._shadow.commit(plan.start).tree)
        if plan.new_node is not None:
            capture = Capture(store)
            try:
                return self._with_node(capture, restore, refs)
            except BaseException:
                capture.writer.abandon()
                raise
        if plan.ref_moves:
            self._files.update(plan.state_files)
        elif plan.scope != FILES:
            refs += self._cursor_moves()
        if plan.scope != FILES:
            self._move_conversation()
        else:
            self._predict_fork()
        self._log()
        moves = plan.file_moves()
        return store.journal.carry_out(refs, self._files, what=self.what, moves=moves, writer=restore)

    def _with_node(self, capture: Capture, restore: Writer, refs: list[RefMove]) -> dict[bytes, os.stat_result | None]:
        """Carry out a move that adds a node, after a node for edits in the same files."""
        plan, store, trees = self._plan, self._store, self._shadow.trees
        assert plan.new_node is not None
        writer = capture.writer
        recorder = LineWriter(store, plan.session, capture)
        assert recorder.tree is not None
        at_hand: dict[bytes, State] = {
            move.path: move.found for move in plan.paths if move.action != SKIPPED and not isinstance(move.found, str)
        }
        before = trees.rewrite(writer, recorder.tree, at_hand)
        changes = list(trees.diff(recorder.tree, before))
        if changes:
            names = "1 file" if len(changes) == 1 else f"{len(changes)} files"
            recorder.add("edits", before, f"Edits: {names}", author=store.user, changes=changes)
        after = trees.rewrite(writer, before, {move.path: move.new for move in plan.file_moves()})
        when = timestamp(store.clock())
        self._moved.target = recorder.add(
            plan.new_node.kind,
            after,
            plan.new_node.subject,
            author=store.user,
            changes=list(trees.diff(before, after)),
            turn=recorder.next_turn(),
            record={
                "prompt": plan.new_node.subject,
                "of": plan.new_node.of.hex(),
                "empty_folders": self._standing,
                "started_at": when,
                "ended_at": when,
                "status": "done",
            },
        )
        plan.branch = recorder.branch().rpartition("/")[2]
        self._log()
        return recorder.commit(self.what, self._files, refs=refs, moves=plan.file_moves(), restore=restore)

    def _cursor_moves(self) -> list[RefMove]:
        """Return the ref moves that put the cursor on the target.

        The cursor refers to the branch if the target is its tip, otherwise to the node itself.
        """
        plan, refs = self._plan, self._shadow.refs
        branch = branch_ref(plan.session, plan.branch)
        tip = refs.read(branch)
        moves: list[RefMove] = []
        foreign = self._store.foreign().refs
        archived = archive_ref(plan.session, plan.branch)
        if tip is None:
            tip = refs.read(archived)
            # The current branch cannot be archived: list it again.
            if tip is not None and archived not in foreign:
                moves += [(branch, None, tip), (archived, tip, None)]
        # A pull advances another machine's branch but not the files here, so the cursor refers to the node.
        on_tip = tip == plan.target and branch not in foreign and archived not in foreign
        value: RefValue = branch if on_tip else plan.target
        cursor = cursor_ref(plan.session)
        if value != plan.cursor_value:
            moves.append((cursor, plan.cursor_value, value))
        head = refs.value("HEAD")
        if tip is not None and head != branch and archived not in foreign:
            moves.append(("HEAD", head, branch))
        state = self._store.documents.session(plan.session)
        if state is None or state.branch != plan.branch:
            floor = highest_seq(self._store, plan.session)
            state = SessionState(session=plan.session, branch=plan.branch, floor=floor)
            self._files[f"sessions/{plan.session}.json"] = encode(state)
        return moves

    def _move_conversation(self) -> None:
        state = self._stood()
        if state is not None:
            self._files |= Conversations(self._store).state_file(state)
            self._moved.pending_fork = state.pending_fork

    def _predict_fork(self) -> None:
        """Set what the result says of the conversation, without writing the conversation's state.

        Previews and moves of files only need this. An unreadable conversation does not stop a move.
        """
        try:
            moves = self._plan.scope != FILES and not self._plan.nothing_to_do
            state = self._stood() if moves else Conversations(self._store).state(self._plan.session)
        except SnapstoreError:
            return
        self._moved.pending_fork = state is not None and state.pending_fork

    def _stood(self) -> ConversationState | None:
        """Return the conversation's state as the move leaves it, and note which one that is."""
        plan = self._plan
        state = Conversations(self._store).state(plan.session)
        if state is not None:
            before = state.id
            stand(state, Graph(self._store, plan.session), plan.target, plan.branch, plan.speaks_for)
            self._moved.taken_up = state.id if state.id != before else ""
        return state

    def _log(self) -> None:
        plan = self._plan
        removed = {move.path for move in plan.file_moves() if not is_file(move.new)}
        operation = Operation(
            number=self._number,
            session=plan.session,
            kind=plan.kind,
            at=timestamp(self._store.clock()),
            what=self.what,
            from_={"commit": plan.start.hex(), "branch": plan.start_branch, "turn": plan.turn_before},
            to={"commit": self._moved.target.hex(), "branch": plan.branch, "turn": plan.turn},
            arguments=plan.arguments,
            # `from` and `to` tell how the cursor moved; `refs` holds branches and checkpoints only.
            refs=[move for move in plan.ref_moves if move[0] not in (cursor_ref(plan.session), "HEAD")],
            files=[(move.path, move.old, move.new) for move in plan.file_moves()],
            safety=self._saved.ref,
            undoes=plan.undoes,
            standing=self._standing,
            scope="" if plan.new_node is not None or plan.exact else plan.scope,
            modes={path: bits for path, bits in plan.modes.items() if path in removed and bits not in ORDINARY}
            | self._modes,
        )
        name, data = operation.document()
        self._files[name] = data
        self._moved.operation = self._number

    def _tell_others(self) -> None:
        """Tell open turns of other sessions that this move's writes are not theirs."""
        plan = self._plan
        for other in self._store.open_turns(besides=plan.session):
            written = [[os.fsdecode(move.path), spell_entry(move.new)] for move in plan.file_moves()]
            other.captured_by_others.append(written)
            self._files[f"open/{other.session}.json"] = encode(other)

    @property
    def what(self) -> str:
        """Return a short description of the move."""
        plan = self._plan
        if plan.new_node is not None:
            return plan.new_node.subject[:1].lower() + plan.new_node.subject[1:]
        part = {FILES: " (files only)", CONVERSATION: " (conversation only)"}.get(plan.scope, "")
        count = len(plan.turns_undone) if plan.kind == "undo" else len(plan.redone)
        if plan.kind in ("undo", "redo"):
            return f"{plan.kind} of {turns_text(count)}{part}"
        # A full commit id means that the user picked a node instead of typing.
        if plan.kind == "goto" and len(plan.arguments[0]) == 40:
            return f"goto {f'turn {plan.turn}' if plan.turn else 'the start'} of {plan.branch}{part}"
        return " ".join([plan.kind, *plan.arguments]) + part

    def _update_cache(self, stats: dict[bytes, os.stat_result | None]) -> None:
        """Update the stat cache if the disk's tree is known; otherwise the next scan does."""
        plan, cache = self._plan, self._store.cache
        # A file that was in the wanted state already keeps a row of an older state, which would contradict the tree.
        plain = all(move.action in (WRITE, REMOVE) and not move.settled for move in plan.paths)
        if not plain or plan.new_node is not None or plan.scope != "both" or not stats:
            return
        trees = self._shadow.trees
        start, target = (self._shadow.commit(oid).tree for oid in (plan.start, plan.target))
        changed = {path: new for path, _, new in trees.diff(start, target)}
        # Where edits were carried along, the disk's tree differs from the target's.
        if changed != {move.path: move.result for move in plan.paths} or cache.load_tree() != start:
            return
        now = time.time_ns()
        rows: dict[bytes, FileStat | None] = {}
        for move in plan.file_moves():
            stat = stats.get(move.path)
            rows[move.path] = row_of((move.new, stat), now) if move.new is not None and stat is not None else None
        cache.change(target, rows, {}, None)


def conflict(plan: Plan) -> Conflict:
    found = plan.conflicts
    names = listed([os.fsdecode(move.path) for move in found], 3)
    return Conflict(
        f"{files_text(len(found))} changed since: {names}",
        "Nothing was written. Decide for each file with --ours PATH (keep it) and --theirs PATH (replace it; it is "
        "saved first), or for all with --merge=markers, --skip or --force.",
        conflicts=found,
    )


def _busy_hint(turn: OpenTurn) -> str:
    if is_held(turn) and turn.owner:
        return f"Process {turn.owner[0]} has it open: wait for it to end."
    if turn.origin:
        return "Let the agent finish, or add --cancel to close it first, as interrupted."
    return f"End it with `snapstore turn end --session {turn.session}`, or add --cancel to close it first."
