"""Moves through trees that lie, past odd things on disk, beside a checkout of the user's: not one byte goes astray.

The trees are made with `git hash-object --literally` and stand in the store as turns like any other, as they would
after a pull from somebody hostile. Each is refused before a single byte is written, or written harmlessly where it is.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from commands import PROGRAM
from helpers import all_refs, assert_whole, bit_by_bit, child, git, git_in, on_disk, powerless, remove, tip, write

from snapstore import Conflict, Session, SnapstoreError, Store
from snapstore.errors import Corrupt, Unknown, Unsafe
from snapstore.timeline.moves.plan import FORCE, MERGE, SKIP, Plan, Policy

REFUSALS = (Unsafe, Corrupt, Conflict)


class Scene:
    """A project with one turn, and beside it what no move may touch."""

    def __init__(self, folder: Path, root: Path, home: Path, store: Store) -> None:
        self.root, self.store = root, store
        self.outside = folder / "outside"
        self.ssh = home / ".ssh"
        for name in ("a", "f", "config", "hooks/post-checkout", "d/f"):
            write(self.outside / name, "theirs")
        write(self.ssh / "id", "secret")
        write(self.ssh / "f", "turn")
        write(root / ".git/config", "[core]\n")  # the user's own, such as it is
        write(root / ".git/hooks/sample", "x")
        self.session = store.session("s")
        self.session.take_baseline()
        with self.session.turn("one"):
            write(root / "a", "1")
            write(root / "d/f", "turn")
        self.git_dir = store.shadow.git_dir

    def all(self) -> object:
        """Everything that must not change by a bit when a move is refused."""
        return bit_by_bit(self.root), bit_by_bit(self.outside), bit_by_bit(self.ssh), all_refs(self.store)

    def blob(self, data: bytes = b"evil\n") -> bytes:
        return self._put("blob", data)

    def tree(self, *rows: tuple[bytes, bytes, bytes]) -> bytes:
        return self._put("tree", b"".join(b"%s %s\0%s" % row for row in rows))

    def raw_tree(self, data: bytes) -> bytes:
        return self._put("tree", data)

    def with_rows(self, *rows: tuple[bytes, bytes, bytes]) -> bytes:
        """The tree of turn 1 and some rows more."""
        own = git(self.git_dir, "cat-file", "tree", f"{tip(self.store, 's')}^{{tree}}")
        return self._put("tree", own + b"".join(b"%s %s\0%s" % row for row in rows))

    def _put(self, kind: str, data: bytes) -> bytes:
        literally = ["--literally"] if kind == "tree" else []
        said = git(self.git_dir, "hash-object", "-t", kind, "-w", *literally, "--stdin", feed=data)
        return bytes.fromhex(said.decode().strip())

    def plant(self, tree: bytes, *, stand: bool) -> Session:
        """The tree as the next turn of main; the session stands on it, or before it."""
        parent = tip(self.store, "s")
        number = int(git(self.git_dir, "log", "-1", "--format=%(trailers:key=Snapstore-Turn,valueonly)", parent))
        text = (
            f"tree {tree.hex()}\nparent {parent}\nauthor Eve <eve@example.com> 1700000000 +0000\n"
            "committer Eve <eve@example.com> 1700000000 +0000\n\nhostile\n\n"
            f"Snapstore-Kind: turn\nSnapstore-Session: s\nSnapstore-Turn: {number + 1}\nSnapstore-Seq: {number + 20}\n"
        )
        commit = git(self.git_dir, "hash-object", "-t", "commit", "-w", "--stdin", feed=text.encode()).decode().strip()
        git(self.git_dir, "update-ref", "refs/heads/s/main", commit)
        if not stand:
            git(self.git_dir, "update-ref", "--no-deref", "refs/snapstore/cursor/s", parent)
        return Store.open(self.root).session("s")


@pytest.fixture
def scene(tmp_path: Path, root: Path, nobodys_home: Path) -> Iterator[Scene]:
    (root / ".git").mkdir()
    with Store.open(root, create=True, session="s") as store:
        yield Scene(tmp_path, root, nobodys_home, store)


ENTERING: dict[str, Callable[[Session], Plan]] = {
    "redo": lambda s: s.plan_redo(),
    "redo all": lambda s: s.plan_redo(None),
    "goto": lambda s: s.plan_goto("2"),
    "goto exact": lambda s: s.plan_goto("2", exact=True),
    "goto forced": lambda s: s.plan_goto("main", policy=Policy(FORCE)),
    "switch": lambda s: s.plan_switch("main"),
    "apply": lambda s: s.plan_apply("main:2"),
    "restore": lambda s: s.plan_restore("main:2", [b""]),
    "later": lambda s: s.plan_later(1),
}
LEAVING: dict[str, Callable[[Session], Plan]] = {
    "undo": lambda s: s.plan_undo(),
    "undo forced": lambda s: s.plan_undo(policy=Policy(FORCE)),
    "undo merged": lambda s: s.plan_undo(policy=Policy(MERGE)),
    "goto": lambda s: s.plan_goto("1"),
    "revert": lambda s: s.plan_revert("2"),
    "earlier": lambda s: s.plan_earlier(1),
}


def assert_refused(scene: Scene, session: Session, moves: dict[str, Callable[[Session], Plan]]) -> None:
    before = scene.all()
    for name, plan in moves.items():
        for way in (session.preview, session.move):
            try:
                made = plan(session)
                if way == session.preview and made.conflicts:
                    continue  # a preview tells of them
                way(made)
            except REFUSALS as refusal:
                assert refusal.message and refusal.hint, name
            else:
                raise AssertionError(f"{name} was not refused")
    assert scene.all() == before


BAD_NAMES = [
    b"..",
    b".",
    b".git",
    b".GIT",
    b".Git",
    b"git~1",
    b"GIT~1",
    b".git ",
    b".git.",
    b".git. . ",
    b".git::$INDEX_ALLOCATION",
    b".git:x",
    ".gi\u200ct".encode(),
    "\ufeff.git".encode(),
    b"/abs",
    b"../up",
    b"d/../../up",
    b"d/./x",
    b"a/",
    b"d//x",
    b".git/config",
    b"n" * 256,
    b"n" * 300,
    b".snapstore-1-000000-0",
]


@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: ascii(name[:24]))
@pytest.mark.parametrize("place", ["top", pytest.param("below", marks=pytest.mark.deep), "as a folder"])
def test_names_that_lead_elsewhere_are_refused_by_every_move_G_09(scene: Scene, name: bytes, place: str) -> None:
    """TESTING hostile trees; S0-46: not one byte is written."""
    entry = (b"100644", name, scene.blob())
    if place == "top":
        tree = scene.with_rows(entry)
    elif place == "below":
        tree = scene.with_rows((b"40000", b"below", scene.tree(entry)))
    else:
        hooks = scene.tree((b"100755", b"post-checkout", scene.blob()))
        inside = scene.tree((b"100644", b"config", scene.blob()), (b"40000", b"hooks", hooks))
        tree = scene.with_rows((b"40000", name, inside))
    harmless = name.startswith(b".snapstore-")  # only a prefix that some move may use: nothing leads elsewhere
    session = scene.plant(tree, stand=False)
    if harmless:
        outside = bit_by_bit(scene.outside)
        session.move(session.plan_redo())
        session.move(session.plan_undo())
        assert bit_by_bit(scene.outside) == outside
        return
    assert_refused(scene, session, ENTERING)
    git(scene.git_dir, "symbolic-ref", "refs/snapstore/cursor/s", "refs/heads/s/main")
    assert_refused(scene, Store.open(scene.root).session("s"), LEAVING)


Build = Callable[[Scene], bytes]
LYING: dict[str, Build] = {
    "empty name": lambda s: s.with_rows((b"100644", b"", s.blob())),
    "same name twice": lambda s: s.with_rows((b"100644", b"x", s.blob()), (b"100644", b"x", s.blob(b"other"))),
    "same row twice": lambda s: s.with_rows((b"100644", b"x", s.blob()), (b"100644", b"x", s.blob())),
    "link and folder of one name": lambda s: s.with_rows(
        (b"120000", b"x", s.blob(b"../outside")), (b"40000", b"x", s.tree((b"100644", b"f", s.blob())))
    ),
    "link, and a name below it": lambda s: s.with_rows(
        (b"120000", b"x", s.blob(b"../outside")), (b"100644", b"x/f", s.blob())
    ),
    "gitlink": lambda s: s.with_rows((b"160000", b"module", b"\x11" * 20)),
    "gitlink below": lambda s: s.with_rows((b"40000", b"x", s.tree((b"160000", b"module", b"\x11" * 20)))),
    "setuid": lambda s: s.with_rows((b"104755", b"tool", s.blob())),
    "setgid": lambda s: s.with_rows((b"102755", b"tool", s.blob())),
    "device": lambda s: s.with_rows((b"60644", b"sda", s.blob())),
    "fifo": lambda s: s.with_rows((b"10644", b"pipe", s.blob())),
    "folder with modes": lambda s: s.with_rows((b"40755", b"x", s.tree((b"100644", b"f", s.blob())))),
    "long mode": lambda s: s.with_rows((b"0100644", b"x", s.blob())),
    "no mode": lambda s: s.with_rows((b"", b"x", s.blob())),
    "missing blob": lambda s: s.with_rows((b"100644", b"x", b"\x12" * 20)),
    "missing link": lambda s: s.with_rows((b"120000", b"x", b"\x12" * 20)),
    "missing tree": lambda s: s.with_rows((b"40000", b"x", b"\x13" * 20)),
    "tree as a file": lambda s: s.with_rows((b"100644", b"x", s.tree((b"100644", b"f", s.blob())))),
    "file as a tree": lambda s: s.with_rows((b"40000", b"x", s.blob())),
    "commit as a file": lambda s: s.with_rows((b"100644", b"x", bytes.fromhex(tip(s.store, "s")))),
    "link of 1 MB": lambda s: s.with_rows((b"120000", b"x", s.blob(b"x" * (1 << 20)))),
    "link of 4096": lambda s: s.with_rows((b"120000", b"x", s.blob(b"x" * 4096))),
    "empty link": lambda s: s.with_rows((b"120000", b"x", s.blob(b""))),
    "link with NUL": lambda s: s.with_rows((b"120000", b"x", s.blob(b"a\0b"))),
    "cut off": lambda s: s.raw_tree(b"100644 x\0" + b"\x11" * 7),
    "rubbish": lambda s: s.raw_tree(b"\xff" * 100),
    "one good, one missing": lambda s: s.with_rows(
        (b"100644", b"aa", s.blob()), (b"100644", b"b", s.blob()), (b"100644", b"zz", b"\x12" * 20)
    ),
    "a path of 5,000 bytes": lambda s: s.with_rows((b"40000", b"d" * 100, _nested(s, 50))),
    "a thousand folders deep": lambda s: s.with_rows((b"40000", b"e", _nested(s, 3000, b"e"))),
}


def _nested(scene: Scene, depth: int, name: bytes = b"d" * 100) -> bytes:
    tree = scene.tree((b"100644", b"f", scene.blob()))
    # one process for all: the objects of a store can be written by hand too
    from snapstore.git.objects.ids import TREE

    writer = scene.store.shadow.objects.writer()
    for _ in range(depth):
        tree = writer.add(TREE, b"40000 %s\0%s" % (name, tree))
    scene.store.shadow.objects.finish(writer)
    return tree


@pytest.mark.parametrize("kind", LYING)
def test_trees_that_lie_are_refused_by_every_move_G_09_S0_46(scene: Scene, kind: str) -> None:
    """TESTING hostile trees: modes, duplicates, missing objects, links that are no paths."""
    session = scene.plant(LYING[kind](scene), stand=False)
    assert_refused(scene, session, ENTERING)
    git(scene.git_dir, "symbolic-ref", "refs/snapstore/cursor/s", "refs/heads/s/main")
    before = bit_by_bit(scene.root), bit_by_bit(scene.outside), bit_by_bit(scene.ssh)
    hostile = tip(scene.store, "s")
    for name, plan in LEAVING.items():
        git(scene.git_dir, "update-ref", "refs/heads/s/main", hostile)
        git(scene.git_dir, "symbolic-ref", "refs/snapstore/cursor/s", "refs/heads/s/main")
        with Store.open(scene.root) as store:
            try:
                store.session("s").move(plan(store.session("s")))
            except REFUSALS:
                pass  # where it is not: nothing of the tree is on disk, so there was nothing to remove
        assert (bit_by_bit(scene.root), bit_by_bit(scene.outside), bit_by_bit(scene.ssh)) == before, name


HARMLESS = [b"a\\b", b"-rf", b"$(touch x)", b"\x1b[31m", b":(glob)", b"x.lock", b"\xff\xfe", b" ", b"con", b"n" * 255]


@pytest.mark.parametrize("name", HARMLESS, ids=lambda name: ascii(name[:24]))
def test_odd_names_that_harm_nobody_are_written_and_removed_G_09(scene: Scene, name: bytes) -> None:
    """`a\\b` is a file name here: written as such, in the root and nowhere else."""
    session = scene.plant(scene.with_rows((b"100644", name, scene.blob())), stand=False)
    before, outside = on_disk(scene.root), bit_by_bit(scene.outside)
    for plan, expected in (
        (session.plan_redo, {**before, name: (b"100644", b"evil\n")}),
        (session.plan_undo, before),
        (lambda: session.plan_goto("2", exact=True), {**before, name: (b"100644", b"evil\n")}),
        (lambda: session.plan_goto("1", exact=True), before),
    ):
        session.move(plan())
        assert on_disk(scene.root) == expected
    assert bit_by_bit(scene.outside) == outside
    done = subprocess.run([*PROGRAM, "redo", "-y"], cwd=scene.root, capture_output=True, check=True)
    assert b"\x1b[31m" not in done.stdout


def test_a_link_in_one_turn_and_a_file_below_it_in_the_next_G_09(scene: Scene) -> None:
    """TESTING hostile trees: the link goes before the folder comes; what it led to is never written."""
    outside = bit_by_bit(scene.outside)
    link = (b"120000", b"x", scene.blob(b"../outside"))
    below = (b"40000", b"x", scene.tree((b"100644", b"f", scene.blob()), (b"100644", b"new", scene.blob())))
    own = git(scene.git_dir, "cat-file", "tree", f"{tip(scene.store, 's')}^{{tree}}")
    first = tip(scene.store, "s")
    scene.plant(scene.raw_tree(own + b"%s %s\0%s" % link), stand=True)
    scene.plant(scene.raw_tree(own + b"%s %s\0%s" % below), stand=True)
    git(scene.git_dir, "update-ref", "--no-deref", "refs/snapstore/cursor/s", first)
    with Store.open(scene.root) as store:
        session = store.session("s")
        base = on_disk(scene.root)
        linked = {**base, b"x": (b"120000", b"../outside")}
        folder = {**base, b"x/f": (b"100644", b"evil\n"), b"x/new": (b"100644", b"evil\n")}
        for _ in range(2):
            for plan, expected in (
                (session.plan_redo, linked),
                (session.plan_redo, folder),
                (session.plan_undo, linked),
                (lambda: session.plan_goto("3"), folder),
                (lambda: session.plan_goto("2", exact=True), linked),
                (lambda: session.plan_goto("1", exact=True), base),
            ):
                session.move(plan())
                assert on_disk(scene.root) == expected
                assert bit_by_bit(scene.outside) == outside
        session.move(session.plan_goto("2"))
        before = scene.all()
        for policy in (Policy(), Policy(FORCE), Policy(MERGE)):
            with pytest.raises(REFUSALS):
                session.move(session.plan_restore("3", [b"x/f"], policy=policy))
            assert scene.all() == before


def test_a_hundred_thousand_entries_and_a_bad_one_G_09(scene: Scene) -> None:
    """TESTING hostile trees: refused in seconds, before the first of them is written."""
    blob = scene.blob()
    rows = b"".join(b"100644 f%06d\0%s" % (number, blob) for number in range(100_000))
    session = scene.plant(scene.raw_tree(rows + b"100644 zz\0" + b"\x12" * 20), stand=False)
    before = scene.all()
    started = time.monotonic()
    for plan in (session.plan_redo, lambda: session.plan_goto("2", exact=True)):
        with pytest.raises(Corrupt):
            session.move(plan())
    assert time.monotonic() - started < 60
    assert scene.all() == before


@pytest.mark.deep
def test_a_million_entries_out_of_seven_trees_G_09(scene: Scene) -> None:
    """TESTING hostile trees: ten times ten times ten …, and every leaf a name that must not be written."""
    tree = scene.tree(*((b"100644", b".git%s" % (b" " * n), scene.blob()) for n in range(1, 11)))
    for _ in range(5):
        tree = scene.tree(*((b"40000", b"d%d" % n, tree) for n in range(10)))
    session = scene.plant(tree, stand=False)
    before = scene.all()
    with pytest.raises(Unsafe):
        session.move(session.plan_redo())
    assert scene.all() == before


# Objects whose bytes are not what they say.


def loose(scene: Scene, oid: bytes, data: bytes) -> None:
    name = oid.hex()
    write(Path(scene.git_dir, "objects", name[:2], name[2:]), data)


BOMBS = {
    "says 10 bytes, holds 300 MB": (b"blob 10\0", 300 << 20),
    "says 300 MB, holds 10": (b"blob %d\0" % (300 << 20), 10),
    "says a terabyte": (b"blob %d\0" % (1 << 40), 10),
    "says a number of a thousand digits": (b"blob " + b"9" * 1000 + b"\0", 10),
    "says less than nothing": (b"blob -1\0", 10),
    "is a link of 10 bytes, and holds 300 MB": (b"blob 10\0", 300 << 20),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_zlib_bomb_is_refused_in_little_memory_G_09_G_40(scene: Scene, kind: str) -> None:
    """TESTING hostile trees: a claimed size that lies, both ways."""
    header, size = BOMBS[kind]
    packer = zlib.compressobj(1)
    data = packer.compress(header)
    for _ in range(size // (1 << 20)):
        data += packer.compress(bytes(1 << 20))
    loose(scene, b"\x42" * 20, data + packer.compress(bytes(size % (1 << 20))) + packer.flush())
    mode = b"120000" if "link" in kind else b"100644"
    session = scene.plant(scene.with_rows((mode, b"x", b"\x42" * 20)), stand=False)
    before = bit_by_bit(scene.root), bit_by_bit(scene.outside)
    tracemalloc.start()
    try:
        for plan in (session.plan_redo, lambda: session.plan_restore("main:2", [b"x"])):
            with pytest.raises(REFUSALS):
                session.move(plan())
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    after = bit_by_bit(scene.root), bit_by_bit(scene.outside)
    assert on_disk(scene.root) == {b"a": (b"100644", b"1"), b"d/f": (b"100644", b"turn")}
    assert after[1] == before[1]


RECORDS: dict[str, object] = {
    "a list": [],
    "a word": "x",
    "nothing": None,
    "numbers": {"replies": 5, "user_git": 5, "left_out": 5, "first_seen": 5, "empty_folders": 5, "prompt": 5},
    "texts": {"replies": "x", "user_git": "x", "left_out": "x", "first_seen": "x", "empty_folders": "x"},
    "lists of numbers": {"replies": [1], "user_git": [1], "left_out": [1], "first_seen": [1], "empty_folders": [1]},
    "left out without a reason": {"left_out": [{}], "user_git": {"a": 1}},
    "folders elsewhere": {"empty_folders": ["../outside", "/", ".git", ""], "first_seen": ["../outside/f", "\ud800"]},
    "escapes": {"user_git": ["\x1b[31m"], "left_out": [{"path": "\x1b[31m", "why": "\x1b[31m"}], "prompt": "\x1b[31m"},
}


@pytest.mark.parametrize("kind", RECORDS)
def test_a_turn_s_record_may_say_anything_G_09(scene: Scene, kind: str) -> None:
    """What comes with a turn is anybody's text: a move works, or is refused by name."""
    commit = tip(scene.store, "s")
    note = json.dumps(RECORDS[kind]).encode()
    git(scene.git_dir, "notes", "--ref=turns", "add", "-f", "-F", "-", commit, feed=note)
    outside = bit_by_bit(scene.outside)
    for command in (["undo", "--preview"], ["undo", "-y"], ["goto", "1", "--exact", "-y"]):
        done = subprocess.run([*PROGRAM, *command], cwd=scene.root, capture_output=True, check=False)
        assert done.returncode in (0, 14), (command, done.stderr.decode())
        assert b"unexpected" not in done.stderr and b"\x1b[31mx" not in done.stdout
    assert bit_by_bit(scene.outside) == outside


