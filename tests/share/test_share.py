"""P-05: the same project on several machines, through an ordinary git repository between them. Each has a home and a
root of its own. What servers do is in test_share_servers.py, what becomes of names in test_share_naming.py."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from commands import assert_record
from helpers import all_refs, git, git_in, in_commit, on_disk, record, write
from machines import Machine, bare, prompts, server_refs, sound

from snapstore import Store
from snapstore.errors import Remote, Unknown, Unsafe, Usage
from snapstore.share.remotes import Remotes
from snapstore.surface.records.agents import SessionsRecord
from snapstore.surface.records.branches import BranchesRecord, TreeRecord
from snapstore.surface.records.sharing import AttachRecord, PullRecord, PushRecord, RemoteChangeRecord, RemotesRecord


@pytest.fixture
def bob(tmp_path: Path, hub: str, ada: Machine) -> Machine:
    """The second: cloned."""
    machine = Machine(tmp_path, "bob")
    machine.clone(hub)
    return machine


# What travels.


def test_everything_travels_and_ordinary_git_reads_it(ada: Machine, hub: str) -> None:
    """G-17: branches, checkpoints, archived branches and records; each is held by a ref on the server."""
    ada.snap("checkpoint", "titled")
    ada.snap("undo", "-y")
    ada.turn("Another title", title="Verse\n")
    ada.snap("branch", "archive", "main")
    ada.push()
    there = all_refs(hub)
    assert {"refs/heads/shell/main-2", "refs/tags/shell/titled", "refs/snapstore/archive/shell/main"} <= set(there)
    assert not [ref for ref in there if "/cursor/" in ref or "/safety/" in ref or "/remotes/" in ref]
    assert prompts(hub) == {"Add violets", "Add a title", "Another title"}
    tip = there["refs/heads/shell/main-2"]
    note: dict[str, object] = json.loads(git(hub, "notes", "--ref=turns", "show", tip))
    assert note["prompt"] == "Another title"
    assert in_commit(hub, tip)[b"title"] == (b"100644", b"Verse\n")
    sound(hub)


def test_a_clone_has_the_files_and_every_turn(bob: Machine, ada: Machine) -> None:
    assert on_disk(bob.root) == on_disk(ada.root)
    assert bob.prompts() == ada.prompts() == {"Add violets", "Add a title"}
    with bob.open() as mine, ada.open() as theirs:
        tip = theirs.shadow.refs.read("refs/heads/shell/main")
        assert tip is not None
        assert record(mine, tip)["prompt"] == record(theirs, tip)["prompt"] == "Add a title"
        assert mine.header.id == theirs.header.id
    bob.whole()


def test_a_push_sends_only_what_is_new(ada: Machine) -> None:
    assert ada.push().objects == 0
    ada.turn("One more", more="1\n")
    pushed = ada.push()
    # A commit, its tree and blob; a record with its folder and top, and their commit. The machine said nothing new.
    assert pushed.turns == 1 and pushed.objects == 7
    assert ada.push().updates == []


def test_cursors_and_safety_stay_home_unless_asked(ada: Machine, hub: str) -> None:
    write(ada.root / "title", "by hand\n")
    ada.snap("undo", "--force", "-y")
    ada.push()
    assert not server_refs(hub, "refs/snapstore/safety/") and not server_refs(hub, "refs/snapstore/cursor/")
    ada.push(with_safety=True)
    (saved,) = server_refs(hub, "refs/snapstore/safety/").values()
    assert in_commit(hub, saved)[b"title"] == (b"100644", b"by hand\n")
    assert not ada.push(with_safety=True).updates


# Two machines.


def test_each_goes_on_and_each_sees_the_other(ada: Machine, bob: Machine, hub: str) -> None:
    """Bob's first turn starts a branch of his own, though he stands at the tip of Ada's."""
    before = bob.refs()["refs/heads/shell/main"]
    bob.turn("Bob's line", poem="roses\nviolets\nsugar\n")
    assert bob.refs()["refs/heads/shell/main"] == before
    bob.push()
    ada.turn("Ada's line", title="Poem!\n")
    ada.push()
    assert ada.pull().turns == 1 and bob.pull().turns == 1
    for machine in (ada, bob):
        assert machine.prompts() == {"Add violets", "Add a title", "Bob's line", "Ada's line"}
        assert set(machine.refs()) == {"refs/heads/shell/main", "refs/heads/shell/main-2"}
        machine.whole()
    assert ada.read("poem") == "roses\nviolets\n" and bob.read("title") == "Poem\n"
    sound(hub)


def test_both_advance_a_branch_of_one_name_and_both_lines_are_kept(ada: Machine, bob: Machine, hub: str) -> None:
    ada.snap("undo", "-y")
    ada.turn("Ada's other way", title="A\n")
    bob.turn("Bob's way", title="B\n")
    assert "refs/heads/shell/main-2" in ada.refs() and "refs/heads/shell/main-2" in bob.refs()
    ada.push()
    pushed = bob.push()
    assert pushed.refs["refs/heads/shell/main-2"] == "refs/heads/shell/main-2@bob"
    ada.pull()
    bob.pull()
    assert set(server_refs(hub)) == {f"refs/heads/shell/{name}" for name in ("main", "main-2", "main-2@bob")}
    assert set(ada.refs()) == {f"refs/heads/shell/{name}" for name in ("main", "main-2", "main-2@bob")}
    assert set(bob.refs()) == {f"refs/heads/shell/{name}" for name in ("main", "main-2", "main-2@ada")}
    bob.turn("Bob goes on", title="BB\n")
    assert bob.push().refs["refs/heads/shell/main-2"] == "refs/heads/shell/main-2@bob"
    ada.pull()
    assert ada.refs()["refs/heads/shell/main-2@bob"] == bob.refs()["refs/heads/shell/main-2"]


def test_a_third_machine_sees_both(tmp_path: Path, ada: Machine, bob: Machine, hub: str) -> None:
    bob.turn("Bob's", b="b\n")
    bob.push()
    ada.turn("Ada's", a="a\n")
    ada.push()
    cy = Machine(tmp_path, "cy")
    done = cy.clone(hub)
    assert done.pulled is not None and done.pulled.turns == 4
    assert cy.prompts() == {"Add violets", "Add a title", "Bob's", "Ada's"}
    cy.turn("Cy's", session="cy", c="c\n")
    cy.push()
    for machine in (ada, bob):
        machine.pull()
        assert "Cy's" in machine.prompts()
        assert machine.refs()["refs/heads/cy/main"] == cy.refs()["refs/heads/cy/main"]


def test_a_record_that_is_completed_later_reaches_everybody(ada: Machine, bob: Machine) -> None:
    """An agent may write its conversation down after the turn has ended, and after it was pushed."""
    commit = bytes.fromhex(ada.refs()["refs/heads/shell/main"])
    with ada.open() as store:
        store.session("shell").amend(commit, replies=["Done, with a title."])
    bob.turn("Bob's", b="b\n")
    ada.push()
    bob.push()
    bob.pull()
    ada.pull()
    for machine in (ada, bob):
        with machine.open() as store:
            assert record(store, commit)["replies"] == ["Done, with a title."]
            assert record(store, bytes.fromhex(bob.refs()["refs/heads/shell/main-2"]))["prompt"] == "Bob's"


def test_modes_links_and_line_endings_arrive_as_they_were_recorded(ada: Machine, bob: Machine) -> None:
    with ada.open() as store, store.session("shell").turn("Kinds"):
        write(ada.root / "run.sh", "#!/bin/sh\n", executable=True)
        write(ada.root / "dos.txt", b"one\r\ntwo\r\n")
        write(ada.root / b"caf\xe9.txt".decode("latin-1"), "x")
        os.symlink("poem", ada.root / "link")
    ada.push()
    bob.pull()
    bob.snap("goto", "--exact", "heads/main", "-y")
    assert on_disk(bob.root) == on_disk(ada.root)


# A project, and what is not this project.


def test_a_repository_of_something_else_is_refused(tmp_path: Path, ada: Machine) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git_in(other, "init", "-q")
    git_in(other, "commit", "-q", "--allow-empty", "-m", "Mine")
    ada.snap("remote", "add", "wrong", str(other))
    for verb in ("push", "pull"):
        assert ada.snap_json(verb, "wrong", "--json", status=15)["error"] == "unsafe"
    assert git_in(other, "for-each-ref", "--format=%(refname)").split() == [b"refs/heads/main"]


def test_the_turns_of_another_project_are_refused(tmp_path: Path, ada: Machine, hub: str) -> None:
    stranger = Machine(tmp_path, "eve").init(x="1").remote(hub)
    stranger.turn("Not yours", x="2")
    before = all_refs(hub)
    with pytest.raises(Unsafe) as refused:
        stranger.push()
    assert "init --from" in refused.value.hint
    with pytest.raises(Unsafe):
        stranger.pull()
    assert all_refs(hub) == before and stranger.prompts() == {"Not yours"}


def test_an_empty_repository_is_pulled_from_in_peace(tmp_path: Path) -> None:
    lone = Machine(tmp_path, "lone").init(x="1").remote(bare(tmp_path / "empty.git"))
    assert lone.pull().empty
    with pytest.raises(Remote, match="empty"):
        Machine(tmp_path, "late").clone(str(tmp_path / "empty.git"))
    assert not (tmp_path / "late" / "project-late").exists()


def test_what_is_not_there_is_status_17(ada: Machine, tmp_path: Path) -> None:
    ada.snap("remote", "add", "nowhere", str(tmp_path / "nowhere.git"))
    assert "git init" not in ada.snap_json("pull", "nowhere", "--json", status=17)["hint"]
    error = ada.snap_json("push", "nowhere", "--json", status=17)
    assert "git init --bare" in error["hint"]
    assert error["error"] == "remote" and error["hint"]
    assert ada.snap_json("pull", "nobody", "--json", status=16)["error"] == "unknown"


# Joining.


def test_init_from_attaches_an_existing_checkout(tmp_path: Path, ada: Machine, hub: str) -> None:
    """What is on disk becomes edits on top of the newest turn, on a branch of one's own. No file changes."""
    dee = Machine(tmp_path, "dee")
    dee.root.mkdir(parents=True)
    write(dee.root / "poem", "roses\nviolets\n")
    write(dee.root / "mine", "by hand\n")
    before = on_disk(dee.root)
    done = dee.attach(hub)
    assert on_disk(dee.root) == before and done.session == "shell" and not done.joined
    with dee.open() as store:
        tip = store.shadow.refs.read("refs/snapstore/cursor/shell")
        assert tip is not None
        assert in_commit(store, tip) == before
        commit = store.shadow.commit(tip)
        assert commit.trailers["Kind"] == "edits"
        assert commit.parents == (bytes.fromhex(ada.refs()["refs/heads/shell/main"]),)
    assert set(dee.refs()) == {"refs/heads/shell/main", "refs/heads/shell/main-2"}
    dee.turn("Dee's", mine="by turn\n")
    dee.snap("undo", "-y")
    assert dee.read("mine") == "by hand\n"
    dee.push()
    ada.pull()
    assert "Dee's" in ada.prompts()
    dee.whole()


