"""Power cuts by the book: from the trace of a command, the states that POSIX allows, and a recovery from each.

TESTING fault 13. A file system in use keeps more order than POSIX asks for, so this finds syncs that are missing where
the tests with real power cuts (which show what one file system does on one kernel) do not. Commands, store and project
are those of move_lab.py; reordering.py is the model of the disk.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import faults
import pytest
import reordering
from faults import NOW, age_locks
from helpers import Files, assert_whole, git_in, needs_strace, on_disk, quick_folder, write
from move_lab import Whole, carry_out, lay_out, set_the_stage
from reordering import ALL, FATES, NONE, SIZE, Node, Trace

from snapstore import Session, Store
from snapstore.errors import NoStore
from snapstore.git.maintenance.fold import FOLD_AT
from snapstore.timeline.maintenance.gc import collect

pytestmark = needs_strace

State = dict[bytes, Node]
TURNS = ["end", "end named", "end with packs put together"]
INITS = ["init", "init in a checkout"]
QUICK = ["end", "end named", "undo", "redo", "gc", *INITS]
MOVES = ["goto", "switch", "revert", "restore", "ops undo", "exact goto", "forced undo"]
DEEP = [*QUICK, *MOVES, "branch rename", "begin", "end with packs put together"]


class Scene:
    """A project and a store, a command on them, and what it did to the disk."""

    def __init__(self, folder: Path, verb: str) -> None:
        self.verb = verb
        self.folder = folder
        self.root, self.home = folder / "project", folder / "stores"
        self.tops = (self.root, self.home)
        self.saved: dict[str, Files] = {}
        self._prepare()
        self.template = reordering.look(os.fsencode(self.root)) | reordering.look(os.fsencode(self.home))
        self.before = self.look()
        self.work()  # all that it needs is loaded
        self.reset()
        self.trace = Trace(self.tops)
        if verb == "init in a checkout":  # git syncs few of its objects by itself
            self.trace.not_synced(os.fsencode(self.root / ".git/objects"))
        self.begin = self.trace.end()
        done = self.trace.record(self.work, folder / "log")
        assert done.status == faults.DONE, done
        self.trace.assert_true()
        self.after = self.look()

    def _prepare(self) -> None:
        if self.verb in INITS:
            write(self.root / "file", "a file")
            write(self.root / "folder/file", "another")
            self.home.mkdir()
            if self.verb == "init in a checkout":
                git_in(self.root, "init", "-q")
                git_in(self.root, "add", ".")
                git_in(self.root, "-c", "user.name=Ada", "-c", "user.email=a@b.c", "commit", "-qm", "first")
            return
        self.saved = lay_out(self.root, self.home)
        with self.opened() as store:
            session = store.session("s")
            if self.verb in TURNS:
                turn = session.begin("the next turn")
                if self.verb == "end named":
                    turn.touch(self.root / "named", self.root / "deep/keep")
                elif self.verb == "end with packs put together":
                    packs = Path(store.shadow.objects.pack_folder)
                    while len(list(packs.glob("*.pack"))) < FOLD_AT - 1:
                        write(self.root / "one more", str(len(list(packs.glob("*.pack")))))
                        self.saved[session.end().hex()] = on_disk(self.root)
                        session.begin("one more")
                write(self.root / "named", "new")
                write(self.root / "deep/keep", "changed in the turn")
            else:
                set_the_stage(session, self.root, self.verb)

    def opened(self) -> Store:
        return Store.open(self.root, home=str(self.home), clock=lambda: NOW)

    def work(self) -> None:
        if self.verb in INITS:
            with Store.open(self.root, create=True, home=str(self.home), session="s", clock=lambda: NOW) as store:
                store.session("s").take_baseline()
            return
        with self.opened() as store:
            self._act(store, store.session("s"))

    def _act(self, store: Store, session: Session) -> None:
        if self.verb in ("end", "end with packs put together"):
            session.end(replies=["done"])
        elif self.verb == "end named":
            session.end(scan=False, replies=["done"])
        elif self.verb == "begin":
            session.begin("the next turn")
        elif self.verb == "gc":
            collect(store, grace=0)
        else:
            carry_out(session, self.verb)

    def look(self) -> Whole | None:
        """Call it after the recovery: the store itself says which turns are open. The document of one that is over may
        come back, and is known to be stale by its cursor."""
        if not any(not path.name.startswith(".") for path in self.home.iterdir()):
            return None
        whole = Whole(self.home, self.root)
        with self.opened() as store:
            opened = {f"open/{turn.session}.json" for turn in store.open_turns()}
        whole.documents = {
            name: text for name, text in whole.documents.items() if not name.startswith("open/") or name in opened
        }
        return whole

    def reset(self) -> None:
        reordering.lay_down(self.template, self.tops)
        if self.verb == "init in a checkout":  # git's index knows the files that were just written
            for name in ("file", "folder/file"):
                os.utime(self.root / name, (NOW, NOW))
            git_in(self.root, "update-index", "--refresh")

    def key(self, whole: Whole | None) -> object:
        return whole and whole.key()

    def side(self) -> str:
        """Old or new, as a whole."""
        found = self.look()
        if self.key(found) == self.key(self.after):
            return "new"
        assert self.key(found) == self.key(self.before), f"neither old nor new: {self._mixed(found)}"
        return "old"

    def _mixed(self, found: Whole | None) -> dict[str, list[str]]:
        """Where a state is new, and where it is neither."""
        if found is None or self.before is None or self.after is None:
            return {"store": ["there" if found is not None else "gone"]}
        mixed: dict[str, list[str]] = {"new": [], "neither": []}
        for part in ("files", "modes", "refs", "documents"):
            old, now, new = (getattr(whole, part) for whole in (self.before, found, self.after))
            for name in sorted(old.keys() | now.keys() | new.keys()):
                one, two, three = old.get(name), now.get(name), new.get(name)
                if two not in (one, three):
                    mixed["neither"].append(f"{part} {name!r}: {two!r:.60}")
                elif two != one:
                    mixed["new"].append(f"{part} {name!r}")
        for part in ("folders", "head"):
            old, now, new = (getattr(whole, part) for whole in (self.before, found, self.after))
            mixed["new" if now == new else "neither"] += [part] if now != old else []
        return mixed

    def lay_down(self, state: State) -> None:
        reordering.lay_down(state, self.tops)
        age_locks(self.home)

    def recover(self, state: State) -> str:
        """The next command after a power cut that left this on the disk. Says which side it is on."""
        self.lay_down(state)
        try:
            self.opened().close()
        except NoStore:
            assert self.verb in INITS
            assert on_disk(self.root) == {b"file": (b"100644", b"a file"), b"folder/file": (b"100644", b"another")}
            self.work()  # it can be made, whatever lies about
            with self.opened() as store:
                assert_whole(store)
            return "old"
        side = self.side()
        left = [str(path) for path in self.root.rglob(".snapstore-*")]
        assert not left, left
        with self.opened() as store:
            assert_whole(store)
        return side

    def assert_all_there(self) -> None:
        """Every turn ever taken restores to the byte, and another can be taken."""
        if self.verb in INITS:
            return
        with self.opened() as store:
            session = store.session("s")
            if any(turn.session == "s" for turn in store.open_turns()):
                session.cancel()
            for commit, files in self.saved.items():
                session.move(session.plan_goto(commit, exact=True))
                assert on_disk(self.root) == files, commit
            with session.turn("one more"):
                write(self.root / "one more", "1")
            assert_whole(store)


class Sample:
    """Legal states of a trace, each with a word on how it came about; never the same state twice."""

    def __init__(self, trace: Trace, seed: int) -> None:
        self.trace = trace
        self.dice = random.Random(seed)
        self._known: set[bytes] = set()

    def at(self, cut: int) -> Iterator[tuple[str, State]]:
        """The states after a cut at a moment that say most about a missing sync, in a random order."""
        trace, dice = self.trace, self.dice
        loose = trace.loose_names(cut)
        ways: list[tuple[str, list[int], Callable[[int], str]]] = [
            ("only what is durable", [], lambda _: NONE),
            ("names in order, no data", loose, lambda _: NONE),
            ("names in order, zeros", loose, lambda _: SIZE),
            ("data, no names", [], lambda _: ALL),
            ("everything", loose, lambda _: ALL),
        ]
        for missing in loose:
            rest = [n for n in loose if missing not in trace.closed([n])]
            ways.append((f"without {trace.describe([missing])}", rest, lambda _: ALL))
            ways.append((f"only {trace.describe([missing])}", [missing], lambda _: NONE))
        if loose:
            first = loose[: dice.randrange(len(loose)) + 1]
            ways.append((f"up to {trace.describe(first[-1:])}, no data", first, lambda _: NONE))
        for _ in range(4):
            some = [n for n in loose if dice.random() < 0.5]
            fates: dict[int, str] = {}

            def fate(node: int, fates: dict[int, str] = fates) -> str:
                return fates.setdefault(node, dice.choice(FATES))

            ways.append((f"some of it: {trace.describe(some)}", some, fate))
        dice.shuffle(ways)
        # Every second time that first which most file systems do: names in order, and sizes before bytes.
        ways.sort(key=lambda way: cut % 2 == 1 or way[0] != "names in order, zeros")
        for word, names, fates_of in ways:
            state = trace.build(cut, names, fates_of, dice)
            if self._is_new(state):
                yield f"cut {cut} of {trace.end()}, {word}", state

    def _is_new(self, state: State) -> bool:
        digest = hashlib.sha1(usedforsecurity=False)
        for path, node in state.items():
            digest.update(b"%s\0%s%d\0%d\0%s" % (path, node.kind.encode(), node.mode, len(node.data), node.data))
        fresh = digest.digest() not in self._known
        self._known.add(digest.digest())
        return fresh

    def everywhere(self, most: int, begin: int = 0) -> Iterator[tuple[int, str, State]]:
        """So many, a quarter of them from after the last change, the others from all moments alike."""
        end = self.trace.end()
        taken = 0
        for word, state in self.at(end):
            yield end, word, state
            taken += 1
            if taken >= max(most // 4, 1):
                break
        moments = {cut: self.at(cut) for cut in range(begin + 1, end)}
        while moments and taken < most:
            for cut in self.dice.sample(sorted(moments), len(moments)):
                found = next(moments[cut], None)
                if found is None:
                    del moments[cut]
                    continue
                yield cut, *found
                taken += 1
                if taken >= most:
                    return


@contextmanager
def scene(verb: str) -> Iterator[Scene]:
    with quick_folder() as folder:
        yield Scene(folder, verb)


class Tally:
    """Counts states by how they ended; the failures are told together."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._counts: dict[str, int] = {}
        self._failures: list[str] = []

    def count(self, word: str, one: Callable[[], str]) -> None:
        try:
            end = one()
        except Exception as error:
            end = "failed"
            self._failures.append(f"{word}: {error!r}"[:1500])
        self._counts[end] = self._counts.get(end, 0) + 1

    def tell(self) -> None:
        total = sum(self._counts.values())
        print(f"{self._what}: {total} states, {self._counts}")
        assert total, "no state was tried"
        assert not self._failures, f"{len(self._failures)} of {total}\n" + "\n".join(self._failures[:20])


