"""What a power cut interrupts: for each command a project to begin with, the command, and what must hold afterwards."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import test_keeping_kills
from helpers import (
    all_refs,
    assert_cache_adds_up,
    assert_equal,
    assert_whole,
    git,
    git_in,
    on_disk,
    tip,
    turn,
    write,
)
from machines import Machine, bare, prompts, server_refs, sound
from test_cli import snap_json
from test_faults_matrix import NOW
from test_forget import SECRET, assert_gone, forget
from test_move_faults import MOVES, NAMING, VERBS, Whole, age_locks, carry_out, lay_out, set_the_stage

from snapstore import Store
from snapstore.agents.connecting import Here, connect, disconnect
from snapstore.errors import NoStore
from snapstore.share.attach import clone
from snapstore.share.bundles import export
from snapstore.share.pull import pull
from snapstore.share.remotes import Remote, Remotes
from snapstore.timeline.branches import Branches
from snapstore.timeline.documents import Documents


class Scenario:
    """One command. `first` and `second` are folders, on one disk or on two."""

    moves_files = False  # so a file that the user saves before the cut may be in its way
    may_meet = False  # and one saved while the command is at work; it must not be one that replaces such files

    def __init__(self, first: Path, second: Path) -> None:
        self.home, self.root = first / "stores", second / "project"

    def prepare(self) -> None:
        """What is on the disks, durably, before anything else."""

    def just_before(self) -> None:
        """What others do before the command, and nobody syncs."""

    def act(self) -> None:
        """The command."""
        raise NotImplementedError

    def confirm(self) -> None:
        """After the command, uncut: it did what the test is about."""

    def state(self) -> object:
        """All that the command changes, as one comparable value."""
        raise NotImplementedError

    def recover(self, *, program: bool) -> None:
        """The next command of any kind, with no help."""
        age_locks(self.home)  # it takes a while to start a machine again
        if program:
            snap_json(self.root, "status", "--json", SNAPSTORE_HOME=str(self.home))
        else:
            self.opened().close()

    def check(self, old: object, new: object, *, done: bool, users: bytes | None, program: bool) -> str:
        """Raises AssertionError where something is lost; says on which side it came out."""
        self.recover(program=program)
        found = self.state()
        if users is not None:
            assert (self.root / "text").read_bytes() == users, "what the user saved was overwritten"
            found, old, new = (_without_text(state) for state in (found, old, new))
        assert found in (old, new), f"neither old nor new: {differing(old, found, new)}"
        side = "new" if found == new else "old"
        assert side == "new" or not done, f"reported as done, and not there: {differing(old, found, new)}"
        self.all_there(side)
        return side

    def all_there(self, side: str) -> None:
        """Nothing that was recorded earlier is lost, and work goes on."""
        raise NotImplementedError

    def opened(self) -> Store:
        return Store.open(self.root, home=str(self.home), clock=lambda: NOW)


def differing(old: Any, found: Any, new: Any) -> object:
    """What keeps it from being the state that it is nearest to: part, name, expected, found."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return {"old": old, "found": found, "new": new}
    return min((list(_unlike(side, found)) for side in (old, new)), key=len)


def _unlike(expected: dict[str, Any], found: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    for part, value in found.items():
        if not isinstance(value, dict):
            if value != expected[part]:
                yield part, expected[part], value
            continue
        for name in value.keys() | expected[part].keys():
            if value.get(name) != expected[part].get(name):
                yield part, name, expected[part].get(name), value.get(name)


def _without_text(state: Any) -> Any:
    return {
        name: {key: one for key, one in part.items() if key != b"text"} if isinstance(part, dict) else part
        for name, part in state.items()
    }


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
                assert on_disk(self.root) == files, commit
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


# Keeping the store small, and forgetting.


def keeping(what: str) -> type[Scenario]:
    class Keeping(Scenario):
        """The project of the kill tests, which has something to pack, to drop, to prune and to forget."""

        def __init__(self, first: Path, second: Path) -> None:
            super().__init__(first, second)
            self._first, self._second = first, second

        def prepare(self) -> None:
            if self._first != self._second:
                self._first.joinpath("template").mkdir()
                self._second.joinpath("template").symlink_to(self._first / "template")
            self._lab = test_keeping_kills.Lab(self._second)
            self.home, self.root = self._lab.template, self._lab.root

        def opened(self) -> Store:
            return self._lab.open(self.home)

        def act(self) -> None:
            self._lab.doing(what, self.home)()

        def state(self) -> object:
            with self.opened() as store:
                return {"refs": all_refs(store)}

        def all_there(self, side: str) -> None:
            with self.opened() as store:
                for commit, files in self._lab.saved.items():
                    assert_equal(store, commit, files)
                assert_whole(store)
                for path in Path(store.shadow.objects.pack_folder).iterdir():
                    os.utime(path, (NOW, NOW))  # what might be a living git's is left alone for an hour
                self.act()
                store.shadow.objects.reload()
                assert_whole(store)
                if what != "prune":
                    packs = sorted(path.name for path in Path(store.shadow.objects.pack_folder).iterdir())
                    assert len(packs) == 2, packs
                assert_equal(store, store.session("s").begin("goes on").end(), on_disk(self.root))
                assert_whole(store)

    return Keeping


class Forget(Scenario):
    def prepare(self) -> None:
        self.root.mkdir()
        with Store.open(self.root, create=True, home=str(self.home), session="s1", clock=lambda: NOW) as store:
            session = store.session("s1")
            turn(session, self.root, "One", a="1", key=SECRET)
            turn(session, self.root, f"Two {SECRET}", a="2")
            turn(session, self.root, "Three", key=SECRET + "3", b="3")
            session.move(session.plan_undo(1))

    def act(self) -> None:
        with self.opened() as store:
            forget(store, "key")

    def state(self) -> object:
        with self.opened() as store:
            return {"refs": all_refs(store), "never": store.header.never_capture}

    def all_there(self, side: str) -> None:
        with self.opened() as store:
            assert_whole(store)
            if side == "old":
                forget(store, "key")
            assert_gone(store)
            commit = turn(store.session("s1"), self.root, "On", z="z")
            expected = {path: entry for path, entry in on_disk(self.root).items() if path != b"key"}
            assert_equal(store, commit, expected)
            assert_whole(store)


# Sharing.


class Sharing(Scenario):
    """Ada's project on the first disk, and on the second the folder that she shares it through."""

    def __init__(self, first: Path, second: Path) -> None:
        super().__init__(first, second)
        self.base = first
        self.hub = second / "hub.git"
        self.ada, self.bob = Machine(first, "ada"), Machine(first, "bob")

    def prepare(self) -> None:
        self.ada.init(f="0\n").remote(bare(self.hub))
        self.ada.turn("One", f="1\n")
        self.ada.push()

    def recover(self, *, program: bool) -> None:
        for machine in (self.ada, self.bob):
            if machine.home.exists():
                age_locks(machine.home)
        age_locks(self.hub)

    def _more(self) -> None:
        self.ada.turn("Two", f="2\n")
        self.ada.turn("Noted", session="notes", f="3\n")

    def _hub_serves(self) -> None:
        """Whoever looks at it sees what is there, and can push."""
        sound(str(self.hub))
        late = Machine(self.base, "late")
        late.clone(str(self.hub))
        assert late.prompts() == prompts(str(self.hub)) >= {"One"}
        late.turn("Late", f="late\n")
        late.push()
        sound(str(self.hub))


class Push(Sharing):
    def prepare(self) -> None:
        super().prepare()
        self._more()
        self._own, self._disk = self.ada.refs(), on_disk(self.ada.root)

    def act(self) -> None:
        self.ada.push()

    def state(self) -> object:
        return {"hub": server_refs(str(self.hub))}

    def check(self, old: Any, new: Any, *, done: bool, users: bytes | None, program: bool) -> str:
        """No repository of git moves several refs in one instant: each is old or new."""
        self.recover(program=program)
        found = server_refs(str(self.hub))
        for ref in old["hub"] | new["hub"] | found:
            assert found.get(ref) in (old["hub"].get(ref), new["hub"].get(ref)), (ref, found)
        side = "new" if found == new["hub"] else "old"
        assert side == "new" or not done, f"reported as pushed, and not there: {found}"
        self._hub_serves()
        assert self.ada.refs() == self._own and on_disk(self.ada.root) == self._disk
        self.ada.pull()
        self.ada.push()
        found = server_refs(str(self.hub))
        assert self._own.items() <= found.items(), found
        assert b"Noted" in git(str(self.hub), "notes", "--ref=turns", "show", self._own["refs/heads/notes/main"])
        sound(str(self.hub))
        self.ada.whole()
        return side


class Pull(Sharing):
    def prepare(self) -> None:
        super().prepare()
        self.bob.clone(str(self.hub))
        self.bob.turn("Bob's", b="b\n")
        self._more()
        self.ada.push()
        self._disk = on_disk(self.bob.root)

    def act(self) -> None:
        self.bob.pull()

    def state(self) -> object:
        return {"refs": self.bob.refs()}

    def all_there(self, side: str) -> None:
        self.bob.whole()
        self.bob.pull()
        assert self.bob.prompts() == {"One", "Two", "Noted", "Bob's"} and on_disk(self.bob.root) == self._disk
        with self.bob.open() as store:
            noted = self.bob.refs()["refs/heads/notes/main"]
            assert b"Noted" in git(store.shadow.git_dir, "notes", "--ref=turns", "show", noted)
        self.bob.turn("goes on", b="c\n")
        self.bob.whole()
        sound(str(self.hub))


class Clone(Sharing):
    def prepare(self) -> None:
        super().prepare()
        self._more()
        self.ada.push()
        self.bob.root.parent.mkdir()

    def act(self) -> None:
        clone(str(self.bob.home), str(self.hub), str(self.bob.root))

    def _stores(self) -> list[str]:
        home = self.bob.home
        return [name for name in (os.listdir(home) if home.is_dir() else []) if not name.startswith(".")]

    def state(self) -> object:
        if not self._stores():
            return {"prompts": set(), "files": {}}
        return {"prompts": self.bob.prompts(), "files": on_disk(self.bob.root)}

    def check(self, old: Any, new: Any, *, done: bool, users: bytes | None, program: bool) -> str:
        self.recover(program=program)
        bob = self.bob
        if done:
            assert self.state() == new, f"reported as cloned, and not there: {differing(old, self.state(), new)}"
        if self._stores():
            bob.whole()
            assert bob.prompts() == new["prompts"]
            if on_disk(bob.root) != new["files"]:
                bob.snap("goto", "--exact", "@", "--session", "notes", "-y")
        else:
            assert not bob.root.exists() or not os.listdir(bob.root)
            bob.clone(str(self.hub))
        assert on_disk(bob.root) == new["files"]
        bob.whole()
        bob.turn("goes on", f="c\n")
        bob.whole()
        return "new" if done else "old"


class Export(Sharing):
    def prepare(self) -> None:
        super().prepare()
        self._file = self.hub.parent / "turns.bundle"

    def act(self) -> None:
        with self.ada.open() as store:
            export(store, str(self._file))

    def state(self) -> object:
        return {"file": {"there": self._file.exists()}}

    def all_there(self, side: str) -> None:
        if side == "old":
            self.act()
        self.bob.root.parent.mkdir()
        self.bob.clone(str(self._file))
        assert self.bob.prompts() == {"One"}
        self.bob.whole()
        self.ada.whole()


class ImportBundle(Pull):
    """What comes in a file instead."""

    def prepare(self) -> None:
        super().prepare()
        self._file = self.hub.parent / "turns.bundle"
        with self.ada.open() as store:
            export(store, str(self._file))

    def act(self) -> None:
        with self.bob.open() as store:
            pull(store, Remote("", str(self._file)))


class AddRemote(Sharing):
    def act(self) -> None:
        with self.ada.open() as store:
            Remotes(store).add("other", str(self.hub))

    def state(self) -> object:
        with self.ada.open() as store:
            return {"remotes": {remote.name: remote.url for remote in Remotes(store).list()}}

    def all_there(self, side: str) -> None:
        self.ada.whole()
        self.ada.turn("goes on", f="c\n")
        self.ada.push()


# Hooks in the user's home.


class Connect(Scenario):
    def prepare(self) -> None:
        self._place = self.root.parent / "person"
        self._file = self._place / ".claude/settings.json"
        write(self._file, '{\n  "model": "opus"\n}\n')
        self.root.mkdir()
        self.home.mkdir()

    @property
    def _here(self) -> Here:
        return Here(str(self.home), str(self.root), {**os.environ, "HOME": str(self._place)})

    def act(self) -> None:
        os.environ["HOME"] = str(self._place)
        connect(self._here, "claude", "user", ["snapstore"])

    def state(self) -> object:
        return {"file": {"text": self._file.read_bytes()}}

    def recover(self, *, program: bool) -> None:
        pass

    def all_there(self, side: str) -> None:
        self.act()
        assert b"snapstore" in self._file.read_bytes()
        disconnect(self._here, "claude", ["user"])
        assert json.loads(self._file.read_text()) == {"model": "opus"}


class ConnectNew(Connect):
    """There was no such file."""

    def prepare(self) -> None:
        super().prepare()
        self._file.unlink()
        self._file.parent.rmdir()

    def state(self) -> object:
        return {"file": {"text": self._file.read_bytes() if self._file.exists() else None}}

    def all_there(self, side: str) -> None:
        self.act()
        assert b"snapstore" in self._file.read_bytes()
        disconnect(self._here, "claude", ["user"])
        assert not self._file.exists()


class Disconnect(Connect):
    def prepare(self) -> None:
        super().prepare()
        super().act()

    def act(self) -> None:
        os.environ["HOME"] = str(self._place)
        disconnect(self._here, "claude", ["user"])

    def all_there(self, side: str) -> None:
        self.act()
        assert json.loads(self._file.read_text()) == {"model": "opus"}


SCENARIOS: dict[str, type[Scenario]] = {
    "init": Init,
    "init in a packed checkout": InitInCheckout,
    "init in a loose checkout": InitInLooseCheckout,
    "begin": Begin,
    "begin in a new session": BeginAnother,
    "touch": Touch,
    "end by scan": End,
    "end named": EndNamed,
    "end of unsynced files": EndUnsynced,
    "cancel": Cancel,
    "config set": Configure,
    **{verb: moving(verb) for verb in VERBS},
    "branch archive": naming(lambda names: names.archive("main-2")),
    "branch unarchive": naming(lambda names: names.unarchive("main-2"), lambda names: names.archive("main-2")),
    "branch promote": naming(lambda names: names.promote("main-2")),
    **{what: keeping(what) for what in test_keeping_kills.DOINGS},
    "forget": Forget,
    "push": Push,
    "pull": Pull,
    "clone": Clone,
    "export": Export,
    "import": ImportBundle,
    "remote add": AddRemote,
    "connect": Connect,
    "connect anew": ConnectNew,
    "disconnect": Disconnect,
}
