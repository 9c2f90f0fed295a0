"""Redact turn records: remove what was written to or read from given files.

A record repeats what a turn did to files several times: in the tool calls with their results, and in the raw lines of
the conversation. Where these mention a redacted file, their content is blanked. Roles, times and order stay, so that
the conversation can still be read and continued. Fragments of the files' own content (see `fragments`) are redacted
wherever they occur, also in prompts and replies.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from snapstore.timeline.record.fragments import FragmentSearch

FORGOTTEN = "[forgotten]"

# Fields that a blanked raw line keeps.
_KEPT = {
    *("type", "subtype", "kind", "role", "name", "model", "version", "status", "stop_reason", "is_error"),
    *("id", "uuid", "parentUuid", "logicalParentUuid", "leafUuid", "messageID", "tool_use_id", "call_id", "callID"),
    *("sessionId", "sessionID", "session_id", "promptId", "requestId", "timestamp", "time", "cwd", "gitBranch"),
    *("userType", "file_path", "filePath", "path", "notebook_path", "target_file", "absolute_path"),
}
# Of these, the fields that link and locate a conversation; they are not searched for fragments.
_LINKING = _KEPT - {"id", "name", "path", "kind", "status", "time"}
# Fields of a record that hold no part of the conversation, or that have their own treatment.
_STRUCTURE = {
    *(
        "lines",
        "tool_calls",
        "format",
        "kind",
        "seq",
        "agent",
        "session",
        "origin",
        "status",
        "found_by",
        "of",
        "turn",
        "exit_status",
        "modes",
    ),
    *("started_at", "ended_at", "empty_folders", "left_folders", "left_out", "first_seen", "user_git"),
}
_LINKS = ("tool_use_id", "call_id", "callID", "id", "toolCallId")
_ARGUMENTS = ("input", "arguments", "args", "state")
_TOOL_WORDS = ("tool", "function", "exec", "output", '"input"', "patch", "attachment", "snapshot")
_WORD = re.compile(r"[^\s\"'`;|&<>(){}=:,\\]+")


class Redactor:
    """Redacts records for the files below a root that `matches` accepts.

    `patterns` are the patterns behind `matches` and serve as a fast first check. `names` are files that a conversation
    may mention by their last path part alone; the default is the names that the patterns spell out.
    """

    def __init__(
        self,
        root: bytes,
        matches: Callable[[bytes], bool],
        patterns: Iterable[str],
        fragments: Iterable[str] = (),
        names: Iterable[bytes] | None = None,
    ) -> None:
        self._root = os.fsdecode(root.rstrip(b"/")) + "/"
        self._matches = matches
        hints = [_hint(pattern) for pattern in patterns if not pattern.startswith("!")]
        self._hints = [*dict.fromkeys(hints)] if all(hints) else [""]
        spelled = (_last_part(pattern) for pattern in patterns) if names is None else map(os.fsdecode, names)
        self._names = {name.rpartition("/")[2] for name in spelled if name}
        self._fragments = FragmentSearch(fragment for fragment in fragments if fragment not in self._root)
        self._candidates = self._fragments.all  # the fragments that the current record may contain

    def record(self, record: dict[str, Any], text: bytes | None = None) -> dict[str, Any]:
        """Return the redacted record, or the same object where there is nothing to redact.

        `text` is the record as stored. Searching it once rules out most fragments.
        """
        self._candidates = self._fragments.all
        if text is not None:
            self._candidates = self._fragments.within(text)
            if not self._candidates and not any(_encoded(hint) in text for hint in self._hints):
                return record
        changed = dict(record)
        calls = record.get("tool_calls")
        ids: set[str] = set()
        if isinstance(calls, list):
            changed["tool_calls"] = [self._call(call, ids) for call in calls]
        lines = record.get("lines")
        if isinstance(lines, list):
            read = [_plain_json(line) if self._is_suspect(line, ids) else None for line in lines]
            for value in read:
                if value is not None:
                    self._link(value, ids)
            # Results come after the calls they are linked to, and some calls are known only now.
            changed["lines"] = [
                self._line(line, _plain_json(line) if value is None and _holds(line, ids) else value, ids)
                for line, value in zip(lines, read, strict=True)
            ]
        for key, value in changed.items():
            if key not in _STRUCTURE:
                changed[key] = self._without_fragments(value)
        return changed if changed != record else record

    def text(self, text: str) -> str:
        """Return a text without the fragments, also in their JSON-encoded forms."""
        for fragment in self._candidates:
            if fragment.part in text:
                for spelled in _spellings(fragment.piece):
                    if spelled in text:
                        text = fragment.replaced(text, spelled, FORGOTTEN)
        return text

    def message(self, text: str) -> str:
        """Return a text without the fragments; for texts outside of records."""
        self._candidates = self._fragments.within(text.encode("utf-8", "replace"))
        return self.text(text)

    def _call(self, call: Any, ids: set[str]) -> Any:
        if not isinstance(call, dict):
            return self._without_fragments(call)
        if not self._is_about(call):
            return self._without_fragments(call)
        if isinstance(call.get("id"), str):
            ids.add(call["id"])
        return _blank(call)

    def _is_suspect(self, line: Any, ids: set[str]) -> bool:
        if not isinstance(line, str):
            return False
        hinted = any(hint in line for hint in self._hints)
        return hinted or _holds(line, ids) or any(fragment.part in line for fragment in self._candidates)

    def _line(self, line: Any, value: Any, ids: set[str]) -> Any:
        if not isinstance(line, str) or (value is None and not self._is_suspect(line, ids)):
            return line
        if value is None:  # not JSON: the line has no parts to treat separately
            return self.text(line) if not self._names_file(line) else ""
        linked = _holds(line, ids)
        if linked or (any(word in line for word in _TOOL_WORDS) and self._is_about(value)):
            return _dumped(_blank(value), line)
        scrubbed = self._without_fragments(value)
        return _dumped(scrubbed, line) if scrubbed != value else line

    def _link(self, value: Any, ids: set[str]) -> None:
        """Add to `ids` the ids of tool calls that are about one of the files."""
        for found in _dicts(value):
            names = [found[key] for key in _LINKS if isinstance(found.get(key), str)]
            if names and any(key in found for key in _ARGUMENTS) and self._is_about(found):
                ids.update(names)

    def _is_about(self, value: Any) -> bool:
        return any(self._names_file(text) for text in _strings(value))

    def _names_file(self, text: str) -> bool:
        """Return whether a text names one of the files."""
        if not any(hint in text for hint in self._hints):
            return False
        nested = _plain_json(text) if text[:1] in "{[" else None
        if nested is not None and self._is_about(nested):
            return True
        return any(self._is_file_name(word) for word in (text, *_WORD.findall(text)) if len(word) < 4096)

    def _is_file_name(self, word: str) -> bool:
        name = word.removeprefix(self._root).removeprefix("./").rstrip("/.,!?*")
        if not name or "\n" in name:
            return False
        if name.rpartition("/")[2] in self._names:
            return True
        if name.startswith("/") or ".." in name.split("/"):
            name = name.rpartition("/")[2]
        try:
            return bool(name) and self._matches(os.fsencode(name))
        except (ValueError, UnicodeError):
            return False

    def _without_fragments(self, value: Any) -> Any:
        if not self._candidates:
            return value
        if isinstance(value, str):
            nested = _plain_json(value) if value[:1] in ("{", "[") else None
            if nested is None:
                return self.text(value)
            scrubbed = self._without_fragments(nested)
            return _dumped(scrubbed, value) if scrubbed != nested else value
        if isinstance(value, list):
            return [self._without_fragments(one) for one in value]
        if isinstance(value, dict):
            return self._fields(value)
        return value

    def _fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Redact keys and values; linking fields stay, and no two keys become the same."""
        made: dict[str, Any] = {}
        for key, value in fields.items():
            name = told = self.text(key)
            while name in made or (name != key and name in fields):
                name = f"{told} {len(made)}"
            made[name] = value if key in _LINKING and isinstance(value, str) else self._without_fragments(value)
        return made


