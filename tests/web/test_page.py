"""The page, used as a person uses it: in a real Chromium, with the files on disk looked at afterwards.

C5: no shortcut moves anything. C13: every move is confirmed. The words are the seeds' own where they give some.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from helpers import on_disk
from machines import Machine, bare
from page_helpers import Sight, Story, browser, command, many_turns, serving, until
from test_conversations import Talking, snapstore

import snapstore.web as snapstore_web
from snapstore import Store
from snapstore.transcripts.locate import claude_slug

VIEW = {"width": 1280, "height": 900}

Open = Callable[..., Sight]
Table = dict[str, str | bytes]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def story(store: Store, root: Path, nobodys_home: Path) -> Story:
    """Five turns: each creates a file, and adds a line to another."""
    (nobodys_home / ".claude" / "projects" / claude_slug(str(root))).mkdir(parents=True)
    told = Story(store, root)
    for number in range(1, 6):
        files = {f"f{number}.txt": f"{number}\n", "log.txt": "".join(f"line {at}\n" for at in range(1, number + 1))}
        told.turn(f"Prompt {number}", files, reply=f"Reply {number}", thinking=[f"Thought {number}"])
    return told


@pytest.fixture
def forked(story: Story) -> Story:
    """Two branches part after turn 2: turns 3 to 5, and one turn; the current line went another way."""
    story.undo(3)
    story.turn("Second way", {"second.txt": "2nd\n"}, reply="Went the second way")
    story.undo(1)
    story.turn("Third way", {"third.txt": "3rd\n"}, reply="Went the third way")
    return story


@pytest.fixture
def opened(root: Path, chromium: Any) -> Iterator[Open]:
    """Opens the page; whatever went wrong inside it fails the test."""
    contexts, sights = [], []
    with serving(root) as url:

        def open_page(context: Any = None, **settings: Any) -> Sight:
            if context is None:
                context = chromium.new_context(**{"viewport": VIEW, "reduced_motion": "reduce", **settings})
                contexts.append(context)
            address = url if len(context.pages) == 0 else url.partition("?")[0]
            sights.append(Sight(context, address))
            return sights[-1]

        yield open_page
        for context in contexts:
            context.close()
    for sight in sights:
        assert sight.wrong == []


def files(root: Path) -> Table:
    return {path.decode(): data.decode(errors="replace") for path, (_, data) in on_disk(root).items()}


def after(turn: int) -> Table:
    """What the story leaves on disk."""
    log = {"log.txt": "".join(f"line {at}\n" for at in range(1, turn + 1))} if turn else {}
    return {**{f"f{number}.txt": f"{number}\n" for number in range(1, turn + 1)}, **log}


def test_the_page_is_of_one_piece() -> None:
    """No script, style or address of anybody else's; what is loaded later is announced at once."""
    static = Path(snapstore_web.__file__).parent / "static"
    page = (static / "index.html").read_text()
    assert re.findall(r"<script(?![^>]* src=)|<style| style=| on\w+=|https?:", page) == []
    named = set(re.findall(r'"static/([\w.]+)"', page))
    assert named == {file.name for file in static.iterdir()} - {"index.html"}
    for file in static.glob("*.css"):
        assert set(re.findall(r"url\((.*?)\)", file.read_text())) <= {'"icon.svg"'}
    for file in static.glob("*.js"):
        text = file.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text), file
        assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)|[\"'`]/(?:api|static)", text) == [], file


def test_turns_read_as_a_conversation(story: Story, opened: Open, root: Path) -> None:
    """Prompt, thinking folded, tool calls, replies, files with their counts; diffs and images open in place; edits
    between turns stand apart. S2-21."""
    (root / "log.txt").write_text("mine\n")
    story.turn("Draw", {"dot.png": png(), "app.py": "def main():\n    return 1  # one\n"}, reply="Drawn `dot.png`.")
    sight = opened()
    turn = sight.turn(6)
    turn.get_by_text("Drawn").wait_for()
    assert sight.text(turn.locator("h3")) == "Turn 6"
    assert sight.text(turn.locator(".prompt")) == "Draw"
    assert [sight.text(call) for call in turn.locator(".call").all()] == ["Write dot.png", "Write app.py"]
    assert [sight.text(row) for row in turn.locator(".file").all()] == [
        "A created app.py +2",
        "A created dot.png binary",
    ]
    turn.get_by_text("app.py").last.click()
    turn.locator(".diff .new").first.wait_for()
    assert turn.locator("td.code").all_inner_texts() == ["def main():", "    return 1  # one"]
    assert turn.locator(".c-word").all_inner_texts() == ["def", "return"]
    sight.button("Side by side", turn).click()
    assert turn.locator("table.split td.none").count() == 2
    turn.get_by_text("dot.png").last.click()
    image = turn.locator("img")
    image.scroll_into_view_if_needed()
    until(lambda: image.evaluate("image => image.complete && image.naturalWidth") == 1)
    edits = sight.page.locator("article.edits")
    assert "1 file changed between turns: log.txt" in sight.text(edits)
    fifth = sight.turn(5)
    assert not fifth.get_by_text("Thought 5").is_visible()
    fifth.get_by_text("Thinking").click()
    fifth.get_by_text("Thought 5").wait_for()


def test_restore_to_here(story: Story, opened: Open, root: Path) -> None:
    """S0-12, S0-14, S0-15, S0-16, S0-17, S0-18, S0-33, S0-35, S0-36, S0-43, S1-01, S1-04, S1-06, S1-25, S4-21, G-18:
    hover, press, confirm; turn 2 stays, what follows is undone and dimmed, and stays so when it is loaded again."""
    sight = opened()
    dialog = sight.restore(2)
    said = sight.text(dialog)
    assert said.startswith("Undo 3 turns? This will revert changes to 4 files. First undone: turn 3, “Prompt 3”")
    assert [sight.text(part) for part in dialog.locator(".paths").all()] == [
        "Will be written 1 → log.txt",
        "Will be removed 3 × f3.txt × f4.txt × f5.txt",
    ]
    sight.button("Cancel", dialog).click()
    assert files(root) == after(5)
    sight.button("Undo", sight.restore(2)).click()
    sight.toast("Undone 3 turns. 4 files changed.")
    assert files(root) == after(2)
    bar = sight.page.locator("#redo-bar")
    sight.says(bar, "↩ 3 turns undone Redo Next Redo All")
    # G-18: no moment in which the undone turns look as if they were not.
    sight.page.add_init_script("""
        window.flashed = false;
        new MutationObserver(() => {
            if (document.querySelector("[data-turn='3']:not(.undone)")) window.flashed = true;
        }).observe(document, { childList: true, subtree: true });
    """)
    sight.page.reload()
    bar.wait_for()
    undone = sight.turn(3)
    undone.wait_for()
    style = "e => [getComputedStyle(e).opacity, getComputedStyle(e, '::before').borderLeftStyle]"
    until(lambda: undone.evaluate(style) == ["0.4", "dashed"])
    assert sight.page.evaluate("window.flashed") is False
    sight.says(undone, "Prompt 3", "Reply 3")
    assert sight.text(undone.locator(".badge")) == "undone"
    assert undone.get_attribute("aria-label") == "Turn 3, undone: Prompt 3"
    assert "undone" not in sight.text(sight.turn(2).locator(".turn-head"))
    assert "You stand at turn 2; 3 turns undone after it." in sight.text(sight.page.locator(".states"))


