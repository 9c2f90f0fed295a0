"""M-15: the title of a session's line as the description of its branch, for people who read the store with git."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from forgetting import SECRET, forget, forget_turn, holds
from helpers import git, git_in, turn
from machines import Machine

from snapstore import Store
from snapstore.git import branch_descriptions
from snapstore.git.program import refuse_planted
from snapstore.timeline.moves.branches import Branches


def described(store: Store, branch: str) -> str:
    """What git and dulwich agree that a branch's description is."""
    text = git(store.shadow.git_dir, "config", f"branch.{branch}.description", may_fail=True).decode().rstrip("\n")
    config = store.repo.get_config()
    try:
        assert config.get((b"branch", branch.encode()), b"description").decode() == text
    except KeyError:
        assert text == ""
    return text


def config_of(store: Store) -> str:
    return Path(store.shadow.git_dir, "config").read_text()


def two_lines(store: Store, root: Path) -> Branches:
    """`main` with two turns, and `main-2`, which began at the first of them and is stood on."""
    session = store.session("s")
    turn(session, root, "First of all", a="1")
    turn(session, root, "Another", a="2")
    session.move(session.plan_undo(1))
    turn(session, root, "Other way", a="3")
    return Branches(session)


def test_a_branch_is_described_by_its_first_prompt(store: Store, root: Path) -> None:
    session = store.session("s")
    with session.turn('\n  Add "a\\b"\x1b[1m # [x]\nand more'):
        (root / "a").write_text("1")
    turn(session, root, "Another", a="2")
    assert described(store, "s/main") == 'Add "a\\b" [1m # [x]'
    session.move(session.plan_undo(1))
    (root / "b").write_text("by hand")  # which begins the branch
    turn(session, root, "Other way", a="3")
    turn(session, root, "And on", a="4")
    assert described(store, "s/main-2") == "Other way"
    git(store.shadow.git_dir, "fsck", "--strict")
    refuse_planted(store.shadow.git_dir)
    assert "branch.s/main.description=Add" in git(store.shadow.git_dir, "config", "--list").decode()


def test_what_a_person_wrote_stays(store: Store, root: Path) -> None:
    git(store.shadow.git_dir, "config", "branch.t/main.description", "Mine")
    turn(store.session("t"), root, "Not this", a="1")
    assert described(store, "t/main") == "Mine"
    two_lines(store, root)
    git(store.shadow.git_dir, "config", "branch.s/main.description", "Mine too")
    assert "snapstore" not in next(line for line in config_of(store).splitlines() if "Mine too" in line)
    turn(store.session("s"), root, "More", a="5")
    Branches(store.session("s")).rename("main", "renamed")
    assert described(store, "s/renamed") == "Mine too" and described(store, "s/main") == ""


def test_it_follows_its_branch(store: Store, root: Path) -> None:
    """Renamed, out of the list and back, deleted and brought back, promoted."""
    branches = two_lines(store, root)
    branches.rename("main", "old")
    assert (described(store, "s/main"), described(store, "s/old")) == ("", "First of all")
    branches.archive("old")
    assert described(store, "s/old") == ""
    branches.unarchive("old")
    assert described(store, "s/old") == "First of all"
    branches.delete("old")
    assert described(store, "s/old") == ""
    branches.rename("main-2", "new")
    branches.promote("new")
    assert described(store, "s/main") == "Other way" and described(store, "s/new") == ""


def test_two_that_change_places_change_titles(store: Store, root: Path) -> None:
    branches = two_lines(store, root)
    branches.promote("main-2")
    assert described(store, "s/main") == "Other way"
    assert described(store, "s/archive-main") == ""  # it is in the archive
    branches.unarchive("archive-main")
    assert described(store, "s/archive-main") == "First of all"
    assert config_of(store).count("description") == 2


def test_ops_undo_and_prune(tmp_path: Path) -> None:
    ada = Machine(tmp_path, "ada").init(a="0")
    ada.turn("First of all", a="1")
    ada.turn("Another", a="2")
    ada.snap("undo", "-y")
    ada.turn("Other way", a="3")
    ada.snap("branch", "delete", "main", "--yes")
    with ada.open() as store:
        assert described(store, "shell/main") == ""
    ada.snap("ops", "undo", "--yes")
    with ada.open() as store:
        assert described(store, "shell/main") == "First of all"
    ada.snap("branch", "delete", "main", "--yes")
    ada.snap("prune", "--older", "0")
    ada.snap("gc", "--grace", "0")
    with ada.open() as store:
        assert "First of all" not in config_of(store)
        assert described(store, "shell/main-2") == "Other way"


