"""Determine what a tool call did to files, from its arguments and its result.

There is one operation per file. An operation can compute its effect on a file and, if that is certain, the file's state
before (S0-02).
"""

from __future__ import annotations

import re

from snapstore.transcripts.apply_patch import ADD, DELETE, patch_text, sections
from snapstore.transcripts.model import EDIT, SHELL, WRITE
from snapstore.transcripts.outline import get, string
from snapstore.transcripts.tool_names import HARMLESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from snapstore.transcripts.apply_patch import Section
    from snapstore.transcripts.model import ConversationTurn, ToolCall


_HELPERS = ("task", "agent")  # their conversations are in other files
_SHOWN = 80  # characters of a command
_MOST = 16  # possible results of one call that are tracked
_LONGEST = 64 << 20  # characters of a text that an edit may produce
_FAILED = re.compile(r'\s*Exit code: [1-9]|.*"exit_code"\s*:\s*[1-9]|.*apply_patch verification failed', re.DOTALL)
_CREATED = ("File created successfully", "Successfully created and wrote to new file")

NOT_REPLAYED = "an edit of this kind cannot be replayed"
UNANSWERED = "the call has no result, so it may not have run"
NOT_NAMED = "the call names no file"


class State:
    """The content of a file, None if there is no file.

    It is `certain` if the transcript itself contains the whole content.
    """

    __slots__ = ("certain", "text")

    def __init__(self, text: str | None, certain: bool = False) -> None:
        self.text = text
        self.certain = certain


class Replacement:
    """A replacement of one text by another, once or everywhere."""

    __slots__ = ("every", "new", "old", "trims")

    def __init__(self, old: str, new: str, every: bool, trims: bool) -> None:
        self.old = old
        self.new = new
        self.every = every
        self.trims = trims  # Claude Code may also remove the line ending if the new text is empty

    def forward(self, text: str | None) -> list[str]:
        """Return the possible results; empty if the tool would have refused."""
        if not self.old:  # creates a file, or fills an empty one
            return [self.new] if not text else []
        count = text.count(self.old) if text is not None else 0
        if text is None or not count or (count > 1 and not self.every):
            return []
        if len(text) + count * len(self.new) > _LONGEST:
            return []
        made = [text.replace(self.old, self.new)]
        longer = self.old + "\n"
        if self.trims and not self.new and not self.old.endswith("\n") and longer in text:
            made.append(text.replace(longer, ""))
        return made

    def backward(self, text: str | None) -> str | None:
        """Revert the replacement; None unless the new text occurs exactly once."""
        if text is None or not self.old or not self.new:
            return None
        at = text.find(self.new)
        if at < 0 or text.find(self.new, at + 1) >= 0:
            return None
        return text[:at] + self.old + text[at + len(self.new) :]


class Operation:
    """The effect of one call on one file.

    `before` and `after` are states that the transcript contains in full. `why` is the reason the operation cannot be
    replayed.
    """

    __slots__ = ("after", "before", "edits", "path", "why")

    def __init__(self, path: str) -> None:
        self.path = path
        self.before: State | None = None
        self.after: State | None = None
        self.edits: list[Replacement | Section] = []
        self.why = ""

    def outcomes(self, text: str | None) -> list[str | None]:
        """Return all possible results of the operation on a file."""
        if self.after is not None:
            return [self.after.text]
        found: list[str | None] = [text] if self.edits and not self.why else []
        for edit in self.edits:
            found = list(dict.fromkeys(made for one in found for made in edit.forward(one)))
            if len(found) > _MOST:
                return []
        return found

    def source(self, text: str | None) -> State | None:
        """Return the state before the operation from the one after; None if not certain."""
        found = text
        for edit in reversed(self.edits):
            found = edit.backward(found)
            if found is None:
                return None
        fits = bool(self.edits) and not self.why and self.after is None and text in self.outcomes(found)
        return State(found) if fits else None


def operations(turn: ConversationTurn, agent: str) -> tuple[list[Operation], list[str]]:
    """Return a turn's file operations in order, and remarks on unknown effects.

    A remark names a command or a tool call whose changes to files are not known.
    """
    found: list[Operation] = []
    remarks: list[str] = []
    for call, parts in _calls(turn):
        name = call.name.lower()
        patch = patch_text(name, call.input)
        if call.type == SHELL and patch is None:
            remarks.append(f"ran `{_command(call)}`: what it changed is not known")
        elif name in _HELPERS or name.startswith("mcp__"):
            remarks.append(f"called {call.name}: what that changed is not known")
        elif patch is None and call.type not in (EDIT, WRITE):
            if name not in HARMLESS:
                remarks.append(f"called {call.name}: what that changed is not known")
        elif not (call.is_error or (patch is not None and _FAILED.match(call.result or ""))):
            done = _patched(call, patch) if patch is not None else [_operation(call, parts, agent)]
            if call.result is None and call.outcome is None and agent != "cursor":  # Cursor does not store results
                for operation in done:
                    operation.before = operation.after = None
                    operation.why = UNANSWERED
            found += done
    return found, list(dict.fromkeys(remarks))


