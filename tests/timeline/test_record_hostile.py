"""No configuration, attribute, filter, hook, template or GIT_* variable changes a byte or runs a program (G-34)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from helpers import assert_equal, assert_whole, child, git, git_in, in_commit, line, on_disk, touched, write

from snapstore import SnapstoreError, Store, Unsafe
from snapstore.git.program import refuse_planted
from snapstore.timeline.maintenance.check import Check

BYTES = {
    "crlf.txt": b"one\r\ntwo\r\n",
    "lf.txt": b"one\ntwo\n",
    "mixed.txt": b"one\r\ntwo\nthree\r",
    "ident.txt": b"$Id$ and $Id: something already expanded $\n",
    "utf16.txt": "wide\r\n".encode("utf-16"),
    "filtered.txt": b"clean me\n",
    "binary.bin": bytes(range(256)),
    "sub/trailing.txt": b"spaces   \n\n\n",
}

ATTRIBUTES = """\
* text=auto eol=crlf
*.txt text ident filter=evil diff=evil merge=evil
utf16.txt working-tree-encoding=UTF-16
filtered.txt filter=evil
*.bin text
[attr]binary -diff
"""


@pytest.fixture
def alarm(tmp_path: Path) -> Path:
    """A file that exists once any planted program has run."""
    return tmp_path / "a planted program ran"


@pytest.fixture
def program(tmp_path: Path, alarm: Path) -> Path:
    """A program that raises the alarm and spoils whatever is filtered through it."""
    path = tmp_path / "evil"
    path.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{alarm}'\ncat > /dev/null\necho spoiled\n")
    path.chmod(0o755)
    return path


def hostile_settings(program: Path, folder: Path) -> str:
    """Everything a configuration can make git do."""
    hooks = folder / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction", "pre-commit", "post-checkout", "pre-auto-gc", "update"):
        (hooks / name).write_text(program.read_text())
        (hooks / name).chmod(0o755)
    return f"""\