def test_a_store_of_its_own_joins(tmp_path: Path, ada: Machine, hub: str) -> None:
    """Both ran `init` before they knew of each other: their `shell` sessions share no root, and stay two."""
    dee = Machine(tmp_path, "dee").init(poem="tulips\n")
    dee.turn("Dee alone", poem="tulips!\n")
    dee.snap("remote", "add", "origin", hub)
    dee.snap("push", status=15)
    answer = dee.snap_json("init", "--from", hub, "--json")
    assert_record(AttachRecord, answer)
    assert answer["joined"] and answer["pull"]["turns"] == 2
    with dee.open() as mine, ada.open() as theirs:
        assert mine.header.id == theirs.header.id
    assert set(dee.refs()) == {"refs/heads/shell/main", "refs/heads/shell@ada/main"}
    assert dee.push().refs == {"refs/heads/shell/main": "refs/heads/shell@dee/main"}
    ada.pull()
    assert set(ada.refs()) == {"refs/heads/shell/main", "refs/heads/shell@dee/main"}
    dee.snap("undo", "-y")
    assert dee.read("poem") == "tulips\n"
    for machine in (ada, dee):
        machine.whole()


def test_a_store_that_is_shared_elsewhere_does_not_join(tmp_path: Path, ada: Machine, hub: str) -> None:
    dee = Machine(tmp_path, "dee").init(x="1").remote(bare(tmp_path / "own.git"))
    dee.push()
    with dee.open() as store:
        before = store.header.id
    assert dee.snap_json("init", "--from", hub, "--json", status=15)["error"] == "unsafe"
    with dee.open() as store:
        assert store.header.id == before


