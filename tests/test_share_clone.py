"""M-15: `git clone` of a shared repository checks something out, without anything of a person's being overwritten."""

from __future__ import annotations

from pathlib import Path

from helpers import git, git_in
from machines import Machine, bare


def cloned(hub: str, place: Path) -> Path:
    git_in(place.parent, "clone", "-q", hub, str(place))
    return place


def test_a_clone_by_git_checks_out_the_files_of_the_last_push(tmp_path: Path) -> None:
    hub = bare(tmp_path / "hub.git")
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    ada.turn("Add violets", poem="violets\n")
    ada.push()
    first = cloned(hub, tmp_path / "first")
    assert (first / "poem").read_text() == "violets\n"
    assert b"Add violets" in git_in(first, "log", "-1", "--format=%s")
    ada.turn("Sugar", poem="sugar\n")
    ada.push()
    assert (cloned(hub, tmp_path / "second") / "poem").read_text() == "sugar\n"
    assert ada.push().updates == []


def test_the_branch_for_clones_only_advances(tmp_path: Path) -> None:
    """A line that went another way does not move it, nor one that a person has pushed to it."""
    hub = bare(tmp_path / "hub.git")
    head = git(hub, "symbolic-ref", "HEAD").decode().strip()
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    ada.turn("One", poem="1\n")
    ada.push()
    stood = git(hub, "rev-parse", head)
    ada.snap("undo", "-y")
    ada.turn("Another", poem="2\n")
    ada.push()
    assert git(hub, "rev-parse", head) == stood
    place = cloned(hub, tmp_path / "by hand")
    (place / "README").write_text("mine\n")
    git_in(place, "add", "README")
    git_in(place, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "Mine")
    git_in(place, "push", "-q")
    mine = git(hub, "rev-parse", head)
    ada.turn("Third", poem="3\n")
    ada.push()
    assert git(hub, "rev-parse", head) == mine != stood
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    bob.turn("Fourth", poem="4\n")
    bob.push()
    assert git(hub, "rev-parse", head) == mine


def test_a_session_whose_name_is_in_the_way_is_shared_all_the_same(tmp_path: Path) -> None:
    hub = bare(tmp_path / "hub.git")
    head = git(hub, "symbolic-ref", "--short", "HEAD").decode().strip()
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    ada.turn("One", head, poem="1\n")
    ada.push()
    assert f"refs/heads/{head}/main" in git(hub, "for-each-ref", "--format=%(refname)").decode().split()
    # And the other way round: the session comes when the branch is there.
    other = bare(tmp_path / "other.git")
    eve = Machine(tmp_path, "eve").init(poem="roses\n").remote(other)
    eve.turn("One", poem="1\n")
    eve.push()
    eve.turn("Two", head, poem="2\n")
    eve.push()
    assert eve.prompts() >= {"One", "Two"}
