"""Power cuts in commands on one project: the first snapshot, turns, moves and branches."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults import NOW
from helpers import (
    all_refs,
    assert_cache_adds_up,
    assert_equal,
    assert_whole,
    difference,
    git_in,
    on_disk,
    tip,
    turn,
    write,
)
from import_stories import NAME, SESSION, Told, written
from move_lab import MOVES, NAMING, Whole, carry_out, lay_out, set_the_stage
from powercut_scenario import Scenario, differing

from snapstore import Store
from snapstore.agents.import_session import prepare
from snapstore.errors import NoStore
from snapstore.store.state import Documents
from snapstore.timeline.moves.branches import Branches

# Turns, moves and branches.


class Project(Scenario):
    """A project with three turns, and another future of the first."""

    def prepare(self) -> None:
        self.saved = lay_out(self.root, self.home)

    def state(self) -> object:
        found = Whole(self.home, self.root)
        with self.opened() as store:
            open_turns = {
                turn.session: {name: getattr(turn, name) for name in turn.__slots__} for turn in store.open_turns()
            }
            limit = Documents(store.state).header().max_file_size
        # An open turn's document that comes back is known to be over by its cursor: what counts is what is said of it.
        documents = {name: text for name, text in found.documents.items() if not name.startswith("open/")}
        return {
            "files": found.files,
            "modes": found.modes,
            "folders": dict.fromkeys(found.folders),
            "refs": found.refs,
            "head": {"HEAD": found.head},
            "documents": documents,
            "open": json.loads(json.dumps(open_turns)),
            "settings": {"limit": limit},
        }

    def all_there(self, side: str) -> None:
        left = [str(path) for path in self.root.rglob(".snapstore-*")]
        assert not left, left
        with self.opened() as store:
            assert_whole(store)
            assert_cache_adds_up(store)
            for session in [turn.session for turn in store.open_turns()]:
                commit = store.session(session).end(scan=True)
                assert_equal(store, commit, on_disk(self.root))
            session = store.session("s")
            assert_equal(store, session.begin("goes on").end(), on_disk(self.root))
            for commit, files in self.saved.items():
                session.move(session.plan_goto(commit, exact=True))
                assert on_disk(self.root) == files, f"{commit}: {difference(files, on_disk(self.root))}"
            assert_whole(store)


def moving(verb: str) -> type[Project]:
    class Moving(Project):
        moves_files = verb not in NAMING
        may_meet = verb in MOVES

        def prepare(self) -> None:
            super().prepare()
            with self.opened() as store:
                set_the_stage(store.session("s"), self.root, verb)

        def act(self) -> None:
            with self.opened() as store:
                carry_out(store.session("s"), verb)

    return Moving


def naming(change: Callable[[Branches], object], stage: Callable[[Branches], object] | None = None) -> type[Project]:
    class Naming(Project):
        def prepare(self) -> None:
            super().prepare()
            if stage is not None:
                with self.opened() as store:
                    stage(Branches(store.session("s")))

        def act(self) -> None:
            with self.opened() as store:
                change(Branches(store.session("s")))

    return Naming


class Recording(Project):
    """A turn's life. What it writes is there, durably: then files on disk are the same before and afterwards."""

    opens = True

    def prepare(self) -> None:
        super().prepare()
        with self.opened() as store:
            if self.opens:
                store.session("s").begin("the struck turn")
            write(self.root / "text", "changed in the turn")
            write(self.root / "named", "new")
            write(self.root / "new/deep/er/more", "new as well")
            (self.root / "one").unlink()


class Begin(Recording):
    opens = False

    def act(self) -> None:
        with self.opened() as store:
            store.session("s").begin("the next turn")


class BeginAnother(Recording):
    def act(self) -> None:
        with self.opened() as store:
            store.session("t").begin("in a new session")


class Touch(Recording):
    def act(self) -> None:
        with self.opened() as store:
            store.session("s").touch([self.root / "named", self.root / "also/named"])


class End(Recording):
    def act(self) -> None:
        with self.opened() as store:
            store.session("s").end(replies=["done"])


class EndNamed(Recording):
    def prepare(self) -> None:
        Project.prepare(self)
        with self.opened() as store:
            opened = store.session("s").begin("the struck turn")
            opened.touch(self.root / "named", self.root / "text")
            write(self.root / "named", "new")
            write(self.root / "text", "changed in the turn")

    def act(self) -> None:
        with self.opened() as store:
            store.session("s").end(scan=False, replies=["done"])


class Cancel(Recording):
    def act(self) -> None:
        with self.opened() as store:
            store.session("s").cancel()


