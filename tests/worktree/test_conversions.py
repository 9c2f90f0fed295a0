"""Which files git may have converted: git's own hash of them is the truth, and doubt hashes (G-34)."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from snapstore.worktree.usergit import config as gitconfig
from snapstore.worktree.usergit import conversions
from snapstore.worktree.usergit.config import user_config
from snapstore.worktree.usergit.conversions import CONVERTING, Conversions, read_conversions
from snapstore.worktree.usergit.index import read_index
from snapstore.worktree.usergit.repository import find_repo
from snapstore.worktree.usergit.user_repo import UserRepo

# Every conversion leaves a mark on this: CRLF, $Id$, a filter (rot13), an encoding (latin-1).
BYTES = b"$Id: old $\r\nabc caf\xe9\r\n"
RAW = hashlib.sha1(b"blob %d\0%b" % (len(BYTES), BYTES)).hexdigest()

PATHS = [
    b"a", b"b", b"ab", b"a.txt", b"B.TXT", b".hidden", b"#x", b"!a", b"a b", b'a"b', b"[a]", b"x[b",
    b"back\\slash", b"caf\xc3\xa9", b"latin\xe9", b"d/a", b"d/a.txt", b"d/b/a.txt", b"d/b/c/ab",
    b"D2/d/a", b"d/d/d/d", b"e/a b/c",
]  # fmt: skip


class Desk:
    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.folder = base / "repo"
        for folder in (self.home, self.folder):
            folder.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("config", "filter.rot.clean", "tr a-z n-za-m")
        for path in PATHS:
            self.put(path, BYTES)

    def put(self, path: bytes, data: bytes) -> None:
        place = self.folder / os.fsdecode(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def git(self, *args: str, feed: bytes | None = None, may_fail: bool = False) -> bytes:
        done = subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", *args],
            cwd=self.folder,
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
        return done.stdout

    def repo(self) -> UserRepo:
        found = find_repo(os.fsencode(self.folder))
        assert found is not None
        return found

    def read(self, files: dict[bytes, bytes], staged: dict[bytes, bytes] | None = None) -> Conversions:
        """What the attributes say. The desk's own filter alone would make everything suspect, see below."""
        repo, home = self.repo(), os.fsencode(self.home)
        config = {key: value for key, value in user_config(repo, home).items() if not key.startswith("filter.rot.")}
        return read_conversions(repo, config, files, home, staged)

    def attribute_files(self) -> dict[bytes, bytes]:
        top = os.fsencode(self.folder)
        return {
            os.path.relpath(folder, top).removeprefix(b"."): Path(os.fsdecode(folder), ".gitattributes").read_bytes()
            for folder, _, names in os.walk(top)
            if b".gitattributes" in names
        }

    def converted(self) -> set[bytes]:
        """The paths that git hashes to something else than their bytes."""
        hashed = self.git("hash-object", "--stdin-paths", feed=b"\n".join(PATHS) + b"\n", may_fail=True)
        ids = hashed.split()
        # Where a nonsensical value makes git give up, the attributes below still speak.
        return {path for path, oid in zip(PATHS, ids, strict=False) if oid.decode() != RAW}

    def attributed(self) -> set[bytes]:
        """The paths on which git sees one of the six attributes set or valued."""
        names = sorted(name.decode() for name in CONVERTING)
        answer = self.git("check-attr", "--stdin", "-z", *names, feed=b"\0".join(PATHS) + b"\0").split(b"\0")
        found = zip(answer[0::3], answer[1::3], answer[2::3], strict=False)
        return {path for path, _, value in found if value not in (b"unspecified", b"unset")}

    def never_wrong(self) -> Conversions:
        """No path that git converts, or could, is held to be safe."""
        answer = self.read(self.attribute_files())
        missed = {path for path in self.converted() | self.attributed() if not answer.suspect(path)}
        assert missed == set()
        return answer

    def suspects(self) -> set[bytes]:
        answer = self.never_wrong()
        return {path for path in PATHS if answer.suspect(path)}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(gitconfig, "SYSTEM_CONFIG", os.fsencode(tmp_path / "etc-gitconfig"))
    monkeypatch.setattr(gitconfig, "OTHER_SYSTEM_CONFIGS", ())
    monkeypatch.setattr(conversions, "SYSTEM_ATTRIBUTES", (os.fsencode(tmp_path / "etc-gitattributes"),))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return Desk(tmp_path)