# On disk.


def aim(scene: Scene, where: str) -> Path:
    places = {
        "outside": scene.outside / "d",
        "store": Path(scene.store.folder),
        "ssh": scene.ssh,
        "proc": Path("/proc/self"),
        "root": scene.root,
    }
    return places[where]


@pytest.mark.parametrize("where", ["outside", "store", "ssh", "proc", "root"])
def test_a_folder_that_is_a_link_now_is_not_followed_G_09(scene: Scene, where: str) -> None:
    """The file it leads to is the very one that the turn wrote: it stays all the same."""
    target = aim(scene, where)
    if where not in ("proc",):
        write(target / "f", "turn")
    remove(scene.root / "d")
    os.symlink(target, scene.root / "d")
    session = scene.session
    there = on_disk(target) if where != "proc" else {}
    for policy in (Policy(), Policy(FORCE), Policy(MERGE)):
        for plan in (
            lambda policy=policy: session.plan_undo(policy=policy),
            lambda policy=policy: session.plan_revert("1", policy=policy),
            lambda policy=policy: session.plan_restore("0", [b"d/f"], policy=policy),
        ):
            try:
                session.move(plan())
            except (*REFUSALS, Unknown):
                pass
            assert os.readlink(scene.root / "d") == str(target)
            if where != "proc":
                assert (target / "f").read_text() == "turn"
            with Store.open(scene.root) as store:  # and back, where it went through
                again = store.session("s")
                try:
                    again.move(again.plan_goto("1"))
                except REFUSALS:
                    pass
            assert os.readlink(scene.root / "d") == str(target)
            if where not in ("proc", "root", "store"):
                assert on_disk(target) == there
            if where in ("store", "root"):
                assert (target / "f").read_text() == "turn"
    assert_whole(scene.store)


