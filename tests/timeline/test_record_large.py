"""A file of any size goes in and out in bounded memory (G-40)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from helpers import assert_whole, child, git

from snapstore import Store
from snapstore.store.disk_usage import folder_size

LIMIT = 200 * 1024 * 1024

CODE = """
import hashlib, json, os, re, resource, sys
from snapstore import Store
from xxhash import xxh3_128
root, how, size, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
path = f"{root}/large"

def fill(seed):
    # mostly holes, with incompressible islands: quick to make, and no two parts alike
    with open(path, "wb") as file:
        for at in range(0, size, 16 << 20):
            file.seek(at)
            file.write(hashlib.shake_128(b"%d %d" % (seed, at)).digest(min(1 << 20, size - at)))
        file.truncate(size)

def digest_of(pieces):
    digest = xxh3_128()
    count = 0
    for piece in pieces:
        digest.update(piece)
        count += len(piece)
    return digest.hexdigest(), count

def on_disk():
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            yield piece

def peak():
    try:  # of this program alone: the other counter remembers the process that started it
        with open("/proc/self/status") as file:
            return int(re.search(r"VmHWM:\\s+(\\d+) kB", file.read())[1]) * 1024
    except OSError:
        value = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return value if sys.platform == "darwin" else value * 1024

results = []
with Store.open(root, create=True) as store:
    if how == "scanned":
        store.configure(max_file_size=0)
    session = store.session("s")
    for seed in range(rounds):
        turn = session.begin("a large file")
        if how == "named":
            turn.touch(path)
        fill(seed)
        commit = turn.end()
        tree = store.shadow.commit(commit).tree
        mode, oid = store.shadow.trees.file(tree, b"large")
        out = digest_of(store.shadow.objects.stream(oid))
        results.append({"commit": commit.hex(), "in": digest_of(on_disk()), "out": out, "peak": peak()})
print(json.dumps(results))
"""


def bring_in_and_out(root: Path, how: str, size: int, rounds: int = 1) -> Store:
    done = child(CODE, root, how, size, rounds, timeout=900)
    assert done.returncode == 0, done.stderr.decode()
    results = json.loads(done.stdout)
    for result in results:
        assert result["out"] == result["in"]
        assert result["in"][1] == size
        assert result["peak"] < LIMIT, f"{result['peak'] >> 20} MB"
    store = Store.open(root)
    assert int(git(store.shadow.git_dir, "cat-file", "-s", f"{results[-1]['commit']}:large")) == size
    # what a store holds of mostly empty files is small: it is deflated
    assert folder_size(store.folder) < rounds * size / 2
    return store


@pytest.mark.parametrize("how", ["scanned", "named"])
def test_a_300_mb_file_in_and_out_under_200_mb_of_memory_G_40(root: Path, how: str) -> None:
    bring_in_and_out(root, how, 300 * 1000 * 1000).close()


@pytest.mark.deep
@pytest.mark.parametrize("how", ["scanned", "named"])
def test_a_2_gib_file_in_and_out_under_200_mb_of_memory_G_40(root: Path, how: str) -> None:
    with bring_in_and_out(root, how, 2 << 30, rounds=2) as store:
        assert_whole(store)


@pytest.mark.deep
def test_a_5_gib_file_passes_every_32_bit_limit_G_40(root: Path) -> None:
    with bring_in_and_out(root, "named", 5 << 30) as store:
        assert_whole(store)


def test_a_first_snapshot_of_many_large_files_stays_small_G_40(root: Path) -> None:
    """Each is below the streaming limit, all together are far above the memory allowed."""
    if not os.path.exists("/proc/self/status"):
        pytest.skip("needs /proc")
    for number in range(40):
        with open(root / f"file{number}", "wb") as file:
            file.write(os.urandom(1 << 16) * 2)
            file.truncate(7 << 20)
    code = """
import re, sys
from snapstore import Store
with Store.open(sys.argv[1], create=True) as store:
    print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""
    done = child(code, root)
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) * 1024 < LIMIT
