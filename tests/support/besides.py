"""One of the processes that work on the same stores at the same time (test_beside_git.py).

    python besides.py KIND SEED SECONDS FOLDER

Each writes a line of JSON for everything that it was told to have succeeded, after it was told so, and for every error.
Files of a session lie in a folder of its own, so each process knows what must be in its commits, to the byte.
"""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from helpers import plain_environment, write
from machines import Machine

from snapstore import Session, SnapstoreError, Store
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.maintenance import gc

# By hand, as people and their tools run them.
COMMANDS = (
    ("gc", "-q"),
    ("gc", "-q", "--prune=now"),
    ("repack", "-a", "-d", "-q"),
    ("repack", "-A", "-d", "-q"),
    ("repack", "-d", "-q", "--geometric=2"),
    ("repack", "-d", "-q"),
    ("pack-refs", "--all"),
    ("prune", "--expire=now"),
    ("prune-packed", "-q"),
    ("multi-pack-index", "write"),
    ("reflog", "expire", "--all", "--expire=now", "--expire-unreachable=now"),
)
POOL = [f"content number {number}\n" * (number + 1) for number in range(12)]  # so that what was garbage comes again


class Worker:
    def __init__(self, kind: str, seed: int, seconds: float, folder: Path) -> None:
        self.kind = kind
        self.random = random.Random(f"{kind} {seed}")
        self.end = time.monotonic() + seconds
        self.folder = folder
        self.machine = Machine(folder, "bob" if kind.startswith("bob") else "ada")
        self.said = open(folder / f"{kind}.log", "a", encoding="utf-8")
        self.number = 0

    def say(self, what: str, **more: Any) -> None:
        self.said.write(json.dumps({"what": what, **more}) + "\n")
        self.said.flush()

    def run(self) -> None:
        work: Callable[[], None] = getattr(self, self.kind.rstrip("0123456789"))
        while time.monotonic() < self.end:
            try:
                work()
            except KeyboardInterrupt:
                self.say("interrupted")
            except SnapstoreError as error:
                self.say("refused", error=error.name, message=error.message)
            except Exception:
                self.say("broken", message=traceback.format_exc())

    @contextmanager
    def interrupted_at_times(self) -> Iterator[None]:
        """Interrupt the work as Ctrl-C would, at a random moment, one time in six."""

        def interrupt(number: int, frame: FrameType | None) -> None:
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        if self.random.random() < 0.17:
            signal.setitimer(signal.ITIMER_REAL, self.random.uniform(0.001, 0.25))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    # Turns

    def content(self) -> str:
        self.number += 1
        return self.random.choice([*POOL, f"{self.kind} wrote this as number {self.number}\n"])

    def turns(self) -> None:
        with self.machine.open() as store:
            for _ in range(self.random.randrange(1, 8)):
                self.turn(store.session(self.kind), named=self.random.random() < 0.7)

    def turn(self, session: Session, *, named: bool) -> None:
        own = self.machine.root / self.kind
        paths = [own / self.random.choice("abcd") / str(self.random.randrange(6)) for _ in range(3)]
        with self.interrupted_at_times():
            turn = session.begin(f"{self.kind} {self.number}")
            for path in dict.fromkeys(paths):
                if named:
                    turn.touch(path)
                if path.exists() and self.random.random() < 0.3:
                    path.unlink()
                else:
                    write(path, self.content())
            commit = turn.end(scan=not named)
        files = {name: base64.b64encode(data).decode() for name, data in self.on_disk().items()}
        self.say("turn", commit=commit.hex(), files=files)

    def on_disk(self) -> dict[str, bytes]:
        top = self.machine.root
        return {
            str(path.relative_to(top)): path.read_bytes() for path in (top / self.kind).rglob("*") if path.is_file()
        }

    def moves(self) -> None:
        """Turns and moves of a session that names all that it writes, so that a move is about its own files alone."""
        with self.machine.open() as store:
            session = store.session(self.kind)
            for _ in range(self.random.randrange(1, 6)):
                self.turn(session, named=True)
            for _ in range(self.random.randrange(1, 6)):
                with self.interrupted_at_times():
                    plan = session.plan_undo(self.random.randrange(1, 4))
                    if self.random.random() < 0.5:
                        plan = session.plan_redo(self.random.choice([1, 2, None]))
                    session.move(plan)
                self.compare(store, session)

    def compare(self, store: Store, session: Session) -> None:
        """Assert that the files on disk are those of the session's cursor."""
        trees, objects = store.shadow.trees, store.shadow.objects
        with store.changing():
            tree = store.shadow.commit(Graph(store, session.name).cursor).tree
            entry = trees.lookup(tree, self.kind.encode())
            entries = trees.walk(entry[1], self.kind.encode() + b"/") if entry is not None else ()
            wanted = {os.fsdecode(path): objects.read(oid)[1] for path, (_, oid) in entries}
            found = self.on_disk()
        if found != wanted:
            self.say("broken", message=f"not as at the node: {sorted(set(found) ^ set(wanted))} or other bytes")
        self.say("move")

    # Sharing

    def share(self) -> None:
        with self.interrupted_at_times():
            if self.random.random() < 0.5:
                self.machine.push()
                self.say("push")
            else:
                self.machine.pull()
                self.say("pull")

    def bob(self) -> None:
        if self.random.random() < 0.6:
            with self.machine.open() as store:
                self.turn(store.session(self.kind), named=True)
        else:
            self.share()

    # Packing

    def collect(self) -> None:
        with self.machine.open() as store:
            gc.collect(store, grace=self.random.choice([0, 3600]), git=self.random.choice([None, None, ""]))
        self.say("gc")
        time.sleep(self.random.uniform(0, 0.3))

    def git(self) -> None:
        """Ordinary git, run by hand. It may fail where ours changes something under its eyes; it must not destroy."""
        git_dir = self.store_of("ada")
        if self.kind != "git1":
            git_dir = self.random.choice([git_dir, self.store_of("bob"), str(self.folder / "hub.git")])
        chance = self.random.random()
        if chance < 0.1:
            place = self.folder / f"tree-{self.kind}-{self.number}"
            self.number += 1
            self.by_hand(git_dir, "worktree", "add", "-q", "--detach", str(place), "refs/notes/turns")
            self.by_hand(git_dir, "worktree", "remove", "--force", str(place))
            shutil.rmtree(place, ignore_errors=True)
        elif chance < 0.3:  # garbage, which a turn may find stored
            feed = self.random.choice(POOL).encode()
            self.by_hand(git_dir, "hash-object", "-w", "--stdin", feed=feed)
        else:
            self.by_hand(git_dir, *self.random.choice(COMMANDS))

    def store_of(self, name: str) -> str:
        [place] = (self.folder / name / "stores").glob("*/store.git")
        return str(place)

    def by_hand(self, git_dir: str, *arguments: str, feed: bytes = b"") -> None:
        done = subprocess.run(
            ["git", "--git-dir", git_dir, *arguments],
            input=feed,
            capture_output=True,
            check=False,
            env=plain_environment(),
        )
        said = done.stderr.decode(errors="replace").strip().splitlines()
        self.say("git" if done.returncode == 0 else "git failed", command=arguments[0], message=said[-1:])


KINDS = ("turns1", "turns2", "moves1", "share1", "bob1", "collect1", "git1", "git2")

if __name__ == "__main__":
    Worker(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4])).run()
