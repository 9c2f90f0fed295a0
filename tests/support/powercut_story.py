"""A day with the real program on disks that lose power after every single command: each said that it was done, so each
must still be done afterwards."""

from __future__ import annotations

import os
from pathlib import Path

from commands import snap, snap_json
from faults import age_locks
from helpers import on_disk, write
from machines import bare, server_refs
from move_lab import Whole
from powercut import Disk, in_private_mounts
from powercut_lab import Tally

from snapstore import Store
from snapstore.store.state import Documents

CHECK = ["check", "--read-data", "--json"]


class Story:
    """One project, its store, a repository to share it through, and a second machine."""

    def __init__(self, folder: Path, kind: str, *, two: bool, tally: Tally) -> None:
        self.disks = [Disk(kind, folder, name) for name in (("one", "two") if two else ("one",))]
        for disk in self.disks:
            disk.mount()
        first, second = self.disks[0].place, self.disks[-1].place
        self.home, self.other_home = first / "stores", first / "other"
        self.person = second / "person"
        self.root, self.copy = second / "project", second / "copy"
        self.hub, self.bundle = second / "hub.git", second / "turns.bundle"
        self.tally = tally

    def begin(self) -> None:
        for place in (self.home, self.root, self.other_home):
            place.mkdir()
        write(self.person / ".claude/settings.json", "{}\n")
        for number in range(5):
            write(self.root / f"part/{number}", f"{number}\n" * 50)
        write(self.root / "file", "0\n")
        write(self.root / "key", "k1\n")
        bare(self.hub)
        self._sync()

    def _sync(self) -> None:
        for disk in self.disks:
            disk.sync()

    def written(self, **files: str) -> None:
        """By an agent, or by hand. It is the program that is to be tested, so this is made durable."""
        for name, text in files.items():
            write(self.root / name, text)
        self._sync()

    def said(self, *arguments: str, copy: bool = False) -> None:
        """A command ends well; then the power goes. Nothing may have changed when it is back."""
        folder = self.copy if copy else self.root
        environment = {"SNAPSTORE_HOME": str(self.other_home if copy else self.home), "HOME": str(self.person)}
        snap(folder if folder.is_dir() else folder.parent, *arguments, **environment)
        before = self._state()
        for disk in self.disks:
            disk.cut()
        self.tally.cuts += 1
        self.tally.ends["done"] += 1
        for home in (self.home, self.other_home, self.hub):
            age_locks(home)
        wrong = [name for name, value in self._state().items() if value != before[name]]
        if wrong:
            after = self._state()
            told = [f"{name}: {before[name]!r}\n  became {after[name]!r}" for name in wrong]
            self.tally.failures.append(f"{' '.join(arguments)}, then a cut: {told}")
        answer = snap_json(folder, *CHECK, **environment)
        assert not answer["problems"], (arguments, answer)
        self.tally.sides["new"] += 1

    def _state(self) -> dict[str, object]:
        found: dict[str, object] = {
            "files": on_disk(self.root),
            "copy": on_disk(self.copy),
            "hub": server_refs(str(self.hub), "refs/"),
            "settings of the agent": (self.person / ".claude/settings.json").read_bytes(),
            "bundle": self.bundle.read_bytes() if self.bundle.exists() else None,
        }
        for name, home, root in (("store", self.home, self.root), ("its copy", self.other_home, self.copy)):
            stores = [path for path in home.iterdir() if (path / "store.git").is_dir()]
            if stores:
                with Store.open(root, home=str(home)) as store:  # the next command of any kind
                    header = Documents(store.state).header()
                    found[f"open turns in {name}"] = [turn.session for turn in store.open_turns()]
                found[f"settings of {name}"] = {key: getattr(header, key) for key in header.__slots__}
                whole = Whole(_only(stores[0], home), root)
                documents = {key: text for key, text in whole.documents.items() if not key.startswith("open/")}
                found |= {name: whole.refs, f"head of {name}": whole.head, f"documents of {name}": documents}
        return found

    def tell(self) -> None:
        self.begin()
        said = self.said
        said("init")
        said("config", "set", "max_file_size", "12345678")
        said("turn", "begin", "-m", "One")
        self.written(file="1\n", new="1\n")
        said("turn", "end")
        said("turn", "begin", "-m", "Two")
        said("turn", "touch", "file", "named")
        self.written(file="2\n", named="2\n", key="k2\n")
        said("turn", "end")
        said("undo", "-y")
        said("redo", "-y")
        said("goto", "-y", "1")
        said("turn", "begin", "-m", "Another two")
        self.written(file="other\n")
        said("turn", "end")
        said("switch", "-y", "main")
        said("branch", "rename", "main-2", "attempt")
        said("checkpoint", "here")
        said("revert", "-y", "--force", "1")
        said("restore", "-y", "1", "--", "file")
        said("ops", "undo", "-y")
        said("branch", "archive", "attempt")
        said("remote", "add", "origin", str(self.hub))
        said("push")
        said("clone", str(self.hub), str(self.copy), copy=True)
        said("turn", "begin", "-m", "There", copy=True)
        write(self.copy / "there", "3\n")
        self._sync()
        said("turn", "end", copy=True)
        said("push", copy=True)
        said("pull")
        said("export", str(self.bundle))
        said("connect", "claude")
        said("gc", "--grace", "0s")
        said("forget", "-y", "key")
        said("prune", "--older", "0s")
        said("disconnect", "claude")
        said("undo", "-y")


def tell(kind: str, *, two: bool) -> Tally:
    def work(folder: Path) -> Tally:
        tally = Tally("every command", f"{kind}, two disks" if two else kind)
        story = Story(folder, kind, two=two, tally=tally)
        story.tell()
        for disk in story.disks:
            disk.umount()
        return tally

    done = in_private_mounts(work)
    assert isinstance(done, Tally)
    return done


def _only(store: Path, home: Path) -> Path:
    """A folder in which a store is alone, as the comparison wants it: notes of connections lie in the home too."""
    place = home.parent / f".only-{home.name}"
    place.mkdir(exist_ok=True)
    link = place / store.name
    if not os.path.lexists(link):
        link.symlink_to(store)
    return place
