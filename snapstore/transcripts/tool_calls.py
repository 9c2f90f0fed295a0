"""Determines what a tool call did to which file.

Agents use different tool names and fields for the same few operations.
"""

from __future__ import annotations

import json

from snapstore.transcripts.lines import clean
from snapstore.transcripts.model import EDIT, OTHER, SHELL, WRITE, ToolCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_EDITS = {
    *("edit", "multiedit", "notebookedit", "replace", "str_replace", "str_replace_editor", "search_replace", "insert"),
    *("strreplace", "edit_file", "editfile", "replace_string_in_file", "smart_edit", "patch"),
    *("replace_in_file", "insert_content", "multi_edit", "notebook_edit", "edit_notebook", "edit_notebook_file"),
}
_WRITES = {"write", "write_file", "create", "create_file", "writefile", "write_to_file", "new_file"}
_SHELLS = {
    *("bash", "shell", "shell_command", "powershell", "run_shell_command", "exec_command", "local_shell"),
    *("run_terminal_cmd", "run_in_terminal", "unified_exec", "container.exec", "write_stdin", "execute_command"),
}
_PATCHES = {"apply_patch", "applypatch"}
_PATH = ("file_path", "filePath", "path", "notebook_path", "target_file", "absolute_path")
_OLD = ("old_string", "oldString", "old_str")
_NEW = ("new_string", "newString", "new_str", "new_source")
_CONTENT = ("content", "file_text", "contents")


def classify(id: str | None, name: str, input: Any) -> list[ToolCall]:
    """Return one tool call as one entry per file."""
    if isinstance(input, str) and name.lower() not in _PATCHES:
        input = _arguments(input)
    kind = name.lower()
    patch = _patch_text(kind, input)
    if patch is not None:
        return _patched(id, name, input, patch) or [ToolCall(id, name, input)]
    fields = input if isinstance(input, dict) else {}
    command = fields.get("command")
    if kind == "str_replace_editor" and command in ("create", "view"):  # one tool with several operations
        kind = "write" if command == "create" else "view"
    if kind in _SHELLS:
        return [ToolCall(id, name, input, SHELL)]
    call = ToolCall(id, name, input)
    call.file_path = _first(fields, _PATH)
    if kind in _WRITES:
        call.type = WRITE
        call.content = _first(fields, _CONTENT)
    elif kind in _EDITS:
        return _edits(call, fields)
    return [call]


def _edits(call: ToolCall, fields: dict[str, Any]) -> list[ToolCall]:
    call.type = EDIT
    several = fields.get("edits")
    if not isinstance(several, list) or not several:
        call.old_string, call.new_string = _first(fields, _OLD), _first(fields, _NEW)
        return [call]
    made = []
    for one in several:
        part = ToolCall(call.id, call.name, call.input, EDIT)
        part.file_path = call.file_path
        if isinstance(one, dict):
            part.old_string, part.new_string = _first(one, _OLD), _first(one, _NEW)
        made.append(part)
    return made


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> str | None:
    found = next((value for name in names if isinstance(value := fields.get(name), str)), None)
    return clean(found) if found is not None else None


def _arguments(text: str) -> Any:
    """Decode a call's arguments, which Codex and Copilot write as JSON in a string."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


# Patches in the format "*** Update File: path", as Codex, Copilot and opencode apply them.


def _patch_text(kind: str, input: Any) -> str | None:
    """Return the patch of a call to the patch tool, or to a shell that runs it."""
    if kind in _PATCHES:
        candidates = [input] if isinstance(input, str) else _strings(input)
    elif kind in _SHELLS and isinstance(input, dict):
        command = input.get("command")
        candidates = command[1:2] if isinstance(command, list) and command[:1] == ["apply_patch"] else []
    else:
        return None
    return next((clean(text) for text in candidates if isinstance(text, str) and "*** Begin Patch" in text), None)


def _strings(input: Any) -> list[str]:
    return [value for value in input.values() if isinstance(value, str)] if isinstance(input, dict) else []


def _patched(id: str | None, name: str, input: Any, patch: str) -> list[ToolCall]:
    made: list[ToolCall] = []
    old: list[str] = []
    new: list[str] = []

    def close() -> None:
        if made and made[-1].type == WRITE:
            made[-1].content = "".join(f"{line}\n" for line in new)
        elif made and made[-1].type == EDIT:
            made[-1].old_string, made[-1].new_string = "\n".join(old), "\n".join(new)
        old.clear()
        new.clear()

    for line in patch.split("\n"):
        if line.startswith("*** "):
            word, _, path = line[4:].partition(": ")
            kind = {"Add File": WRITE, "Update File": EDIT, "Delete File": OTHER}.get(word)
            if kind is not None:
                close()
                made.append(ToolCall(id, name, input, kind))
                made[-1].file_path = path.strip()
        elif line.startswith("+"):
            new.append(line[1:])
        elif line.startswith("-"):
            old.append(line[1:])
        elif line.startswith(" "):
            old.append(line[1:])
            new.append(line[1:])
    close()
    return made