def test_undone_turns_are_the_stash(story: Story, opened: Open, root: Path) -> None:
    """S1-24, S1-45: the turns gone back over are kept as future turns, with where they begin and end; restoring them is
    a redo. There is no second place to keep them in."""
    sight = opened()
    sight.button("Undo", sight.restore(2)).click()
    sight.says(sight.page.locator(".divider"), "You are here. Future turns (3) follow.")
    state = sight.page.evaluate(f"fetch('api/undo-state/{story.id}').then(answer => answer.json())")
    assert (state["currentTurnIndex"], state["totalTurns"], state["branches"]) == (2, 5, [])
    sight.page.reload()
    for number in (3, 4, 5):
        sight.says(sight.turn(number), f"Prompt {number}", "undone")
    sight.button("Redo All").click()
    sight.button("Redo", sight.dialog()).click()
    assert files_become(root, after(5))
    sight.page.locator(".divider").wait_for(state="detached")


def test_a_switch_leaves_nothing_of_the_other_line(forked: Story, opened: Open, root: Path, nobodys_home: Path) -> None:
    """S1-49: after a switch the page has read anew what it shows, and the session to go on with is a fresh one, whose
    conversation holds this line and no other."""
    sight = opened()
    sight.says(sight.turn(3), "Went the third way")
    sight.button("Switch to main", sight.view("Branches")).click()
    sight.button("Switch", sight.dialog()).click()
    assert files_become(root, after(5))
    sight.view("Timeline")
    sight.says(sight.turn(5), "Reply 5")
    assert "third way" not in sight.text(sight.page.locator("#timeline"))
    fork = json.loads(snapstore(root, "fork", "--json", "--session", forked.name))["fork"]
    told = Path(fork["path"]).read_text()
    assert fork["id"] != forked.id and "Reply 5" in told and "third way" not in told


def test_the_engine_knows_no_surface(forked: Story, opened: Open) -> None:
    """S0-59: all that decides is free of any interface, and five pieces of the page show it: the redo bar, the mark of
    branches, their dialog, the menu of a turn, the question before a move."""
    rooms = ("timeline", "store", "worktree", "git", "transcripts")
    project = Path(snapstore_web.__file__).parents[2]
    files = [file for room in rooms for file in (project / "snapstore" / room).rglob("[a-z]*.py")]
    names = [".".join(file.relative_to(project).with_suffix("").parts) for file in files]
    code = f"import importlib, sys\nfor name in {names}: importlib.import_module(name)\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    surfaces = ("snapstore.cli", "snapstore.web", "snapstore.tui", "fastapi", "uvicorn", "starlette", "textual")
    assert len(names) > 40 and not [name for name in loaded if name.startswith(surfaces)]
    forked.undo(1)
    sight = opened()
    sight.page.locator("#redo-bar").wait_for()
    sight.turn(2).locator(".fork-mark").click()
    sight.says(sight.dialog(), "Branches from turn 2")
    sight.page.keyboard.press("Escape")
    assert sight.menu(2).get_by_role("menuitem").count() > 5
    sight.page.keyboard.press("Escape")
    sight.says(sight.restore(1), "Undo 1 turn?", "Cancel")


def test_the_redo_bar(story: Story, opened: Open, root: Path) -> None:
    """S0-19, S0-20, S0-21, S0-22, S1-07, S1-08, S1-45: the next turn, a chosen dimmed one, or all; always confirmed."""
    story.undo(4)
    sight = opened()
    bar = sight.page.locator("#redo-bar")
    assert "Future turns (4)" in sight.text(sight.page.locator(".divider"))
    sight.button("Redo Next", bar).click()
    sight.says(sight.dialog(), "Redo 1 turn? This will apply changes to 2 files again.")
    sight.button("Redo", sight.dialog()).click()
    sight.page.get_by_text("↩ 3 turns undone").wait_for()
    assert files(root) == after(2)
    assert sight.turn(2).locator(".badge").all_inner_texts() == ["you are here"]
    sight.button("Redo", sight.restore(4)).click()
    sight.page.get_by_text("↩ 1 turn undone").wait_for()
    assert files(root) == after(4)
    sight.button("Redo All", bar).click()
    sight.button("Redo", sight.dialog()).click()
    bar.wait_for(state="hidden")
    assert files(root) == after(5)


def test_the_menu_of_a_turn(story: Story, opened: Open, root: Path) -> None:
    """S0-13, S0-34, S1-31, C8, G-12: a right-click offers everything; undoing a turn takes it back itself and hands its
    prompt over; reverting one leaves what came after."""
    sight = opened()
    labels = [text.partition("\n")[0] for text in sight.menu(3).get_by_role("menuitem").all_inner_texts()]
    assert labels[:3] == ["Restore to this point", "Undo this turn", "Revert only this turn"]
    assert labels[3:6] == ["Rewind to this turn…", "Branch from here…", "Checkpoint…"]
    sight.page.keyboard.press("Escape")
    dialog = sight.menu(2, "Revert only this turn")
    assert sight.text(dialog).startswith("Revert only turn 2? Its changes are taken out, what came after stays.")
    sight.button("Cancel", dialog).click()
    dialog = sight.menu(4, "Undo this turn")
    assert sight.text(dialog).startswith("Undo 2 turns? This will revert changes to 3 files. First undone: turn 4")
    sight.button("Undo", dialog).click()
    assert files_become(root, after(3))
    sight.context.grant_permissions(["clipboard-read", "clipboard-write"])
    sight.button("Copy prompt", sight.toast("Undone 2 turns")).click()
    sight.toast("Prompt copied.")
    assert sight.page.evaluate("navigator.clipboard.readText()") == "Prompt 4"
    sight.button("Redo", sight.menu(5, "Restore to this point")).click()
    assert files_become(root, after(5))


def test_files_and_conversation_go_apart(story: Story, opened: Open, root: Path) -> None:
    """C6, S1-48: files alone leave the session where it stands; the conversation alone leaves the files."""
    sight = opened()
    dialog = sight.restore(3)
    dialog.get_by_label("Conversation only").check()
    sight.says(dialog, "No file will change.")
    sight.says(dialog.locator(".notice"), "they may not match the conversation any more")
    dialog.get_by_label("Files only").check()
    sight.says(dialog, "This will revert changes to 3 files.")
    sight.button("Undo", dialog).click()
    sight.toast("Undone 2 turns, files only.")
    assert files_become(root, after(3))
    sight.says(sight.turn(5).locator(".turn-head"), "you are here")


