"""P-05: three machines that record, push and pull at once, each in a process of its own. In the end every turn of
everyone is everywhere, and nothing is damaged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers import git, record
from machines import Machine, bare, prompts, sound

from snapstore.git.maintenance import fold

WORKER = """
import os, random, sys
sys.path[:0] = [sys.argv[1], os.path.dirname(sys.argv[1])]
from pathlib import Path
from machines import Machine
base, name, rounds = Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
me, dice = Machine(base, name), random.Random(name)
for number in range(rounds):
    session = dice.choice(["shell", "shell", "notes"])
    if dice.random() < 0.3:
        with me.open() as store:
            here = store.session("shell")
            here.move(here.plan_undo())
        session = "shell"
    me.turn(f"{name} {number}", session=session, **{f"{name}-{session}.txt": f"{number}\\n"})
    if dice.random() < 0.7:
        me.push()
    if dice.random() < 0.5:
        me.pull()
me.push()
"""


def run_rounds(base: Path, rounds: int) -> None:
    hub = bare(base / "hub.git")
    ada = Machine(base, "ada").init(shared="0\n").remote(hub)
    ada.turn("start", start="s\n")
    ada.push()
    machines = [ada, Machine(base, "bob"), Machine(base, "cy")]
    for machine in machines[1:]:
        machine.clone(hub)
    # Bob and Cy start branches of the same name, each before anything of the other is known.
    workers = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                WORKER,
                str(Path(__file__).parents[1] / "support"),
                str(base),
                machine.name,
                str(rounds),
            ],
            stderr=subprocess.PIPE,
        )
        for machine in machines
    ]
    for worker in workers:
        said = worker.communicate(timeout=3000)[1]
        assert worker.returncode == 0, said.decode()
    everything = {"start"} | {f"{machine.name} {number}" for machine in machines for number in range(rounds)}
    assert prompts(hub) == everything
    sound(hub)
    for machine in machines:
        machine.pull()
        assert machine.prompts() == everything
        assert not machine.push().updates and not machine.pull().updates
        machine.whole()
        with machine.open() as store:
            for oid in git(store.shadow.git_dir, "rev-list", "--branches").decode().split():
                if store.shadow.commit(bytes.fromhex(oid)).trailers["Kind"] == "turn":
                    assert record(store, oid)["prompt"]


def test_three_machines_at_once(tmp_path: Path) -> None:
    run_rounds(tmp_path, 4)


@pytest.mark.deep
def test_three_machines_at_once_for_a_hundred_rounds(tmp_path: Path) -> None:
    run_rounds(tmp_path, 100)


def test_a_machine_that_only_pulls_does_not_pile_up_packs(tmp_path: Path) -> None:
    """What comes in is folded as the packs of turns are, though a server sends deltas."""
    hub = bare(tmp_path / "hub.git")
    ada, bob = Machine(tmp_path, "ada").init(f="0\n" * 200).remote(hub), Machine(tmp_path, "bob")
    ada.push()
    bob.clone(hub)
    for number in range(18):
        ada.turn(f"Turn {number}", f=f"{number}\n" + "0\n" * 200)
        ada.push()
        assert bob.pull().turns == 1
    with bob.open() as store:
        assert len(store.shadow.objects.packs()) <= fold.FOLD_AT
    bob.whole()
