"""The user's repository from outside: found as git finds it, watched, never touched (G-29, G-34, P-04)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from snapstore.worktree.usergit import config as gitconfig
from snapstore.worktree.usergit import repository
from snapstore.worktree.usergit.config import ignore_sources, parse_config, user_config, user_identity
from snapstore.worktree.usergit.repository import compare, find_repo, observe
from snapstore.worktree.usergit.user_repo import UserRepo

Seen = dict[str, object]


class Desk:
    """A home, and folders with git in them."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.home.mkdir()

    def git(self, folder: Path, *args: str, feed: bytes | None = None, may_fail: bool = False) -> str:
        fixed = ("user.name=A", "user.email=a@b.c", "protocol.file.allow=always", "init.defaultBranch=main")
        options = [word for setting in fixed for word in ("-c", setting)]
        return self.plain(folder, *options, *args, feed=feed, may_fail=may_fail)

    def plain(self, folder: Path, *args: str, feed: bytes | None = None, may_fail: bool = False) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "GIT_CONFIG_NOSYSTEM": "1",
                "LC_ALL": "C",
            },
            input=feed,
            capture_output=True,
            check=False,
        )
        assert may_fail or done.returncode == 0, done.stderr.decode()
        return done.stdout.decode("utf-8", "surrogateescape")

    def repo(self, name: str = "repo", *init: str) -> Path:
        folder = self.base / name
        folder.mkdir(parents=True)
        self.git(folder, "init", "-q", *init)
        (folder / "a.txt").write_text("a\n")
        self.git(folder, "add", "-A")
        self.git(folder, "commit", "-qm", "first")
        return folder

    def found(self, folder: Path) -> UserRepo:
        repo = find_repo(os.fsencode(folder))
        assert repo is not None
        return repo

    def agrees(self, folder: Path) -> Seen:
        """What we see is what git says: HEAD, its commit, every branch."""
        seen, _ = observe(self.found(folder))
        symbolic = self.git(folder, "symbolic-ref", "-q", "HEAD", may_fail=True).strip()
        commit = self.git(folder, "rev-parse", "-q", "--verify", "HEAD", may_fail=True).strip()
        listed = self.git(
            folder, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads"
        ).splitlines()
        assert seen["head"] == (symbolic or commit)
        assert seen["head_commit"] == (commit or None)
        assert seen["branches"] == dict(line.split(" ") for line in listed)
        return seen


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(gitconfig, "SYSTEM_CONFIG", os.fsencode(tmp_path / "etc-gitconfig"))
    monkeypatch.setattr(gitconfig, "OTHER_SYSTEM_CONFIGS", ())
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return Desk(tmp_path)


# Finding it


def test_the_repository_is_found_from_any_folder_inside(desk: Desk) -> None:
    folder = desk.repo()
    deep = folder / "x" / "y"
    deep.mkdir(parents=True)
    for start in (folder, deep):
        repo = desk.found(start)
        assert repo.top == os.fsencode(folder)
        assert repo.git_dir == repo.common_dir == os.fsencode(folder / ".git")
        assert (repo.object_format, repo.partial, repo.reftable) == (b"sha1", False, False)


def test_a_folder_reached_by_a_symlink_is_found_where_it_really_is(desk: Desk) -> None:
    folder = desk.repo()
    (desk.base / "short").symlink_to(folder)
    assert desk.found(desk.base / "short").top == os.fsencode(folder)


def test_no_repository_anywhere_above(desk: Desk) -> None:
    assert find_repo(os.fsencode(desk.base)) is None
    assert find_repo(os.fsencode(desk.base / "never-made")) is None
    assert find_repo(b"/nul\0byte") is None


def test_the_search_stays_on_one_file_system_as_git_s_does(desk: Desk) -> None:
    folder = desk.repo()
    (folder / "mounted").mkdir()
    script = "from snapstore.worktree.usergit.repository import find_repo as f\n"
    script += "print([bool(f(p)) for p in (b'.', b'mounted')])"
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", 'mount -t tmpfs none mounted && exec "$0" -c "$1"', sys.executable, script],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(repository.__file__).parents[3])},
        capture_output=True,
        check=False,
    )
    if b"unshare" in done.stderr or b"mount" in done.stderr:
        pytest.skip("no mounts of our own here")
    assert b"[True, False]" in done.stdout, done.stderr


