"""The diff between two nodes as lines: bounded in size, coloured when in view."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from threading import Event

from textual.content import Content
from textual.highlight import HighlightTheme, highlight

from snapstore.api import Session
from snapstore.base.text import cells, files_text, safe
from snapstore.git.diff.patch import patch
from snapstore.git.diff.patch_lines import SIGNS, DiffLine, walk
from snapstore.surface.describe import change_text
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import FileChange, file_changes
from snapstore.tui.widgets.lines import styled

MOST_LINES = 20_000
MOST_OF_A_FILE = 4_000
LONGEST_LINE = 1_000  # characters: a minified bundle on one line is not readable anyway
BLOCK = 120  # lines that are coloured at once
_TINTS = {"+": "on $success 14%", "-": "on $error 14%"}
_MARKERS = ("<<<<<<< ", "||||||| ", "=======", ">>>>>>> ")
_SIGNS = {"+": "bold $success", "-": "bold $error"}


class Plainer(HighlightTheme):
    """A highlighting theme without underlines: underlined names look like links."""

    STYLES = {  # noqa: RUF012
        token: style.replace(" underline", "") for token, style in HighlightTheme.STYLES.items()
    }


class Block:
    """Lines of one hunk. The two sides are lexed separately.

    Removed lines are not part of the new text.
    """

    __slots__ = ("_coloured", "_language", "signs", "texts")

    def __init__(self, language: str) -> None:
        self._language = language
        self.signs: list[str] = []
        self.texts: list[str] = []
        self._coloured: list[Content] | None = None

    def add(self, sign: str, text: str) -> None:
        body = safe(text.expandtabs(4))
        self.texts.append(body if len(body) <= LONGEST_LINE else body[:LONGEST_LINE] + "…")
        self.signs.append(sign)

    def line(self, at: int) -> Content:
        if self._coloured is None:
            self._coloured = list(self._colour())
        sign = self.signs[at]
        content = Content.assemble((sign, _SIGNS.get(sign, "")), self._coloured[at])
        return content.stylize(_TINTS[sign]) if sign in _TINTS else content

    def _colour(self) -> Iterator[Content]:
        sides = {mark: iter(self._lexed(mark)) for mark in ("-", "+")}
        for sign in self.signs:
            if sign in sides:
                yield next(sides[sign])
            else:
                next(sides["-"])
                yield next(sides["+"])

    def _lexed(self, mark: str) -> list[Content]:
        texts = [text for sign, text in zip(self.signs, self.texts, strict=True) if sign in (mark, " ")]
        if not self._language:
            return [Content(text) for text in texts]
        lines = list(highlight("\n".join(texts), language=self._language, theme=Plainer).split("\n", allow_blank=True))
        lines += [Content("")] * (len(texts) - len(lines))
        plain = all(line.plain == text for line, text in zip(lines, texts, strict=False))
        return lines if plain else [Content(text) for text in texts]


class PatchLines:
    """The lines of a patch. A line is finished content, or an index into a block."""

    def __init__(self) -> None:
        self.files = 0
        self.read_files = 0  # the files read so far; the counts below cover only these
        self.added = 0
        self.removed = 0
        self.widest = 0
        self.headers: list[int] = []  # the line where each file begins
        self._lines: list[Content | tuple[Block, int]] = []

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, at: int) -> Content:
        found = self._lines[at]
        return found if isinstance(found, Content) else found[0].line(found[1])

    def read(self, session: Session, old: bytes, new: bytes, given_up: Event) -> PatchLines:
        """Compare two commits."""
        shadow = session.store.shadow
        changes = file_changes(shadow, shadow.commit(old).tree, shadow.commit(new).tree, renames=True)
        self.files = len(changes)
        history = History(session)
        for number, change in enumerate(changes):
            if given_up.is_set():
                break
            if len(self) >= MOST_LINES:
                self.say(f"… and {files_text(len(changes) - number)} more. `snapstore diff` shows all of it.")
                break
            self._read_file(history, change)
            self.read_files += 1
        if not changes:
            self.say("No differences.")
        for at in range(min(len(self), 2 * BLOCK)):  # prepare the lines that are visible first
            self.line(at)
        return self

    def _read_file(self, history: History, change: FileChange) -> None:
        self.headers.append(len(self))
        self._add(styled((f"{_WORDS.get(change.change, change.change)} {change_text(change)}", "bold")))
        self.add_patch(history.patch([change]), language_of(change.path))
        self._add(Content(""))

    def add_patch(self, lines: Iterable[bytes], language: str) -> PatchLines:
        """Add the patch of one file, in git's format."""
        block, shown = Block(language), 0
        for line in walk(lines):
            text = line.text.decode("utf-8", "replace")
            if line.kind in ("head", "hunk"):
                block = Block(language)
                self._add_head(line, text)
                continue
            self.added += line.kind == "new"
            self.removed += line.kind == "old"
            shown += line.kind != "note"
            if shown <= MOST_OF_A_FILE:
                block = self._add_to(block, line, text, language)
        if shown > MOST_OF_A_FILE:
            self.say(f"… {shown - MOST_OF_A_FILE:,} more lines of this file")
        return self

    def _add_head(self, line: DiffLine, text: str) -> None:
        """Add a header line if it matters to a person: hunks, modes, binary files."""
        if line.kind == "hunk":
            self._add(styled((text, "$accent")))
        elif line.is_binary_remark:
            self.say("binary, or too large to compare")
        elif text.startswith(("old mode", "new mode", "deleted file mode 120000", "new file mode 120000")):
            self.say(text)

    def _add_to(self, block: Block, line: DiffLine, text: str, language: str) -> Block:
        if line.kind == "note":
            self.say(text)
            return block
        if len(block.signs) >= BLOCK:
            block = Block(language)
        block.add(SIGNS[line.kind], text)
        self._lines.append((block, len(block.signs) - 1))
        self.widest = max(self.widest, cells(block.texts[-1]) + 1)
        return block

    def say(self, text: str) -> None:
        self._add(styled((text, "$quiet italic")))

    def _add(self, content: Content) -> None:
        self._lines.append(content)
        self.widest = max(self.widest, content.cell_length)


