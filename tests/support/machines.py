"""Machines that share a project: separate homes and separate roots, with a bare repository between them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from commands import snap, snap_json
from helpers import all_refs, assert_whole, git, turn

from snapstore import Store
from snapstore.share.clone import CloneResult, attach, clone
from snapstore.share.pull import Pulled, pull
from snapstore.share.push import push
from snapstore.share.remotes import Remotes
from snapstore.share.sending import Pushed


def bare(path: Path) -> str:
    """Make an empty repository, as on any git server."""
    subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True)
    return str(path)


class Machine:
    """One person's home and the project's folder in it."""

    def __init__(self, base: Path, name: str) -> None:
        self.name = name
        self.home = base / name / "stores"
        self.root = base / name / f"project-{name}"  # roots differ between machines

    def init(self, **files: str) -> Machine:
        """Make the project's files and its store."""
        self.root.mkdir(parents=True)
        for name, text in files.items():
            (self.root / name).write_text(text)
        with Store.open(self.root, create=True, home=str(self.home)) as store:
            store.configure(machine_name=self.name)
        return self

    def clone(self, url: str) -> CloneResult:
        self.root.parent.mkdir(parents=True, exist_ok=True)
        done = clone(str(self.home), url, str(self.root))
        self._named()
        return done

    def attach(self, url: str) -> CloneResult:
        done = attach(str(self.home), os.fsencode(self.root), url)
        self._named()
        return done

    def _named(self) -> None:
        with self.open() as store:
            store.configure(machine_name=self.name)

    @contextmanager
    def open(self) -> Iterator[Store]:
        with Store.open(self.root, home=str(self.home)) as store:
            yield store

    def remote(self, url: str, *, auto: bool = False) -> Machine:
        with self.open() as store:
            Remotes(store).add("origin", url, auto=auto)
        return self

    def turn(self, prompt: str, /, session: str = "shell", **files: str | None) -> str:
        with self.open() as store:
            return turn(store.session(session), self.root, prompt, **files)

    def push(self, **options: Any) -> Pushed:
        with self.open() as store:
            return push(store, Remotes(store).find(None), **options)

    def pull(self) -> Pulled:
        with self.open() as store:
            return pull(store, Remotes(store).find(None))

    def refs(self, prefix: str = "refs/heads/") -> dict[str, str]:
        with self.open() as store:
            return {ref: oid for ref, oid in all_refs(store).items() if ref.startswith(prefix)}

    def prompts(self) -> set[str]:
        """Return the prompts of everybody's turns, read with `git log` alone."""
        with self.open() as store:
            return prompts(store.shadow.git_dir)

    def whole(self) -> None:
        with self.open() as store:
            assert_whole(store)

    def snap(self, *arguments: str, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        return snap(self.root, *arguments, status=status, **self._environment(), **environment)

    def snap_json(self, *arguments: str, status: int = 0, **environment: str) -> dict[str, Any]:
        return snap_json(self.root, *arguments, status=status, **self._environment(), **environment)

    def _environment(self) -> dict[str, str]:
        return {"SNAPSTORE_HOME": str(self.home), "SNAPSTORE_MACHINE": self.name}

    def read(self, name: str) -> str:
        return (self.root / name).read_text()


def prompts(git_dir: str) -> set[str]:
    """Of every turn that branches, archived ones too, and checkpoints lead to."""
    shown = "%s%x00%(trailers:key=Snapstore-Kind,valueonly)"
    places = ["--glob=refs/heads/*", "--glob=refs/tags/*", "--glob=refs/snapstore/archive/*"]
    rows = git(git_dir, "log", f"--format={shown}", *places).decode().split("\n")
    pairs = [row.partition("\0") for row in rows if row]
    return {subject for subject, _, kind in pairs if kind.strip() == "turn"}


def server_refs(url: str, prefix: str = "refs/heads/") -> dict[str, str]:
    """The refs of a server; of its branches only lines, not the branch for `git clone` (test_share_clone.py)."""
    found = {ref: oid for ref, oid in all_refs(url).items() if ref.startswith(prefix)}
    return {ref: oid for ref, oid in found.items() if not ref.startswith("refs/heads/") or ref.count("/") > 2}


def sound(url: str) -> None:
    git(url, "fsck", "--strict", "--no-dangling")
