"""A home that was copied, or went back to a backup: two of one id, or one that does not know what it has pushed."""

from __future__ import annotations

import shutil
from pathlib import Path

from machines import Machine, server_refs


def copied(machine: Machine, base: Path, name: str) -> Machine:
    """The folder of a machine at another place, with the id that it has."""
    copy = Machine(base, name)
    shutil.copytree(machine.home.parent, copy.home.parent, symlinks=True)
    (copy.home.parent / machine.root.name).rename(copy.root)
    copy.snap("init", "--adopt", "--anyway", "--from", str(machine.root))
    return copy


def test_two_copies_of_a_home_come_to_rest_and_everybody_has_what_each_made(
    tmp_path: Path, ada: Machine, hub: str
) -> None:
    twin = copied(ada, tmp_path, "twin")
    for machine, colour in ((ada, "white"), (twin, "black")):
        machine.turn(f"Paint it {colour}", poem=f"{colour}\n")
        machine.snap("checkpoint", "colour")
    for machine in (ada, twin, ada, twin):
        machine.push()
        machine.pull()
    quiet = server_refs(hub, "refs/")
    for machine in (ada, twin, ada, twin):
        assert machine.push().updates == []
        assert machine.pull().updates == []
    assert server_refs(hub, "refs/") == quiet, "a push with nothing to say moves nothing"
    assert not [ref for ref in quiet if "@" in ref.split("/")[2]], "a session is known again though its tip is not here"
    grace = Machine(tmp_path, "grace")
    grace.clone(hub)
    for machine in (ada, twin, grace):
        assert machine.prompts() == {"Add violets", "Add a title", "Paint it white", "Paint it black"}
        assert len(machine.refs("refs/tags/")) == 2
        machine.whole()


def test_a_store_from_a_backup_retires_nothing_that_it_has_forgotten(tmp_path: Path, ada: Machine, hub: str) -> None:
    shutil.copytree(ada.home, tmp_path / "backup", symlinks=True)
    ada.turn("Add daisies", poem="daisies\n")
    ada.snap("checkpoint", "later")
    ada.push()
    grace = Machine(tmp_path, "grace")
    grace.clone(hub)
    shutil.rmtree(ada.home)
    shutil.move(tmp_path / "backup", ada.home)
    ada.turn("Add tulips", poem="tulips\n")
    ada.push()
    grace.pull()
    assert {"refs/heads/shell/main", "refs/tags/shell/later"} <= set(grace.refs("refs/"))
    ada.pull()
    assert ada.snap_json("checkpoints", "--json")["checkpoints"][0]["name"] == "later"
    for machine in (ada, grace):
        assert machine.prompts() == {"Add violets", "Add a title", "Add daisies", "Add tulips"}


def test_a_renamed_branch_is_retired_still(tmp_path: Path, ada: Machine, hub: str) -> None:
    grace = Machine(tmp_path, "grace")
    grace.clone(hub)
    ada.snap("branch", "rename", "main", "first")
    ada.push()
    grace.pull()
    assert set(grace.refs()) == {"refs/heads/shell/first"}
    assert "refs/heads/shell/main" in server_refs(hub), "nothing is taken off a server"
