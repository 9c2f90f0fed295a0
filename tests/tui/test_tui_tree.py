"""The terminal tree as a person walks through it: rows, branches, folds, search, sizes, colours, and what others do."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import PROGRAM, snap
from garden import plant
from helpers import all_refs, living_child, on_disk
from terminal_text import COLOUR, HARMFUL, HOSTILE
from test_cli_tree import WIDE, nest
from textual.pilot import Pilot
from textual.theme import Theme
from textual.widgets import Input
from tui_helpers import (
    Garden,
    app_of,
    assert_picture,
    forked,
    in_terminal,
    lines_of,
    screen_text,
    selected_line,
    settled,
    terminal,
    until,
)

from snapstore.base.text import cells
from snapstore.surface.tree_rows import Painter
from snapstore.tui.screens.help import KEYS
from snapstore.tui.snapshot import Snapshot
from snapstore.tui.terminal.themes import DARK, LIGHT
from snapstore.tui.widgets.bars import StatusBar


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def garden(root: Path) -> Iterator[Garden]:
    grown = Garden(root)
    yield grown
    grown.close()


def at(pilot: Pilot[None], garden: Garden) -> str:
    """The name of the selected node; of a folded run nothing."""
    found = app_of(pilot).tree_view.selected
    return garden.name(found) if found is not None else ""


async def press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await settled(pilot)


async def search(pilot: Pilot[None], text: str) -> None:
    """`/`, the text all at once as if it was pasted, and Enter."""
    await pilot.press("slash")
    pilot.app.screen.query_one(Input).value = text
    await press(pilot, "enter")


def said(pilot: Pilot[None]) -> str:
    return pilot.app.screen_stack[0].query_one(StatusBar).said


# The drawing


@in_terminal
async def test_the_tree_and_what_is_selected_side_by_side(garden: Garden) -> None:
    """S3-19, S3-20: nodes and branches, the current one `>n<`, what redo enters `{n}`, forks counted, a preview."""
    forked(garden)
    garden.checkpoint("good", "3b")
    garden.stand("2")
    async with terminal(garden, 120, 24) as pilot:
        assert_picture(pilot.app, "wide")
        assert at(pilot, garden) == "2"


@in_terminal
async def test_the_rows_are_those_of_snapstore_tree(garden: Garden) -> None:
    """One drawing: what is printed for a pipe is what is shown here, but for the marks."""
    forked(garden)
    garden.turns(*(f"do {number}" for number in range(12)))
    garden.checkpoint("good", "3b")
    garden.stand("do 5")
    async with terminal(garden, 200, 50) as pilot:
        shown = [re.split(r"  +(?=\S+ ago|just now|$)", line)[0].rstrip() for line in lines_of(pilot.app, "#tree")]
    shown = [re.sub(r"Turn [>{\[](\d+)[<}\]]", r"Turn \1", line) for line in shown if line]
    printed = re.sub(
        r"  \([^()]*(?: ago|just now|\d{4}-\d\d-\d\d)\)$", "", snap(garden.root, "tree").stdout, flags=re.M
    )
    assert shown == [line for line in printed.splitlines() if not line.startswith("`")]


@in_terminal
async def test_the_newest_is_marked_where_it_is_not_the_current(garden: Garden) -> None:
    """S3-13, S3-15: what `g+` and Ctrl-R lead to can be seen before."""
    garden.turns("1", "2", "3", "4")
    garden.stand("2")
    async with terminal(garden) as pilot:
        rows = [line.strip() for line in lines_of(pilot.app, "#tree") if line.strip()]
        labels = [re.sub(r"  .*", "", row[3:]) for row in rows]
        assert labels == ["Turn [4]", "Turn {3}", "Turn >2<", "Turn 1", "baseline"]


@in_terminal
async def test_undone_turns_are_dim_and_the_current_one_stands_out(garden: Garden) -> None:
    garden.turns("1", "2", "3")
    garden.stand("2")
    async with terminal(garden) as pilot:
        view = app_of(pilot).tree_view
        styles = {
            segment.text.strip(): segment.style for y in range(3) for segment in view.render_line(y) if segment.style
        }
        quiet = view.get_component_rich_style("tree--quiet").color
        undone = next(style for text, style in styles.items() if "undone" in text)
        here = next(style for text, style in styles.items() if ">2<" in text)
        assert (undone.color, here.bold) == (quiet, True)
        assert here.color != quiet


@in_terminal
async def test_before_the_first_turn(garden: Garden) -> None:
    async with terminal(garden, 80, 20) as pilot:
        assert ">baseline<" in screen_text(pilot.app)
        await press(pilot, "j", "k", "h", "l", "a", "e", "z", "Z", "n", "full_stop", "g", "g", "G")
        assert at(pilot, garden) == "root"


# Sizes


@in_terminal
async def test_narrow_is_stacked(garden: Garden) -> None:
    forked(garden)
    async with terminal(garden, 60, 26) as pilot:
        assert_picture(pilot.app, "narrow")
        await pilot.resize_terminal(120, 24)
        await settled(pilot)
        side, tree = pilot.app.query_one("#side").region, app_of(pilot).tree_view.region
        assert (side.y, side.x) == (tree.y, tree.right)
        await pilot.resize_terminal(60, 26)
        await settled(pilot)
        assert_picture(pilot.app, "narrow")


@in_terminal
async def test_twenty_columns(garden: Garden) -> None:
    forked(garden)
    garden.checkpoint("a-checkpoint-with-a-long-name", "3b")
    async with terminal(garden, 20, 20) as pilot:
        assert_picture(pilot.app, "twenty-columns")
        await press(pilot, "j", "l", "d", "question_mark", "escape", "slash", "3", "enter", "t", "b")


@pytest.mark.parametrize(("columns", "lines"), [(1, 1), (2, 3), (7, 2), (20, 4), (12, 40), (300, 5)])
@in_terminal
async def test_no_terminal_is_too_small(garden: Garden, columns: int, lines: int) -> None:
    forked(garden)
    async with terminal(garden, columns, lines) as pilot:
        await press(pilot, "j", "k", "z", "d", "question_mark", "escape", "slash", "b", "enter", "n")
        assert all(cells(line) <= columns for line in screen_text(pilot.app).splitlines())


@in_terminal
async def test_wide_combining_and_deep_fit_every_width(garden: Garden) -> None:
    garden.turns("1", f"{WIDE} 🎉🎉 {WIDE}", "e\u0301" * 100, "\u200d\u0301 👩‍👩‍👧‍👦 family " * 20)
    garden.turns("✔️ ❤️ 1️⃣ 👍🏽 क्षि " * 20)
    garden.checkpoint("长" * 30, "1")
    nest(garden, 12)
    for columns in (130, 100, 60, 33, 20):
        async with terminal(garden, columns, 40) as pilot:
            tree = app_of(pilot).tree_view
            for y in range(tree.size.height):
                drawn = tree.render_line(y)
                assert drawn.cell_length == tree.size.width, screen_text(pilot.app)
                assert columns < 100 or "❤️" not in drawn.text or re.search(r"ago|now", drawn.text), drawn.text


# Keys that look


@in_terminal
async def test_j_and_k_go_through_the_rows_as_they_are_drawn(garden: Garden) -> None:
    """S3-19. Where branches join is no row to stand on, and the ends are ends."""
    forked(garden)
    before, files = all_refs(garden.store), on_disk(garden.root)
    async with terminal(garden) as pilot:
        seen = [at(pilot, garden)]
        for _ in range(10):
            await press(pilot, "j")
            seen.append(at(pilot, garden))
        assert seen == ["3d", "5c", "4c", "4b", "3b", "4", "3", "2", "1", "root", "root"]
        for name in ("1", "2", "3"):
            await press(pilot, "k")
            assert at(pilot, garden) == name
        await press(pilot, "up", "down", "down")
        assert at(pilot, garden) == "2"
        await press(pilot, "4", "k")
        assert at(pilot, garden) == "4b"
        await press(pilot, "1", "0", "j")
        assert at(pilot, garden) == "root"
        await press(pilot, "g", "g")
        assert at(pilot, garden) == "3d"
        await press(pilot, "G")
        assert at(pilot, garden) == "root"
        await press(pilot, "full_stop")
        assert at(pilot, garden) == "3d"
    assert (all_refs(garden.store), on_disk(garden.root)) == (before, files)  # looking never moves


@in_terminal
async def test_h_and_l_go_from_branch_to_branch(garden: Garden) -> None:
    """As far from where they part; a shorter branch at its end."""
    forked(garden)
    async with terminal(garden) as pilot:
        await press(pilot, "l")
        assert at(pilot, garden) == "3b"
        await press(pilot, "l")
        assert at(pilot, garden) == "3"
        await press(pilot, "l")
        assert (at(pilot, garden), said(pilot)) == ("3", "No branch to the right of this one.")
        await press(pilot, "k", "h")
        assert at(pilot, garden) == "4c"
        await press(pilot, "k", "l")
        assert at(pilot, garden) == "4b"  # the branch beside 5c, which ends earlier
        await press(pilot, "h", "h")
        assert (at(pilot, garden), said(pilot)) == ("4c", "No branch to the left of this one.")
        app_of(pilot).select(garden.made["2"])
        await press(pilot, "l")
        assert at(pilot, garden) == "3b"  # from the place where they part, into the first beside


@in_terminal
async def test_a_and_e_are_the_branch_point_and_the_end(garden: Garden) -> None:
    """S1-41: a key leads to where a branch parts."""
    forked(garden)
    async with terminal(garden) as pilot:
        app_of(pilot).select(garden.made["4c"])
        await press(pilot, "e")
        assert at(pilot, garden) == "5c"
        for name in ("3b", "2", "root", "root"):
            await press(pilot, "a")
            assert at(pilot, garden) == name
        await press(pilot, "e")
        assert at(pilot, garden) == "3d"


@in_terminal
async def test_t_shows_times_and_ages(garden: Garden) -> None:
    garden.turns("1", "2")
    async with terminal(garden) as pilot:
        assert "1m ago" in screen_text(pilot.app)
        await press(pilot, "t")
        assert "11-14 22:14" in lines_of(pilot.app, "#tree")[1]
        await press(pilot, "t")
        assert "1m ago" in screen_text(pilot.app)


@in_terminal
async def test_the_help_has_every_key(garden: Garden) -> None:
    names = {"slash": "/", "question_mark": "?", "colon": ":", "full_stop": ".", "ctrl+r": "Ctrl-R", "enter": "Enter"}
    names |= {"escape": "Esc", "up": "↑", "down": "↓", "left": "←", "right": "→", "minus": "g-", "plus": "g+"}
    names["ctrl+z"] = "Ctrl-Z"
    # Ways that terminals have beside Vim's, and keys that Textual binds for itself.
    besides = {"home", "end", "pageup", "pagedown", "ctrl+d", "ctrl+f", "ctrl+b", "ctrl+c", "ctrl+q"}
    told = " ".join(f"{keys} {what}" for _, rows in KEYS for keys, what in rows).split()
    async with terminal(garden, 90, 60) as pilot:
        bound = {key for key, _ in pilot.app._bindings} - besides
        missing = {key for key in bound if names.get(key, key) not in told and key != "g"}
        assert not missing
        await press(pilot, "question_mark")
        assert_picture(pilot.app, "help")
        await press(pilot, "j", "k", "q")
        assert len(pilot.app.screen_stack) == 1


@in_terminal
async def test_q_leaves(garden: Garden) -> None:
    for key in ("q", "ctrl+c"):
        async with terminal(garden) as pilot:
            await pilot.press(key)
            await until(pilot, lambda app=pilot.app: app._exit)


# Folds


@in_terminal
async def test_a_folded_run_opens_and_closes(garden: Garden) -> None:
    garden.turns(*(f"do {number}" for number in range(1, 13)))
    async with terminal(garden, 60, 26) as pilot:
        await press(pilot, "4", "j")
        assert_picture(pilot.app, "folded")
        assert app_of(pilot).selected is None
        await press(pilot, "z")
        assert at(pilot, garden) == "do 8"
        assert_picture(pilot.app, "unfolded")
        await press(pilot, "j", "j", "z")
        assert "┆  … 7 turns (2–8)" in selected_line(pilot.app)
        await press(pilot, "enter")
        assert at(pilot, garden) == "do 8"
        await press(pilot, "k", "z")
        assert (at(pilot, garden), said(pilot)) == ("do 9", "Nothing is folded here.")


@in_terminal
async def test_all_runs_at_once(garden: Garden) -> None:
    garden.turns(*(f"do {number}" for number in range(1, 13)))
    garden.stand("do 1")
    garden.turns(*(f"redo {number}" for number in range(1, 13)))
    async with terminal(garden) as pilot:
        assert screen_text(pilot.app).count("┆") == 2
        await press(pilot, "Z")
        assert screen_text(pilot.app).count("┆") == 0
        await press(pilot, "6", "j", "Z")
        assert screen_text(pilot.app).count("┆") == 2
        assert "┆" in selected_line(pilot.app)


@in_terminal
async def test_archived_branches_on_demand(garden: Garden) -> None:
    forked(garden)
    garden.archive("main-3")
    async with terminal(garden, 150) as pilot:
        assert "5c" not in screen_text(pilot.app)
        await press(pilot, "A")
        assert "(main-3, archived)  5c" in screen_text(pilot.app)
        assert said(pilot) == "1 archived branch shown."
        await press(pilot, "A")
        assert "5c" not in screen_text(pilot.app)


# Search


@in_terminal
async def test_search_goes_to_what_was_asked(garden: Garden) -> None:
    """While it is typed, then from one to the next, round the ends; another case does not matter."""
    garden.turns("Fix the login", "Add tests", "Translate the LOGIN page", "Release")
    async with terminal(garden) as pilot:
        await press(pilot, "slash", *"lo")
        assert at(pilot, garden) == "Translate the LOGIN page"
        await press(pilot, *"gin", "enter")
        assert (at(pilot, garden), said(pilot)) == ("Translate the LOGIN page", "/login: 1 of 2")
        assert_picture(pilot.app, "found")
        await press(pilot, "n")
        assert (at(pilot, garden), said(pilot)) == ("Fix the login", "/login: 2 of 2")
        await press(pilot, "n")
        assert said(pilot) == "/login: 1 of 2, wrapped around"
        await press(pilot, "N")
        assert (at(pilot, garden), said(pilot)) == ("Fix the login", "/login: 2 of 2, wrapped around")
        await press(pilot, "escape", "n")
        assert said(pilot) == "Type / and a text first."


@in_terminal
async def test_search_finds_paths_later_lines_of_prompts_and_names(garden: Garden) -> None:
    session = garden.store.session(garden.session)
    with session.turn("One\n\nand a needle further down") as turn:
        (garden.root / "src").mkdir()
        (garden.root / "src" / "tokenizer.py").write_text("1")
    assert turn.commit is not None
    garden.made["one"] = turn.commit
    garden.turns("2", "3")
    garden.checkpoint("good-one", "2")
    async with terminal(garden) as pilot:
        for text, name in (("tokenizer.p", "one"), ("needle", "one"), ("good-o", "2"), ("main", "3")):
            await press(pilot, "full_stop")
            await search(pilot, text)
            assert (at(pilot, garden), said(pilot)) == (name, f"/{text}: 1 of 1")
        await search(pilot, "nowhere")
        assert (at(pilot, garden), said(pilot)) == ("3", "/nowhere: not found.")


@in_terminal
async def test_a_search_that_is_given_up_leads_back(garden: Garden) -> None:
    garden.turns("one", "two", "three")
    async with terminal(garden) as pilot:
        await press(pilot, "j", "slash", *"one")
        assert at(pilot, garden) == "one"
        await press(pilot, "escape")
        assert at(pilot, garden) == "two"


@in_terminal
async def test_search_unfolds_what_it_finds(garden: Garden) -> None:
    garden.turns(*(f"do {number}." for number in range(1, 13)))
    async with terminal(garden) as pilot:
        await search(pilot, "do 5")
        assert at(pilot, garden) == "do 5."


# The mouse


@in_terminal
async def test_a_click_selects_opens_runs_and_moves_nothing(garden: Garden) -> None:
    garden.turns(*(f"do {number}" for number in range(1, 13)))
    before = all_refs(garden.store)
    async with terminal(garden) as pilot:
        await pilot.click("#tree", offset=(10, 2))
        await settled(pilot)
        assert at(pilot, garden) == "do 10"
        await pilot.click("#tree", offset=(10, 4))
        await settled(pilot)
        assert at(pilot, garden) == "do 8"
        await pilot.double_click("#tree", offset=(10, 6))
        await settled(pilot)
    assert all_refs(garden.store) == before


@in_terminal
async def test_the_wheel_scrolls(garden: Garden) -> None:
    plant(garden.store, 200, 20)
    async with terminal(garden, 100, 20) as pilot:
        top = lines_of(pilot.app, "#tree")[0]
        tree = app_of(pilot).tree_view
        tree._on_mouse_scroll_down(_wheel(tree))
        await settled(pilot)
        assert tree.scroll_offset.y > 0 and lines_of(pilot.app, "#tree")[0] != top


def _wheel(widget: object) -> object:
    from textual.events import MouseScrollDown

    return MouseScrollDown(widget, 5, 5, 0, 1, 0, False, False, False)  # type: ignore[arg-type]


# Colours


@in_terminal
async def test_light_and_dark(garden: Garden) -> None:
    forked(garden)
    async with terminal(garden, look="light") as pilot:
        assert pilot.app.theme == LIGHT.name
        light = app_of(pilot).tree_view.rich_style.bgcolor
        await press(pilot, "T")
        assert pilot.app.theme == DARK.name
        assert app_of(pilot).tree_view.rich_style.bgcolor != light


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_every_colour_can_be_read(theme: Theme) -> None:
    """WCAG's 4.5 for text, on the background and on the selected row; 3 for lanes, which are not text."""
    colours = theme.variables
    assert theme.background is not None and theme.panel is not None
    for ground in (theme.background, theme.panel, colours["selection"]):
        for name in ("here", "branch", "checkpoint", "quiet", "found"):
            assert contrast(ground, colours[name]) >= 4.5, (name, ground)
    assert contrast(theme.background, colours["lane"]) >= 3
    for name in ("foreground", "error", "success", "warning", "primary", "accent"):
        assert contrast(theme.background, getattr(theme, name)) >= 4.5, name


