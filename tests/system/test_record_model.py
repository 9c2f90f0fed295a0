"""A model of recording: two sessions, two processes' views, any order of begins, edits, touches and ends.

Always: a commit taken from the disk equals it; a turn contains only paths that changed while it was open, and for each
the state before is one that the file really had in that time (so that undo can put it back), and the state after is the
one on disk. Nothing recorded is ever lost, whatever git cleans and whichever cache is thrown away.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from helpers import Files, assert_cache_adds_up, assert_equal, assert_whole, git, in_commit, line, on_disk, remove, tip
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from snapstore import Store

Entry = tuple[bytes, bytes] | None

SESSIONS = st.sampled_from(["one", "two"])
PATHS = st.sampled_from([b"a", b"b", b"d/c", b"d/e/f", b"d", b"x.ign", b"d/y.ign", b"build/out"])
KINDS = st.sampled_from(["file", "other file", "program", "link", "nothing", "nothing"])
RULES = st.sampled_from([b"", b"*.ign\n", b"build/\n", b"*.ign\nbuild/\n"])


class Recording(RuleBasedStateMachine):
    @initialize(rules=RULES)
    def make(self, rules: bytes) -> None:
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="snapstore-model-", dir=base)).resolve()
        self.root = self.folder / "project"
        self.root.mkdir()
        self.number = 0
        (self.root / ".gitignore").write_bytes(rules)
        self.home = str(self.folder / "stores")
        self.stores = {name: Store.open(self.root, create=True, home=self.home) for name in ("one", "two")}
        # For each open turn: the states each path has had since it began, what was edited, and what it has named.
        self.seen: dict[str, dict[bytes, list[Entry]]] = {}
        self.edited: dict[str, set[bytes]] = {}
        self.named: dict[str, set[bytes]] = {}
        self.recorded: dict[str, Files] = {}

    def teardown(self) -> None:
        if hasattr(self, "stores"):
            for commit, files in self.recorded.items():
                assert_equal(self.stores["one"], commit, files)
            assert_whole(self.stores["one"])
            for store in self.stores.values():
                store.close()
            shutil.rmtree(self.folder)

    # What people and agents do to files.

    @rule(path=PATHS, kind=KINDS)
    def edit(self, path: bytes, kind: str) -> None:
        before = on_disk(self.root)
        self.number += 1
        full = os.path.join(os.fsencode(self.root), path)
        for count in range(1, path.count(b"/") + 1):  # a file or link in the way of a folder
            above = os.path.join(os.fsencode(self.root), *path.split(b"/")[:count])
            if os.path.islink(above) or os.path.isfile(above):
                remove(above)
        remove(full)
        if kind != "nothing":
            os.makedirs(os.path.dirname(full), exist_ok=True)
            if kind == "link":
                os.symlink(b"a" if self.number % 2 else b"nowhere", full)
            else:
                with open(full, "wb") as file:
                    file.write(b"same bytes" if kind == "file" else b"%05d" % self.number)
                os.chmod(full, 0o755 if kind == "program" else 0o644)
        self._note(before)

    @rule(rules=RULES)
    def change_the_rules(self, rules: bytes) -> None:
        before = on_disk(self.root)
        (self.root / ".gitignore").write_bytes(rules)
        self._note(before)

    def _note(self, before: Files) -> None:
        after = on_disk(self.root)
        for path in before.keys() | after.keys():
            if before.get(path) != after.get(path):
                for session in self.seen:
                    self.edited[session].add(path)
                    self.seen[session].setdefault(path, [before.get(path)]).append(after.get(path))

    # A turn's life.

    @rule(session=SESSIONS)
    def begin(self, session: str) -> None:
        old = self._line(session)
        if session in self.seen:
            self._forget(session)  # closed as interrupted; its attribution is checked as well
            interrupted = True
        else:
            interrupted = False
        self.stores[session].session(session).begin("a turn")
        fresh = self._line(session)[len(old) :]
        kinds = [commit["trailers"]["Kind"] for commit in fresh]
        assert kinds.count("turn") == (1 if interrupted else 0)
        self._assert_is_the_disk(tip(self.stores["one"], session), set())
        self.seen[session], self.edited[session], self.named[session] = {}, set(), set()
        self._remember(session)

    @precondition(lambda self: self.seen)
    @rule(session=SESSIONS, path=PATHS)
    def touch(self, session: str, path: bytes) -> None:
        if session in self.seen:
            full = os.path.join(os.fsencode(self.root), path)
            if os.path.realpath(os.path.dirname(full)) != os.path.dirname(full):
                return  # it would name another file
            self.stores[session].session(session).touch([full])
            self.named[session].add(path)
            self._remember(session)

    @precondition(lambda self: self.seen)
    @rule(session=SESSIONS, scan=st.sampled_from([True, True, None]))
    def end(self, session: str, scan: bool | None) -> None:
        if session not in self.seen:
            return
        store = self.stores[session]
        scanned = scan or not self.named[session]
        commit = store.session(session).end(scan=scan).hex()
        others = {path for name, paths in self.named.items() if name != session for path in paths}
        if scanned:
            self._assert_is_the_disk(commit, others - self.named[session])
        self._assert_attribution(session, commit, others)
        self._remember(session)
        self._forget(session)

    @precondition(lambda self: self.seen)
    @rule(session=SESSIONS)
    def cancel(self, session: str) -> None:
        if session in self.seen:
            self.stores[session].session(session).cancel()
            self._forget(session)

    # What else may happen at any time.

    @rule(session=SESSIONS)
    def reopen(self, session: str) -> None:
        self.stores[session].close()
        self.stores[session] = Store.open(self.root, home=self.home)

    @rule(
        how=st.sampled_from([["gc", "--quiet", "--prune=now"], ["pack-refs", "--all", "--prune"], ["repack", "-adq"]])
    )
    def clean(self, how: list[str]) -> None:
        git(self.stores["one"].shadow.git_dir, *how)

    @rule(name=st.sampled_from(["stat", "stat.log"]), damage=st.sampled_from(["lost", "cut", "flipped"]))
    def damage_the_cache(self, name: str, damage: str) -> None:
        path = Path(self.stores["one"].state, name)
        if not path.exists():
            return
        data = bytearray(path.read_bytes())
        if damage == "lost" or len(data) < 10:
            path.unlink()
        elif damage == "cut":
            path.write_bytes(data[: len(data) * 2 // 3])
        else:
            data[len(data) // 2] ^= 4
            path.write_bytes(data)

    # What must hold.

    @invariant()
    def open_turns_are_known(self) -> None:
        if hasattr(self, "stores"):
            for store in self.stores.values():
                assert {turn.session for turn in store.open_turns()} == set(self.seen)
            assert_cache_adds_up(self.stores["one"])

    def _line(self, session: str) -> list[dict[str, Any]]:
        try:
            return line(self.stores["one"], session)
        except AssertionError:
            return []

    def _assert_is_the_disk(self, commit: str, claimed: set[bytes]) -> None:
        """Every path of the tree is as on disk, and every file that is not ignored is in the tree."""
        tree, disk = in_commit(self.stores["one"], commit), on_disk(self.root)
        rules = disk.get(b".gitignore", (b"", b""))[1].split()
        for path in tree.keys() | disk.keys():
            if _below(path, claimed):
                continue
            ignored = (b"*.ign" in rules and path.endswith(b".ign")) or (
                b"build/" in rules and path.startswith(b"build/")
            )
            if path in tree or not ignored:
                assert tree.get(path) == disk.get(path), (path, tree.get(path), disk.get(path))

    def _assert_attribution(self, session: str, commit: str, others: set[bytes]) -> None:
        store = self.stores["one"]
        before, after = in_commit(store, f"{commit}^"), in_commit(store, commit)
        disk = on_disk(self.root)
        for path in before.keys() | after.keys():
            old, new = before.get(path), after.get(path)
            if old == new:
                continue
            assert path in self.edited[session], f"{path!r} was not touched while the turn was open"
            assert old in self.seen[session][path], f"{path!r} never was {old} in that time"
            assert new == disk.get(path), f"{path!r} is {disk.get(path)} on disk, not {new}"

    def _remember(self, session: str) -> None:
        commit = tip(self.stores["one"], session)
        self.recorded[commit] = in_commit(self.stores["one"], commit)

    def _forget(self, session: str) -> None:
        for known in (self.seen, self.edited, self.named):
            known.pop(session)  # type: ignore[attr-defined]


def _below(path: bytes, tops: set[bytes]) -> bool:
    return any(path == top or path.startswith(top + b"/") for top in tops)


TestRecording = Recording.TestCase
TestRecording.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


class LongRecording(Recording):
    pass


TestLongRecording = pytest.mark.deep(LongRecording.TestCase)
LongRecording.TestCase.settings = settings(
    max_examples=400, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