def recover_from_all(verb: str, most: int, seed: int) -> None:
    tally = Tally(f"legal reorderings, {verb}")
    with scene(verb) as stage:
        end = stage.trace.end()
        for number, (cut, word, state) in enumerate(Sample(stage.trace, seed).everywhere(most, stage.begin)):

            def one(number: int = number, cut: int = cut, state: State = state) -> str:
                side = stage.recover(state)
                assert side == "new" or cut < end, "it was reported as done, and is gone"
                if number % 8 == 0:
                    stage.assert_all_there()
                return side

            tally.count(word, one)
    tally.tell()


@pytest.mark.parametrize("verb", QUICK)
def test_recovers_from_the_states_that_a_power_cut_may_leave(verb: str) -> None:
    recover_from_all(verb, 18, seed=1)


@pytest.mark.deep
@pytest.mark.parametrize("verb", DEEP)
@pytest.mark.parametrize("seed", range(2))
def test_recovers_from_all_states_that_a_power_cut_may_leave(verb: str, seed: int) -> None:
    recover_from_all(verb, 400, seed=seed)


def edit_after(verb: str, most: int, seed: int) -> None:
    """The command is done, the user puts a file back by hand, and the power goes: the file stays as saved."""
    tally = Tally(f"legal reorderings, an edit after {verb}")
    with scene(verb) as stage:
        assert stage.before is not None and stage.after is not None
        was, now = stage.before.files[b"text"], stage.after.files[b"text"]
        assert was != now
        for number, (word, state) in enumerate(Sample(stage.trace, seed).at(stage.trace.end())):
            if number == most:
                break

            def one(state: State = state) -> str:
                stage.lay_down(state)
                write(stage.root / "text", was[1].decode())
                stage.opened().close()
                assert on_disk(stage.root) == {**stage.after.files, b"text": was}
                return "kept"

            tally.count(word, one)
    tally.tell()


