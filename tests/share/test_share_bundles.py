"""P-05 without a network: everything in one file, which ordinary git reads too."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import assert_record
from helpers import git, in_commit, on_disk, record
from machines import Machine, bare, prompts

from snapstore.errors import SnapstoreError, Unsafe
from snapstore.share.bundles import export
from snapstore.share.pull import pull
from snapstore.share.remotes import Remote
from snapstore.surface.records.sharing import ExportRecord, PullRecord


@pytest.fixture
def ada(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path, "ada").init(poem="roses\n")
    machine.turn("Add violets", poem="roses\nviolets\n")
    machine.snap("checkpoint", "flowers")
    return machine


def test_a_file_carries_everything_there_and_back(tmp_path: Path, ada: Machine) -> None:
    file = tmp_path / "turns.bundle"
    answer = ada.snap_json("export", str(file), "--json")
    assert_record(ExportRecord, answer)
    assert file.stat().st_mode & 0o777 == 0o600 and answer["size_bytes"] == file.stat().st_size
    bob = Machine(tmp_path, "bob")
    bob.clone(str(file))
    assert on_disk(bob.root) == on_disk(ada.root) and bob.prompts() == {"Add violets"}
    assert "refs/tags/shell/flowers" in bob.refs("refs/tags/")
    assert not bob.snap_json("remote", "--json")["remotes"]
    bob.turn("Bob's", poem="roses\nviolets\nsugar\n")
    bob.snap("export", str(tmp_path / "back.bundle"))
    answer = ada.snap_json("import", str(tmp_path / "back.bundle"), "--json")
    assert_record(PullRecord, answer)
    assert [(row["ref"], row["machine"]) for row in answer["updates"]] == [("refs/heads/shell/main-2", "bob")]
    assert ada.prompts() == {"Add violets", "Bob's"} and ada.read("poem") == "roses\nviolets\n"
    with ada.open() as store:
        assert record(store, ada.refs()["refs/heads/shell/main-2"])["prompt"] == "Bob's"
    assert "Nothing new" in ada.snap("import", str(tmp_path / "back.bundle")).stdout
    for machine in (ada, bob):
        machine.whole()


def test_ordinary_git_reads_it(tmp_path: Path, ada: Machine) -> None:
    file = tmp_path / "turns.bundle"
    with ada.open() as store:
        export(store, str(file))
    clone = bare(tmp_path / "plain.git")
    git(clone, "fetch", "-q", str(file), "refs/*:refs/*")
    assert prompts(clone) == {"Add violets"}
    assert in_commit(clone, "refs/heads/shell/main") == on_disk(ada.root)
    git(clone, "fsck", "--strict")


def test_only_what_is_new_since_an_earlier_one(tmp_path: Path, ada: Machine) -> None:
    first, second = tmp_path / "1.bundle", tmp_path / "2.bundle"
    with ada.open() as store:
        export(store, str(first))
    bob = Machine(tmp_path, "bob")
    bob.clone(str(first))
    ada.turn("Another", other="x\n")
    with ada.open() as store:
        assert export(store, str(second), since=str(first)).objects < 12
    bob.snap("import", str(second))
    assert bob.prompts() == {"Add violets", "Another"}
    late = Machine(tmp_path, "late")
    with pytest.raises(SnapstoreError, match="not here"):
        late.clone(str(second))
    assert not late.root.exists()


def test_lines_of_third_parties_come_along_and_have_one_name_whatever_the_way(tmp_path: Path, ada: Machine) -> None:
    """Cy gets Ada's line from Bob's file, and then again from the server: it is one line."""
    hub = bare(tmp_path / "hub.git")
    ada.remote(hub).push()
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    bob.turn("Bob's", b="b\n")
    with bob.open() as store:
        export(store, str(tmp_path / "bob.bundle"))
    cy = Machine(tmp_path, "cy")
    cy.clone(str(tmp_path / "bob.bundle"))
    assert cy.prompts() == {"Add violets", "Bob's"}
    before = cy.refs()
    cy.remote(hub).pull()
    assert cy.refs() == before
    ada.turn("Ada goes on", a="a\n")
    ada.push()
    cy.pull()
    assert cy.refs()["refs/heads/shell/main"] == ada.refs()["refs/heads/shell/main"]
    with cy.open() as store:
        machines = {machine["name"] for machine in store.foreign().machines.values()}
    assert machines == {"ada", "bob"}


def test_a_file_of_another_project_or_of_none_is_refused(tmp_path: Path, ada: Machine) -> None:
    eve = Machine(tmp_path, "eve").init(x="1")
    with eve.open() as store:
        export(store, str(tmp_path / "eve.bundle"))
    assert ada.snap_json("import", str(tmp_path / "eve.bundle"), "--json", status=15)["error"] == "unsafe"
    with ada.open() as store:
        git(store.shadow.git_dir, "bundle", "create", str(tmp_path / "some.bundle"), "refs/heads/shell/main")
    with ada.open() as store, pytest.raises(Unsafe):
        pull(store, Remote("", str(tmp_path / "some.bundle")))
    torn = tmp_path / "torn.bundle"
    torn.write_bytes((tmp_path / "eve.bundle").read_bytes()[:-30])
    before = ada.refs("refs/")
    ada.snap("import", str(torn), status=15)
    mine = tmp_path / "mine.bundle"
    with ada.open() as store:
        export(store, str(mine))
    mine.write_bytes(mine.read_bytes()[:-30])
    assert ada.snap_json("import", str(mine), "--json", status=14)["error"] == "corrupt"
    assert ada.refs("refs/") == before
    ada.whole()


def test_a_file_for_others_is_searched_for_secrets_as_a_push_is(tmp_path: Path, ada: Machine) -> None:
    """Status 18 and no file, until that finding is allowed; what the reader has is not searched again."""
    before = tmp_path / "before.bundle"
    ada.snap("export", str(before))
    ada.turn("Add a key", config='token = "ghp_' + "a1B2c3D4e5" * 3 + 'f6G7h8"\n')
    file = tmp_path / "turns.bundle"
    for words in ([], ["--since", str(before)]):
        refused = ada.snap_json("export", str(file), *words, "--json", status=18)
        assert refused["error"] == "secret" and not file.exists()
    (found,) = refused["findings"]
    assert (found["path"], found["turn"], found["line"], found["rule"]) == ("config", 2, 1, "github-token")
    ada.snap("export", str(file), "--allow", found["fingerprint"])
    ada.snap("export", str(tmp_path / "after.bundle"), "--since", str(file))
    assert git(str(tmp_path), "bundle", "list-heads", str(file))
