"""The request and answer formats of OpenAI (chat completions, responses) and Gemini, for `fake_api`.

A request becomes messages in Anthropic's form, so that one script answers every agent; the answer is streamed in the
form that was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Fields = dict[str, Any]


def kind_of(path: str) -> str:
    """The format that a path belongs to, or "" for none."""
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith("/responses"):
        return "responses"
    if path.endswith((":streamGenerateContent", ":generateContent")):
        return "gemini"
    return ""


def messages(kind: str, request: Fields) -> list[Fields]:
    """What was said so far, as messages of Anthropic's form."""
    if kind == "chat":
        return [_from_chat(each) for each in request["messages"]]
    if kind == "responses":
        given = request["input"]
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        return _joined([found for each in items if (found := _from_item(each)) is not None])
    return [_from_gemini(each) for each in request["contents"]]


def tools(kind: str, request: Fields) -> list[str]:
    """The names of the tools that the agent offers."""
    if kind == "gemini":
        declared = [each.get("functionDeclarations", []) for each in request.get("tools") or []]
        return [each["name"] for group in declared for each in group]
    named = [*(request.get("tools") or [])]
    if kind == "responses" and isinstance(request["input"], list):  # some models of Codex get them among what was said
        named += [each for item in request["input"] for each in item.get("tools") or []]
    return [(each.get("function") or each).get("name") or each.get("type", "") for each in named]


def _text(text: str) -> Fields:
    return {"type": "text", "text": text}


def _blocks(content: Any) -> list[Fields]:
    if isinstance(content, str):
        return [_text(content)] if content else []
    return [_text(part["text"]) for part in content or [] if isinstance(part.get("text"), str)]


def _from_chat(message: Fields) -> Fields:
    role = message["role"]
    if role == "tool":
        result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
        return {"role": "user", "content": [result]}
    calls = [
        {"type": "tool_use", "id": each["id"], "name": each["function"]["name"], "input": each["function"]["arguments"]}
        for each in message.get("tool_calls") or []
    ]
    role = "system" if role == "developer" else role
    return {"role": role, "content": [*_blocks(message.get("content")), *calls]}


def _from_item(item: Fields) -> Fields | None:
    kind = item.get("type", "message")
    if kind == "message":
        role = "system" if item["role"] == "developer" else item["role"]
        return {"role": role, "content": _blocks(item["content"])}
    if kind in ("function_call", "custom_tool_call"):
        input = item.get("arguments", item.get("input"))
        call = {"type": "tool_use", "id": item["call_id"], "name": item["name"], "input": input}
        return {"role": "assistant", "content": [call]}
    if kind in ("function_call_output", "custom_tool_call_output"):
        result = {"type": "tool_result", "tool_use_id": item["call_id"], "content": item["output"]}
        return {"role": "user", "content": [result]}
    return None  # reasoning and the like


def _joined(found: list[Fields]) -> list[Fields]:
    """The items of one answer as one message: what a model says and calls comes as items of their own."""
    joined: list[Fields] = []
    for message in found:
        if joined and joined[-1]["role"] == message["role"] == "assistant":
            joined[-1]["content"] += message["content"]
        else:
            joined.append(message)
    return joined


def _from_gemini(content: Fields) -> Fields:
    blocks: list[Fields] = []
    for part in content["parts"]:
        if "functionCall" in part:
            made = part["functionCall"]
            blocks.append({"type": "tool_use", "id": made.get("id"), "name": made["name"], "input": made.get("args")})
        elif "functionResponse" in part:
            told = part["functionResponse"]
            blocks.append({"type": "tool_result", "tool_use_id": told.get("id"), "content": told.get("response")})
        elif isinstance(part.get("text"), str):
            blocks.append(_text(part["text"]))
    return {"role": "assistant" if content.get("role") == "model" else "user", "content": blocks}


def answer(kind: str, message: Fields, stream: bool) -> tuple[bytes, str]:
    """A message in the form that was asked for, and its content type."""
    if kind == "chat":
        return _stream(_chat_chunks(message), "data: [DONE]\n\n") if stream else _whole(_chat_whole(message))
    if kind == "responses":
        return _stream(_response_events(message)) if stream else _whole(_response(message))
    return _stream([_gemini(message)]) if stream else _whole(_gemini(message))