def contrast(a: str, b: str) -> float:
    """Of two colours, as the WCAG reckon it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


@in_terminal
async def test_without_colour_there_is_none_and_the_selected_row_is_still_to_be_seen(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    forked(garden)
    async with terminal(garden) as pilot:
        await press(pilot, "d", "j")
        segments = [segment for strip in pilot.app.screen._compositor.render_strips() for segment in strip]
        styles = [segment.style for segment in segments if segment.style]
        colours = [colour for style in styles for colour in (style.color, style.bgcolor) if colour is not None]
        assert colours and all(colour.is_default for colour in colours)
        selected = [segment.text for segment in segments if segment.style and segment.style.reverse]
        assert "Turn 5" in "".join(selected)
        await press(pilot, "T", "question_mark")
        assert said(pilot) == "There are no themes without colour."


@in_terminal
async def test_plain_characters_on_demand(garden: Garden) -> None:
    forked(garden)
    async with terminal(garden, ascii=True) as pilot:
        rows = lines_of(pilot.app, "#tree")
        assert all(row.isascii() for row in rows)
        assert rows[0].lstrip("> ").startswith("@  Turn >3<")


# Bad text


@in_terminal
async def test_hostile_text_is_shown_and_does_not_act(garden: Garden) -> None:
    """G-36: control characters, escapes, direction marks; and nothing is taken for markup."""
    garden.turns(HOSTILE, "[bold]not[/bold] [@click=app.quit]markup[/] [red", "$primary {x} %s")
    garden.ref("refs/heads/s1/a\u202eb\u2066c", HOSTILE)
    garden.ref("refs/tags/s1/red\u2066c", HOSTILE)
    async with terminal(garden, 140, 30) as pilot:
        for _ in range(4):
            seen = screen_text(pilot.app)
            assert not HARMFUL.search(seen.replace("\n", ""))
            await press(pilot, "j")
        assert "[bold]not[/bold] [@click=app.quit]markup[/] [red" in seen
        await search(pilot, "[bo")
        assert said(pilot) == "/[bo: 1 of 1"
        assert "/[bo: 1 of 1" in screen_text(pilot.app)


# What others do meanwhile


TURN = """
import sys
from snapstore import Store
root, session, prompt = sys.argv[1:]
with Store.open(root) as store, store.session(session).turn(prompt):
    open(f"{root}/file", "w").write(prompt)