def test_only_one_turn_is_reverted(story: Story, opened: Open, root: Path) -> None:
    """ "Revert only this turn" makes a turn of its own, which can be undone like any."""
    story.turn("One file", {"own.txt": "own\n"})
    story.turn("Later", {"later.txt": "later\n"})
    sight = opened()
    sight.button("Revert", sight.menu(6, "Revert only this turn")).click()
    assert files_become(root, {**after(5), "later.txt": "later\n"})
    sight.turn(8).locator(".badge", has_text="revert").wait_for()
    sight.button("Undo last turn").click()
    sight.button("Undo", sight.dialog()).click()
    assert files_become(root, {**after(5), "own.txt": "own\n", "later.txt": "later\n"})


def files_become(root: Path, wanted: Table) -> bool:
    """The page answers before a test can look; the disk is what counts."""

    def are() -> bool:
        try:
            return files(root) == wanted
        except FileNotFoundError:  # written beside, just now
            return False

    until(are)
    return True


def test_the_branch_dialog(forked: Story, opened: Open, root: Path) -> None:
    """S0-27, S0-28, S0-29, S0-30, S0-31, S0-32, S0-37, S0-38, S0-39, S0-40, S0-41, S0-42, S0-51, S1-22."""
    sight = opened()
    mark = sight.turn(2).locator(".fork-mark")
    assert mark.evaluate("e => e.textContent").startswith("Turn 2 ⑂ 2")
    sight.page.keyboard.press("ArrowRight")
    assert sight.page.locator("dialog").count() == 0
    mark.click()
    dialog = sight.dialog()
    dialog.get_by_text("Reply 5").wait_for()
    assert sight.text(dialog.locator("h2")) == "Branches from turn 2"
    assert [sight.text(title) for title in dialog.locator("h3").all()] == ["Turn 3", "Turn 4", "Turn 5"]
    third = dialog.locator("[data-turn='3']")
    assert "Prompt 3" in sight.text(third) and "Thinking" in sight.text(third) and "Write f3.txt" in sight.text(third)
    place = dialog.locator(".place")
    assert sight.text(place) == "1 of 2"
    sight.page.keyboard.press("ArrowRight")
    dialog.get_by_text("Went the second way").wait_for()
    assert sight.text(place) == "2 of 2"
    sight.page.keyboard.press("ArrowLeft")
    dialog.get_by_text("Reply 5").wait_for()
    sight.button("Next branch", dialog).click()
    dialog.get_by_text("Went the second way").wait_for()
    sight.button("Previous branch", dialog).click()
    dialog.get_by_text("Reply 5").wait_for()
    # To a turn in its middle, from past the fork: confirmed, undone back to it, and the line left becomes a branch.
    sight.button("Redo to here", dialog.locator("[data-turn='4']")).click()
    sight.says(sight.dialog(), "undo 1 turn and redo 2 turns")
    sight.button("Cancel", sight.dialog()).click()
    assert (root / "third.txt").exists()
    sight.button("Redo to here", dialog.locator("[data-turn='4']")).click()
    sight.button("Switch", sight.dialog()).click()
    assert files_become(root, after(4))
    sight.page.get_by_text("↩ 1 turn undone").wait_for()
    sight.turn(2).locator(".fork-mark").click()
    dialog = sight.dialog()
    dialog.get_by_text("Went the").first.wait_for()
    if not dialog.get_by_text("Went the third way").count():
        sight.button("Next branch", dialog).click()
    dialog.get_by_text("Went the third way").wait_for()
    sight.button("Redo entire branch", dialog).click()
    sight.button("Switch", sight.dialog()).click()
    assert files_become(root, {**after(2), "third.txt": "3rd\n"})


def test_two_branches_are_compared(forked: Story, opened: Open) -> None:
    """S1-40, S1-41, S1-42: side by side, with the point where they parted and what came of each."""
    sight = opened()
    sight.turn(2).locator(".fork-mark").click()
    sight.button("Compare with the current line", sight.dialog()).click()
    dialog = sight.dialog()
    assert "Parted after turn 2" in sight.text(dialog.locator(".parted"))
    here, there = (sight.text(side) for side in dialog.locator(".side").all())
    assert "1 turn since, 1 file" in here and "Third way" in here and "Went the third way" in here
    assert "3 turns since, 4 files" in there and "Reply 5" in there
    dialog.locator("summary", has_text="log.txt").click()
    dialog.locator(".diff .new").first.wait_for()
    assert dialog.locator(".diff .new mark, .diff td.new").count()


def test_no_key_moves_anything(story: Story, opened: Open, root: Path) -> None:
    """S0-50, S0-51, S1-59, C5: not the usual keys for undo and redo, nor arrows outside the dialog of branches.
    Who wants a key can have one, which asks. S0-60: what moves are is UNDO, REDO, BRANCH and SET_UNDO_STATE, each of
    which gives a new state and leaves the old one alone."""
    sight = opened()
    sight.turn(5).focus()
    for key in ["Control+z", "Meta+z", "Control+Shift+z", "Meta+Shift+z", "Control+y", "u", "ArrowLeft", "ArrowRight"]:
        sight.page.keyboard.press(key)
    assert sight.page.locator("dialog").count() == 0
    assert files(root) == after(5)
    assert "you are here" in sight.text(sight.turn(5))
    assert sight.page.evaluate(
        """async () => {
            const { reduce } = await import("./static/state.js");
            const tree = Object.freeze({ cursor: "a", expected: "a", branch: "main", nodes: [] });
            const undone = reduce(tree, { type: "UNDO", cursor: "b" });
            const redone = reduce(undone, { type: "REDO", cursor: "c" });
            const other = reduce(redone, { type: "BRANCH", cursor: "d", branch: "main-2" });
            return [undone.cursor, redone.expected, other.branch, other.cursor,
                reduce(other, { type: "SET_UNDO_STATE", tree }) === tree];
        }"""
    ) == ["b", "c", "main-2", "d", True]
    sight.view("Statistics").get_by_label("asks whether to undo the last turn").check()
    sight.page.locator("h1").click()
    sight.page.keyboard.press("Control+Shift+z")
    sight.says(sight.dialog(), "Undo 1 turn? This will revert changes to 2 files.")
    assert files(root) == after(5)


