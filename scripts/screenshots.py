"""Tells a small story to a store of its own, opens the page on it in Chromium, and takes its picture."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), *(str(HERE.parent / "tests" / name) for name in ("support", "transcripts"))]

from page_helpers import Sight, Story, browser, serving, until  # noqa: E402

from snapstore import Store  # noqa: E402
from snapstore.transcripts.locate import claude_slug  # noqa: E402

SIZE = {"width": 1280, "height": 860}

STORE = '''"""Shelves and what stands on them."""

from dataclasses import dataclass, field


@dataclass
class Shelf:
    name: str
    books: list[str] = field(default_factory=list)

    def add(self, title: str) -> None:
        self.books.append(title)
'''
REMOVING = (
    STORE
    + '''
    def remove(self, title: str) -> bool:
        """Says whether it was there."""
        if title not in self.books:
            return False
        self.books.remove(title)
        return True
'''
)
SORTED = REMOVING.replace("self.books.append(title)", "bisect.insort(self.books, title)").replace(
    "from dataclasses", "import bisect\nfrom dataclasses"
)
APP = """import json
from pathlib import Path

from shelf import Shelf

FILE = Path("shelf.json")


def load() -> Shelf:
    if not FILE.exists():
        return Shelf("home")
    return Shelf(**json.loads(FILE.read_text()))


def save(shelf: Shelf) -> None:
    FILE.write_text(json.dumps(vars(shelf), indent=2))
"""
ATOMIC = APP.replace(
    "    FILE.write_text(json.dumps(vars(shelf), indent=2))\n",
    '    beside = FILE.with_suffix(".new")\n'
    "    beside.write_text(json.dumps(vars(shelf), indent=2))\n"
    "    beside.replace(FILE)\n",
)
SQL = """import sqlite3

from shelf import Shelf


def load(path: str = "shelf.db") -> Shelf:
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT title FROM books ORDER BY title")
        return Shelf("home", [title for (title,) in rows])
"""
TEST = """from shelf import Shelf


def test_a_book_comes_and_goes():
    shelf = Shelf("home", ["Emma"])
    shelf.add("Ulysses")
    assert shelf.remove("Emma")
    assert shelf.books == ["Ulysses"]