def test_clone_does_not_touch_a_folder_with_something_in_it(tmp_path: Path, ada: Machine, hub: str) -> None:
    full = tmp_path / "full"
    write(full / "precious", "mine\n")
    with pytest.raises(Usage):
        from snapstore.share.clone import clone

        clone(str(tmp_path / "home"), hub, str(full))
    assert on_disk(full) == {b"precious": (b"100644", b"mine\n")}


# Remotes.


def test_remotes_are_named_listed_and_forgotten(ada: Machine, hub: str, tmp_path: Path) -> None:
    answer = ada.snap_json("remote", "add", "backup", str(tmp_path / "b.git"), "--auto", "--json")
    assert_record(RemoteChangeRecord, answer)
    listed = ada.snap_json("remote", "--json")
    assert_record(RemotesRecord, listed)
    assert listed["machine"] == "ada"
    assert [(row["name"], row["auto"]) for row in listed["remotes"]] == [("backup", True), ("origin", False)]
    ada.snap("remote", "add", "origin", str(tmp_path / "other.git"), status=2)
    ada.snap("remote", "remove", "backup")
    assert ada.snap("remote").stdout.split() == ["origin", hub]
    ada.snap("remote", "remove", "backup", status=16)
    assert "every" not in ada.snap("remote", "list").stdout


