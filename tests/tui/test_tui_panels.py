"""The panels and screens of the terminal tree: what is shown of a turn, of a difference, of a plan, of a conflict."""

from __future__ import annotations

import os

import pytest
from helpers import write
from textual.content import Content
from textual.pilot import Pilot
from tui_helpers import app_of, in_terminal, screen_text, terminal, until
from tui_project import EVIL, Project, asked, command, conflicting, edited, forked, press, project, rest, said

from snapstore.errors import Usage
from snapstore.tui.command_line import COMMANDS, parse
from snapstore.tui.screens.line import LineScreen
from snapstore.tui.terminal.paste import Cleaner
from snapstore.tui.widgets import patch as patchlines
from snapstore.tui.widgets.diff import DiffView
from snapstore.tui.widgets.patch import Block, PatchLines, TextLines, changes_of, language_of
from snapstore.tui.widgets.preview import Preview

__all__ = ["edited", "forked", "project"]


def preview(pilot: Pilot[None]) -> str:
    return app_of(pilot).screen_stack[0].query_one(Preview).plain


def diff(pilot: Pilot[None]) -> DiffView:
    return app_of(pilot).screen_stack[0].query_one(DiffView)


def title(pilot: Pilot[None]) -> str:
    return str(diff(pilot).border_title)


async def select(pilot: Pilot[None], oid: bytes) -> None:
    app_of(pilot).select(oid)
    await rest(pilot)


def test_a_paste_holds_no_escapes_however_it_comes_in() -> None:
    """Nor is a key lost that was typed before it or after it."""
    data = "u\x1b[A\x1b[200~one\x1b[31mu\x1b\x1b[201\x1b[201~\x1bOPk\x1b[200~\x1b[201~\x1b[200~x\x1b[201~j"
    clean = "u\x1b[A\x1b[200~one[31mu[201\x1b[201~\x1bOPk\x1b[200~\x1b[201~\x1b[200~x\x1b[201~j"
    for size in range(1, len(data) + 1):
        cleaner = Cleaner()
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert "".join(map(cleaner.clean, pieces)) == clean, size


# The preview.


@in_terminal
async def test_selecting_a_turn_shows_when_what_and_how_much(project: Project) -> None:
    """S3-20: time, prompt, files with lines added and removed, replies."""
    project.turn("Say more\nin two lines", a="three\nmore\nstill more\n", b__c="new\n", reply="It says more.\nBye.")
    async with terminal(project, 120, 40) as pilot:  # type: ignore[arg-type]
        await until(pilot, lambda: "It says more." in preview(pilot) and "+3" in preview(pilot))
        shown = preview(pilot)
        assert "Turn 4" in shown and "by claude" in shown and "(just now)" in shown and "session shell" in shown
        assert "Say more\nin two lines" in shown and "Bye." in shown
        assert "2 files changed  +3 −0" in shown and "M  a  +2" in shown and "A  b/c  +1" in shown
        await press(pilot, "j")
        await until(pilot, lambda: "Turn 3" in preview(pilot))
        assert "1 file changed" in preview(pilot)
        assert "Turn 3" in screen_text(pilot.app)


@in_terminal
async def test_a_preview_tells_what_is_undone_and_pinned(project: Project) -> None:
    project.undo()
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        await select(pilot, project.commits["three"])
        await until(pilot, lambda: "undone" in preview(pilot))
        await command(pilot, "checkpoint kept")
        await until(pilot, lambda: "◆ kept" in preview(pilot))