def _blank(value: Any, key: str = "") -> Any:
    """Return the same structure with every text blanked except the fields in `_KEPT`."""
    if isinstance(value, str):
        return value if not value or (key in _KEPT and len(value) < 4096) else FORGOTTEN
    if isinstance(value, list):
        return [_blank(one, key if key != "content" else "") for one in value]
    if isinstance(value, dict):
        return {name: _blank(one, name) for name, one in value.items()}
    return value


def _dumped(value: Any, line: str) -> str:
    end = line[len(line.rstrip("\r\n")) :]
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + end


def nested_json(text: Any, pairs: Callable[[Any], Any] | None = None) -> Any:
    """Parse a text that is JSON: a raw line of a conversation, or a tool's input.

    `pairs` builds the value of an object from its fields; two fields may have the same name.
    """
    if not isinstance(text, str) or text[:1] not in ("{", "["):
        return None
    try:
        found = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def _plain_json(text: Any) -> Any:
    """Parse like `nested_json`, but return None where an object names a field twice.

    A dict would silently drop the first of the two fields.
    """
    return nested_json(text, _once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError
    return fields


def _spellings(fragment: str) -> tuple[str, ...]:
    if fragment.isascii() and not any(c in fragment for c in '"\\/'):
        return (fragment,)
    plain = (fragment, json.dumps(fragment)[1:-1], json.dumps(fragment, ensure_ascii=False)[1:-1])
    return (*plain, *(text.replace("/", "\\/") for text in plain))


def _holds(line: Any, ids: set[str]) -> bool:
    return isinstance(line, str) and any(id in line for id in ids)


def _strings(value: Any) -> Iterable[str]:
    waiting = [value]
    while waiting:
        at = waiting.pop()
        if isinstance(at, str):
            yield at
        elif isinstance(at, list):
            waiting += at
        elif isinstance(at, dict):
            waiting += at.values()


def _dicts(value: Any) -> Iterable[dict[str, Any]]:
    waiting = [value]
    while waiting:
        at = waiting.pop()
        if isinstance(at, dict):
            yield at
            waiting += at.values()
        elif isinstance(at, list):
            waiting += at


def _encoded(hint: str) -> bytes:
    """Return a text as it appears within JSON."""
    return json.dumps(hint)[1:-1].encode()


def _hint(pattern: str) -> str:
    """Return a text that every path matching `pattern` contains; "" for none."""
    last = pattern.rstrip("/").rpartition("/")[2]
    return max(re.split(r"[*?]|\[[^]]*\]|\\", last), key=len)


def _last_part(pattern: str) -> str:
    last = pattern.rstrip("/").rpartition("/")[2]
    plain = re.sub(r"\\(.)", r"\1", last)
    return "" if pattern.startswith("!") or pattern.endswith("/") or re.search(r"(?<!\\)[*?\[]", last) else plain