def _calls(turn: ConversationTurn) -> Iterator[tuple[ToolCall, list[ToolCall]]]:
    """Yield each call once, with all the entries that were made from it."""
    groups: dict[object, list[ToolCall]] = {}
    for number, call in enumerate(turn.tool_calls):
        groups.setdefault((call.id, id(call.input)) if call.id is not None else number, []).append(call)
    return ((parts[0], parts) for parts in groups.values())


def _operation(call: ToolCall, parts: list[ToolCall], agent: str) -> Operation:
    operation = Operation(call.file_path or "")
    outcome = call.outcome if agent == "claude" else None  # other agents use the same names for other things
    operation.before = _before(call, agent)
    if call.name.lower() == "notebookedit":
        operation.after = _whole(get(outcome, "updated_file"))
        operation.why = "" if operation.after is not None else NOT_REPLAYED
    elif call.type == WRITE:
        content = get(outcome, "content")
        by_hand = get(outcome, "userModified") is True and not isinstance(content, str)
        operation.after = None if by_hand else _whole(content if isinstance(content, str) else call.content)
        operation.why = "" if operation.after is not None else "the transcript does not contain all that was written"
    else:
        operation.after = _whole(get(call.outcome, "filediff", "after")) if agent == "opencode" else None
        operation.edits = list(_replacements(call, parts, agent))
        operation.why = "" if operation.edits or operation.after is not None else NOT_REPLAYED
    if not operation.path:
        operation.why = NOT_NAMED
    return operation


def _before(call: ToolCall, agent: str) -> State | None:
    """Return the file's state before the call, according to the call's result.

    An empty text can mean an empty file or no file, unless the file was read.
    """
    outcome, writes = call.outcome, call.type == WRITE
    created = writes and (call.result or "").startswith(_CREATED)
    original: Any = None
    if agent == "claude":
        names = ("originalFile", "originalFileContents", "original_file")
        original = next((text for name in names if isinstance(text := get(outcome, name), str)), None)
        created = created or (writes and get(outcome, "type") == "create")
        if original == "" and call.old_string == "":
            original = None
    elif agent == "opencode":
        original = string(outcome, "filediff", "before")
        created = created or (writes and get(outcome, "exists") is False)
    elif agent == "copilot":
        created = created or call.name == "create"  # Copilot's create refuses to replace a file
    return State(None, True) if created and not original else _whole(original)


def _replacements(call: ToolCall, parts: list[ToolCall], agent: str) -> Iterator[Replacement]:
    trims = agent == "claude"
    if trims:
        old, new = get(call.outcome, "oldString"), get(call.outcome, "newString")
        if len(parts) == 1 and isinstance(old, str) and isinstance(new, str):  # the strings that were actually used
            yield Replacement(old, new, get(call.outcome, "replaceAll") is True or _every(call.input), trims)
            return
        if get(call.outcome, "userModified") is True:
            return
    several = get(call.input, "edits")
    inputs = several if isinstance(several, list) and len(several) == len(parts) else [call.input] * len(parts)
    if any(part.old_string is None or part.new_string is None for part in parts):
        return
    for part, input in zip(parts, inputs, strict=True):
        yield Replacement(part.old_string or "", part.new_string or "", _every(input), trims)


def _every(input: Any) -> bool:
    count = get(input, "expected_replacements")
    several = isinstance(count, int) and count > 1
    return several or any(get(input, name) is True for name in ("replace_all", "replaceAll", "allow_multiple"))


def _patched(call: ToolCall, patch: str) -> list[Operation]:
    made: list[Operation] = []
    folder = string(call.input, "workdir")
    for section in sections(patch):
        operation = Operation(_in(folder, section.path))
        made.append(operation)
        if section.kind == ADD:
            operation.before, operation.after = State(None), State(section.content, True)
        elif section.kind == DELETE:
            operation.after = State(None, True)
        elif section.moved_to is not None:
            operation.after = State(None, True)
            made.append(Operation(_in(folder, section.moved_to)))
            made[-1].why = f"a patch moved it here from {section.path}"
        else:
            operation.edits = [section]
    return made


def _in(folder: str | None, path: str) -> str:
    return f"{folder}/{path}" if folder and not path.startswith("/") else path


def _whole(text: Any) -> State | None:
    """Return a text as a state if it is certainly complete, else None.

    An agent writes bytes that it could not read as U+FFFD, and text that JSON could not hold as a lone surrogate.
    Writing either back would damage the file.
    """
    if not isinstance(text, str) or "\ufffd" in text:
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return State(text, True)


def _command(call: ToolCall) -> str:
    command = get(call.input, "command") or get(call.input, "cmd") or call.name
    if isinstance(command, list):
        words = [word for word in command if isinstance(word, str)]
        command = words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
    line = " ".join(str(command).split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
