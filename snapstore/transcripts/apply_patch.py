"""Parse and apply patches in the format `*** Update File: path`.

Codex, Copilot and opencode use this format. Only exact matches count here. Codex also accepts lines that differ in
blanks; the result of such a patch is reported as unknown.
"""

from __future__ import annotations

from snapstore.transcripts.lines import clean, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ADD, UPDATE, DELETE, MOVE = "Add File", "Update File", "Delete File", "Move to"
BEGIN, END = "*** Begin Patch", "*** End Patch"
PATCH_TOOLS = ("apply_patch", "applypatch", "patch")
_HEADINGS = tuple(f"*** {word}: " for word in (ADD, UPDATE, DELETE, MOVE))


class Hunk:
    """Lines to replace with others, after an optional line of context."""

    __slots__ = ("at_end", "context", "new", "old")

    def __init__(self, context: str = "") -> None:
        self.context = context
        self.old: list[str] = []
        self.new: list[str] = []
        self.at_end = False


class Section:
    """The changes of a patch to one file."""

    __slots__ = ("hunks", "kind", "moved_to", "path")

    def __init__(self, kind: str, path: str) -> None:
        self.kind = kind
        self.path = path
        self.moved_to: str | None = None
        self.hunks: list[Hunk] = []

    @property
    def content(self) -> str:
        """Return the content of an added file."""
        return "".join(f"{line}\n" for hunk in self.hunks for line in hunk.new)

    def forward(self, text: str | None) -> list[str]:
        """Return the result of applying the section; empty if it does not match."""
        if text is None:
            return []
        lines = _lines(text)
        made: list[str] = []
        start = 0
        for hunk in self.hunks:
            at = start
            if hunk.context:
                above = _find_context(lines, hunk.context, at)
                if above is None:
                    return []
                at = above + 1
            if not hunk.old:  # nothing to search for, so the lines are added at the end
                made += lines[start:] + hunk.new
                start = len(lines)
                continue
            last = len(lines) - len(hunk.old)
            found = last if hunk.at_end and lines[last:] == hunk.old and last >= at else _find(lines, hunk.old, at)
            if found is None:
                return []
            made += lines[start:found] + hunk.new
            start = found + len(hunk.old)
        return ["".join(f"{line}\n" for line in [*made, *lines[start:]])]

    def backward(self, text: str | None) -> str | None:
        """Return the file as it was before the section, or None if that is not certain.

        The result is certain if the new lines of each hunk occur exactly once. Codex ends every file that it changes
        with a line ending, and the file is assumed to have had one before.
        """
        if text is None:
            return None
        lines = _lines(text)
        for hunk in reversed(self.hunks):
            if not hunk.new:
                return None
            found = _find(lines, hunk.new, 0)
            if found is None or _find(lines, hunk.new, found + 1) is not None:
                return None
            lines[found : found + len(hunk.new)] = hunk.old
        return "".join(f"{line}\n" for line in lines)


def patch_text(name: str, input: Any) -> str | None:
    """Return the patch of a call to the patch tool, or to a shell that runs it."""
    if name.lower() in PATCH_TOOLS:
        if isinstance(input, str) and input.lstrip().startswith("{"):
            input = parse(input.encode("utf-8", "replace")) or input  # arguments as JSON inside a string
        values = list(input.values()) if isinstance(input, dict) else [input]
    else:
        command = input.get("command") if isinstance(input, dict) else None
        values = command[1:2] if isinstance(command, list) and command[:1] == ["apply_patch"] else []
    return next((clean(value) for value in values if isinstance(value, str) and BEGIN in value), None)


def sections(patch: str) -> list[Section]:
    """Parse a patch into one section per file."""
    made: list[Section] = []
    for line in patch.partition(BEGIN)[2].split("\n"):
        if line.startswith("*** "):
            word, _, path = line[4:].partition(": ")
            if word in (ADD, UPDATE, DELETE):
                made.append(Section(word, path.strip()))
            elif word == MOVE and made:
                made[-1].moved_to = path.strip()
            elif line.startswith("*** End of File") and made and made[-1].hunks:
                made[-1].hunks[-1].at_end = True
        elif made:
            _add_line(made[-1], line)
    return made


def named_files(patch: str) -> list[str]:
    """Return the files a patch names, including the targets of renames.

    Agents accept indented headings. A line of text that looks like a heading adds an extra file name, which does no
    harm because callers only read the named files.
    """
    rows = (row.strip() for row in patch.split("\n"))
    return [row.partition(": ")[2].strip() for row in rows if row.startswith(_HEADINGS)]


def _add_line(section: Section, line: str) -> None:
    if line.startswith("@@"):
        section.hunks.append(Hunk(line[3:] if line[2:].strip() not in ("", "@@") else ""))
        return
    if not section.hunks:
        section.hunks.append(Hunk())
    hunk = section.hunks[-1]
    if line.startswith("+"):
        hunk.new.append(line[1:])
    elif line.startswith("-"):
        hunk.old.append(line[1:])
    elif line.startswith(" "):
        hunk.old.append(line[1:])
        hunk.new.append(line[1:])


def _lines(text: str) -> list[str]:
    found = text.split("\n")
    if not found[-1]:
        del found[-1]
    return found


def _find_context(lines: list[str], context: str, start: int) -> int | None:
    """Find the line of context; ignore differences in blanks, as Codex does."""
    for normalized in (str, str.rstrip, str.strip):
        for at in range(start, len(lines)):
            if normalized(lines[at]) == normalized(context):
                return at
    return None


def _find(lines: list[str], wanted: list[str], start: int) -> int | None:
    for at in range(start, len(lines) - len(wanted) + 1):
        if lines[at : at + len(wanted)] == wanted:
            return at
    return None
