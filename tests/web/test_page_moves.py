"""Moves on the page, in a real Chromium, with the files on disk looked at afterwards.

C5: no shortcut moves anything. C13: every move is confirmed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from page_helpers import Story, until
from page_story import Open, after, chromium, files, files_become, forked, opened, story
from test_conversations import snapstore

import snapstore.web as snapstore_web
from snapstore import Store

__all__ = ["chromium", "forked", "opened", "story"]  # fixtures


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
    assert "You are at turn 2; 3 turns undone after it." in sight.text(sight.page.locator(".states"))


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
    assert sight.text(dialog).startswith("Revert only turn 2? Its changes are undone, and later turns stay.")
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
    sight.says(dialog.locator(".notice"), "they may no longer match the conversation")
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
    assert sight.button("Undo", dialog).is_disabled()
    assert sight.text(dialog.locator(".why")) == "1 file still unresolved."
    log, five = (dialog.locator("fieldset.conflict", has_text=name) for name in ("log.txt", "f5.txt"))
    log.get_by_text("Show the three sides").click()
    log.locator("figure", has_text="Mine, on disk").get_by_text("my own").wait_for()
    assert log.get_by_label("Merge", exact=True).is_checked(), "a clean merge needs no choice"
    sight.says(log, "Merges cleanly: the file keeps your changes.")
    sight.says(five, "Cannot be merged: deleted on one side, changed on the other.")
    assert five.get_by_label("Merge").count() == 0, "what cannot work is not offered"
    sight.button("Merge, for all", dialog).click()
    sight.says(five, "Cannot be resolved that way: deleted on one side, changed on the other.")
    assert files(root) == mine
    five.get_by_label("Keep mine").check()
    sight.button("Undo", dialog).click()
    sight.says(sight.toast("Undone 1 turn"), "Merged with your changes: log.txt.")
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
    assert "does not exist" not in sight.text(sides) and sight.text(sides).count("exists, but is not text") == 3


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
    sight.says(dialog.locator("fieldset.conflict"), "Cannot be merged: both sides changed the same lines.")
    assert dialog.get_by_label("Merge", exact=True).count() == 0
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
    sight.button("Restore mine…", said).click()
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
        sight.says(dialog, "In progress.")
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
    sight.page.get_by_text("A turn is open: claude is working.").wait_for()
    restore = sight.button("Restore to here", sight.turn(2))
    assert restore.is_disabled() and "A turn is open" in restore.get_attribute("title")
    assert sight.button("Undo last turn").is_disabled()
    bar.wait_for(state="hidden")
    assert "undone" not in sight.text(sight.page.locator("#header"))
    story.session.cancel()
    sight.page.get_by_text("↩ 2 turns undone").wait_for()
    sight.page.locator(".states").get_by_text("2 turns undone").wait_for()
    story.begin("Go on")
    sight.page.get_by_text("A turn is open: claude is working.").wait_for()
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