# Forgetting.


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("out_of_the_list", [False, True])
def test_a_forgotten_turn_leaves_no_title(store: Store, root: Path, out_of_the_list: bool, locked: bool) -> None:
    branches = two_lines(store, root)
    if out_of_the_list:
        branches.archive("main")
    if locked:
        Path(store.shadow.git_dir, "config.lock").write_text(config_of(store))  # of a git that was killed
    first = git(store.shadow.git_dir, "rev-parse", "s/main-2^").decode().strip()
    forget_turn(store, first)
    assert "First of all" not in config_of(store)
    assert described(store, "s/main-2") == "Other way"
    assert holds(store, "First of all") == []
    assert not Path(store.shadow.git_dir, "config.lock").exists()


@pytest.mark.parametrize("whose", ["ours", "a person's"])
def test_a_forgotten_file_s_content_is_taken_out_of_titles(store: Store, root: Path, whose: str) -> None:
    """A secret that was said in the prompt, too."""
    session = store.session("s")
    turn(session, root, f"Use the key {SECRET.strip()}", secret=SECRET)
    assert SECRET.strip() in config_of(store)
    if whose == "a person's":
        git(store.shadow.git_dir, "config", "branch.s/main.description", f"with {SECRET.strip()}\nand more")
    forget(store, "secret")
    assert SECRET.strip() not in config_of(store)
    assert ("Use the key" if whose == "ours" else "and more") in described(store, "s/main")
    assert holds(store, SECRET.strip()) == []
    refuse_planted(store.shadow.git_dir)


def test_a_forget_that_was_only_tried_changes_nothing(store: Store, root: Path) -> None:
    session = store.session("s")
    turn(session, root, f"Use the key {SECRET.strip()}", secret=SECRET)
    before = config_of(store)
    forget(store, "secret", dry_run=True)
    assert config_of(store) == before


# The file.


def test_a_git_that_holds_the_configuration_is_not_disturbed(store: Store, root: Path) -> None:
    lock = Path(store.shadow.git_dir, "config.lock")
    lock.write_text("being written")
    before = config_of(store)
    turn(store.session("s"), root, "First of all", a="1")
    assert config_of(store) == before and lock.read_text() == "being written"
    # It was killed: nobody has to remove its lock.
    os.utime(lock, (time.time() - 60, time.time() - 60))
    turn(store.session("t"), root, "Next", b="1")
    assert described(store, "t/main") == "Next" and not lock.exists()


def test_a_configuration_that_cannot_be_written_fails_no_turn(
    store: Store, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(branch_descriptions, "write_all", full)
    turn(store.session("s"), root, "First of all", a="1")
    assert described(store, "s/main") == "" and not Path(store.shadow.git_dir, "config.lock").exists()
    assert b"First of all" in git(store.shadow.git_dir, "log", "--format=%s", "s/main")


def test_a_configuration_written_by_hand(store: Store, root: Path) -> None:
    """Comments, values over several lines, a section that holds more than a description."""
    two_lines(store, root)
    path = Path(store.shadow.git_dir, "config")
    path.write_text(
        f'# mine \\\n{path.read_text()}[branch "s/main"]\n\tremote = here\n'
        '[Branch "x/y"]\n\tDescription = one \\\n  two ; not this\n[branch "s/\\"q"]\n\tremote = there\n'
    )
    Branches(store.session("s")).rename("main", "kept")
    assert described(store, "s/kept") == "First of all"
    assert git(store.shadow.git_dir, "config", "branch.s/kept.remote") == b"here\n"
    assert path.read_text().startswith("# mine \\\n")
    text = branch_descriptions.rewritten(store.shadow.git_dir, lambda text: text.replace("two", "2"))
    assert text is not None and '[Branch "x/y"]\n\tDescription = "one   2"\n' in text
    assert branch_descriptions.rewritten(store.shadow.git_dir, lambda text: text) is None
    assert "x/y" not in (branch_descriptions.rewritten(store.shadow.git_dir, lambda text: None) or "x/y")


def test_nobody_else_gets_it(tmp_path: Path, hub: str) -> None:
    """The configuration is the store's own: a clone has none of it."""
    ada = Machine(tmp_path, "ada").init(a="0").remote(hub)
    ada.turn("First of all", a="1")
    ada.push()
    git_in(tmp_path, "clone", "-q", hub, str(tmp_path / "copy"))
    shown = subprocess.run(["git", "-C", str(tmp_path / "copy"), "config", "--list", "--local"], capture_output=True)
    assert b"First of all" not in shown.stdout
