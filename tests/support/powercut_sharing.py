"""Power cuts while turns are shared: by a repository in a folder, or by a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from faults import age_locks
from helpers import (
    git,
    on_disk,
)
from machines import Machine, bare, prompts, server_refs, sound
from powercut_scenario import Scenario, differing

from snapstore.share.bundles import export
from snapstore.share.clone import clone
from snapstore.share.pull import pull
from snapstore.share.remotes import Remote, Remotes

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
        """Assert that the shared repository can be read and pushed to."""
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