def test_a_plain_repository_has_nothing_to_suspect(desk: Desk) -> None:
    answer = desk.never_wrong()
    assert (answer.everything, answer.file_mode, answer.symlinks) == (False, True, True)
    assert desk.suspects() == set() == desk.converted()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"*.txt text\n", {b"a.txt", b"B.TXT", b"d/a.txt", b"d/b/a.txt"}),
        (b"/a.txt ident\n", {b"a.txt"}),
        (b"a filter=rot\n", {b"a", b"d/a", b"D2/d/a"}),
        (b"d/* eol=lf\n", {b"d/a", b"d/a.txt"}),
        (b"d/**/a.txt text=auto\n", {b"d/a.txt", b"d/b/a.txt"}),
        (b"d/** crlf=input\n", {path for path in PATHS if path.startswith(b"d/")}),
        (b"**/d/a working-tree-encoding=ISO-8859-1\n", {b"d/a", b"D2/d/a"}),
        (b'"a b" text\n', {b"a b"}),
        (b'"a\\"b" text\n"caf\\303\\251" text\n', {b'a"b', b"caf\xc3\xa9"}),
        (b"\\#x text\n\\!a text\n", {b"#x", b"!a"}),
        (b"?.txt text\r\n", {b"a.txt", b"B.TXT", b"d/a.txt", b"d/b/a.txt"}),
        (b"[ab] text\n", {b"a", b"b", b"d/a", b"D2/d/a", b"d/d/d/d", b"e/a b/c"}),  # any one letter: generous
        (b"\xef\xbb\xbfab text\n", {b"ab", b"d/b/c/ab"}),
        # What takes a conversion away, or has to do with none, is harmless.
        (b"*.txt -text\n* !eol -filter\n*.x diff=cpp merge=union\n* binary\n", set()),
        (b"# a text\n\n   \n!a text\nd/ text\na\n", set()),
        # What a later line takes back is still suspect: which line wins is not worked out.
        (b"a.txt text\na.txt -text\n", {b"a.txt", b"d/a.txt", b"d/b/a.txt"}),
        (b"[attr]mine eol=crlf\n[attr]yours mine\n/a yours\n/b other\n", {b"a"}),
        (b"[attr]binary filter=rot\n/a binary\n", {b"a"}),
    ],
)
def test_a_line_makes_what_it_matches_suspect_and_nothing_else(desk: Desk, text: bytes, expected: set[bytes]) -> None:
    desk.put(b".gitattributes", text)
    assert desk.suspects() == expected


def test_a_nested_file_speaks_for_its_folder_only(desk: Desk) -> None:
    desk.put(b"d/.gitattributes", b"a.txt text\n/b/*/ab ident\n")
    assert desk.suspects() == {b"d/a.txt", b"d/b/a.txt", b"d/b/c/ab"}


def test_everything_suspect_is_told_at_once(desk: Desk) -> None:
    desk.put(b".gitattributes", b"* text=auto\n")
    assert desk.never_wrong().everything


@pytest.mark.parametrize(
    ("text", "folder"),
    [(b"a\0b text\n", b""), (b'"unclosed text\n', b""), (b'"bad \\q" text\n', b"d"), (b"x\0", b"d/b")],
)
def test_a_text_that_makes_no_sense_makes_its_folder_suspect(desk: Desk, text: bytes, folder: bytes) -> None:
    desk.put((folder + b"/" if folder else b"") + b".gitattributes", text)
    below = {path for path in PATHS if not folder or path.startswith(folder + b"/")}
    assert desk.suspects() == below


def test_the_files_outside_the_tree_are_heard(desk: Desk) -> None:
    (desk.folder / ".git" / "info").mkdir(exist_ok=True)
    (desk.folder / ".git" / "info" / "attributes").write_text("/a text\n")
    assert desk.suspects() == {b"a"}
    default = desk.home / ".config" / "git" / "attributes"
    default.parent.mkdir(parents=True)
    default.write_text("/b ident\n")
    assert desk.suspects() == {b"a", b"b"}
    (desk.home / "mine").write_text("/ab filter=rot\n")
    desk.git("config", "core.attributesFile", "~/mine")
    assert desk.suspects() == {b"a", b"ab"}
    Path(os.fsdecode(conversions.SYSTEM_ATTRIBUTES[0])).write_text("/d/a text\n")
    assert desk.suspects() == {b"a", b"ab", b"d/a"}
    (desk.home / "mine").unlink()
    os.mkfifo(desk.home / "mine")
    assert desk.read({}).everything