"""


def elsewhere(garden: Garden, prompt: str) -> None:
    """A turn recorded by another process."""
    subprocess.run([sys.executable, "-c", TURN, str(garden.root), garden.session, prompt], check=True)
    garden.made[prompt] = garden.cursor()


@in_terminal
async def test_turns_that_others_record_appear(garden: Garden) -> None:
    """S3-30: nothing is locked while a person looks. Who looks at the current turn goes along with it."""
    garden.turns("1", "2")
    async with terminal(garden) as pilot:
        elsewhere(garden, "theirs")
        await until(pilot, lambda: "theirs" in screen_text(pilot.app))
        assert at(pilot, garden) == "theirs"
        await press(pilot, "j", "j")
        place = app_of(pilot).tree_view._at - app_of(pilot).tree_view.scroll_offset.y
        elsewhere(garden, "another")
        await until(pilot, lambda: "another" in screen_text(pilot.app))
        assert at(pilot, garden) == "1"
        assert place == 2
        garden.checkpoint("good", "1")
        await until(pilot, lambda: "[good]" in screen_text(pilot.app))
        garden.stand("1")
        await until(pilot, lambda: "Turn >1<" in screen_text(pilot.app))


@in_terminal
async def test_a_turn_that_is_open_is_marked_where_it_began(garden: Garden) -> None:
    """The tree, the title and `snapstore tree` say it, for as long as it is so."""
    garden.turns("1", "2")
    async with terminal(garden, 100, 24) as pilot:
        assert "a turn is open" not in screen_text(pilot.app)
        turn = garden.store.session("s1").begin("Go on")
        await until(pilot, lambda: screen_text(pilot.app).count("a turn is open") == 2)
        lines = screen_text(pilot.app).splitlines()
        assert "turn 2, a turn is open" in lines[0], lines[0]
        assert ["@" in line for line in lines[1:] if "a turn is open" in line] == [True]
        drawn = snap(garden.root, "tree", "--session", "s1").stdout
        assert [line[0] for line in drawn.splitlines() if "a turn is open" in line] == ["@"]
        turn.end()
        await until(pilot, lambda: "a turn is open" not in screen_text(pilot.app))
    assert "a turn is open" not in snap(garden.root, "tree", "--session", "s1").stdout


@in_terminal
async def test_the_selected_row_stays_where_it_is_on_the_screen(garden: Garden) -> None:
    """Rows that come in above push nothing away under a person's eyes."""
    plant(garden.store, 200, 20)
    async with terminal(garden, 100, 20) as pilot:
        await press(pilot, "4", "0", "j")
        row, place = selected_line(pilot.app), [i for i, line in enumerate(_tree(pilot)) if line.startswith("▌")]
        subprocess.run([sys.executable, "-c", TURN, str(garden.root), "s1", "theirs"], check=True)
        await until(pilot, lambda: "theirs" in " ".join(node.subject for node in app_of(pilot).snapshot.graph.by_seq()))
        await settled(pilot)
        assert selected_line(pilot.app) == row
        assert [i for i, line in enumerate(_tree(pilot)) if line.startswith("▌")] == place


