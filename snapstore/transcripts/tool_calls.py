"""Determine what a tool call did to which file.

Agents use different tool names and fields for the same few operations.
"""

from __future__ import annotations

import json

from snapstore.transcripts.apply_patch import ADD, PATCH_TOOLS, UPDATE, patch_text, sections
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
    "run_commands",
}
_PATH = ("file_path", "filePath", "path", "notebook_path", "target_file", "absolute_path")
_OLD = ("old_string", "oldString", "old_str", "old_text")
_NEW = ("new_string", "newString", "new_str", "new_source", "new_text")
_CONTENT = ("content", "file_text", "contents", "new_text")


def classify(id: str | None, name: str, input: Any) -> list[ToolCall]:
    """Return a tool call as one entry per file."""
    if isinstance(input, str) and name.lower() not in PATCH_TOOLS:
        input = _arguments(input)
    kind = name.lower()
    patch = patch_text(name, input)
    if patch is not None:
        return _patched(id, name, input, patch) or [ToolCall(id, name, input)]
    fields = input if isinstance(input, dict) else {}
    command = fields.get("command")
    if kind == "str_replace_editor" and command in ("create", "view"):  # one tool with several operations
        kind = "write" if command == "create" else "view"
    if kind == "editor":  # Cline: without a text to replace, and no line to insert before, the file is written
        kind = "edit" if fields.get("old_text") or fields.get("insert_line") else "write"
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


def _patched(id: str | None, name: str, input: Any, patch: str) -> list[ToolCall]:
    made = []
    for section in sections(patch):
        call = ToolCall(id, name, input, {ADD: WRITE, UPDATE: EDIT}.get(section.kind, OTHER))
        call.file_path = section.path
        if call.type == WRITE:
            call.content = section.content
        elif call.type == EDIT:
            call.old_string = "\n".join(line for hunk in section.hunks for line in hunk.old)
            call.new_string = "\n".join(line for hunk in section.hunks for line in hunk.new)
        made.append(call)
    return made
