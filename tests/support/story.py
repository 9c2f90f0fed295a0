"""Plays a random story of turns and moves under a held clock and prints where every ref stands afterwards.

It uses only what an embedding program may import, so that other versions of snapstore can play it as well:
`python tests/story.py FOLDER STEPS SEED` with that version first on the path.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from snapstore import Session, SnapstoreError, Store

try:
    from snapstore.timeline.moves.branches import Branches
    from snapstore.timeline.moves.plan import FORCE, MERGE, SKIP, Plan
except ImportError:  # the version before, which test_same_ids.py plays the story with
    from snapstore.timeline.branches import Branches
    from snapstore.timeline.plan import FORCE, MERGE, SKIP, Plan

PATHS = [b"a", b"b.txt", b"d/c", b"d/e/f", b"d/e/g", b"d", b"long/way/down/x", b"\xff\xfe", b"d.x", b"d-y", b"many/7"]
SESSIONS = ("one", "two")


class Story:
    """One root, two sessions, and a clock that moves only between the steps."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.root = folder / "project"
        self.root.mkdir(parents=True)
        self.now = 1_700_000_000.0
        for number in range(40):
            self._write(b"many/%d" % number, b"%d\n" % number)
        self.home = str(folder / "stores")
        self._open()
        self.names = 0

    def _open(self) -> None:
        self.store = Store.open(self.root, create=True, home=self.home, session="one", clock=lambda: self.now)
        self.store.header.user_name, self.store.header.user_email = "Ann", "ann@example.org"

    def play(self, steps: int) -> None:
        moves: list[Callable[[Session], None]] = [
            *[self._turn] * 6,
            *(self._undo, self._redo, self._goto, self._revert, self._restore),
            *(self._branch, self._checkpoint, self._edit_by_hand, self._reopen, self._earlier),
        ]
        for _ in range(steps):
            self.now += self.random.choice((0, 1, 60))
            session = self.store.session(self.random.choice(SESSIONS))
            step = self.random.choice(moves)
            try:
                step(session)
            except SnapstoreError:
                continue  # a refusal is part of the story

    def refs(self) -> dict[str, str]:
        """Where every ref stands: the trees of its commit and of all before it. Not the commits themselves, for what
        messages and records hold has changed since; with those as they were, the ids of commits were the same too."""
        shadow = self.store.shadow
        tips = {name: oid for name, oid in shadow.refs.list("refs/").items() if not name.startswith("refs/notes/")}
        found = {name: " ".join(self._trees(oid)) for name, oid in tips.items()}
        return found | {"HEAD": str(shadow.refs.value("HEAD"))}

    def _trees(self, oid: bytes) -> Iterator[str]:
        kind, _ = self.store.shadow.objects.header(oid)
        if kind != b"commit":
            yield oid.hex()
            return
        waiting = [oid]
        while waiting:
            commit = self.store.shadow.commit(waiting.pop())
            yield commit.tree.hex()
            waiting += commit.parents

    def close(self) -> None:
        self.store.close()

    # What happens to files.

    def _full(self, path: bytes) -> bytes:
        return os.path.join(os.fsencode(self.root), path)

    def _write(self, path: bytes, data: bytes, mode: int = 0o644) -> None:
        full = self._full(path)
        above = os.path.dirname(full)
        while not os.path.isdir(above):
            if os.path.lexists(above):
                os.unlink(above)
            above = os.path.dirname(above)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        self._remove(full)
        with open(full, "wb") as file:
            file.write(data)
        os.chmod(full, mode)

    def _remove(self, full: bytes) -> None:
        if os.path.isdir(full) and not os.path.islink(full):
            shutil.rmtree(full)
        elif os.path.lexists(full):
            os.unlink(full)

    def _change(self, path: bytes) -> None:
        kind = self.random.choice(("text", "text", "text", "program", "link", "nothing"))
        if kind in ("text", "program"):
            lines = b"".join(b"line %d\n" % self.random.randrange(30) for _ in range(self.random.randrange(40)))
            self._write(path, lines, 0o755 if kind == "program" else 0o644)
        elif kind == "link":
            self._write(path, b"")
            full = self._full(path)
            os.unlink(full)
            os.symlink(b"a", full)
        else:
            full = self._full(path)
            if not any(os.path.islink(os.path.dirname(full)[:at]) for at in range(len(full))):
                self._remove(full)

    # The steps.

    def _turn(self, session: Session) -> None:
        session.close_open_turn()
        turn = session.begin(f"Prompt {self.random.randrange(1000)}\nwith a second line")
        for path in self.random.sample(PATHS, self.random.randrange(4)):
            turn.touch(self._full(path))
            self._change(path)
        self.now += self.random.choice((0, 5))
        turn.reply("done")
        turn.end(scan=True)

    def _edit_by_hand(self, session: Session) -> None:
        self._change(self.random.choice(PATHS))

    def _policy(self) -> str:
        return self.random.choice((FORCE, FORCE, MERGE, SKIP))

    def _address(self, session: Session) -> str:
        return self.random.choice([shot.snapshot_id for shot in session.snapshots()])

    def _move(self, session: Session, plan: Plan) -> None:
        if not self._ruled_otherwise_before(plan):
            session.move(plan)

    def _ruled_otherwise_before(self, plan: Plan) -> bool:
        """Whether older versions refuse this move, or leave other files: it is no part of the story then."""
        fewer = plan.kind in ("undo", "redo") and int(plan.arguments[0]) > len(plan.undone) + len(plan.redone)
        missing = any(move.found is None and None not in (move.expected, move.wanted) for move in plan.paths)
        here, there = set(self._line(plan.start)), set(self._line(plan.target))
        return fewer or missing or bool(here - there and there - here)

    def _line(self, oid: bytes) -> Iterator[bytes]:
        yield oid
        for parent in self.store.shadow.commit(oid).parents:
            yield from self._line(parent)

    def _undo(self, session: Session) -> None:
        self._move(session, session.plan_undo(self.random.randrange(1, 4), policy=self._policy()))

    def _redo(self, session: Session) -> None:
        self._move(session, session.plan_redo(self.random.randrange(1, 4), policy=self._policy()))

    def _goto(self, session: Session) -> None:
        self._move(session, session.plan_goto(self._address(session), policy=self._policy()))

    def _earlier(self, session: Session) -> None:
        self._move(session, session.plan_earlier(1, policy=self._policy()))

    def _revert(self, session: Session) -> None:
        self._move(session, session.plan_revert(self._address(session), policy=self._policy()))

    def _restore(self, session: Session) -> None:
        paths = [self._full(path) for path in self.random.sample(PATHS, 2)]
        self._move(session, session.plan_restore(self._address(session), paths, policy=self._policy()))

    def _branch(self, session: Session) -> None:
        branches = Branches(session)
        names = sorted(branch.name for branch in branches.list(archived=False))
        self.names += 1
        name = self.random.choice(names)
        if self.random.random() < 0.5:
            branches.rename(name, f"line-{self.names}")
        else:
            branches.archive(name)

    def _checkpoint(self, session: Session) -> None:
        cursor = self.store.shadow.refs.read(f"refs/snapstore/cursor/{session.name}")
        if cursor is not None:
            self.names += 1
            Branches(session).checkpoint(f"point-{self.names}", cursor)

    def _reopen(self, session: Session) -> None:
        self.store.close()
        self._open()


def play(folder: Path, steps: int, seed: int) -> dict[str, str]:
    """Every ref with what it leads to, and HEAD with what it stands for."""
    story = Story(folder, seed)
    try:
        story.play(steps)
        return story.refs()
    finally:
        story.close()


if __name__ == "__main__":
    for ref, target in sorted(play(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])).items()):
        print(ref, target)
