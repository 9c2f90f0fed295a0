"""Edit an agent's file of hooks, ours among others: `{"hooks": {event: [entry, …]}}`.

An entry is a handler, or a group of handlers for the tools that match the group's matcher. A handler is ours if its
command is one that `connect` writes. Every other handler is foreign, and stays unchanged and in its place.
"""

from __future__ import annotations

from snapstore.agents.install.json_edit import Style, append, apply, document, has_comments, remove, replace
from snapstore.agents.install.jsonc import BLANK, MARK, Node, Unreadable, line_of, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from snapstore.agents.install.json_edit import Edit


class HookFile:
    """The hooks we write into such a file.

    `events` maps each event to a function that makes its entry for a command. `extras` are keys that the file must have
    besides its hooks.
    """

    __slots__ = ("_events", "_extras", "_field", "_is_ours")

    def __init__(
        self,
        events: Mapping[str, Callable[[str], dict[str, Any]]],
        is_ours: Callable[[str], bool],
        *,
        field: str = "command",
        extras: Mapping[str, Any] | None = None,
    ) -> None:
        self._events = events
        self._is_ours = is_ours
        self._field = field
        self._extras = extras or {}

    def connected(self, text: str) -> str | None:
        """Return the command our handlers run, or None if there are none."""
        hooks = _hooks(text, parse(text))
        for entry in self._entries(hooks):
            if entry.ours:
                return str(entry.handlers[entry.ours[0]].value[self._field])
        return None

    def merged(self, text: str | None, command: str) -> str:
        """Return the text with each of our hooks in it exactly once and up to date."""
        wanted = {event: make(command) for event, make in self._events.items()}
        fresh = {**self._extras, "hooks": {event: [entry] for event, entry in wanted.items()}}
        if text is None:
            return document(fresh, Style()) + "\n"
        root = parse(text)
        if root is None:
            return _begun(text, fresh)
        edits = self._corrected(text, root, wanted)
        if edits:
            text = apply(text, edits)
            root = parse(text)
            assert root is not None
        return apply(text, self._completed(text, root, wanted))

    def without(self, text: str) -> str:
        """Return the text without our hooks, and without containers that become empty."""
        return apply(text, self._corrected(text, parse(text), {}))

    def _corrected(self, text: str, root: Node | None, wanted: Mapping[str, Any]) -> list[Edit]:
        """Return edits that leave at most one entry of ours per event, a correct one."""
        hooks = _hooks(text, root)
        if root is None or hooks is None:
            return []
        style = Style(text, root)
        edits: list[Edit] = []
        leaving: dict[str, set[int]] = {}
        settled: set[str] = set()
        for entry in self._entries(hooks):
            if not entry.ours:
                continue
            if len(entry.ours) < len(entry.handlers):
                edits += remove(text, entry.node.parts[entry.node.keys.index("hooks")], entry.ours)
            elif entry.event in wanted and entry.event not in settled:
                settled.add(entry.event)
                if entry.node.value != wanted[entry.event]:
                    edits += replace(text, entry.node, wanted[entry.event], style)
            else:
                leaving.setdefault(entry.event, set()).add(entry.index)
        emptied: set[int] = set()
        for event, indexes in leaving.items():
            at = hooks.keys.index(event)
            if len(indexes) == len(hooks.parts[at].parts) and not has_comments(text, hooks.parts[at]):
                emptied.add(at)
            else:
                edits += remove(text, hooks.parts[at], indexes)
        if emptied and len(emptied) == len(hooks.parts) and not has_comments(text, hooks):
            return remove(text, root, [root.keys.index("hooks")])
        return edits + (remove(text, hooks, emptied) if emptied else [])

    def _completed(self, text: str, root: Node, wanted: Mapping[str, Any]) -> list[Edit]:
        """Return edits that add what is missing."""
        style = Style(text, root)
        hooks = _hooks(text, root)
        pieces: list[tuple[str | None, Any]] = []
        for key, value in self._extras.items():
            found = _member(text, root, key)
            if found is None:
                pieces.append((key, value))
            elif found.value != value:
                raise Unreadable(f'"{key}" is not {value}, so this is another kind of file', _line(text, found))
        if hooks is None:
            lists = {event: [entry] for event, entry in wanted.items()}
            return append(text, root, [*pieces, ("hooks", lists)], style)
        edits = append(text, root, pieces, style) if pieces else []
        present = {entry.event for entry in self._entries(hooks) if entry.ours}
        missing: list[tuple[str | None, Any]] = []
        for event, value in wanted.items():
            at = _member(text, hooks, event)
            if at is None:
                missing.append((event, [value]))
            elif not isinstance(at.value, list):
                raise Unreadable(f'"{event}" is not a list of hooks', _line(text, at))
            elif event not in present:
                edits += append(text, at, [(None, value)], style)
        return edits + (append(text, hooks, missing, style) if missing else [])

    def _entries(self, hooks: Node | None) -> Iterator[_Entry]:
        for event, node in zip(hooks.keys, hooks.parts, strict=True) if hooks else ():
            if isinstance(node.value, list):
                for index, part in enumerate(node.parts):
                    handlers = _handlers(part)
                    ours = [at for at, handler in enumerate(handlers) if self._ours(handler.value)]
                    yield _Entry(event, index, part, handlers, ours)

    def _ours(self, handler: Any) -> bool:
        command = handler.get(self._field) if isinstance(handler, dict) else None
        return isinstance(command, str) and self._is_ours(command)


class _Entry:
    """One entry of an event: its handlers, and the indexes of those that are ours."""

    __slots__ = ("event", "handlers", "index", "node", "ours")

    def __init__(self, event: str, index: int, node: Node, handlers: list[Node], ours: list[int]) -> None:
        self.event = event
        self.index = index
        self.node = node
        self.handlers = handlers
        self.ours = ours


def _handlers(entry: Node) -> list[Node]:
    if isinstance(entry.value, dict) and "hooks" in entry.keys:
        group = entry.parts[entry.keys.index("hooks")]
        return group.parts if isinstance(group.value, list) else []
    return [entry]


def _hooks(text: str, root: Node | None) -> Node | None:
    """Return the object that holds the hooks, or None."""
    if root is None:
        return None
    if not isinstance(root.value, dict):
        raise Unreadable("the settings are not an object", _line(text, root))
    hooks = _member(text, root, "hooks")
    if hooks is None:
        return None
    if not isinstance(hooks.value, dict):
        raise Unreadable('"hooks" is not an object', _line(text, hooks))
    if len(hooks.value) < len(hooks.keys):
        for event in hooks.value:
            _member(text, hooks, event)  # raises for the duplicate key
    return hooks


def _member(text: str, node: Node, key: str) -> Node | None:
    found = [part for name, part in zip(node.keys, node.parts, strict=True) if name == key]
    if len(found) > 1:
        raise Unreadable(f'"{key}" occurs here a second time', _line(text, found[1]))
    return found[0] if found else None


def _line(text: str, node: Node) -> int:
    return line_of(text, node.begin)


def _begun(text: str, fresh: Any) -> str:
    """Return a text without any value completed with a document, after its comments."""
    style = Style(text)
    head = text.rstrip(BLANK)
    tail = text[len(head) :]
    if head in ("", MARK):
        return head + document(fresh, style) + tail
    return head + style.newline + document(fresh, style) + (tail or style.newline)
