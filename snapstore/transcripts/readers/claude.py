"""Read Claude Code's transcripts: JSONL lines that form a tree by `parentUuid` (S4-02).

A turn is a prompt with everything below it in the tree, up to the next prompts. A single chain of ancestors would miss
the results of parallel tools, which lie off the chain (in 289 of 532 measured transcripts). The API refuses a copy of
the chain alone: "tool_use ids were found without tool_result blocks".
"""

from __future__ import annotations

import re

from snapstore.transcripts.outline import Filler, Outline, Span, get, string, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Any

    from snapstore.transcripts.lines import Ref
    from snapstore.transcripts.model import ConversationTurn

_METADATA = {
    *("summary", "file-history-snapshot", "file-history-delta", "queue-operation", "last-prompt", "custom-title"),
    *("ai-title", "tag", "agent-name", "agent-setting", "permission-mode", "mode", "pr-link", "bridge-session"),
    *("worktree-state", "content-replacement", "atis-latch", "frame-link", "cost-state", "tools-used"),
    *("api-request", "api-request-shape", "api-request-blob"),
}
_NODES = {"user", "assistant", "system", "progress", "attachment"}
_FLAT = {"user", "assistant", "system", "tool_use"}  # types of lines that programs write without ids
# Texts in user lines that no person typed, or that ask nothing of the agent.
_NOT_TYPED = re.compile(
    r"\s*(<(local-command-stdout|local-command-stderr|local-command-caveat|session-start-hook|tick|goal|bash-stdout|"
    r"bash-stderr|task-notification|ide_opened_file|ide_selection|system-reminder)\b|\[Request interrupted by user)"
)
_INTERRUPTED = "[Request interrupted by user"
_COMMAND = re.compile(r"\s*<(command-name|command-message|bash-input)>")
_TAG = re.compile(r"<(command-name|command-args|bash-input)>(.*?)</\1>", re.DOTALL)
_OTHER_ORIGINS = {"channel", "peer", "task-notification", "coordinator", "auto-continuation"}
_PROMPT, _SLASH, _SPOKEN, _PASSIVE = range(4)


class _Node:
    __slots__ = ("at", "kind", "main", "order", "owner", "parent", "prompt_id", "ref", "uuid")

    def __init__(self, uuid: str, parent: str | None, order: int, ref: Ref) -> None:
        self.uuid = uuid
        self.parent = parent
        self.order = order
        self.ref = ref
        self.kind = _PASSIVE
        self.main = False  # a message of the user or the agent in the conversation itself
        self.prompt_id: str | None = None
        self.at: str | None = None
        self.owner: _Node | None = None  # the node that starts the turn of this node


