"""The part of the benchmark for hooks and transcripts: `scripts/bench hook`."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from snapstore.base.own_command import own_command
from snapstore.transcripts.lines import Source, opened
from snapstore.transcripts.readers.read import read_outline, read_turn

ID = "3f2a9c1d-5b7e-4c11-9a55-0d6f1e2b3c4d"
TRANSCRIPT = 100 << 20  # bytes
BOUND = 200  # MB of memory that reading it may take


def read_all(path: str) -> None:
    """Read every turn of a transcript of Claude Code, one at a time, as an import does."""
    with opened(path) as file:
        source = Source(file, 4 << 20)
        outline = read_outline(source, path, "claude", None)
        for number, span in enumerate(outline.line(), 1):
            read_turn(source, outline, span, number)


class Bench(Protocol):
    work: Path

    def note(
        self, work: str, size: int, ours: float, git: float, ratio: float, reach: str, ok: bool | None
    ) -> None: ...
    def forget(self) -> None: ...


Median = Callable[..., float]


def hooks(bench: Bench, median: Median, tree: Path, size: int) -> None:
    """Hooks and commands as processes, in bare interpreter starts: with a warm process, and alone."""
    nothing = [sys.executable, "-I", "-c", "pass"]
    bare = median(lambda: subprocess.run(nothing, input=b"", check=True, stdout=subprocess.PIPE), runs=41)
    for warm in (True, False):
        bench.forget()
        with place(warm) as environment:
            caller = _Caller(bench, median, tree, size, bare, environment)
            _measure(caller, warm)
            if warm:
                _measure_after_a_pause(caller)


@contextmanager
def place(warm: bool) -> Iterator[dict[str, str]]:
    """The environment of the processes that are measured."""
    if not warm:
        yield {**os.environ, "SNAPSTORE_DAEMON": "0"}
        return
    with tempfile.TemporaryDirectory(prefix="snapbench-", dir="/tmp") as runtime:
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime}
        environment.pop("SNAPSTORE_DAEMON", None)
        server = subprocess.Popen([*own_command(), "daemon", "run"], env=environment, stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            server.stdout.readline()
            yield environment
        finally:
            server.terminate()
            server.communicate()


@dataclass
class _Caller:
    """Starts processes of ours, as an agent or a shell does, and notes how long they take."""

    bench: Bench
    median: Median
    tree: Path
    size: int
    bare: float
    environment: dict[str, str]

    def run(self, *words: str, feed: bytes = b"") -> bytes:
        command = [*own_command(), *words]
        return subprocess.run(
            command, input=feed, cwd=self.tree, env=self.environment, check=True, stdout=subprocess.PIPE
        ).stdout

    def hook(self, event: str, **fields: Any) -> None:
        payload = {"session_id": ID, "cwd": str(self.tree), "hook_event_name": event, "prompt_id": "p1", **fields}
        self.run("hook", "claude", feed=json.dumps(payload).encode())

    def tool(self, event: str, tool: str, path: Path) -> None:
        self.hook(event, tool_name=tool, tool_input={"file_path": str(path), "old_string": "a", "new_string": "b"})

    def note(self, what: str, reach: float, work: Callable[[], object], *before: Callable[[], object]) -> None:
        ms = self.median(work, *before, runs=31)
        ratio = ms / self.bare
        self.bench.note(f"{what}, bare starts", self.size, ms, self.bare, ratio, f"<= {reach}", ratio <= reach)


def _measure(caller: _Caller, warm: bool) -> None:
    how = "warm" if warm else "alone"
    files = sorted(path for path in caller.tree.rglob("*.*") if path.is_file())
    three = files[:3]
    numbers = itertools.count()

    def reach(wanted: float) -> float:
        return wanted if warm else 14

    def change() -> None:
        number = next(numbers)
        for path in three:
            path.write_text(f"{number}\n")

    def begin() -> None:
        caller.hook("UserPromptSubmit", prompt="Bench")
        for path in three:
            caller.tool("PreToolUse", "Edit", path)
        change()
        for path in three:
            caller.tool("PostToolUse", "Edit", path)

    def begin_turn() -> None:
        caller.run("turn", "begin", "-q", "-m", "Bench")
        caller.run("turn", "touch", *map(str, three))
        change()

    caller.hook("UserPromptSubmit", prompt="Bench")
    names = itertools.cycle(files)
    caller.note(f"hook with nothing to do, {how}", reach(1.9), lambda: caller.tool("PreToolUse", "Read", files[0]))
    caller.note(f"hook naming a file, {how}", reach(2.3), lambda: caller.tool("PreToolUse", "Edit", next(names)))
    caller.hook("Stop")
    caller.note(f"hook at the end of a turn, {how}", reach(2.6), lambda: caller.hook("Stop"), begin)
    caller.note(f"turn end, 3 named files, {how}", reach(2.6), lambda: caller.run("turn", "end", "-q"), begin_turn)
    caller.note(f"log, {how}", reach(2.7), lambda: caller.run("log", "-n", "20"))
    caller.note(f"status, {how}", reach(2.6), lambda: caller.run("status"))
    caller.note(f"log --json, {how}", reach(3), lambda: caller.run("log", "-n", "20", "--json"))
    undo = lambda: caller.run("undo", "-y")  # noqa: E731
    caller.note(f"undo, 3 files, {how}", reach(3), undo, lambda: caller.run("redo", "--all", "-y"))
    caller.run("redo", "--all", "-y")

    def whole_turn() -> None:
        begin()
        caller.hook("Stop")

    ms = caller.median(whole_turn, runs=7)
    ratio = ms / caller.bare / 8
    row = f"8 hooks of a turn with 3 tool calls, {how}, bare starts each"
    caller.bench.note(row, caller.size, ms, caller.bare, ratio, "", None)
    if warm:
        status = json.loads(caller.run("daemon", "status", "--json"))
        memory = status["memory_bytes"] / 1e6
        caller.bench.note("memory of the warm process, MB", 1, memory, 60, memory, "<= 60", memory <= 60)


def _measure_after_a_pause(caller: _Caller) -> None:
    """The first hook finds no warm process: it works alone and leaves one behind, which `daemon stop` waits for."""
    files = itertools.cycle(sorted(path for path in caller.tree.rglob("*.*") if path.is_file()))
    caller.hook("UserPromptSubmit", prompt="Bench")

    def pause() -> None:
        caller.run("daemon", "stop")

    caller.note("first hook after a pause", 14, lambda: caller.tool("PreToolUse", "Edit", next(files)), pause)
    pause()


def transcripts(bench: Bench) -> None:
    """A long conversation: against `json.loads` of its lines, and in a process of its own for the memory."""
    path = bench.work / "transcript.jsonl"
    _make_transcript(path)

    def lines() -> None:
        with path.open("rb") as file:
            for line in file:
                json.loads(line)

    plain = min(_seconds(lines) for _ in range(3)) * 1000
    ours = min(_seconds(lambda: read_all(str(path))) for _ in range(3)) * 1000
    share = plain / ours
    bench.note("transcript of 100 MB, of json.loads", 1, ours, plain, share, ">= 0.33", share >= 1 / 3)
    code = (
        "import sys, resource; from bench_hook import read_all; read_all(sys.argv[1]);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peak = (
        int(
            subprocess.run(
                [sys.executable, "-c", code, str(path)], check=True, capture_output=True, cwd=Path(__file__).parent
            ).stdout
        )
        / 1024
    )
    bench.note("the same, MB of memory", 1, peak, TRANSCRIPT >> 20, peak, f"<= {BOUND}", peak <= BOUND)
    path.unlink()


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _make_transcript(path: Path) -> None:
    """Prompts, replies, edits with their structured answers: what the lines of a real one are mostly made of."""
    chance = random.Random(1)
    words = [f"word{chance.randrange(10**6)}" for _ in range(5000)]
    parent: str | None = None
    number = size = 0

    def text(count: int) -> str:
        return " ".join(chance.choices(words, k=count)) + "\n"

    with path.open("w") as file:

        def put(kind: str, content: Any, **fields: Any) -> None:
            nonlocal parent, number, size
            number += 1
            uuid = f"{number:08d}-aaaa-bbbb-cccc-{number:012d}"
            message = {"id": f"msg_{number}", "role": kind, "content": content}
            common = {
                "isSidechain": False,
                "userType": "external",
                "cwd": "/project",
                "sessionId": ID,
                "version": "2.1.2",
            }
            line = {"parentUuid": parent, **common, "type": kind, "message": message, "uuid": uuid, **fields}
            written = json.dumps({**line, "timestamp": "2026-08-01T00:00:00.000Z"}) + "\n"
            file.write(written)
            size += len(written)
            parent = uuid

        while size < TRANSCRIPT:
            put("user", text(30))
            for _ in range(10):
                put("assistant", [{"type": "text", "text": text(60)}])
                edit = {"file_path": "/project/a.py", "old_string": text(40), "new_string": text(40)}
                put("assistant", [{"type": "tool_use", "id": f"toolu_{number}", "name": "Edit", "input": edit}])
                result = {"type": "tool_result", "tool_use_id": f"toolu_{number - 1}", "content": text(200)}
                answer = {"filePath": "/project/a.py", "originalFile": "".join(text(10) for _ in range(60))}
                put("user", [result], toolUseResult=answer)