def test_a_file_that_is_a_link_now_is_a_conflict_and_what_it_leads_to_stays_G_09(scene: Scene) -> None:
    remove(scene.root / "a")
    os.symlink(scene.ssh / "id", scene.root / "a")
    before = scene.all()
    session = scene.session
    for plan in (session.plan_undo, lambda: session.plan_undo(policy=Policy(MERGE))):
        with pytest.raises(Conflict):
            session.move(plan())
    assert scene.all() == before
    moved = session.move(session.plan_undo(policy=Policy(FORCE)))  # the link goes, not what it leads to
    assert not os.path.lexists(scene.root / "a")
    assert bit_by_bit(scene.ssh) == before[2]  # type: ignore[index]
    assert moved.safety is not None
    saved = git(scene.git_dir, "ls-tree", moved.safety.hex(), "a")
    assert saved.startswith(b"120000")
    session.move(session.plan_ops_undo())
    assert os.readlink(scene.root / "a") == str(scene.ssh / "id")


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder with files"])
def test_something_odd_in_the_way_is_a_conflict_G_09(scene: Scene, kind: str) -> None:
    """Never waited for, never replaced, by no policy but --skip, which leaves it."""
    session, path = scene.session, scene.root / "a"
    with session.turn("two"):
        remove(path)
        write(scene.root / "other", "2")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            here = os.getcwd()
            os.chdir(scene.root)
            server.bind("a")
            os.chdir(here)
    elif kind == "folder with files":
        write(path / "mine", "x")
    before = scene.all()
    for policy in (Policy(), Policy(FORCE), Policy(MERGE)):
        for plan in (
            lambda policy=policy: session.plan_restore("1", [b"a"], policy=policy),
            lambda policy=policy: session.plan_undo(policy=policy),
            lambda policy=policy: session.plan_revert("2", policy=policy),
        ):
            with pytest.raises(REFUSALS):
                session.move(plan())
            assert scene.all() == before
    session.move(session.plan_undo(policy=Policy(SKIP)))
    assert os.path.lexists(path) and not path.is_file()
    assert not (scene.root / "other").exists()
    assert_whole(scene.store)