def test_no_password_is_kept(ada: Machine) -> None:
    address = "https://ada:hunter2@example.com/turns.git"
    error = ada.snap_json("remote", "add", "web", address, "--json", status=15)
    assert "credential" in error["hint"] and "hunter2" not in json.dumps(error)
    with ada.open() as store:
        kept = subprocess.run(["grep", "-r", "hunter2", store.folder], capture_output=True, check=False)
        assert kept.returncode == 1


def test_addresses_that_run_programs_are_refused(ada: Machine) -> None:
    for address in ("ext::sh -c touch% /tmp/x", "ssh://-oProxyCommand=x/y"):
        assert ada.snap_json("remote", "add", "bad", address, "--json", status=15)["error"] == "unsafe"


# As programs and people see it.


def test_push_and_pull_in_json_and_in_words(ada: Machine, bob: Machine) -> None:
    bob.turn("Bob's line", b="b\n")
    answer = bob.snap_json("push", "--json")
    assert_record(PushRecord, answer)
    assert answer["turns"] == 1 and answer["updates"][0]["there"] == "refs/heads/shell/main-2"
    assert bob.snap("push").stdout.startswith("Nothing to push")
    answer = ada.snap_json("pull", "--json")
    assert_record(PullRecord, answer)
    (update,) = answer["updates"]
    assert (update["ref"], update["machine"], update["turns"]) == ("refs/heads/shell/main-2", "bob", 1)
    assert "Nothing new" in ada.snap("pull").stdout
    bob.turn("And on", b="bb\n")
    assert "Pushed 1 turn to origin" in bob.snap("push").stdout
    assert "Pulled 1 turn from origin" in ada.snap("pull").stdout
    assert not bob.snap("push", "-q").stdout and not ada.snap("pull", "--quiet").stdout


