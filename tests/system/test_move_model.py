"""A model of moving: two sessions take turns, a person edits in between, and everything there is moves back and forth.

The model is plain Python: what every node's tree was when it was taken (read with git), where each session stands, and
what is on disk. From these alone it foretells what a move must do, path by path: a missing file comes back, an edit
merges or conflicts, and the way back to a line brings what was there. Always: a move does exactly that, or refuses and
changes not one byte and no ref; files it does not name keep bytes, time and inode; whatever it overwrites or removes
is held by a ref; every turn ever taken is still there to the byte, but what was archived or deleted, then pruned, then
given up by a gc; a kill leaves the old or the new; numbers are never given twice; branches only advance.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers import (
    Files,
    all_refs,
    assert_cache_adds_up,
    assert_whole,
    difference,
    git,
    in_commit,
    killed_at,
    on_disk,
    remove,
)
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from snapstore import Busy, Conflict, Session, SnapstoreError, Store, Unknown, Unsafe
from snapstore.git import refs as git_refs
from snapstore.timeline.maintenance import auto, gc
from snapstore.timeline.moves.branches import Branches
from snapstore.timeline.moves.moved import Moved
from snapstore.timeline.moves.plan import (
    BOTH,
    CONVERSATION,
    FILES,
    FORCE,
    KEPT,
    MARKERS,
    MERGE,
    REFUSE,
    SKIP,
    PathMove,
    Plan,
    Policy,
)

Entry = tuple[bytes, bytes] | None
Steps = list[tuple[bytes, Entry, Entry]]

SESSIONS = ("one", "two")
WHO = st.sampled_from(SESSIONS)
ALL = {b"a", b"b", b"c", b"d/c", b"d/e/f", b"d", b"x.ign", b"d/y.ign", b"build/out", b".gitignore"}
PATHS = st.sampled_from(sorted(ALL - {b".gitignore"}))
KINDS = st.sampled_from(
    ["file", "same bytes", "line", "line", "line", "program", "mode", "link", "dangling", "nothing", "nothing", "moved"]
)
EDIT = st.tuples(PATHS, KINDS, PATHS)
EDITS = st.lists(EDIT, min_size=0, max_size=4)
RULES = st.sampled_from([b"", b"*.ign\n", b"build/\n", b"*.ign\nbuild/\n"])
POLICIES = st.sampled_from([None, None, REFUSE, REFUSE, SKIP, FORCE, FORCE, MERGE, MARKERS])
CACHES = ["stat", "stat.log", "sessions/one.json", "graph-one"]
TRAVELS = ("undo", "redo", "goto", "switch", "earlier", "later")
DAY = 86400
PRUNED, CURSORS, NOTES = "refs/snapstore/pruned/", "refs/snapstore/cursor/", "refs/notes/turns"
NAMES = st.sampled_from(["try", "other", "keep"])


@pytest.fixture(autouse=True)
def locks_of_the_dead_are_known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits the seconds after which a ref's lock is taken for a dead process's."""
    monkeypatch.setattr(git_refs, "STALE_AFTER", 0.02)


@dataclass
class Node:
    oid: str
    parent: str | None
    session: str
    kind: str
    seq: int
    turn: int | None
    files: Files = field(repr=False)


@dataclass
class Passage:
    """One move of a session, and the files before and after it."""

    start: str
    end: str
    whole: bool  # a move along the history, of files and conversation
    before: Files = field(repr=False)
    after: Files = field(repr=False)


