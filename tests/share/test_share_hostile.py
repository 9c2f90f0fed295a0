"""What others can put on a server, and what one can ask of push by mistake: TESTING's remote list, from a user's side.
What a hostile pack does is in test_incoming_hostile.py."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from helpers import all_refs, git, git_in, on_disk
from machines import Machine, prompts, server_refs

from snapstore.share.remotes import Remotes
from snapstore.share.server.view import MOST_REFS

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


# Names.


@pytest.mark.parametrize("place", ["refs/heads", "refs/tags", "refs/snapstore/archive"])
def test_no_name_from_a_server_takes_the_place_of_an_address(ada: Machine, hub: str, place: str) -> None:
    """A commit's hash and a turn's number mean here what they meant before, whatever a server calls its branches."""
    first = ada.snap_json("show", "--json", "1")["commit"]
    empty = git(hub, "hash-object", "-t", "tree", "-w", "--stdin", feed=b"").decode().strip()
    other = git(hub, "commit-tree", "-m", "Evil\n\nSnapstore-Session: shell", empty)
    names = [first, first[:12], "1", "#1", "10m", "deadbeef"]
    for name in names:
        git(hub, "update-ref", f"{place}/shell/{name}", other.decode().strip())
    ada.pull()
    assert not {ref.rpartition("/")[2] for ref in ada.refs("refs/")} & set(names)
    for address in (first, first[:12], "1"):
        assert ada.snap_json("show", "--json", address)["commit"] == first
    ada.snap("goto", "--exact", first)
    assert set(on_disk(ada.root)) == {b"poem"}


def test_a_whole_hash_means_its_commit_even_where_a_branch_has_that_name(ada: Machine) -> None:
    """A store may have taken such a name from a server once."""
    first, second = (ada.snap_json("show", "--json", number)["commit"] for number in ("1", "2"))
    with ada.open() as store:
        git(store.shadow.git_dir, "update-ref", f"refs/heads/shell/{first}", second)
    assert ada.snap_json("show", "--json", first)["commit"] == first


# Where a push must not go.


def test_turns_are_not_pushed_into_a_checkout(ada: Machine, tmp_path: Path) -> None:
    """The user's own `.git` is never written to, however it is spelled; nor is a repository that someone works in."""
    git_in(ada.root, "init", "-q")
    apart = tmp_path / "apart"
    apart.mkdir()
    git_in(apart, "init", "-q", "--separate-git-dir", str(tmp_path / "elsewhere"))
    before = on_disk(ada.root / ".git")
    for address in (".", "./.git", str(ada.root), f"file://{ada.root}", str(apart), str(tmp_path / "elsewhere")):
        refused = ada.snap_json("push", "--json", address, status=15)
        assert refused["error"] == "unsafe" and "git init --bare" in refused["hint"]
    assert on_disk(ada.root / ".git") == before and not all_refs(str(tmp_path / "elsewhere"))


def test_turns_are_not_pushed_into_a_store_that_is_in_use(ada: Machine, tmp_path: Path) -> None:
    other = Machine(tmp_path, "other").init()
    with other.open() as store:
        git_dir = store.shadow.git_dir
    before = all_refs(git_dir)
    assert ada.snap_json("push", "--json", git_dir, status=15)["error"] == "unsafe"
    assert all_refs(git_dir) == before


# What must not be kept or shown.


@pytest.mark.parametrize("who", [TOKEN, f"{TOKEN}:x-oauth-basic"])
def test_an_address_with_a_token_in_it_is_neither_kept_nor_printed(ada: Machine, who: str) -> None:
    url = f"HTTPS://{who}@127.0.0.1:1/turns.git"
    ada.snap("remote", "add", "spare", url, status=15)
    for words in (["push", url, "--json"], ["pull", url], ["clone", url, "new"]):
        done = ada.snap(*words, status=17)
        assert TOKEN not in done.stdout + done.stderr
    with ada.open() as store:
        assert [remote.name for remote in Remotes(store).list()] == ["origin"]
        kept = [path for path in Path(store.state).rglob("*") if path.is_file()]
        assert kept and not [path for path in kept if TOKEN in path.read_text("latin-1")]


def test_a_name_in_an_address_is_kept(ada: Machine) -> None:
    for number, url in enumerate(["https://ada@example.com/x", "https://ada.lovelace.1815%40example.com@host/x"]):
        ada.snap("remote", "add", f"spare{number}", url)
        assert url in ada.snap("remote").stdout


def test_a_password_for_one_run_is_kept_nowhere(ada: Machine, tmp_path: Path) -> None:
    """Not even as the word on who holds the store's lock."""
    ada.snap("push", f"http://ada:{TOKEN}@127.0.0.1:1/turns.git", status=17)
    ada.snap("remote", "add", f"http://ada:{TOKEN}@127.0.0.1:1/turns.git", "x", status=15)
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in kept if path.name == "lock"]
    assert not [path for path in kept if TOKEN.encode() in path.read_bytes()]


# A server that is not what it was.