@pytest.mark.parametrize("verb", ["undo", "redo"])
def test_a_finished_move_is_not_carried_out_again_over_an_edit(verb: str) -> None:
    edit_after(verb, 8, seed=1)


@pytest.mark.deep
@pytest.mark.parametrize("verb", ["undo", "redo", "goto", "switch", "revert", "restore", "ops undo", "exact goto"])
def test_no_finished_move_is_carried_out_again_over_an_edit(verb: str) -> None:
    edit_after(verb, 200, seed=2)


def cut_again(verb: str, firsts: int, most: int, seed: int) -> None:
    """The power goes again while the next command mends what the first cut left."""
    tally = Tally(f"legal reorderings, a second cut after {verb}")
    with scene(verb) as stage:
        first = Sample(stage.trace, seed)
        for _, word, state in first.everywhere(firsts):
            stage.lay_down(state)
            second = Trace(stage.tops)
            done = second.record(lambda: stage.opened().close(), stage.folder / "log")
            assert done.status == faults.DONE, done
            second.assert_true()
            if not any(change.what != "fsync" and change.node != 0 for change in second.changes):
                continue
            settled = stage.side()
            for cut, again, state2 in Sample(second, seed).everywhere(most):

                def one(cut: int = cut, state: State = state2, end: int = second.end(), side: str = settled) -> str:
                    found = stage.recover(state)
                    assert found == side or cut < end, "it was reported as settled, and is not"
                    return found

                tally.count(f"{word}; then {again}", one)
    tally.tell()


def test_a_second_power_cut_during_the_recovery_is_survived() -> None:
    cut_again("undo", 6, 4, seed=3)


@pytest.mark.deep
@pytest.mark.parametrize("verb", ["end", "undo", "redo", "switch", "exact goto"])
def test_second_power_cuts_during_the_recovery_are_survived(verb: str) -> None:
    cut_again(verb, 60, 12, seed=4)
