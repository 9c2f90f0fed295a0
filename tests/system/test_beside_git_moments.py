"""git run by hand at the worst moment, one moment at a time: `git repack -a -d` is stopped where it has listed what it
will delete, or where it has decided what is needed, and goes on after ours has done its part."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from commands import snap
from helpers import all_refs, assert_equal, assert_whole, git, git_in, in_commit, on_disk, tip, turn, write
from machines import Machine, bare
from pausedgit import LISTED, PACKED, PausedGit

from snapstore import Session, Store
from snapstore.errors import Failed
from snapstore.git import refs as git_refs
from snapstore.git.maintenance import pack_builder
from snapstore.git.maintenance import repack as git_repack
from snapstore.git.objects import pack_writer
from snapstore.git.objects.ids import BLOB, COMMIT, TREE
from snapstore.git.objects.store import LARGE, Objects
from snapstore.git.remote.incoming import Incoming
from snapstore.share import pull as pulling
from snapstore.share.bundles import export
from snapstore.share.remotes import Remote
from snapstore.timeline.capture.stored_objects import ReachableObjects
from snapstore.timeline.maintenance import gc, manual_git
from snapstore.worktree.scan import borrow

REPACK = ("repack", "-a", "-d", "-q")


@pytest.fixture
def session(store: Store) -> Session:
    return store.session("s")


def garbage(store: Store, kind: bytes, data: bytes) -> bytes:
    """An object that nothing refers to, in a pack of its own."""
    objects = store.shadow.objects
    writer = objects.writer()
    oid = writer.add(kind, data)
    objects.release(objects.finish(writer))
    return oid


def without_refs(store: Store, session: str) -> None:
    """As though somebody had removed a session's refs by hand, and what its records say."""
    for ref in git(store.shadow.git_dir, "for-each-ref", "--format=%(refname)").decode().split():
        if not session or f"/{session}/" in ref or ref.endswith(f"/{session}") or ref == "refs/snapstore/disk":
            git(store.shadow.git_dir, "update-ref", "--no-deref", "-d", ref)


def repacked_by_hand(store: Store, *arguments: str) -> None:
    git(store.shadow.git_dir, *(arguments or REPACK))


# A writer gives up when its pack was visible


GIVES_UP = {"repack": REPACK, "gc": ("gc", "-q"), "prune": ("gc", "-q", "--prune=now")}