def _tree(pilot: Pilot[None]) -> list[str]:
    return lines_of(pilot.app, "#tree", stripped=False)


HOLD = """
import sys
from snapstore import Store
store = Store.open(sys.argv[1])
with store.lock:
    print("ready", flush=True)
    sys.stdin.readline()
"""


@in_terminal
async def test_a_locked_store_can_be_looked_at(garden: Garden) -> None:
    """S3-30."""
    forked(garden)
    with living_child(HOLD, garden.root):
        async with terminal(garden, 110) as pilot:
            await press(pilot, "j", "slash", *"4c", "enter", "d")
            assert at(pilot, garden) == "4c"
            assert "4c" in screen_text(pilot.app)


@in_terminal
async def test_a_store_that_vanishes_and_comes_back(garden: Garden) -> None:
    garden.turns("1", "2", "3")
    folder = garden.store.folder
    async with terminal(garden) as pilot:
        os.rename(folder, f"{folder}.away")
        await until(pilot, lambda: "The tree shown may be out of date." in said(pilot))
        assert "snapstore init" in said(pilot)
        await press(pilot, "j", "d", "slash", "1", "enter", "n")
        assert "Turn >3<" in screen_text(pilot.app)
        os.rename(f"{folder}.away", folder)
        await until(pilot, lambda: said(pilot) == "The store can be read again.")
        elsewhere(garden, "theirs")
        await until(pilot, lambda: "theirs" in screen_text(pilot.app))


