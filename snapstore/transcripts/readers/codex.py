"""Read Codex's transcripts: a rollout, which is one list as JSONL (G-10).

Events mark the start and the end of a turn. A rollback cuts off the end of the list.
"""

from __future__ import annotations

import re

from snapstore.transcripts.apply_patch import ADD, BEGIN, DELETE, END, MOVE, UPDATE
from snapstore.transcripts.outline import Filler, Outline, get, moment, string, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.transcripts.lines import Ref
    from snapstore.transcripts.model import ConversationTurn
    from snapstore.transcripts.outline import Span

_KNOWN = {
    *("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"),
    *("inter_agent_communication", "inter_agent_communication_metadata", "security_risk_score"),
    "token_usage_record",
}
_CALLS = {"function_call", "custom_tool_call", "local_shell_call"}
_OUTPUTS = {"function_call_output", "custom_tool_call_output", "local_shell_call_output"}
_FRAME = (
    *("<environment_context", "<user_instructions", "# AGENTS.md instructions", "<permissions", "<turn_aborted"),
    *("<skill>", "<subagent_notification"),
)
_SCRIPT = "functions.exec"  # runs JavaScript, which calls the other tools: each of those has an item of its own
_FAILED = re.compile(
    r"(Script failed|Exit code: [1-9]|\w+ (verification )?failed( for .*)?:)"
    r"|Chunk ID: (.*\n)+?Process exited with code [1-9]"
)


class CodexOutline(Outline):
    agent = "codex"

    def __init__(self) -> None:
        super().__init__()
        self._held: list[Ref] = []  # lines that start a turn in rollouts without a start event
        self._has_meta = False
        self._framed = False  # a turn's start or end was seen; in a tail, earlier lines belong to a cut turn

    def feed(self, ref: Ref, record: dict[str, Any]) -> None:
        kind = string(record, "type")
        payload = record.get("payload")
        about = string(payload, "type")
        if kind not in _KNOWN:
            self.unknown += 1
        if kind == "session_meta":
            self._describe(payload)
        elif kind == "compacted" or about in ("context_compacted", "compaction"):
            self.compact()
        if kind == "event_msg":
            self._event(ref, about, payload)
        elif kind == "turn_context":
            self._context(ref, string(payload, "turn_id"))
        elif kind == "response_item" and about == "message" and get(payload, "role") == "user":
            self._hold(ref)
        else:
            self.keep(ref, spoken=kind == "response_item" and get(payload, "role") != "developer")

    def keep(self, ref: Ref, spoken: bool = False) -> None:
        for held in self._held:
            super().keep(held)
        self._held.clear()
        super().keep(ref, spoken)

    def line(self) -> list[Span]:
        if self._held:
            last, self._held = self._held, []
            self.current().refs.extend(last)
        return self.spans

    def _describe(self, payload: Any) -> None:
        if not self._has_meta:  # a fork repeats its parent's header after its own
            self._has_meta = True
            self.session_id = string(payload, "id") or string(payload, "session_id")
            self.forked_from = string(payload, "forked_from_id") or string(payload, "parent_thread_id")
            self.cwd = string(payload, "cwd")

    def _event(self, ref: Ref, about: str | None, payload: Any) -> None:
        open_turn = self._open()
        if about in ("task_started", "task_complete", "turn_started", "turn_complete", "turn_aborted"):
            self._framed = True
        if about in ("task_started", "turn_started"):
            self._begin(string(payload, "turn_id"))
        elif about == "user_message" or _item_type(payload) == "UserMessage":
            if open_turn is None and not self._is_cut():
                self._begin(None)
        elif about == "thread_rolled_back":
            self._roll_back(get(payload, "num_turns"))
        elif about in ("task_complete", "turn_complete", "turn_aborted") and open_turn is not None:
            open_turn.ended = True
        self.keep(ref, spoken=about in ("agent_message", "agent_reasoning"))

    def _context(self, ref: Ref, turn_id: str | None) -> None:
        """Handle a turn_context line.

        In newer rollouts the line names its turn. In older rollouts it only comes before the prompt.
        """
        current = self.spans[-1] if self.spans else None
        if self._is_cut():
            self.keep(ref)
            return
        if turn_id is not None and (current is None or current.key != turn_id):
            if current is not None and current.prompted and not current.ended and current.key is None:
                current.key = turn_id
            else:
                self._begin(turn_id)
        if turn_id is None:
            self._hold(ref)
        else:
            self.keep(ref)

    def _is_cut(self) -> bool:
        return self.is_tail and not self._framed

    def _hold(self, ref: Ref) -> None:
        span = self._open()
        if span is not None and span.key is not None:
            self.keep(ref)
        else:
            self._held.append(ref)

    def _open(self) -> Span | None:
        """Return the turn that was started by an event and has not ended, or None.

        All further lines belong to that turn.
        """
        span = self.spans[-1] if self.spans else None
        return span if span is not None and span.prompted and span.key is not None and not span.ended else None

    def _begin(self, turn_id: str | None) -> None:
        held, self._held = self._held, []
        self.start(turn_id).refs.extend(held)

    def _roll_back(self, count: Any) -> None:
        if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
            return
        places = [number for number, span in enumerate(self.spans) if span.prompted]
        if count > len(places):
            self.reached_outside = True
        if places:
            self.cut(places[max(len(places) - count, 0)])

    def filler(self, turn: ConversationTurn, span: Span) -> Filler:
        return CodexFiller(turn, span)