def _whole(document: Fields) -> tuple[bytes, str]:
    return json.dumps(document).encode(), "application/json"


def _stream(documents: Any, last: str = "") -> tuple[bytes, str]:
    rows = []
    for each in documents:
        named = f"event: {each['type']}\n" if "type" in each else ""
        rows.append(f"{named}data: {json.dumps(each)}\n\n")
    return "".join([*rows, last]).encode(), "text/event-stream"


def _calls(message: Fields) -> list[Fields]:
    return [block for block in message["content"] if block["type"] == "tool_use"]


def _texts(message: Fields) -> list[str]:
    return [block["text"] for block in message["content"] if block["type"] == "text"]


def _arguments(call: Fields) -> str:
    return call["input"] if isinstance(call["input"], str) else json.dumps(call["input"])


def _chat_head(message: Fields, kind: str) -> Fields:
    return {"id": message["id"], "object": kind, "created": 1, "model": message["model"]}


_CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}


def _chat_calls(message: Fields) -> list[Fields]:
    return [
        {
            "index": index,
            "id": each["id"],
            "type": "function",
            "function": {"name": each["name"], "arguments": _arguments(each)},
        }
        for index, each in enumerate(_calls(message))
    ]


def _chat_chunks(message: Fields) -> Iterator[Fields]:
    head = _chat_head(message, "chat.completion.chunk")
    deltas: list[Fields] = [{"role": "assistant", "content": ""}, *({"content": text} for text in _texts(message))]
    for each in _chat_calls(message):
        text = each["function"]["arguments"]
        half = len(text) // 2
        deltas.append({"tool_calls": [{**each, "function": {**each["function"], "arguments": text[:half]}}]})
        deltas.append({"tool_calls": [{"index": each["index"], "function": {"arguments": text[half:]}}]})
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    reason = "tool_calls" if _calls(message) else "stop"
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": _CHAT_USAGE}


def _chat_whole(message: Fields) -> Fields:
    said: Fields = {"role": "assistant", "content": "".join(_texts(message))}
    if _calls(message):
        said["tool_calls"] = _chat_calls(message)
    reason = "tool_calls" if _calls(message) else "stop"
    choices = [{"index": 0, "message": said, "finish_reason": reason}]
    return {**_chat_head(message, "chat.completion"), "choices": choices, "usage": _CHAT_USAGE}


def _items(message: Fields) -> list[Fields]:
    items = []
    for number, block in enumerate(message["content"]):
        id = f"item_{message['id']}_{number}"
        if block["type"] == "text":
            content = [{"type": "output_text", "text": block["text"], "annotations": []}]
            items.append({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content})
        elif block["type"] == "tool_use":
            plain = isinstance(block["input"], str)  # a tool that takes text, not fields
            given = {"input": block["input"]} if plain else {"arguments": _arguments(block)}
            kind = "custom_tool_call" if plain else "function_call"
            group, _, name = block["name"].rpartition(".")
            about = {"type": kind, "id": id, "call_id": block["id"], "name": name, "status": "completed"}
            if group:
                about["namespace"] = group
            items.append({**about, **given})
    return items


def _response(message: Fields) -> Fields:
    usage = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    head = {"id": message["id"], "object": "response", "created_at": 1, "model": message["model"]}
    return {**head, "status": "completed", "output": _items(message), "usage": {**usage, **details}}


def _response_events(message: Fields) -> Iterator[Fields]:
    whole = _response(message)
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    for index, item in enumerate(whole["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        if item["type"] == "message":
            delta = {"item_id": item["id"], "output_index": index, "content_index": 0}
            yield {"type": "response.output_text.delta", **delta, "delta": item["content"][0]["text"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole}


def _gemini(message: Fields) -> Fields:
    parts: list[Fields] = []
    for block in message["content"]:
        if block["type"] == "text":
            parts.append({"text": block["text"]})
        elif block["type"] == "tool_use":
            parts.append({"functionCall": {"id": block["id"], "name": block["name"], "args": block["input"]}})
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": message["model"]}