class Configure(Recording):
    opens = False

    def act(self) -> None:
        with self.opened() as store:
            store.configure(max_file_size=12345)


class EndUnsynced(Project):
    """The agent syncs nothing, so its files may be lost with the power. The turn that has them is not."""

    def prepare(self) -> None:
        super().prepare()
        with self.opened() as store:
            store.session("s").begin("the struck turn")

    def just_before(self) -> None:
        write(self.root / "text", "changed in the turn")
        write(self.root / "made/by/it", "new" * 5000)
        write(self.root / "tool", "other\n", executable=True)
        self.wanted = on_disk(self.root)

    def act(self) -> None:
        with self.opened() as store:
            store.session("s").end(replies=["done"])

    def state(self) -> object:
        whole: Any = super().state()
        return {name: part for name, part in whole.items() if name not in ("files", "modes", "folders")}

    def all_there(self, side: str) -> None:
        with self.opened() as store:
            if side == "new":
                assert_equal(store, tip(store, "s"), self.wanted)
        super().all_there(side)


class ImportConversation(Project):
    """A transcript of an agent becomes turns."""

    def prepare(self) -> None:
        super().prepare()
        chat = Told()
        chat.prompt("write a module")
        chat.created("src/a.py", "def f():\n    return 1\n")
        chat.prompt("return two")
        chat.edited("src/a.py", "return 1", "return 2")
        write(self.root / "src/a.py", "def f():\n    return 2\n")
        self._transcript = written(chat, self.root)

    def act(self) -> None:
        with self.opened() as store, prepare(self._transcript, "claude", SESSION, store.root, store.home) as found:
            found.carry_out(store, NAME)


# The first of all.


class Init(Scenario):
    """A store for a folder that has none."""

    def prepare(self) -> None:
        for number in range(30):
            write(self.root / f"part{number % 7}" / f"file{number}", f"{number}\n" * 40)
        write(self.root / "tool", "#!/bin/sh\n", executable=True)
        self.home.mkdir(parents=True)
        self.files = on_disk(self.root)

    def act(self) -> None:
        with Store.open(self.root, create=True, home=str(self.home), session="s", clock=lambda: NOW) as store:
            store.session("s").take_baseline()

    def recover(self, *, program: bool) -> None:
        try:
            super().recover(program=program)
        except NoStore:
            pass
        except AssertionError as error:
            if "no-store" not in str(error):
                raise

    def state(self) -> object:
        try:
            with self.opened() as store:
                return {"refs": all_refs(store), "head": {"HEAD": Path(store.shadow.git_dir, "HEAD").read_text()}}
        except NoStore:
            return {"refs": {}, "head": {}}

    def check(self, old: object, new: object, *, done: bool, users: bytes | None, program: bool) -> str:
        """A store is there before its first snapshot is: the refs alone may come later."""
        self.recover(program=program)
        found = self.state()
        assert isinstance(found, dict) and isinstance(new, dict)
        assert found["refs"] in ({}, new["refs"]), differing(old, found, new)
        assert found == new or not done, f"reported as done, and not there: {found}"
        side = "new" if found == new else "old"
        if side == "old":
            self.act()
        with self.opened() as store:
            assert_equal(store, tip(store, "s"), self.files if side == "new" else on_disk(self.root))
            assert_whole(store)
            commit = turn(store.session("s"), self.root, "goes on", part0__file0="changed")
            assert_equal(store, commit, on_disk(self.root))
            assert_whole(store)
        return side


class InitInCheckout(Init):
    """The user's own repository was made a moment ago. Git syncs little of that, and none of it where it is told so."""

    packed = True

    def just_before(self) -> None:
        git_in(self.root, "init", "-q")
        git_in(self.root, "add", "-A")
        git_in(self.root, "commit", "-q", "-m", "all")
        if self.packed:
            git_in(self.root, "-c", "core.fsync=none", "gc", "-q")
        for path in self.root.rglob("*"):  # older than the index: nothing is racy, all of it can be borrowed
            if ".git" not in path.parts and path.is_file():
                os.utime(path, (NOW, NOW))
        git_in(self.root, "update-index", "-q", "--refresh")

    def confirm(self) -> None:
        if self.root.stat().st_dev != self.home.stat().st_dev:
            return  # no hard link leads to another disk
        with self.opened() as store:
            links = [path.stat().st_nlink for path in Path(store.shadow.objects.folder).glob("*/*")]
        assert max(links) > 1, "nothing was borrowed"


class InitInLooseCheckout(InitInCheckout):
    packed = False
