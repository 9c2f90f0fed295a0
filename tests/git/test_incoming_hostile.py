"""What comes in from others is hostile until checked: TESTING's trees, packs that lie, bombs. Refused at the door, with
nothing left behind and the history here untouched."""

from __future__ import annotations

import os
import random
import struct
import tempfile
import zlib
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path

import pytest
from dulwich.object_format import SHA1
from dulwich.pack import pack_object_header
from helpers import all_refs, child, git
from remotes import bare
from transporting import ADA, MAIN, History, leftovers, objects_in, received, shadow_with

from snapstore.errors import Corrupt, Remote, SnapstoreError, Unsafe
from snapstore.git.objects.commits import encode
from snapstore.git.objects.ids import BLOB, COMMIT, TAG, TREE, object_id
from snapstore.git.remote.bundles import receive_pack
from snapstore.git.remote.incoming import Incoming, Limits
from snapstore.git.remote.open import open_remote
from snapstore.git.repository import Shadow

NUMBERS = {COMMIT: 1, TREE: 2, BLOB: 3, TAG: 4}
HELLO = b"hello\n"
HELLO_ID = object_id(BLOB, HELLO)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Shadow]:
    """A store with some turns; whatever a test does, it must be as it was."""
    history = History(tmp_path / "here.git", turns=3)
    shadow = history.shadow
    before = (all_refs(shadow.git_dir), objects_in(shadow.git_dir))
    yield shadow
    assert (all_refs(shadow.git_dir), objects_in(shadow.git_dir)) == before
    assert leftovers(shadow) == []
    git(shadow.git_dir, "fsck", "--strict")


def entry_header(number: int, size: int) -> bytes:
    """The header of an entry of any kind, without the base of a delta."""
    head = pack_object_header(1, None, size, SHA1)
    head[0] = head[0] & 0x8F | number << 4
    return bytes(head)


def entry(kind: bytes, data: bytes, *, says: int | None = None) -> bytes:
    return entry_header(NUMBERS[kind], len(data) if says is None else says) + zlib.compress(data)


def pack(*entries: bytes, count: int | None = None) -> bytes:
    body = b"PACK" + struct.pack(">II", 2, len(entries) if count is None else count) + b"".join(entries)
    return body + sha1(body).digest()


def tree(*entries: tuple[bytes, bytes, bytes]) -> bytes:
    return b"".join(b"%s %s\0%s" % entry for entry in entries)


def commit(tree_id: bytes, *parents: bytes) -> bytes:
    return encode(tree_id, parents, ADA, ADA, 1_700_000_000, "turn\n")


def chain(top: bytes) -> tuple[bytes, list[bytes]]:
    """A commit of a tree, as entries; and its id."""
    data = commit(object_id(TREE, top))
    return object_id(COMMIT, data), [entry(COMMIT, data), entry(TREE, top), entry(BLOB, HELLO)]


def take(shadow: Shadow, data: bytes, tip: bytes = b"", limits: Limits | None = None) -> Incoming:
    """Takes a pack in by the door of bundles, with git; a fetch differs only in where the bytes come from."""
    known = list(shadow.refs.list("refs/").values())
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        incoming = receive_pack(file, shadow.objects, limits)
    return incoming.verify([tip] if tip else known, known)


HOSTILE_NAMES = {
    "up": b"..",
    "itself": b".",
    "git": b".git",
    "upper case": b".GIT",
    "mixed": b".gIt",
    "short name": b"git~1",
    "short name, upper": b"GIT~1",
    "trailing space": b".git ",
    "trailing dot": b".git.",
    "trailing both": b".git . .",
    "stream": b".git::$INDEX_ALLOCATION",
    "ignored code point": ".gi\u200ct".encode(),
    "another": "\ufeff.git".encode(),
    "absolute": b"/etc",
    "slash": b"a/b",
    "way up": b"../x",
    "long": b"n" * 300,
}


@pytest.mark.parametrize("name", HOSTILE_NAMES.values(), ids=HOSTILE_NAMES.keys())
@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_name_that_must_not_be_followed(here: Shadow, name: bytes, kind: str) -> None:
    below = tree((b"100644", b"config", HELLO_ID))
    oid = object_id(TREE, below) if kind == "folder" else HELLO_ID
    mode = {"file": b"100644", "folder": b"40000", "link": b"120000"}[kind]
    tip, entries = chain(tree((mode, name, oid)))
    with pytest.raises(Unsafe) as refused:
        take(here, pack(*entries, entry(TREE, below)), tip)
    assert "Nothing was imported" in refused.value.hint
    assert refused.value.message.isprintable()


