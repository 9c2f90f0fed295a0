"""The page, read as a person reads it, in a real Chromium. The words are the requirements' own where they give some."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from machines import Machine, bare
from page_helpers import Sight, Story, command, many_turns, serving, until
from page_story import VIEW, Open, after, chromium, files, files_become, forked, opened, png, story
from test_conversations import Talking, snapstore

import snapstore.web as snapstore_web
from snapstore import Store

__all__ = ["chromium", "forked", "opened", "story"]  # fixtures


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
    sight.says(panel, "sessions", "branches per session", "store size", "The store is healthy.")


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
        assert shown.first.get_attribute("title") == "From the machine ada"


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
