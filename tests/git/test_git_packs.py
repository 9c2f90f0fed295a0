"""The pack reader and writer against git's own: every object, both ways, and no damage that goes unnoticed."""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import random
import struct
import subprocess
import sys
import time
import tracemalloc
import zlib
from io import BytesIO
from pathlib import Path

import pytest
from dulwich.pack import write_pack_index_v2
from helpers import assert_whole, git, git_in, quick_folder, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snapstore import Failed, SnapstoreError, Store
from snapstore.git.maintenance.fold import sweep
from snapstore.git.objects.ids import BLOB, COMMIT, TREE, Missing, object_id
from snapstore.git.objects.pack import Pack, apply_delta
from snapstore.git.objects.pack_writer import PackWriter, SourceChanged
from snapstore.git.objects.store import Objects


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with long runs of similar blobs and trees, an annotated tag, and odd objects."""
    folder = tmp_path_factory.mktemp("history")
    git_in(folder, "init", "--quiet")
    dice = random.Random(3)
    lines = [f"line {number} of a file that changes slowly\n" for number in range(400)]
    binary = bytearray(dice.randbytes(40_000))
    for number in range(40):
        lines[dice.randrange(len(lines))] = f"changed in {number}\n"
        binary[dice.randrange(len(binary))] ^= 0xFF
        write(folder / "text", "".join(lines))
        write(folder / "binary", bytes(binary))
        write(folder / f"dir{number % 5}/file{number}", "x" * number)
        git_in(folder, "add", ".")
        git_in(folder, "commit", "--quiet", "-m", f"commit {number}")
    write(folder / "empty", "")
    git_in(folder, "add", ".")
    git_in(folder, "commit", "--quiet", "-m", "with an empty blob")
    git_in(folder, "tag", "-a", "-m", "annotated", "v1")
    return folder


REPACKS: dict[str, list[list[str]]] = {
    "loose": [],
    "offset deltas": [["repack", "-adfq", "--depth=50", "--window=50"]],
    "base named by id": [["-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq", "--depth=50", "--window=50"]],
    "no deltas": [["repack", "-adfq", "--window=0"]],
    "long chains": [["repack", "-adfq", "--depth=4095", "--window=250"]],
    "long chains by id": [["-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq", "--depth=4095", "--window=250"]],
    "uncompressed": [["-c", "core.compression=0", "repack", "-adfFq"]],
    "several packs": [["-c", "pack.packSizeLimit=1m", "repack", "-adfq", "--window=0"]],
}


def everything(git_dir: str) -> dict[bytes, tuple[bytes, int]]:
    out = git(git_dir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
    rows = [row.split(b" ") for row in out.splitlines()]
    return {bytes.fromhex(oid.decode()): (kind, int(size)) for oid, kind, size in rows}


def assert_reads_like_git(git_dir: str) -> None:
    objects = Objects(git_dir)
    expected = everything(git_dir)
    assert len(expected) > 100
    for oid, (kind, size) in expected.items():
        assert objects.contains(oid)
        assert objects.contains(oid, fresh=False)
        assert objects.header(oid) == (kind, size)
        found, data = objects.read(oid)
        assert (found, object_id(found, data)) == (kind, oid)
        assert objects.verify(oid) == (kind, size)
        if kind == BLOB:
            assert b"".join(objects.stream(oid)) == data
    nothing = hashlib.sha1(b"nothing").digest()
    assert not objects.contains(nothing)
    for question in (objects.read, objects.header, objects.stream, objects.verify):
        with pytest.raises(Missing):
            question(nothing)
    objects.close()


@pytest.mark.parametrize("how", REPACKS)
def test_every_object_of_a_real_repository_is_read_like_git_reads_it(history: Path, tmp_path: Path, how: str) -> None:
    git_in(tmp_path, "clone", "--quiet", "--mirror", "--no-hardlinks", str(history), "copy")
    git_dir = str(tmp_path / "copy")
    for command in REPACKS[how]:
        git(git_dir, *command)
    if how == "loose":
        packs = [(path, path.read_bytes()) for path in Path(git_dir, "objects/pack").glob("*.pack")]
        for path in list(Path(git_dir, "objects/pack").iterdir()):
            path.unlink()
        for _, data in packs:
            git(git_dir, "unpack-objects", "-q", feed=data)
    assert_reads_like_git(git_dir)


def test_offsets_beyond_31_bits_are_read(history: Path, tmp_path: Path) -> None:
    """git can be told to write every offset into the table for huge packs: no 2 GB needed."""
    git_in(tmp_path, "clone", "--quiet", "--mirror", "--no-hardlinks", str(history), "copy")
    git_dir = str(tmp_path / "copy")
    git(git_dir, "repack", "-adfq")
    (pack,) = Path(git_dir, "objects/pack").glob("*.pack")
    pack.with_suffix(".idx").unlink()
    pack.with_suffix(".rev").unlink(missing_ok=True)
    git(git_dir, "index-pack", "--index-version=2,0x40", str(pack))
    assert_reads_like_git(git_dir)
    found = Pack(str(pack)[:-5])
    assert sorted(found.offsets()) == sorted(found.ids())
    assert {oid: found.find(oid) for oid in found.ids()} == found.offsets()


def test_an_index_of_version_1_is_refused_not_misread(history: Path, tmp_path: Path) -> None:
    git_in(tmp_path, "clone", "--quiet", "--mirror", "--no-hardlinks", str(history), "copy")
    git_dir = str(tmp_path / "copy")
    git(git_dir, "repack", "-adfq")
    (pack,) = Path(git_dir, "objects/pack").glob("*.pack")
    pack.with_suffix(".idx").unlink()
    git(git_dir, "index-pack", "--index-version=1", str(pack))
    with pytest.raises(SnapstoreError):
        Objects(git_dir).read(next(iter(everything(git_dir))))


def test_objects_are_found_again_after_a_repack_under_our_feet(history: Path, tmp_path: Path) -> None:
    git_in(tmp_path, "clone", "--quiet", "--mirror", "--no-hardlinks", str(history), "copy")
    git_dir = str(tmp_path / "copy")
    objects = Objects(git_dir)
    expected = everything(git_dir)
    half = list(expected)[::2]
    for oid in half:
        objects.read(oid)
    git(git_dir, "repack", "-adfq")
    for oid, (kind, size) in expected.items():
        assert objects.header(oid) == (kind, size)
        assert objects.contains(oid, fresh=False) or objects.contains(oid)
        assert objects.read(oid)[0] == kind
    stream = objects.stream(max(expected, key=lambda oid: expected[oid][1] if expected[oid][0] == BLOB else 0))
    first = next(stream)
    git(git_dir, "repack", "-adfFq")
    objects.reload()
    assert first + b"".join(stream)
    objects.close()


# Damage.


def test_an_index_without_its_pack_holds_nothing_and_is_swept(root: Path) -> None:
    """A power cut may keep one of two renames. What the index lists is stored again, not taken for stored."""
    write(root / "file", "as before")
    with Store.open(root, create=True) as store:
        session = store.session("s")
        session.begin("cut short")
        write(root / "file", "only here")
        oid = object_id(BLOB, b"only here")
        writer = store.shadow.objects.writer()
        writer.add(BLOB, b"only here")
        base = writer.finish()
        Path(f"{base}.pack").unlink()
    with Store.open(root) as store:
        objects = store.shadow.objects
        assert not objects.contains(oid)
        assert not objects.contains(oid, fresh=False)
        store.session("s").end()
        assert objects.read(oid) == (BLOB, b"only here")
        assert_whole(store)
        assert Path(f"{base}.idx").exists()
        os.utime(f"{base}.idx", (0, 0))
        sweep(objects, time.time())
        assert not Path(f"{base}.idx").exists()
        assert_whole(store)


@pytest.mark.parametrize("suffix", [".pack", ".idx"])
def test_damage_is_noticed_or_harmless_and_never_another_exception(history: Path, suffix: str) -> None:
    """Cut short and flipped at many places: what is read is right, or refused in the family's words."""
    with quick_folder() as folder:
        git_in(folder, "clone", "--quiet", "--mirror", "--no-hardlinks", str(history), "copy")
        git_dir = str(folder / "copy")
        git(git_dir, "-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq")
        expected = everything(git_dir)
        (pack,) = Path(git_dir, "objects/pack").glob("*.pack")
        path = pack.with_suffix(suffix)
        path.chmod(0o644)
        whole = path.read_bytes()
        dice = random.Random(1)
        variants = [whole[:size] for size in (0, 1, 4, 11, 12, 100, 1031, 1072, len(whole) // 2, len(whole) - 1)]
        for _ in range(60):
            damaged = bytearray(whole)
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
            variants.append(bytes(damaged))
        variants += [bytes(len(whole)), whole + whole, dice.randbytes(len(whole))]
        some = dice.sample(list(expected), 60)
        noticed = 0
        for data in variants:
            path.write_bytes(data)
            objects = Objects(git_dir)
            for oid in some:
                kind, size = expected[oid]
                try:
                    assert objects.verify(oid) == (kind, size)
                    found, content = objects.read(oid)
                    assert object_id(found, content) == oid
                except SnapstoreError as error:
                    assert error.status == 14
                    noticed += 1
                for question in (objects.header, objects.contains, objects.stream):
                    try:
                        answer = question(oid)
                        if question == objects.stream:
                            list(answer)
                    except SnapstoreError:
                        noticed += 1
            objects.close()
        assert noticed


@pytest.mark.parametrize("how", ["empty", "cut", "noise", "wrong size", "another object", "zeros", "no header"])
def test_damaged_loose_objects_are_refused(tmp_path: Path, how: str) -> None:
    git_in(tmp_path, "init", "--quiet", "--bare", "x.git")
    git_dir = str(tmp_path / "x.git")
    content = os.urandom(50_000)
    oid = git(git_dir, "hash-object", "-w", "--stdin", feed=content).decode().strip()
    path = Path(git_dir, "objects", oid[:2], oid[2:])
    path.chmod(0o644)
    whole = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "cut": whole[: len(whole) // 2],
            "noise": os.urandom(1000),
            "wrong size": zlib.compress(b"blob 49999\0" + content),
            "another object": zlib.compress(b"blob 5\0hello"),
            "zeros": bytes(len(whole)),
            "no header": zlib.compress(content),
        }[how]
    )
    objects = Objects(git_dir)
    with pytest.raises(SnapstoreError) as caught:
        objects.verify(bytes.fromhex(oid))
    assert caught.value.status == 14
    assert oid in str(caught.value)


def make_pack(folder: Path, entries: list[tuple[bytes, bytes]]) -> str:
    """A pack of raw entries (id, bytes), indexed by hand: git would refuse to index these."""
    body = b"PACK" + struct.pack(">II", 2, len(entries))
    places = {}
    for oid, data in entries:
        places[oid] = (len(body), zlib.crc32(data))
        body += data
    body += hashlib.sha1(body).digest()
    ids = sorted(places)
    fanout = [sum(1 for oid in ids if oid[0] <= first) for first in range(256)]
    index = b"\xfftOc\0\0\0\2" + struct.pack(">256I", *fanout) + b"".join(ids)
    index += b"".join(struct.pack(">I", places[oid][1]) for oid in ids)
    index += b"".join(struct.pack(">I", places[oid][0]) for oid in ids) + body[-20:]
    index += hashlib.sha1(index).digest()
    base = folder / "objects" / "pack" / f"pack-{body[-20:].hex()}"
    base.parent.mkdir(parents=True, exist_ok=True)
    base.with_suffix(".pack").write_bytes(body)
    base.with_suffix(".idx").write_bytes(index)
    return str(folder)


def entry(number: int, size: int, rest: bytes) -> bytes:
    out = bytearray()
    first = (number << 4) | (size & 15)
    size >>= 4
    while size:
        out.append(first | 0x80)
        first = size & 0x7F
        size >>= 7
    out.append(first)
    return bytes(out) + rest


def test_a_delta_of_itself_is_refused(tmp_path: Path) -> None:
    a, b = hashlib.sha1(b"a").digest(), hashlib.sha1(b"b").digest()
    delta = zlib.compress(b"\x00\x00")
    git_dir = make_pack(tmp_path, [(a, entry(7, 2, b + delta)), (b, entry(7, 2, a + delta))])
    objects = Objects(git_dir)
    for question in (objects.read, objects.header, objects.verify):
        with pytest.raises(SnapstoreError):
            question(a)


def test_a_long_chain_of_bases_named_by_id_is_read(tmp_path: Path) -> None:
    """git allows chains of 4095, and names bases by id when told to: this one has 1500 links."""
    data = b"the base of it all"
    entries = [(object_id(BLOB, data), entry(3, len(data), zlib.compress(data)))]
    for number in range(1500):
        old, new = data, b"%06d" % number + data[6:]
        # copy all but the first six bytes, after six new ones
        delta = bytes([len(old), len(new), 6]) + new[:6] + bytes([0x91, 6, len(old) - 6])
        assert apply_delta(old, delta) == new
        entries.append((object_id(BLOB, new), entry(7, len(delta), object_id(BLOB, old) + zlib.compress(delta))))
        data = new
    objects = Objects(make_pack(tmp_path, entries))
    last = object_id(BLOB, data)
    assert objects.read(last) == (BLOB, data)
    assert objects.header(last) == (BLOB, len(data))
    assert b"".join(objects.stream(last)) == data
    assert objects.verify(last) == (BLOB, len(data))
    objects.close()


def test_a_delta_whose_code_table_is_long_is_read(tmp_path: Path) -> None:
    """Deflate may put some 300 bytes of code table before the first byte that comes out."""
    dice = random.Random(5)
    base = b"the base"
    # many different bytes, of very different frequencies: a table of its own pays off, and is long
    alphabet = [bytes([value]) * (1 + dice.randrange(40) ** 2 // 20) for value in range(256)]
    text = b"".join(dice.choices(alphabet, k=3000))
    new = text[: 127 * 40]
    delta = bytes([len(base)]) + _size(len(new))
    for at in range(0, len(new), 127):
        piece = new[at : at + 127]
        delta += bytes([len(piece)]) + piece
    assert apply_delta(base, delta) == new
    for squeeze in (zlib.compressobj(9), zlib.compressobj(9, zlib.DEFLATED, 15, 9, zlib.Z_HUFFMAN_ONLY)):
        packed = squeeze.compress(delta) + squeeze.flush()
        assert not zlib.decompressobj().decompress(packed[:64])
        entries = [
            (object_id(BLOB, base), entry(3, len(base), zlib.compress(base))),
            (object_id(BLOB, new), entry(7, len(delta), object_id(BLOB, base) + packed)),
        ]
        objects = Objects(make_pack(tmp_path, entries))
        assert objects.header(object_id(BLOB, new)) == (BLOB, len(new))
        assert objects.read(object_id(BLOB, new)) == (BLOB, new)
        assert objects.verify(object_id(BLOB, new)) == (BLOB, len(new))
        objects.close()


def _size(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def test_an_offset_delta_without_a_base_is_refused(tmp_path: Path) -> None:
    a = hashlib.sha1(b"a").digest()
    for distance in (b"\x00", b"\x0d", b"\x7f", b"\xff\xff\xff\x7f"):
        git_dir = make_pack(tmp_path, [(a, entry(6, 2, distance + zlib.compress(b"\x00\x00")))])
        with pytest.raises(SnapstoreError):
            Objects(git_dir).read(a)


def test_a_bomb_costs_no_memory(tmp_path: Path) -> None:
    """An entry that claims ten bytes and inflates to many megabytes; one that claims a terabyte and has ten bytes."""
    a, b = hashlib.sha1(b"a").digest(), hashlib.sha1(b"b").digest()
    squeeze = zlib.compressobj(9)
    bomb = b"".join(squeeze.compress(bytes(1 << 20)) for _ in range(100)) + squeeze.flush()
    git_dir = make_pack(tmp_path, [(a, entry(3, 10, bomb)), (b, entry(3, 1 << 40, zlib.compress(b"0123456789")))])
    objects = Objects(git_dir)
    tracemalloc.start()
    for oid in (a, b):
        for question in (objects.read, objects.verify, lambda oid: sum(len(piece) for piece in objects.stream(oid))):
            with pytest.raises(SnapstoreError):
                question(oid)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 << 20


@given(st.binary(max_size=300), st.binary(max_size=60))
def test_any_bytes_as_a_delta_are_applied_or_refused(base: bytes, delta: bytes) -> None:
    try:
        apply_delta(base, delta)
    except SnapstoreError:
        pass


# The writer.


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.one_of(st.binary(max_size=200), st.integers(0, 70_000).map(lambda size: b"ab" * size)), max_size=30),
    st.lists(st.sampled_from([0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20]), max_size=2),
)
def test_what_is_written_is_a_pack_by_git_s_own_judgement(contents: list[bytes], streamed: list[int]) -> None:
    with quick_folder() as folder:
        git_in(folder, "init", "--quiet", "--bare", "x.git")
        git_dir = str(folder / "x.git")
        writer = PackWriter(f"{git_dir}/objects/pack")
        expected: dict[bytes, tuple[bytes, bytes]] = {}
        for data in contents:
            expected[writer.add(BLOB, data)] = (BLOB, data)
        for number, size in enumerate(streamed):
            data = (bytes([number]) + os.urandom(1000) * (size // 1000 + 1))[:size]
            source = iter([data[at : at + 300_000] for at in range(0, size, 300_000)])
            expected[writer.add_stream(lambda count, s=source: next(s, b""), size, lambda oid: False)] = (BLOB, data)
        if contents:
            entries = b"".join(
                b"100644 f%05d\0%s" % (number, object_id(BLOB, data)) for number, data in enumerate(contents)
            )
            tree = writer.add(TREE, entries)
            expected[tree] = (TREE, entries)
            text = b"tree %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n" % tree.hex().encode()
            expected[writer.add(COMMIT, text)] = (COMMIT, text)
        assert len(writer) == len(expected)
        assert set(writer.ids()) == set(expected)
        base = writer.finish()
        assert (base is None) == (not expected)
        left = [name for name in os.listdir(f"{git_dir}/objects/pack") if not name.startswith("pack-")]
        assert left == []
        if base is None:
            return
        subprocess.run(["git", "verify-pack", f"{base}.idx"], check=True, capture_output=True)
        git(git_dir, "index-pack", "--strict", "-o", str(folder / "again.idx"), f"{base}.pack")
        assert (folder / "again.idx").read_bytes() == Path(f"{base}.idx").read_bytes()
        objects = Objects(git_dir)
        for oid, (kind, data) in expected.items():
            assert objects.read(oid) == (kind, data)
            assert objects.header(oid) == (kind, len(data))
        objects.close()
        assert everything(git_dir) == {oid: (kind, len(data)) for oid, (kind, data) in expected.items()}


def test_an_abandoned_writer_leaves_no_trace(tmp_path: Path) -> None:
    for size in (10, 9 << 20):
        writer = PackWriter(str(tmp_path))
        writer.add(BLOB, os.urandom(size))
        pieces = [b"", b"x" * 100]
        writer.add_stream(lambda count, pieces=pieces: pieces.pop(), 100, lambda oid: False)
        writer.abandon()
        assert os.listdir(tmp_path) == []
        writer.abandon()


def test_a_stream_that_is_known_already_or_changed_is_taken_out_again(tmp_path: Path) -> None:
    """Before and after it other objects are written: they must not shift."""
    git_in(tmp_path, "init", "--quiet", "--bare", "x.git")
    git_dir = str(tmp_path / "x.git")
    large = os.urandom(3 << 20)

    def reader(data: bytes, step: int = 1 << 20):  # type: ignore[no-untyped-def]
        pieces = iter([data[at : at + step] for at in range(0, len(data), step)])
        return lambda count: next(pieces, b"")

    writer = PackWriter(f"{git_dir}/objects/pack")
    expected = {writer.add(BLOB, b"first"): b"first"}
    known = object_id(BLOB, large)
    assert writer.add_stream(reader(large), len(large), lambda oid: oid == known) == known
    assert known not in writer
    expected[writer.add(BLOB, b"second")] = b"second"
    for size in (len(large) - 1, len(large) + 1, 0):
        with pytest.raises(SourceChanged):
            writer.add_stream(reader(large), size, lambda oid: False)
    expected[writer.add(BLOB, b"third")] = b"third"
    kept = writer.add_stream(reader(large), len(large), lambda oid: False)
    expected[kept] = large
    again = writer.add_stream(reader(large), len(large), lambda oid: False)
    assert again == kept
    expected[writer.add(BLOB, b"last")] = b"last"
    base = writer.finish()
    assert base is not None
    subprocess.run(["git", "verify-pack", f"{base}.idx"], check=True)
    objects = Objects(git_dir)
    assert {oid: objects.read(oid)[1] for oid in expected} == expected
    objects.close()
    assert len(everything(git_dir)) == len(expected)


def test_a_kept_pack_survives_any_gc_until_it_is_released(tmp_path: Path) -> None:
    """Between the objects and the refs that will hold them, everything in it is unreachable."""
    git_in(tmp_path, "init", "--quiet", "--bare", "x.git")
    git_dir = str(tmp_path / "x.git")
    writer = PackWriter(f"{git_dir}/objects/pack")
    oid = writer.add(BLOB, b"not yet held by anything")
    base = writer.finish(keep=True)
    assert base is not None
    git(git_dir, "gc", "--quiet", "--prune=now")
    git(git_dir, "repack", "-adq")
    git(git_dir, "prune", "--expire=now")
    assert git(git_dir, "cat-file", "blob", oid.hex()) == b"not yet held by anything"
    os.unlink(f"{base}.keep")


def test_many_turns_do_not_leave_many_packs(root: Path) -> None:
    """Thousands of small packs would slow every reader."""
    from snapstore import Store
    from snapstore.timeline.maintenance.check import Check

    with Store.open(root, create=True) as store:
        for number in range(70):
            with store.session("s").turn("small"):
                write(root / "file", str(number))
        packs = list(Path(store.shadow.git_dir, "objects/pack").glob("*.pack"))
        assert len(packs) < 40  # more than two a turn were written
        assert Check(store, read_data=True).run().problems == []
    for pack in packs:
        subprocess.run(["git", "verify-pack", str(pack.with_suffix(".idx"))], check=True)


def pack_index(offsets: dict[bytes, int]) -> bytes:
    """The index of a pack with objects at these offsets."""
    file = BytesIO()
    write_pack_index_v2(file, [(oid, at, 0) for oid, at in sorted(offsets.items())], bytes(20))
    return file.getvalue()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 600), st.randoms(use_true_random=False))
def test_an_id_is_found_in_an_index_or_not(tmp_path: Path, number: int, dice: random.Random) -> None:
    """Many in one bucket, as in a large pack."""
    ids = {dice.randbytes(20) for _ in range(number)}
    tail = dice.randbytes(19)
    near = {b"\x01" + oid[1:] for oid in ids} | ids
    (tmp_path / "p.idx").write_bytes(pack_index({oid: 12 + at for at, oid in enumerate(sorted(near))}))
    pack = Pack(str(tmp_path / "p"))
    assert [pack.find(oid) for oid in sorted(near)] == [12 + at for at in range(len(near))]
    for lead in (b"\x00", b"\x01", b"\xff"):
        assert (pack.find(lead + tail) is not None) == (lead + tail in near)


def test_an_id_made_of_two_neighbours_is_none(tmp_path: Path) -> None:
    first = b"\x01" * 10 + b"\x01\x05" * 5
    second = b"\x01" * 9 + b"\x02" * 11
    across = first[10:] + second[:10]

    def found(*ids: bytes) -> int | None:
        index = pack_index({oid: 12 + at for at, oid in enumerate(sorted(ids))})
        (tmp_path / "p.idx").write_bytes(index)
        return Pack(str(tmp_path / "p")).find(across)

    assert first < second < across
    assert first + second in pack_index({first: 12, second: 13})
    assert found(first, second) is None
    assert found(first, second, across) == 14


@pytest.mark.parametrize("how", ["large offsets without a table", "no objects", "offsets beyond all files"])
def test_an_index_that_leads_nowhere_is_damage(tmp_path: Path, how: str) -> None:
    ids = [bytes([at]) * 20 for at in range(40)]
    index = bytearray(pack_index({oid: 12 + at for at, oid in enumerate(ids)}))
    table = 1032 + 24 * len(ids)
    if how == "no objects":
        struct.pack_into(">I", index, 1028, 0)
    else:
        for at in range(len(ids)):
            struct.pack_into(">I", index, table + 4 * at, 1 << 31 | at)
    if how == "offsets beyond all files":
        index[-40:-40] = struct.pack(">Q", (1 << 63) + 5) * len(ids)
    (tmp_path / "p.idx").write_bytes(index)
    pack = Pack(str(tmp_path / "p"))
    with pytest.raises(SnapstoreError) as caught:
        [pack.find(oid) for oid in ids]
    assert caught.value.name == "corrupt"


def test_a_pack_is_closed_while_an_interrupted_read_still_holds_a_view_of_it(store: Store) -> None:
    """Ctrl-C in the middle of a read: its frames, with the view in them, outlive the closing of the store."""
    objects = store.shadow.objects
    writer = objects.writer()
    noise = random.Random(3).randbytes(3 << 20)
    oid = writer.add(BLOB, noise)
    objects.release(objects.finish(writer))
    objects.read(oid)
    [pack] = [pack for pack in objects.store.cached() if pack.find(oid) is not None]
    view = memoryview(pack._contents())
    assert isinstance(view.obj, mmap.mmap)
    store.close()
    assert len(view) > len(noise)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(errno.EIO, "Input/output error")], ids=["Ctrl-C", "EIO"]
)
def test_a_close_that_is_interrupted_or_fails_is_told_as_that_and_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """The descriptor is closed all the same: its number may be somebody else's by now, and is not closed again."""
    objects, close, closed = store.shadow.objects, os.close, list[int]()
    before = sorted(os.listdir(objects.pack_folder))
    writer = objects.writer()
    writer.add(BLOB, b"never stored")

    def closing(fd: int) -> None:
        is_ours = os.path.realpath(f"/proc/self/fd/{fd}").endswith(".part")
        close(fd)
        if is_ours:
            closed.append(fd)
            raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", closing)
        with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else Failed):
            objects.finish(writer)
        writer.abandon()  # as everybody does who was writing
    assert len(closed) == 1
    assert sorted(os.listdir(objects.pack_folder)) == before