@pytest.mark.parametrize("what", ["restored", "notes gone"])
def test_a_server_that_went_back_gets_every_record_again(ada: Machine, hub: str, tmp_path: Path, what: str) -> None:
    """A branch without what was said in its turns is half of it."""
    shutil.copytree(hub, tmp_path / "backup.git")
    ada.turn("Two\n\nat length", poem="2\n")
    ada.push()
    ada.turn("Three\n\nat length", poem="3\n")
    ada.push()
    if what == "restored":
        shutil.rmtree(hub)
        shutil.copytree(tmp_path / "backup.git", hub)
    else:
        git(hub, "update-ref", "-d", "refs/notes/turns")
    ada.turn("Four", poem="4\n")
    ada.push()
    for commit in git(hub, "rev-list", "--max-count=5", "refs/heads/shell/main").decode().split()[:-1]:
        assert json.loads(git(hub, "notes", "--ref=turns", "show", commit))["turn"]
    assert not ada.push().objects
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    assert "at length" in bob.snap("show", "4").stdout
    assert ada.pull().updates == []


def test_a_ref_in_the_way_on_a_server_keeps_nothing_of_ours_at_home(ada: Machine, hub: str) -> None:
    """git has no ref above or below another: ours goes by another name."""
    tip = server_refs(hub)["refs/heads/shell/main"]
    git(hub, "update-ref", "refs/heads/writing", tip)
    git(hub, "update-ref", "refs/tags/shell/final/1", tip)
    ada.turn("In the way", session="writing", poem="w\n")
    ada.snap("checkpoint", "final", "1", "--session", "shell")
    pushed = ada.push()
    assert pushed.refs["refs/heads/writing/main"] == "refs/heads/writing@ada/main"
    assert pushed.refs["refs/tags/shell/final"] == "refs/tags/shell/final@ada"
    assert "In the way" in prompts(hub)


def test_a_server_that_lost_whose_its_refs_are_gives_nothing_a_second_name(
    ada: Machine, hub: str, tmp_path: Path
) -> None:
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    bob.turn("Bob's", sugar="1\n")
    bob.push()
    ada.pull()
    before = ada.refs("refs/heads/"), bob.refs("refs/heads/")
    for ref in server_refs(hub, "refs/snapstore/machines/"):
        git(hub, "update-ref", "-d", ref)
    ada.pull()
    bob.pull()
    assert (ada.refs("refs/heads/"), bob.refs("refs/heads/")) == before
    ada.turn("On", poem="on\n")
    ada.push()
    bob.pull()
    assert {ref.rpartition("/")[2] for ref in bob.refs()} == {"main", "main-2"} and "On" in bob.prompts()


def test_a_branch_that_no_machine_calls_its_own_is_shown_as_such(ada: Machine, hub: str) -> None:
    git(hub, "update-ref", "refs/heads/shell/found", server_refs(hub)["refs/heads/shell/main"] + "^")
    ada.pull()
    assert "unknown" in next(row for row in ada.snap("branches").stdout.splitlines() if "found" in row)


def test_a_clone_stands_in_the_session_that_ended_last_if_only_by_a_millisecond(ada: Machine, hub: str) -> None:
    for _ in range(3):
        ada.turn("Plain", title="1\n")
        ada.turn("Newest", session="a-session", title="2\n")
    ada.push()
    bob = Machine(ada.root.parent.parent, "bob")
    bob.clone(hub)
    assert bob.read("title") == "2\n"


def test_a_remote_with_endless_refs_is_refused_before_any_is_taken(ada: Machine, hub: str) -> None:
    """A server must not fill every list here with what nobody made."""
    tip = server_refs(hub)["refs/heads/shell/main"]
    commands = "".join(f"create refs/heads/flood/b{number} {tip}\n" for number in range(MOST_REFS))
    git(hub, "update-ref", "--stdin", feed=commands.encode())
    git(hub, "pack-refs", "--all")
    before = ada.refs("refs/")
    refused = ada.snap_json("pull", "--json", status=17)
    assert "refs, more than a snapstore store has" in refused["message"]
    assert ada.refs("refs/") == before


def test_a_ref_of_ours_that_is_no_commit_there_is_named(ada: Machine, hub: str) -> None:
    blob = git(hub, "hash-object", "-w", "--stdin", feed=b"hi").decode().strip()
    (claims,) = server_refs(hub, "refs/snapstore/machines/")
    ada.turn("More", title="3\n")
    for ref in (claims, "refs/notes/turns"):
        right = server_refs(hub, ref)[ref]
        git(hub, "update-ref", ref, blob)
        error = ada.snap_json("push", "--json", status=17)
        assert ref in error["message"] and "is not a commit" in error["message"]
        if ref != claims:
            assert ref in ada.snap_json("pull", "--json", status=17)["message"]
        ada.whole()
        git(hub, "update-ref", ref, right)
    git(hub, "update-ref", "refs/heads/shell/other", "refs/heads/shell/main")
    git(hub, "symbolic-ref", "refs/heads/shell/main", "refs/heads/shell/other")
    assert "is a symbolic ref to" in ada.snap_json("push", "--json", status=17)["message"]
    git(hub, "symbolic-ref", "--delete", "refs/heads/shell/main")
    ada.push()
    assert server_refs(hub)["refs/heads/shell/main"] == ada.refs()["refs/heads/shell/main"]
