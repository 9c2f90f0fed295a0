"""A really full disk, and proof by trace that what is called done is on the disk."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import needs_strace, quick_folder, write

from snapstore import Store


def in_private_mounts(code: str, *arguments: object) -> dict[str, object]:
    """Runs code where it may mount what it likes, and nobody else sees it."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    under = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*under, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no private mounts here")
    done = subprocess.run(
        [*under, sys.executable, "-c", PRELUDE + code, *(str(argument) for argument in arguments)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=300,
    )
    assert done.returncode == 0, done.stdout.decode()[-2000:] + done.stderr.decode()
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


PRELUDE = """
import errno, json, os, subprocess, sys
from pathlib import Path
from helpers import all_refs, assert_equal, assert_whole, on_disk, tip, touched, write
from snapstore import SnapstoreError, Store

def mount(place, options):
    os.makedirs(place, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)

def fill(path, spare=0):
    # takes all space, then gives `spare` bytes back
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    size = 0
    for step in (1 << 16, 4096, 1):
        try:
            while True:
                size += os.write(fd, b"x" * step)
        except OSError as error:
            assert error.errno == errno.ENOSPC
    os.ftruncate(fd, max(0, size - spare))
    os.close(fd)
"""


@pytest.mark.parametrize("handle", ["kept open", "reopened"])
def test_a_full_disk_under_the_store_stops_the_turn_s_end_and_nothing_else_G_27(
    root: Path, tmp_path: Path, handle: str
) -> None:
    """From no space at all, page by page, to enough: refused and still open each time, until it is recorded."""
    code = """
root, home, handle = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mount(home, "size=1m")
store = Store.open(root, create=True, home=home)
session = store.session("s")
before = {}
for number in range(3):
    with session.turn("while there was space") as turn:
        write(root / "file", f"{number}")
    before[turn.commit] = on_disk(root)
turn = session.begin("the disk is full")
write(root / "file", os.urandom(5000))
write(root / "new", os.urandom(5000))
refs = all_refs(store)
messages, pages, commit = [], 0, None
while commit is None:
    fill(f"{home}/filler", 4096 * pages)
    try:
        with Store.open(root, home=home) as again:
            if not again.open_turns():  # the journal was in place when space ran out: finished by now
                assert messages[-1]["error"] == "interrupted", messages[-1]
                commit = bytes.fromhex(tip(again, "s"))
                break
            commit = (store if handle == "kept open" else again).session("s").end()
    except SnapstoreError as error:
        messages.append({"error": error.name, "message": error.message, "hint": error.hint, **error.details})
        if error.name == "failed":
            with Store.open(root, home=home) as again:
                assert [turn.session for turn in again.open_turns()] == ["s"], "the turn is open still"
            assert all_refs(store) == refs
    pages += 1
    assert pages < 100
os.unlink(f"{home}/filler")
with Store.open(root, home=home) as again:
    assert touched(again, commit) == {b"file": "M", b"new": "A"}
    assert_equal(again, commit, on_disk(root))
    for earlier, files in before.items():
        assert_equal(again, earlier, files)
    again.session("s").begin("space is back").end()
    assert_whole(again)
    left = [name for name in os.listdir(again.shadow.git_dir + "/objects/pack") if not name.startswith("pack-")]
print(json.dumps({"messages": messages, "left": left}))
"""
    said = in_private_mounts(code, root, tmp_path / "stores", handle)
    messages = said["messages"]
    assert isinstance(messages, list)
    assert len(messages) >= 3
    for message in messages:
        assert message["error"] in ("failed", "interrupted")
        assert "No space left" in json.dumps(message)
        assert message["hint"]
    assert said["left"] == []


def test_no_inodes_left_under_the_store_is_a_full_disk_too_G_27(root: Path, tmp_path: Path) -> None:
    code = """
root, home = Path(sys.argv[1]), sys.argv[2]
mount(home, "size=4m,nr_inodes=200")
store = Store.open(root, create=True, home=home)
turn = store.session("s").begin("no inodes")
write(root / "file", "x")
spare = []
try:
    while True:
        path = f"{home}/inode{len(spare)}"
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        spare.append(path)
except OSError:
    pass
refs, failures, commit = all_refs(store), 0, None
while commit is None:
    try:
        with Store.open(root, home=home) as again:
            commit = again.session("s").end()
    except SnapstoreError as error:
        failures += 1
        os.unlink(spare.pop())
        if error.name == "failed":
            with Store.open(root, home=home) as again:
                assert [turn.session for turn in again.open_turns()] == ["s"]
        else:  # the journal was in place: finished by the next command that can
            assert error.name == "interrupted", error
            try:
                with Store.open(root, home=home) as again:
                    commit = bytes.fromhex(tip(again, "s"))
            except SnapstoreError:
                pass
for path in spare:
    os.unlink(path)
with Store.open(root, home=home) as again:
    assert_equal(again, commit, on_disk(root))
    again.session("s").begin("go on").end()
    assert_whole(again)
print(json.dumps({"failures": failures}))
"""
    assert in_private_mounts(code, root, tmp_path / "stores")["failures"] != 0


def test_a_first_snapshot_that_does_not_fit_leaves_nothing_G_27(root: Path, tmp_path: Path) -> None:
    write(root / "large", os.urandom(3 << 20))
    code = """
root, home = Path(sys.argv[1]), sys.argv[2]
mount(home, "size=1m")
try:
    Store.open(root, create=True, home=home)
except SnapstoreError as error:
    message = {"error": error.name, "message": error.message, "hint": error.hint, **error.details}
left = os.listdir(home)
subprocess.run(["mount", "-o", "remount,size=20m", home], check=True)
with Store.open(root, create=True, home=home) as store:
    assert_equal(store, tip(store, "shell"), on_disk(root))
    assert_whole(store)
print(json.dumps({"message": message, "left": left}))
"""
    said = in_private_mounts(code, root, tmp_path / "stores")
    assert said["left"] == []
    assert "No space left" in str(said["message"])


@pytest.mark.parametrize("state", ["full", "read-only"])
def test_a_full_or_read_only_root_is_recorded_all_the_same(tmp_path: Path, state: str) -> None:
    """Recording never writes to the root, so it needs no space there."""
    code = """
root, home, state = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
mount(root, "size=1m")
write(root / "file", "1")
store = Store.open(root, create=True, home=home)
turn = store.session("s").begin("no space in the root")
turn.touch(root / "file")
write(root / "file", "2")
if state == "full":
    fill(root / "filler")
else:
    subprocess.run(["mount", "-o", "remount,ro", root], check=True)
commit = turn.end(scan=True)
assert_equal(store, commit, on_disk(root))
store.session("s").begin("again").end()
assert_whole(store)
print("{}")
"""
    in_private_mounts(code, tmp_path / "root", tmp_path / "stores", state)


def test_a_store_gone_read_only_refuses_and_goes_on_when_it_is_back_G_27(root: Path, tmp_path: Path) -> None:
    code = """
root, home = Path(sys.argv[1]), sys.argv[2]
mount(home, "size=10m")
store = Store.open(root, create=True, home=home)
store.session("s").begin("open")
write(root / "file", "x")
subprocess.run(["mount", "-o", "remount,ro", home], check=True)
names = []
with Store.open(root, home=home) as again:
    session = again.session("s")
    for action in (session.end, session.cancel, lambda: session.begin("x"), lambda: session.touch([root / "file"])):
        try:
            action()
        except SnapstoreError as error:
            names.append(error.name)
subprocess.run(["mount", "-o", "remount,rw", home], check=True)
with Store.open(root, home=home) as again:
    assert_equal(again, again.session("s").end(), on_disk(root))
    assert_whole(again)
print(json.dumps({"names": names}))
"""
    assert in_private_mounts(code, root, tmp_path / "stores")["names"] == ["failed"] * 4


# Durability by trace.

DRIVER = """
import os, sys
from snapstore import Store
store = Store.open(sys.argv[1])
session = store.session("s")
if sys.argv[2] == "begin":
    session.begin("traced")
elif sys.argv[2] == "touch":
    session.touch([sys.argv[1] + "/file"])
elif sys.argv[2] == "new session":
    store.session("t").begin("traced")
else:
    session.end(scan=sys.argv[2] == "scanned end")
os.write(1, b"success")
"""

# Losing these costs time, not truth: the caches are checked and rebuilt, the lock is the kernel's, a reflog is for gc.
NOT_SYNCED = re.compile(r"/state/(lock|stat|stat\.new|stat\.log|graph-[^/]*)$|/logs/|\.keep$")


class Trace:
    """The calls of one process that matter for durability, in order."""

    def __init__(self, text: str, home: str) -> None:
        self.calls: list[tuple[str, list[str]]] = []
        for row in text.splitlines():
            found = re.match(r"\d+\s+(\w+)\((.*)\)\s+= (-?\d+)", row)
            if not found or found[3].startswith("-"):
                continue
            name, arguments = found[1], found[2]
            paths = re.findall(r'<([^<>]*)>|"([^"]*)"', arguments)
            self.calls.append((name, [a or b for a, b in paths] + [arguments]))
        self.home = home

    def run(self) -> list[str]:
        """Replays it: what would a power cut right after `success` take away? Gives what was wrong."""
        wrong: list[str] = []
        dirty_files: set[str] = set()
        dirty_folders: dict[str, str] = {}
        succeeded = False
        for name, parts in self.calls:
            path = parts[0]
            arguments = parts[-1]
            if name in ("write", "pwrite64", "writev", "ftruncate"):
                if path.startswith(self.home):
                    dirty_files.add(path)
                elif "success" in arguments:
                    succeeded = True
                    break
            elif name in ("fsync", "fdatasync"):
                dirty_files.discard(path)
                dirty_folders.pop(path, None)
            elif name == "openat" and "O_CREAT" in arguments:
                path = parts[1] if len(parts) > 2 else path
                if path.startswith(self.home) and not os.path.basename(path).startswith(("tmp_", ".")):
                    dirty_folders.setdefault(os.path.dirname(path), path)
            elif name in ("rename", "link") and parts[1].startswith(self.home):
                old, new = parts[0], parts[1]
                if old in dirty_files and not NOT_SYNCED.search(new):
                    wrong.append(f"{new} was put in place before its bytes were synced")
                dirty_files.discard(old)
                if not NOT_SYNCED.search(new):
                    dirty_folders[os.path.dirname(new)] = new
            elif name == "mkdir" and path.startswith(self.home):
                dirty_folders[os.path.dirname(path)] = path
            elif name == "rmdir" and path.startswith(self.home):
                dirty_folders.pop(path, None)  # what was in it is gone with it, once the folder above is synced
                dirty_folders[os.path.dirname(path)] = path
        assert succeeded, "the driver did not get through"
        wrong += [f"{path} was not synced" for path in sorted(dirty_files) if not NOT_SYNCED.search(path)]
        wrong += [
            f"{folder} was not synced after {path}"
            for folder, path in sorted(dirty_folders.items())
            if not NOT_SYNCED.search(path) and not path.endswith((".lock", ".new"))
        ]
        return wrong

    def first(self, kind: str, what: str) -> int:
        return next(at for at, (name, parts) in enumerate(self.calls) if name == kind and re.search(what, parts[-1]))

    def last(self, kind: str, what: str) -> int:
        return max(at for at, (name, parts) in enumerate(self.calls) if name == kind and re.search(what, parts[-1]))


def traced(folder: Path, what: str) -> Trace:
    root, home = folder / "project", folder / "stores"
    write(root / "file", "1")
    with Store.open(root, create=True, home=str(home)) as store:
        session = store.session("s")
        with session.turn("first"):
            write(root / "file", "2")
        if what not in ("begin", "new session"):
            session.begin("traced")
            if what == "named end":
                session.touch([root / "file"])
        write(root / "file", "3")
    log = folder / "trace"
    calls = "openat,write,pwrite64,writev,ftruncate,fsync,fdatasync,rename,link,unlink,mkdir"
    under = ["strace", "-f", "-y", "-s", "200", "-o", str(log), "-e", f"trace={calls}"]
    done = subprocess.run(
        [*under, sys.executable, "-c", DRIVER, str(root), what],
        env={**os.environ, "SNAPSTORE_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=False,
    )
    assert done.stdout == b"success", done.stderr.decode()
    return Trace(log.read_text(errors="replace"), str(home))


@needs_strace
@pytest.mark.parametrize("what", ["begin", "new session", "touch", "scanned end", "named end"])
def test_all_that_counts_is_synced_before_success_is_said(what: str) -> None:
    """Pack, index, journal, each ref and the folder after each rename."""
    with quick_folder() as folder:
        assert traced(folder, what).run() == []


@needs_strace
@pytest.mark.parametrize("what", ["scanned end", "named end"])
def test_objects_then_journal_then_refs_in_that_order(what: str) -> None:
    with quick_folder() as folder:
        trace = traced(folder, what)
        packed = trace.first("rename", r"\.pack\"")
        indexed = trace.first("rename", r"\.idx\"")
        pack_folder = trace.last("fsync", r"/objects/pack>")
        journal = trace.last("fsync", r"/state/journal(\.new)?>")
        refs = [trace.first("rename", f"/refs/{name}") for name in ("heads/s/main", "notes/turns")]
        assert packed < indexed < pack_folder < journal < min(refs)
        for name in ("heads/s", "notes"):
            assert trace.last("fsync", f"/refs/{name}>") > trace.first("rename", f"/refs/{name}/")


@needs_strace
def test_a_new_store_is_on_the_disk_before_success_is_said() -> None:
    with quick_folder() as folder:
        root, home = folder / "project", folder / "stores"
        write(root / "file", "1")
        home.mkdir()
        code = (
            "import os, sys; from snapstore import Store; Store.open(sys.argv[1], create=True); os.write(1, b'success')"
        )
        calls = "openat,write,pwrite64,writev,ftruncate,fsync,fdatasync,rename,link,mkdir"
        under = ["strace", "-f", "-y", "-s", "200", "-o", str(folder / "trace"), "-e", f"trace={calls}"]
        subprocess.run(
            [*under, sys.executable, "-c", code, str(root)],
            env={**os.environ, "SNAPSTORE_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            check=True,
        )
        assert Trace((folder / "trace").read_text(errors="replace"), str(home)).run() == []
