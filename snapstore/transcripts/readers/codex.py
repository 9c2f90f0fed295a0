"""Codex's transcripts: a rollout, which is one list as JSONL (G-10).

Events mark the start and the end of a turn. A rollback cuts off the end of the list.
"""

from __future__ import annotations

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
}
_CALLS = {"function_call", "custom_tool_call", "local_shell_call"}
_OUTPUTS = {"function_call_output", "custom_tool_call_output", "local_shell_call_output"}
_FRAME = ("<environment_context", "<user_instructions", "# AGENTS.md instructions", "<permissions", "<turn_aborted")


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
        elif about == "user_message":
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
        self._has_prompt = False

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

    def _item(self, about: str | None, payload: dict[str, Any], at: str | None) -> None:
        if about == "message":
            text = text_of(payload.get("content")) or ""
            if payload.get("role") == "assistant":
                self._items.append((text, at))
            elif payload.get("role") == "user" and text and not text.lstrip().startswith(_FRAME):
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
        if about == "local_shell_call":
            self.call(id, "local_shell", payload.get("action"))
        else:
            self.call(id, payload.get("name"), payload.get("arguments" if about == "function_call" else "input"))

    def _output(self, payload: dict[str, Any]) -> None:
        output = payload.get("output")
        failed = get(output, "success") is False
        body = output.get("content", output.get("output")) if isinstance(output, dict) else output
        self.result(payload.get("call_id"), text_of(body), failed, output if isinstance(output, dict) else None)

    def finish(self) -> None:
        if not self._has_prompt and self.span.prompted:
            for text, at in self._asked:
                self.prompt(text, self.span.key, at)
        for text, at in self._items or self._events:
            self.reply(text, None, at)
        for text in self._thoughts[0] or self._thoughts[1]:
            self.think(text)
        super().finish()
