"""Branches, rewinds and checkpoints on the page, in a real Chromium."""

from __future__ import annotations

import json
from pathlib import Path

from page_helpers import Story, many_turns, until
from page_story import Open, after, chromium, files, files_become, forked, opened, story
from test_conversations import snapstore

__all__ = ["chromium", "forked", "opened", "story"]  # fixtures


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
    assert "Diverged after turn 2" in sight.text(dialog.locator(".parted"))
    here, there = (sight.text(side) for side in dialog.locator(".side").all())
    assert "1 turn since, 1 file" in here and "Third way" in here and "Went the third way" in here
    assert "3 turns since, 4 files" in there and "Reply 5" in there
    dialog.locator("summary", has_text="log.txt").click()
    dialog.locator(".diff .new").first.wait_for()
    assert dialog.locator(".diff .new mark, .diff td.new").count()


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
    sight.says(dialog, "Turn 3 is before a compaction (at turn 6)")
    create = sight.button("Create Branch", dialog)
    assert create.is_disabled()
    dialog.get_by_label("Branch anyway, from the recorded lines").check()
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
    menu("first-way", "Unarchive")
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
    sight.button("Delete selected", panel).click()
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
    sight.says(panel, "16 branches: above 20, the oldest is archived automatically.")
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


def test_a_press_during_a_redraw_is_a_click(story: Story, opened: Open) -> None:
    """A refresh between press and release does not replace the pressed button, which would lose the click."""
    sight = opened()
    dialog = sight.menu(2, "Checkpoint")
    dialog.get_by_label("Name").fill("works")
    sight.button("Create checkpoint", dialog).click()
    sight.turn(2).locator(".badge", has_text="◆ works").wait_for()
    panel = sight.view("Checkpoints")
    turns = "async () => (await import('./static/state.js')).state.tree.nodes.length"
    before = sight.page.evaluate(turns)
    sight.button("Delete checkpoint works", panel).hover()
    sight.page.mouse.down()
    story.turn("Meanwhile", {"new.txt": "new\n"})
    until(lambda: sight.page.evaluate(turns) > before)
    sight.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    sight.page.mouse.up()
    sight.button("Delete", sight.dialog()).click()
    sight.says(panel, "No checkpoints yet.")


def test_opening_a_session_shows_its_own_turns(story: Story, opened: Open, root: Path) -> None:
    """M-01, M-02, M-03: from the list, by the parent link, by a breadcrumb and by an address with its id, whichever is
    current; its undo undoes its turns, and the line that is left is one click away."""
    fork = json.loads(snapstore(root, "fork", "2", "-y", "--json", "--session", story.name))["fork"]["id"]
    original, story.id = story.id, fork
    story.turn("Another third", {"other.txt": "3\n"})
    current = {**after(2), "other.txt": "3\n"}
    sight = opened()
    turns = sight.page.locator("#timeline .row.turn")
    rewound = sight.page.locator("#header .rewound")

    def shows(last: str, number: int) -> None:
        until(lambda: turns.count() == number and last in sight.text(turns.last))

    shows("Another third", 3)
    sight.page.locator(f"[data-session='{story.name}']").click()
    shows("Prompt 5", 5)
    assert rewound.count() == 0 and sight.page.locator("#header .counter").inner_text().strip() == "Turn 5 of 5"
    sight.page.get_by_text("You stand on another line.").wait_for()
    sight.page.locator(f"[data-conversation='{fork}']").click()
    shows("Another third", 3)
    sight.button("Prompt 1", rewound).click()
    shows("Prompt 5", 5)
    sight.page.locator(f"[data-conversation='{fork}']").click()
    sight.button("Prompt 1", sight.page.locator("#header .crumbs")).click()
    shows("Prompt 5", 5)
    sight.page.reload()
    shows("Prompt 5", 5)
    assert sight.page.url.endswith(f"#{original}")
    assert files(root) == current, "looking moves nothing"
    sight.button("Undo last turn").click()
    sight.says(sight.dialog(), "Undo 1 turn", f"This leaves main-2 for main, the line of {original}.")
    sight.button("Undo", sight.dialog()).click()
    assert files_become(root, after(4))
    sight.page.get_by_text("↩ 1 turn undone").wait_for()
    until(lambda: "current" not in sight.text(sight.page.locator(f"[data-conversation='{fork}']")))
    sight.page.locator(f"[data-conversation='{fork}']").click()
    shows("Another third", 3)
    sight.restore(3).wait_for()
    sight.button("Switch", sight.dialog()).click()
    assert files_become(root, current)
    sight.page.locator(f"[data-conversation='{fork}']", has_text="current").wait_for()