[core]
\tautocrlf = true
\teol = crlf
\tsafecrlf = true
\thooksPath = {hooks}
\tfsmonitor = {program}
\teditor = {program}
\tpager = {program}
\tsshCommand = {program}
\taskPass = {program}
\tattributesFile = {folder}/attributes
\tprecomposeUnicode = true
\tignoreCase = true
\tfileMode = false
\tsymlinks = false
\tcompression = 9
\tlooseCompression = 0
[filter "evil"]
\tclean = {program} clean %f
\tsmudge = {program} smudge %f
\tprocess = {program} process
\trequired = true
[diff]
\texternal = {program}
[diff "evil"]
\tcommand = {program}
\ttextconv = {program}
[merge "evil"]
\tdriver = {program} %O %A %B
[init]
\ttemplateDir = {folder}/templates
\tdefaultObjectFormat = sha256
[gpg]
\tprogram = {program}
[commit]
\tgpgSign = true
[alias]
\tadd = !{program}
[credential]
\thelper = !{program}
[extensions]
\tobjectFormat = sha256
[gc]
\tauto = 1
\tpruneExpire = now
"""


def lay_out(root: Path) -> None:
    for name, data in BYTES.items():
        write(root / name, data)
    write(root / "run.sh", b"#!/bin/sh\r\n", executable=True)
    (root / "link").symlink_to("crlf.txt")
    (root / ".gitattributes").write_text(ATTRIBUTES)
    (root / "sub" / ".gitattributes").write_text("*.txt -text filter=evil\n")


def plant_home(home: Path, program: Path) -> None:
    (home / ".gitconfig").write_text(hostile_settings(program, home))
    (home / "attributes").write_text("* filter=evil text eol=crlf ident\n")
    templates = home / "templates"
    (templates / "hooks").mkdir(parents=True)
    for name in ("pre-commit", "reference-transaction", "post-index-change"):
        (templates / "hooks" / name).write_text(program.read_text())
        (templates / "hooks" / name).chmod(0o755)
    (templates / "config").write_text("[core]\n\tautocrlf = true\n")
    (templates / "info").mkdir()
    (templates / "info" / "attributes").write_text("* filter=evil\n")


def record_three_turns(root: Path) -> Store:
    store = Store.open(root, create=True)
    assert_equal(store, line(store, "shell")[-1]["commit"], on_disk(root))
    session = store.session("s")
    with session.turn("by scan"):
        for name, data in BYTES.items():
            write(root / name, data + b"more\r\n")
    assert_equal(store, line(store, "s")[-1]["commit"], on_disk(root))
    turn = session.begin("by name")
    turn.touch(*(root / name for name in BYTES))
    for name, data in BYTES.items():
        write(root / name, data.replace(b"\n", b"\r\n"))
    assert_equal(store, turn.end(), on_disk(root))
    return store


@pytest.mark.parametrize("checkout", [False, True], ids=["plain folder", "git checkout"])
def test_a_hostile_user_configuration_changes_no_byte_and_runs_nothing_G_34(
    root: Path, nobodys_home: Path, program: Path, alarm: Path, checkout: bool
) -> None:
    if checkout:
        git_in(root, "init", "--quiet")
    lay_out(root)
    if checkout:  # committed without the filters, then surrounded by them
        git_in(root, "-c", "core.attributesFile=/dev/null", "-c", "filter.evil.clean=cat", "add", ".")
        git_in(root, "commit", "--quiet", "-m", "clean")
    plant_home(nobodys_home, program)
    if checkout:
        config = (root / ".git" / "config").read_text()
        (root / ".git" / "config").write_text(config + hostile_settings(program, nobodys_home).split("[extensions]")[0])
    with record_three_turns(root) as store:
        assert_whole(store)
        assert not os.path.exists(f"{store.shadow.git_dir}/hooks")
        assert "autocrlf" not in Path(store.shadow.git_dir, "config").read_text()
    assert not alarm.exists(), alarm.read_text()


def test_a_checkout_made_under_conversions_is_captured_as_it_lies_on_disk_G_34(root: Path, nobodys_home: Path) -> None:
    """The index says clean, the blob has LF, the disk CRLF: borrowing the blob would change the bytes."""
    git_in(root, "init", "--quiet")
    write(root / "text", "one\ntwo\n")
    write(root / "other", "$Id$\n")
    write(root / ".gitattributes", "text eol=crlf\nother ident\n")
    git_in(root, "add", ".")
    git_in(root, "commit", "--quiet", "-m", "normalised")
    for name in ("text", "other"):
        (root / name).unlink()
    git_in(root, "checkout", "--quiet", ".")
    assert (root / "text").read_bytes() == b"one\r\ntwo\r\n"
    assert (root / "other").read_bytes() != b"$Id$\n"
    assert git_in(root, "status", "--porcelain") == b""
    with Store.open(root, create=True) as store:
        assert_equal(store, line(store, "shell")[0]["commit"], on_disk(root))


def test_git_variables_of_the_caller_lead_nowhere_G_34(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Path, alarm: Path
) -> None:
    """As inside a git hook or a rebase, where they point at the user's repository."""
    other = tmp_path / "other"
    other.mkdir()
    git_in(other, "init", "--quiet")
    write(other / "theirs", "x")
    git_in(other, "add", ".")
    before = {path: path.read_bytes() for path in sorted((other / ".git").rglob("*")) if path.is_file()}
    lay_out(root)
    values = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git" / "index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git" / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(other / ".git" / "objects"),
        "GIT_COMMON_DIR": str(other / ".git"),
        "GIT_NAMESPACE": "elsewhere",
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "core.autocrlf",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_CONFIG_KEY_1": "core.fsmonitor",
        "GIT_CONFIG_VALUE_1": str(program),
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor={program}'",
        "GIT_EXTERNAL_DIFF": str(program),
        "GIT_SSH_COMMAND": str(program),
        "GIT_TEMPLATE_DIR": str(tmp_path),
        "GIT_AUTHOR_NAME": "Forged",
        "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
        "GIT_DEFAULT_HASH": "sha256",
        "GIT_TRACE2": str(tmp_path / "trace"),
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    store = record_three_turns(root)
    assert "Forged" not in {commit["author"] for commit in line(store, "s")}
    assert_whole(store)
    store.close()
    after = {path: path.read_bytes() for path in sorted((other / ".git").rglob("*")) if path.is_file()}
    assert after == before
    assert not alarm.exists()
    assert not (tmp_path / "trace").exists()


