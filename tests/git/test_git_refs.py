"""Refs: git and we move the same ones at the same time, and none is lost."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from helpers import all_refs, child, git, git_in, killed_at, living_child, plain_environment, turn, write

from snapstore import Conflict, Corrupt, Store, Unsafe
from snapstore.base.locks import is_alive, process_started
from snapstore.git.refs import Refs, RefValue, bad_part, spell
from snapstore.timeline.moves.branches import Branches


@pytest.fixture
def repository(tmp_path: Path) -> tuple[str, list[bytes]]:
    """A bare repository and a few commits in it."""
    git_in(tmp_path, "init", "--quiet", "--bare", "x.git")
    git_dir = str(tmp_path / "x.git")
    tree = git(git_dir, "mktree", feed=b"").decode().strip()
    commits = [git(git_dir, "commit-tree", "-m", str(number), tree).decode().strip() for number in range(5)]
    return git_dir, [bytes.fromhex(commit) for commit in commits]


def test_a_ref_moves_from_old_to_new_or_not_at_all(repository: tuple[str, list[bytes]]) -> None:
    git_dir, (a, b, c, *_) = repository
    refs = Refs(git_dir)
    name = "refs/heads/s/main"
    assert refs.read(name) is None
    refs.update(name, None, a)
    assert (refs.read(name), all_refs(git_dir)) == (a, {name: a.hex()})
    for old in (None, b):
        with pytest.raises(Conflict) as caught:
            refs.update(name, old, c)
        assert caught.value.details["ref"] == name
    refs.update(name, a, b)
    assert git(git_dir, "rev-parse", name).decode().strip() == b.hex()
    git(git_dir, "pack-refs", "--all", "--prune")
    assert refs.read(name) == b
    refs.update(name, b, c)
    assert (refs.read(name), refs.list("refs/")) == (c, {name: c})
    refs.update(name, c, None)
    assert (refs.read(name), all_refs(git_dir), refs.list("refs/heads/")) == (None, {}, {})
    with pytest.raises(Conflict):
        refs.update(name, c, a)
    assert not list(Path(git_dir).rglob("*.lock"))


def test_refs_are_listed_as_git_lists_them(repository: tuple[str, list[bytes]]) -> None:
    """Loose, packed, both at once, annotated tags with their peeled lines, odd names."""
    git_dir, commits = repository
    names = ["refs/heads/a/b", "refs/heads/a/c", "refs/tags/t", "refs/notes/turns", "refs/snapstore/disk", "refs/x/y/z"]
    names += ["refs/heads/ünï", "refs/heads/a-b", "refs/heads/a.b/c"]
    for number, name in enumerate(names):
        git(git_dir, "update-ref", name, commits[number % 5].hex())
    git(git_dir, "tag", "-a", "-m", "x", "annotated", commits[0].hex())
    git(git_dir, "pack-refs", "--all", "--prune")
    for name in names[::2]:
        git(git_dir, "update-ref", name, commits[4].hex())
    refs = Refs(git_dir)
    expected = {name: bytes.fromhex(oid) for name, oid in all_refs(git_dir).items()}
    assert refs.list("refs/") == expected
    assert refs.list("refs/heads/") == {name: oid for name, oid in expected.items() if name.startswith("refs/heads/")}
    assert refs.list("refs/heads/a/").keys() == {"refs/heads/a/b", "refs/heads/a/c"}
    for name, oid in expected.items():
        assert refs.read(name) == oid
    # the tag's peeled line goes with it, and nobody else's
    refs.update("refs/tags/annotated", expected["refs/tags/annotated"], None)
    del expected["refs/tags/annotated"]
    assert refs.list("refs/") == expected
    assert {name: bytes.fromhex(oid) for name, oid in all_refs(git_dir).items()} == expected


def many(commits: list[bytes], number: int = 100) -> list[tuple[str, RefValue, RefValue]]:
    return [(f"refs/heads/s/b{at}", None, commits[at % 4]) for at in range(number)]


def test_very_many_are_made_and_taken_away_at_once(repository: tuple[str, list[bytes]]) -> None:
    """Among others of all kinds, which stay as they are: packed, loose, and a tag with what it leads to."""
    git_dir, commits = repository
    git(git_dir, "tag", "-a", "-m", "x", "annotated", commits[0].hex())
    git(git_dir, "update-ref", "refs/heads/a", commits[1].hex())
    git(git_dir, "pack-refs", "--all", "--prune")
    git(git_dir, "update-ref", "refs/heads/loose", commits[2].hex())
    before = all_refs(git_dir)
    shown = git(git_dir, "show-ref", "-d")
    tag = bytes.fromhex(before["refs/tags/annotated"])
    refs = Refs(git_dir)
    moves: list[tuple[str, RefValue, RefValue]] = [*many(commits), ("refs/tags/second", None, tag)]
    refs.update_all([*moves, ("refs/heads/loose", commits[2], commits[3])])
    after = {name: new.hex() for name, _, new in moves if isinstance(new, bytes)}
    assert all_refs(git_dir) == {**before, **after, "refs/heads/loose": commits[3].hex()}
    assert refs.list("refs/") == {name: bytes.fromhex(oid) for name, oid in all_refs(git_dir).items()}
    peeled = git(git_dir, "show-ref", "-d", "--tags").decode().splitlines()
    assert [row.split()[1] for row in peeled if row.startswith(commits[0].hex())] == [
        "refs/tags/annotated^{}",
        "refs/tags/second^{}",
    ]
    assert not (Path(git_dir) / "refs/heads/s").exists()
    refs.update_all([(name, new, old) for name, old, new in moves] + [("refs/heads/loose", commits[3], commits[2])])
    assert (all_refs(git_dir), git(git_dir, "show-ref", "-d")) == (before, shown)
    assert not list(Path(git_dir).rglob("*.lock"))


def test_many_at_once_are_all_made_or_none(repository: tuple[str, list[bytes]]) -> None:
    git_dir, commits = repository
    git(git_dir, "update-ref", "refs/heads/s/b50", commits[4].hex())
    git(git_dir, "pack-refs", "--all", "--prune")
    before = all_refs(git_dir)
    with pytest.raises(Conflict, match="b50 moved meanwhile"):
        Refs(git_dir).update_all(many(commits))
    for name in ("refs/heads/s", "refs/heads/s/b50/below"):
        with pytest.raises(Conflict, match="in the way"):
            Refs(git_dir).update_all([*many(commits)[:50], *many(commits)[51:], (name, None, commits[0])])
    assert all_refs(git_dir) == before
    assert not list(Path(git_dir).rglob("*.lock"))


def test_symbolic_refs_lead_where_git_says(repository: tuple[str, list[bytes]]) -> None:
    git_dir, (a, b, *_) = repository
    refs = Refs(git_dir)
    refs.update("refs/heads/s/main", None, a)
    head = refs.value("HEAD")
    refs.update("HEAD", head, "refs/heads/s/main")
    refs.update("refs/snapstore/cursor/s", None, "refs/heads/s/main")
    assert git(git_dir, "symbolic-ref", "HEAD") == b"refs/heads/s/main\n"
    assert git(git_dir, "rev-parse", "refs/snapstore/cursor/s").decode().strip() == a.hex()
    assert refs.read("refs/snapstore/cursor/s") == a
    assert refs.value("refs/snapstore/cursor/s") == "refs/heads/s/main"
    refs.update("refs/heads/s/main", a, b)
    assert refs.read("refs/snapstore/cursor/s") == b
    git(git_dir, "pack-refs", "--all", "--prune")
    assert refs.read("refs/snapstore/cursor/s") == b
    assert refs.value("refs/snapstore/cursor/s") == "refs/heads/s/main"
    refs.update("refs/snapstore/cursor/s", "refs/heads/s/main", a)  # detached, as an undo leaves it
    assert refs.read("refs/snapstore/cursor/s") == a
    assert refs.read("refs/heads/s/main") == b


@pytest.mark.parametrize("content", [b"", b"\0" * 41, b"garbage\n", b"0123", b"g" * 40 + b"\n"])
def test_a_damaged_ref_is_refused_by_name(repository: tuple[str, list[bytes]], content: bytes) -> None:
    """As an unsynced write leaves them after a power cut: empty, or full of zeros."""
    git_dir, (a, b, *_) = repository
    refs = Refs(git_dir)
    refs.update("refs/heads/s/main", None, a)
    refs.update("refs/heads/t/main", None, b)
    Path(git_dir, "refs/heads/s/main").write_bytes(content)
    with pytest.raises(Corrupt, match="refs/heads/s/main"):
        refs.read("refs/heads/s/main")
    with pytest.raises(Corrupt, match="refs/heads/s/main"):
        refs.update("refs/heads/s/main", a, b)
    assert refs.read("refs/heads/t/main") == b
    assert not list(Path(git_dir).rglob("*.lock"))


NAMES = ["main", "a.b", "ünï", "a-b", "@x", "x" * 200]
BAD = ["", ".", "..", ".x", "x.", "x.lock", "-x", "a..b", "a@{b", "@", "a b", "a~b", "a^b", "a:b", "a?b", "a*b", "a[b"]
BAD += ["a\\b", "a/b", "a\x7fb", "a\nb", "a\0b", "\x1b"]


def test_names_are_judged_as_git_judges_them() -> None:
    for name in NAMES:
        assert not bad_part(name)
        assert subprocess.run(["git", "check-ref-format", f"refs/heads/{name}"], check=False).returncode == 0
    for name in BAD:
        assert bad_part(name), name


@pytest.mark.parametrize("name", ["refs", "refs/", "refs/x", "heads/main", "refs/heads/../../config", "/etc/passwd"])
def test_names_that_are_no_refs_are_refused(repository: tuple[str, list[bytes]], name: str) -> None:
    git_dir, (a, *_) = repository
    before = sorted(os.listdir(git_dir))
    for action in (lambda: Refs(git_dir).read(name), lambda: Refs(git_dir).update(name, None, a)):
        with pytest.raises(Unsafe):
            action()
    assert sorted(os.listdir(git_dir)) == before


COUNTER = """
import sys
from snapstore.errors import Conflict
from snapstore.git.refs import Refs
git_dir, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
commits = [bytes.fromhex(text) for text in sys.argv[4:]]
refs = Refs(git_dir)
done = 0
while done < rounds:
    now = refs.read(name)
    after = commits[(commits.index(now) + 1) % len(commits)]
    try:
        refs.update(name, now, after)
        done += 1
    except Conflict:
        pass
