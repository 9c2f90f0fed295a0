"""What a real agent sent to its hooks and wrote into its transcript, as a small file that fast tests play again.

`keeper` is the program that hooks call during a recording. `recorded` makes the document, and `Replay` plays it in a
project: files change as they did, the transcript grows as it did, and each payload goes through a real hook process.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from agents import hook

FOLDER = Path(__file__).parent.parent / "agents" / "recorded"
_LONGEST = 400  # characters of a text in a recording: prompts of the agent's own makers are long, and theirs
_MOST_TOOLS = 2  # descriptions of tools that a transcript repeats
_LONGEST_LINE = 3000  # characters of a line that holds no message
_OWN = re.compile(r"^(CLAUDE|CODEX|GEMINI|COPILOT|QWEN)_")

_KEEPER = """#!{python}
import json, os, pathlib, subprocess, sys, time
data = sys.stdin.buffer.read()
root, folder, transcript = (pathlib.Path(each) for each in ({root!r}, {folder!r}, {home!r}))
found = [path for pattern in {patterns!r} for path in pathlib.Path({home!r}).glob(pattern)]
files = {{path.name: path.read_text() for path in sorted(root.iterdir()) if path.is_file()}}
kept = {{"payload": data.decode(), "files": files, "env": dict(os.environ)}}
kept["transcript"] = {{str(path): path.read_text() for path in found}}
place = folder / f"{{time.time_ns()}}-{{os.getpid()}}"
place.with_suffix(".part").write_text(json.dumps(kept))
place.with_suffix(".part").rename(place.with_suffix(".json"))
raise SystemExit(subprocess.run([*{words!r}, *sys.argv[1:]], input=data).returncode)
"""


def keeper(*, python: str, root: Path, home: Path, folder: Path, patterns: list[str], words: list[str]) -> str:
    places = {"root": str(root), "home": str(home), "folder": str(folder)}
    return _KEEPER.format(python=python, patterns=patterns, words=words, **places)


def recorded(agent: str, version: str, folder: Path, root: Path, home: Path, given: dict[str, str]) -> dict[str, Any]:
    """The document of all that a keeper kept, without a path of the machine it was made on."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {clean(name): clean(_few(each) if name == "tools" else each) for name, each in value.items()}
        if isinstance(value, list):
            return [clean(each) for each in value]
        if not isinstance(value, str):
            return value
        text = value.replace(re.sub(r"[^A-Za-z0-9]", "-", str(root)), "-project")  # Claude Code's name for the folder
        text = text.replace(str(root), "{root}").replace(str(home), "{home}")
        text = text.replace("/root/", "/main/")  # Codex calls its agents so; nothing here is the home folder of root
        text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", text)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… (cut)"

    steps = []
    files: dict[str, str] = {}
    written: dict[str, list[Any] | str] = {}
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text())
        step: dict[str, Any] = {"payload": clean(json.loads(kept["payload"]))}
        changed = {name: text for name, text in kept["files"].items() if files.get(name) != text}
        if changed:
            step["files"] = changed
        env = {name: text for name, text in kept["env"].items() if _OWN.match(name) and name not in given}
        if env:
            step["env"] = clean(env)
        added = {}
        for name, text in kept["transcript"].items():
            records = _records(name, text)
            now = [_cut(clean(each)) for each in records] if isinstance(records, list) else clean(records)
            before = written.get(name, [])
            if now != before:
                grown = isinstance(now, list) and now[: len(before)] == before
                added[clean(name)] = {"more": now[len(before) :]} if grown else {"whole": now}
                written[name] = now
        if added:
            step["transcript"] = added
        files = kept["files"]
        steps.append(step)
    return {"agent": agent, "version": version, "steps": steps}


def _few(tools: Any) -> Any:
    return tools[:_MOST_TOOLS] if isinstance(tools, list) else tools


def _cut(line: dict[str, Any]) -> dict[str, Any]:
    """A line without what the agent told itself at length, such as the whole of its own prompt."""
    if len(json.dumps(line)) <= _LONGEST_LINE or {"message", "payload", "$set", "data"} & set(line):
        return line
    return {name: each for name, each in line.items() if not isinstance(each, dict | list)}


def _records(name: str, text: str) -> Any:
    """A transcript as its lines, or as the document that it is."""
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return json.loads(text)


def _spelled(name: str, records: Any) -> str:
    if name.endswith(".jsonl"):
        return "".join(json.dumps(each) + "\n" for each in records)
    return json.dumps(records, indent=2) + "\n"


def kind_of(path: Path) -> str:
    """The name of a recording without its version."""
    return path.name.rpartition("-")[0]


def load(kind: str) -> dict[str, Any]:
    [path] = [path for path in FOLDER.glob("*.json") if kind_of(path) == kind]
    document = json.loads(path.read_text())
    assert isinstance(document, dict)
    return document


class Replay:
    """Plays a recording in a project."""

    def __init__(self, kind: str, root: Path, home: Path) -> None:
        document = load(kind)
        self.agent, self.root, self.home = document["agent"], root, home
        self.steps = document["steps"]
        self._records: dict[str, Any] = {}

    def _placed(self, value: Any) -> Any:
        quoted = json.dumps(value).replace("{root}", str(self.root)).replace("{home}", str(self.home))
        return json.loads(quoted)

    def play(self, chosen: slice = slice(None)) -> None:
        for step in self.steps[chosen]:
            self._happen(step)
            hook(self.agent, self._placed(step["payload"]), env=self._placed(step.get("env", {})), cwd=self.root)

    def write(self) -> list[Path]:
        """Let all of it happen without a hook; give the transcripts that it left."""
        for step in self.steps:
            self._happen(step)
        return list(map(Path, self._records))

    def _happen(self, step: dict[str, Any]) -> None:
        for name, text in step.get("files", {}).items():
            (self.root / name).write_text(text)
        for name, change in self._placed(step.get("transcript", {})).items():
            before = self._records.get(name, [])
            self._records[name] = change["whole"] if "whole" in change else [*before, *change["more"]]
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(_spelled(name, self._records[name]))


__all__ = ["FOLDER", "Replay", "keeper", "kind_of", "load", "recorded"]
