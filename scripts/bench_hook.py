"""The part of the benchmark for hooks and transcripts: `scripts/bench hook`."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from snapstore.transcripts import iter_turns

ID = "3f2a9c1d-5b7e-4c11-9a55-0d6f1e2b3c4d"
TRANSCRIPT = 100 << 20  # bytes
BOUND = 200  # MB of memory that reading it may take


class Bench(Protocol):
    work: Path

    def note(self, work: str, size: int, ours: float, git: float, ratio: float, reach: str, ok: bool) -> None: ...
    def forget(self) -> None: ...


Median = Callable[..., float]


def hooks(bench: Bench, median: Median, tree: Path, size: int) -> None:
    """One hook process, in bare interpreter starts."""
    bench.forget()
    command = [str(Path(sys.executable).with_name("snapstore")), "hook", "claude"]
    files = iter(sorted(path for path in tree.rglob("*.*") if path.is_file()))

    def say(event: str, **fields: Any) -> None:
        payload = {"session_id": ID, "cwd": str(tree), "hook_event_name": event, "prompt_id": "p1", **fields}
        subprocess.run(command, input=json.dumps(payload).encode(), cwd=tree, check=True, capture_output=True)

    def touch(event: str, tool: str, path: Path) -> None:
        say(event, tool_name=tool, tool_input={"file_path": str(path), "old_string": "a", "new_string": "b"})

    bare = median(lambda: subprocess.run([sys.executable, "-I", "-c", "pass"], check=True), runs=25)
    say("UserPromptSubmit", prompt="Bench")
    first = next(files)
    read = median(lambda: touch("PreToolUse", "Read", first), runs=25)
    bench.note("hook, a read tool, bare starts", size, read, bare, read / bare, "<= 3", read / bare <= 3)
    named = median(lambda: touch("PreToolUse", "Edit", next(files)), runs=25)
    bench.note("hook, a named file, bare starts", size, named, bare, named / bare, "<= 8", named / bare <= 8)
    again = median(lambda: touch("PostToolUse", "Edit", first), lambda: touch("PreToolUse", "Edit", first), 15)
    bench.note("hook, named before, bare starts", size, again, bare, again / bare, "<= 8", again / bare <= 8)


def transcripts(bench: Bench) -> None:
    """A long conversation: against `json.loads` of its lines, and in a process of its own for the memory."""
    path = bench.work / "transcript.jsonl"
    _make_transcript(path)

    def lines() -> None:
        with path.open("rb") as file:
            for line in file:
                json.loads(line)

    plain = min(_seconds(lines) for _ in range(3)) * 1000
    ours = min(_seconds(lambda: sum(1 for _ in iter_turns(path, "claude"))) for _ in range(3)) * 1000
    share = plain / ours
    bench.note("transcript of 100 MB, of json.loads", 1, ours, plain, share, ">= 0.33", share >= 1 / 3)
    code = (
        "import sys, resource; from snapstore.transcripts import iter_turns;"
        "sum(1 for _ in iter_turns(sys.argv[1], 'claude'));"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peak = int(subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True).stdout) / 1024
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