print(done)
"""

PACKER = """
import subprocess, sys
print("ready", flush=True)
while True:
    subprocess.run(["git", "--git-dir", sys.argv[1], "pack-refs", "--all", "--prune"], stderr=subprocess.DEVNULL)
"""


def test_no_move_is_lost_between_three_of_us_and_git_packing_refs(repository: tuple[str, list[bytes]]) -> None:
    """Each success is one step around a ring of commits: at the end the ref stands where the sum of steps leads."""
    git_dir, commits = repository
    name, rounds, workers = "refs/heads/s/main", 60, 3
    git(git_dir, "update-ref", name, commits[0].hex())
    ring = [commit.hex() for commit in commits]
    with living_child(PACKER, git_dir, environment=plain_environment()):
        running = [
            subprocess.Popen(
                [sys.executable, "-c", COUNTER, git_dir, name, str(rounds), *ring],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in range(workers)
        ]
        for worker in running:
            out, err = worker.communicate(timeout=100)
            assert worker.returncode == 0, err.decode()
            assert int(out) == rounds
    assert Refs(git_dir).read(name) == commits[rounds * workers % len(commits)]
    assert git(git_dir, "rev-parse", name).decode().strip() == commits[rounds * workers % len(commits)].hex()


def test_no_move_is_lost_between_us_and_git_moving_the_same_ref(repository: tuple[str, list[bytes]]) -> None:
    """git's own compare-and-swap on the other side, in a loop of `git update-ref <new> <old>`."""
    git_dir, commits = repository
    name = "refs/heads/s/main"
    git(git_dir, "update-ref", name, commits[0].hex())
    ring = [commit.hex() for commit in commits]
    code = """
import subprocess, sys
git_dir, name, ring = sys.argv[1], sys.argv[2], sys.argv[3:]
def git(*arguments):
    return subprocess.run(["git", "--git-dir", git_dir, *arguments], capture_output=True, text=True)
done = 0
for _ in range(120):
    now = git("rev-parse", name).stdout.strip()
    if now in ring:
        after = ring[(ring.index(now) + 1) % len(ring)]
        done += git("update-ref", name, after, now).returncode == 0
print(done)
"""
    theirs = subprocess.Popen([sys.executable, "-c", code, git_dir, name, *ring], stdout=subprocess.PIPE)
    ours = child(COUNTER, git_dir, name, 300, *ring)
    out, _ = theirs.communicate(timeout=100)
    assert ours.returncode == 0, ours.stderr.decode()
    total = int(ours.stdout) + int(out)
    assert Refs(git_dir).read(name) == commits[total % len(commits)]