class Moving(RuleBasedStateMachine):
    @initialize(
        rules=RULES,
        edits=st.lists(EDIT, min_size=9, max_size=9),
        let_go=st.sampled_from([None, "archive", "delete"]),
        grace=st.sampled_from([0, None]),
    )
    def make(self, rules: bytes, edits: list[tuple[bytes, str, bytes]], let_go: str | None, grace: int | None) -> None:
        """A little tree to begin with: two sessions, a fork, edits in between, perhaps a line that was given up."""
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="snapstore-moves-", dir=base)).resolve()
        self.root = self.folder / "project"
        self.root.mkdir()
        self.number = 0
        (self.root / ".gitignore").write_bytes(rules)
        self.now = 1_700_000_000.0
        self.hidden: set[bytes] = set()  # paths that some rule ever hid: nobody promises to know them
        self.nodes: dict[str, Node] = {}
        self.gone: set[tuple[str, int]] = set()  # numbers of turns that were pruned for good
        self.open: set[str] = set()
        self.heads: dict[str, str] = {}
        # The last move, while nobody has done anything since: what taking it back must bring.
        self.last: tuple[str, Files, str] | None = None
        self.passages: dict[str, list[Passage]] = {name: [] for name in SESSIONS}
        self._edit(*edits[0])
        self._reopen()
        self._learn()
        for session, edit in zip(("one", "one", "two", "one", "two"), edits[1:], strict=False):
            self._take(session, [edit], False)
        self._edit(*edits[6])
        self._take("one", edits[7:8], True)
        plan = self._session("one").plan_undo(2)
        if not plan.conflicts and self._move("one", plan) is not None:
            self._take("one", edits[8:], False)
            if let_go is not None:
                left = sorted(name for name, oid in self._branches("one").items() if oid != self._cursor("one"))
                self.let_go_of_a_branch("one", let_go, sorted(self._branches("one")).index(left[0]), 0, grace)

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        try:
            self._at_the_end()
        finally:
            self._close()
            shutil.rmtree(self.folder)

    def _at_the_end(self) -> None:
        """Every turn ever taken is there to the byte, and the store is whole."""
        for session in sorted(self.open):
            self._session(session).close_open_turn()
        self._learn()
        for node in self.nodes.values():
            wrong = difference(node.files, in_commit(self.store, node.oid))
            assert not wrong, (node, wrong)
        for session in filter(self._known, SESSIONS):
            for pick in range(len(self._branches(session))):
                self.change_branches(session, "archive" if pick % 2 else "delete", pick, "")
        self._prune(0)
        self.collect_garbage(0, None)
        for node in self.nodes.values():
            wrong = difference(node.files, in_commit(self.store, node.oid))
            assert not wrong, (node, wrong)
        assert_whole(self.store)

    # What people and agents do to files.

    def _edit(self, path: bytes, kind: str, other: bytes) -> None:
        self.number += 1
        top = os.fsencode(self.root)
        full = os.path.join(top, path)
        if kind == "mode":
            if os.path.isfile(full) and not os.path.islink(full):
                os.chmod(full, os.lstat(full).st_mode ^ 0o111)
            return
        if kind == "moved":
            if os.path.lexists(full) and not (other + b"/").startswith(path + b"/"):
                self._clear(other)
                if os.path.lexists(full):
                    os.rename(full, os.path.join(top, other))
            return
        data = None
        if kind == "line" and os.path.isfile(full) and not os.path.islink(full):
            with open(full, "rb") as file:
                lines = file.read().splitlines(keepends=True) or [b""]
            lines[self.number % len(lines)] = b"edit %d\n" % self.number
            data = b"".join(lines)
        self._clear(path)
        if kind == "link":
            os.symlink(b"a" if self.number % 2 else b"d", full)
        elif kind == "dangling":
            os.symlink(b"nowhere", full)
        elif kind != "nothing":
            lines = [b"%d\n" % number for number in range(12)]
            if kind != "same bytes":
                lines[self.number % 12] = b"new %d\n" % self.number
            with open(full, "wb") as file:
                file.write(data or b"".join(lines))
            os.chmod(full, 0o755 if kind == "program" else 0o644)

    def _clear(self, path: bytes) -> None:
        """Room for a file at a path: nothing there, folders above."""
        full = os.path.join(os.fsencode(self.root), path)
        for count in range(1, path.count(b"/") + 1):
            above = os.path.join(os.fsencode(self.root), *path.split(b"/")[:count])
            if os.path.islink(above) or os.path.isfile(above):
                remove(above)
        remove(full)
        os.makedirs(os.path.dirname(full), exist_ok=True)

    @rule(edit=EDIT)
    def edit_by_hand(self, edit: tuple[bytes, str, bytes]) -> None:
        self._edit(*edit)
        self.last = None

    @rule(rules=RULES, folder=st.none() | PATHS)
    def change_the_rules_or_make_a_folder(self, rules: bytes, folder: bytes | None) -> None:
        if folder is None:
            self._clear(b".gitignore")
            (self.root / ".gitignore").write_bytes(rules)
        else:
            full = os.path.join(os.fsencode(self.root), folder)
            if not os.path.lexists(full) and os.path.isdir(os.path.dirname(full)):
                os.mkdir(full)
        self.last = None

    # Turns.

    @rule(session=WHO, edits=EDITS, named=st.booleans())
    def take_a_turn(self, session: str, edits: list[tuple[bytes, str, bytes]], named: bool) -> None:
        self._take(session, edits, named)

    @rule(session=WHO, first=EDIT, second=EDIT, third=EDIT)
    def take_three_turns(self, session: str, first: Any, second: Any, third: Any) -> None:
        for edit in (first, second, third):
            self._take(session, [edit], False)

    def _take(self, session: str, edits: list[tuple[bytes, str, bytes]], named: bool) -> None:
        if session in self.open:
            return
        self._tick()
        here = self.nodes[self._cursor(session)].files if self._known(session) else {}
        tracked = here.keys() & on_disk(self.root).keys()
        turn = self._session(session).begin("a turn")
        for edit in edits:
            if named and edit[1] != "moved":
                self._name(turn, edit[0])
            self._edit(*edit)
        self.last = None
        turn.end(scan=True)
        self._hide()
        self._learn()
        self._assert_is_the_disk(self._cursor(session))
        lost = {
            path for path in tracked & on_disk(self.root).keys() if path not in self.nodes[self._cursor(session)].files
        }
        assert not lost, "what is tracked stays tracked, whatever the rules say"

    def _name(self, turn: Any, path: bytes) -> None:
        full = os.path.join(os.fsencode(self.root), path)
        if os.path.realpath(os.path.dirname(full)) == os.path.dirname(full):
            turn.touch(full)

    @rule(session=WHO, cancel=st.booleans())
    def leave_a_turn_open_or_close_it(self, session: str, cancel: bool) -> None:
        self.last = None
        if not self.open:
            self._session(session).begin("a turn that stays open")
            self.open.add(session)
            self._hide()
        for name in sorted(self.open - {session}):
            self.open.remove(name)
            if cancel:
                self._session(name).cancel()
            else:
                self._session(name).end(scan=True)
                self._hide()
                self._assert_is_the_disk(self._cursor(name))
        self._learn()

    # Moves.

    @rule(session=WHO, count=st.integers(1, 4), policy=POLICIES, kill=st.none() | st.integers(1, 60))
    def undo(self, session: str, count: int, policy: str | None, kill: int | None) -> None:
        if not self._known(session):
            return
        turns = [node for node in self._upwards(self._cursor(session)) if node.turn is not None]
        plan = self._session(session).plan_undo(count, policy=Policy(policy))
        assert plan.policy.default == (policy or MERGE)
        assert plan.target.hex() == (turns[:count][-1].parent if turns else self._cursor(session))
        assert [oid.hex() for oid in plan.undone] == [node.oid for node in turns[:count]]
        assert _notes_fewer(plan) == (0 < len(turns) < count)
        self._move(session, plan, kill=kill)

    @rule(session=WHO, count=st.none() | st.integers(1, 3), policy=POLICIES, kill=st.none() | st.integers(1, 60))
    def redo(self, session: str, count: int | None, policy: str | None, kill: int | None) -> None:
        if not self._known(session):
            return
        plan = self._session(session).plan_redo(count, policy=Policy(policy))
        assert not plan.undone
        if plan.redone:
            tip = self._branches(session)[plan.branch]
            beyond = self._upwards(tip)[: -len(self._upwards(plan.target.hex()))]
            left = [node for node in beyond if node.turn is not None]
            assert not left or len(plan.redone) == count
            assert _notes_fewer(plan) == (len(plan.redone) < (count or 0))
        self._move(session, plan, kill=kill)

    @rule(session=WHO, count=st.integers(1, 4))
    def undo_and_redo_are_each_others_inverse(self, session: str, count: int) -> None:
        if not self._known(session) or session in self.open:
            return
        plan = self._session(session).plan_undo(count, policy=REFUSE)
        if plan.conflicts or not plan.undone:
            return
        disk, turn = on_disk(self.root), self._turn_of(self._cursor(session))
        by_hand = [move for move in plan.paths if move.action == KEPT or move.found != move.expected]
        if self._move(session, plan) is None or by_hand:
            return  # somebody had put a file back or removed it already: redo puts the turn's in again
        assert self._turn_of(self._cursor(session)) == turn - len(plan.undone)
        back = self._session(session).plan_redo(len(plan.undone), policy=REFUSE)
        assert self._move(session, back) is not None, [move.path for move in back.conflicts]
        wrong = difference(disk, on_disk(self.root))
        assert not wrong, wrong
        assert self._turn_of(self._cursor(session)) == turn

    @rule(session=WHO, steps=st.integers(1, 6), policy=POLICIES, back=st.booleans())
    def earlier_or_later(self, session: str, steps: int, policy: str | None, back: bool) -> None:
        if not self._known(session):
            return
        alive = sorted(self._alive(session), key=lambda node: node.seq)
        at = [node.oid for node in alive].index(self._cursor(session))
        want = max(0, at - steps) if back else min(len(alive) - 1, at + steps)
        one = self._session(session)
        plan = (one.plan_earlier if back else one.plan_later)(steps, policy=Policy(policy))
        assert plan.target.hex() == alive[want].oid
        self._move(session, plan)

    @rule(session=WHO, pick=st.integers(0, 10_000), policy=POLICIES, kill=st.none() | st.integers(1, 60))
    def goto(self, session: str, pick: int, policy: str | None, kill: int | None) -> None:
        if not self._known(session):
            return
        alive = self._alive(session)
        node = alive[pick % len(alive)]
        plan = self._session(session).plan_goto(f"#{node.seq}", policy=Policy(policy))
        assert plan.target.hex() == node.oid
        self._move(session, plan, kill=kill)

    @rule(session=WHO, pick=st.integers(0, 10_000), kill=st.none() | st.integers(1, 60))
    def goto_exactly_and_back(self, session: str, pick: int, kill: int | None) -> None:
        """Every turn ever taken really restores, to the byte; and the way back brings what was there."""
        if not self._known(session) or session in self.open:
            return
        alive = self._alive(session)
        node = alive[pick % len(alive)]
        disk, cursor = on_disk(self.root), self._cursor(session)
        self._hide()
        plan = self._session(session).plan_goto(f"#{node.seq}", exact=True)
        moved = self._move(session, plan, exact=True, kill=kill)
        if moved is None:
            return
        now = on_disk(self.root)
        wrong = {
            path: both
            for path, both in difference(node.files, now).items()
            if path in node.files or not _below(path, self.hidden)
        }
        assert not wrong, wrong
        for path in disk.keys() - now.keys():
            assert path not in node.files
        if plan.nothing_to_do:
            return
        back = self._session(session).plan_ops_undo()
        assert self._move(session, back) is not None, [move.path for move in back.conflicts]
        wrong = difference(disk, on_disk(self.root))
        assert not wrong, wrong
        assert self._cursor(session) == cursor

    @rule(session=WHO, pick=st.integers(0, 100), policy=POLICIES)
    def switch(self, session: str, pick: int, policy: str | None) -> None:
        branches = self._branches(session)
        if branches:
            name = sorted(branches)[pick % len(branches)]
            plan = self._session(session).plan_switch(name, policy=Policy(policy))
            assert plan.target.hex() == branches[name]
            self._move(session, plan)

    @rule(session=WHO, pick=st.integers(0, 10_000), policy=POLICIES, scope=st.sampled_from([FILES, CONVERSATION]))
    def goto_in_part(self, session: str, pick: int, policy: str | None, scope: str) -> None:
        if self._known(session):
            alive = self._alive(session)
            node = alive[pick % len(alive)]
            plan = self._session(session).plan_goto(f"#{node.seq}", policy=Policy(policy), scope=scope)
            self._move(session, plan, target=node.oid)

    @rule(
        session=WHO,
        pick=st.integers(0, 10_000),
        policy=POLICIES,
        apply=st.booleans(),
        kill=st.none() | st.integers(1, 80),
    )
    def revert_or_apply(self, session: str, pick: int, policy: str | None, apply: bool, kill: int | None) -> None:
        """One turn of any session."""
        turns = [node for name in SESSIONS for node in self._alive(name) if node.turn is not None]
        if not turns or not self._known(session):
            return
        node = turns[pick % len(turns)]
        one = self._session(session)
        plan = (one.plan_apply if apply else one.plan_revert)(node.oid, policy=Policy(policy))
        self._move(session, plan, kill=kill)

    @rule(session=WHO, pick=st.integers(0, 10_000), path=PATHS, policy=POLICIES)
    def restore(self, session: str, pick: int, path: bytes, policy: str | None) -> None:
        if not self._known(session):
            return
        nodes = [node for name in SESSIONS for node in self._alive(name)]
        node = nodes[pick % len(nodes)]
        plan = self._plan(lambda: self._session(session).plan_restore(node.oid, [path], policy=Policy(policy)))
        here = self.nodes[self._cursor(session)].files
        there = {name for name in here.keys() | node.files.keys() if name == path or name.startswith(path + b"/")}
        if plan is None:
            assert not there
            return
        assert {move.path for move in plan.paths} <= there
        assert plan.policy.default == (policy or REFUSE)
        self._move(session, plan, steps=[(name, here.get(name), node.files.get(name)) for name in sorted(there)])

    @rule(session=WHO, policy=POLICIES, pick=st.none() | st.integers(1, 8))
    def take_an_operation_back(self, session: str, policy: str | None, pick: int | None) -> None:
        if not self._known(session):
            return
        last, before = self.last, self._cursor(session)
        try:
            plan = self._session(session).plan_ops_undo(pick if pick != 1 else None, policy=Policy(policy))
        except (Unknown, Conflict) as error:
            note(repr(error))
            return
        moved = self._move(session, plan)
        if moved is not None and moved.operation and last is not None and last[0] == session and pick in (None, 1):
            wrong = difference(last[1], on_disk(self.root))
            assert not wrong, wrong
            assert self._cursor(session) == last[2] or plan.ref_moves
        assert before in self.nodes

    # Branches and checkpoints.

    @rule(
        session=WHO,
        what=st.sampled_from(["rename", "archive", "unarchive", "delete", "promote", "checkpoint"]),
        pick=st.integers(0, 100),
        name=NAMES,
    )
    def change_branches(self, session: str, what: str, pick: int, name: str) -> None:
        branches = sorted(self._branches(session))
        if not branches:
            return
        target = branches[pick % len(branches)]
        tools = Branches(self._session(session))
        disk, refs, cursor = _exactly(self.root), all_refs(self.store), self._cursor(session)
        try:
            if what == "rename":
                tools.rename(target, name)
            elif what == "checkpoint":
                alive = self._alive(session)
                tools.checkpoint(name, bytes.fromhex(alive[pick % len(alive)].oid), force=True)
            else:
                getattr(tools, what)(target)
        except SnapstoreError as error:
            note(repr(error))
            assert all_refs(self.store) == refs
        assert _exactly(self.root) == disk and self._cursor(session) == cursor
        self.last = None
        self.heads = {}
        self._learn()

    # What else may happen at any time.

    @rule(what=st.sampled_from(["reopen", "gc --quiet --prune=now", "pack-refs --all --prune", "repack -adq", *CACHES]))
    def keep_house(self, what: str) -> None:
        if what in CACHES:
            path = Path(self.store.state, what)
            if not path.exists() or (what.startswith("sessions") and "one" in self.open):
                return
            path.unlink()
            if what.startswith("sessions"):  # which remembers the numbers of turns that are no more
                self.gone = {row for row in self.gone if row[0] != "one"}
            if what.startswith("stat"):  # what was there and when: nobody knows that of anything any more
                self.hidden |= ALL
        elif what != "reopen":
            git(self.store.shadow.git_dir, *what.split())
            return
        self._close()
        self._reopen()

    @rule(
        session=WHO,
        what=st.sampled_from(["archive", "delete"]),
        pick=st.integers(0, 100),
        older=st.sampled_from([0, None]),
        grace=st.sampled_from([0, None, -1]),
    )
    def let_go_of_a_branch(self, session: str, what: str, pick: int, older: int | None, grace: int | None) -> None:
        """Out of the list, out of the archive, out of the store."""
        self.change_branches(session, what, pick, "")
        self._prune(older)
        if grace != -1:
            self.collect_garbage(grace, "")

    def _prune(self, older: int | None) -> None:
        """C18. What goes is neither listed, stood on nor pinned, and nothing is lost yet."""
        if older is None:
            self.now += 91 * DAY
        self._tick()
        before, disk = all_refs(self.store), _exactly(self.root)
        auto.prune(self.store, older=older)
        after = all_refs(self.store)
        went = {name: oid for name, oid in before.items() if name not in after}
        assert all(name.startswith(("refs/snapstore/archive/", "refs/snapstore/deleted/")) for name in went), went
        came = {name: oid for name, oid in after.items() if name not in before}
        assert sorted(came.values()) == sorted(went.values())
        assert all(name.startswith(PRUNED) for name in came)
        assert {name: oid for name, oid in before.items() if name not in went}.items() <= after.items()
        safe = self._held_by(name for name in after if not name.startswith((PRUNED, "refs/tags/", CURSORS)))
        pins = {oid for name, oid in after.items() if name.startswith(("refs/tags/", CURSORS))}
        for name in came:
            assert not pins & (self._held_by([name]) - safe), f"{name} is stood on, or pinned"
        assert _exactly(self.root) == disk
        if went:
            self.last = None

    @rule(grace=st.sampled_from([0, None]), way=st.sampled_from([None, ""]))
    def collect_garbage(self, grace: int | None, way: str | None) -> None:
        before, disk = all_refs(self.store), _exactly(self.root)
        gc.collect(self.store, grace=grace, git=way)
        after = all_refs(self.store)
        went = {name for name in before if name not in after}
        assert all(name.startswith(PRUNED) for name in went), went
        if grace == 0:
            assert not [name for name in after if name.startswith(PRUNED)]
        assert all(after[name] == oid for name, oid in before.items() if name not in went and name != NOTES)
        assert _exactly(self.root) == disk
        lost = self.nodes.keys() - self._held_by(after)
        if went:
            self.gone |= {(self.nodes[oid].session, self.nodes[oid].seq) for oid in lost}
            self.nodes = {oid: node for oid, node in self.nodes.items() if oid not in lost}
        else:
            assert not lost

    def _held_by(self, names: Iterable[str]) -> set[str]:
        """The nodes that these refs lead to."""
        refs = all_refs(self.store)
        tips = [refs[name] for name in names]
        if not tips:
            return set()
        found = git(self.store.shadow.git_dir, "rev-list", "--stdin", feed="\n".join(tips).encode())
        return self.nodes.keys() & set(found.decode().split())

    # What must hold.

    @invariant()
    def nothing_is_out_of_line(self) -> None:
        if not hasattr(self, "store"):
            return
        assert_cache_adds_up(self.store)
        assert not self.store.journal.pending()
        left = [name for _, _, names in os.walk(self.root) for name in names if name.startswith(".snapstore-")]
        assert not left, left

    def _move(
        self,
        session: str,
        plan: Plan,
        *,
        steps: Steps | None = None,
        target: str | None = None,
        exact: bool = False,
        kill: int | None = None,
    ) -> Moved | None:
        """Carries a plan out and holds it against what the model foretells. None when it was refused."""
        note(f"{plan.kind} {plan.arguments} {plan.policy.default} by {session}, kill={kill}")
        self._tick()
        before, stats, refs = on_disk(self.root), _exactly(self.root), all_refs(self.store)
        cursor = self._cursor(session)
        conflicting = {move.path: move for move in plan.paths if move.conflicting}
        target = target or plan.target.hex()
        way, left_as = self._way(session, plan, target), self._left_as(session, plan, target, before)
        told = self._foretell(plan, before, way if steps is None else steps, exact, passing=steps is None)
        if kill is not None and session not in self.open:
            self._killed(session, plan, kill)
            self._learn()
            assert not self.store.journal.pending()
            if all_refs(self.store) == refs:  # before it counted
                wrong = difference(before, on_disk(self.root))
                assert not wrong, wrong
            else:
                self._assert_told(told, before, plan)
                self._assert_held(before, on_disk(self.root))
                self._remember(session, plan, cursor, before)
            self.last = None
            return None
        try:
            moved = self._session(session).move(plan)
        except (Conflict, Busy, Unsafe) as error:
            note(repr(error))
            assert _exactly(self.root) == stats, "refused, and yet something changed"
            assert all_refs(self.store) == refs
            if isinstance(error, Busy):
                assert session in self.open
            elif not plan.conflicts:
                assert self._in_each_others_way(told, before, plan), repr(error)
            elif isinstance(error, Conflict):
                for move in plan.conflicts:
                    assert self._may_conflict(move, told, before), (move.path, move.why)
            return None
        assert session not in self.open or plan.nothing_to_do
        if plan.ref_moves:  # names go back to what they were, branches and checkpoints
            self.heads = {}
        self._learn()
        after = on_disk(self.root)
        self._assert_told(told, before, plan)
        wrong = difference(left_as, after) if left_as is not None else {}
        assert not wrong, ("there and back", wrong)
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        assert set(moved.files_reverted) == changed  # G-23, S2-24
        for path, stat in _exactly(self.root).items():
            if path not in changed and path in stats and stat[0] != "folder":
                assert stats[path] == stat, f"{path!r} was not to be touched"
        self._assert_held(before, after)
        if moved.operation is not None and (exact or any(move.settled for move in conflicting.values())):
            assert moved.safety_ref is not None
            saved = in_commit(self.store, all_refs(self.store)[moved.safety_ref])
            for path in conflicting:
                if path in before:
                    assert saved.get(path) == before[path], "not saved first"
        if plan.new_node is None and not plan.ref_moves:
            expected = cursor if plan.scope == FILES else plan.target.hex()
            assert self._cursor(session) == expected
            own, archive = f"refs/heads/{session}/", f"refs/snapstore/archive/{session}/"
            for name, oid in all_refs(self.store).items():
                if name.startswith("refs/heads/") and refs.get(name) != oid:  # listed again, since it is stood on
                    assert name not in refs and refs[archive + name.removeprefix(own)] == oid
        if moved.operation is not None:
            self.last = (session, before, cursor) if plan.kind != "ops undo" else None
            self._remember(session, plan, cursor, before)
        return moved

    def _remember(self, session: str, plan: Plan, cursor: str, before: Files) -> None:
        whole = plan.scope == BOTH and plan.new_node is None and not plan.exact
        self.passages[session].append(Passage(cursor, self._cursor(session), whole, before, on_disk(self.root)))

    def _passages_back(self, session: str, target: str) -> list[Passage] | None:
        """The moves that led from a node to where the session stands with nothing recorded in between, newest first."""
        at, found = self._cursor(session), []
        for passage in reversed(self.passages[session]):
            if not passage.whole or passage.end != at:
                return None
            found.append(passage)
            at = passage.start
            if at == target:
                return found
        return None

    def _way(self, session: str, plan: Plan, target: str) -> Steps:
        """What a move does to the files: each step the state that it expects and the state that it leaves.

        The way back to another line takes back what the moves that left it changed. Any other way to another line
        leaves the files that the turns touch as that line has them.
        """
        if plan.new_node is not None:
            return self._steps([plan.new_node.of], -1 if plan.kind == "revert" else 1)
        if plan.kind not in TRAVELS or plan.exact:
            return []  # which `_foretell` leaves open
        steps = [*self._steps(plan.undone, -1), *self._steps(plan.redone, 1)]
        if not self._is_another_line(session, target):
            return steps
        back = self._passages_back(session, target) if plan.scope == BOTH else None
        if back is not None:
            return [
                (path, passage.after.get(path), passage.before.get(path))
                for passage in back
                for path in sorted(difference(passage.before, passage.after))
            ]
        for path in sorted({path for path, _, _ in steps}):
            own, end = _of(steps, path), self.nodes[target].files.get(path)
            if not _ends_as_it_began(own) and own[-1][1] != end:
                steps.append((path, own[-1][1], end))
        return steps

    def _left_as(self, session: str, plan: Plan, target: str, now: Files) -> Files | None:
        """The files when the line was left, if this move goes back to it and nothing was done in between (M-17)."""
        travels = plan.kind in TRAVELS and plan.scope == BOTH and not plan.exact
        if not travels or not self._is_another_line(session, target):
            return None
        back = self._passages_back(session, target)
        if back is None or any(one.before != two.after for one, two in pairwise(back)) or back[0].after != now:
            return None
        return back[-1].before

    def _is_another_line(self, session: str, target: str) -> bool:
        here, there = ({node.oid for node in self._upwards(oid)} for oid in (self._cursor(session), target))
        return bool(here - there and there - here)

    def _foretell(
        self, plan: Plan, disk: Files, steps: Steps, exact: bool, *, passing: bool
    ) -> dict[bytes, Entry | str]:
        """What each path that the move is about must be afterwards: an entry, nothing, or "open" where it may be
        either as it was or merged. With `passing`, the steps are turns that the move goes through."""
        if plan.scope == CONVERSATION:
            return {}
        # An operation taken back may be a change of branches; a revert without a node changes nothing, or conflicts.
        if exact or plan.kind == "ops undo" or (plan.kind in ("revert", "apply") and plan.new_node is None):
            return {move.path: "open" for move in plan.paths}
        told: dict[bytes, Entry | str] = {}
        for path in dict.fromkeys(path for path, _, _ in steps):
            own = _of(steps, path)
            expected, wanted = own[0][0], own[-1][1]
            found = disk.get(path)
            if plan.policy.choice(path) != REFUSE and self._odd(path):
                told[path] = "open"  # a folder in a file's place, or the other way around: skipped, or cleared away
            elif (passing and _ends_as_it_began(own)) or found == wanted:
                told[path] = found  # through turns, a path that ends as it began is nobody's business
            elif found is None or (_meet(own) and found == expected):
                told[path] = wanted  # where there is no file, nothing can be lost
            else:
                choice = plan.policy.choice(path)
                told[path] = wanted if choice == FORCE else found if choice in (SKIP, REFUSE) else "open"
        return told

    def _odd(self, path: bytes) -> bool:
        full = os.path.join(os.fsencode(self.root), path)
        above = (os.path.join(os.fsencode(self.root), folder) for folder in _above(path))
        return os.path.isdir(full) or any(os.path.islink(name) or os.path.isfile(name) for name in above)

    def _steps(self, turns: Iterable[bytes], way: int) -> Steps:
        found: Steps = []
        for oid in turns:
            node = self.nodes[oid.hex()]
            assert node.parent is not None
            old, new = self.nodes[node.parent].files, node.files
            for path in sorted(old.keys() | new.keys()):
                if old.get(path) != new.get(path):
                    pair = (old.get(path), new.get(path))
                    found.append((path, *(pair if way > 0 else pair[::-1])))
        return found

    def _assert_told(self, told: dict[bytes, Entry | str], before: Files, plan: Plan) -> None:
        after = on_disk(self.root)
        for path in before.keys() | after.keys() | told.keys():
            want = told.get(path, before.get(path))
            if want != "open":
                assert after.get(path) == want, (path, before.get(path), want, after.get(path), plan.kind)

    def _in_each_others_way(self, told: dict[bytes, Entry | str], before: Files, plan: Plan) -> bool:
        """Whether a refusal that the plan did not foresee is about a folder where a file should be, or the like."""
        for move in plan.changing:
            if move.result is None:
                continue
            full = os.path.join(os.fsencode(self.root), move.path)
            if os.path.isdir(full) or os.path.realpath(os.path.dirname(full)) != os.path.dirname(full):
                return True
            if any(os.path.isfile(os.path.join(os.fsencode(self.root), above)) for above in _above(move.path)):
                return True
        return False

    def _may_conflict(self, move: PathMove, told: dict[bytes, Entry | str], before: Files) -> bool:
        """Whether the model, too, cannot tell without a person's choice what the file should be."""
        clash = "a file and a folder" in move.why or self._odd(move.path)
        return clash or told.get(move.path, "open") in ("open", before.get(move.path))

    def _assert_held(self, before: Files, after: Files) -> None:
        """Whatever was overwritten or removed is in the store, and a ref leads there: no gc can take it."""
        gone = {path: entry for path, entry in before.items() if after.get(path) != entry}
        if gone:
            held = set(git(self.store.shadow.git_dir, "rev-list", "--objects", "--all").decode("latin-1").split())
            for path, (_, data) in gone.items():
                assert _blob_id(data) in held, f"{path!r} is lost: {data!r}"

    def _assert_is_the_disk(self, commit: str) -> None:
        """Every path of the tree is as on disk, and every file that is not ignored is in the tree."""
        tree, disk = in_commit(self.store, commit), on_disk(self.root)
        rules = disk.get(b".gitignore", (b"", b""))[1].split()
        for path in tree.keys() | disk.keys():
            if path in tree or not _ignored(path, rules):
                assert tree.get(path) == disk.get(path), (path, tree.get(path), disk.get(path))

    def _hide(self) -> None:
        disk = on_disk(self.root)
        rules = disk.get(b".gitignore", (b"", b""))[1].split()
        self.hidden |= {path for path in disk if _ignored(path, rules)}

    # The model's own knowledge, by git alone.

    def _learn(self) -> None:
        """New nodes: read once, now; each number once a session; branches only advance."""
        shown = "%H%x00%P%x00%(trailers:only,unfold)%x00"
        rows = git(self.store.shadow.git_dir, "log", "--all", "--reverse", "--topo-order", f"--format={shown}")
        for text in rows.decode().split("\0\n"):
            if not text.strip():
                continue
            oid, parents, trailers = text.split("\0")[:3]
            found = {row.partition(": ")[0]: row.partition(": ")[2] for row in trailers.splitlines() if row}
            if "Snapstore-Seq" not in found or oid in self.nodes:
                continue
            node = Node(
                oid,
                parents.split()[0] if parents else None,
                found["Snapstore-Session"],
                found["Snapstore-Kind"],
                int(found["Snapstore-Seq"]),
                int(found["Snapstore-Turn"]) if "Snapstore-Turn" in found else None,
                in_commit(self.store, oid),
            )
            twins = [old for old in self.nodes.values() if (old.session, old.seq) == (node.session, node.seq)]
            assert not twins and (node.session, node.seq) not in self.gone, (node, twins)
            self.nodes[oid] = node
        heads = {name: oid for name, oid in all_refs(self.store).items() if name.startswith("refs/heads/")}
        for name, oid in self.heads.items():
            if name in heads:
                assert oid in [node.oid for node in self._upwards(heads[name])], f"{name} went back"
        self.heads = heads

    def _reopen(self) -> None:
        """Each session through a store of its own, as two processes would have it."""
        home = str(self.folder / "stores")
        self.stores = {
            name: Store.open(self.root, create=True, home=home, session="one", clock=lambda: self.now)
            for name in SESSIONS
        }
        self.store = self.stores["one"]

    def _close(self) -> None:
        for store in self.stores.values():
            store.close()

    def _session(self, name: str) -> Session:
        return self.stores[name].session(name)

    def _tick(self) -> None:
        self.now += 1

    def _cursor(self, session: str) -> str:
        return git(self.store.shadow.git_dir, "rev-parse", f"refs/snapstore/cursor/{session}").decode().strip()

    def _known(self, session: str) -> bool:
        return session in self.store.sessions()

    def _upwards(self, oid: str | None) -> list[Node]:
        found = []
        while oid is not None:
            found.append(self.nodes[oid])
            oid = self.nodes[oid].parent
        return found

    def _turn_of(self, oid: str) -> int:
        return next((node.turn for node in self._upwards(oid) if node.turn is not None), 0)

    def _alive(self, session: str) -> list[Node]:
        """What the session's branches, archive, checkpoints and cursor lead to: all but what was deleted."""
        places = ("refs/heads/{}/", "refs/snapstore/archive/{}/", "refs/tags/{}/", "refs/snapstore/cursor/{}")
        prefixes = tuple(place.format(session) for place in places)
        tips = [oid for name, oid in all_refs(self.store).items() if name.startswith(prefixes)]
        found: dict[str, Node] = {}
        for tip in tips:
            found |= {node.oid: node for node in self._upwards(tip)}
        return sorted(found.values(), key=lambda node: node.seq)

    def _branches(self, session: str) -> dict[str, str]:
        found = {}
        for place in (f"refs/snapstore/archive/{session}/", f"refs/heads/{session}/"):
            found |= {
                name.removeprefix(place): oid
                for name, oid in all_refs(self.store).items()
                if name.startswith(place) and self._known(session)
            }
        return found

    def _plan(self, make: Callable[[], Plan]) -> Plan | None:
        try:
            return make()
        except Unknown as error:
            note(repr(error))
            return None

    def _killed(self, session: str, plan: Plan, at: int) -> None:
        """The move, in a process that dies at its Nth call; the next opening mends what is left."""
        killed_at(at, lambda: self._session(session).move(plan))
        self._close()
        self._reopen()


