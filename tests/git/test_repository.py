"""The store as dulwich's `Repo`: what embedding programs get, stores of former versions, and how it is closed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import snap
from dulwich.repo import Repo
from helpers import all_refs, assert_whole, git

from snapstore import Session, Store


@pytest.fixture
def session(store: Store) -> Session:
    return store.session("one")


def former(store: Store) -> Path:
    """Make a store look as former versions made it: a size with a unit, a line about a tag below another header."""
    config = Path(store.shadow.git_dir, "config")
    config.write_text(config.read_text().replace("16777216", "16m") + '# mine\n[remote "x"]\n\turl = "a;b"\n')
    git(store.shadow.git_dir, "tag", "-a", "-m", "a tag", "mark", "HEAD")
    git(store.shadow.git_dir, "pack-refs", "--all")
    packed = Path(store.shadow.git_dir, "packed-refs")
    rows = packed.read_text().splitlines(keepends=True)
    packed.write_text("# pack-refs with: sorted \n" + "".join(rows[1:]))
    assert any(row.startswith("^") for row in rows)
    return config


def test_an_embedding_program_reads_the_store_with_dulwich(root: Path, store: Store, session: Session) -> None:
    (root / "a").write_bytes(b"one\n")
    commit = session.turn("First").end(scan=True)
    found = store.repo[commit.hex().encode()]
    assert found.message.startswith(b"First\n")
    assert store.repo.object_store is store.shadow.objects.store
    names = {name.decode(): oid.decode() for name, oid in store.repo.refs.as_dict().items() if name != b"HEAD"}
    assert names == all_refs(store)
    assert store.repo.head() == commit.hex().encode()
    # A turn that is recorded meanwhile is there at once.
    (root / "a").write_bytes(b"two\n")
    second = session.turn("Second").end(scan=True)
    assert store.repo.head() == second.hex().encode()
    assert store.repo[store.repo[second.hex().encode()].tree][b"a"][1] in store.repo.object_store


def test_a_store_of_a_former_version_opens_in_dulwich_after_the_first_command(root: Path, store: Store) -> None:
    config = former(store)
    before = config.read_bytes()
    refs = all_refs(store)
    with pytest.raises(ValueError, match="16m"):
        Repo(store.shadow.git_dir)
    store.close()
    snap(root, "status")
    assert config.read_bytes() == before.replace(b"16m", b"16777216")
    with Repo(store.shadow.git_dir) as repo:
        assert {name.decode(): oid.decode() for name, oid in repo.refs.as_dict(b"refs").items()} == {
            name.removeprefix("refs/"): oid for name, oid in refs.items()
        }
    assert all_refs(store) == refs
    assert_whole(store)


def test_a_store_of_a_former_version_is_read_while_another_process_holds_it(root: Path, store: Store) -> None:
    config = former(store)
    with store.changing():
        with Store.open(root) as other:
            assert other.shadow.refs.list("refs/") == {
                name: bytes.fromhex(oid) for name, oid in all_refs(store).items()
            }
        assert "16m" in config.read_text()
    with Store.open(root):
        assert "16m" not in config.read_text()


def test_a_configuration_that_cannot_be_read_stops_no_undo(root: Path, store: Store, session: Session) -> None:
    (root / "a").write_bytes(b"one\n")
    session.turn("First").end(scan=True)
    turn = session.begin("Second")
    (root / "a").write_bytes(b"two\n")
    turn.end(scan=True)
    store.close()
    Path(store.shadow.git_dir, "config").write_bytes(b"[core\n\xff\0")
    snap(root, "undo")
    assert (root / "a").read_bytes() == b"one\n"


PLANTED = {
    "an include": "[include]\n\tpath = {elsewhere}\n",
    "a work tree": "[core]\n\tworktree = /\n",
    "another kind of refs": "[extensions]\n\trefstorage = reftable\n",
}


@pytest.mark.parametrize("planted", PLANTED)
def test_what_was_planted_in_the_configuration_is_not_followed(root: Path, store: Store, planted: str) -> None:
    elsewhere = Path(store.shadow.git_dir, "elsewhere")
    elsewhere.write_text("[core]\n\tbigfilethreshold = 5\n")
    with open(Path(store.shadow.git_dir, "config"), "a") as file:
        file.write(PLANTED[planted].format(elsewhere=elsewhere))
    Path(store.shadow.git_dir, "commondir").write_text(str(root))
    Path(store.shadow.git_dir, "objects/info/alternates").write_text(str(root / "objects"))
    with Store.open(root) as opened:
        assert opened.repo.get_config().get((b"core",), b"bigfilethreshold") == b"16777216"
        assert opened.repo.commondir() == store.shadow.git_dir
        assert opened.repo.object_store.alternates == []
        assert opened.repo.hooks == {}


PROGRAM = """
import gc, sys
from snapstore import Store
with Store.open(sys.argv[1], create=True) as store:
    session = store.session("one")
    for number in range(3):
        turn = session.begin("a turn")
        with open(sys.argv[1] + "/file", "w") as file:
            file.write(f"{number}\\n" * 10)
        turn.end(scan=True)
    for entry in store.repo.get_walker():
        entry.commit.message
    session.move(session.plan_undo(2))
if len(sys.argv) > 2:  # one that is never closed
    left = Store.open(sys.argv[1])
    left.repo.head()
    left.repo[left.repo.head()]
    gc.collect()
"""


@pytest.mark.parametrize("more", [[], ["never closed"]])
def test_nobody_complains_at_the_end_of_a_program(root: Path, more: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM, str(root), *more],
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(line for line in sys.path if line)},
    )
    assert (done.stdout, done.stderr) == (b"", b"")