def test_git_variables_do_not_lead_elsewhere(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    other, folder = desk.repo("other"), desk.repo("repo")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", "/nonexistent")
    assert desk.found(folder).top == os.fsencode(folder)
    assert observe(desk.found(folder))[0]["index"] is not None


def test_an_empty_or_broken_dot_git_is_passed_by_as_git_does(desk: Desk) -> None:
    outer = desk.repo()
    inner = outer / "inner"
    (inner / ".git").mkdir(parents=True)
    assert desk.git(inner, "rev-parse", "--show-toplevel").strip() == str(outer)
    assert desk.found(inner).top == os.fsencode(outer)
    (inner / ".git" / "HEAD").write_text("nonsense\n")
    assert desk.found(inner).top == os.fsencode(outer)


@pytest.mark.parametrize("text", ["", "nonsense\n", "gitdir: ../nowhere\n", "gitdir: \n", "gitdir: ..\n"])
def test_a_broken_dot_git_file_ends_the_search_as_it_does_for_git(desk: Desk, text: str) -> None:
    outer = desk.repo()
    inner = outer / "inner"
    inner.mkdir()
    (inner / ".git").write_text(text)
    assert desk.git(inner, "rev-parse", "--show-toplevel", may_fail=True) == ""
    assert find_repo(os.fsencode(inner)) is None


def test_a_bare_repository_and_the_inside_of_dot_git_have_no_files(desk: Desk) -> None:
    folder = desk.repo()
    bare = folder / "bare.git"
    desk.git(desk.base, "init", "-q", "--bare", str(bare))
    assert find_repo(os.fsencode(bare)) is None
    assert find_repo(os.fsencode(folder / ".git" / "objects")) is None
    desk.git(folder, "config", "core.bare", "true")
    assert find_repo(os.fsencode(folder)) is None


def test_a_linked_worktree_has_its_own_head_and_index_and_shares_the_rest(desk: Desk) -> None:
    folder = desk.repo()
    linked = desk.base / "linked"
    desk.git(folder, "worktree", "add", "-q", "-b", "side", str(linked))
    repo = desk.found(linked)
    assert repo.top == os.fsencode(linked)
    assert repo.git_dir == os.fsencode(folder / ".git" / "worktrees" / "linked")
    assert repo.common_dir == os.fsencode(folder / ".git")
    assert desk.agrees(linked)["head"] == "refs/heads/side"
    assert desk.agrees(folder)["head"] == "refs/heads/main"
    (linked / "only-here").write_text("x")
    before = observe(desk.found(folder))[0]
    desk.git(linked, "add", "-A")
    assert observe(desk.found(folder))[0] == before
    assert desk.agrees(linked)["index"] != before["index"]


def test_a_worktree_of_a_bare_repository_is_not_bare(desk: Desk) -> None:
    bare = desk.base / "b.git"
    desk.git(desk.base, "clone", "-q", "--bare", str(desk.repo()), str(bare))
    desk.git(bare, "worktree", "add", "-q", str(desk.base / "out"), "main")
    assert desk.found(desk.base / "out").common_dir == os.fsencode(bare)
    desk.agrees(desk.base / "out")


def test_a_submodule_is_a_repository_of_its_own(desk: Desk) -> None:
    other, folder = desk.repo("other"), desk.repo()
    desk.git(folder, "submodule", "add", "-q", str(other), "sub")
    repo = desk.found(folder / "sub")
    assert repo.top == os.fsencode(folder / "sub")
    assert repo.git_dir == repo.common_dir == os.fsencode(folder / ".git" / "modules" / "sub")
    desk.agrees(folder / "sub")


def test_a_worktree_set_elsewhere_is_followed_when_we_stand_in_it(desk: Desk) -> None:
    folder = desk.repo("home-of-dots/dots")
    desk.git(folder, "config", "core.worktree", "../..")
    assert desk.found(folder).top == os.fsencode(folder.parent)
    desk.git(folder, "config", "core.worktree", "../../../home")
    assert find_repo(os.fsencode(folder)) is None


def test_kinds_of_repository_are_told(desk: Desk) -> None:
    source = desk.repo("source")
    desk.git(source, "config", "uploadpack.allowFilter", "true")
    desk.git(desk.base, "clone", "-q", "--filter=blob:none", f"file://{source}", "partial")
    assert desk.found(desk.base / "partial").partial
    assert not desk.found(source).partial
    assert desk.found(desk.repo("wide", "--object-format=sha256")).object_format == b"sha256"
    table = desk.repo("table")  # as git 2.45 lays it out; the git here may not know how
    desk.git(table, "config", "core.repositoryFormatVersion", "1")
    desk.git(table, "config", "extensions.refStorage", "reftable")
    shutil.rmtree(table / ".git" / "refs" / "heads")
    (table / ".git" / "refs" / "heads").write_text("this repository uses the reftable format\n")
    (table / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    repo = desk.found(table)
    assert repo.reftable
    seen, _ = observe(repo)
    assert (seen["head"], seen["head_commit"], seen["branches"]) == (None, None, {})
    assert seen["index"]


# Watching it


def test_what_git_commands_move_is_told_by_name(desk: Desk) -> None:
    """Given a turn, when the agent's shell commits and branches, then the record says what moved (G-29)."""
    folder = desk.repo()
    start = desk.agrees(folder)
    assert compare(start, desk.agrees(folder)) == {}
    (folder / "a.txt").write_text("b\n")
    assert compare(start, desk.agrees(folder)) == {}  # an edit moves nothing of git's
    desk.git(folder, "add", "a.txt")
    assert compare(start, desk.agrees(folder)) == {"index": True}
    desk.git(folder, "commit", "-qm", "second")
    second = desk.agrees(folder)
    old, new = start["head_commit"], second["head_commit"]
    assert compare(start, second) == {
        "head_commit": [old, new],
        "index": True,
        "branches": {"main": [old, new]},
    }
    desk.git(folder, "checkout", "-qb", "topic/deep/er")
    third = desk.agrees(folder)
    assert compare(second, third) == {
        "head": ["refs/heads/main", "refs/heads/topic/deep/er"],
        "branches": {"topic/deep/er": [None, new]},
    }
    desk.git(folder, "checkout", "-q", "--detach")
    desk.git(folder, "branch", "-qD", "topic/deep/er")
    fourth = desk.agrees(folder)
    assert compare(third, fourth) == {
        "head": ["refs/heads/topic/deep/er", new],
        "branches": {"topic/deep/er": [new, None]},
    }
    assert json.loads(json.dumps(fourth)) == fourth


def test_packing_refs_moves_nothing(desk: Desk) -> None:
    folder = desk.repo()
    for name in ("one", "two/three"):
        desk.git(folder, "branch", name)
    desk.git(folder, "tag", "-am", "annotated", "v1")
    before = desk.agrees(folder)
    desk.git(folder, "pack-refs", "--all", "--prune")
    assert not (folder / ".git" / "refs" / "heads" / "main").exists()
    assert compare(before, desk.agrees(folder)) == {}
    (folder / "a.txt").write_text("on top of a packed ref\n")
    desk.git(folder, "commit", "-qam", "loose over packed")
    assert set(compare(before, desk.agrees(folder))) == {"head_commit", "index", "branches"}
    desk.git(folder, "branch", "-qD", "two/three")
    desk.agrees(folder)


def test_a_repository_without_a_commit(desk: Desk) -> None:
    folder = desk.base / "new"
    folder.mkdir()
    desk.git(folder, "init", "-q")
    seen, memo = observe(desk.found(folder))
    assert seen == {"head": "refs/heads/main", "head_commit": None, "index": None, "branches": {}}
    assert memo == {}


def test_a_sha256_repository_is_watched(desk: Desk) -> None:
    folder = desk.repo("wide", "--object-format=sha256")
    seen = desk.agrees(folder)
    assert len(str(seen["head_commit"])) == 64 and seen["index"]
    desk.git(folder, "checkout", "-q", "--detach")
    desk.agrees(folder)


def test_a_branch_that_stands_for_another(desk: Desk) -> None:
    folder = desk.repo()
    desk.git(folder, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    desk.git(folder, "checkout", "-q", "alias")
    seen, _ = observe(desk.found(folder))
    assert seen["head"] == "refs/heads/alias"
    assert seen["head_commit"] == desk.git(folder, "rev-parse", "HEAD").strip()


def test_a_branch_whose_name_is_not_text(desk: Desk) -> None:
    folder = desk.repo()
    tip = desk.git(folder, "rev-parse", "HEAD").strip()
    (folder / ".git" / "refs" / "heads" / os.fsdecode(b"caf\xe9")).write_text(tip + "\n")
    seen = desk.agrees(folder)
    assert json.loads(json.dumps(seen))["branches"]["caf\udce9"] == tip


def test_more_branches_than_anyone_reads_become_a_digest(desk: Desk) -> None:
    folder = desk.repo()
    tip = desk.git(folder, "rev-parse", "HEAD").strip()

    def create(names: range) -> None:
        lines = "".join(f"create refs/heads/b{n} {tip}\n" for n in names)
        desk.git(folder, "update-ref", "--stdin", feed=lines.encode())

    few = desk.agrees(folder)
    create(range(1200))
    many, _ = observe(desk.found(folder))
    assert many["branches"] == {} and many["branches_digest"]
    desk.git(folder, "pack-refs", "--all")
    assert observe(desk.found(folder))[0] == many
    create(range(1200, 1201))
    more, _ = observe(desk.found(folder))
    assert compare(many, more) == {"branches_digest": [many["branches_digest"], more["branches_digest"]]}
    assert set(compare(few, many)) == {"branches_digest"}


def test_an_unchanged_index_is_not_read_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = desk.repo()
    repo = desk.found(folder)
    first, memo = observe(repo)
    memo = json.loads(json.dumps(memo))
    with monkeypatch.context() as patch:
        patch.setattr(repository, "entries_digest", None)  # to call it would be an error
        again, memo = observe(repo, memo)
    assert again == first
    (folder / "b").write_text("b")
    desk.git(folder, "add", "b")
    assert compare(first, observe(repo, memo)[0]) == {"index": True}
    odd: list[Seen] = [{"stamp": 1}, {"digest": []}, {"stamp": memo["stamp"], "digest": None}]
    for remembered in odd:
        assert observe(repo, remembered)[0]["index"] == observe(repo)[0]["index"]


def test_observing_a_large_index_a_second_time_costs_next_to_nothing(desk: Desk) -> None:
    folder = desk.repo()
    blob = desk.git(folder, "hash-object", "-w", "--stdin", feed=b"x").strip()
    lines = "".join(f"100644 {blob}\tsrc/d{n % 300}/f{n}\n" for n in range(30000))
    desk.git(folder, "update-index", "--index-info", feed=lines.encode())
    repo = desk.found(folder)
    _, memo = observe(repo)
    started = time.perf_counter()
    for _ in range(20):
        observe(repo, memo)
    assert (time.perf_counter() - started) / 20 < 0.01


DAMAGE = st.one_of(st.binary(max_size=60), st.sampled_from([b"ref: ", b"ref: refs/heads/../../config", b"0" * 40]))


def test_a_damaged_repository_is_never_an_error(desk: Desk) -> None:
    folder = desk.repo()
    desk.git(folder, "branch", "packed")
    desk.git(folder, "pack-refs", "--all", "--no-prune")
    spare = desk.base / "spare"
    shutil.copytree(folder, spare)
    parts = ["HEAD", "index", "config", "packed-refs", "refs/heads/main", "commondir"]

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(part=st.sampled_from(parts), text=DAMAGE)
    @example(part="refs/heads/main", text=b"ref: refs/heads/main")
    @example(part="config", text=b"[core\n")
    def damaged(part: str, text: bytes) -> None:
        shutil.rmtree(folder)
        shutil.copytree(spare, folder)
        (folder / ".git" / part).write_bytes(text)
        repo = find_repo(os.fsencode(folder))
        if repo is not None:
            seen, memo = observe(repo)
            json.dumps([seen, memo, compare(seen, {}), compare({}, seen)])
            user_config(repo, os.fsencode(desk.home))

    damaged()


def test_fifos_and_loops_in_dot_git_do_not_hold_us_up(desk: Desk) -> None:
    folder = desk.repo()
    repo = desk.found(folder)
    git_dir = folder / ".git"
    for name in ("index", "packed-refs", "refs/heads/pipe", "config.worktree"):
        (git_dir / name).unlink(missing_ok=True)
        os.mkfifo(git_dir / name)
    (git_dir / "refs" / "heads" / "loop").symlink_to("loop")
    (git_dir / "refs" / "heads" / "up").symlink_to("..")
    seen, _ = observe(repo)
    assert seen["index"] is None
    assert set(seen["branches"]) == {"main"}  # type: ignore[call-overload]


# Its configuration


def test_settings_come_from_the_same_files_in_the_same_order_as_git_s(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = desk.repo()
    xdg = desk.home / ".config" / "git"
    xdg.mkdir(parents=True)
    (xdg / "config").write_text("[core]\n\texcludesFile = /from/xdg\n\teditor = xdg\n[user]\n\tname = Xdg\n")
    (desk.home / ".gitconfig").write_text("[core]\n\teditor = home\n[user]\n\temail = home@x\n")
    desk.git(folder, "config", "core.pager", "own")
    desk.git(folder, "config", "extensions.worktreeConfig", "true")
    desk.git(folder, "config", "--worktree", "core.autocrlf", "input")

    def same(home: Path = desk.home) -> dict[str, str]:
        values = user_config(desk.found(folder), os.fsencode(home))
        for key in values:
            assert values[key] == desk.plain(folder, "config", "--get", key).removesuffix("\n"), key
        return values

    values = same()
    assert values["core.excludesfile"] == "/from/xdg"
    assert values["core.editor"] == "home"
    assert values["core.autocrlf"] == "input"
    assert user_identity(values) == ("Xdg", "home@x")
    assert user_identity({"user.name": "only"}) is None
    monkeypatch.setenv("XDG_CONFIG_HOME", str(desk.base / "empty"))
    assert "core.excludesfile" not in user_config(desk.found(folder), os.fsencode(desk.home))
    assert user_config(None, None) == {}


def test_includes_are_followed_where_git_would(desk: Desk) -> None:
    folder = desk.repo("work/repo")
    (desk.home / ".gitconfig").write_text(
        "[user]\n\tname = before\n"
        "[include]\n\tpath = ~/more\n"
        f'[includeIf "gitdir:{desk.base}/work/"]\n\tpath = work\n'
        f'[includeIf "gitdir:{desk.base}/play/"]\n\tpath = play\n'
        '[includeIf "gitdir/i:WORK/"]\n\tpath = folded\n'
        "[include]\n\tpath = missing\n"
    )
    (desk.home / "more").write_text("[user]\n\tname = more\n")
    (desk.home / "work").write_text("[user]\n\temail = at@work\n")
    (desk.home / "play").write_text("[user]\n\temail = at@play\n[core]\n\tautocrlf = true\n\tfilemode = false\n")
    (desk.home / "folded").write_text("[user]\n\tsigningKey = folded\n")
    values = user_config(desk.found(folder), os.fsencode(desk.home))
    assert (values["user.email"], values["user.signingkey"]) == ("at@work", "folded")
    # Not ours by its condition; yet what could make bytes differ is heeded, in case we misread the condition.
    assert values["core.autocrlf"] == "true"
    for key in ("user.name", "user.email", "user.signingkey"):
        assert values[key] == desk.plain(folder, "config", "--get", key).strip()


def test_a_condition_that_is_not_evaluated_can_only_add_caution(desk: Desk) -> None:
    folder = desk.repo()
    settings_file = desk.home / ".gitconfig"
    maybe = desk.home / "maybe"
    settings_file.write_text(
        '[core]\n\tautocrlf = true\n[includeIf "onbranch:main"]\n\tpath = maybe\n'
        '[includeIf "gitdir:**/r*po/"]\n\tpath = maybe\n'
    )
    maybe.write_text("[core]\n\tautocrlf = false\n[user]\n\tname = Maybe\n")
    repo, home = desk.found(folder), os.fsencode(desk.home)
    values = user_config(repo, home)
    assert values["core.autocrlf"] == "true" and "user.name" not in values
    assert gitconfig.DOUBT not in values
    maybe.write_text("[core]\n\tattributesFile = /some/where\n")
    assert gitconfig.DOUBT in user_config(repo, home)


def test_files_that_include_each_other_for_ever_are_left(desk: Desk) -> None:
    """A repository unpacked from the net may ask for fifty times itself, and each of those again."""
    folder = desk.repo()
    with (folder / ".git" / "config").open("a") as config:
        config.write("[include]\n" + "\tpath = config\n" * 50)
    started = time.perf_counter()
    assert gitconfig.DOUBT in user_config(desk.found(folder), os.fsencode(desk.home))
    assert time.perf_counter() - started < 2


def test_a_broken_configuration_is_read_as_far_as_it_goes_and_doubted(desk: Desk) -> None:
    folder = desk.repo()
    (desk.home / ".gitconfig").write_text("[user]\n\tname = Me\n[core\n\tautocrlf = true\n")
    values = user_config(desk.found(folder), os.fsencode(desk.home))
    assert values["user.name"] == "Me" and gitconfig.DOUBT in values


SYNTAX = [
    b"[core]\n\tbare\n\teditor = vi ; comment\n\tpager=less # more\n",
    b"\xef\xbb\xbf[a]b=c\r\n[d]\r\n\te = f  \r\n",
    b'[A "B.c"] K = "  kept  " ; gone\n[A.D]\n  x = 1\n',
    b'[a]\n\tb = one \\\n   two\\\n"  three; # "\n\tc = \\"q\\" \\\\ \\n \\t.\n',
    b'[a "q\\"u\\\\o"]\n\tb = "a\\tb"c"d e" f\n[x]\n[y] z = \n',
    b"# only\n; comments\n\n[a]\n\n\tb-2 = 5k\n\tb-2 = 6\n",
    b"[a]\n\tb = x\\\n",
    b"[a]\n\tb = c",
    b"[a]\n\tb = [not] a = section\n",
    b"[a] ; note\n\tb = 1\n",
]


@pytest.mark.parametrize("text", SYNTAX)
def test_configuration_syntax_is_git_s(desk: Desk, text: bytes) -> None:
    same_as_git(desk, text)


def same_as_git(desk: Desk, text: bytes) -> None:
    place = desk.base / "sample"
    place.write_bytes(text)
    listed = desk.plain(desk.base, "config", "-f", str(place), "-l", "-z").split("\0")[:-1]
    expected = [(key, value if equals else "true") for key, equals, value in (x.partition("\n") for x in listed)]
    assert parse_config(text) == (expected, True)


def test_whatever_git_writes_into_a_configuration_we_read_back(desk: Desk) -> None:
    chars = st.characters(codec="utf-8", exclude_characters="\0\r\v\f", exclude_categories=["Cs"])
    place = desk.base / "written"

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(sub=st.text(chars, min_size=1, max_size=8), value=st.text(chars, max_size=12))
    @example(sub='a"\\]', value=' "x" ; # \\ ')
    def written(sub: str, value: str) -> None:
        place.unlink(missing_ok=True)
        desk.plain(desk.base, "config", "-f", str(place), f"Sec.{sub}.Key", value, may_fail=True)
        if place.exists() and place.stat().st_size:
            same_as_git(desk, place.read_bytes())

    written()


@settings(max_examples=300, deadline=None)
@given(text=st.one_of(st.binary(max_size=80), st.text('[]"\\=#;\nab \t', max_size=40).map(str.encode)))
def test_no_text_at_all_makes_the_configuration_reader_fail(text: bytes) -> None:
    parse_config(text)


def test_the_ignore_files_outside_the_tree(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = desk.repo()
    repo, home = desk.found(folder), os.fsencode(desk.home)
    exclude = os.fsencode(folder / ".git" / "info" / "exclude")
    assert ignore_sources(repo, {}, home) == [home + b"/.config/git/ignore", exclude]
    assert ignore_sources(repo, {"core.excludesfile": "~/mine"}, home) == [home + b"/mine", exclude]
    assert ignore_sources(repo, {"core.excludesfile": "mine"}, home) == [repo.top + b"/mine", exclude]
    assert ignore_sources(repo, {"core.excludesfile": ""}, home) == [exclude]
    assert ignore_sources(None, {}, None) == []
    monkeypatch.setenv("XDG_CONFIG_HOME", "/x")
    assert ignore_sources(repo, {}, home) == [b"/x/git/ignore", exclude]
    desk.git(folder, "worktree", "add", "-q", str(desk.base / "linked"))
    assert ignore_sources(desk.found(desk.base / "linked"), {}, None)[-1] == exclude


def test_looking_leaves_the_user_s_repository_bit_identical(desk: Desk) -> None:
    """P-04: find, observe and configure, then compare every byte, inode and time stamp of .git."""
    folder = desk.repo()
    desk.git(folder, "worktree", "add", "-q", str(desk.base / "linked"))
    desk.git(folder, "pack-refs", "--all")

    def picture() -> dict[str, tuple[int, int, int, bytes]]:
        return {
            str(path): (s.st_mtime_ns, s.st_ctime_ns, s.st_ino, path.read_bytes() if path.is_file() else b"")
            for path in sorted((folder / ".git").rglob("*"))
            for s in [path.lstat()]
        }

    before = picture()
    for place in (folder, desk.base / "linked"):
        repo = desk.found(place)
        _, memo = observe(repo)
        observe(repo, memo)
        ignore_sources(repo, user_config(repo, os.fsencode(desk.home)), os.fsencode(desk.home))
    assert picture() == before