def _exactly(root: Path) -> dict[bytes, tuple[object, ...]]:
    """Every file and folder with what a rewrite would change: inode, times, mode, and bytes."""
    files, top = on_disk(root), os.fsencode(root)
    found: dict[bytes, tuple[object, ...]] = {}
    for folder, folders, names in os.walk(top):
        for name in folders + names:
            full = os.path.join(folder, name)
            path, st_ = full[len(top) + 1 :], os.lstat(full)
            if path in files:
                found[path] = ("file", st_.st_ino, st_.st_mtime_ns, st_.st_mode, files[path])
            else:
                found[path] = ("folder", st_.st_ino, st_.st_mode)
    return found


def _of(steps: Steps, path: bytes) -> list[tuple[Entry, Entry]]:
    return [(old, new) for name, old, new in steps if name == path]


def _meet(own: list[tuple[Entry, Entry]]) -> bool:
    """Whether nobody's edit lies between the steps of a path."""
    return all(one[1] == two[0] for one, two in pairwise(own))


def _ends_as_it_began(own: list[tuple[Entry, Entry]]) -> bool:
    return _meet(own) and own[0][0] == own[-1][1]


def _notes_fewer(plan: Plan) -> bool:
    return any(text.startswith(("There was only", "There were only")) for text in plan.notes)


def _above(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(1, len(parts))]


def _below(path: bytes, tops: set[bytes]) -> bool:
    return any(path == top or path.startswith(top + b"/") for top in tops)


def _ignored(path: bytes, rules: list[bytes]) -> bool:
    return (b"*.ign" in rules and path.endswith(b".ign")) or (b"build/" in rules and path.startswith(b"build/"))


def _blob_id(data: bytes) -> str:
    from hashlib import sha1

    return sha1(b"blob %d\0" % len(data) + data).hexdigest()


# A failing run is long to shrink and shows every step it took anyway.
HOW: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.explicit, Phase.reuse, Phase.generate],
    "report_multiple_bugs": False,
}

TestMoving = Moving.TestCase
# The same stories every time: what decides whether work lands must not depend on the dice. The long run throws them.
TestMoving.settings = settings(max_examples=14, stateful_step_count=25, derandomize=True, **HOW)


class LongMoving(Moving):
    pass


TestLongMoving = pytest.mark.deep(LongMoving.TestCase)
LongMoving.TestCase.settings = settings(max_examples=300, stateful_step_count=50, **HOW)