def test_a_conflict_is_settled_file_by_file(story: Story, opened: Open, root: Path) -> None:
    """S0-46, G-38: an error, nothing written; then keep mine, take theirs, or merge, with the three sides to see."""
    (root / "log.txt").write_text("my own\nline 1\nline 2\nline 3\nline 4\nline 5\n")
    (root / "f5.txt").write_text("changed\n")
    mine = files(root)
    sight = opened()
    dialog = sight.restore(4)
    sight.toast("2 files changed since. Nothing was written.")
    assert sight.button("Undo", dialog).is_disabled()
    assert sight.text(dialog.locator(".why")) == "2 files still to be settled."
    log, five = (dialog.locator("fieldset.conflict", has_text=name) for name in ("log.txt", "f5.txt"))
    log.get_by_text("Show the three sides").click()
    log.locator("figure", has_text="Mine, on disk").get_by_text("my own").wait_for()
    log.get_by_label("Merge", exact=True).check()
    five.get_by_label("Merge", exact=True).check()
    sight.says(five, "Cannot be settled so")
    assert files(root) == mine
    five.get_by_label("Keep mine").check()
    sight.button("Undo", dialog).click()
    sight.toast("Undone 1 turn")
    wanted = {**after(4), "log.txt": "my own\nline 1\nline 2\nline 3\nline 4\n", "f5.txt": "changed\n"}
    assert files(root) == wanted
    dialog = sight.restore(5)
    sight.button("Take theirs, for all", dialog).click()
    sight.button("Redo", dialog).click()
    assert files_become(root, after(5))
    sight.toast("What was on disk is saved as")


def test_sides_without_text_are_not_called_missing(story: Story, opened: Open, root: Path) -> None:
    story.turn("Binary", {"b.dat": b"\0one", "gone.txt": "x\n"})
    story.turn("Other", {"b.dat": b"\0two", "gone.txt": None})
    (root / "b.dat").write_bytes(b"\0mine")
    sight = opened()
    sight.button("Undo last turn").click()
    sides = sight.dialog().locator("fieldset.conflict", has_text="b.dat")
    sides.get_by_text("Show the three sides").click()
    sides.locator("figure").first.wait_for()
    assert "not there" not in sight.text(sides) and sight.text(sides).count("there, but no text") == 3


def test_an_edit_between_question_and_answer(story: Story, opened: Open, root: Path) -> None:
    """S0-46, S0-47: what was agreed to no longer fits the disk: refused as a whole, and shown file by file."""
    sight = opened()
    dialog = sight.restore(3)
    (root / "log.txt").write_text("mine, meanwhile\n")
    sight.button("Undo", dialog).click()
    sight.toast("Nothing was written")
    sight.says(dialog.locator("fieldset.conflict"), "log.txt")
    assert files(root) == {**after(5), "log.txt": "mine, meanwhile\n"}
    dialog.get_by_label("Keep mine").check()
    sight.button("Undo", dialog).click()
    assert files_become(root, {**after(3), "log.txt": "mine, meanwhile\n"})


def test_a_choice_is_for_one_file_as_it_was_seen(story: Story, opened: Open, root: Path) -> None:
    """What a person agreed to, and nothing else: a way chosen for one file settles no other, and a file that changes
    after the choice is asked about again."""
    names = ("a", "b")
    lines = [f"{number}\n" for number in range(1, 10)]

    def with_line(number: int, text: str) -> str:
        return "".join(lines[: number - 1]) + f"{text}\n" + "".join(lines[number:])

    story.turn("Numbers", {name: "".join(lines) for name in names})
    story.turn("Words", {name: with_line(2, "two") for name in names})
    (root / "a").write_text(with_line(2, "mine"))
    sight = opened()
    sight.button("Undo last turn").click()
    dialog = sight.dialog()
    dialog.get_by_label("Merge", exact=True).check()
    dialog.get_by_label("Merge with markers").check()
    until(lambda: not sight.button("Undo", dialog).is_disabled())
    dialog.locator(".paths summary", has_text="a").first.click()
    sight.says(dialog.locator(".diff").first, "<<<<<<< on disk")
    (root / "b").write_text(with_line(2, "mine too"))
    sight.button("Undo", dialog).click()
    sight.says(dialog.locator("fieldset.conflict").nth(1), "b")
    assert (root / "b").read_text() == with_line(2, "mine too")
    dialog.locator("fieldset.conflict").nth(1).get_by_label("Take theirs").check()
    until(lambda: not sight.button("Undo", dialog).is_disabled())
    (root / "b").write_text("an hour of work\n")
    sight.button("Undo", dialog).click()
    sight.toast("b changed again meanwhile. Nothing was written.")
    assert ((root / "a").read_text(), (root / "b").read_text()) == (with_line(2, "mine"), "an hour of work\n")
    dialog.locator("fieldset.conflict").nth(1).get_by_label("Take theirs").check()
    dialog.locator("fieldset.conflict").nth(0).get_by_label("Keep mine").check()
    until(lambda: not sight.button("Undo", dialog).is_disabled())
    sight.button("Undo", dialog).click()
    said = sight.toast("What was on disk is saved as")
    assert ((root / "a").read_text(), (root / "b").read_text()) == (with_line(2, "mine"), "".join(lines))
    sight.button("Get mine back…", said).click()
    sight.button("Restore", sight.dialog()).click()
    until(lambda: (root / "b").read_text() == "an hour of work\n")