@pytest.mark.parametrize("suffix", ["pack", "idx"])
def test_a_large_pack_cut_short_is_damage_and_kills_nobody(tmp_path: Path, suffix: str) -> None:
    """Large ones are mapped, and a read past the end of a mapped file is a signal, not an exception. What was cut while
    nobody had it open is mapped as long as it is: the objects before the cut are read, the others are damage."""
    git_dir = tmp_path / "x.git"
    git_in(tmp_path, "init", "--quiet", "--bare", str(git_dir))
    dice = random.Random(5)
    objects = Objects(str(git_dir))
    writer = objects.writer()
    for _ in range(3000):
        writer.add(BLOB, dice.randbytes(300))
    base = objects.finish(writer)
    objects.close()
    assert base is not None
    path = Path(f"{base}.{suffix}")
    whole = path.read_bytes()
    assert len(whole) > {"pack": 1 << 18, "idx": 1 << 16}[suffix], "it is read, not mapped: this shows nothing"
    ids = sorted(Pack(base).ids())
    code = """if True:
        import sys
        from snapstore.errors import Corrupt
        from snapstore.git.objects.ids import Missing
        from snapstore.git.objects.store import Objects
        whole = damaged = 0
        objects = Objects(sys.argv[1])
        for line in sys.stdin:
            try:
                objects.verify(bytes.fromhex(line))
                whole += 1
            except (Corrupt, Missing):
                damaged += 1
        print(whole, damaged)
    """
    pages = len(whole) // mmap.PAGESIZE * mmap.PAGESIZE
    for size in (len(whole) - 1, pages, pages - mmap.PAGESIZE, len(whole) // 2, mmap.PAGESIZE, 13, 0):
        path.unlink()
        path.write_bytes(whole[:size])
        command = [sys.executable, "-c", code, str(git_dir)]
        feed = "".join(f"{oid.hex()}\n" for oid in ids)
        done = subprocess.run(command, input=feed, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"cut at {size}: {done.returncode} {done.stderr[-500:]}"
        read, damaged = map(int, done.stdout.split())
        assert read + damaged == len(ids)
        assert damaged >= 1 or size > len(whole) - 20, f"cut at {size} went unnoticed"
        assert suffix == "idx" or read >= len(ids) * (size - 400) // len(whole) - 1, f"cut at {size}: {read} are left"


def test_a_command_refuses_a_large_pack_that_was_cut_short(root: Path, store: Store) -> None:
    write(root / "large", random.Random(7).randbytes(1 << 20))
    with store.session("shell").turn("one") as _:
        write(root / "large", random.Random(8).randbytes(1 << 20))
    largest = sorted(Path(store.shadow.objects.pack_folder).glob("*.pack"), key=lambda path: path.stat().st_size)
    store.close()
    for path in largest[-2:]:
        path.chmod(0o600)
        os.truncate(path, path.stat().st_size // 2)
    command = [sys.executable, "-m", "snapstore", "undo"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 14, (done.returncode, done.stderr)
    assert "damaged" in done.stderr and (root / "large").read_bytes() == random.Random(8).randbytes(1 << 20)