def test_a_hostile_name_deep_below_and_as_a_delta(here: Shadow) -> None:
    """Not only where it is easy to see: four folders down, and hidden in a delta."""
    bad = tree((b"100644", b".git", HELLO_ID))
    oid, entries = object_id(TREE, bad), [entry(TREE, bad)]
    for name in (b"a", b"b", b"c"):
        data = tree((b"40000", name, oid))
        oid = object_id(TREE, data)
        entries.append(entry(TREE, data))
    data = commit(oid)
    with pytest.raises(Unsafe):
        take(here, pack(entry(BLOB, HELLO), entry(COMMIT, data), *entries), object_id(COMMIT, data))

    good = tree((b"100644", b".gix", HELLO_ID))
    literal = bytes([len(bad)]) + bad
    delta = bytes([len(good), len(bad)]) + literal
    hidden = entry_header(7, len(delta)) + object_id(TREE, good) + zlib.compress(delta)
    data = commit(object_id(TREE, bad))
    entries = [entry(BLOB, HELLO), entry(TREE, good), hidden, entry(COMMIT, data)]
    with pytest.raises(Unsafe):
        take(here, pack(*entries), object_id(COMMIT, data))


@pytest.mark.parametrize("mode", [b"160000", b"104755", b"100666", b"100777", b"60000", b"120777", b"040000", b"10644"])
def test_modes_that_are_neither_file_folder_nor_link(here: Shadow, mode: bytes) -> None:
    """Gitlinks, setuid, devices, and modes with zeros in front."""
    tip, entries = chain(tree((mode, b"name", HELLO_ID)))
    with pytest.raises((Unsafe, Corrupt)):
        take(here, pack(*entries), tip)


@pytest.mark.parametrize("target", [b"", b"a\0b", b"x" * 4096, b"x" * (1 << 20)], ids=["empty", "NUL", "4096", "1 MB"])
@pytest.mark.parametrize("here_already", [False, True])
def test_links_to_what_is_no_path(tmp_path: Path, target: bytes, here_already: bool) -> None:
    """Nobody has such a link on disk; whoever stood on such a turn could not be brought its files. A tree that lies in
    the store, left by whatever, is no better."""
    shadow = History(tmp_path / "here.git", turns=1).shadow
    top = tree((b"100644", b"a", HELLO_ID), (b"120000", b"link", object_id(BLOB, target)))
    tip, entries = chain(top)
    if here_already:
        writer = shadow.objects.writer()
        writer.add(TREE, top)
        writer.add(BLOB, target)
        shadow.objects.release(shadow.objects.finish(writer))
        entries = [entries[0], entries[2]]
    else:
        entries.append(entry(BLOB, target))
    before = all_refs(shadow.git_dir), objects_in(shadow.git_dir)
    with pytest.raises(Unsafe, match="is not a path"):
        take(shadow, pack(*entries), tip)
    assert (all_refs(shadow.git_dir), objects_in(shadow.git_dir)) == before
    assert leftovers(shadow) == []


@pytest.mark.parametrize(
    "top",
    [
        tree((b"100644", b"a", HELLO_ID), (b"100644", b"a", HELLO_ID)),
        tree((b"120000", b"a", HELLO_ID), (b"100644", b"a.b", HELLO_ID), (b"40000", b"a", HELLO_ID)),
        tree((b"100644", b"b", HELLO_ID), (b"100644", b"a", HELLO_ID)),
        tree((b"100644", b"", HELLO_ID)),
        tree((b"100644", b"a", HELLO_ID))[:-1],
        tree((b"100644", b"a", HELLO_ID)) + b"rest",
        b"100644 a",
        b"nonsense",
    ],
    ids=["twice", "link and folder", "out of order", "empty name", "cut", "rest", "no id", "nonsense"],
)
def test_trees_that_are_none(here: Shadow, top: bytes) -> None:
    tip, entries = chain(top)
    with pytest.raises(Corrupt):
        take(here, pack(*entries), tip)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense\n\n",
        b"tree " + b"0" * 39 + b"\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n\n",
        b"tree %s\nauthor A <a> 1 +0000\n\nx" % HELLO_ID.hex().encode(),
        b"tree %s\nparent x\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n\nx" % HELLO_ID.hex().encode(),
        b"tree %s\nauthor A <a> now\ncommitter A <a> 1 +0000\n\nx" % HELLO_ID.hex().encode(),
        b"tree %s\nauthor A\0 <a> 1 +0000\ncommitter A <a> 1 +0000\n\nx" % HELLO_ID.hex().encode(),
        b"tree %s\nauthor A <a> 1 +0000\ncommitter A <a> %s +0000\n\nx" % (HELLO_ID.hex().encode(), b"9" * 5000),
    ],
)
def test_commits_that_are_none(here: Shadow, data: bytes) -> None:
    with pytest.raises(Corrupt):
        take(here, pack(entry(COMMIT, data)), object_id(COMMIT, data))