def test_a_linked_worktree_hears_the_shared_attributes(desk: Desk) -> None:
    desk.git("add", "a")
    desk.git("commit", "-qm", "a")
    desk.git("worktree", "add", "-q", "../linked")
    (desk.folder / ".git" / "info").mkdir(exist_ok=True)
    (desk.folder / ".git" / "info" / "attributes").write_text("/a text\n")
    linked = find_repo(os.fsencode(desk.folder.parent / "linked"))
    assert linked is not None
    assert read_conversions(linked, {}, {}, os.fsencode(desk.home)).suspect(b"a")


@pytest.mark.parametrize(
    ("key", "value", "everything"),
    [
        ("core.autocrlf", "true", True),
        ("core.autocrlf", "input", True),
        ("core.autocrlf", "1", True),
        ("core.autocrlf", "false", False),
        ("core.autocrlf", "No", False),
        ("core.eol", "crlf", True),
        ("core.eol", "lf", False),
        ("core.safecrlf", "true", False),
        ("core.attributesFile", "%(prefix)/etc/x", True),
        ("core.attributesFile", "/dev/null", False),
        ("attr.tree", "HEAD", True),
    ],
)
def test_settings_that_convert_make_everything_suspect(desk: Desk, key: str, value: str, everything: bool) -> None:
    desk.git("config", key, value)
    assert desk.never_wrong().everything is everything


def test_a_doubtful_configuration_makes_everything_suspect(desk: Desk) -> None:
    (desk.home / ".gitconfig").write_text("[core\n")
    assert desk.read({}).everything


def test_modes_and_links_that_git_does_not_take_from_disk_are_told(desk: Desk) -> None:
    desk.git("config", "core.fileMode", "false")
    desk.git("config", "core.symlinks", "false")
    answer = desk.read({})
    assert (answer.file_mode, answer.symlinks) == (False, False)


def test_two_spellings_of_an_accent_are_not_told_apart_so_both_are_suspect(desk: Desk) -> None:
    desk.git("config", "core.precomposeUnicode", "true")
    assert not desk.read({b"": b"plain text\n"}).everything
    assert desk.read({b"": "cafe\u0301 text\n".encode()}).everything


def test_attributes_staged_but_not_on_disk_still_count(desk: Desk) -> None:
    """Git reads the staged .gitattributes when the file is gone: CRLF on disk, LF in the blob."""
    desk.put(b"d/.gitattributes", b"*.txt text\n")
    desk.git("add", "-A")
    (desk.folder / "d" / ".gitattributes").unlink()
    assert b"d/a.txt" in desk.attributed()
    staged = read_index(os.fsencode(desk.folder / ".git" / "index")).entries
    assert staged[b"d/a.txt"][40:60].hex() != RAW
    answer = desk.read(desk.attribute_files(), staged)
    assert answer.suspect(b"d/a.txt") and not answer.suspect(b"a.txt")
    # Edited since: what was in force at the checkout is not known.
    desk.put(b"d/.gitattributes", b"# nothing\n")
    assert desk.read(desk.attribute_files(), staged).suspect(b"d/a.txt")
    desk.git("add", "-A")
    staged = read_index(os.fsencode(desk.folder / ".git" / "index")).entries
    assert not desk.read(desk.attribute_files(), staged).suspect(b"d/a.txt")


PIECES = [
    "*", "**", "***", "/", "a", "b", "d", "ab", ".txt", "A", "TXT", "?", "[ab]", "[!a]", "[^b]", "[a-z]",
    "[]a]", "[[:alpha:]]", "[a", "]", "\\", "\\a", "\\*", "!", "#", ".", " ", "x", "c", "é", "\udce9", '"',
    "[attr]",
]  # fmt: skip
ENCODED = "working-tree-encoding=ISO-8859-1"
STATES = [
    "text", "-text", "!text", "text=auto", "crlf", "-crlf", "crlf=input", "eol=crlf", "eol=lf", "-eol",
    "ident", "-ident", "filter=rot", "filter", "-filter", ENCODED, "binary", "-binary", "m1", "m2", "-m1",
    "m1=x", "diff", "bad!name", "text=", "=", "-",
]  # fmt: skip


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def c_quote(text: str) -> str:
    return '"' + "".join(f"\\{char}" if char in '"\\' else char for char in text) + '"'