class ClaudeOutline(Outline):
    agent = "claude"

    def __init__(self) -> None:
        super().__init__()
        self._nodes: dict[str, _Node] = {}
        self._order: list[_Node] = []
        self._outside: list[tuple[Ref, int, str | None]] = []  # lines outside the tree, and which line each follows
        self._compactions: set[str] = set()
        self._leaf: tuple[int, str] | None = None
        self._made: tuple[int, list[Span], list[tuple[int, list[Span]]]] | None = None

    # First pass.

    def feed(self, ref: Ref, record: dict[str, Any]) -> None:
        kind = string(record, "type")
        uuid, parent = string(record, "uuid"), string(record, "parentUuid")
        flat = not uuid and _is_flat(record)
        if flat:  # each line follows the one before it
            uuid = f"line {len(self._order) + 1}"
            parent = self._order[-1].uuid if self._order else None
        if not uuid or uuid in self._nodes:
            self._feed_metadata(ref, kind, record)
            return
        if kind not in _NODES and not flat:
            self.unknown += 1
        if record.get("subtype") == "compact_boundary":
            self._compactions.add(uuid)
            parent = parent or string(record, "logicalParentUuid")
        node = _Node(uuid, parent, len(self._order), ref)
        node.prompt_id = string(record, "promptId")
        if record.get("isSidechain") is True or record.get("teamName"):
            # A subagent's own tree belongs to the turn during which it was written.
            node.parent = self._order[-1].uuid if self._order else None
        elif kind == "assistant":
            node.main, node.kind = True, _SPOKEN
        elif kind == "user":
            node.main = not record.get("isMeta")
            node.kind = _kind_of_prompt(record)
            node.at = string(record, "timestamp")
        self._describe(record)
        self._nodes[uuid] = node
        self._order.append(node)

    def _feed_metadata(self, ref: Ref, kind: str | None, record: dict[str, Any]) -> None:
        about = None
        if kind == "last-prompt":
            leaf = string(record, "leafUuid")
            self._leaf = (len(self._order), leaf) if leaf else self._leaf
        elif kind == "custom-title":
            self.title = string(record, "customTitle") or self.title
        elif kind in ("ai-title", "summary"):
            self.title = self.title or string(record, "aiTitle") or string(record, "summary")
        elif kind == "file-history-snapshot":
            about = string(record, "messageId")  # written just before the prompt that it belongs to
        elif kind not in _METADATA and kind not in _NODES:
            self.unknown += 1
        self.session_id = self.session_id or string(record, "sessionId")
        self._outside.append((ref, len(self._order) - 1, about))

    def feed_malformed(self, ref: Ref) -> None:
        self.malformed += 1
        self._outside.append((ref, len(self._order) - 1, None))

    def _describe(self, record: dict[str, Any]) -> None:
        if self.cwd is None:
            self.cwd = string(record, "cwd")
        if self.session_id is None:
            self.session_id = string(record, "sessionId")
        if self.forked_from is None and "forkedFrom" in record:
            self.forked_from = string(record, "forkedFrom", "sessionId")

    # The tree of turns.

    def line(self) -> list[Span]:
        return self._turns()[0]

    def branches(self) -> list[tuple[int, list[Span]]]:
        return self._turns()[1]

    def _turns(self) -> tuple[list[Span], list[tuple[int, list[Span]]]]:
        size = len(self._order) + len(self._outside)
        if self._made is None or self._made[0] != size:
            spans = self._spans()
            self._made = (size, *self._split(spans))
        return self._made[1], self._made[2]

    def _spans(self) -> dict[str, Span]:
        """Return every turn by the node that starts it, with its lines in file order."""
        self._own()
        spans: dict[str, Span] = {}
        for node in self._order:
            owner = node.owner or node
            span = spans.get(owner.uuid)
            if span is None:
                span = spans[owner.uuid] = Span(owner.uuid, owner.kind in (_PROMPT, _SLASH))
            span.refs.append(node.ref)
        for owner_uuid, span in spans.items():
            above = self._parent(self._nodes[owner_uuid])
            span.parent = spans[(above.owner or above).uuid] if above is not None else None
        for uuid in self._compactions:  # the next prompt starts from the summary
            inside = self._nodes[uuid].owner or self._nodes[uuid]
            for span in spans.values():
                if span.parent is spans[inside.uuid] and self._nodes[span.key or ""].order > self._nodes[uuid].order:
                    span.compacted = True
        self._add_outside(spans)
        return spans

    def _own(self) -> None:
        """Find the prompt that each node belongs to.

        If there are commands, two passes are needed: a command without any answer starts no turn.
        """
        silent: set[str] = set()
        commands = {node.uuid for node in self._order if node.kind == _SLASH}
        for _ in range(2 if commands else 1):
            answered: set[str] = set()
            for node in self._order:
                above = self._parent(node)
                owner = above.owner if above is not None else None
                starts = owner is None or (node.uuid not in silent and self._starts(node, owner, answered))
                node.owner = node if starts or owner is None else owner
                if node.kind == _SPOKEN:
                    answered.add(node.owner.uuid)
            silent = commands - {node.owner.uuid for node in self._order if node.kind == _SPOKEN and node.owner}

    def _starts(self, node: _Node, owner: _Node, answered: Container[str]) -> bool:
        if node.kind not in (_PROMPT, _SLASH):
            return False
        # One prompt may be several lines (a command and its text) with the same id. All prompts that `--fork-session`
        # copied also have the same id, but those have been answered.
        return node.prompt_id is None or node.prompt_id != owner.prompt_id or owner.uuid in answered

    def _parent(self, node: _Node) -> _Node | None:
        """Return the parent node, which is always an earlier line, so there are no cycles.

        If the named parent is missing (or comes later), the parent is the line before this one.
        """
        if node.parent is None or node.order == 0:
            return None
        found = self._nodes.get(node.parent)
        if found is None or found.order >= node.order:
            self.reached_outside = True
            return self._order[node.order - 1]
        return found

    def _add_outside(self, spans: dict[str, Span]) -> None:
        places: dict[str, list[Ref]] = {}
        for ref, after, about in self._outside:
            node = self._nodes.get(about) if about else None
            if node is None and self._order:
                node = self._order[max(after, 0)]
            if node is not None:
                places.setdefault((node.owner or node).uuid, []).append(ref)
        for uuid, refs in places.items():
            spans[uuid].refs = sorted([*spans[uuid].refs, *refs])  # by position in the file

    def _split(self, spans: dict[str, Span]) -> tuple[list[Span], list[tuple[int, list[Span]]]]:
        """Return the turns down to the newest leaf, and the branches that leave them."""
        replayed = self._merge_replays(spans)
        active = self._ancestors(self._active(spans, replayed), ())
        _merge_head(active, self.is_tail)
        place = {id(span): number for number, span in enumerate(active, 1)}
        parents = {id(span.parent) for span in spans.values() if span.parent is not None}
        branches = []
        for span in spans.values():
            if id(span) not in place and id(span) not in parents and span.prompted and span.key not in replayed:
                turns = self._ancestors(span, place)
                above = turns[0].parent
                branches.append((place.get(id(above), 0), turns))
        return active, branches

    def _merge_replays(self, spans: dict[str, Span]) -> dict[str | None, Span]:
        """Merge prompts that a compaction wrote again into one turn.

        A compaction writes prompts again with new ids, the same parent and the same time. The copies are one turn, not
        a fork.
        """
        first: dict[tuple[str | None, str], Span] = {}
        replayed: dict[str | None, Span] = {}
        for span in spans.values():
            node = self._nodes[span.key or ""]
            if node.kind != _PROMPT or node.at is None:
                continue
            original = first.setdefault((node.parent, node.at), span)
            if original is not span:
                original.refs = sorted([*original.refs, *span.refs])
                replayed[span.key] = original
        if replayed:
            for span in spans.values():
                if span.parent is not None and span.parent.key in replayed:
                    span.parent = replayed[span.parent.key]
        return replayed

    def _active(self, spans: dict[str, Span], replayed: dict[str | None, Span]) -> Span | None:
        last = next((node for node in reversed(self._order) if node.main), None)
        if self._leaf is not None and (last is None or last.order < self._leaf[0]):
            # The agent itself names its current leaf: a rewind without any message since.
            last = self._nodes.get(self._leaf[1], last)
        if last is None:
            last = self._order[-1] if self._order else None
        if last is None:
            return None
        span = spans[(last.owner or last).uuid]
        return replayed.get(span.key, span)

    def _ancestors(self, span: Span | None, stop: Container[int]) -> list[Span]:
        found: list[Span] = []
        while span is not None and id(span) not in stop:
            found.append(span)
            span = span.parent
        return found[::-1]

    def filler(self, turn: ConversationTurn, span: Span) -> Filler:
        return ClaudeFiller(turn, span)