def test_links_that_lead_nowhere(here: Shadow) -> None:
    """A missing blob, tree, parent; and one that is there but of another kind."""
    lost = bytes(range(20))
    top = tree((b"100644", b"a", lost))
    tip, entries = chain(top)
    with pytest.raises(Corrupt, match="incomplete"):
        take(here, pack(*entries), tip)
    tip, entries = chain(tree((b"40000", b"a", lost)))
    with pytest.raises(Corrupt, match="incomplete"):
        take(here, pack(*entries), tip)
    for data in (commit(lost), commit(HELLO_ID), commit(object_id(TREE, b""), lost)):
        with pytest.raises(Corrupt):
            take(here, pack(entry(COMMIT, data), entry(BLOB, HELLO), entry(TREE, b"")), object_id(COMMIT, data))
    tip, entries = chain(tree((b"40000", b"a", HELLO_ID)))  # a folder that is a file
    with pytest.raises(Corrupt):
        take(here, pack(*entries), tip)
    below = tree((b"100644", b"x", HELLO_ID))
    tip, entries = chain(tree((b"100644", b"a", object_id(TREE, below))))  # and a file that is a folder
    with pytest.raises(Corrupt, match="where a blob belongs"):
        take(here, pack(*entries, entry(TREE, below)), tip)
    tip, entries = chain(tree((b"100644", b"a", here.refs.read(MAIN) or b"")))  # one of ours, of another kind
    with pytest.raises(Corrupt, match="where a blob belongs"):
        take(here, pack(*entries), tip)
    with pytest.raises(Corrupt, match="incomplete"):  # the tip itself did not come
        take(here, pack(entry(BLOB, HELLO)), lost)


def test_remains_in_the_store_prove_nothing(here: Shadow, tmp_path: Path) -> None:
    """A tree that lies about in the store, its file long gone, must not make an incoming commit look whole."""
    torn = tree((b"100644", b"a", bytes(20)))
    torn_id = object_id(TREE, torn)
    name = Path(here.objects.folder) / torn_id.hex()[:2] / torn_id.hex()[2:]
    name.parent.mkdir(exist_ok=True)
    name.write_bytes(zlib.compress(b"tree %d\0%s" % (len(torn), torn)))
    data = commit(torn_id, here.refs.read(MAIN) or b"")
    try:
        with pytest.raises(Corrupt, match="incomplete"):
            take(here, pack(entry(COMMIT, data)), object_id(COMMIT, data))
    finally:
        name.unlink()


def test_packs_that_lie(here: Shadow) -> None:
    blob = entry(BLOB, HELLO)
    good = pack(blob)
    for data in (
        b"",
        b"PACK",
        b"PACK" + struct.pack(">II", 3, 1) + good[12:],
        good[:-1],
        good[:-21] + b"x" + good[-20:],
        good + b"more",
        pack(blob, count=2),
        pack(blob, blob),
        pack(blob, count=0),
        pack(entry(BLOB, HELLO, says=5)),
        pack(entry(BLOB, HELLO, says=7)),
        pack(entry_header(3, 6) + b"this is not deflated at all"),
        pack(bytes([0x50]) + zlib.compress(b"")),  # of a kind that there is none of
        pack(bytes([0x80 | 0x30] + [0xFF] * 40)),
        pack(entry_header(6, 5) + b"\x05" + zlib.compress(b"delta")),  # of what is before the pack
        pack(entry_header(7, 5) + bytes(20) + zlib.compress(b"delta")),  # of what is not there
        struct.pack(">4sII", b"PACK", 2, 0xFFFFFFFF),
    ):
        with pytest.raises((Corrupt, Remote)):
            take(here, data)