class CodexFiller(Filler):
    """Fills a turn of Codex.

    Most messages are stored twice: as an event for the screen, and as an item for the model.
    """

    def __init__(self, turn: ConversationTurn, span: Span) -> None:
        super().__init__(turn, span)
        self._items: list[tuple[str, str | None]] = []
        self._events: list[tuple[str, str | None]] = []
        self._thoughts: tuple[list[str], list[str]] = ([], [])
        self._asked: list[tuple[str, str | None]] = []
        self._typed: list[tuple[str, str | None]] = []
        self._has_prompt = False
        self._failed: set[str] = set()  # calls whose item says so
        self._scripts: dict[str, tuple[Any, int]] = {}  # what each script is, and how many items came before it
        self._items_done = 0

    def take(self, record: dict[str, Any]) -> None:
        payload = record.get("payload")
        if not isinstance(payload, dict):
            return
        kind, about, at = record.get("type"), string(payload, "type"), moment(record.get("timestamp"))
        if kind != "session_meta":
            self.time(at)
        if kind == "event_msg":
            self._event(about, payload, at)
        elif kind == "response_item":
            self._item(about, payload, at)

    def _event(self, about: str | None, payload: dict[str, Any], at: str | None) -> None:
        if about == "user_message":
            self._has_prompt = True
            self.prompt(string(payload, "message") or "", self.span.key, at)
        elif about == "agent_message":
            self._events.append((string(payload, "message") or "", at))
        elif about == "agent_reasoning":
            self._thoughts[1].append(string(payload, "text") or "")
        elif about == "turn_aborted":
            self.turn.interrupted = True
        elif about == "item_completed":
            self._completed(payload.get("item"), at)

    def _completed(self, item: Any, at: str | None) -> None:
        """Take what Codex itself says was said or done. Its id is that of the call, if the model called it directly."""
        kind, id = string(item, "type"), string(item, "id")
        if kind == "UserMessage":
            self._typed.append((text_of(get(item, "content")) or "", at))
        elif kind == "AgentMessage":
            self._events.append((text_of(get(item, "content")) or "", at))
        elif kind in ("FileChange", "CommandExecution") and id is not None:
            self._items_done += 1
            failed = string(item, "status") in ("failed", "declined")
            if failed:
                self._failed.add(id)
            if kind == "FileChange":
                self.call(id, "apply_patch", _as_patch(get(item, "changes")))
                self.result(id, string(item, "stdout") or string(item, "stderr") or "", failed)
            else:
                self.call(id, "exec_command", {"cmd": _command(get(item, "command"))})
                self.result(id, string(item, "aggregated_output") or "", failed)

    def _item(self, about: str | None, payload: dict[str, Any], at: str | None) -> None:
        if about == "message":
            text = text_of(payload.get("content")) or ""
            if payload.get("role") == "assistant":
                self._items.append((text, at))
            elif payload.get("role") == "user" and text and _is_typed(payload, text):
                self._asked.append((text, at))
        elif about == "reasoning":
            parts = [text_of(payload.get(name)) for name in ("summary", "content")]
            self._thoughts[0].extend(part for part in parts if part)
        elif about in _CALLS:
            self._call(about, payload)
        elif about in _OUTPUTS:
            self._output(payload)

    def _call(self, about: str, payload: dict[str, Any]) -> None:
        id = payload.get("call_id") or payload.get("id")
        name = payload.get("name")
        group = payload.get("namespace")
        if about == "local_shell_call":
            self.call(id, "local_shell", payload.get("action"))
        elif isinstance(id, str) and f"{group}.{name}" == _SCRIPT:
            self._scripts[id] = payload.get("input"), self._items_done
        else:
            self.call(id, name, payload.get("arguments" if about == "function_call" else "input"))

    def _output(self, payload: dict[str, Any]) -> None:
        id, output = payload.get("call_id"), payload.get("output")
        body = output.get("content", output.get("output")) if isinstance(output, dict) else output
        text = text_of(body)
        failed = get(output, "success") is False or id in self._failed or _FAILED.match(text or "") is not None
        if isinstance(id, str) and id in self._scripts:
            script, before = self._scripts.pop(id)
            if self._items_done > before:
                return  # its items tell what it did
            self.call(id, _SCRIPT, script)
        self.result(id, text, failed, output if isinstance(output, dict) else None)

    def finish(self) -> None:
        for id, (script, _) in self._scripts.items():
            self.call(id, _SCRIPT, script)
        if not self._has_prompt and self.span.prompted:
            for text, at in self._typed or self._asked:
                self.prompt(text, self.span.key, at)
        for text, at in self._items or self._events:
            self.reply(text, None, at)
        for text in self._thoughts[0] or self._thoughts[1]:
            self.think(text)
        super().finish()


