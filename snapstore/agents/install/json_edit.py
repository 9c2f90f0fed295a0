"""Edit a settings file as text: everything that is not ours keeps its bytes.

Each function returns edits for one text; `apply` applies all edits of one text together. Added text follows the layout
of the existing text: the same indentation, line endings and trailing commas, and a single line if the rest is on a
single line.
"""

from __future__ import annotations

import json

from snapstore.agents.install.jsonc import BLANK, MARK, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    Edit = tuple[int, int, str]  # start, end, replacement text
    Piece = tuple[str | None, Any]  # a key (objects only) and a value

INDENT = "  "


class Style:
    """The layout of a text."""

    __slots__ = ("lines", "newline", "spaced", "unit")

    def __init__(self, text: str = "", root: Node | None = None) -> None:
        at = text.find("\n")
        self.newline = "\r\n" if at > 0 and text[at - 1] == "\r" else "\r" if at < 0 and "\r" in text else "\n"
        self.unit, self.lines, self.spaced = INDENT, True, True
        if root is not None and root.parts:
            first = root.parts[0]
            own_line, outer = _own_line(text, first.begin), _line_indent(text, root.start)
            self.unit = INDENT if own_line is None or not own_line.startswith(outer) else own_line[len(outer) :]
            self.lines = _has_lines(text, root.start, root.end)
            self.spaced = self.lines or text[first.start - 1] in BLANK


def apply(text: str, edits: Sequence[Edit]) -> str:
    done: list[str] = []
    at = 0
    for start, end, replacement in sorted(edits, key=lambda edit: edit[:2]):  # stable: equal positions keep their order
        done += (text[at:start], replacement)
        at = end
    return "".join((*done, text[at:]))


def document(value: Any, style: Style) -> str:
    return _written(value, style, "", lines=True)


def append(text: str, container: Node, pieces: Sequence[Piece], style: Style) -> list[Edit]:
    """Return edits that add parts at the end of an object or array."""
    close = container.end - 1
    after = close  # behind the last part or comment
    while text[after - 1] in BLANK:
        after -= 1
    empty = not container.parts
    lines = _has_lines(text, container.start, container.end) or (empty and style.lines)
    edits: list[Edit] = []
    ending = ""
    if not empty and container.commas[-1] < 0:
        edits.append((container.parts[-1].end, container.parts[-1].end, ","))
    elif not empty:
        ending = ","
    outer = _line_indent(text, container.start)
    indent = outer + style.unit
    if not empty:
        own_line = _own_line(text, container.parts[0].begin)
        indent = indent if own_line is None else own_line
    shown = [_piece(piece, style, indent, lines) for piece in pieces]
    if not lines:
        gap = " " if style.spaced else ""
        first = "" if empty and after == container.start + 1 else gap
        edits.append((after, after, first + f",{gap}".join(shown) + ending))
        return edits
    line = style.newline + indent
    added = line + f",{line}".join(shown) + ending
    if empty and not _has_lines(text, after, close):
        edits.append((after, close, added + style.newline + outer))
    else:
        edits.append((after, after, added))
    return edits


def replace(text: str, node: Node, value: Any, style: Style) -> list[Edit]:
    lines = _has_lines(text, node.start, node.end)
    return [(node.start, node.end, _written(value, style, _line_indent(text, node.start), lines=lines))]


def remove(text: str, container: Node, indexes: Collection[int]) -> list[Edit]:
    """Return edits that remove parts, with their commas and blanks; comments stay."""
    edits: list[Edit] = []
    last = len(container.parts) - 1
    for index in indexes:
        part, comma, end = container.parts[index], container.commas[index], _end(text, container, index)
        if comma >= end:  # a comment lies in between
            edits.append((comma, comma + 1, ""))
        start = part.begin
        while text[start - 1] in BLANK:
            start -= 1
        if _in_line_comment(text, container, index, start) and not _line_ends(text, container, index, indexes):
            start = part.begin  # the line of the comment before the part must still end
        edits.append((start, end, ""))
    kept = [index for index in range(last + 1) if index not in indexes]
    if kept and kept[-1] != last and container.commas[last] < 0:
        edits.append((container.commas[kept[-1]], container.commas[kept[-1]] + 1, ""))
    if not kept and not has_comments(text, container):
        return [(container.start + 1, container.end - 1, "")]
    return edits


def has_comments(text: str, container: Node) -> bool:
    """Return whether there are comments between the parts, not within them."""
    at = container.start + 1
    for part in container.parts:
        if "/" in text[at : part.begin]:
            return True
        at = part.end
    return "/" in text[at : container.end - 1]


def _in_line_comment(text: str, container: Node, index: int, at: int) -> bool:
    """Return whether a `//` comment in front of a part ends at this position."""
    start = container.parts[index - 1].end if index else container.start + 1
    return "//" in text[max(start, _line_start(text, at)) : at]


def _end(text: str, container: Node, index: int) -> int:
    """Return the end of a part, including its comma if only blanks lie between."""
    end, comma = container.parts[index].end, container.commas[index]
    return comma + 1 if comma >= 0 and not text[end:comma].strip(BLANK) else end


def _line_ends(text: str, container: Node, index: int, leaving: Collection[int]) -> bool:
    """Return whether a line ends after a part and the removed parts right after it."""
    at = _end(text, container, index)
    while index + 1 in leaving and not text[at : container.parts[index + 1].begin].strip(BLANK):
        index += 1
        at = _end(text, container, index)
    while text[at] in " \t":
        at += 1
    return text[at] in "\r\n"


def _written(value: Any, style: Style, indent: str, *, lines: bool) -> str:
    if lines:
        shown = json.dumps(value, indent=style.unit, ensure_ascii=False)
        return shown.replace("\n", style.newline + indent)
    return json.dumps(value, separators=(", ", ": ") if style.spaced else (",", ":"), ensure_ascii=False)


def _piece(piece: Piece, style: Style, indent: str, lines: bool) -> str:
    key, value = piece
    shown = _written(value, style, indent, lines=lines)
    return shown if key is None else f"{json.dumps(key)}:{' ' if style.spaced else ''}{shown}"


def _own_line(text: str, at: int) -> str | None:
    """Return the indentation of what begins its line; None if it does not.

    The first line of the text does not count.
    """
    start = _line_start(text, at)
    return text[start:at] if start and not text[start:at].strip(" \t") else None


def _line_indent(text: str, at: int) -> str:
    line = text[_line_start(text, at) : at].lstrip(MARK)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _has_lines(text: str, start: int, end: int) -> bool:
    return text.find("\n", start, end) >= 0 or text.find("\r", start, end) >= 0
