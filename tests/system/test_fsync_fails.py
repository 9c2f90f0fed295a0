"""A sync that fails once: what it should have saved does not count as saved because a later sync succeeds.

TESTING fault 14. Linux reports a failed write-back to one fsync and then takes the pages for clean: the bytes are seen
by every program until the power goes, and the next fsync of the file succeeds without having written them. So after a
failure either the command is refused and everything is old, also after a power cut; or it went on with a file written
anew, and what it reports as done is durable. Each sync of a command fails once here, the next command runs as if
nothing were, and then the power goes (reordering.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import faults
import pytest
from helpers import needs_strace, on_disk, quick_folder, write
from reordering import Trace
from test_reordering import INITS, Sample, Scene, State, Tally

pytestmark = needs_strace

SYNCS = ("fsync", "fdatasync", "syncfs")
QUICK = ["end", "undo", "gc"]
DEEP = ["begin", "end", "end named", "undo", "redo", "goto", "switch", "restore", "exact goto", "redo of many"]
DEEP += ["forced undo", "branch rename", "gc", *INITS]


class Failed:
    """A command one of whose syncs failed, and the next command after it."""

    def __init__(self, stage: Scene, call: str, number: int) -> None:
        self.stage = stage
        stage.reset()
        self.trace = Trace(stage.tops)
        rule = f"inject={call}:error=EIO:when={number}"
        self.done = self.trace.record(stage.work, stage.folder / "log", "-e", rule)
        # A git that we start counts for itself, so not every number comes up.
        self.fired = "(INJECTED)" in (stage.folder / "log").read_text(errors="replace")
        assert self.done.status in (faults.DONE, faults.REFUSED), self.done
        self.ended = self.trace.end()
        again = self.trace.record(self._next_command, stage.folder / "log")
        assert again.status == faults.DONE, again
        self.trace.assert_true()
        self.side = "old" if stage.verb in INITS and stage.look() is None else stage.side()
        self._assert_honest(self.side)

    def _next_command(self) -> None:
        if self.stage.verb in INITS and self.stage.look() is None:
            return
        self.stage.opened().close()

    def _assert_honest(self, side: str) -> None:
        """What was said agrees with what is."""
        if self.done.status == faults.DONE:
            assert side == "new", "it was reported as done, and is not"
            return
        said = self.done.error
        assert said["message"], said
        assert said["hint"], said
        if side == "new" and self.stage.verb != "gc":  # that changes nothing which could be seen
            assert said["error"] == "interrupted", f"reported as refused, and was done: {said}"

    def states(self, dice: int, most: int) -> Iterator[tuple[str, State, bool]]:
        """Power cuts after the next command, and (True) right after the failure."""
        for cut, at_once in ((self.trace.end(), False), (self.ended, True)):
            for lossy in (True, False):
                self.trace.lossy = lossy
                for taken, (word, state) in enumerate(Sample(self.trace, dice).at(cut)):
                    if taken == most:
                        break
                    yield f"{'lost' if lossy else 'late'}, {word}", state, at_once

    def recover(self, state: State, *, at_once: bool) -> str:
        side = self.stage.recover(state)
        if at_once:
            self._assert_honest(side)
            return side
        if self.stage.verb in INITS and self.done.status == faults.REFUSED and self.side == "new":
            assert "a power cut may remove it" in self.done.error["hint"]
            return side
        assert side == self.side, f"it was {self.side} before the power went, and is {side}"
        self._assert_edit_stays(state)
        return side

    def _assert_edit_stays(self, state: State) -> None:
        """All is settled. A file that the user brings back by hand to what it was before is not moved again."""
        stage = self.stage
        if stage.before is None or stage.after is None:
            return
        here, there = stage.after.files, stage.before.files
        if self.side == "old":
            here, there = there, here
        if here.get(b"text") == there.get(b"text"):
            return
        stage.lay_down(state)
        write(stage.root / "text", there[b"text"][1].decode())
        stage.opened().close()
        assert on_disk(stage.root)[b"text"] == there[b"text"], "moved again, over an edit"


def fail_each_sync(verb: str, every: int, most: int, seed: int) -> None:
    tally = Tally(f"a sync that fails once, {verb}")
    with quick_folder() as folder:
        stage = Scene(folder, verb)
        stage.reset()
        counts = faults.count(stage.work, SYNCS, folder / "calls")
        points = [(call, number) for call in SYNCS for number in range(1, counts.get(call, 0) + 1)]
        assert points
        for call, number in points[seed % every :: every]:
            where = f"{verb}, {call} {number} of {counts[call]}"
            failed: list[Failed] = []

            def fail(call: str = call, number: int = number, failed: list[Failed] = failed) -> str:
                tried = Failed(stage, call, number)
                if not tried.fired:
                    return "none failed"
                failed.append(tried)
                return f"{tried.side} at once"

            tally.count(where, fail)
            for word, state, at_once in failed[0].states(seed, most) if failed else ():

                def recover(state: State = state, at_once: bool = at_once, failed: list[Failed] = failed) -> str:
                    return failed[0].recover(state, at_once=at_once)

                tally.count(f"{where}, {word}", recover)
    tally.tell()


@pytest.mark.parametrize("verb", QUICK)
def test_a_sync_that_failed_once_does_not_count_as_done(verb: str) -> None:
    fail_each_sync(verb, every=4, most=1, seed=1)


@pytest.mark.deep
@pytest.mark.parametrize("verb", DEEP)
def test_no_sync_that_failed_once_counts_as_done(verb: str) -> None:
    fail_each_sync(verb, every=1, most=4, seed=2)
