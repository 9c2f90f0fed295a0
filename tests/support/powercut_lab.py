"""Cuts the power at many calls of one command on one file system, and counts the cuts."""

from __future__ import annotations

import collections
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import faults
from powercut import Disk, forked, in_private_mounts, mounted, points, stopped_at
from powercut_scenario import Scenario
from powercut_scenarios import SCENARIOS

from snapstore.store.handle import failed

# What reaches the disk by itself before the power goes: see Disk.
BEFORE_THE_CUT = ["nothing", "nothing", "unrelated", "some", "one disk", "everything"]
AFTER_SUCCESS = "success"
SPARE = [0, 4096, 16384, 65536]  # bytes left on a full disk

# What the user saves, and syncs, in one of the command's files between the command and the cut.
NOTHING, OWN, FORMER = "", "bytes of their own", "what was there before the command"
MEANWHILE = "bytes of their own, in the middle of the command"
OWN_BYTES = b"saved by the user\n"

# How a command may end before the cut. It refuses where a git that it started was killed, or where the disk is full.
ENDS = {faults.DONE: "done", faults.REFUSED: "refused"}
SEED = int(os.environ.get("POWERCUT_SEED", "15"))


@dataclass(frozen=True)
class Cut:
    """The command is stopped at this call, or goes on to its end; then this much is synced; then the power goes."""

    call: str
    number: int
    synced: str
    saved: str = NOTHING
    early: int = 0  # just before this change of the command, somebody else syncs or saves a file
    spare: int = -1  # bytes left on the disks, which are full otherwise; -1: they are not

    def __str__(self) -> str:
        at = f"{self.call} {self.number}" if self.number else f"after {self.call}"
        early = f", and before change {self.early}" if self.early else ""
        if self.spare >= 0:
            early += f", {self.spare} bytes left"
        return f"{at}, synced: {self.synced}{early}{f', saved: {self.saved}' if self.saved else ''}"


@dataclass
class Tally:
    """The outcome of the cuts of one command on one file system."""

    command: str
    kind: str
    cuts: int = 0
    ends: collections.Counter[str] = field(default_factory=collections.Counter)  # of the command, before the cut
    sides: collections.Counter[str] = field(default_factory=collections.Counter)  # of what was found afterwards
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = ", ".join(f"{number} {what}" for what, number in sorted((self.ends + self.sides).items()))
        return f"{self.command}, {self.kind}: {self.cuts} cuts ({told}), {len(self.failures)} failures"