def refused_in_a_child(scene: Scene, *commands: list[str]) -> Iterable[tuple[int, str]]:
    """Commands of somebody for whom file modes count."""
    for command in commands:
        done = subprocess.run(
            [*powerless(), *PROGRAM, *command], cwd=scene.root, capture_output=True, check=False, timeout=60
        )
        assert b"Traceback" not in done.stderr and b"unexpected" not in done.stderr, done
        yield done.returncode, done.stderr.decode()


@pytest.mark.parametrize("kind", ["unreadable file", "unreadable folder", "read-only folder", "read-only root"])
def test_what_may_not_be_read_or_written_stops_a_move_and_nothing_has_moved_G_27(scene: Scene, kind: str) -> None:
    with scene.session.turn("two"):
        write(scene.root / "a", "2")
        write(scene.root / "d/f", "two")
        write(scene.root / "d/new", "two")
    expected = on_disk(scene.root)
    closed = {"unreadable file": "d/f", "unreadable folder": "d", "read-only folder": "d", "read-only root": "."}[kind]
    mode = 0o000 if kind.startswith("unreadable") else 0o555
    kept = (scene.root / closed).stat().st_mode
    (scene.root / closed).chmod(mode)
    refs = all_refs(scene.store)
    commands = (["undo", "-y"], ["undo", "-y", "--force"], ["goto", "0", "-y"], ["goto", "0", "--exact", "-y"])
    try:
        for status, said in refused_in_a_child(scene, *commands):
            assert status in (1, 10, 15), (status, said)
    finally:
        (scene.root / closed).chmod(kept)
    assert on_disk(scene.root) == expected
    found = {name: oid for name, oid in all_refs(scene.store).items() if not name.startswith("refs/snapstore/safety/")}
    assert found == refs
    scene.session.move(scene.session.plan_undo())
    assert on_disk(scene.root) == {b"a": (b"100644", b"1"), b"d/f": (b"100644", b"turn")}
    assert_whole(scene.store)