"""


def tell(story: Story, root: Path) -> None:
    """Two ways to keep a shelf of books: first in a database, then, once that is undone, in a file."""
    story.turn(
        "Start a small library program: shelves that hold books.",
        {"shelf.py": STORE, "README.md": "# Shelf\n\nBooks, and where they stand.\n"},
        reply="I made `shelf.py` with a `Shelf` that has a name and its books. Adding a book appends it.",
        thinking=["A dataclass is enough here. Persistence can wait until it is asked for."],
    )
    story.turn(
        "Books should be removable too. Tell me whether the book was there.",
        {"shelf.py": REMOVING, "test_shelf.py": TEST},
        reply="`Shelf.remove` takes a book out and says whether it was there. A test shows both ways.",
        shell=[("pytest -q", "1 passed in 0.01s")],
    )
    (root / "README.md").write_text("# Shelf\n\nBooks, and where they stand. Ask Ada before changing the format.\n")
    story.turn(
        "Keep the shelf between runs.",
        {"storage.py": SQL, "schema.sql": "CREATE TABLE books (title TEXT PRIMARY KEY);\n"},
        reply="The shelf now lives in SQLite. `storage.load` reads it, sorted by title.",
        thinking=["SQLite is in the standard library, and keeps its promises when the machine goes down."],
        shell=[("python -c 'import storage'", "")],
    )
    story.turn("Add a migration for old shelves.", {"migrate.py": SQL + "\n# 1 -> 2\n"}, reply="`migrate.py` does it.")
    story.undo(2)
    story.turn(
        "Keep the shelf between runs, but in a plain JSON file I can read.",
        {"app.py": APP},
        reply="`app.py` loads and saves `shelf.json`. A shelf that is not there yet starts empty.",
        thinking=["The database was more than was wanted. One file, readable, no schema."],
    )
    story.turn(
        "Saving must not lose the old file when the disk is full.",
        {"app.py": ATOMIC},
        reply="It is written beside the old one and then takes its place in one step:\n\n"
        "```python\nbeside.replace(FILE)\n```\n\nUntil then the old file is untouched.",
        shell=[("pytest -q", "1 passed in 0.01s")],
    )
    story.turn("Keep the books sorted.", {"shelf.py": SORTED}, reply="`bisect.insort` puts each book in its place.")


def timeline(sight: Sight, root: Path) -> None:
    sight.turn(4).locator(".file summary").first.click()
    sight.turn(4).locator(".diff").wait_for()
    sight.turn(4).scroll_into_view_if_needed()


def undone(sight: Sight, root: Path) -> None:
    sight.button("Undo", sight.restore(3)).click()
    sight.page.get_by_text("↩ 2 turns undone").wait_for()
    sight.page.locator(".toast").get_by_role("button", name="Dismiss").click()
    sight.turn(3).hover()


def confirm(sight: Sight, root: Path) -> None:
    sight.button("Redo All").click()
    sight.says(sight.dialog(), "Will be written")
    sight.dialog().locator(".file summary").first.click()
    sight.dialog().locator(".diff").wait_for()


def branches(sight: Sight, root: Path) -> None:
    sight.page.keyboard.press("Escape")
    sight.turn(2).locator(".fork-mark").click()
    sight.dialog().get_by_text("The shelf now lives in SQLite").wait_for()


def compare(sight: Sight, root: Path) -> None:
    sight.button("Compare with the current line", sight.dialog()).click()
    sight.says(sight.dialog(), "Diverged after turn 2")


def conflict(sight: Sight, root: Path) -> None:
    sight.page.keyboard.press("Escape")
    sight.page.keyboard.press("Escape")
    path = root / "app.py"
    path.write_text(path.read_text().replace('Shelf("home")', 'Shelf("Ada\'s")'))
    sight.button("Redo Next").click()
    dialog = sight.dialog()
    dialog.get_by_text("Show the three sides").click()
    dialog.get_by_label("Merge", exact=True).check()
    until(lambda: not sight.button("Redo", dialog).is_disabled())
    dialog.locator(".sides .block").first.wait_for()


def tree(sight: Sight, root: Path) -> None:
    sight.page.keyboard.press("Escape")
    path = root / "app.py"
    path.write_text(path.read_text().replace('Shelf("Ada\'s")', 'Shelf("home")'))
    sight.view("Tree").get_by_role("button", name="Turn 4: Add a migration").click()
    sight.says(sight.page.locator(".tree-about"), "1 file")


STATES: list[Callable[[Sight, Path], None]] = [timeline, undone, confirm, branches, compare, conflict, tree]


@contextmanager
def somewhere() -> Iterator[str]:
    """A folder whose name can be shown."""
    folder = Path(tempfile.gettempdir()) / "projects"
    folder.mkdir(mode=0o700)
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder)


def shoot(chromium: Any, folder: Path, scheme: str) -> None:
    with somewhere() as scratch:
        os.environ |= {"HOME": scratch, "SNAPSTORE_HOME": f"{scratch}/stores", "GIT_CONFIG_NOSYSTEM": "1"}
        root = Path(scratch).resolve() / "shelf"
        root.mkdir()
        (Path(scratch) / ".claude" / "projects" / claude_slug(str(root))).mkdir(parents=True)
        with Store.open(root, create=True) as store:
            tell(Story(store, root), root)
        with serving(root) as url:
            context = chromium.new_context(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
            sight = Sight(context, url)
            for state in STATES:
                state(sight, root)
                take(sight, folder / f"{state.__name__}-{scheme}.png")
            sight.page.set_viewport_size({"width": 390, "height": 780})
            sight.view("Timeline")
            sight.turn(3).get_by_text("a plain JSON file").wait_for()
            sight.turn(3).scroll_into_view_if_needed()
            take(sight, folder / f"phone-{scheme}.png")
            context.close()


def take(sight: Sight, path: Path) -> None:
    sight.page.wait_for_timeout(300)  # a picture of things at rest
    sight.page.screenshot(path=path)
    print(path)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parent / "docs").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, browser(Path(home)) as chromium:
        for scheme in ("light", "dark"):
            shoot(chromium, folder, scheme)


if __name__ == "__main__":
    main()
