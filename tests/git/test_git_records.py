"""Commits, notes and patches: written by us, read by git, and the other way round."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from dulwich.notes import NotesTree
from dulwich.objects import Tree
from helpers import git, git_in, plain_environment, quick_folder, write
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from snapstore import Corrupt, Store
from snapstore.base.text import quote
from snapstore.git.diff.patch import count, is_binary, patch
from snapstore.git.objects import commits, notes
from snapstore.git.objects.commits import Identity, message, split_trailers
from snapstore.git.objects.ids import BLOB, COMMIT, EXECUTABLE, FILE, LINK, TREE, object_id
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.objects.store import Objects
from snapstore.git.objects.trees import Trees
from snapstore.surface.records.base import document
from snapstore.surface.records.nodes import NodeRecord


class Bare:
    def __init__(self, folder: Path) -> None:
        git_in(folder, "init", "--quiet", "--bare", "x.git")
        self.git_dir = str(folder / "x.git")
        self.objects = Objects(self.git_dir)
        self.trees = Trees(self.objects)

    def write(self, kind: bytes, data: bytes) -> bytes:
        writer = PackWriter(f"{self.git_dir}/objects/pack")
        oid = writer.add(kind, data)
        writer.finish()
        self.objects.reload()
        return oid


@pytest.fixture
def bare(tmp_path: Path) -> Bare:
    return Bare(tmp_path)


# Commits.

TEXT = st.text(max_size=60)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@example("subject", [("A", b"x\n\nSnapstore-Kind: forged")], "agent\n\nSnapstore-Turn: 9", "<a@b>", "<>")
@given(
    TEXT,
    st.lists(st.tuples(st.sampled_from("AMDT"), st.binary(min_size=1, max_size=30)), max_size=4),
    TEXT,
    TEXT,
    TEXT,
)
def test_a_commit_says_the_same_to_us_and_to_git(
    subject: str, changes: list[tuple[str, bytes]], agent: str, name: str, email: str
) -> None:
    with quick_folder() as folder:
        bare = Bare(folder)
        tree = bare.write(TREE, b"")
        parent = bare.write(COMMIT, commits.encode(tree, [], Identity("a", "b"), Identity("a", "b"), 1, "root\n"))
        text = message(subject, changes, {"Kind": "turn", "Session": "s", "Turn": 3, "Seq": 7, "Agent": agent})
        data = commits.encode(tree, [parent], Identity(name, email), Identity("snapstore", "x@y"), 1234567890, text)
        oid = bare.write(COMMIT, data)
        git(bare.git_dir, "update-ref", "refs/heads/x", oid.hex())
        git(bare.git_dir, "fsck", "--strict")
        read = commits.read(bare.objects, oid)
        assert (read.tree, read.parents, read.seconds) == (tree, (parent,), 1234567890)
        assert (read.trailers["Kind"], read.number("Turn"), read.number("Seq")) == ("turn", 3, 7)
        shown = git(bare.git_dir, "log", "-1", "--format=%T%x00%P%x00%at%x00%s%x00%(trailers:only)%x00%B", oid.hex())
        their_tree, their_parents, seconds, their_subject, trailers, body = shown.decode().split("\0")
        assert (their_tree, their_parents, seconds) == (tree.hex(), parent.hex(), "1234567890")
        assert their_subject == read.subject
        assert "Snapstore-Turn: 3\n" in trailers
        keys = [row.partition(":")[0] for row in trailers.splitlines()]
        assert keys == [f"Snapstore-{key}" for key in ("Kind", "Session", "Turn", "Seq", "Agent")]
        assert all(character.isprintable() or character == "\n" for character in body)
        bare.objects.close()


def test_commits_made_by_git_are_read(bare: Bare) -> None:
    """Merges, signatures and encodings in the header, messages without our trailers."""
    tree = bare.write(TREE, b"").hex()
    head = f"tree {tree}\nparent {'1' * 40}\nparent {'2' * 40}\nauthor Å <a@b> 99 -0730\ncommitter C <c@d> 100 +0000\n"
    extra = "encoding ISO-8859-1\ngpgsig -----BEGIN PGP SIGNATURE-----\n tree 0000\n \n -----END PGP SIGNATURE-----\n"
    oid = bare.write(COMMIT, (head + extra + "\nMerge it\n\nbody\n\nSigned-off-by: x\n").encode("utf-8"))
    read = commits.read(bare.objects, oid)
    assert read.tree.hex() == tree
    assert [parent.hex() for parent in read.parents] == ["1" * 40, "2" * 40]
    assert (read.author, read.seconds, read.subject) == ("Å <a@b>", 99, "Merge it")
    assert read.trailers == {}
    assert read.number("Turn") is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"tree 1234\n\nx",
        b"tree " + b"g" * 40 + b"\n\nx",
        b"parent " + b"1" * 40 + b"\n\nx",
        b"tree " + b"1" * 40 + b"\nparent zz\n\nx",
        b"tree " + b"1" * 40 + b"\nauthor A <a> x\n\nx",
        b"\xff\xfe\x00",
    ],
)
def test_damaged_commits_are_refused(bare: Bare, data: bytes) -> None:
    oid = bare.write(COMMIT, data)
    with pytest.raises(Corrupt, match=oid.hex()):
        commits.read(bare.objects, oid)


def test_an_object_of_another_kind_is_no_commit(bare: Bare) -> None:
    oid = bare.write(BLOB, b"tree " + b"1" * 40 + b"\nauthor A <a> 1 +0000\n\nx")
    with pytest.raises(Corrupt, match="not a commit"):
        commits.read(bare.objects, oid)


def test_only_the_last_paragraph_counts_as_trailers() -> None:
    ours = "Snapstore-Kind: turn\nSnapstore-Turn: 1"
    assert split_trailers(f"subject\n\n{ours}\n") == ("subject", {"Kind": "turn", "Turn": "1"})
    assert split_trailers(f"subject\n\n{ours}\n\nlater\n")[1] == {}
    assert split_trailers(f"{ours}\n")[1] == {}
    assert split_trailers(f"subject\n\nnot ours\n{ours}\n")[1] == {}


def _unescape(found: re.Match[str]) -> str:
    if found[1].isdigit():
        return chr(int(found[1], 8))
    return dict(zip("abtnvfr", "\a\b\t\n\v\f\r", strict=True)).get(found[1], found[1])


@given(st.binary(min_size=1, max_size=40))
def test_a_quoted_path_is_one_safe_line_and_can_be_read_back(path: bytes) -> None:
    assume(b"\0" not in path)
    text = quote(path)
    assert text.isprintable()
    if text.startswith('"'):
        inner = re.sub(
            r"\\([0-7]{3}|.)",
            lambda m: (
                chr(int(m[1], 8))
                if m[1].isdigit()
                else "\a\b\t\n\v\f\r"["abtnvfr".index(m[1])]
                if m[1] in "abtnvfr"
                else m[1]
            ),
            text[1:-1],
        )
        assert inner.encode("latin-1") == path
    else:
        assert text.encode() == path


# Notes.


def test_a_new_record_costs_as_much_whatever_is_there(bare: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    """dulwich counts all notes first, and so reads every folder of them."""
    read: list[bytes] = []
    real = bare.objects.store.get_raw
    monkeypatch.setattr(bare.objects.store, "get_raw", lambda name: (read.append(name), real(name))[1])
    costs = []
    tree = None
    for first in (0, 1000):
        writer = bare.objects.writer()
        ids = [hashlib.sha1(b"%d" % number).digest() for number in range(first, first + 1000)]
        tree = notes.put(bare.trees, writer, tree, [(oid, writer.add(BLOB, oid)) for oid in ids])
        writer.finish()
        bare.objects.reload()
        read.clear()
        again = notes.put(Trees(bare.objects), bare.objects.writer(), tree, [(bytes(20), ids[0])])
        costs.append(len(read))
        assert again != tree
    assert costs == [2, 2]
    found = NotesTree(Tree.from_string(bare.objects.read(tree)[1]), bare.objects.store)
    read.clear()
    found.set_note(b"0" * 40, b"one more")
    assert len(read) > 250
    bare.objects.close()


def test_records_are_git_notes(bare: Bare) -> None:
    """Written by us in folders of two digits; shown, listed, edited and rearranged by `git notes`; read by us again."""
    tree = bare.write(TREE, b"")
    ids = []
    for number in range(40):
        data = commits.encode(tree, [], Identity("a", "b"), Identity("a", "b"), number, f"commit {number}\n")
        ids.append(bare.write(COMMIT, data))
    notes_tree = None
    for start in range(0, 40, 10):
        writer = PackWriter(f"{bare.git_dir}/objects/pack")
        records = {oid: json.dumps({"n": ids.index(oid)}).encode() for oid in ids[start : start + 10]}
        notes_tree = notes.put(
            bare.trees, writer, notes_tree, [(oid, writer.add(BLOB, text)) for oid, text in records.items()]
        )
        writer.finish()
        bare.objects.reload()
    assert notes_tree is not None
    commit = bare.write(COMMIT, commits.encode(notes_tree, [], Identity("a", "b"), Identity("a", "b"), 1, "notes\n"))
    git(bare.git_dir, "update-ref", notes.REF, commit.hex())
    for number, oid in enumerate(ids):
        assert json.loads(git(bare.git_dir, "notes", "--ref=turns", "show", oid.hex())) == {"n": number}
        found = notes.read(bare.objects, bare.trees, notes_tree, oid)
        assert found is not None and json.loads(found) == {"n": number}
    assert len(git(bare.git_dir, "notes", "--ref=turns", "list").splitlines()) == 40
    # git may rearrange the folders as it adds its own
    git(bare.git_dir, "notes", "--ref=turns", "add", "-f", "-m", "by hand", ids[0].hex())
    git(bare.git_dir, "notes", "--ref=turns", "remove", ids[1].hex())
    rearranged = bytes.fromhex(git(bare.git_dir, "rev-parse", f"{notes.REF}^{{tree}}").decode().strip())
    bare.objects.reload()
    assert notes.read(bare.objects, bare.trees, rearranged, ids[0]) == b"by hand\n"
    assert notes.read(bare.objects, bare.trees, rearranged, ids[1]) is None
    for number, oid in enumerate(ids[2:], 2):
        found = notes.read(bare.objects, bare.trees, rearranged, oid)
        assert found is not None and json.loads(found) == {"n": number}
    # and ours replaces a note wherever git had put it
    writer = PackWriter(f"{bare.git_dir}/objects/pack")
    again = notes.put(bare.trees, writer, rearranged, [(ids[0], writer.add(BLOB, b"ours again"))])
    writer.finish()
    bare.objects.reload()
    data = commits.encode(again, [], Identity("a", "b"), Identity("a", "b"), 2, "notes\n")
    git(bare.git_dir, "update-ref", notes.REF, bare.write(COMMIT, data).hex())
    assert git(bare.git_dir, "notes", "--ref=turns", "show", ids[0].hex()) == b"ours again"
    git(bare.git_dir, "fsck", "--strict", "--no-dangling")


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_notes_at_every_depth_are_read(bare: Bare, depth: int) -> None:
    oid = object_id(BLOB, b"any")
    name = oid.hex().encode()
    path = b"/".join([name[2 * at : 2 * at + 2] for at in range(depth)] + [name[2 * depth :]])
    writer = PackWriter(f"{bare.git_dir}/objects/pack")
    tree = bare.trees.rewrite(
        writer, bytes.fromhex("4b825dc642cb6eb9a060e54bf8d69288fbee4904"), {path: (FILE, writer.add(BLOB, b"record"))}
    )
    writer.finish()
    bare.objects.reload()
    assert notes.read(bare.objects, bare.trees, tree, oid) == b"record"


def test_a_foreign_note_on_our_commit_is_no_stumbling_block(root: Path, store: Store) -> None:
    from snapstore.timeline.history.history import History

    with store.session("s").turn("one") as turn:
        write(root / "a", "1")
    assert turn.commit is not None
    for text in ("not JSON", "[1, 2]", '{"prompt": 5}', "{" * 3000):
        git(store.shadow.git_dir, "notes", "--ref=turns", "add", "-f", "-m", text, turn.commit.hex())
        node = History(store.session("s")).node(turn.commit)
        assert (node.turn, node.kind) == (1, "turn")
        json.dumps(document(NodeRecord.of(node)))
    store.session("s").begin("two").end()


# Patches.

LINES = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"a", b"\xff\n", b"a\r\n", b"-- \n", b"+++ x\n", b" a\n"])
)
CONTENT = st.one_of(LINES.map(b"".join), st.binary(max_size=60).filter(lambda data: b"\0" not in data))
STATE = st.one_of(st.none(), st.tuples(st.sampled_from([FILE, EXECUTABLE, LINK]), CONTENT))
NAMES = [b"plain", b"with space", b"sub/file", b'quo"te', b"new\nline", b"tab\t", b"\xff", "naïve".encode()]
NAMES += [b"trailing ", b"back\\slash", b"-rf", b"a b/c d", b" leading", b"a/b", b"it's", b"a b"]
FILE_NAMES = st.sampled_from(NAMES)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@example(b"with space", (FILE, b"a\n"), (FILE, b"b\n"))
@example(b"trailing ", None, (FILE, b"b"))
@example(b"plain", (FILE, b""), None)
@example(b"plain", None, (EXECUTABLE, b""))
@example(b"plain", (FILE, b"a\n" * 30 + b"b"), (FILE, b"c\n" + b"a\n" * 30 + b"b\n"))
@given(FILE_NAMES, STATE, STATE)
def test_a_patch_applied_by_git_gives_the_new_bytes(
    path: bytes, old: tuple[bytes, bytes] | None, new: tuple[bytes, bytes] | None
) -> None:
    assume(old is not None or new is not None)
    # git takes an empty link for damaged
    assume(all(state is None or state[0] != LINK or state[1] for state in (old, new)))
    entries = [state and (state[0], object_id(BLOB, state[1])) for state in (old, new)]
    before, after = (state[1] if state else b"" for state in (old, new))
    text = b"".join(patch(path, entries[0], entries[1], before, after))
    if old == new:
        return
    with quick_folder() as folder:
        git_in(folder, "init", "--quiet")
        if old is not None:
            rows = b"%s %s\t%s\0" % (old[0], _blob(folder, old[1]), path)
            git_in(folder, "update-index", "-z", "--index-info", feed=rows)
        # in the index, where modes and links are exact and nothing is converted
        done = subprocess.run(
            ["git", "apply", "--cached", "--whitespace=nowarn", "--unidiff-zero", "-"],
            cwd=folder,
            input=text,
            capture_output=True,
            check=False,
            env=plain_environment(),
        )
        assert done.returncode == 0, (done.stderr, text)
        rows = [row.partition(b"\t") for row in git_in(folder, "ls-files", "-s", "-z").split(b"\0") if row]
        listed = {name: (head.split(b" ")[0], head.split(b" ")[1].decode()) for head, _, name in rows}
        if new is None:
            assert listed == {}
        else:
            assert listed == {path: (new[0], object_id(BLOB, new[1]).hex())}
            assert git_in(folder, "cat-file", "blob", listed[path][1]) == new[1]


def _blob(folder: Path, data: bytes) -> bytes:
    return git_in(folder, "hash-object", "-w", "--stdin", feed=data).strip()


@given(LINES.map(b"".join), LINES.map(b"".join))
def test_counts_are_those_of_the_patch(old: bytes, new: bytes) -> None:
    text = list(patch(b"x", (FILE, bytes(20)), (FILE, b"1" * 20), old, new))
    if old == new:
        assert count(old, new) == (0, 0)
        return
    body = text[next(at for at, row in enumerate(text) if row.startswith(b"--- ")) + 1 :]
    added = sum(row.startswith(b"+") for row in body)
    removed = sum(row.startswith(b"-") for row in body)
    assert count(old, new) == (added, removed)


def test_counts_of_plain_edits_are_git_s(tmp_path: Path) -> None:
    git_in(tmp_path, "init", "--quiet")
    cases = [
        (b"a\nb\nc\n", b"a\nB\nc\n"),
        (b"", b"x\ny\n"),
        (b"x\ny\n", b""),
        (b"a\n" * 50, b"a\n" * 60),
        (b"a", b"a\n"),
    ]
    for number, (old, new) in enumerate(cases):
        write(tmp_path / "old", old)
        write(tmp_path / "new", new)
        out = git_in(tmp_path, "diff", "--no-index", "--numstat", "old", "new", may_fail=True).split()
        assert [str(part).encode() for part in count(old, new)] == out[:2], number


def test_binary_files_are_not_shown_line_by_line() -> None:
    assert is_binary(b"\0")
    assert not is_binary("naïve\n".encode() + b"\xff")
    rows = list(patch(b"x", (FILE, b"1" * 20), (FILE, b"2" * 20), b"a\0", b"b\0"))
    assert rows[-1] == b"Binary files a/x and b/x differ\n"


def test_a_large_rewritten_file_is_compared_in_reasonable_time() -> None:
    """Thousands of equal lines: the quadratic corner of every line comparison."""
    old = b"x\n" * 20_000 + b"".join(b"%d\n" % n for n in range(3000))
    new = b"".join(b"%d\n" % n for n in range(0, 3000, 2)) + b"x\n" * 20_000
    text = b"".join(patch(b"f", (FILE, object_id(BLOB, old)), (FILE, object_id(BLOB, new)), old, new))
    with quick_folder() as folder:
        write(folder / "f", old)
        (folder / "p").write_bytes(text)
        git_in(folder, "apply", "p")
        assert (folder / "f").read_bytes() == new
        assert os.path.getsize(folder / "f") == len(new)