@pytest.mark.parametrize("by_hand", GIVES_UP.values(), ids=GIVES_UP)
def test_a_pull_that_is_interrupted_takes_nothing_along(
    tmp_path: Path,
    root: Path,
    store: Store,
    session: Session,
    monkeypatch: pytest.MonkeyPatch,
    by_hand: tuple[str, ...],
) -> None:
    """Its pack holds much of what is here. git leaves that out of its own, since ours is kept."""
    saved = {turn(session, root, f"turn {n}", a=f"{n}", **{f"sub__{n}": f"{n}"}): on_disk(root) for n in range(4)}
    bundle = str(tmp_path / "all.bundle")
    export(store, bundle)

    def interrupted(self: object) -> None:
        repacked_by_hand(store, *by_hand)
        raise KeyboardInterrupt

    monkeypatch.setattr(pulling._Taking, "carry_out", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pulling.pull(store, Remote("", bundle))
    for commit, files in saved.items():
        assert_equal(store, commit, files)
    assert_whole(store)
    assert not list(Path(store.shadow.objects.pack_folder).glob("*.keep"))


def test_a_turn_whose_refs_cannot_move_takes_nothing_along(
    root: Path, store: Store, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went back to what the first turn left, so that its pack holds the first turn's tree."""
    first = turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    files = in_commit(store, first)

    def full(*arguments: object, **named: object) -> None:
        repacked_by_hand(store)
        raise Failed("the disk is full")

    with monkeypatch.context() as patched:
        open_turn = session.begin("three")
        write(root / "a", "1")
        patched.setattr(store.journal, "carry_out", full)
        with pytest.raises(Failed, match="the disk is full"):
            open_turn.end()
    assert_equal(store, first, files)
    assert_whole(store)
    packs = len(list(Path(store.shadow.objects.pack_folder).glob("*.pack")))
    open_turn.end()
    assert_equal(store, first, files)
    assert_whole(store)
    folder = Path(store.shadow.objects.pack_folder)
    assert len(list(folder.glob("*.pack"))) == packs, "the pack that came to nothing was not taken over"
    assert not list(folder.glob("*.keep"))


def test_a_sync_that_fails_takes_nothing_along(
    root: Path, store: Store, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pack is visible when its folder is synced."""
    first = turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    files = in_commit(store, first)
    open_turn = session.begin("three")
    write(root / "a", "1")

    def fails(path: str) -> None:
        repacked_by_hand(store)
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(pack_writer, "sync_folder", fails)
        with pytest.raises(Failed):
            open_turn.end()
    assert_equal(store, first, files)
    assert_whole(store)


def test_what_was_not_visible_yet_leaves_no_trace(
    root: Path, store: Store, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn(session, root, "one", a="1")
    open_turn = session.begin("two")
    write(root / "a", "2")
    before = sorted(os.listdir(store.shadow.objects.pack_folder))
    rename = os.rename

    def fails(source: str, target: str) -> None:
        if str(target).endswith(".idx"):
            raise OSError(28, "No space left on device")
        rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(pack_writer.os, "rename", fails)
        with pytest.raises(Failed):
            open_turn.end()
    assert sorted(os.listdir(store.shadow.objects.pack_folder)) == before


# A pack that git has on its list


@pytest.mark.parametrize("moment", [LISTED, PACKED])
def test_the_same_pack_again_is_a_new_one_for_git(tmp_path: Path, store: Store, moment: str) -> None:
    """One without a ref is on the list of what goes: a `.keep` that comes later does not help."""
    objects = store.shadow.objects
    turn(store.session("s"), Path(os.fsdecode(store.root)), "one", a="1")
    oid = garbage(store, BLOB, b"the same")
    with PausedGit(tmp_path, store.shadow.git_dir, moment, *REPACK):
        writer = objects.writer()
        writer.add(BLOB, b"the same")
        base = objects.finish(writer)
    assert Objects(store.shadow.git_dir).read(oid) == (BLOB, b"the same")
    objects.release(base)


def test_a_gc_that_makes_the_same_pack_again_loses_nothing(
    tmp_path: Path, root: Path, store: Store, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git has listed the one pack that there is, and packs what is in no kept pack: nothing, if that one were kept
    by then. In the end it deletes what it has listed."""
    saved = {turn(session, root, f"turn {n}", a=f"{n}"): on_disk(root) for n in range(3)}
    gc.collect(store, grace=0)
    git(store.shadow.git_dir, "hash-object", "-w", "--stdin", feed=b"so that there is something to do")
    sync = git_repack.sync_folder
    with PausedGit(tmp_path, store.shadow.git_dir, LISTED, *REPACK) as paused:

        def while_git_goes_on(path: str) -> None:
            sync(path)
            paused.go_on()

        monkeypatch.setattr(git_repack, "sync_folder", while_git_goes_on)
        gc.collect(store, grace=3600)
    for commit, files in saved.items():
        assert_equal(store, commit, files)
    assert_whole(store)


@pytest.mark.parametrize("moment", [LISTED, PACKED])
@pytest.mark.parametrize("ours", ["fold", "gc"])
def test_ours_packs_while_git_does(
    tmp_path: Path, root: Path, store: Store, session: Session, moment: str, ours: str
) -> None:
    saved = {turn(session, root, f"turn {n}", a=f"{n}"): on_disk(root) for n in range(20)}
    with PausedGit(tmp_path, store.shadow.git_dir, moment, *REPACK):
        if ours == "gc":
            gc.collect(store, grace=0)
        saved |= {turn(session, root, f"again {n}", b=f"{n}"): on_disk(root) for n in range(20)}
    for commit, files in saved.items():
        assert_equal(store, commit, files)
    assert_whole(store)


def test_a_borrowed_pack_that_is_here_gets_no_keep_later(tmp_path: Path, store: Store) -> None:
    """Linked, let go of, and wanted again: then the files are read instead."""
    theirs = bare(tmp_path / "theirs.git")
    tree = git(theirs, "hash-object", "-w", "-t", "tree", "--stdin", feed=b"").decode().strip()
    git(theirs, "update-ref", "refs/heads/main", git(theirs, "commit-tree", tree, "-m", "one").decode().strip())
    repacked = git(theirs, *REPACK)
    assert not repacked
    source = borrow._Source(os.fsencode(f"{theirs}/objects"))
    source.check()
    source.prepare(1)
    made: list[str] = []
    source.link_all(store.shadow.objects, made)
    store.shadow.objects.reload()
    source.link_all(store.shadow.objects, made)  # it is here, and kept
    assert len(made) == 3 and all(map(os.path.exists, made))
    borrow._remove_links(made)
    assert [os.path.exists(path) for path in made] == [False, True, True]
    store.shadow.objects.reload()
    with pytest.raises(FileExistsError):
        source.link_all(store.shadow.objects, [])
    assert not list(Path(store.shadow.objects.pack_folder).glob("*.keep"))
    source.close()


# Content that nothing holds any more


def by_scan(session: Session, root: Path, name: str, data: bytes) -> str:
    with session.turn("again") as open_turn:
        write(root / name, data)
    assert open_turn.commit is not None
    return open_turn.commit.hex()


def by_name(session: Session, root: Path, name: str, data: bytes) -> str:
    open_turn = session.begin("again")
    open_turn.touch(root / name)
    write(root / name, data)
    open_turn.touch(root / name, after=True)
    return open_turn.end().hex()


HOW: dict[str, Callable[[Session, Path, str, bytes], str]] = {"scan": by_scan, "name": by_name}


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
@pytest.mark.parametrize("moment", [LISTED, PACKED])
@pytest.mark.parametrize("size", [5, LARGE + 5], ids=["small", "streamed"])
def test_a_file_that_was_garbage_is_stored_again(
    tmp_path: Path,
    root: Path,
    store: Store,
    session: Session,
    how: Callable[[Session, Path, str, bytes], str],
    moment: str,
    size: int,
) -> None:
    turn(session, root, "one", other="1")
    data = b"x" * size
    oid = garbage(store, BLOB, data)
    with PausedGit(tmp_path, store.shadow.git_dir, moment, *REPACK):
        commit = how(session, root, "file", data)
    assert in_commit(store, commit)[b"file"] == (b"100644", data)
    assert store.shadow.objects.contains(oid)
    assert_whole(store)


def test_a_folder_that_was_garbage_is_stored_again(tmp_path: Path, root: Path, store: Store, session: Session) -> None:
    commit = turn(session, root, "one", folder__a="1", b="2")
    entry = store.shadow.trees.lookup(store.shadow.commit(bytes.fromhex(commit)).tree, b"folder")
    assert entry is not None
    turn(session, root, "two", folder__a=None)
    data = store.shadow.objects.read_kind(entry[1], TREE)
    other = data.replace(b" a\0", b" c\0")
    garbage(store, TREE, other)
    with PausedGit(tmp_path, store.shadow.git_dir, PACKED, *REPACK):
        turn(session, root, "three", elsewhere__c="1")
    assert_whole(store)


def test_what_the_cache_speaks_of_is_read_again_when_no_ref_leads_to_it(
    tmp_path: Path, root: Path, store: Store, session: Session
) -> None:
    """Somebody removed the session's refs by hand: the next one begins with the disk as the cache knows it."""
    turn(session, root, "one", **{f"sub__{n}": f"{n}" for n in range(5)})
    without_refs(store, "")
    git(store.shadow.git_dir, "reflog", "expire", "--all", "--expire=now")
    with PausedGit(tmp_path, store.shadow.git_dir, PACKED, *REPACK):
        commit = turn(store.session("t"), root, "two", b="2")
    assert_equal(store, commit, on_disk(root))
    assert_whole(store)


def test_the_same_where_the_session_still_has_its_own(
    tmp_path: Path, root: Path, store: Store, session: Session
) -> None:
    """What the cache has beyond the session's own tree is stored again, and nothing else is."""
    turn(session, root, "one", **{f"sub__{n}": f"{n}" for n in range(5)})
    other = store.session("t")
    turn(other, root, "two", b="2", sub__1="other", sub__2=None)
    without_refs(store, "t")
    git(store.shadow.git_dir, "reflog", "expire", "--all", "--expire=now")
    with PausedGit(tmp_path, store.shadow.git_dir, PACKED, *REPACK):
        commit = turn(session, root, "three", c="3")
    assert_equal(store, commit, on_disk(root))
    assert_whole(store)


def test_what_a_forced_move_saves_is_stored_though_it_was_garbage(
    tmp_path: Path, root: Path, store: Store, session: Session
) -> None:
    turn(session, root, "one", a="1")
    turn(session, root, "two", a="2")
    garbage(store, BLOB, b"by hand")
    write(root / "a", "by hand")
    with PausedGit(tmp_path, store.shadow.git_dir, PACKED, *REPACK):
        snap(root, "undo", "--force")
    [saved] = [oid for ref, oid in all_refs(store).items() if ref.startswith("refs/snapstore/safety/")]
    assert in_commit(store, saved)[b"a"] == (b"100644", b"by hand")
    assert_whole(store)


def test_what_is_held_is_not_stored_again(root: Path, store: Store, session: Session) -> None:
    """A large file that comes back, was moved, or is in another session's line costs no second copy."""
    big = "x" * (LARGE + 1)
    turn(session, root, "one", big=big, other="1")
    turn(session, root, "two", big=None)
    turn(session, root, "three", big=big)
    turn(session, root, "four", big=None, moved=big)
    with store.changing():
        held = ReachableObjects(store)
        oid = store.shadow.trees.file(store.shadow.commit(bytes.fromhex(tip(store, "s"))).tree, b"moved")
        assert oid is not None and held.has(b"moved", oid[1], large=True) and held.has(b"big", oid[1], large=True)
    copies = [pack for pack in store.shadow.objects.packs() if pack.find(oid[1]) is not None]
    assert len(copies) == 1


# Pulls


@pytest.fixture
def ada(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path, "ada").init(poem="roses\n").remote(bare(tmp_path / "hub.git"))
    machine.turn("Add violets", poem="roses\nviolets\n")
    machine.push()
    return machine


@pytest.fixture
def bob(tmp_path: Path, ada: Machine) -> Machine:
    machine = Machine(tmp_path, "bob")
    machine.clone(str(tmp_path / "hub.git"))
    ada.turn("Add sugar", poem="roses\nviolets\nsugar\n")
    ada.push()
    return machine


def interrupted_pull(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(pulling._Taking, "carry_out", interrupted)
        with pytest.raises(KeyboardInterrupt):
            machine.pull()


@pytest.mark.parametrize("moment", [LISTED, PACKED])
def test_what_an_interrupted_pull_left_is_not_counted_on(
    tmp_path: Path, bob: Machine, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    interrupted_pull(bob, monkeypatch)
    with bob.open() as store, PausedGit(tmp_path, store.shadow.git_dir, moment, *REPACK):
        assert bob.pull().turns == 1
    assert bob.prompts() == {"Add violets", "Add sugar"}
    bob.whole()


def test_half_of_what_an_interrupted_pull_left_is_no_damage_of_the_other_side(ada: Machine, bob: Machine) -> None:
    """The store's own gc may have removed a part of it, or be about to."""
    tip_there = ada.refs()["refs/heads/shell/main"]
    with ada.open() as store:
        commit = store.shadow.objects.read_kind(bytes.fromhex(tip_there), COMMIT)
    with bob.open() as store:
        garbage(store, COMMIT, commit)
    assert bob.pull().turns == 1
    bob.whole()


def test_garbage_that_goes_while_it_is_counted_on_is_no_damage(bob: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """git fetches nothing where an interrupted pull left everything, and the store's own gc removes that right then."""
    interrupted_pull(bob, monkeypatch)
    verify = Incoming.verify
    collected: list[bool] = []

    def verified(self: Incoming, *tips: Iterable[bytes]) -> Incoming:
        if not collected:
            collected.append(self.is_empty)
            with bob.open() as store:
                gc.collect(store, grace=0)
        return verify(self, *tips)

    monkeypatch.setattr(Incoming, "verify", verified)
    assert bob.pull().turns == 1
    assert collected == [True]
    bob.whole()


def test_loose_objects_of_the_users_are_stored_where_a_git_may_prune(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is there already, and whose cache is lost: a second session borrows."""
    git_in(root, "init", "-q")
    write(root / "a", "committed")
    os.utime(root / "a", (1e9, 1e9))  # or it would be read, and not borrowed
    git_in(root, "add", "-A")
    git_in(root, "commit", "-q", "-m", "one")
    with Store.open(root, create=True) as store:
        turn(store.session("s"), root, "one", b="1")
        without_refs(store, "s")
        without_refs(store, "shell")
        git(store.shadow.git_dir, "reflog", "expire", "--all", "--expire=now")
        store.cache.drop()
        carry_out = store.journal.carry_out

        def pruned(*arguments: Any, **named: Any) -> object:
            git(store.shadow.git_dir, "prune", "--expire=now")  # no ref leads to any of it yet
            return carry_out(*arguments, **named)

        with monkeypatch.context() as patched:
            patched.setattr(store.journal, "carry_out", pruned)
            commit = turn(store.session("t"), root, "two", c="2")
        assert_equal(store, commit, on_disk(root))
        assert_whole(store)


def test_a_pull_whose_former_records_went_away_meanwhile_is_done_again(
    bob: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn ended while it fetched, and somebody emptied the reflogs."""
    bob.turn("Before", other="0")  # its records are nobody else's
    take_in = pulling._accept
    tries: list[int] = []

    def overtaken(store: Store, *arguments: Any) -> object:
        tries.append(1)
        if len(tries) == 1:
            bob.turn("Meanwhile", other="1")
            git(store.shadow.git_dir, "reflog", "expire", "--all", "--expire=now", "--expire-unreachable=now")
            git(store.shadow.git_dir, "gc", "-q", "--prune=now")
        return take_in(store, *arguments)

    monkeypatch.setattr(pulling, "_accept", overtaken)
    assert bob.pull().turns == 1
    assert len(tries) == 2
    bob.whole()


def test_a_bundle_that_builds_on_garbage_is_refused(tmp_path: Path, ada: Machine, bob: Machine) -> None:
    first, second = str(tmp_path / "first.bundle"), str(tmp_path / "second.bundle")
    with ada.open() as store:
        export(store, first)
        commit = store.shadow.objects.read_kind(bytes.fromhex(tip(store, "shell")), COMMIT)
    ada.turn("Add honey", poem="honey\n")
    with ada.open() as store:
        export(store, second, since=first)
    with bob.open() as store:
        garbage(store, COMMIT, commit)
    assert bob.snap_json("import", second, "--json", status=16)["error"] == "unknown"  # its tree is not here
    bob.snap("import", first)
    bob.snap("import", second)
    assert "Add honey" in bob.prompts()
    bob.whole()


# gc


@pytest.mark.parametrize("way", [None, ""], ids=["git", "ourselves"])
def test_a_gc_goes_on_when_git_removes_what_only_a_reflog_led_to(
    root: Path, store: Store, session: Session, monkeypatch: pytest.MonkeyPatch, way: str | None
) -> None:
    """It was there when gc looked, and is a bad object when gc packs."""
    saved = {turn(session, root, f"turn {n}", a=f"{n}"): on_disk(root) for n in range(3)}
    name = "with_git" if way is None else "without_git"
    made = getattr(pack_builder, name)
    tries: list[int] = []

    def cleaned(*arguments: object) -> object:
        tries.append(1)
        if len(tries) == 1:
            git(store.shadow.git_dir, "reflog", "expire", "--all", "--expire=now", "--expire-unreachable=now")
            git(store.shadow.git_dir, "gc", "-q", "--prune=now")
        return packed(*arguments)

    def with_git(*arguments: object, **named: object) -> object:
        nonlocal packed
        packed = made(*arguments, **named)
        return cleaned

    packed = made
    monkeypatch.setattr(pack_builder, name, with_git if way is None else cleaned)
    gc.collect(store, grace=0, git=way)
    assert len(tries) > 1
    for commit, files in saved.items():
        assert_equal(store, commit, files)
    assert_whole(store)


def test_a_gc_leaves_what_a_git_has_touched_meanwhile(root: Path, store: Store, session: Session) -> None:
    """git does not write an object again that is there: it touches the file that holds it."""
    turn(session, root, "one", a="1")
    oid = git(store.shadow.git_dir, "hash-object", "-w", "--stdin", feed=b"old").decode().strip()
    path = store.shadow.objects.loose_path(bytes.fromhex(oid))
    os.utime(path, (1, 1))
    work = git_repack.Repack(store.shadow.objects, older_than=1000.0, packing=pack_builder.without_git)
    with work:
        with store.changing():
            work.survey(gc.roots(store))
        work.build()
        git(store.shadow.git_dir, "hash-object", "-w", "--stdin", feed=b"old")
        with store.changing():
            work.install(gc.roots(store))
    assert os.path.exists(path)


# Refs


def test_a_ref_that_gets_another_name_is_held_by_the_reflog_meanwhile(
    root: Path, store: Store, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git that lists the refs at that moment may see neither name."""
    first = turn(session, root, "one", a="1")
    commit = turn(session, root, "two", a="2")
    refs = store.shadow.refs
    snap(root, "undo")
    turn(session, root, "other", a="3")
    [line] = [name for name, oid in all_refs(store).items() if oid == commit and name.startswith("refs/heads/")]
    seen: list[set[str]] = []
    remove = refs.container.remove_if_equals

    def removed(name: bytes, old: bytes) -> bool:
        done = remove(name, old)
        seen.append(set(git(store.shadow.git_dir, "rev-list", "--reflog").decode().split()))
        return done

    monkeypatch.setattr(refs.container, "remove_if_equals", removed)
    with store.changing():
        oid = bytes.fromhex(commit)
        store.journal.carry_out([(f"{line}-renamed", None, oid), (line, oid, None)], {}, what="rename")
    assert len(seen) == 1 and {first, commit} <= seen[0]
    gc.collect(store)
    assert commit not in git(store.shadow.git_dir, "rev-list", "--reflog").decode()
    assert_whole(store)


def test_a_ref_that_git_packs_the_moment_it_has_moved_has_moved(
    root: Path, store: Store, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git removes the folder that is empty then, before ours has synced it."""
    commit = turn(session, root, "one", a="1")
    sync = git_refs.sync_folder
    packed: list[str] = []

    def packed_first(path: str) -> None:
        if path.endswith("refs/heads/new") and not packed:
            packed.append(path)
            git(store.shadow.git_dir, "pack-refs", "--all", "--prune")
        sync(path)

    refs = store.shadow.refs
    monkeypatch.setattr(git_refs, "sync_folder", packed_first)
    refs.update("refs/heads/new/main", None, bytes.fromhex(commit))
    assert refs.read("refs/heads/new/main") == bytes.fromhex(commit)
    assert packed and not os.path.exists(packed[0])


def test_a_gc_goes_on_when_a_work_tree_is_removed_while_it_looks(
    tmp_path: Path, root: Path, store: Store, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = turn(session, root, "one", a="1")
    place = str(tmp_path / "tree")
    work_trees = manual_git.work_trees
    for looked in (manual_git.heads, manual_git.staged):
        git(store.shadow.git_dir, "worktree", "add", "-q", "--detach", place, commit)

        def removed(git_dir: str) -> list[str]:
            found = work_trees(git_dir)
            git(git_dir, "worktree", "remove", "--force", place, may_fail=True)
            return found

        with monkeypatch.context() as patched:
            patched.setattr(manual_git, "work_trees", removed)
            looked(store.shadow.git_dir)
    gc.collect(store)
    assert_whole(store)
