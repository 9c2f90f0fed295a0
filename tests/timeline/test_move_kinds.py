"""Every kind of thing becomes every other in one turn, and undo, redo and exact moves bring each back (G-35, G-28)."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import (
    Files,
    assert_cache_adds_up,
    assert_equal,
    assert_whole,
    difference,
    git_in,
    in_commit,
    on_disk,
    quick_folder,
    remove,
    tip,
    write,
)

from snapstore import Conflict, Session, Store

LIMIT = 5000
Makers = dict[str, Callable[[Path], None]]

# What no scan sees: such a one's state before a turn is known only where the turn names it.
HIDDEN = ("ignored file", "oversize file")
NESTED = "nested repository"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nested")
    git_in(folder, "init", "--quiet")
    write(folder / "tracked", "tracked\n")
    write(folder / "deep/er", "deeper\n")
    git_in(folder, "add", ".")
    git_in(folder, "commit", "--quiet", "-m", "nested")
    write(folder / "untracked", "untracked\n")
    return folder


def makers(repository: Path) -> Makers:
    return {
        "missing": lambda path: None,
        "file": lambda path: write(path, "content\n"),
        "other file": lambda path: write(path, "CONTENT\n"),
        "executable": lambda path: write(path, "#!/bin/sh\n", executable=True),
        "same bytes executable": lambda path: write(path, "content\n", executable=True),
        "empty file": lambda path: write(path, ""),
        "link": lambda path: path.symlink_to("elsewhere/tracked"),
        "link to a folder": lambda path: path.symlink_to("elsewhere"),
        "dangling link": lambda path: path.symlink_to("content\n"),
        "folder": _folder,
        NESTED: lambda path: shutil.copytree(repository, path, symlinks=True) and None,
        "ignored file": lambda path: write(path, "ignored\n"),
        "oversize file": lambda path: write(path, "large" * LIMIT),
    }


def _folder(path: Path) -> None:
    write(path / "tracked", "inside\n")
    write(path / "below/one", "inside\n", executable=True)
    (path / "link").symlink_to("tracked")


class Place:
    """A root with one thing a pair of kinds; the rules hide those that are ignored files just now."""

    def __init__(self, folder: Path, repository: Path) -> None:
        self.root = folder / "project"
        self.kinds = makers(repository)
        _folder(self.root / "elsewhere")
        write(self.root / "bystander", "never touched")
        self.store = Store.open(self.root, create=True, home=str(folder / "stores"))
        self.store.configure(max_file_size=LIMIT)
        self.session: Session = self.store.session("s")

    def pairs(self, kinds: list[str] | None = None) -> dict[str, tuple[str, str]]:
        names = kinds or list(self.kinds)
        return {f"{old} to {new}": (old, new) for old in names for new in names}

    def lay_out(self, pairs: dict[str, tuple[str, str]], side: int) -> None:
        rules = [f"/{name}\n" for name, pair in pairs.items() if pair[side] == "ignored file"]
        write(self.root / ".gitignore", "".join(rules))
        for name, pair in pairs.items():
            remove(self.root / name)
            self.kinds[pair[side]](self.root / name)

    def scan(self) -> Files:
        """What a new scan takes the disk for, with nothing remembered from before."""
        for name in ("stat", "stat.log"):
            Path(self.store.state, name).unlink(missing_ok=True)
        with Store.open(self.root, home=self.store.home) as store:
            with store.session("fresh").turn("look"):
                pass
            return in_commit(store, tip(store, "fresh"))


def under(files: Files, name: str) -> Files:
    top = os.fsencode(name)
    return {path: entry for path, entry in files.items() if path == top or path.startswith(top + b"/")}


def bystanders(root: Path) -> dict[str, tuple[int, int, int]]:
    found = {}
    for name in ("bystander", "elsewhere/tracked", "elsewhere/below/one", "elsewhere/link"):
        st = os.lstat(root / name)
        found[name] = (st.st_ino, st.st_mtime_ns, st.st_mode)
    return found


@pytest.mark.parametrize("how", ["scanned", "named"])
def test_every_kind_becomes_every_kind_and_comes_back_G_35(repository: Path, how: str) -> None:
    """One turn turns every kind into every other; undo and redo of it, and exact moves, there and back, twice.

    A nested repository's own `.git` is nobody's but the user's: where it stands in the way of a file, see below.
    """
    with quick_folder() as folder:
        place = Place(folder, repository)
        root, session, store = place.root, place.session, place.store
        pairs = {
            name: pair
            for name, pair in place.pairs().items()
            if not (pair[1] == NESTED and pair[0] not in ("missing", "folder", NESTED))
            # What was not taken cannot be put aside for a folder that was there before it: that is a conflict.
            and not (how == "scanned" and pair[0] in ("folder", NESTED) and pair[1] in HIDDEN)
        }
        place.lay_out(pairs, 0)
        start = on_disk(root)
        with session.turn("the first"):
            write(root / "begun", "1")
        turn = session.begin("Turn everything into everything")
        if how == "named":
            turn.touch(*(root / name for name in pairs))
        place.lay_out(pairs, 1)
        end = on_disk(root)
        commit = turn.end(scan=True).hex()
        aside = bystanders(root)

        def expect(side: Files) -> Files:
            """What a move must bring: the side wanted, but for what nobody could know."""
            files = {**side, b"begun": (b"100644", b"1")}
            for name, pair in pairs.items():
                if how == "named":
                    continue
                if pair[0] in HIDDEN or pair[1] == "oversize file" or pair == ("missing", "ignored file"):
                    # Its state before is not known, or it was not taken: it stays as the turn left it.
                    files = {path: entry for path, entry in files.items() if path not in under(files, name)}
                    files |= under(end, name)
            return files

        def assert_is(wanted: Files, when: str) -> None:
            wrong = difference(wanted, on_disk(root))
            assert not wrong, f"{when}\n{wrong}"
            assert bystanders(root) == aside
            assert_cache_adds_up(store)

        before, after = expect(start), expect(end)
        for _ in range(2):
            session.move(session.plan_undo())
            assert_is(before, "undo")
            session.move(session.plan_redo())
            assert_is(after, "redo")
        # Not to turn 1: what was hidden then is known only from where it was named.
        session.move(session.plan_goto(store.shadow.commit(bytes.fromhex(commit)).parents[0].hex(), exact=True))
        assert_is(before, "exact, back")
        session.move(session.plan_goto("2", exact=True))
        assert_is(after, "exact, there")
        seen = place.scan()
        tree = in_commit(store, commit)
        wrong = {path: both for path, both in difference(tree, seen).items() if path in seen or b"/" in path}
        hidden = {os.fsencode(name) for name, pair in pairs.items() if set(HIDDEN) & set(pair)}
        assert not {path: both for path, both in wrong.items() if path.split(b"/")[0] not in hidden}, wrong
        assert_whole(store)
        store.close()


@pytest.mark.parametrize("old", ["file", "executable", "link", "dangling link", "link to a folder"])
def test_a_nested_repository_in_a_file_s_place_is_never_removed_G_28_G_35(repository: Path, old: str) -> None:
    """Its `.git` may hold commits that are nowhere else: the move is refused, whatever is asked for; skipped, it is
    left; moved away by the user, all goes on."""
    with quick_folder() as folder:
        place = Place(folder, repository)
        root, session = place.root, place.session
        place.kinds[old](root / "thing")
        write(root / "other", "0")
        start = on_disk(root)
        with session.turn("clone over it"):
            remove(root / "thing")
            place.kinds[NESTED](root / "thing")
            write(root / "other", "1")
        end = on_disk(root)
        own = {path: path.lstat() for path in sorted((root / "thing/.git").rglob("*"))}
        for exact in (False, True):
            with pytest.raises(Conflict):
                session.move(session.plan_goto("0", exact=exact))
            assert on_disk(root) == end
        assert own == {path: path.lstat() for path in sorted((root / "thing/.git").rglob("*"))}
        os.rename(root / "thing/.git", folder / "saved")
        session.move(session.plan_undo())
        assert on_disk(root) == start
        session.move(session.plan_redo())
        assert on_disk(root) == end
        place.store.close()


def test_the_repository_inside_a_folder_stays_when_the_folder_goes_G_28(repository: Path) -> None:
    with quick_folder() as folder:
        place = Place(folder, repository)
        root, session = place.root, place.session
        with session.turn("clone"):
            place.kinds[NESTED](root / "thing")
        end = on_disk(root)
        session.move(session.plan_undo())
        assert os.listdir(root / "thing") == [".git"]
        assert git_in(root / "thing", "log", "--format=%s") == b"nested\n"
        session.move(session.plan_redo())
        assert on_disk(root) == end
        assert git_in(root / "thing", "status", "--porcelain") == b"?? untracked\n"
        place.store.close()


def test_kinds_in_a_chain_of_turns_G_35(repository: Path) -> None:
    """One path through all kinds, a turn each; then to every one of them from every other, plainly and exactly."""
    with quick_folder() as folder:
        place = Place(folder, repository)
        root, session, store = place.root, place.session, place.store
        order = ["missing", "file", "folder", "link", "executable", "link to a folder", "other file", "dangling link"]
        order += ["same bytes executable", "folder", "empty file", "missing", "folder"]
        states = []
        for kind in order:
            with session.turn(kind) as turn:
                remove(root / "deep/thing")
                os.makedirs(root / "deep", exist_ok=True)
                place.kinds[kind](root / "deep/thing")
            states.append(on_disk(root))
            assert turn.commit is not None
            assert_equal(store, turn.commit, states[-1])
        count = len(order)
        for step in (5, 7, 11):
            for number in range(count):
                target = number * step % count
                session.move(session.plan_goto(str(target + 1), exact=bool(number % 2)))
                wrong = difference(states[target], on_disk(root))
                assert not wrong, (order[target], wrong)
        assert_cache_adds_up(store)
        assert_whole(store)
        store.close()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444, 0o700, 0o750, 0o555])
def test_who_may_read_a_file_stays_as_it_was_G_35(root: Path, store: Store, mode: int) -> None:
    """A tree knows only whether a file is executable. A secret made private must not come back readable to all."""
    write(root / "secret", "0")
    os.chmod(root / "secret", mode)
    session = store.session("s")
    with session.turn("change it in place"), open(root / "secret", "r+b") as file:
        file.write(b"1")
    for plan in (session.plan_undo, session.plan_redo, session.plan_undo):
        session.move(plan())
        assert stat.S_IMODE(os.lstat(root / "secret").st_mode) == mode