class Lab:
    """The disks with the command's project on them, and both of its ends."""

    def __init__(self, folder: Path, command: str, kind: str, *, two: bool) -> None:
        self.folder = folder
        self.disks = [Disk(kind, folder, name) for name in (("one", "two") if two else ("one",))]
        for disk in self.disks:
            disk.mount()
        self.scenario = SCENARIOS[command](self.disks[0].place, self.disks[-1].place)
        self.scenario.prepare()
        for disk in self.disks:
            disk.sync()
            disk.umount()
            disk.keep()
        with mounted(self.disks):
            self.old = self.scenario.state()
            self.scenario.just_before()
            self.scenario.act()  # and all that it needs is loaded
            self.new = self.scenario.state()
            self.scenario.confirm()
            assert self.old != self.new or command.startswith("gc"), "it changes nothing: there is nothing to test"

    def points(self) -> list[tuple[str, int]]:
        with mounted(self.disks):
            self.scenario.just_before()
            return points(self.scenario.act, self.folder / "calls")

    def run(self, cut: Cut, dice: random.Random, tally: Tally) -> None:
        with mounted(self.disks):
            self.scenario.just_before()
            (self.folder / "saved").unlink(missing_ok=True)
            for disk in self.disks if cut.spare >= 0 else ():
                disk.fill(cut.spare)
            meanwhile = self._save_own if cut.saved == MEANWHILE else self._sync_unrelated
            struck = stopped_at(self._act, cut.call, cut.number, (cut.early, meanwhile) if cut.early else None)
            if struck.status == faults.BROKEN:
                tally.failures.append(f"{cut}: {struck}")
                return
            may_fail = cut.number or cut.saved == MEANWHILE or cut.spare >= 0
            assert may_fail or struck.status == faults.DONE, struck
            saved = self._saved(cut.saved)
            self._sync(cut.synced, dice)
            for disk in self.disks:
                disk.cut()
                disk.make_room()
            tally.cuts += 1
            tally.ends[ENDS.get(struck.status, "killed")] += 1
            self._check(cut, struck.status == faults.DONE, saved, dice.random() < 0.1, tally)

    def _act(self) -> None:
        try:
            self.scenario.act()
        except OSError as error:
            raise failed(error) from error  # as the command line does it

    def _check(self, cut: Cut, done: bool, saved: bytes | None, program: bool, tally: Tally) -> None:
        told = self.folder / "side"

        def check() -> None:
            told.write_text(self.scenario.check(self.old, self.new, done=done, users=saved, program=program))

        wrong = forked(check)
        if wrong is None:
            tally.sides[told.read_text()] += 1
        else:
            tally.failures.append(f"{cut}: {wrong}")

    def _saved(self, what: str) -> bytes | None:
        """Saves what the user is to save after the command. Gives what must be there after the cut."""
        if what == MEANWHILE:  # where the command came so far
            return OWN_BYTES if (self.folder / "saved").exists() else None
        if what == FORMER:
            assert isinstance(self.old, dict)
            return self._save(self.old["files"][b"text"][1])
        return self._save(OWN_BYTES) if what == OWN else None

    def _save_own(self) -> None:
        self._save(OWN_BYTES)
        (self.folder / "saved").touch()

    def _save(self, data: bytes) -> bytes:
        """Save as an editor does: write and sync a new file, then rename it over the old one."""
        root = self.scenario.root
        with open(root / "text~", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(root / "text~", root / "text")
        fd = os.open(root, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        return data

    def _sync(self, how: str, dice: random.Random) -> None:
        if how == "unrelated":
            self._sync_unrelated()
        elif how == "some":
            for disk in self.disks:
                disk.sync_some(dice)
        elif how == "one disk":
            dice.choice(self.disks).sync()
        elif how == "everything":
            for disk in self.disks:
                disk.sync()

    def _sync_unrelated(self) -> None:
        for disk in self.disks:
            disk.sync_unrelated()


def cuts(
    found: list[tuple[str, int]], most: int, dice: random.Random, scenario: Scenario, *, may_fill: bool
) -> list[Cut]:
    """So many of them: always some after success, and calls of every kind."""
    users = scenario.moves_files
    chosen = [Cut(AFTER_SUCCESS, 0, synced) for synced in ("nothing", "unrelated", "some")]
    if users:
        chosen += [Cut(AFTER_SUCCESS, 0, "nothing", saved) for saved in (OWN, FORMER)]
    if scenario.may_meet:
        chosen += [Cut(AFTER_SUCCESS, 0, "nothing", MEANWHILE, dice.randint(1, len(found))) for _ in range(2)]
    dice.shuffle(chosen)
    chosen = chosen[: max(1, most // 4)]
    by_call: dict[str, list[int]] = {}
    for call, number in found:
        by_call.setdefault(call, []).append(number)
    for numbers in by_call.values():
        dice.shuffle(numbers)
    while len(chosen) < most and by_call:
        for call in sorted(by_call, key=lambda _: dice.random()):
            numbers = by_call[call]
            early = dice.randint(1, len(found)) if dice.random() < 0.4 else 0
            saved = OWN if users and dice.random() < 0.3 else NOTHING
            if early and scenario.may_meet and dice.random() < 0.5:
                saved = MEANWHILE
            cut = Cut(call, numbers.pop(), dice.choice(BEFORE_THE_CUT), saved, early)
            if may_fill and dice.random() < 0.1:
                cut = Cut(cut.call, cut.number, dice.choice(["nothing", "everything"]), spare=dice.choice(SPARE))
            chosen.append(cut)
            if not numbers:
                del by_call[call]
    return chosen[:most]


def cut_often(command: str, kind: str, most: int, *, two: bool = False) -> Tally:
    """Cut a command at several places and return the outcome."""

    def choose(lab: Lab, dice: random.Random) -> list[Cut]:
        return cuts(lab.points(), most, dice, lab.scenario, may_fill=kind != "btrfs")

    return _cut(command, kind, choose, two=two)


def cut_here(command: str, kind: str, places: list[Cut], *, two: bool = False) -> Tally:
    """Cut a command at given places."""
    return _cut(command, kind, lambda lab, dice: places, two=two)


def _cut(command: str, kind: str, choose: Callable[[Lab, random.Random], list[Cut]], *, two: bool) -> Tally:
    def work(folder: Path) -> Tally:
        label = f"{kind}, two disks" if two else kind
        tally = Tally(command, label)
        dice = random.Random(f"{SEED} {command} {label}")
        lab = Lab(folder, command, kind, two=two)
        for cut in choose(lab, dice):
            lab.run(cut, dice, tally)
        return tally

    done = in_private_mounts(work)
    assert isinstance(done, Tally)
    return done
