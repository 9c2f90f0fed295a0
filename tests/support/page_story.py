"""A story of turns, the page opened on it in a real Chromium, and what the story leaves on disk."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import on_disk
from page_helpers import Sight, Story, browser, serving, until

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


def files_become(root: Path, wanted: Table) -> bool:
    """The page answers before a test can look; the disk is what counts."""

    def are() -> bool:
        try:
            return files(root) == wanted
        except FileNotFoundError:  # written beside, just now
            return False

    until(are)
    return True


def png() -> bytes:
    """One black dot."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")