def test_others_are_shown_with_machine_and_person(tmp_path: Path, ada: Machine, hub: str) -> None:
    dee = Machine(tmp_path, "dee")
    dee.root.mkdir(parents=True)
    git_in(dee.root, "init", "-q")
    git_in(dee.root, "config", "user.name", "Dee Dee")
    git_in(dee.root, "config", "user.email", "dee@example.com")
    dee.attach(hub)
    dee.turn("Dee's own", session="deep", d="d\n")
    dee.turn("Dee in hers", d="dd\n")
    dee.push()
    ada.pull()
    listing = ada.snap_json("sessions", "--json")
    assert_record(SessionsRecord, listing)
    whose = {line["session"]: (line["machine"], line["person"]) for line in listing["sessions"]}
    assert whose == {"shell": (None, None), "deep": ("dee", "Dee Dee")}
    assert "dee, Dee Dee" in ada.snap("sessions").stdout
    branches = ada.snap_json("branches", "--json")
    assert_record(BranchesRecord, branches)
    assert {row["name"]: row["machine"] for row in branches["branches"]} == {"main": None, "main-2": "dee"}
    assert "dee, Dee Dee" in ada.snap("branches").stdout
    tree = ada.snap_json("tree", "--json", "--session", "deep")
    assert_record(TreeRecord, tree)
    assert (tree["machine"], tree["person"]) == ("dee", "Dee Dee")
    assert "dee of Dee Dee" in ada.snap("tree").stdout
    assert "Dee's own" in ada.snap("log", "--session", "deep").stdout
    assert "Dee's own" in ada.snap("show", "1", "--session", "deep").stdout
    assert ada.snap_json("status", "--json")["session"] == "shell"


# The server does what it should not.


def test_what_a_server_loses_stays_here_and_is_said(ada: Machine, bob: Machine, hub: str) -> None:
    bob.turn("Bob's", b="b\n")
    bob.push()
    ada.pull()
    kept = ada.refs()
    git(hub, "update-ref", "-d", "refs/heads/shell/main-2")
    answer = ada.snap_json("pull", "--json")
    assert answer["kept"] == ["refs/heads/shell/main-2"] and ada.refs() == kept
    assert "stays" not in ada.snap("pull").stdout  # said once
    bob.push()
    assert server_refs(hub)["refs/heads/shell/main-2"] == bob.refs()["refs/heads/shell/main-2"]


def test_a_server_that_was_rewound(ada: Machine, bob: Machine, hub: str) -> None:
    tip = server_refs(hub)["refs/heads/shell/main"]
    git(hub, "update-ref", "refs/heads/shell/main", f"{tip}^")
    before = bob.refs()
    assert bob.pull().gone == ["refs/heads/shell/main"]
    assert bob.refs() == before
    ada.push()
    assert server_refs(hub)["refs/heads/shell/main"] == tip
    assert not bob.pull().gone


def test_a_line_that_was_rewritten_on_the_server_is_kept_both_ways(ada: Machine, bob: Machine, hub: str) -> None:
    """Somebody forced another history onto Ada's branch: Bob keeps what he has, and gets the new one beside it; Ada's
    own is not moved, and goes under another name from then on."""
    tip = server_refs(hub)["refs/heads/shell/main"]
    tree = git(hub, "rev-parse", f"{tip}^{{tree}}").decode().strip()
    forged = git(hub, "commit-tree", "-p", f"{tip}^", "-m", "Forged", tree).decode().strip()
    git(hub, "update-ref", "refs/heads/shell/main", forged)
    bob.pull()
    assert bob.refs()["refs/heads/shell/main"] == tip
    assert bob.refs()["refs/heads/shell/main@ada"] == forged
    own = ada.refs()
    ada.pull()
    assert own.items() <= ada.refs().items()
    ada.turn("Goes on", title="Poem?\n")
    assert ada.push().refs["refs/heads/shell/main"] == "refs/heads/shell/main@ada"
    bob.pull()
    assert "Goes on" in bob.prompts()
    for machine in (ada, bob):
        machine.whole()


def test_notes_and_words_of_machines_from_elsewhere_are_not_believed_blindly(
    ada: Machine, bob: Machine, hub: str, tmp_path: Path
) -> None:
    """Anyone who can push can write a record or a machine's document."""
    tip = server_refs(hub)["refs/heads/shell/main"]
    (machine,) = server_refs(hub, "refs/snapstore/machines/")
    git(hub, "notes", "--ref=turns", "add", "-f", "-m", "not json at all", tip)
    work = tmp_path / "forge"
    write(work / "machine.json", json.dumps({"id": "../../x", "name": "\x1b[2J", "refs": {"HEAD": "refs/heads/x"}}))
    blob = git(hub, "hash-object", "-w", str(work / "machine.json")).decode().strip()
    tree = git(hub, "mktree", feed=f"100644 blob {blob}\tmachine.json\n".encode()).decode().strip()
    forged = git(hub, "commit-tree", "-p", machine, "-m", "x", tree).decode().strip()
    git(hub, "update-ref", machine, forged)
    with ada.open() as store:
        before = record(store, tip)
    pulled = bob.pull()
    assert pulled.refused == 1
    with bob.open() as store:
        assert record(store, tip)["prompt"] == "Add a title"
    ada.pull()
    with ada.open() as store:
        assert record(store, tip) == before
    assert bob.refs()["refs/heads/shell/main"] == tip
    bob.whole()


