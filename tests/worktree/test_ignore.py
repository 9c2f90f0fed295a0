"""What is ignored here is what git ignores: told form by form, and asked of git for generated trees."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.worktree.ignore.rules import MACHINE_MADE, RuleBook

# --- git's own answers ----------------------------------------------------------------------------


def make_repository(top: bytes) -> None:
    """The least that git takes for a repository; `git init` would cost more than the question."""
    for folder in (b"objects", b"refs", b"info"):
        os.makedirs(os.path.join(top, b".git", folder))
    Path(os.fsdecode(top), ".git", "HEAD").write_bytes(b"ref: refs/heads/main\n")


def ask_git(top: bytes, excludes_file: bytes, paths: list[bytes], fold: bool = False) -> dict[bytes, bool]:
    """What `git check-ignore` says of each path, whatever the user's own git is set up to do."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"HOME": os.fsdecode(top), "XDG_CONFIG_HOME": os.fsdecode(top), "GIT_CONFIG_NOSYSTEM": "1"}
    command = [b"git", b"-c", b"core.excludesFile=" + excludes_file, b"-c", b"core.ignoreCase=%d" % fold]
    command += b"check-ignore --no-index -z --stdin -v -n".split()
    # A leading colon would be pathspec magic, and check-ignore takes no --literal-pathspecs.
    asked = b"".join(b"./" + path + b"\0" for path in paths)
    told = subprocess.run(command, cwd=top, env=env, input=asked, capture_output=True, check=False)
    assert told.returncode in (0, 1), told.stderr
    fields = told.stdout.split(b"\0")
    answers = {}
    for source, pattern, path in zip(fields[0::4], fields[2::4], fields[3::4], strict=False):
        # With -v a path is also listed for the negated rule that takes it back in.
        answers[path[2:]] = source != b"" and not pattern.startswith(b"!")
    assert len(answers) == len(set(paths))
    return answers


def write(path: bytes, text: bytes) -> None:
    Path(os.fsdecode(path)).write_bytes(text)


def everywhere(folders: list[bytes], names: list[bytes]) -> list[bytes]:
    return [folder + b"/" + name if folder else name for folder in folders for name in names]


# --- generated trees ------------------------------------------------------------------------------

# Few different characters, so that patterns and names meet often; the odd ones are all among them.
NAME_BITS = [b"a", b"b", b"ab", b"\xc3\xa9", *(bytes((each,)) for each in b"A.-!# []*?\\\n\r:^\xff\t1\x0b")]
if sys.platform == "darwin":  # its file systems take no such names, or take `A` for `a`
    NAME_BITS = [bit for bit in NAME_BITS if bit not in (b"\xff", b"A")]
names = (
    st.lists(st.sampled_from(NAME_BITS[:3]) | st.sampled_from(NAME_BITS), min_size=1, max_size=4)
    .map(b"".join)
    .filter(lambda name: name not in (b".", b"..", b".git"))
)
CLASSES = [*b"alnum alpha blank cntrl digit graph lower print punct space upper xdigit nope".split(), b""]
named_classes = st.sampled_from(CLASSES).map(lambda name: b"[:" + name + b":]")
bracket_bits = st.sampled_from([bytes((each,)) for each in b"abA-\\][!^/:\xff "]) | named_classes
brackets = st.tuples(
    st.sampled_from([b"[", b"[!", b"[^"]),
    st.lists(bracket_bits, max_size=4).map(b"".join),
    st.sampled_from([b"]", b"]", b"]", b""]),
).map(b"".join)
GLOB_BITS = [*rb"* ? / ** **/ /** /**/ *** a* *b \ \/".split(), b"\\ ", b" "]
glob_bits = (
    st.sampled_from(NAME_BITS[:3])
    | st.sampled_from(GLOB_BITS)
    | st.sampled_from(NAME_BITS).filter(lambda bit: bit != b"\n")
    | brackets
)
globs = st.lists(glob_bits, min_size=1, max_size=5).map(b"".join)
beginnings = st.sampled_from([b"", b"", b"", b"!", b"#", b"\\!", b"\\#", b"/", b"!/", b"**/"])
endings = st.sampled_from([b"", b"", b"", b"/", b"//", b" ", b"  ", b"\\ ", b"\\", b"\t", b"/ ", b"\0x"])
line_ends = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\r\r\n"])
lines = st.tuples(beginnings, globs, endings, line_ends).map(b"".join)