def test_a_move_under_way_is_not_cancelled_by_half(
    story: Story, opened: Open, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the yes there is no pretending: the dialog stays until the answer is here, and what was done is told. A
    press too many asks nothing twice."""
    monkeypatch.setenv("SNAPSTORE_LOCK_TIMEOUT", "20")
    sight = opened()
    sight.button("Undo last turn").dblclick()
    dialog = sight.dialog()
    dialog.get_by_label("Files only").check()
    sight.says(dialog, "This will revert changes to 2 files.")
    dialog.locator(".paths summary", has_text="log.txt").click()
    sight.says(dialog.locator(".diff"), "line 5")
    assert sight.page.locator("dialog").count() == 1
    dialog.get_by_label("Files and conversation").check()
    with story.store.changing():
        sight.button("Undo", dialog).click()
        sight.says(dialog, "Under way.")
        assert sight.button("Cancel", dialog).is_disabled()
        for _ in range(3):
            sight.page.keyboard.press("Escape")
        assert dialog.is_visible() and files(root) == after(5)
    sight.toast("Undone 1 turn")
    assert files_become(root, after(4))
    until(lambda: sight.page.locator("dialog").count() == 0)


def test_many_tabs(story: Story, opened: Open, root: Path) -> None:
    """A browser has six connections to a server: one tab listens for all, and another when it goes."""
    tabs = [opened()]
    tabs += [opened(tabs[0].context) for _ in range(7)]
    last = tabs[-1]
    last.button("Undo last turn").click()
    last.button("Undo", last.dialog()).click()
    assert files_become(root, after(4))
    for tab in tabs:
        tab.page.get_by_text("↩ 1 turn undone").wait_for()
    tabs[0].page.close()
    tabs[1].page.close()
    snapstore(root, "redo", "-y", "--session", story.name)
    for tab in tabs[2:]:
        tab.page.locator("#redo-bar").wait_for(state="hidden")


def test_a_store_that_is_held_or_gone(
    story: Story, opened: Open, root: Path, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says what is the matter and what to do; what it shows stays, and works again with the store."""
    monkeypatch.setenv("SNAPSTORE_LOCK_TIMEOUT", "0.1")
    sight = opened()
    sight.turn(5).get_by_text("Reply 5").wait_for()
    with story.store.changing():
        sight.button("Undo", sight.restore(4)).click()
        held = sight.toast("the store is in use by")
        assert files(root) == after(5)
        sight.button("Dismiss", held).click()
    stores, away = nobodys_home / "stores", nobodys_home / "away"
    shutil.move(stores, away)
    sight.turn(5).hover()
    sight.button("Restore to here", sight.turn(4)).click()
    sight.toast("no store watches over")
    assert "Prompt 5" in sight.text(sight.turn(5))
    shutil.move(away, stores)
    sight.button("Undo", sight.restore(4)).click()
    assert files_become(root, after(4))


def png() -> bytes:
    """One black dot."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


def test_nothing_moves_while_a_turn_is_open(story: Story, opened: Open, root: Path) -> None:
    """S1-46, S1-54, S4-17, S4-19, S4-20: the agent starts and ends a turn by its hooks; meanwhile moves are off and
    say why. Its prompt after an undo makes the banner and the redo bar go at once, and what was undone is a branch.
    They come back when the turn is canceled."""
    story.undo(2)
    sight = opened()
    bar = sight.page.locator("#redo-bar")
    sight.page.get_by_text("↩ 2 turns undone").wait_for()
    assert "2 turns undone" in sight.text(sight.page.locator(".states"))
    story.begin("Go on")
    sight.page.get_by_text("A turn is open: claude is at work.").wait_for()
    restore = sight.button("Restore to here", sight.turn(2))
    assert restore.is_disabled() and "A turn is open" in restore.get_attribute("title")
    assert sight.button("Undo last turn").is_disabled()
    bar.wait_for(state="hidden")
    assert "undone" not in sight.text(sight.page.locator("#header"))
    story.session.cancel()
    sight.page.get_by_text("↩ 2 turns undone").wait_for()
    sight.page.locator(".states").get_by_text("2 turns undone").wait_for()
    story.begin("Go on")
    sight.page.get_by_text("A turn is open: claude is at work.").wait_for()
    bar.wait_for(state="hidden")
    assert sight.menu(2).get_by_role("menuitem", name="Restore to this point").get_attribute("aria-disabled") == "true"
    sight.page.keyboard.press("Escape")
    (root / "new.txt").write_text("new\n")
    story.end()
    sight.turn(4).get_by_text("Go on").wait_for()
    bar.wait_for(state="hidden")
    assert "undone" not in sight.text(sight.page.locator("#header"))
    assert sight.turn(3).locator(".fork-mark").count() == 1
    assert not restore.is_disabled()


def test_what_others_do_appears_by_itself(story: Story, opened: Open, root: Path, nobodys_home: Path) -> None:
    """S2-22, G-08, C15: two pages, a command and an agent's hooks at once. What is stale is refused, and
    the page says so; a session of the agent's that appears shows itself."""
    one = opened()
    two = opened(one.context)
    snapstore(root, "undo", "-y", "--session", story.name)
    for sight in (one, two):
        sight.page.bring_to_front()
        sight.page.get_by_text("↩ 1 turn undone").wait_for()
    assert files(root) == after(4)
    dialog = two.restore(2)
    one.page.bring_to_front()
    one.button("Redo All").click()
    one.button("Redo", one.dialog()).click()
    one.page.locator("#redo-bar").wait_for(state="hidden")
    two.page.bring_to_front()
    two.button("Undo", dialog).click()
    two.toast("The session has moved meanwhile. Nothing was written.")
    assert files(root) == after(5)
    agent = Talking(root, nobodys_home, "8e1b7f00-1111-4222-8333-444455556666")
    one.page.bring_to_front()
    agent.prompt("From the agent")
    one.page.locator(f"[data-session='{agent.session}']").click()
    one.page.locator("article.open").get_by_text("From the agent").wait_for()
    agent.stop("I said it.")
    one.turn(1).get_by_text("I said it.").wait_for()
    one.says(one.page.locator("#header h1"), "From the agent")


def test_the_page_follows_a_conversation_into_its_fork(story: Story, opened: Open, root: Path) -> None:
    """S4-18, S4-26: with the first prompt in a fork the header goes to the new session, and moves act on its line.
    Until then the page keeps showing the old one and what is undone in it, also after a reload."""
    sight = opened()
    rewound = sight.page.locator("#header .rewound")
    undone = sight.page.locator(".states").get_by_text("1 turn undone")
    fork = json.loads(snapstore(root, "fork", "4", "-y", "--json", "--session", story.name))["fork"]
    for reload in (False, True):
        if reload:
            sight.page.reload()
        undone.wait_for()
        sight.page.locator("#redo-bar").wait_for()
        assert rewound.count() == 0
    sight.page.locator(f"[data-conversation='{fork['id']}']").click()
    sight.button("Prompt 1", rewound).click()  # the old session is not only the current one now, but chosen
    rewound.wait_for(state="detached")
    story.id = fork["id"]
    story.turn("Another way", {"new.txt": "new\n"})
    sight.says(rewound, "Rewound from turn 4 of Prompt 1")
    sight.turn(5).get_by_text("Another way").wait_for()
    assert undone.count() == 0
    sight.button("Undo last turn").click()
    sight.button("Undo", sight.dialog()).click()
    assert files_become(root, after(4))


def test_rewind_creates_a_branch(story: Story, opened: Open, root: Path) -> None:
    """S1-05, S1-20, S1-23, S1-29, S1-30, S1-31, S1-32, S1-33, S1-34, S1-35, S1-36, S1-37, S1-43, S1-44, S1-52, S1-53,
    S1-54, S1-57, S1-58, S1-68, S4-10: the counter's list or a right-click; a new session that the page goes to,
    below its parent in the list."""
    sight = opened()
    sight.page.locator("details.counter summary").click()
    row = sight.page.locator(".turn-list li", has_text="Prompt 3")
    sight.button("Rewind to here", row).click()
    dialog = sight.dialog()
    sight.says(
        dialog,
        "Rewind session to turn 3? This will create a new session branch starting from turn 3. "
        "Your current session will remain unchanged.",
        "Cancel Create Branch",
    )
    sight.button("Cancel", dialog).click()
    assert files(root) == after(5)
    sight.turn(3).hover()
    sight.button("Rewind to here", sight.turn(3)).click()
    sight.button("Cancel", sight.dialog()).click()
    sight.button("Create Branch", sight.menu(3, "Rewind to this turn")).click()
    sight.toast("Created a branch from turn 3.")
    assert files(root) == after(3)
    header = sight.page.locator("#header")
    sight.says(header, "branch Prompt 1 (Branch)", "Rewound from turn 3 of Prompt 1")
    sidebar = sight.page.locator("#sessions")
    group = sidebar.locator(".session-group", has_text="Prompt 1")
    sight.says(group, "1 branch", "Prompt 1 (Branch)", "Branch from turn 3")
    sight.button("1 branch", group).click()
    assert group.locator(".forks").count() == 0
    sight.button("1 branch", group).click()
    # A branch of the branch, with a name of its own.
    story.id = sight.page.locator("[data-conversation]").get_attribute("data-conversation")
    story.turn("On the branch", {"b.txt": "b\n"})
    sight.turn(4).get_by_text("On the branch").wait_for()
    sight.says(header, "Rewound from turn 3 of Prompt 1")
    dialog = sight.menu(4, "Branch from here")
    dialog.get_by_label("Name (optional)").fill("Deeper")
    sight.button("Create Branch", dialog).click()
    sight.says(header, "Rewound from turn 4 of Prompt 1 (Branch)")
    assert header.locator(".crumbs li").all_inner_texts() == ["Prompt 1", "Prompt 1 (Branch)", "Deeper"]
    sight.says(group, "2 branches")
    sight.button("Prompt 1", header.locator(".crumbs")).click()
    header.locator(".rewound").wait_for(state="detached")
    assert (story.root / "b.txt").exists()


def test_before_a_compaction_there_is_no_rewind(story: Story, opened: Open) -> None:
    """S1-47, S1-54, C21: off with a message; from the lines that were kept only when asked for."""
    story.turn("After", {"g.txt": "g\n"}, compacted=True)
    many_turns(story, 300)
    sight = opened()
    sight.page.locator("details.counter summary").click()
    sight.page.get_by_label("Turn number").fill("5")
    sight.page.locator(".turn-list .goto", has_text="Prompt 5").first.click()
    dialog = sight.menu(3, "Rewind to this turn")
    sight.says(dialog, "Turn 3 lies before a compaction (at turn 6)")
    create = sight.button("Create Branch", dialog)
    assert create.is_disabled()
    dialog.get_by_label("Branch from the lines that were kept").check()
    assert not create.is_disabled()
    sight.button("Cancel", dialog).click()
    dialog = sight.menu(6, "Rewind to this turn")
    assert not sight.button("Create Branch", dialog).is_disabled()


def test_branches_are_looked_after(forked: Story, opened: Open) -> None:
    """S1-38, S1-39, S1-50, S1-51: renamed, archived, made the main one, deleted one by one or many at once."""
    sight = opened()
    panel = sight.view("Branches")
    cards = panel.locator(".card")

    def menu(card: str, item: str) -> None:
        cards.filter(has_text=card).get_by_role("button", name="Actions for branch").click()
        sight.page.get_by_role("menuitem", name=item).click()

    assert "Branch from turn 2" in sight.text(cards.filter(has_text="Prompt 5"))
    menu("Prompt 5", "Rename")
    field = sight.dialog().get_by_label("Name")
    assert field.input_value() == "main"
    field.fill("no name.lock")
    sight.button("Rename", sight.dialog()).click()
    sight.dialog().get_by_role("alert").wait_for()
    assert field.input_value() == "no name.lock", "what was typed is still there"
    field.fill("first-way")
    sight.button("Rename", sight.dialog()).click()
    sight.says(cards.filter(has_text="Prompt 5"), "first-way")
    menu("first-way", "Archive")
    sight.says(panel.locator(".archived"), "first-way")
    menu("first-way", "Take out of the archive")
    panel.locator(".archived").wait_for(state="detached")
    menu("Third way", "Make it the main branch")
    sight.button("Make it main", sight.dialog()).click()
    cards.filter(has_text="Third way").get_by_text("main", exact=True).wait_for()
    menu("Second way", "Delete")
    sight.button("Cancel", sight.dialog()).click()
    menu("Second way", "Delete")
    sight.button("Delete branch", sight.dialog()).click()
    cards.filter(has_text="Second way").wait_for(state="detached")
    left = cards.filter(has_not_text="current")
    for card in left.all():
        card.get_by_role("checkbox").check()
    number = left.count()
    sight.button("Delete chosen", panel).click()
    sight.says(sight.dialog(), f"Delete {number} branch")
    sight.button("Delete", sight.dialog()).click()
    until(lambda: cards.count() == 1)
    assert "Third way" in sight.text(cards)


def test_many_branches_are_warned_about(story: Story, opened: Open) -> None:
    """S0-49: from 15 on, where branches are looked after."""
    for number in range(15):
        story.undo(1)
        story.turn(f"Way {number}", {})
    sight = opened()
    panel = sight.view("Branches")
    sight.says(panel, "16 branches: from 20 on, the oldest goes to the archive by itself.")
    shown = [sight.text(card) for card in panel.locator(".card p").all()]
    wanted = [*(f"Way {number}" for number in reversed(range(15))), "Prompt 5"]
    assert [next(name for name in wanted if f"{name} ·" in text) for text in shown] == wanted, (
        "as `branches` lists them"
    )


def test_checkpoints(story: Story, opened: Open, root: Path) -> None:
    """S1-55: a turn gets a name, is listed under it, and gone back to."""
    sight = opened()
    dialog = sight.menu(2, "Checkpoint")
    dialog.get_by_label("Name").fill("works")
    sight.button("Create checkpoint", dialog).click()
    sight.turn(2).locator(".badge", has_text="◆ works").wait_for()
    panel = sight.view("Checkpoints")
    sight.says(panel, "◆ works", "Turn 2 on main · Prompt 2")
    sight.button("Restore to checkpoint works", panel).click()
    sight.button("Undo", sight.dialog()).click()
    assert files_become(root, after(2))
    sight.button("Delete checkpoint works", panel).click()
    sight.button("Delete", sight.dialog()).click()
    sight.says(panel, "No checkpoints yet.")


def test_undo_last_turn(store: Store, root: Path, opened: Open) -> None:
    """S1-56, S2-27, S4-06: one press and a yes, back to the start; then it is off, with the reason."""
    story = Story(store, root)
    story.turn("Only one", {"a.txt": "a\n"})
    sight = opened()
    sight.button("Undo last turn").click()
    sight.says(sight.dialog(), "Undo 1 turn? This will revert changes to 1 file.")
    sight.button("Undo", sight.dialog()).click()
    assert files_become(root, {})
    last = sight.button("Undo last turn")
    until(lambda: last.is_disabled())
    assert last.get_attribute("title") == "Nothing to undo."


def test_tree_search_and_statistics(forked: Story, opened: Open, root: Path) -> None:
    """S1-67, S3-20, S3-22: the whole session drawn, zoomed, a node of it looked at and gone to; words found on all
    branches; numbers counted."""
    sight = opened()
    panel = sight.view("Tree")
    nodes = panel.locator(".node")
    assert nodes.count() == 8
    sight.button("Smaller", panel).click()
    sight.button("Smaller", panel).click()
    assert panel.locator(".node text").count() == 0
    sight.button("Larger", panel).click()
    panel.get_by_role("button", name="Turn 4: Prompt 4").click()
    sight.says(panel.locator(".tree-about"), "Turn 4 #4 on main", "2 files +2", "Restore to here")
    sight.button("Restore to here", panel).click()
    sight.button("Switch", sight.dialog()).click()
    assert files_become(root, after(4))
    sight.toast("Undone 1 turn, redone 2 turns.")
    sight.page.get_by_role("searchbox").fill("second")
    sight.says(panel, "Turn 3 prompt", "Second way")
    panel.locator("button.hit").first.click()
    sight.says(panel.locator(".tree-about"), "Turn 3", "Second way")
    panel = sight.view("Statistics")
    sight.says(panel, "sessions", "branches a session", "store size", "The store is healthy.")


def test_a_tree_of_many_branches_is_seen(story: Story, opened: Open) -> None:
    """A hundred ways from one turn: each node can be scrolled to, and what it is stands where one looks."""
    for number in range(100):
        story.undo(1)
        story.turn(f"Way {number}", {})
    seen = """() => {
      const box = document.querySelector(".tree-box");
      const { left, right } = box.getBoundingClientRect();
      const inside = (e) => e.getBoundingClientRect().left >= left && e.getBoundingClientRect().left < right - 60;
      const texts = [...box.querySelectorAll(".node text")];
      const circles = [...box.querySelectorAll(".node circle")];
      const far = Math.max(...circles.map((e) => e.getBoundingClientRect().right - left + box.scrollLeft));
      return [texts.length, texts.every(inside), circles.every(inside), far <= box.scrollWidth];
    }"""
    sight = opened()
    panel = sight.view("Tree")
    panel.locator(".node.cursor").wait_for()
    for width in (1280, 390):
        sight.page.set_viewport_size({"width": width, "height": 800})
        for place in (0, 0.5, 1):
            panel.locator(".tree-box").evaluate("(e, at) => { e.scrollTop = at * e.scrollHeight }", place)
            until(lambda: panel.locator(".node").count() > 10)
            labels, read, found, inside = sight.page.evaluate(seen)
            assert labels > 10 and read and found and inside, (width, place)


def test_hostile_text_stays_text(store: Store, root: Path, opened: Open) -> None:
    """Markup, control characters and marks that turn the direction of text are shown, never obeyed."""
    evil = "<img src=x onerror=window.hit=1><script>window.hit=1</script>"
    story = Story(store, root)
    story.turn(
        f"{evil}\u202egnp.exe", {"<b>x<script>.txt": f"{evil}\n"}, reply=evil, thinking=[evil], shell=[(evil, evil)]
    )
    store.session("x").begin(evil)
    story.undo(1)
    story.turn("Other", {"\u202etxt.exe": "1\n", "two\nlines\u2028.txt": "2\n"}, reply="\x1b[31mred")
    sight = opened()
    sight.says(sight.turn(1), "⟨202E⟩txt.exe", "␛[31mred", "two␊lines⟨2028⟩.txt")
    sight.page.locator(".start .fork-mark").click()
    sight.says(sight.dialog(), f"{evil}⟨202E⟩gnp.exe")
    sight.dialog().locator(".file summary").click()
    sight.dialog().locator(".diff .new").first.wait_for()
    sight.page.keyboard.press("Escape")
    for view in ("Tree", "Branches", "Checkpoints", "Statistics"):
        sight.view(view)
    sight.page.get_by_role("searchbox").fill("<script>")
    sight.says(sight.page.locator("#panel"), "for “<script>”")
    assert sight.page.evaluate("window.hit") is None
    assert sight.page.locator("#page img, #page script, #sidebar img").count() == 0


def test_a_record_that_is_not_as_it_should_be(store: Store, root: Path, opened: Open) -> None:
    """It is a note that anyone can write: the page shows what it can of it, and all the rest."""
    session = store.session("odd")
    for number, calls in enumerate(([None], [{"file_path": 5, "input": {"command": {"a": 1}}}], ["text"]), 1):
        session.begin(f"Odd {number}")
        (root / f"{number}.txt").write_text("x\n")
        session.end(scan=True, tool_calls=calls, unknown=[None], thinking=[None], replies=[7])
    sight = opened()
    for number in (1, 2, 3):
        sight.says(sight.turn(number), f"Odd {number}", f"{number}.txt")
    sight.button("Undo", sight.restore(1)).click()
    sight.page.get_by_text("↩ 2 turns undone").wait_for()


def test_a_text_too_large_to_compare_is_not_called_binary(story: Story, opened: Open) -> None:
    story.turn("Large", {"large.txt": "line\n" * 1_000_000})
    sight = opened()
    turn = sight.turn(6)
    sight.says(turn, "large.txt too large to compare")
    turn.get_by_text("large.txt").last.click()
    sight.says(turn, "Too large to compare line by line: nothing became 5.0 MB.")


def test_a_line_without_end_is_cut_where_it_changed(story: Story, opened: Open) -> None:
    story.turn("Minified", {"min.js": "var a;" * 50_000 + "old()" + "var b;" * 50_000 + "\n"})
    story.turn("Changed", {"min.js": "var a;" * 50_000 + "fresh()" + "var b;" * 50_000 + "\n"})
    sight = opened()
    sight.turn(7).locator(".file summary").click()
    added = sight.turn(7).locator("td.code.new")
    sight.says(added, "fresh()", "299,800 characters …", "characters more")
    assert len(added.inner_text()) < 2_200


def test_the_way_back_is_the_browsers(story: Story, opened: Open, root: Path) -> None:
    other = story.store.session("other")
    with other.turn("Another session"):
        (root / "o.txt").write_text("o\n")
    sight = opened()
    sight.page.locator(f"[data-session='{story.name}']").click()
    sight.turn(5).get_by_text("Reply 5").wait_for()
    sight.page.locator("[data-session='other']").click()
    sight.turn(1).get_by_text("Another session").wait_for()
    sight.page.go_back()
    sight.turn(5).get_by_text("Reply 5").wait_for()
    sight.page.go_forward()
    sight.turn(1).get_by_text("Another session").wait_for()
    # Neither a question nor what was found belongs to the session that comes.
    sight.page.get_by_role("searchbox").fill("Another")
    sight.says(sight.page.locator("#panel"), "Another session")
    sight.page.go_back()
    sight.turn(5).get_by_text("Reply 5").wait_for()
    sight.button("Undo last turn").click()
    sight.dialog().wait_for()
    sight.page.go_forward()
    sight.turn(1).get_by_text("Another session").wait_for()
    assert sight.page.locator("dialog").count() == 0


def test_turns_of_another_machine_say_so(tmp_path: Path, chromium: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = bare(tmp_path / "hub.git")
    ada = Machine(tmp_path, "ada").init(poem="roses\n").remote(hub)
    ada.turn("Add violets", poem="roses\nviolets\n")
    ada.push()
    bob = Machine(tmp_path, "bob")
    bob.clone(hub)
    monkeypatch.setenv("SNAPSTORE_HOME", str(bob.home))
    with serving(bob.root) as url, closing(chromium.new_context(viewport=VIEW)) as context:
        sight = Sight(context, url)
        sight.turn(1).get_by_text("Add violets").wait_for()
        shown = sight.page.locator("#sessions .owner, #panel .owner")
        sight.view("Branches")
        until(lambda: shown.count() > 0)
        assert shown.first.get_attribute("title") == "Of the machine ada"


def test_a_server_that_goes_is_told(story: Story, root: Path, chromium: Any) -> None:
    """The page says that nobody answers, and how to go on; what it shows stays. `snapstore ui` starts it as typed."""
    context = chromium.new_context(viewport=VIEW)
    with command(root) as url:
        sight = Sight(context, url)
        sight.turn(5).get_by_text("Reply 5").wait_for()
    sight.toast("The server does not answer.")
    assert "Prompt 5" in sight.text(sight.turn(5))
    context.close()


def asked_for(sight: Sight) -> list[str]:
    """What a load of the page asks the server for."""
    asked: list[str] = []

    def listen(request: Any) -> None:
        asked.append(request.url)

    sight.page.on("request", listen)
    sight.page.reload()
    sight.page.locator("#timeline .turn .prompt").first.wait_for()
    sight.page.wait_for_selector("body[data-live=on]")
    sight.page.remove_listener("request", listen)
    return [url for url in asked if "/api/" in url]


SCROLLING = """async ([where, rows]) => {
    const box = document.querySelector(where);
    const last = box.scrollTop;
    let most = 0;
    for (let step = 0; step < 30; step += 1) {
        box.scrollTop -= 2000 + step * 997;
        await new Promise(requestAnimationFrame);
        most = Math.max(most, box.querySelectorAll(rows).length);
    }
    return [most, last - box.scrollTop > 10000];
}"""


def test_ten_thousand_turns(story: Story, opened: Open) -> None:
    """S3-30, S3-32: the first screen asks for no more than with few turns; only what is seen is in the document, from
    there to the last turn, and while it is scrolled; so with the tree. How long it takes: `scripts/bench page`."""
    sight = opened()
    page = sight.page
    few = asked_for(sight)
    many_turns(story, 9_995)
    many = asked_for(sight)
    assert {url.partition("?")[0] for url in many} == {url.partition("?")[0] for url in few}
    assert 0 < len(re.findall("[0-9a-f]{40}", "".join(many))) < 60, "details of what is seen only"
    sight.turn(10_000).get_by_text("Prompt 10000").wait_for()
    most, far = page.evaluate(SCROLLING, ["#timeline", "article"])
    assert far and 0 < most < 40
    page.locator("details.counter summary").click()
    page.get_by_label("Turn number").fill("5000")
    page.locator(".turn-list .goto", has_text="Prompt 5000").click()
    sight.turn(5000).get_by_text("Prompt 5000").wait_for()
    panel = sight.view("Tree")
    panel.locator(".node").first.wait_for()
    most, far = page.evaluate(SCROLLING, [".tree-box", ".node, .edge"])
    assert far and 0 < most < 400


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_anybodys_way(forked: Story, opened: Open, scheme: str) -> None:
    """axe-core finds no serious fault, in either theme, in any view; undone turns are dimmed on purpose (S0-35)."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    sight = opened(color_scheme=scheme, viewport={"width": 1280, "height": 900})

    def faults() -> list[str]:
        found = axe.Axe().run(sight.page, options={"resultTypes": ["violations"]}).response["violations"]
        return [
            f"{one['id']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
            for one in found
            if one["impact"] in ("serious", "critical") or one["id"] == "heading-order"
        ]

    sight.turn(3).get_by_text("Went the third way").wait_for()
    assert faults() == []
    sight.turn(2).locator(".fork-mark").click()
    sight.dialog().get_by_text("Reply 5").wait_for()
    assert faults() == []
    sight.button("Redo entire branch", sight.dialog()).click()
    sight.says(sight.dialog(), "Will be written")
    assert faults() == []
    sight.button("Cancel", sight.dialog()).click()
    sight.page.keyboard.press("Escape")
    for view in ("Tree", "Branches", "Statistics") if scheme == "light" else ("Tree",):
        sight.view(view)
        assert faults() == []


def test_the_drawer_takes_the_keys_and_gives_them_back(story: Story, opened: Open) -> None:
    """With motion, as most people have it."""
    sight = opened(viewport={"width": 360, "height": 700}, reduced_motion="no-preference")
    sidebar = sight.page.locator("#sidebar")
    sight.button("Sessions").click()
    sidebar.wait_for()
    assert sight.page.evaluate("document.querySelector('#sidebar').contains(document.activeElement)")
    sight.page.keyboard.press("Escape")
    sidebar.wait_for(state="hidden")
    assert sight.button("Sessions").evaluate("e => e === document.activeElement")
    sight.button("Undo last turn").click()
    sight.dialog().wait_for()


def test_a_phone_and_the_other_theme(forked: Story, opened: Open) -> None:
    """Narrow: nothing sticks out, sessions come as a drawer, a turn is undone all the same. The theme can be chosen."""
    sight = opened(viewport={"width": 360, "height": 700}, has_touch=True)
    wide = "document.documentElement.scrollWidth"
    assert sight.page.evaluate(wide) <= 360
    sight.turn(2).locator(".fork-mark").click(trial=True)  # in view; tried again when the page draws itself anew
    assert not sight.page.locator("#sidebar").is_visible()
    sight.button("Sessions").click()
    sight.page.locator("#sidebar").wait_for()
    background = "getComputedStyle(document.body).backgroundColor"
    light = sight.page.evaluate(background)
    theme = sight.page.locator("#theme")
    theme.click()
    theme.click()
    assert sight.page.evaluate(background) != light
    sight.page.keyboard.press("Escape")
    sight.button("Undo last turn").click()
    sight.button("Undo", sight.dialog()).click()
    sight.page.get_by_text("↩ 1 turn undone").wait_for()
    box = sight.page.locator("#redo-bar").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 360
    assert sight.page.evaluate(wide) <= 360


def test_a_renamed_file_is_one_row_with_both_its_paths(story: Story, opened: Open) -> None:
    lines = "".join(f"line {number}\n" for number in range(20))
    story.turn("Make it", {"sub/old_name.py": lines})
    story.turn("Rename it", {"sub/old_name.py": None, "new_name.py": lines.replace("line 3\n", "line three\n")})
    sight = opened()
    turn = sight.turn(7)
    assert [sight.text(row) for row in turn.locator(".file").all()] == [
        "R renamed sub/ old_name.py → new_name.py +1 −1",
    ]
    turn.locator(".file summary").click()
    turn.locator(".diff .new").first.wait_for()
    assert turn.locator("td.code.old").all_inner_texts() == ["line 3"]
    assert turn.locator("td.code.new").all_inner_texts() == ["line three"]