def test_deleting_one_packed_ref_while_others_move_keeps_the_others(repository: tuple[str, list[bytes]]) -> None:
    git_dir, commits = repository
    names = [f"refs/heads/s/b{number}" for number in range(40)]
    for name in names:
        git(git_dir, "update-ref", name, commits[0].hex())
    refs = Refs(git_dir)
    with living_child(PACKER, git_dir, environment=plain_environment()):
        for name in names[::2]:
            refs.update(name, commits[0], None)
            assert refs.read(name) is None
        for name in names[1::2]:
            refs.update(name, commits[0], commits[1])
    assert refs.list("refs/heads/s/") == dict.fromkeys(names[1::2], commits[1])
    assert all_refs(git_dir) == dict.fromkeys(names[1::2], commits[1].hex())


def test_a_ref_that_another_program_moved_stops_the_turn_and_nothing_is_lost(root: Path, store: Store) -> None:
    """`git update-ref` on our branch while a turn is open: the turn is not recorded on the wrong line."""
    with store.session("s").turn("first"):
        write(root / "a", "1")
    first = Refs(store.shadow.git_dir).read("refs/heads/s/main")
    assert first is not None
    turn = store.session("s").begin("second")
    tree = git(store.shadow.git_dir, "rev-parse", f"{first.hex()}^{{tree}}").decode().strip()
    foreign = git(store.shadow.git_dir, "commit-tree", "-p", first.hex(), "-m", "by hand", tree).decode().strip()
    git(store.shadow.git_dir, "update-ref", "refs/heads/s/main", foreign)
    write(root / "a", "2")
    try:
        turn.end()
    except Exception as error:
        assert getattr(error, "name", "") in ("unknown", "conflict"), error
    store.session("s").begin("third").end()
    log = git(store.shadow.git_dir, "log", "--format=%s", "refs/heads/s/main").decode()
    assert "by hand" in log
    assert git(store.shadow.git_dir, "show", "refs/heads/s/main:a") == b"2"