Tree = tuple[list[bytes], dict[bytes, bytes], bytes, bytes, list[bytes]]


@st.composite
def grown_lines(draw: st.DrawFn, paths: list[bytes]) -> bytes:
    """A rule that was one of the paths before some of its characters turned into wildcards."""
    grown = [draw(st.sampled_from([b"", b"", b"", b"!", b"/", b"**/"]))]
    path = draw(st.sampled_from(paths))
    for at in range(len(path)):
        char = path[at : at + 1]
        if char == b"/":
            forms = [b"/", b"/", b"/", b"/**/", b"/*/", b"\\/", b"**/", b"/**\\/"]
        else:
            forms = [char] * 6 + [b"\\" + char, b"?", b"*", b"**", b"", b"[" + char + b"-b]", b"[^" + char + b"]"]
        grown.append(draw(st.sampled_from(forms)))
    return b"".join([*grown, draw(st.sampled_from([b"", b"", b"", b"/", b" ", b"*", b"/**"])), draw(line_ends)])


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Folders (each after its parent), the texts in some of them, two more texts, names to try everywhere."""
    folders = [b""]
    for name in draw(st.lists(names, min_size=1, max_size=5)):
        parent = draw(st.sampled_from(folders))
        folder = parent + b"/" + name if parent else name
        if folder not in folders:
            folders.append(folder)
    tried = draw(st.lists(names, min_size=4, max_size=12, unique=True))
    texts = st.tuples(
        st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf", b"\n"]),
        st.lists(lines | grown_lines(everywhere(folders, tried)), max_size=5).map(b"".join),
        st.sampled_from([b"", b"", b"a", b"*\r", b"!b"]),
    ).map(b"".join)
    holders = [b"", *draw(st.lists(st.sampled_from(folders), max_size=2))]
    return folders, {folder: draw(texts) for folder in holders}, draw(texts), draw(texts), tried


def the_book_agrees_with_git(tree: Tree, data: st.DataObject) -> None:
    folders, gitignores, info, excludes, tried = tree
    paths = [path for path in everywhere(folders, tried) if path not in folders]
    with tempfile.TemporaryDirectory() as outside:
        top = os.path.join(os.fsencode(outside), b"top")
        make_repository(top)
        for folder in folders:
            os.makedirs(os.path.join(top, folder), exist_ok=True)
        for folder, text in gitignores.items():
            write(os.path.join(top, folder, b".gitignore"), text)
        write(os.path.join(top, b".git/info/exclude"), info)
        excludes_file = os.path.join(os.fsencode(outside), b"excludes")
        write(excludes_file, excludes)
        fold = data.draw(st.booleans())
        answers = ask_git(top, excludes_file, [*paths, *folders[1:]], fold)

    book = RuleBook(b"", [excludes, info], gitignores, {}, fold)
    assert {path: book.ignored(path, path in folders) for path in answers} == answers

    # A walk tells the same rules folder by folder.
    walked = RuleBook(excludes=[excludes, info], fold=fold)
    for folder in folders:
        walked.add(folder, gitignores.get(folder), None)
    assert {path: walked.ignored(path, path in folders) for path in answers} == answers

    # The same texts as .snapstoreignore files stand above a .gitignore as they stood above info/exclude.
    ours = RuleBook(excludes=[excludes], git={b"": info}, own=gitignores, fold=fold)
    assert {path: ours.ignored(path, path in folders) for path in answers} == answers

    # Seen from a root further down, every path below it has the same answer.
    root = data.draw(st.sampled_from(folders))
    if root and not answers[root]:
        part = RuleBook(root, [excludes, info], gitignores, {}, fold)
        below = {path: answers[path] for path in answers if path.startswith(root + b"/")}
        assert {path: part.ignored(path[len(root) + 1 :], path in folders) for path in below} == below


@settings(max_examples=150, deadline=None)
@given(trees(), st.data())
def test_every_name_in_any_tree_of_rules_is_answered_as_git_answers_it(tree: Tree, data: st.DataObject) -> None:
    the_book_agrees_with_git(tree, data)


@pytest.mark.deep
@settings(max_examples=5000, deadline=None)
@given(trees(), st.data())
def test_and_so_in_thousands_of_trees(tree: Tree, data: st.DataObject) -> None:
    the_book_agrees_with_git(tree, data)


# --- form by form ---------------------------------------------------------------------------------

# rules, ignored, not ignored; a path that ends with a slash is a folder
FORMS = {
    "a name is ignored at any depth": (b"foo", b"foo foo/ d/foo d/e/foo", b"foobar xfoo"),
    "a file below an ignored folder is ignored too": (b"foo", b"foo/a d/foo/e/a", b"fo/a"),
    "a blank line says nothing": (b"\n\n", b"", b"a"),
    "a comment says nothing": (b"#foo", b"", b"foo #foo"),
    "a comment starts only at the beginning of a line": (b"foo#bar", b"foo#bar", b"foo"),
    "an escaped hash is a hash": (b"\\#foo", b"#foo", b"foo"),
    "an escaped bang is a bang": (b"\\!foo", b"!foo", b"foo"),
    "spaces at the end are cut": (b"foo   ", b"foo", b""),
    "a tab at the end stays": (b"foo\t", b"", b"foo"),
    "a CR before the line's end is cut, and then the spaces": (b"foo \r\nbar\r", b"foo bar", b""),
    "of two CRs one stays": (b"foo\r\r\n", b"", b"foo"),
    "a byte order mark is skipped": (b"\xef\xbb\xbffoo", b"foo", b""),
    "a line ends at a NUL": (b"foo\0bar", b"foo", b"foobar"),
    "the last match counts": (b"*.log\n!keep.log", b"a.log", b"keep.log"),
    "the last match counts the other way too": (b"!keep.log\n*.log", b"a.log keep.log", b""),
    "nothing comes back from an ignored folder": (b"d/\n!d/keep", b"d/ d/keep", b""),
    "with its contents ignored instead, it does": (b"d/*\n!d/keep", b"d/x", b"d/ d/keep"),
    "a slash at the end means folders only": (b"foo/", b"foo/ d/foo/ foo/a", b"foo d/foo"),
    "a slash at the beginning means here only": (b"/foo", b"foo foo/", b"d/foo"),
    "a slash in the middle means here only": (b"d/foo", b"d/foo", b"e/d/foo"),
    "a star stops at a slash": (b"d/*.c", b"d/a.c d/.c", b"d/e/a.c"),
    "a star in a name": (b"a*c", b"ac abc abbc", b"a acb"),
    "stars that must not take too much": (b"*a*ba", b"aba xaba", b"ba"),
    "stars in a row, in a name": (b"a**c", b"ac abc", b"a/c a"),
    "a question mark is one character": (b"a?c", b"abc", b"ac abbc"),
    "a question mark is no slash": (b"d/a?c", b"d/abc", b"d/a/c"),
    "a class": (b"[ab]x", b"ax bx", b"cx x abx"),
    "a class turned round with a bang": (b"[!ab]x", b"cx", b"ax x"),
    "a class turned round with a caret": (b"[^ab]x", b"cx", b"ax"),
    "a range": (b"[b-d]", b"b c d", b"a e -"),
    "a range to an escaped end": (b"[[-\\]]", b"[ \\ ]", b"a -"),
    "a range is no beginning of another": (b"[a-c-e]", b"a b c - e", b"d"),
    "a class is no slash": (b"**/d[/x]e\n**/a/f[!x]g", b"dxe a/fyg", b"d/e a/f/g a/fxg"),
    "a range the wrong way round holds its first alone": (b"[d-b]", b"d", b"b c -"),
    "a dash at either end is a dash": (b"[-a]\n[b-]", b"- a b", b"c"),
    "a closing bracket that comes first is a member": (b"[]a]\n[!]a]x", b"] a bx", b"ax ]x"),
    "an escape within a class": (b"[\\]x]", b"] x", b"\\"),
    "a named class": (b"[[:digit:][:upper:]]", b"7 Q", b"q x7"),
    "a named class nobody knows": (b"[[:word:]a]", b"", b"a w"),
    "a class that only looks named": (b"[[:a]", b"[ : a", b"b"),
    "an escaped star is a star": (b"a\\*", b"a*", b"ab a"),
    "an escape of a plain character is that character": (b"\\a\\b", b"ab", b""),
    "a backslash at the end matches nothing": (b"a\\", b"", b"a a\\"),
    "an unclosed bracket matches nothing": (b"a[b", b"", b"a[b ab"),
    "two stars and a slash at the beginning": (b"**/foo", b"foo d/foo d/e/foo", b"xfoo"),
    "and with more than a name behind": (b"**/d/foo", b"d/foo e/d/foo", b"d/e/foo foo"),
    "a slash and two stars at the end": (b"d/**", b"d/a d/e/ d/e/a", b"d/ e/d/a"),
    "two stars between slashes": (b"d/**/foo", b"d/foo d/a/foo d/a/b/foo", b"foo d/foox e/d/foo"),
    "two stars twice": (b"d/**/e/**/foo", b"d/e/foo d/a/e/b/foo d/e/x/e/foo", b"d/foo e/foo"),
    "two stars that must not take too much": (b"d/**/a/**/a/b", b"d/a/a/b d/a/x/a/b", b"d/a/b"),
    "two stars between single ones": (b"*a/**/b/*/c", b"a/b/b/c a/x/b/y/c", b"a/b/c"),
    "two stars inside a name, in a place": (b"/d/?**c", b"d/abc", b"d/ab/c"),
    "two stars after a plain beginning cross folders": (b"a**/foo", b"ab/foo a/b/foo", b"b/foo"),
    "two stars before an escaped slash are never nothing": (b"**\\/foo", b"d/foo d/e/foo", b"foo"),
    "bytes that are no text": (b"\xff*", b"\xff \xff\xfe", b"a"),
    "capitals are others": (b"foo", b"foo", b"FOO Foo"),
    "only slashes match nothing": (b"/\n//\n!/", b"", b"a a/"),
}


@pytest.mark.parametrize(("rules", "yes", "no"), FORMS.values(), ids=FORMS)
def test_form(rules: bytes, yes: bytes, no: bytes) -> None:
    book = RuleBook(git={b"": rules})
    for path in yes.split(b" ") if yes else []:
        assert book.ignored(path.rstrip(b"/"), path.endswith(b"/")), path
    for path in no.split(b" ") if no else []:
        assert not book.ignored(path.rstrip(b"/"), path.endswith(b"/")), path


def test_what_these_forms_say_of_git_is_true(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    make_repository(top)
    expected = {}
    for rules, yes, no in FORMS.values():
        for path in filter(None, yes.split(b" ") + no.split(b" ")):
            # A folder of its own for each path: it may be a file in one and a folder in the next.
            home = b"%d" % len(expected)
            os.makedirs(os.path.join(top, home, path if path.endswith(b"/") else b""))
            write(os.path.join(top, home, b".gitignore"), rules)
            expected[home + b"/" + path.rstrip(b"/")] = path in yes.split(b" ")
    assert ask_git(top, b"", list(expected)) == expected


@pytest.mark.parametrize(
    ("rules", "name", "ignored"),
    [
        (b"foo\\ ", b"foo ", True),
        (b"foo\\  ", b"foo ", True),
        (b"foo\\\\ ", b"foo\\", True),
        (b" foo", b" foo", True),
        (b"foo bar", b"foo bar", True),
        (b"foo ", b"foo ", False),
        (b"a?b", b"a\nb", True),
        (b"*.c", b"new\nline.c", True),
        (b"/**", b"a\nb", True),
        (b"a", b"a\n", False),
    ],
)
def test_spaces_and_line_ends_in_names(rules: bytes, name: bytes, ignored: bool, tmp_path: Path) -> None:
    assert RuleBook(git={b"": rules}).ignored(name, False) is ignored
    make_repository(os.fsencode(tmp_path))
    write(os.fsencode(tmp_path / ".gitignore"), rules)
    assert ask_git(os.fsencode(tmp_path), b"", [name]) == {name: ignored}


def test_every_byte_is_in_the_classes_that_git_puts_it_in(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    make_repository(top)
    sheets = {}
    for number, name in enumerate(CLASSES):
        sheets[b"%d" % number] = b"[[:%s:]]" % name
        sheets[b"not-%d" % number] = b"[![:%s:]]" % name
    for folder, text in sheets.items():
        os.makedirs(os.path.join(top, folder))
        write(os.path.join(top, folder, b".gitignore"), text)
    paths = everywhere(list(sheets), [bytes((each,)) for each in range(1, 256) if each not in b"./"])
    book = RuleBook(git=sheets)
    assert {path: book.ignored(path, False) for path in paths} == ask_git(top, b"", paths)


# --- which rule is the stronger -------------------------------------------------------------------


def test_later_excludes_then_gitignore_then_deeper_gitignore_win() -> None:
    book = RuleBook(excludes=[b"a\nb\nc\nd", b"!a\n"], git={b"": b"!b\na", b"sub": b"!c\n!a"})
    assert [book.ignored(name, False) for name in (b"a", b"b", b"c", b"d")] == [True, False, True, True]
    assert [book.ignored(b"sub/" + name, False) for name in (b"a", b"b", b"c", b"d")] == [
        False,
        False,
        False,
        True,
    ]


def test_our_own_file_stands_above_every_gitignore_however_deep() -> None:
    book = RuleBook(
        git={b"": b"*.log", b"sub": b"!wanted.log\nsecret"},
        own={b"": b"!keep.log\nwanted.log\n!secret", b"sub/deep": b"keep.log"},
    )
    assert not book.ignored(b"keep.log", False)
    assert book.ignored(b"other.log", False)
    assert book.ignored(b"sub/wanted.log", False)
    assert not book.ignored(b"sub/secret", False)
    assert book.ignored(b"sub/deep/keep.log", False)


def test_our_own_rules_are_placed_in_the_folder_of_their_file() -> None:
    book = RuleBook(own={b"sub": b"/out\ngen/*.c"})
    assert book.ignored(b"sub/out", True)
    assert book.ignored(b"sub/gen/a.c", False)
    assert not book.ignored(b"out", True)
    assert not book.ignored(b"sub/x/out", True)


# --- roots, walks and memory ----------------------------------------------------------------------


def test_a_root_below_the_top_of_its_checkout_obeys_the_files_above_it() -> None:
    book = RuleBook(
        b"pkg/sub",
        [b"/pkg/sub/excluded"],
        {b"": b"pkg/*/build\n/here\n*.o", b"pkg": b"sub/tmp\n!keep.o", b"pkg/sub": b"/mine", b"else": b"*"},
    )
    for path in (b"excluded", b"build", b"a.o", b"deep/a.o", b"tmp", b"mine"):
        assert book.ignored(path, False), path
    for path in (b"here", b"keep.o", b"deep/build", b"deep/mine", b"readme"):
        assert not book.ignored(path, False), path


def test_the_root_itself_counts_as_not_ignored() -> None:
    book = RuleBook(b"pkg/sub", git={b"": b"/pkg/"})
    assert not book.ignored(b"a", False)


def test_a_walk_tells_of_rules_as_it_enters_folders() -> None:
    book = RuleBook(b"pkg", git={b"": b"*.o"})
    book.add(b"", b"/out", None)
    assert book.folder(b"").ignored(b"out", True)
    assert book.folder(b"").ignored(b"a.o", False)
    book.add(b"lib", b"!a.o", b"*.tmp")
    assert not book.folder(b"lib").ignored(b"a.o", False)
    assert book.folder(b"lib").ignored(b"a.tmp", False)
    assert not book.folder(b"lib").ignored(b"out", True)
    assert not book.folder(b"other").ignored(b"a.tmp", False)


def test_an_ignore_file_that_changes_or_goes_is_forgotten_with_all_that_came_of_it() -> None:
    book = RuleBook()
    book.add(b"", b"a", None)
    assert book.ignored(b"lib/deep/a", False)
    book.add(b"lib", b"!a", None)
    assert not book.ignored(b"lib/deep/a", False)
    assert book.ignored(b"library/a", False)
    book.add(b"lib", None, None)
    assert book.ignored(b"lib/deep/a", False)
    book.add(b"", b"b", None)
    assert not book.ignored(b"lib/deep/a", False)
    assert book.ignored(b"lib/deep/b", False)
    assert book.sources() == (b"", [], {b"": b"b"}, {}, False)


def test_a_book_made_again_from_its_sources_gives_the_same_answers() -> None:
    book = RuleBook(b"pkg", [b"*.a", b"!b.a"], {b"": b"pkg/c"}, {b"pkg": b"!c"})
    book.add(b"lib", b"*.x", b"!y.x")
    again = RuleBook(*book.sources())
    assert again.sources() == book.sources()
    for path in everywhere([b"", b"lib", b"lib/deep"], [b"a.a", b"b.a", b"c", b"a.x", b"y.x"]):
        assert again.ignored(path, False) is book.ignored(path, False), path


def test_sources_are_not_the_books_own_copies() -> None:
    book = RuleBook()
    book.sources()[2][b""] = b"*"
    book.sources()[1].append(b"*")
    assert not book.ignored(b"a", False)


def test_a_path_deeper_than_pythons_stack_is_answered() -> None:
    assert RuleBook(git={b"": b"z"}).ignored(b"a/" * 2000 + b"z", False)
    RuleBook().folder(b"/".join([b"a"] * 2000))


# --- defaults and cost ----------------------------------------------------------------------------


def test_the_defaults_leave_out_what_machines_make_and_nothing_a_person_might_have_written() -> None:
    book = RuleBook(excludes=[MACHINE_MADE])
    for folder in (b"node_modules", b".venv", b"web/node_modules", b"src/__pycache__", b".next"):
        assert book.ignored(folder, True), folder
    assert book.ignored(b"src/a.pyc", False)
    for folder in (b"target", b"build", b"dist", b"src", b"env", b"vendor"):
        assert not book.ignored(folder, True), folder
    assert not book.ignored(b"venv", False), "a file of that name is somebody's own"


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        (b"*a" * 40 + b"*b", b"a" * 250),
        (b"x/" + b"**/a*/" * 20 + b"q", b"x/" + b"a/" * 200 + b"z"),
        (b"x/" + b"**\\/a*/" * 20 + b"q", b"x/" + b"a/" * 200 + b"z"),
        (b"x/**/" + b"*a" * 20 + b"*b", b"x/" + (b"a" * 50 + b"/") * 50 + b"z"),
    ],
)
def test_a_rule_full_of_stars_does_not_make_a_scan_hang(rule: bytes, path: bytes) -> None:
    start = time.perf_counter()
    assert not RuleBook(git={b"": rule}).ignored(path, False)
    assert time.perf_counter() - start < 2


def test_sixty_thousand_names_cost_well_under_a_second() -> None:
    usual = MACHINE_MADE + b"".join(b"*.x%d\nout%d/\n/place%d\ntmp%d*\n" % (n, n, n, n) for n in range(8))
    book = RuleBook(git={b"": usual + b"!keep.x1\n"})
    asked = [b"module_%d.py" % number for number in range(60)]
    start = time.perf_counter()
    for folder in everywhere([b"", b"src"], [b"folder%d" % number for number in range(500)]):
        ignored = book.folder(folder).ignored
        for name in asked:
            assert not ignored(name, False)
    assert time.perf_counter() - start < 1


# --- core.ignorecase ------------------------------------------------------------------------------

FOLDING = b"build/\n*.LOG\nDocs/_Out\nsr?/*.O\n[A-C]x\n[D]x\n\\Ex\n[[:upper:]]1\n\xc3\x89\n"
TRIED = [b"BUILD", b"a.log", b"a.LOG", b"docs/_out", b"DOCS/_OUT", b"SRC/x.o", b"src/X.O", b"bx", b"Bx", b"dx", b"Dx"]
TRIED += [b"Ex", b"ex", b"q1", b"Q1", b"\xc3\x89", b"\xc3\xa9"]


@pytest.mark.parametrize("fold", [False, True])
def test_the_case_of_letters_counts_as_git_is_told(tmp_path: Path, fold: bool) -> None:
    top = os.fsencode(tmp_path / "top")
    make_repository(top)
    write(os.path.join(top, b".gitignore"), FOLDING)
    write(os.path.join(os.fsencode(tmp_path), b"none"), b"")
    os.makedirs(os.path.join(top, b"BUILD"))
    answers = ask_git(top, os.path.join(os.fsencode(tmp_path), b"none"), TRIED, fold)
    book = RuleBook(git={b"": FOLDING}, fold=fold)
    assert {path: book.ignored(path, path == b"BUILD") for path in answers} == answers
    assert answers[b"BUILD"] is fold and answers[b"DOCS/_OUT"] is fold and not answers[b"\xc3\xa9"]
    assert RuleBook(*book.sources()).ignored(b"BUILD", True) is fold
