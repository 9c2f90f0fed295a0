"""What the other side lacks: never too little, and not much more than git would list."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from helpers import git
from transporting import MAIN, History

from snapstore.git.objects import reachability
from snapstore.git.objects.ids import COMMIT, Missing, object_id


def listed(git_dir: str, *words: str) -> set[str]:
    return {row.split()[0] for row in git(git_dir, "rev-list", "--objects", *words).decode().splitlines()}


@pytest.mark.parametrize("seed", range(6))
def test_never_too_little(tmp_path: Path, seed: int) -> None:
    """Random trees of turns, random ideas of what the other side has: with that and the list, nothing is missing."""
    chance = random.Random(seed)
    history = History(tmp_path / "ours.git")
    git_dir, objects = str(history.git_dir), history.shadow.objects
    commits = [history.tip]
    for number in range(90):
        on = chance.choice(commits[-6:]) if chance.random() < 0.3 else None
        commits.append(history.turn(on=on, ref=f"refs/heads/shell/b{number}" if on else None))
    for _ in range(12):
        tips = chance.sample(commits, chance.randrange(1, 4))
        known = chance.sample(commits, chance.randrange(0, 4))
        found = [item[0].hex() for item in reachability.new_objects(objects, tips, [*known, bytes(20)])]
        assert len(found) == len(set(found)), "each once"
        words = [oid.hex() for oid in tips] + [f"^{oid.hex()}" for oid in known]
        needed = listed(git_dir, *[oid.hex() for oid in tips])
        there = listed(git_dir, *[oid.hex() for oid in known]) if known else set()
        assert needed <= set(found) | there
        assert set(found) <= needed
        assert len(found) <= len(listed(git_dir, *words)) * 1.3 + 8 * 5, "a few turns too many at most"


def test_a_turn_on_a_long_history_reads_only_what_is_new(tmp_path: Path) -> None:
    """Cost grows with what is new, never with the length of the history."""
    history = History(tmp_path / "ours.git", turns=150)
    old, new = history.tip, history.turn()
    reads: list[bytes] = []
    objects = history.shadow.objects
    real = objects.read

    def counted(oid: bytes) -> tuple[bytes, bytes]:
        reads.append(oid)
        return real(oid)

    objects.read = counted  # type: ignore[method-assign]
    items = list(reachability.new_objects(objects, [new], [old]))
    assert len(items) == 4
    assert len(reads) <= 8
    assert {path for _, _, path, _ in items} == {b"", b"folder3", items[-2][2]}
    assert all(commit == new for _, _, _, commit in items)
    reads.clear()
    assert reachability.is_ancestor(objects, old, new) and len(reads) <= 2
    assert not reachability.is_ancestor(objects, new, old)


def test_a_second_baseline_like_the_first_costs_little(tmp_path: Path) -> None:
    """A new session begins with a commit of its own, without parents: what is in the first one's tree is there."""
    history = History(tmp_path / "ours.git", turns=2, files=300)
    first = history.tip
    writer = history.shadow.objects.writer()
    data = history.shadow.objects.read(first)[1]
    lines = [line for line in data.split(b"\n") if not line.startswith(b"parent ")]
    alone = writer.add(COMMIT, b"\n".join(lines))
    history.shadow.objects.release(history.shadow.objects.finish(writer))
    assert alone == object_id(COMMIT, b"\n".join(lines))
    assert [item[0] for item in reachability.new_objects(history.shadow.objects, [alone], [first])] == [alone]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    history = History(tmp_path / "ours.git", turns=1)
    with pytest.raises(Missing):
        list(reachability.new_objects(history.shadow.objects, [bytes(20)], []))
    assert list(reachability.new_objects(history.shadow.objects, [history.tip], [history.tip])) == []
    tag = git(str(history.git_dir), "-c", "tag.gpgSign=false", "tag", "-a", "-m", "named", "kept", MAIN)
    assert tag == b""
    oid = bytes.fromhex(git(str(history.git_dir), "rev-parse", "refs/tags/kept").decode())
    kinds = [item[1] for item in reachability.new_objects(history.shadow.objects, [oid], [history.tip])]
    assert kinds == [b"tag"]


def test_a_branch_from_half_way_does_not_bring_the_baseline_again(tmp_path: Path) -> None:
    """Undo three turns and go on: the other side has the node where the lines part, though no ref of it says so."""
    history = History(tmp_path / "ours.git", turns=2, files=300)
    middle = history.tip
    for _ in range(3):
        history.turn()
    known = history.tip
    tip = history.turn(on=middle, ref="refs/heads/shell/other")
    assert len(list(reachability.new_objects(history.shadow.objects, [tip], [known]))) == 4


@pytest.mark.parametrize("seed", range(4))
def test_where_it_is_said_what_is_held_the_walk_ends_there(tmp_path: Path, seed: int) -> None:
    """The same objects as git lists, none of which is held, and no look at anything below what is."""
    chance = random.Random(seed)
    history = History(tmp_path / "ours.git")
    git_dir, objects = str(history.git_dir), history.shadow.objects
    commits = [history.tip]
    for number in range(60):
        on = chance.choice(commits[-6:]) if chance.random() < 0.3 else None
        commits.append(history.turn(on=on, ref=f"refs/heads/shell/b{number}" if on else None))
    for _ in range(12):
        tips, known = chance.sample(commits, 3), chance.sample(commits, chance.randrange(1, 4))
        there = listed(git_dir, *[oid.hex() for oid in known])
        found = [
            item[0].hex()
            for item in reachability.new_objects(objects, tips, (), lambda oid, there=there: oid.hex() in there)  # type: ignore[misc]
        ]
        assert len(found) == len(set(found)), "each once"
        assert set(found) - there == listed(git_dir, *[oid.hex() for oid in tips]) - there