def test_values_are_spelled_as_git_spells_them() -> None:
    assert spell(bytes(20)) == "0" * 40
    assert spell("refs/heads/x") == "ref: refs/heads/x"


def test_a_recovery_leaves_no_lock_behind(root: Path, store: Store) -> None:
    """A kill may leave the lock of a ref that has moved already, and of packed-refs, and then git refuses to work."""
    session = store.session("s")
    turn(session, root, "one", a="1")
    session.move(session.plan_undo())
    turn(session, root, "two", a="2")
    git_dir = Path(store.shadow.git_dir)
    seen = set()
    for nth in itertools.count(1, 2):
        git(git_dir, "pack-refs", "--all")
        killed = killed_at(nth, partial(Branches(session).archive, "main"))
        seen |= {path.name for path in git_dir.rglob("*.lock")}
        store.close()
        with Store.open(root) as store:
            session = store.session("s")
            pending = store.recovered is not None
            assert not pending or not list(git_dir.rglob("*.lock")), nth
            if not list(git_dir.rglob("archive/s/main")):
                for lock in git_dir.rglob("*.lock"):
                    lock.unlink()
                continue
            Branches(session).unarchive("main")
        if not killed:
            break
    assert {"packed-refs.lock", "main.lock"} <= seen


def test_a_process_is_known_by_its_number_and_when_it_began() -> None:
    """After a restart of the machine the number of a dead process soon belongs to another."""
    began = process_started(os.getpid())
    assert is_alive(str(os.getpid())) and is_alive(f"{os.getpid()} {began}")
    assert not is_alive(f"{os.getpid()} 1") and not is_alive("given up") and not is_alive("")