def _item_type(payload: Any) -> str | None:
    return string(payload, "item", "type") if string(payload, "type") == "item_completed" else None


def _is_typed(payload: dict[str, Any], text: str) -> bool:
    """Return whether a message in the user's name is what the user typed.

    Newer rollouts say what each part is. Older ones mark what Codex itself adds, such as skills, by how it begins.
    """
    kinds = get(payload, "internal_chat_message_metadata_passthrough", "content_item_kinds")
    if isinstance(kinds, list) and kinds:
        return any(isinstance(kind, str) and kind.startswith("user.") for kind in kinds)
    return not text.lstrip().startswith(_FRAME)


def _command(words: Any) -> str:
    """Return the command line, without the shell that runs it."""
    told = [word for word in words if isinstance(word, str)] if isinstance(words, list) else [words or ""]
    return str(told[2]) if len(told) == 3 and told[1] in ("-lc", "-c") else " ".join(map(str, told))


def _as_patch(changes: Any) -> str:
    """Return the changes of an item as the patch that makes them."""
    sections = [BEGIN]
    for path, change in changes.items() if isinstance(changes, dict) else ():
        if "\n" in path:
            continue  # it would be read as more than a path
        kind, moved = string(change, "type"), string(change, "move_path")
        if kind == "add":
            sections += [f"*** {ADD}: {path}", *(f"+{line}" for line in _rows(string(change, "content")))]
        elif kind == "delete":
            sections.append(f"*** {DELETE}: {path}")
        else:
            sections += [f"*** {UPDATE}: {path}", *([f"*** {MOVE}: {moved}"] if moved else [])]
            rows = _rows(string(change, "unified_diff"))
            sections += ["@@" if row.startswith("@@") else row for row in rows if not row.startswith("\\")]
    return "\n".join([*sections, END, ""])


def _rows(text: str | None) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []
