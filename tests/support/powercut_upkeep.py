"""Power cuts while a store is kept small, while something is forgotten, and while hooks are put into a home."""

from __future__ import annotations

import json
import os
from pathlib import Path

import test_keeping_kills
from faults import NOW
from forgetting import SECRET, assert_gone, forget
from helpers import (
    all_refs,
    assert_equal,
    assert_whole,
    on_disk,
    turn,
    write,
)
from powercut_scenario import Scenario

from snapstore import Store
from snapstore.agents.install.connect import Environment, connect, disconnect

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


# Hooks in the user's home.


class Connect(Scenario):
    def prepare(self) -> None:
        self._place = self.root.parent / "person"
        self._file = self._place / ".claude/settings.json"
        write(self._file, '{\n  "model": "opus"\n}\n')
        self.root.mkdir()
        self.home.mkdir()

    @property
    def _here(self) -> Environment:
        return Environment(str(self.home), str(self.root), {**os.environ, "HOME": str(self._place)})

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