def test_special_names_of_processes_and_devices_are_no_way_out_G_09(scene: Scene) -> None:
    """A link to /proc/self/cwd leads back into the root: it is a link all the same."""
    remove(scene.root / "d")
    os.symlink("/proc/self/cwd", scene.root / "d")
    write(scene.root / "f", "turn")
    code = """
import os, sys
from snapstore import SnapstoreError, Store
os.chdir(sys.argv[1])
session = Store.open(".").session("s")
try:
    session.move(session.plan_restore("0", [b"d/f"]))
except SnapstoreError as error:
    print(error.name)
"""
    done = child(code, scene.root)
    assert done.returncode == 0, done.stderr
    assert (scene.root / "f").read_text() == "turn" and (scene.root / "d").is_symlink()


# 8. The user's own repository.


@pytest.mark.parametrize("state", ["staged", "merging", "rebasing"])
def test_the_user_s_own_repository_is_bit_identical_after_any_moves_P_04(root: Path, state: str) -> None:
    """G-28: staged changes, a stash, a merge or rebase half done: none of it is ours."""
    git_in(root, "init", "-q")
    for name in ("a", "b", "deep/c"):
        write(root / name, f"{name}\n" * 10)
    git_in(root, "add", ".")
    git_in(root, "commit", "-qm", "first")
    git_in(root, "checkout", "-qb", "side")
    write(root / "a", "side\n")
    git_in(root, "commit", "-qam", "side")
    git_in(root, "checkout", "-q", "main")
    write(root / "a", "main\n")
    git_in(root, "commit", "-qam", "main")
    write(root / "b", "stashed\n")
    git_in(root, "stash")
    if state == "merging":
        git_in(root, "merge", "side", may_fail=True)
    elif state == "rebasing":
        git_in(root, "rebase", "side", may_fail=True)
    write(root / "staged", "staged\n")
    git_in(root, "add", "staged")
    write(root / "staged", "and changed since\n")
    write(root / "untracked", "mine\n")
    with Store.open(root, create=True, session="s") as store:
        session = store.session("s")
        session.take_baseline()
        before, stood = bit_by_bit(root / ".git"), git_in(root, "status", "--porcelain=v2", "--branch")
        before = bit_by_bit(root / ".git")  # after git's own refresh of its index
        start = on_disk(root)
        for number in range(1, 4):
            with session.turn(f"turn {number}"):
                write(root / f"made/{number}", "x")
                if number != 2:
                    write(root / "a", f"turn {number}\n")
                else:
                    remove(root / "deep")
                    write(root / "deep", "a file")
        end = on_disk(root)
        session.move(session.plan_undo(2))
        with session.turn("another way"):
            write(root / "staged", "by the turn\n")
        for plan in (
            lambda: session.plan_switch("main"),
            lambda: session.plan_revert("2"),
            lambda: session.plan_undo(),
            lambda: session.plan_apply("main-2:2"),
            lambda: session.plan_restore("1", [b"a"]),
            lambda: session.plan_ops_undo(),
            lambda: session.plan_ops_undo(1),
            lambda: session.plan_goto("main:3", exact=True),
        ):
            session.move(plan())
            assert bit_by_bit(root / ".git") == before
        assert on_disk(root) == end
        write(root / "a", "edited")
        session.move(session.plan_undo(3, policy=Policy(FORCE)))
        assert bit_by_bit(root / ".git") == before
        assert on_disk(root) == start
        assert_whole(store)
    assert git_in(root, "status", "--porcelain=v2", "--branch") == stood
    git_in(root, "fsck", "--strict")
    assert git_in(root, "stash", "list").count(b"\n") == 1


def test_unknown_is_a_refusal_as_well(scene: Scene) -> None:
    """Paths that no tree holds, however spelled: never looked for on disk."""
    before = scene.all()
    for path in (b"..", b"../outside/a", b"/etc/passwd", b".git/config", b"d/../a", b"\0", b"d/"):
        with pytest.raises((Unknown, Unsafe)):
            scene.session.move(scene.session.plan_restore("1", [path]))
    assert scene.all() == before


def test_every_refusal_is_of_the_family() -> None:
    assert all(issubclass(kind, SnapstoreError) for kind in REFUSALS)
    assert [kind.status for kind in REFUSALS] == [15, 14, 10]