@in_terminal
async def test_a_store_that_is_damaged_is_told_and_what_was_read_stays(garden: Garden) -> None:
    garden.turns("1", "2", "3")
    async with terminal(garden) as pilot:
        refs = Path(garden.store.shadow.git_dir) / "refs" / "heads" / "s1"
        (refs / "broken.tmp").write_text("f" * 40 + "\n")
        os.rename(refs / "broken.tmp", refs / "broken")
        await until(pilot, lambda: "The tree shown may be out of date." in said(pilot))
        await press(pilot, "j", "k", "d", "slash", "1", "enter")
        assert "Turn >3<" in screen_text(pilot.app)
        assert "Traceback" not in screen_text(pilot.app)
        (refs / "broken").unlink()
        await until(pilot, lambda: said(pilot) == "The store can be read again.")


# Thousands


@in_terminal
async def test_only_rows_in_sight_are_painted(garden: Garden, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3-32: two thousand turns in a hundred branches, and the work of a key is that of a screen."""
    plant(garden.store, 2000, 100)
    painted = 0
    real = Painter.parts

    def parts(self: Painter, row: object) -> object:
        nonlocal painted
        painted += 1
        return real(self, row)  # type: ignore[arg-type]

    monkeypatch.setattr(Painter, "parts", parts)
    async with terminal(garden, 120, 40) as pilot:
        assert painted <= 4 * 40
        for keys in (("j",), ("k",), ("Z",), ("Z",), ("G",), ("g", "g"), ("l",), ("slash", "5", "enter")):
            painted = 0
            await press(pilot, *keys)
            assert painted <= 4 * 40, keys


@in_terminal
async def test_it_opens_where_one_stands(garden: Garden) -> None:
    """However deep in the tree that is, and in a run that would be folded."""
    plant(garden.store, 600, 30)
    line = garden.graph().line(garden.graph().tip)
    garden.made["old"] = line[len(line) // 2]
    garden.stand("old")
    async with terminal(garden, 100, 20) as pilot:
        assert "@  Turn >" in selected_line(pilot.app)
        assert app_of(pilot).tree_view.scroll_offset.y > 0


def test_a_snapshot_is_taken_anew_only_when_something_it_shows_changed(garden: Garden) -> None:
    """S3-30: it is never written to, and what is the same moment is the same snapshot."""
    forked(garden)
    first = Snapshot(garden.store, "s1")
    drawn = [row.node for row in first.rows]
    assert Snapshot.now(garden.store, first, archived=False) is first
    with garden.store.session("s2").turn("theirs"):
        pass
    assert Snapshot.now(garden.store, first, archived=False) is first
    garden.turns("another")
    second = Snapshot.now(garden.store, first, archived=False)
    assert second is not first and len(second.rows) == len(first.rows) + 1
    assert [row.node for row in first.rows] == drawn


# From the command line


def test_both_lists_print_with_plain_characters(garden: Garden) -> None:
    garden.turns("1", "2")
    garden.stand("1")
    garden.turns("3")
    garden.ref("refs/heads/s1/" + "long-" * 20, "2")
    for command in ("tree", "undolist"):
        assert snap(garden.root, command, "--ascii").stdout.isascii()
        assert "main-2" in snap(garden.root, command, "--ascii").stdout
    assert "long-lo..." in snap(garden.root, "undolist", "--ascii").stdout


def test_what_it_needs_is_said(root: Path) -> None:
    snap(root, "init")
    for words in (["tui"], ["tree", "-i"], ["tree", "--interactive"]):
        assert "needs a terminal" in snap(root, *words, status=2).stderr
        assert "`snapstore tree` prints" in snap(root, *words, status=2).stderr
    assert "tree --json" in snap(root, "tui", "--json", status=2).stdout
    assert "'sepia' is not one of 'auto', 'dark', 'light'" in snap(root, "tui", "--look", "sepia", status=2).stderr


def test_without_the_extra_it_says_what_to_install(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snap(root, "init")
    (tmp_path / "textual").mkdir()
    (tmp_path / "textual" / "__init__.py").write_text("raise ModuleNotFoundError('gone', name='textual')\n")
    seen = b""

    def read(fd: int) -> bytes:
        nonlocal seen
        piece = os.read(fd, 4096)
        seen += piece
        return piece

    monkeypatch.chdir(root)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert os.waitstatus_to_exitcode(pty.spawn([*PROGRAM, "tui"], read)) == 2
    assert "pip install 'snapstore[tui]'" in COLOUR.sub("", seen.decode())