PLANTED = {
    "core.hooksPath": "[core]\n\thooksPath = {folder}/hooks\n",
    "core.fsmonitor": "[core]\n\tfsmonitor = {program}\n",
    "a filter": '[filter "evil"]\n\tclean = {program}\n\tsmudge = {program}\n\trequired = true\n',
    "an external diff": "[diff]\n\texternal = {program}\n",
    "a textconv": '[diff "evil"]\n\ttextconv = {program}\n',
    "a pager": "[core]\n\tpager = {program}\n",
    "a proxy command": "[core]\n\tgitProxy = {program}\n",
    "an include": "[include]\n\tpath = {folder}/included\n",
    "a conditional include": '[includeIf "gitdir:/"]\n\tpath = {folder}/included\n',
    "another work tree": "[core]\n\tworktree = {folder}\n",
    "an upload pack": '[remote "x"]\n\tuploadpack = {program}\n\turl = {folder}\n',
    "a vcs remote": '[remote "x"]\n\tvcs = evil\n\turl = ext::sh -c {program}\n',
    "an alias": "[alias]\n\tlog = !{program}\n",
    "a hook in gc": "[gc]\n\trecentObjectsHook = {program}\n",
    "a pack-objects hook": "[uploadpack]\n\tpackObjectsHook = {program}\n",
    "a signing program": "[gpg]\n\tprogram = {program}\n[log]\n\tshowSignature = true\n",
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_configuration_planted_in_the_store_runs_nothing_and_is_found_G_34(
    root: Path, store: Store, tmp_path: Path, program: Path, alarm: Path, what: str
) -> None:
    lay_out(root)
    (tmp_path / "included").write_text(f"[core]\n\tfsmonitor = {program}\n\thooksPath = {tmp_path}/hooks\n")
    hostile_settings(program, tmp_path)  # lays out the hooks
    path = Path(store.shadow.git_dir, "config")
    path.write_text(path.read_text() + PLANTED[what].format(folder=tmp_path, program=program))
    store.close()
    with Store.open(root) as again, again.session("s").turn("under a planted configuration") as turn:
        write(root / "crlf.txt", b"x\r\n")
    assert turn.commit is not None
    with pytest.raises(Unsafe):
        refuse_planted(again.shadow.git_dir)
    assert [problem.error for problem in Check(again).run().problems] == ["unsafe"]
    assert not alarm.exists()
    path.write_text(path.read_text().replace(PLANTED[what].format(folder=tmp_path, program=program), ""))
    assert_equal(again, turn.commit, on_disk(root))


def test_hooks_attributes_and_alternates_planted_in_the_store_change_nothing_G_34(
    root: Path, store: Store, tmp_path: Path, program: Path, alarm: Path
) -> None:
    git_dir = Path(store.shadow.git_dir)
    (git_dir / "hooks").mkdir()
    for name in ("reference-transaction", "post-index-change", "pre-auto-gc", "update", "post-update"):
        (git_dir / "hooks" / name).write_text(program.read_text())
        (git_dir / "hooks" / name).chmod(0o755)
    (git_dir / "info" / "attributes").write_text("* filter=evil eol=crlf ident\n")
    other = tmp_path / "other.git"
    git_in(tmp_path, "init", "--quiet", "--bare", str(other))
    (git_dir / "objects" / "info" / "alternates").write_text(f"{other}/objects\n")
    secret = git(str(other), "hash-object", "-w", "--stdin", feed=b"only in the other store").decode().strip()
    lay_out(root)
    store.close()
    with Store.open(root) as again:
        with again.session("s").turn("planted") as turn:
            # What only a foreign object folder holds is not ours: it must be stored here.
            write(root / "same", b"only in the other store")
        with pytest.raises(SnapstoreError):
            refuse_planted(again.shadow.git_dir)
        assert turn.commit is not None
        (git_dir / "objects" / "info" / "alternates").unlink()
        assert in_commit(again, turn.commit)[b"same"][1] == b"only in the other store"
        assert git(str(git_dir), "cat-file", "-t", secret) == b"blob\n"
        assert_equal(again, turn.commit, on_disk(root))
    assert not alarm.exists()


def test_a_clone_and_a_checkout_of_the_shadow_give_the_same_bytes_G_34_P_02(root: Path, tmp_path: Path) -> None:
    """Ordinary git may be asked for the files, .gitattributes and all: the store's own attributes keep it exact."""
    lay_out(root)
    with Store.open(root, create=True) as store:
        with store.session("s").turn("bytes") as turn:
            write(root / "crlf.txt", b"again\r\n")
        assert turn.commit is not None
        target = tmp_path / "out"
        target.mkdir()
        arguments = ["--work-tree", str(target), "checkout", "--quiet", "--force", turn.commit.hex(), "--", "."]
        # exact although the user's own settings apply here
        git(store.shadow.git_dir, "-c", "core.autocrlf=true", *arguments)
        assert on_disk(target) == on_disk(root)


def test_no_program_is_started_by_a_turn_G_34(root: Path) -> None:
    """Whatever lies first in the PATH: a turn is the one process."""
    write(root / "file", "1")
    code = """
import os, sys
def refused(event, arguments):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system"):
        raise SystemExit(f"{event} {arguments}")
sys.addaudithook(refused)
from snapstore import Store
root = sys.argv[1]
with Store.open(root, create=True) as store:
    turn = store.session("s").begin("alone")
    turn.touch(f"{root}/file")
    open(f"{root}/file", "w").write("2")
    turn.end(scan=True)
    store.session("s").begin("again")
    store.session("s").begin("and again").cancel()
"""
    git_in(root, "init", "--quiet")
    git_in(root, "add", ".")
    git_in(root, "commit", "--quiet", "-m", "x")
    done = child(code, root)
    assert done.returncode == 0, done.stderr.decode()


def test_the_store_is_for_its_owner_only_G_09(root: Path, store: Store) -> None:
    for folder, _, names in os.walk(store.folder):
        assert stat.S_IMODE(os.lstat(folder).st_mode) & 0o022 == 0, folder
        for name in names:
            assert stat.S_IMODE(os.lstat(os.path.join(folder, name)).st_mode) & 0o022 == 0, name
    assert stat.S_IMODE(os.lstat(store.folder).st_mode) == 0o700


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_the_caller_s_umask_matters_not_G_09(root: Path, mask: int) -> None:
    code = """
import os, sys
os.umask(int(sys.argv[2]))
from snapstore import Store
with Store.open(sys.argv[1], create=True) as store:
    store.session("s").begin("x").end()
    for folder, folders, names in os.walk(store.folder):
        for path in [folder, *(os.path.join(folder, name) for name in names)]:
            assert os.lstat(path).st_mode & 0o022 == 0, path
with Store.open(sys.argv[1]) as store:
    store.session("s").begin("y").end()
"""
    done = child(code, root, mask)
    assert done.returncode == 0, done.stderr.decode()
    with Store.open(root) as store:
        assert_whole(store)
        assert touched(store, line(store, "s")[-1]["commit"]) == {}