def delta_of(base: bytes, delta: bytes) -> bytes:
    return entry_header(7, len(delta)) + object_id(BLOB, base) + zlib.compress(delta)


def test_deltas_that_lie(here: Shadow) -> None:
    base = b"x" * 100
    whole = entry(BLOB, base)
    copy_all = bytes([0x90, 100])
    for delta in (
        b"",
        bytes([100]),
        bytes([100, 50]) + copy_all,  # makes more than it says
        bytes([99, 100]) + copy_all,  # of another base
        bytes([100, 100]),  # makes nothing
        bytes([100, 100]) + bytes([0x91, 50, 100]),  # from beyond the end of its base
        bytes([100, 100, 0x90]),  # cut in a command
        bytes([100, 20, 20]) + b"short",
        bytes([100]) + b"\xff" * 30,
    ):
        with pytest.raises(Corrupt):
            take(here, pack(whole, delta_of(base, delta)))
    a, b = bytes([100, 100]) + copy_all, bytes([100, 100]) + copy_all
    circle = [entry_header(7, len(d)) + oid + zlib.compress(d) for d, oid in ((a, b"a" * 20), (b, b"b" * 20))]
    with pytest.raises(Corrupt, match="unresolved delta"):
        take(here, pack(*circle))


def test_bombs_stay_small(here: Shadow, tmp_path: Path) -> None:
    """A few bytes that would become gigabytes: inflated no further than they say, and what they say has a limit."""
    squeeze = zlib.compressobj(9)
    zeros = b"".join([*(squeeze.compress(bytes(1 << 20)) for _ in range(1 << 10)), squeeze.flush()])
    assert len(zeros) < 1_200_000
    says_little = entry_header(3, 1000) + zeros
    says_all = {kind: entry_header(NUMBERS[kind], 1 << 30) + zeros for kind in NUMBERS}
    repeat = _size(1 << 24) + _size(1 << 40) + bytes([0xF0, 0xFF, 0xFF, 0xFF]) * 70_000
    base = bytes(1 << 24)
    cases = {
        "says little": pack(says_little),
        "tree": pack(says_all[TREE]),
        "commit": pack(says_all[COMMIT]),
        "delta": pack(entry(BLOB, HELLO), entry_header(7, 1 << 40) + HELLO_ID + zeros),
        "delta that repeats": pack(entry(BLOB, base), delta_of(base, repeat)),
        "delta that repeats and says little": pack(
            entry(BLOB, base), delta_of(base, _size(1 << 24) + _size(1 << 24) + repeat[-280_000:])
        ),
    }
    for name, data in cases.items():
        (tmp_path / "pack").write_bytes(data)
        code = """
import resource, sys
from snapstore.errors import SnapstoreError
from snapstore.git.remote.bundles import receive_pack
from snapstore.git.repository import Shadow
shadow = Shadow(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    with open(sys.argv[2], "rb") as file:
        receive_pack(file, shadow.objects).verify([], [])
except SnapstoreError as error:
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(error.name, ours, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
        done = child(code, here.git_dir, tmp_path / "pack")
        assert done.returncode == 0 and done.stdout, (name, done)
        kind, ours, gits = done.stdout.split()
        assert kind in (b"corrupt", b"remote"), name
        assert int(ours) < 60 * 1024, (name, ours)
        assert int(gits) < 200 * 1024, (name, gits)


def _size(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(0x80 | (number & 0x7F))
        number >>= 7
    return bytes([*out, number])


def test_large_blobs_stream_and_limits_hold(here: Shadow, tmp_path: Path) -> None:
    tip, entries = chain(tree((b"100644", b"a", HELLO_ID)))
    with pytest.raises(Remote, match="limit"):
        take(here, pack(*entries, entry(BLOB, bytes(5000))), tip, Limits(blob=4999))
    with pytest.raises(Remote, match="bytes would come in"):
        take(here, pack(*entries, entry(BLOB, os.urandom(5000))), tip, Limits(pack=4000))
    with pytest.raises(Remote, match="objects"):
        take(here, pack(*entries), tip, Limits(objects=2))
    with pytest.raises(Remote, match="limit"):
        take(here, pack(*entries), tip, Limits(held=20))


def test_very_many_entries_and_the_longest_link(here: Shadow, tmp_path: Path) -> None:
    """Large is not hostile by itself: it comes in, in bounded time and memory."""
    other = shadow_with(tmp_path / "other.git")
    names = (b"%07d" % number for number in range(200_000))
    top = b"".join(b"100644 %s\0%s" % (name, HELLO_ID) for name in names)
    tip, entries = chain(top)
    link = b"x" * 4095
    second = tree((b"120000", b"link", object_id(BLOB, link)))
    data = commit(object_id(TREE, second), tip)
    entries += [entry(BLOB, link), entry(TREE, second), entry(COMMIT, data)]
    incoming = take(other, pack(*entries), object_id(COMMIT, data))
    received(other, {MAIN: object_id(COMMIT, data)}, incoming)
    git(other.git_dir, "fsck", "--strict")


def test_deep_delta_chains_and_many_branches_of_one(tmp_path: Path) -> None:
    """A chain as long as git makes them, and a hundred deltas of one base: resolved with little held."""
    other = shadow_with(tmp_path / "other.git")
    body = os.urandom(2000)
    bases, entries = [body], [entry(BLOB, body)]
    for number in range(300):
        base = bases[-1] if number < 200 else bases[0]
        grown = base + b"%d\n" % number
        insert = b"%d\n" % number
        delta = _size(len(base)) + _size(len(grown)) + _copy(len(base)) + bytes([len(insert)]) + insert
        entries.append(delta_of(base, delta))
        bases.append(grown)
    entries.reverse()  # bases after what builds on them
    top = b"".join(sorted(b"100644 f%03d\0%s" % (at, object_id(BLOB, data)) for at, data in enumerate(bases)))
    tip, rest = chain(top)
    incoming = take(other, pack(*entries, *rest), tip)
    received(other, {MAIN: tip}, incoming)
    git(other.git_dir, "fsck", "--strict")


def _copy(size: int) -> bytes:
    return bytes([0x80 | 0x10 | 0x20, size & 0xFF, size >> 8])


def test_hostile_trees_made_with_git_do_not_come_in(here: Shadow, tmp_path: Path) -> None:
    """End to end: a server with such a tree, as `git hash-object --literally` makes it (TESTING)."""
    server = str(bare(tmp_path / "server.git"))
    blob = git(server, "hash-object", "-w", "--stdin", feed=HELLO).decode().strip()
    for name in (b"..", b".git", b"git~1", ".gi\u200ct".encode()):
        data = b"100644 %s\0%s" % (name, bytes.fromhex(blob))
        top = git(server, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", feed=data).decode().strip()
        tip = git(server, "commit-tree", top, "-m", "x").decode().strip()
        git(server, "update-ref", MAIN, tip)
        with open_remote(server) as remote, pytest.raises(Unsafe):
            remote.fetch([remote.refs()[MAIN]], here.refs.list("refs/").values(), here.objects)


def test_ours_is_not_replaced_by_what_claims_the_same_id(tmp_path: Path) -> None:
    """A forged sha1 is a matter of money. Where an id is known here, the bytes must be the same."""
    shadow = History(tmp_path / "here.git", turns=1).shadow
    tip, entries = chain(tree((b"100644", b"a", HELLO_ID)))
    other = Path(shadow.objects.folder) / HELLO_ID.hex()[:2] / HELLO_ID.hex()[2:]
    other.parent.mkdir(exist_ok=True)
    other.write_bytes(zlib.compress(b"blob 6\0HELLO\n"))
    with pytest.raises(Corrupt, match="COLLISION"):
        take(shadow, pack(*entries), tip)
    assert leftovers(shadow) == []


def test_refusals_are_of_the_family(here: Shadow) -> None:
    """Random bytes after a right beginning: refused as they should be, never with a traceback."""
    chance = random.Random(7)
    for _ in range(60):
        body = bytes(chance.randrange(256) for _ in range(chance.randrange(200)))
        with pytest.raises(SnapstoreError):
            take(here, b"PACK" + struct.pack(">II", 2, chance.randrange(1, 4)) + body)
