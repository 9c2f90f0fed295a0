"""Determine what a tool call may do to files, from its name and arguments."""

from __future__ import annotations

from snapstore.transcripts.tool_names import HARMLESS, REMOVALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Effect:
    """The files a call names (`paths`), and whether it may change others (`scans`)."""

    __slots__ = ("paths", "scans")

    def __init__(self, paths: list[str], scans: bool) -> None:
        self.paths = paths
        self.scans = scans


def is_known(name: str, input: Any) -> bool:
    """Return whether what a tool does is known; tools of MCP servers are the user's own, and need not be."""
    kind = name.lower()
    if kind in HARMLESS or kind in REMOVALS or kind.startswith("mcp__") or "patch" in kind:
        return True
    from snapstore.transcripts.model import OTHER
    from snapstore.transcripts.tool_calls import classify

    return classify(None, name, input)[0].type != OTHER


def effect(name: str, input: Any) -> Effect:
    kind = name.lower()
    if kind in HARMLESS:
        return Effect([], False)
    from snapstore.transcripts.apply_patch import BEGIN, named_files
    from snapstore.transcripts.model import EDIT, SHELL, WRITE
    from snapstore.transcripts.tool_calls import classify

    calls = classify(None, name, input)
    paths = list(dict.fromkeys(call.file_path for call in calls if call.file_path))
    if not paths:
        return Effect([], True)  # a shell, or an unknown tool or arguments
    if "patch" in kind or calls[0].type == SHELL:
        text = next((value for value in _texts(input) if BEGIN in value), "")
        return Effect(list(dict.fromkeys([*paths, *named_files(text)])), not text)
    sure = kind in REMOVALS or all(call.type in (EDIT, WRITE) and call.file_path for call in calls)
    return Effect(paths if sure else [], not sure)


def _texts(input: Any) -> list[str]:
    if isinstance(input, str):
        return [input]
    values = list(input.values()) if isinstance(input, dict) else []
    texts = [text for value in values for text in (value if isinstance(value, list) else [value])]
    return [text for text in texts if isinstance(text, str)]