def test_a_record_of_ours_is_not_replaced_by_what_a_server_says(ada: Machine, hub: str) -> None:
    tip = server_refs(hub)["refs/heads/shell/main"]
    git(hub, "notes", "--ref=turns", "add", "-f", "-m", '{"prompt": "never said"}', tip)
    ada.pull()
    with ada.open() as store:
        assert record(store, tip)["prompt"] == "Add a title"


def test_a_wrong_name_for_a_remote_helps(ada: Machine) -> None:
    with ada.open() as store, pytest.raises(Unknown) as error:
        Remotes(store).find("orign")
    assert "origin" in error.value.hint
    with Store.open(ada.root, home=str(ada.home)) as store:
        assert Remotes(store).find(None).name == "origin"


def test_a_secret_in_the_name_of_a_machine_stays_here(ada: Machine, hub: str) -> None:
    before = server_refs(hub, "refs/")
    name = "ghp_" + "".join(chr(97 + at * 7 % 26) + str(at % 10) for at in range(18))
    ada.name = name
    refused = ada.snap("push", status=18).stderr
    assert "the name machine *** of" in refused and name not in refused
    assert server_refs(hub, "refs/") == before
    word = refused.partition("--allow ")[2].split()[0]
    ada.snap("push", "--allow", word)
    ada.turn("Again", title="2\n")
    ada.push()


def test_a_push_that_would_publish_a_secret_stops(ada: Machine, hub: str) -> None:
    """Status 18, with the word that allows exactly this finding; nothing is sent before."""
    before = all_refs(hub)
    key = "AKIA" + "QZ7XW2M5N3P4R6TV"
    ada.turn("Oops", settings=f"key = '{key}'\n")
    error = ada.snap_json("push", "--json", status=18)
    assert error["error"] == "secret" and all_refs(hub) == before
    assert "settings" in json.dumps(error) and key not in json.dumps(error)
    words = [word for finding in error["findings"] for word in ("--allow", finding["fingerprint"])]
    ada.snap("push", *words)
    assert "Oops" in prompts(hub)


def test_a_branch_that_was_renamed_or_archived_is_so_everywhere(ada: Machine, bob: Machine, hub: str) -> None:
    """The name it had stays on the server, retired; others follow, even one who stands on it."""
    bob.snap("goto", "--exact", "1", "-y")
    ada.snap("undo", "-y")
    ada.turn("Another way", title="Verse\n")
    ada.push()
    bob.pull()
    assert set(bob.refs()) == {"refs/heads/shell/main", "refs/heads/shell/main-2"}
    ada.snap("branch", "rename", "main-2", "verse")
    ada.snap("branch", "archive", "main")
    ada.push()
    answer = bob.snap_json("pull", "--json")
    assert_record(PullRecord, answer)
    assert answer["dropped"] == ["refs/heads/shell/main", "refs/heads/shell/main-2"]
    assert set(bob.refs()) == {"refs/heads/shell/verse"}
    assert set(bob.refs("refs/snapstore/archive/")) == {"refs/snapstore/archive/shell/main"}
    assert bob.prompts() == ada.prompts()
    assert set(server_refs(hub)) == {f"refs/heads/shell/{name}" for name in ("main", "main-2", "verse")}
    bob.turn("Bob goes on", b="b\n")
    bob.snap("undo", "-y")
    assert not bob.pull().updates and not ada.push().updates
    # Deleted at home, it stays with those who have it.
    ada.snap("branch", "delete", "main", "-y")
    ada.push()
    bob.pull()
    assert bob.prompts() >= {"Add violets", "Add a title", "Another way"}
    ada.snap("ops", "undo", "-y")
    ada.push()
    bob.pull()
    assert set(bob.refs("refs/snapstore/archive/")) == {"refs/snapstore/archive/shell/main"}
    bob.whole()