def _merge_head(active: list[Span], is_tail: bool) -> None:
    """Add lines before the first prompt (hooks, attachments) to the first turn."""
    if len(active) > 1 and not active[0].prompted and not is_tail:
        active[1].refs = sorted([*active[0].refs, *active[1].refs])
        del active[0]


# The content of a line.


def _is_flat(record: dict[str, Any]) -> bool:
    """Return whether a line without an id is a message of a conversation that is no tree (M-14)."""
    return record.get("type") in _FLAT and "uuid" not in record and get(record, "message", "content") is not None


def _kind_of_prompt(record: dict[str, Any]) -> int:
    """Return whether and how a user line starts a turn (S2-09, G-10)."""
    if record.get("isMeta") or record.get("isCompactSummary") or "toolUseResult" in record:
        return _PASSIVE
    content = get(record, "message", "content")
    blocks = content if isinstance(content, list) else []
    if any(get(block, "type") == "tool_result" for block in blocks):
        return _PASSIVE
    origin = string(record, "origin", "kind")
    if origin in _OTHER_ORIGINS or record.get("promptSource") == "system":
        return _PASSIVE
    texts = [content] if isinstance(content, str) else [string(block, "text") or "" for block in blocks]
    if any(_COMMAND.match(text) for text in texts):
        return _SLASH
    if origin == "human" or record.get("promptSource") == "typed":
        return _PROMPT
    if any(text.strip() and not _NOT_TYPED.match(text) for text in texts):
        return _PROMPT
    shown = any(get(block, "type") in ("image", "document") for block in blocks)
    return _PROMPT if shown and not any(text.strip() for text in texts) else _PASSIVE


