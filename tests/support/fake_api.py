"""A model on loopback that answers from a script, for the real programs of agents.

It speaks Anthropic's Messages API, and through `fake_models` those of OpenAI and Gemini.

What it answers depends on the request alone: the last prompt in it picks the scene, the answers since then the line. So
there is nothing to get out of step with, however often the agent asks again or runs helpers of its own.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fake_models

Block = dict[str, Any]
Message = dict[str, Any]
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)


class Refused(Exception):
    """Raised by an answer: the API refuses the request with this error."""


def say(text: str) -> Block:
    return {"type": "text", "text": text}


def think(text: str) -> Block:
    return {"type": "thinking", "thinking": text, "signature": "c2lnbmVk"}


def call(name: str, /, **input: Any) -> Block:
    return {"type": "tool_use", "name": name, "input": input}


class FakeApi:
    """`scenes` maps a prompt to the answers given to it, one after the other; each answer is a list of blocks, or a
    function that is called when it is asked for and gives one."""

    def __init__(self) -> None:
        self.scenes: dict[str, list[list[Block] | Callable[[], list[Block]]]] = {}
        self.requests: list[dict[str, Any]] = []  # of conversations: those that come with tools
        self.elsewhere: list[str] = []  # what was asked for that is no part of this API
        self._numbers = itertools.count(1)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> FakeApi:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment with which Claude Code calls only this API."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "IS_SANDBOX": "1",  # root may not go without asking otherwise
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def scene(self, prompt: str, *answers: list[Block] | Callable[[], list[Block]]) -> str:
        self.scenes[prompt] = list(answers)
        return prompt

    def answer(self, request: dict[str, Any]) -> list[Block]:
        if not request.get("tools"):
            return [say("A title")]  # titles, summaries and the like
        self.requests.append(request)
        texts, given = _where(request["messages"])
        prompt = self._scene_of(texts)
        answers = self.scenes.get(prompt, [])
        found = answers[given] if given < len(answers) else [say(f"Nothing more is written for {prompt!r}.")]
        return [self._numbered(block) for block in (found() if callable(found) else found)]

    def _scene_of(self, texts: list[str]) -> str:
        """The scene of a prompt, around which an agent may have put more."""
        last = texts[-1] if texts else ""
        if last in self.scenes:
            return last
        return max((scene for scene in self.scenes if any(scene in text for text in texts)), key=len, default=last)

    def _numbered(self, block: Block) -> Block:
        return {**block, "id": f"toolu_{next(self._numbers):024d}"} if block["type"] == "tool_use" else block

    def message(self, request: dict[str, Any]) -> Message:
        blocks = self.answer(request)
        called = any(block["type"] == "tool_use" for block in blocks)
        return {
            "id": f"msg_{next(self._numbers):024d}",
            "type": "message",
            "role": "assistant",
            "model": request.get("model", "model"),
            "content": blocks,
            "stop_reason": "tool_use" if called else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 10},
        }


def said(message: Message) -> list[str]:
    """Return the texts of a message, without what the agent's program adds."""
    content = message["content"]
    blocks = [say(content)] if isinstance(content, str) else content
    texts = [_REMINDER.sub("", block["text"]).strip() for block in blocks if block["type"] == "text"]
    return [text for text in texts if text]


def spoken(request: dict[str, Any]) -> list[Message]:
    """Return what either side said, without the program's own rules and lists (`system`)."""
    return [message for message in request["messages"] if message["role"] != "system"]


def conversation(request: dict[str, Any]) -> list[str]:
    """What was said and done, in the order of a request: `user: …`, `assistant: …`, `call Write`, `result`."""
    found = []
    for message in spoken(request):
        found += [f"{message['role']}: {text}" for text in said(message)]
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_use":
                found.append(f"call {block['name']}")
            elif block["type"] == "tool_result":
                found.append("result")
    return found


def unanswered(request: dict[str, Any]) -> set[str]:
    """Calls whose results do not stand in the very next message, and results without such a call: the real API refuses
    both."""
    wrong: set[str] = set()
    expected: set[str] = set()
    for message in spoken(request):
        blocks = message["content"] if isinstance(message["content"], list) else []
        wrong |= expected ^ {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        expected = {block["id"] for block in blocks if block["type"] == "tool_use"}
    return wrong | expected


def _where(messages: list[Message]) -> tuple[list[str], int]:
    """The texts of the last prompt, and how many answers it has had."""
    given = 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            given += 1
        elif message["role"] == "user" and (texts := said(message)):
            return texts, given
    return [], given


def _events(message: Message) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a message as the API streams it."""
    opening = {**message, "content": [], "stop_reason": None}
    yield "message_start", {"message": opening}
    for index, block in enumerate(message["content"]):
        deltas: list[Block]
        if block["type"] == "tool_use":
            empty: Block = {**block, "input": {}}
            text = json.dumps(block["input"])
            parts = [text[: len(text) // 2], text[len(text) // 2 :]]
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        elif block["type"] == "thinking":
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        else:
            empty = say("")
            deltas = [{"type": "text_delta", "text": block["text"]}]
        yield "content_block_start", {"index": index, "content_block": empty}
        for delta in deltas:
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": ending, "usage": {"output_tokens": 10}}
    yield "message_stop", {}


class _Handler(BaseHTTPRequestHandler):
    api: FakeApi
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            pass  # the agent was killed, or told not to wait

    def _send(self, data: bytes, kind: str = "application/json", status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            self._send(b'{"input_tokens":10}')
        elif path == "/v1/messages":
            request = json.loads(body)
            try:
                message = self.api.message(request)
            except Refused as refused:
                self._send(json.dumps({"type": "error", "error": refused.args[0]}).encode(), status=400)
                return
            if request.get("stream"):
                lines = [
                    f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n"
                    for name, fields in _events(message)
                ]
                self._send("".join(lines).encode(), "text/event-stream")
            else:
                self._send(json.dumps(message).encode())
        elif kind := fake_models.kind_of(path):
            request = json.loads(body)
            stream = request.get("stream") or path.endswith(":streamGenerateContent")
            common = {"model": request.get("model", "model"), "messages": fake_models.messages(kind, request)}
            message = self.api.message({**common, "tools": fake_models.tools(kind, request)})
            self._send(*fake_models.answer(kind, message, bool(stream)))
        else:
            self._refuse()

    def _refuse(self) -> None:
        self.api.elsewhere.append(f"{self.command} {self.path}")
        self._send(b'{"type":"error","error":{"type":"not_found_error","message":"no"}}', status=404)

    do_GET = do_HEAD = do_PUT = do_CONNECT = _refuse