def test_a_hostile_tree_is_refused_at_the_door(ada: Machine, bob: Machine, hub: str) -> None:
    """Nothing of the pull counts, and nothing of it is ever checked out."""
    blob = git(hub, "hash-object", "-w", "--stdin", feed=b"[core]\n\tsshCommand = touch /tmp/owned\n").decode().strip()
    inner = git(hub, "mktree", feed=f"100644 blob {blob}\tconfig\n".encode()).decode().strip()
    tree = git(hub, "mktree", feed=f"040000 tree {inner}\t.GIT\n".encode()).decode().strip()
    tip = server_refs(hub)["refs/heads/shell/main"]
    forged = git(hub, "commit-tree", "-p", tip, "-m", "Looks fine", tree).decode().strip()
    git(hub, "update-ref", "refs/heads/shell/main", forged)
    before, disk = bob.refs("refs/"), on_disk(bob.root)
    error = bob.snap_json("pull", "--json", status=15)
    assert error["error"] == "unsafe"
    assert bob.refs("refs/") == before and on_disk(bob.root) == disk
    with bob.open() as store:
        assert not store.shadow.objects.contains(bytes.fromhex(forged))
    # A session of one's own is pushed all the same.
    bob.turn("Bob's", b="b\n")
    bob.push()
    assert "Bob's" in prompts(hub)


def test_redo_follows_their_branch_as_it_grows(ada: Machine, bob: Machine) -> None:
    ada.turn("Third", title="Poem!\n")
    ada.push()
    bob.pull()
    assert bob.read("title") == "Poem\n"
    bob.snap("redo", "-y")
    assert bob.read("title") == "Poem!\n"
    bob.turn("On from there", title="Poem!!\n")
    assert bob.refs()["refs/heads/shell/main"] == ada.refs()["refs/heads/shell/main"]
    assert bob.refs()["refs/heads/shell/main-2"] != bob.refs()["refs/heads/shell/main"]


def test_anybody_may_run_gc_anywhere_G_17(ada: Machine, bob: Machine, hub: str) -> None:
    """Every node and record is held by a ref, here and there: `git gc --prune=now` between any steps loses nothing."""

    def collect() -> None:
        for machine in (ada, bob):
            with machine.open() as store:
                git(store.shadow.git_dir, "reflog", "expire", "--expire=now", "--all")
                git(store.shadow.git_dir, "gc", "-q", "--prune=now")
        git(hub, "gc", "-q", "--prune=now")

    for number in range(3):
        bob.turn(f"Bob {number}", b=f"{number}\n")
        bob.push()
        collect()
        ada.turn(f"Ada {number}", a=f"{number}\n")
        ada.push()
        collect()
        ada.pull()
        collect()
        bob.pull()
    everything = {"Add violets", "Add a title", *(f"{who} {number}" for who in ("Ada", "Bob") for number in range(3))}
    for machine in (ada, bob):
        assert machine.prompts() == everything
        machine.whole()
        with machine.open() as store:
            for oid in set(machine.refs().values()):
                assert record(store, oid)["prompt"] in everything
    sound(hub)


def test_a_store_that_lost_its_word_of_whose_a_branch_is_hears_it_again(ada: Machine, bob: Machine, hub: str) -> None:
    bob.turn("Bob's", b="b\n")
    bob.push()
    bob.turn("Not pushed yet", session="fresh", c="c\n")
    ada.turn("Ada's", a="a\n")
    ada.snap("checkpoint", "here")
    ada.push()
    bob.pull()
    before = bob.refs("refs/heads/") | bob.refs("refs/tags/")
    with bob.open() as store:
        foreign, place = store.foreign().refs, Path(f"{store.state}/foreign")
    place.write_text('{"refs": {}')
    error = bob.snap_json("run", "--json", "--", "true", status=14)
    assert "snapstore pull" in error["hint"]
    place.unlink()
    bob.pull()
    with bob.open() as store:
        assert store.foreign().refs == foreign
    assert bob.refs("refs/heads/") | bob.refs("refs/tags/") == before
    bob.push()
    assert not [ref for ref in server_refs(hub) if "@bob" in ref]