def _prompt_text(record: dict[str, Any]) -> str:
    content = get(record, "message", "content")
    blocks = content if isinstance(content, list) else [{"text": content}]
    texts = [text for block in blocks if (text := string(block, "text"))]
    prompt = "\n".join(text for text in texts if not _NOT_TYPED.match(text)) or "\n".join(texts)
    if _COMMAND.match(prompt):
        tags = dict(_TAG.findall(prompt))
        if "bash-input" in tags:
            return f"!{tags['bash-input']}"
        prompt = f"{tags.get('command-name', prompt)} {tags.get('command-args', '')}".strip()
    return prompt


class ClaudeFiller(Filler):
    def __init__(self, turn: ConversationTurn, span: Span) -> None:
        super().__init__(turn, span)
        self._seen: set[tuple[str, str]] = set()
        self._lines: set[str] = set()

    def take(self, record: dict[str, Any]) -> None:
        uuid = string(record, "uuid")
        if uuid is None and _is_flat(record):
            starts = record.get("type") == "user" and self.span.prompted and self.span.key not in self._lines
            uuid = self.span.key if starts else f"part {len(self._lines) + 1}"
        if uuid is None or uuid in self._lines:
            return
        self._lines.add(uuid)
        kind = record.get("type")
        at = string(record, "timestamp")
        if kind == "user":
            self._user(uuid, record, at)
        elif kind == "assistant":
            self._assistant(uuid, record, at)
        if kind in ("user", "assistant", "system"):
            self.time(at)

    def _user(self, uuid: str, record: dict[str, Any], at: str | None) -> None:
        if uuid == self.span.key and self.span.prompted:
            self.turn.prompt_id = string(record, "promptId")  # the id that hooks use; forks need the line's own id
            self.prompt(_prompt_text(record), uuid, at)
            return
        content = get(record, "message", "content")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            kind = get(block, "type")
            if kind == "tool_result":
                outcome = record.get("toolUseResult")
                self.result(
                    block.get("tool_use_id"), text_of(block.get("content")), block.get("is_error") is True, outcome
                )
            elif kind == "text" and (string(block, "text") or "").startswith(_INTERRUPTED):
                self.turn.interrupted = True

    def _assistant(self, uuid: str, record: dict[str, Any], at: str | None) -> None:
        aside = record.get("isSidechain") is True  # a subagent's text is no reply, but its edits belong to the turn
        content = get(record, "message", "content")
        message = string(record, "message", "id")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            kind = get(block, "type")
            if kind == "tool_use":
                self.call(block.get("id"), block.get("name"), block.get("input"))
            elif not aside and kind in ("text", "thinking"):
                words = string(block, kind) or ""
                if message is not None and (message, words) in self._seen:
                    continue  # written again by a compaction
                self._seen.add((message or uuid, words))
                if kind == "text":
                    self.reply(words, message or uuid, at)
                else:
                    self.think(words)
