"""A store with a tree of turns, planted quickly and read by many tests."""

from __future__ import annotations

import os
from pathlib import Path

from snapstore import Store
from snapstore.base import files
from snapstore.git.objects import commits
from snapstore.git.objects.ids import COMMIT
from snapstore.git.repository import SNAPSTORE
from snapstore.store.state import SessionState, encode
from snapstore.timeline.history.graph import Graph


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Garden:
    """Grows a session's tree: turns, edits, and moves of the cursor made by hand."""

    def __init__(self, root: Path, session: str = "s1") -> None:
        self.root = root
        self.clock = Clock()
        self.store = Store.open(root, create=True, session=session, clock=self.clock)
        self.session = session
        self.made: dict[str, bytes] = {"root": self.cursor()}

    def cursor(self) -> bytes:
        found = self.store.shadow.refs.read(f"refs/snapstore/cursor/{self.session}")
        assert found is not None
        return found

    def turn(self, name: str, *, minutes: float = 1, agent: str = "claude") -> bytes:
        """Record a turn that writes its name, and remember it by that name."""
        self.clock.now += 60 * minutes
        turn = self.store.session(self.session).begin(name, agent=agent)
        (self.root / "file").write_text(name)
        turn.end()
        self.made[name] = self.cursor()
        return self.made[name]

    def turns(self, *names: str) -> None:
        for name in names:
            self.turn(name)

    def edit(self, text: str) -> None:
        """Write a file outside of any turn; the next turn records it first."""
        (self.root / "notes").write_text(text)

    def stand(self, name: str, branch: str | None = None) -> None:
        """Puts the cursor on a node, as an undo would; the branch last stood on stays, unless another is named."""
        refs = self.store.shadow.refs
        graph = self.graph()
        state = SessionState(session=self.session, branch=branch or graph.branch, floor=graph.by_seq()[-1].seq)
        files.write(f"{self.store.state}/sessions/{self.session}.json", encode(state))
        refs.update(f"refs/snapstore/cursor/{self.session}", graph.cursor_value, self.made[name])
        if name == "root":
            (self.root / "file").unlink(missing_ok=True)
        else:
            (self.root / "file").write_text(name)

    def ref(self, name: str, node: str | bytes | None) -> None:
        refs = self.store.shadow.refs
        refs.update(name, refs.value(name), self.made[node] if isinstance(node, str) else node)

    def checkpoint(self, name: str, node: str) -> None:
        self.ref(f"refs/tags/{self.session}/{name}", node)

    def archive(self, branch: str) -> None:
        tip = self.graph().branches[branch]
        self.ref(f"refs/snapstore/archive/{self.session}/{branch}", tip)
        self.ref(f"refs/heads/{self.session}/{branch}", None)

    def graph(self) -> Graph:
        return Graph(self.store, self.session)

    def name(self, oid: bytes | None) -> str:
        return next((name for name, made in self.made.items() if made == oid), oid.hex() if oid else "none")

    def names(self, oids: list[bytes]) -> list[str]:
        return [self.name(oid) for oid in oids]

    def close(self) -> None:
        self.store.close()


def forked(garden: Garden) -> Garden:
    """root─1─2─3─4 (main), 2─3b (main-2), 3b─4c (main-3, on top of it 5c), and 2─3d (main-4): stands on 3d."""
    garden.turns("1", "2", "3", "4")
    garden.stand("2")
    garden.turns("3b", "4b")
    garden.stand("3b")
    garden.turns("4c", "5c")
    garden.stand("2")
    garden.turns("3d")
    return garden


def plant(store: Store, turns: int, branches: int, session: str = "s1", *, every: int = 0) -> list[bytes]:
    """A large tree without its files: each branch goes on from somewhere in the one before, a few thousand commits in
    one pack. Gives the tips."""
    shadow = store.shadow
    refs = shadow.refs
    base = refs.read(f"refs/heads/{session}/main")
    assert base is not None
    tree = shadow.commit(base).tree
    writer = shadow.objects.writer()
    author = commits.Identity("claude", "claude@localhost")
    length = turns // branches
    line: list[bytes] = [base]
    tips: list[bytes] = []
    seq = shadow.commit(base).number("Seq") or 0
    for branch in range(branches):
        for _ in range(length):
            seq += 1
            text = commits.message(
                f"Please change the thing number {seq} so that it works as it was meant to",
                [("M", b"src/module.py"), ("A", b"src/other.py")],
                {"Kind": "turn", "Session": session, "Turn": len(line), "Seq": seq, "Agent": "claude"},
            )
            data = commits.encode(tree, [line[-1]], author, SNAPSTORE, 1_700_000_000 + 30 * seq, text)
            line.append(writer.add(COMMIT, data))
        tips.append(line[-1])
        line = line[: max(1, len(line) - (7 * branch) % (2 * length) - 3)]
    shadow.objects.release(shadow.objects.finish(writer))
    rows = [f"{tip.hex()} refs/heads/{session}/main{f'-{at + 1}' if at else ''}\n" for at, tip in enumerate(tips)]
    for row in rows:
        path = f"{shadow.git_dir}/{row[41:].strip()}"
        if os.path.exists(path):
            os.unlink(path)
    with open(f"{shadow.git_dir}/packed-refs", "w") as file:
        file.write("# pack-refs with: peeled fully-peeled sorted \n" + "".join(sorted(rows, key=lambda row: row[41:])))
    return tips