pattern = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)
name = st.one_of(
    pattern,
    pattern.map(c_quote),
    st.sampled_from(PATHS).map(lambda path: path.decode("utf-8", "surrogateescape")),
    st.sampled_from(["[attr]m1", "[attr]m2", "[attr]binary", '"[attr]m1"', "[attr]"]),
)
line = st.tuples(name, st.lists(st.sampled_from(STATES), max_size=3).map(" ".join)).map(" ".join)
attributes = st.tuples(st.lists(line, max_size=5), st.sampled_from(["\n", "\r\n", "\n  "])).map(
    lambda made: as_bytes(made[1].join(made[0]))
)


def test_whatever_the_attributes_say_no_converted_file_is_held_to_be_safe(desk: Desk) -> None:
    """Generated attribute files at the top, nested, and in .git/info, with and without regard to case."""
    (desk.folder / ".git" / "info").mkdir(exist_ok=True)

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(top=attributes, nested=attributes, info=attributes, fold=st.booleans())
    @example(top=b"d/**/**/a.txt text", nested=b"", info=b"", fold=False)
    @example(top=b"D2/D/A text", nested=b"", info=b"", fold=True)
    @example(top=b"*a*b*c*d*e*f*g text", nested=b"**/a text", info=b"[^A] text", fold=True)
    @example(top=b"[attr] text\n[attr]m1 m2\n[attr]m2 text\n/a m1", nested=b"", info=b"", fold=False)
    def generated(top: bytes, nested: bytes, info: bytes, fold: bool) -> None:
        desk.put(b".gitattributes", top)
        desk.put(b"d/.gitattributes", nested)
        desk.put(b".git/info/attributes", info)
        desk.git("config", "core.ignoreCase", str(fold).lower())
        desk.never_wrong()

    generated()


def test_the_generated_attributes_do_convert_files(desk: Desk) -> None:
    """The test above would show nothing if git converted nothing: the hash shows each conversion alone."""
    for state in ("text", "text=auto", "crlf", "eol=crlf", "ident", "filter=rot", ENCODED):
        desk.put(b".gitattributes", b"/a " + state.encode())
        assert desk.converted() == {b"a"}, state
        assert desk.suspects() == {b"a"}


@pytest.mark.parametrize(
    "hostile",
    [
        b"*a" * 200 + b" text\n",
        b"**/" * 200 + b"x text\n",
        b"".join(b"*%d* text\n" % n for n in range(9000)),
        b"".join(b"[attr]m%d m%d\n" % (n, n + 1) for n in range(9000)),
    ],
)
def test_a_pattern_made_to_be_slow_is_answered_at_once(desk: Desk, hostile: bytes) -> None:
    answer = desk.read({b"": hostile})
    long = b"/".join([b"a" * 200] * 15)
    for _ in range(50):
        answer.suspect(long)


def test_judging_leaves_the_repository_bit_identical(desk: Desk) -> None:
    """P-04, and no filter is ever run."""
    desk.put(b".gitattributes", b"* filter=loud\n")
    desk.git("add", ".gitattributes")
    desk.git("config", "filter.loud.clean", f"touch {desk.home}/ran; cat")

    def picture() -> dict[str, tuple[int, int, bytes]]:
        return {
            str(path): (s.st_mtime_ns, s.st_ctime_ns, path.read_bytes() if path.is_file() else b"")
            for path in sorted(desk.folder.rglob("*"))
            for s in [path.lstat()]
        }

    before = picture()
    assert desk.read(desk.attribute_files()).suspect(b"a")
    assert picture() == before
    assert not (desk.home / "ran").exists()


def test_a_filter_in_the_configuration_makes_everything_suspect(desk: Desk) -> None:
    """It may have been at work under attributes that are gone; large file storage leaves at most a small pointer."""
    repo, home = desk.repo(), os.fsencode(desk.home)
    assert read_conversions(repo, user_config(repo, home), {}, home).everything
    large = read_conversions(repo, {"filter.lfs.clean": "git-lfs clean -- %f"}, {}, home)
    assert not large.everything and large.nothing and large.smallest == 1024
    assert read_conversions(repo, {}, {}, home).smallest == 0