_WORDS = {"A": "new", "D": "deleted", "M": "changed", "R": "renamed", "T": "changed kind of"}


def language_of(path: bytes) -> str:
    """Return the lexer for a file, by its name alone; empty for plain text.

    Guessing from the content takes longer than reading it.
    """
    from pygments.lexers import get_lexer_for_filename  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        lexer = get_lexer_for_filename(os.fsdecode(os.path.basename(path)))
    except (ClassNotFound, UnicodeError):
        return ""
    return lexer.aliases[0] if lexer.aliases and lexer.aliases[0] != "text" else ""


class TextLines:
    """A whole text, coloured when in view, with conflict markers highlighted."""

    def __init__(self, text: str, language: str) -> None:
        self._lines: list[tuple[Block, int]] = []
        block = Block(language)
        lines = text.removesuffix("\n").split("\n") if text else []
        for line in lines[:MOST_LINES]:
            if len(block.signs) >= BLOCK:
                block = Block(language)
            block.add(" ", line)
            self._lines.append((block, len(block.signs) - 1))
        self.widest = max((cells(part.texts[at]) + 1 for part, at in self._lines), default=0)

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, at: int) -> Content:
        block, place = self._lines[at]
        if block.texts[place].startswith(_MARKERS):
            return styled((f" {block.texts[place]}", "bold $warning"))
        return block.line(place)


def changes_of(old: str, new: str, language: str) -> PatchLines:
    """Return the changes between two texts."""
    before, after = (b"100644", b"\0" * 20), (b"100644", b"\1" * 20)  # any two ids: only the texts are shown
    found = PatchLines().add_patch(patch(b"", before, after, old.encode(), new.encode()), language)
    if not len(found):
        found.say("nothing changed")
    return found