@in_terminal
async def test_a_selection_that_moves_on_is_not_read(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Walking past turns costs nothing: only what is stopped at is read."""
    read: list[bytes] = []
    original = Preview._look

    def counting(self: Preview, oid: bytes, *rest: object) -> object:
        read.append(oid)
        return original(self, oid, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Preview, "_look", counting)
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        read.clear()
        monkeypatch.setattr("snapstore.tui.widgets.preview.PAUSE", 3600)
        await pilot.press("j", "k", "j", "k", "j")
        assert not read
        monkeypatch.setattr("snapstore.tui.widgets.preview.PAUSE", 0.01)
        await press(pilot, "j")
        await until(pilot, lambda: "Turn 1" in preview(pilot))
        assert set(read) == {project.commits["one"]}


@in_terminal
async def test_a_long_reply_and_many_files_are_bounded(project: Project) -> None:
    files = {f"many__{number}": "x\n" for number in range(260)}
    project.turn("many", reply="\n".join(f"line {number}" for number in range(5000)), **files)
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        await until(pilot, lambda: "260 files changed" in preview(pilot))
        assert "… and 60 more" in preview(pilot) and "more lines" in preview(pilot)
        await until(pilot, lambda: "+200 −0 in the first 200" in preview(pilot))  # a sum says of what
        assert len(preview(pilot).splitlines()) < 700


@in_terminal
async def test_what_cannot_be_read_is_told_and_read_when_it_can_be(project: Project) -> None:
    """What is shown is never another turn's, however often it is painted again."""
    async with terminal(project, 120, 40) as pilot:  # type: ignore[arg-type]
        await press(pilot, "d")
        folder = project.store.folder
        os.rename(folder, f"{folder}-away")
        await press(pilot, "j")
        await until(pilot, lambda: "no store" in preview(pilot).lower() and "no store" in diff(pilot).plain.lower())
        app_of(pilot).screen_stack[0].query_one(Preview)._repaint()
        assert "Turn" not in preview(pilot)
        await until(pilot, lambda: "The tree shown may be out of date" in said(pilot))
        os.rename(f"{folder}-away", folder)
        await until(pilot, lambda: "Turn 2" in preview(pilot) and "+two" in diff(pilot).plain)


@in_terminal
async def test_hostile_words_in_a_preview_are_visible_and_harmless(project: Project) -> None:
    project.turn(EVIL + "\n" + EVIL, reply=EVIL, a="x\n")
    async with terminal(project) as pilot:  # type: ignore[arg-type]
        await until(pilot, lambda: "markup" in preview(pilot))
        assert "[bold]markup[/]" in preview(pilot) and "␛[31m" in preview(pilot)
        assert not set(preview(pilot)) & {"\x1b", "\u202e", "\x07"}


# The diff.


@in_terminal
async def test_d_compares_with_where_you_are_the_turn_before_and_a_marked_one(project: Project) -> None:
    """S3-22; S1-40: any two nodes, so the ends of two branches as well."""
    async with terminal(project, 120, 40) as pilot:  # type: ignore[arg-type]
        await select(pilot, project.commits["one"])
        assert not diff(pilot).display
        await press(pilot, "d")
        await until(pilot, lambda: "+one" in diff(pilot).plain)
        assert "turn 3 (where you are) → turn 1" in title(pilot) and "-three" in diff(pilot).plain
        await press(pilot, "d")
        await until(pilot, lambda: "-zero" in diff(pilot).plain)
        assert "(before it) → turn 1" in title(pilot)
        await press(pilot, "d")
        assert not diff(pilot).display
        await press(pilot, "m")
        assert "Marked turn 1" in said(pilot)
        await select(pilot, project.commits["two"])
        await press(pilot, "d", "d", "d")
        await until(pilot, lambda: "-one" in diff(pilot).plain and "+two" in diff(pilot).plain)
        assert "turn 1 (marked) → turn 2" in title(pilot) and "1 file +1 −1" in title(pilot)
        await select(pilot, project.commits["three"])
        await until(pilot, lambda: "+three" in diff(pilot).plain)  # it follows the selection
        await select(pilot, project.commits["one"])
        await press(pilot, "m")
        assert said(pilot) == "Unmarked."


@in_terminal
async def test_the_first_node_and_equal_ones_have_nothing_to_show(project: Project) -> None:
    async with terminal(project, 120, 40) as pilot:  # type: ignore[arg-type]
        await press(pilot, "d")
        await until(pilot, lambda: "No differences." in diff(pilot).plain)
        await press(pilot, "G", "d")
        await until(pilot, lambda: "Nothing comes before this one" in diff(pilot).plain)


@in_terminal
async def test_a_diff_follows_a_move(project: Project) -> None:
    async with terminal(project, 120, 40) as pilot:  # type: ignore[arg-type]
        await select(pilot, project.commits["one"])
        await press(pilot, "d")
        await until(pilot, lambda: "-three" in diff(pilot).plain)
        await press(pilot, "u")
        await select(pilot, project.commits["one"])
        await until(pilot, lambda: "-two" in diff(pilot).plain)


@in_terminal
async def test_code_is_coloured_and_both_signs_are_told_without_colour(project: Project) -> None:
    project.turn("code", code_dot_py='def double(n):\n    """Twice."""\n    return n * 2\n')
    project.turn("more", code_dot_py='def double(n):\n    """Twice."""\n    return n + n\n')
    async with terminal(project, 120, 40) as pilot:  # type: ignore[arg-type]
        await press(pilot, "d", "d")
        await until(pilot, lambda: "-    return n * 2" in diff(pilot).plain)
        view = diff(pilot)
        lines = [view.line(at) for at in range(view.count)]
        new = next(line for line in lines if line.plain == "+    return n + n")
        assert len({str(span.style) for span in new.spans}) > 2, new.spans  # words of the language, and the tint
        before = screen_text(pilot.app)
        await press(pilot, "T")  # light
        assert "+    return n + n" in screen_text(pilot.app) and before


@in_terminal
async def test_no_colour_at_all_shows_the_same(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with terminal(project, 120, 40) as pilot:  # type: ignore[arg-type]
        await press(pilot, "d", "d")
        await until(pilot, lambda: "-two" in screen_text(pilot.app) and "+three" in screen_text(pilot.app))


@in_terminal
async def test_binary_large_and_odd_files_are_told_in_a_line(project: Project) -> None:
    write(project.root / "link", "x\n")
    project.turn("before")
    (project.root / "link").unlink()
    with project.store.session("shell").turn("odd"):
        write(project.root / "binary", b"\0\1\2" * 1000)
        write(project.root / "large", b"line\n" * 1_200_000)
        write(project.root / "empty", "")
        write(project.root / "long", "x" * 100_000 + "\n")
        write(project.root / os.fsdecode(b"\xff[red]\x1b"), "named badly\n")
        os.symlink("a", project.root / "link")
        os.chmod(project.root / "a", 0o755)
    async with terminal(project, 120, 40) as pilot:  # type: ignore[arg-type]
        await until(pilot, lambda: "large  too large to compare" in screen_text(pilot.app))
        assert "binary  binary" in screen_text(pilot.app)
        await press(pilot, "d", "d")
        await until(pilot, lambda: "named badly" in diff(pilot).plain)
        shown = diff(pilot).plain
        assert shown.count("binary, or too large to compare") == 2
        assert "old mode 100644" in shown and "+a" in shown and "new empty" in shown
        assert "\x1b" not in shown and max(len(line) for line in shown.splitlines()) < 1100


@in_terminal
async def test_a_large_diff_is_bounded_and_only_what_is_seen_is_coloured(project: Project) -> None:
    """S3-32: twenty thousand lines cost what a screenful costs."""
    code = "".join(f"value_{number} = {number}\n" for number in range(12_000))
    project.turn("large", **{f"large{number}_dot_py": code for number in range(7)})
    async with terminal(project, 120, 40) as pilot:  # type: ignore[arg-type]
        await press(pilot, "d", "d")
        await until(pilot, lambda: len(diff(pilot)._patch) > 1000)
        patch = diff(pilot)._patch
        assert patch.files == 7 and len(patch) < patchlines.MOST_LINES + patchlines.MOST_OF_A_FILE + 10
        assert title(pilot).endswith("7 files +60,000 −0 in the first 5")
        blocks = {id(block): block for block, _ in (line for line in patch._lines if isinstance(line, tuple))}
        coloured = [block for block in blocks.values() if block._coloured is not None]
        assert len(coloured) <= 4 < len(blocks)
        diff(pilot).focus()
        await press(pilot, "right_square_bracket")
        assert diff(pilot).scroll_offset.y == patch.headers[1]
        await press(pilot, "left_square_bracket")
        assert diff(pilot).scroll_offset.y == 0
        assert "more lines of this file" in diff(pilot)._patch.line(patch.headers[1] - 2).plain
        await press(pilot, "end")
        assert "snapstore diff" in screen_text(pilot.app)


def test_a_block_keeps_every_line_whatever_the_lexer_makes_of_it() -> None:
    for language in ("python", "json", "markdown", "html", "yaml", ""):
        block = Block(language)
        texts = ["", '"""open', "\t tab", "a\u2028b\x0cc", "{{{", "", "end", ""]
        for sign, text in zip(" -+-+ - ", texts, strict=True):
            block.add(sign, text)
        for at, text in enumerate(block.texts):
            assert block.line(at).plain == block.signs[at] + text, (language, at)


def test_languages_by_name_alone() -> None:
    assert language_of(b"src/a.py") == "python" and language_of(b"a/b.rs") == "rust"
    assert language_of(b"plain") == "" and language_of(b"\xff\xfe.weird") == "" and language_of(b"notes.txt") == ""


def test_changes_of_two_texts() -> None:
    found = changes_of("a\nb\n", "a\nc\n", "")
    assert [found.line(at).plain for at in range(len(found))] == ["@@ -1,2 +1,2 @@", " a", "-b", "+c"]
    assert [changes_of("a\n", "a\n", "").line(0).plain] == ["nothing changed"]
    text = TextLines("<<<<<<< mine\na\n=======\nb\n>>>>>>> theirs\n", "python")
    assert len(text) == 5 and text.line(0).plain.strip() == "<<<<<<< mine"
    assert len(PatchLines()) == 0 and len(TextLines("", "")) == 0


# Screens.


@in_terminal
async def test_a_plan_of_many_files_scrolls(project: Project) -> None:
    project.turn("many", **{f"f{number:03}": "x\n" for number in range(150)})
    async with terminal(project, 80, 24) as pilot:  # type: ignore[arg-type]
        await press(pilot, "u")
        shown = await asked(pilot)
        assert "remove     f000" in shown and "f149" not in shown and "Go (Enter)" in shown
        await press(pilot, "end")
        await until(pilot, lambda: "f149" in screen_text(pilot.app))
        assert "Messages removed" in screen_text(pilot.app)
        await press(pilot, "q")


@pytest.mark.parametrize(("columns", "lines"), [(20, 5), (30, 8), (80, 14), (80, 24), (40, 30)])
def test_what_a_plan_removes_and_how_to_answer_is_seen_in_any_terminal(
    project: Project, columns: int, lines: int
) -> None:
    """C13: a plan that cannot be read is none."""
    project.turn("new files", **{f"new{number:02}": "new\n" for number in range(20)})

    @in_terminal
    async def story() -> None:
        async with terminal(project, columns, lines) as pilot:  # type: ignore[arg-type]
            await press(pilot, "u")
            shown = await asked(pilot)
            assert "Undo 1 turn" in shown and "remove     new00" in shown and "Go (Enter)" in shown
            await press(pilot, "end")
            assert "Messages removed" in screen_text(pilot.app)
            project.turn("meanwhile", a="meanwhile\n")
            await until(pilot, lambda: "The session has" in screen_text(pilot.app))
            assert "Go (Enter)" in screen_text(pilot.app)
            await press(pilot, "escape")

    story()


@pytest.mark.parametrize(("columns", "lines"), [(20, 5), (80, 14)])
def test_lists_show_the_picked_row_and_their_words_in_any_terminal(forked: Project, columns: int, lines: int) -> None:
    for number in range(12):
        forked.undo()
        forked.turn(f"try {number}", a=f"try {number}\n")
    session = forked.store.session("shell")
    session.move(session.plan_switch("main"))  # an old end: far down in the lists

    @in_terminal
    async def story() -> None:
        async with terminal(forked, columns, lines) as pilot:  # type: ignore[arg-type]
            await command(pilot, "undolist")
            assert "▸" in screen_text(pilot.app) and "Enter" in screen_text(pilot.app)
            await press(pilot, "escape", "b", "a")
            await until(pilot, lambda: "you are on" in screen_text(pilot.app))
            assert "▸" in screen_text(pilot.app)
            await press(pilot, "escape")

    story()


@pytest.mark.parametrize(("columns", "lines"), [(20, 8), (40, 12), (60, 24), (200, 60)])
def test_every_screen_fits_any_terminal(edited: Project, columns: int, lines: int) -> None:
    """The narrowest too: nothing breaks, and Esc leads out."""

    @in_terminal
    async def story() -> None:
        async with terminal(edited, columns, lines) as pilot:  # type: ignore[arg-type]
            await press(pilot, "d", "u")
            await conflicting(pilot)
            await press(pilot, "tab", "j", "tab", "J", "K", "escape")
            await press(pilot, "b", "escape")
            await command(pilot, "undolist")
            await press(pilot, "escape")
            for row in screen_text(pilot.app).splitlines():
                assert Content(row).cell_length <= columns
            assert len(pilot.app.screen_stack) == 1

    story()


@in_terminal
async def test_plain_characters_only(edited: Project) -> None:
    """Panels, plans and lists like the tree; what people wrote is theirs, unless the terminal does not have it."""
    edited.turn("世界 é", new="new\n")
    for encoding, told in ((None, "世界 é"), ("latin-1", "???? é")):
        async with terminal(edited, 110, 30, ascii=True, encoding=encoding) as pilot:  # type: ignore[arg-type]
            shown = [screen_text(pilot.app)]
            assert told in shown[0]
            await press(pilot, "d", "question_mark")
            shown.append(screen_text(pilot.app))
            await press(pilot, "escape", "u")
            shown.append(await asked(pilot))
            await press(pilot, "escape", "b")
            shown.append(screen_text(pilot.app))
            await press(pilot, "escape")
            assert all(text.replace("世界", "").replace("é", "").isascii() for text in shown), ascii(shown)


@in_terminal
async def test_the_three_sides_of_a_conflict(edited: Project) -> None:
    """G-38: what is mine, what is theirs, and the two in one; a deleted side is told."""
    edited.turn("new file", made="turn\n")
    write(edited.root / "made", "mine\n")
    async with terminal(edited, 130, 44) as pilot:  # type: ignore[arg-type]
        await command(pilot, "undo 2")
        shown = await conflicting(pilot)
        assert "<<<<<<< mine" in shown and ">>>>>>> theirs" in shown and "+old" in shown
        await press(pilot, "j")
        await until(pilot, lambda: "deleted on one side" in screen_text(pilot.app))
        await press(pilot, "m")
        assert "cannot be resolved that way: deleted on one side" in screen_text(pilot.app)
        await pilot.click("#files", offset=(3, 0))
        await until(pilot, lambda: "<<<<<<< mine" in screen_text(pilot.app))
        await press(pilot, "escape")


@in_terminal
async def test_a_folder_in_the_way_cannot_be_taken_over(project: Project) -> None:
    """What cannot be saved first is never replaced."""
    (project.root / "a").unlink()
    (project.root / "a").mkdir()
    write(project.root / "a" / "mine", "mine\n")
    async with terminal(project, 120, 40) as pilot:  # type: ignore[arg-type]
        await press(pilot, "u")
        await conflicting(pilot)
        await press(pilot, "t")
        assert "cannot be saved first" in screen_text(pilot.app)
        await press(pilot, "o", "enter")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await rest(pilot)
        assert (project.root / "a" / "mine").read_text() == "mine\n"


@in_terminal
async def test_a_name_to_type_can_hold_anything(forked: Project) -> None:
    async with terminal(forked) as pilot:  # type: ignore[arg-type]
        await press(pilot, "b", "j", "r")
        screen = pilot.app.screen
        assert isinstance(screen, LineScreen)
        screen.query_one("Input").value = "../evil\x1b[31m"  # type: ignore[attr-defined]
        await press(pilot, "enter")
        await until(pilot, lambda: "cannot be" in screen_text(pilot.app) or "name" in screen_text(pilot.app))
        assert "\x1b" not in screen_text(pilot.app)
        await press(pilot, "escape")


# What is typed after the colon.


@pytest.mark.parametrize(
    ("text", "name", "operand"),
    [
        ("undo", "undo", 1),
        (" :undo  3 ", "undo", 3),
        ("redo all", "redo", None),
        ("ea 5m", "earlier", {"seconds": 300}),
        ("later 2", "later", {"count": 2}),
        ("q", "quit", None),
        ("q!", "quit", None),
        ("goto #12", "goto", "#12"),
        ("goto main:5", "goto", "main:5"),
        ("rev", "revert", None),
        ("undol", "undolist", None),
        ("ch x", "checkpoint", "x"),
    ],
)
def test_commands_are_understood(text: str, name: str, operand: object) -> None:
    found = parse(text)
    assert found is not None and (found.name, found.operand) == (name, operand)


def test_nothing_typed_is_no_command_and_too_much_is_refused() -> None:
    assert parse("") is None and parse(" : ") is None
    for text in ("x" * 2000, "undo " + "9" * 30, "earlier ²", "undo ٣", "goto " + "a" * 1001, "\x1b[A"):
        with pytest.raises(Usage):
            parse(text)
    for name in COMMANDS:
        try:
            assert parse(name) is not None
        except Usage as error:
            assert "is missing" in error.message
