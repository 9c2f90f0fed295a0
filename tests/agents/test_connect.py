"""Connecting agents: our hooks get into what is there, and out again to the byte."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from commands import PROGRAM, assert_record, snap, snap_json
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snapstore.agents.install.connect import SCOPES, Environment, connect, connections, disconnect
from snapstore.agents.install.jsonc import parse
from snapstore.agents.install.locations import installation, running_program
from snapstore.agents.known import opencode
from snapstore.agents.known.registry import AGENTS
from snapstore.base import own_command as program
from snapstore.base.own_command import ENTRY
from snapstore.surface.records.agents import ConnectionsRecord, ConnectRecord

PROGRAM_WORDS = ["snapstore"]
JSON_AGENTS = ("claude", "codex", "gemini", "cursor", "copilot", "qwen")
USER_FILES = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/plugins/snapstore.js",
    "cursor": ".cursor/hooks.json",
    "copilot": ".copilot/hooks/snapstore.json",
    "cline": "Documents/Cline/Hooks/TaskStart",
    "qwen": ".qwen/settings.json",
}
PROJECT_FILES = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".opencode/plugins/snapstore.js",
    "cursor": ".cursor/hooks.json",
    "copilot": ".github/hooks/snapstore.json",
    "cline": ".cline/hooks/TaskStart",
    "qwen": ".qwen/settings.json",
}
FOREIGN = {"type": "command", "command": "my-linter"}


@pytest.fixture
def here(root: Path, nobodys_home: Path) -> Environment:
    return Environment(str(nobodys_home / "stores"), str(root), os.environ)


def place(here: Environment, agent: str, scope: str) -> Path:
    if scope == "user":
        return Path(here.environ["HOME"]) / USER_FILES[agent]
    return Path(here.cwd) / PROJECT_FILES[agent]


def everything(here: Environment) -> dict[str, bytes | None]:
    """Every file and folder of the project and of the home folder, but for the stores."""
    found: dict[str, bytes | None] = {}
    for top in (Path(here.cwd), Path(here.environ["HOME"])):
        for path in sorted(top.rglob("*")):
            if not str(path).startswith(here.home):
                found[str(path)] = path.read_bytes() if path.is_file() else None
    return found


def put(path: Path, data: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def value_of(path: Path) -> Any:
    root = parse(path.read_bytes().decode())
    assert root is not None
    return root.value


def ours(agent: str, scope: str) -> str:
    return installation(agent).command(scope, PROGRAM_WORDS)


def commands(document: Any) -> list[str]:
    """Every command in a file of hooks, by walking all of it."""
    if isinstance(document, dict):
        own = [value for key, value in document.items() if key in ("command", "bash") and isinstance(value, str)]
        return own + [command for value in document.values() for command in commands(value)]
    return [command for value in document for command in commands(value)] if isinstance(document, list) else []


# Every agent, from nothing


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("agent", AGENTS)
def test_from_nothing_and_back_to_nothing(here: Environment, agent: str, scope: str) -> None:
    before = everything(here)
    plan = connect(here, agent, scope, PROGRAM_WORDS)
    assert plan.paths[0] == str(place(here, agent, scope))
    assert all(os.path.isfile(path) for path in plan.paths)
    connected = everything(here)
    again = connect(here, agent, scope, PROGRAM_WORDS)
    assert again.changes == []
    assert everything(here) == connected
    assert [str(change.found.path) for change in disconnect(here, agent, SCOPES).changes] == plan.paths
    assert everything(here) == before, "folders made for it are gone, too"
    assert disconnect(here, agent, SCOPES).changes == []


@pytest.mark.parametrize("scope", SCOPES)
def test_a_folder_that_was_there_and_empty_is_there_afterwards(here: Environment, scope: str) -> None:
    for agent in AGENTS:
        place(here, agent, scope).parent.mkdir(parents=True, exist_ok=True)
    before = everything(here)
    for agent in AGENTS:
        connect(here, agent, scope, PROGRAM_WORDS)
    for agent in AGENTS:
        disconnect(here, agent, [scope])
    assert everything(here) == before


EXISTING = {
    "empty": "",
    "newline": "\n",
    "object": "{}",
    "object, newline": "{}\n",
    "blank object": "{ }\n",
    "spread object": "{\n}\n",
    "no hooks": '{\n  "model": "opus",\n  "env": {"A": "1"}\n}\n',
    "no newline": '{\n  "model": "opus"\n}',
    "four spaces": '{\n    "model": "opus",\n    "hooks": {}\n}\n',
    "tabs": '{\n\t"model": "opus",\n\t"hooks": {\n\t\t"Other": []\n\t}\n}\n',
    "no indentation": '{\n"model": "opus"\n}\n',
    "minified": '{"model":"opus","hooks":{"Other":[{"hooks":[]}]}}',
    "one line": '{"model": "opus"}\n',
    "crlf": '{\r\n  "model": "opus",\r\n  "hooks": {\r\n  }\r\n}\r\n',
    "cr": '{\r  "model": "opus" // the best\r}\r',
    "byte order mark": '\ufeff{\n  "model": "opus"\n}\n',
    "mark alone": "\ufeff",
    "mark and brackets": "\ufeff{}",
    "comments": '// mine\n{\n  // why\n  "model": "opus", // so\n  /* all\n     of it */\n  "a": [1, 2,],\n}\n// end',
    "a comment last": '{\n  "model": "opus" // the best\n  // "hooks": {"Stop": []}\n}\n',
    "all commented out": '// {\n//   "hooks": {}\n// }\n',
    "commented out, no newline": "/* nothing */ // here",
    "comments in brackets": '{\n  // nothing yet\n}\n',
    "a comment in one line": "{ /* nothing yet */ }",
    "commas at the end": '{\n  "model": "opus",\n  "hooks": {\n    "Other": [],\n  },\n}\n',
    "closed on the line": '{\n  "model": "opus"}\n',
    "comma on its own": '{\n  "model": "opus"\n  ,\n}\n',
    "url in a text": '{"u": "https://x/*", "v": "//"}\n',
    "escapes": '{"\\u0068ooks_": "\\ud83d\\ude00 \\"}{", "é": "ü\u2028"}\n',
    "version": '{"version": 1}\n',
}  # fmt: skip


@pytest.mark.parametrize("text", EXISTING.values(), ids=EXISTING.keys())
@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_what_is_there_stays_and_comes_back_to_the_byte(here: Environment, agent: str, text: str) -> None:
    path = put(place(here, agent, "user"), text)
    before = everything(here)
    old = parse(text)
    connect(here, agent, "user", PROGRAM_WORDS)
    assert path.with_name(path.name + ".snapstore-backup").read_bytes() == text.encode()
    new = value_of(path)
    hooks = new.pop("hooks")
    was: dict[str, Any] = {} if old is None else dict(old.value)
    assert {event: hooks[event] for event in was.pop("hooks", {})}.keys() <= hooks.keys()
    extras = {} if agent not in ("cursor", "copilot") else {"version": 1}
    assert new == {**extras, **was}
    assert set(commands(hooks)) == {ours(agent, "user")}
    data = path.read_bytes().decode()
    if "\r\n" in text:
        assert data.count("\n") == data.count("\r\n")
    assert data.startswith("\ufeff") == text.startswith("\ufeff")
    if text.startswith('{"model":"opus"'):
        assert "\n" not in data and ": " not in data, "what is on one line stays there"
    if "\t" in text:
        assert "\n  " not in data
    assert connect(here, agent, "user", PROGRAM_WORDS).changes == []
    disconnect(here, agent, SCOPES)
    assert everything(here) == before


def test_what_is_added_looks_like_what_is_there(here: Environment) -> None:
    path = put(
        place(here, "cursor", "user"),
        '{\n    "version": 1, // as it is\n    "hooks": {\n        "stop": []\n    }\n}\n',
    )
    connect(here, "cursor", "user", PROGRAM_WORDS)
    lines = path.read_text().splitlines()
    assert lines[:9] == [
        "{",
        '    "version": 1, // as it is',
        '    "hooks": {',
        '        "stop": [',
        "            {",
        '                "command": "snapstore hook cursor"',
        "            }",
        "        ],",
        '        "sessionStart": [',
    ]


def test_what_each_agent_is_told() -> None:
    """The events and limits of each agent's documentation; nothing that it would not know."""
    told = {agent: json.loads(installation(agent).content.merged(None, "X") or "") for agent in JSON_AGENTS}
    assert {agent: list(document["hooks"]) for agent, document in told.items()} == {
        "claude": [
            "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "StopFailure", "SessionEnd",
        ],
        "codex": ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"],
        "gemini": ["SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"],
        "cursor": [
            "sessionStart", "beforeSubmitPrompt", "afterFileEdit", "afterShellExecution", "postToolUse", "stop",
            "sessionEnd",
        ],
        "qwen": [
            "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "StopFailure", "SessionEnd",
        ],
        "copilot": ["sessionStart", "userPromptSubmitted", "preToolUse", "postToolUse", "agentStop", "sessionEnd"],
    }  # fmt: skip
    claude = told["claude"]["hooks"]
    assert claude["UserPromptSubmit"] == [{"hooks": [{"type": "command", "command": "X", "timeout": 120}]}]
    assert claude["PreToolUse"][0]["matcher"] == "^(Edit|Write|MultiEdit|NotebookEdit|Bash|PowerShell|mcp__.*)$"
    assert claude["PostToolUse"][0]["matcher"] == "^(Edit|Write|MultiEdit|NotebookEdit)$"
    assert told["codex"]["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] == 3
    handler = {"type": "command", "command": "X", "name": "snapstore", "timeout": 120000}
    assert told["gemini"]["hooks"]["BeforeAgent"] == [{"hooks": [handler]}]
    assert told["cursor"]["version"] == told["copilot"]["version"] == 1
    assert told["copilot"]["hooks"]["preToolUse"] == [{"type": "command", "bash": "X", "timeoutSec": 60}]


# Hooks of others


def mixed(command: str) -> dict[str, Any]:
    return {
        "permissions": {"allow": ["Bash(ls)"]},
        "hooks": {
            "Stop": [{"hooks": [FOREIGN, {"type": "command", "command": command}]}, {"hooks": [FOREIGN]}],
            "PreToolUse": [
                {"matcher": "Bash", "hooks": [FOREIGN]},
                {"matcher": "Old", "hooks": [{"type": "command", "command": command}]},
                {"hooks": [{"type": "command", "command": command, "timeout": 1}]},
            ],
            "Notification": [{"hooks": [{"type": "command", "command": command}]}],
        },
    }


@pytest.mark.parametrize(
    "command",
    [
        "snapstore hook claude",
        "snapstore hook claude --tell",
        "/old/place/snapstore hook claude",
        "'/old place/snapstore' hook claude",
        "/usr/bin/python3 -m snapstore hook claude",
        "/usr/bin/python3 -P -m snapstore hook claude --tell",
        "/usr/bin/python3 -I -m snapstore hook claude",
        f"/usr/bin/python3 -E -P {shlex.join(ENTRY)} hook claude",
        f"/usr/bin/python3 -I {shlex.join(ENTRY)} hook claude --tell",
        "command -v snapstore >/dev/null 2>&1 && snapstore hook claude; exit 0",
        "command -v snapstore >/dev/null 2>&1 && PYTHONHOME= PYTHONPATH= snapstore hook claude; exit 0",
    ],
)
@pytest.mark.parametrize("indent", [2, None])
def test_ours_of_another_day_are_replaced_in_place_and_foreign_ones_stay(
    here: Environment, command: str, indent: int | None
) -> None:
    path = put(place(here, "claude", "user"), json.dumps(mixed(command), indent=indent))
    connect(here, "claude", "user", PROGRAM_WORDS)
    hooks = value_of(path)["hooks"]
    assert "Notification" not in hooks
    assert hooks["Stop"][:2] == [{"hooks": [FOREIGN]}, {"hooks": [FOREIGN]}]
    assert len(hooks["Stop"]) == 3
    assert [entry["matcher"] for entry in hooks["PreToolUse"]] == [
        "Bash",
        "^(Edit|Write|MultiEdit|NotebookEdit|Bash|PowerShell|mcp__.*)$",
    ]
    assert commands(hooks).count("snapstore hook claude") == 7
    assert commands(hooks).count("my-linter") == 3
    disconnect(here, "claude", SCOPES)
    assert value_of(path) == {
        "permissions": {"allow": ["Bash(ls)"]},
        "hooks": {
            "Stop": [{"hooks": [FOREIGN]}, {"hooks": [FOREIGN]}],
            "PreToolUse": [{"matcher": "Bash", "hooks": [FOREIGN]}],
        },
    }


@pytest.mark.parametrize(
    "command",
    [
        "echo snapstore hook claude",
        "snapstore hook claude; rm x",
        "snapstore hook claude && my-linter",
        "my-snapstore hook claude",
        "snapstore hook codex",
        "env A=1 snapstore hook claude",
        "snapstore status",
        "snapstore hook claude 'unclosed",
        "",
    ],
)
def test_what_only_looks_like_ours_is_foreign(here: Environment, command: str) -> None:
    theirs = {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}], "Mine": [1, None, {"hooks": 5}]}
    }
    path = put(place(here, "claude", "user"), json.dumps(theirs))
    assert disconnect(here, "claude", SCOPES).changes == []
    connect(here, "claude", "user", PROGRAM_WORDS)
    assert value_of(path)["hooks"]["Stop"][0] == theirs["hooks"]["Stop"][0]
    assert value_of(path)["hooks"]["Mine"] == theirs["hooks"]["Mine"]
    disconnect(here, "claude", SCOPES)
    assert path.read_text() == json.dumps(theirs)


def test_settings_that_went_on_living_lose_only_what_is_ours(here: Environment) -> None:
    """The backup is older than what the person did since: it stays, and is named."""
    path = put(place(here, "claude", "user"), '{\n  // mine\n  "model": "opus"\n}\n')
    connect(here, "claude", "user", PROGRAM_WORDS)
    path.write_text(path.read_text().replace('"opus"', '"sonnet", // cheaper\n  "new": [1,  2]'))
    plan = disconnect(here, "claude", SCOPES)
    assert path.read_text() == '{\n  // mine\n  "model": "sonnet", // cheaper\n  "new": [1,  2]\n}\n'
    backup = Path(f"{path}.snapstore-backup")
    assert backup.read_text() == '{\n  // mine\n  "model": "opus"\n}\n'
    assert str(backup) in plan.notes[0]
    # And the next time round the backup is of what is there now.
    before = path.read_bytes()
    connect(here, "claude", "user", PROGRAM_WORDS)
    assert backup.read_bytes() == before
    disconnect(here, "claude", SCOPES)
    assert path.read_bytes() == before
    assert not backup.exists()


def test_a_file_of_ours_that_someone_added_to_is_not_removed(here: Environment) -> None:
    connect(here, "claude", "user", PROGRAM_WORDS)
    path = place(here, "claude", "user")
    path.write_text(path.read_text().replace('{\n  "hooks"', '{\n  "model": "opus",\n  "hooks"', 1))
    disconnect(here, "claude", SCOPES)
    assert path.read_text() == '{\n  "model": "opus"\n}\n'


def test_comments_in_what_becomes_empty_are_not_thrown_away(here: Environment) -> None:
    path = put(place(here, "claude", "user"), '{"hooks": {"Stop": [ /* keep me */ ]}}')
    connect(here, "claude", "user", PROGRAM_WORDS)
    path.write_text(path.read_text() + "\n")
    disconnect(here, "claude", SCOPES)
    assert "/* keep me */" in path.read_text()
    assert value_of(path) == {"hooks": {"Stop": []}}


def test_both_scopes_at_once_and_one_by_one(here: Environment) -> None:
    before = everything(here)
    for scope in SCOPES:
        connect(here, "codex", scope, PROGRAM_WORDS)
    disconnect(here, "codex", ["project"])
    assert place(here, "codex", "user").exists() and not place(here, "codex", "project").exists()
    connect(here, "codex", "project", PROGRAM_WORDS)
    assert len(disconnect(here, "codex", SCOPES).changes) == 2
    assert everything(here) == before


def test_another_wish_replaces_the_first_and_the_backup_stays_the_first(here: Environment) -> None:
    path = put(place(here, "claude", "user"), '{"model": "opus"}')
    before = everything(here)
    connect(here, "claude", "user", PROGRAM_WORDS)
    plain = path.read_bytes()
    connect(here, "claude", "user", ["/opt/snapstore"])
    assert set(commands(value_of(path))) == {"/opt/snapstore hook claude"}
    connect(here, "claude", "user", PROGRAM_WORDS)
    assert path.read_bytes() == plain
    disconnect(here, "claude", SCOPES)
    assert everything(here) == before


# Any text


GAPS = ["", "", " ", "\n", "\n  ", "\t", "\r\n", '/* " { */', '// [ ",\n', " // }\r\n\t", "/**/ "]
keys = st.text(max_size=5).filter(lambda key: key not in ("hooks", "version"))
plain = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9)
)
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=9
)
groups = st.fixed_dictionaries(
    {
        "hooks": st.lists(
            st.fixed_dictionaries({"command": st.text(max_size=9)}, optional={"timeout": values}), max_size=2
        )
    },
    optional={"matcher": st.text(max_size=3)},
)
events = st.sampled_from(["Stop", "SessionEnd", "PreToolUse", "Mine", "Theirs"])
former = st.lists(st.sampled_from(["x", "/old/snapstore hook claude"]), min_size=1, max_size=3).map(
    lambda commands: {"hooks": [{"command": command} for command in commands]}
)


@st.composite
def documents(draw: st.DrawFn, entries: st.SearchStrategy[Any] = groups) -> tuple[dict[str, Any], str]:
    """Settings of any content in any layout, and what they say."""
    document = draw(st.dictionaries(keys, values, max_size=3))
    if draw(st.booleans()):
        document["hooks"] = draw(st.dictionaries(events, st.lists(entries, max_size=3), max_size=3))
    gap = st.sampled_from(GAPS)

    def shown(value: Any) -> str:
        if isinstance(value, dict):
            parts = [
                f"{draw(gap)}{json.dumps(key)}{draw(gap)}:{draw(gap)}{shown(of)}{draw(gap)}"
                for key, of in value.items()
            ]
        elif isinstance(value, list):
            parts = [f"{draw(gap)}{shown(of)}{draw(gap)}" for of in value]
        else:
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        last = f",{draw(gap)}" if parts and draw(st.booleans()) else "" if parts else draw(gap)
        return "{["[isinstance(value, list)] + ",".join(parts) + last + "}]"[isinstance(value, list)]

    mark = draw(st.sampled_from(["", "\ufeff"]))
    return document, mark + draw(gap) + shown(document) + draw(gap)


def without_ours(document: Any) -> Any:
    found = {**document, "hooks": {}}
    for event, entries in document["hooks"].items():
        left = [entry for entry in entries if "snapstore hook claude" not in json.dumps(entry)]
        if left or event in ("Mine", "Theirs"):
            found["hooks"][event] = left
    return found


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_any_settings_keep_every_foreign_value_and_layout(drawn: tuple[dict[str, Any], str]) -> None:
    document, text = drawn
    content = installation("claude").content
    root = parse(text)
    assert root is not None and root.value == document
    one = content.merged(text, "snapstore hook claude")
    assert content.connected(one) == "snapstore hook claude"
    assert content.merged(one, "snapstore hook claude") == one
    made = parse(one)
    assert made is not None and commands(made.value["hooks"]).count("snapstore hook claude") == 7
    full = {
        event: entries for event, entries in document.get("hooks", {}).items() if entries or event in ("Mine", "Theirs")
    }
    assert without_ours(made.value) == {**document, "hooks": full}
    # Another command in place gives what it would have given at once.
    assert content.merged(one, "/x/snapstore hook claude") == content.merged(text, "/x/snapstore hook claude")
    parted = content.without(one)
    left = parse(parted or "")
    assert left is not None
    assert {"hooks": {}, **left.value}["hooks"].items() <= document.get("hooks", {}).items()
    assert {**left.value, "hooks": 0} == {**document, "hooks": 0}
    filled = document and document.get("hooks", 1) and all(document.get("hooks", {"": 1}).values())
    if filled:  # where nothing was empty before, taking ours out is the whole way back
        assert parted == text


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(documents(), st.sampled_from(["claude", "codex", "gemini"]))
def test_any_settings_come_back_to_the_byte(here: Environment, drawn: tuple[dict[str, Any], str], agent: str) -> None:
    path = put(place(here, agent, "project"), drawn[1])
    before = everything(here)
    connect(here, agent, "project", PROGRAM_WORDS)
    assert path.read_bytes() != drawn[1].encode()
    disconnect(here, agent, SCOPES)
    assert everything(here) == before
    path.unlink()


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents(former))
def test_any_mixture_of_ours_and_theirs_is_taken_apart(drawn: tuple[dict[str, Any], str]) -> None:
    document, text = drawn
    content = installation("claude").content

    def theirs(found: Any) -> Any:
        """Without our handlers, and without what is empty."""
        left = {}
        for event, entries in found.get("hooks", {}).items():
            kept = [[of for of in entry["hooks"] if "snapstore hook" not in of["command"]] for entry in entries]
            left[event] = [handlers for handlers in kept if handlers]
        return {**found, "hooks": {event: entries for event, entries in left.items() if entries}}

    for made, number in ((content.without(text), 0), (content.merged(text, "snapstore hook claude"), 7)):
        root = parse(made or "")
        assert root is not None
        assert theirs(root.value) == theirs(document)
        said = commands(root.value.get("hooks", {}))
        assert (said.count("snapstore hook claude"), said.count("/old/snapstore hook claude")) == (number, 0)


# What the agents run


def fake(folder: Path, code: str) -> Path:
    """A program named snapstore."""
    path = put(folder / "snapstore", f"#!{sys.executable}\nimport sys\n{code}\n")
    path.chmod(0o755)
    return path


def shell(command: str, path: str, feed: str = "{}") -> subprocess.CompletedProcess[str]:
    """As an agent runs it."""
    run = ["/bin/sh", "-c", command]
    return subprocess.run(
        run, input=feed, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )


@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_a_projects_hook_is_quiet_where_snapstore_is_missing_or_fails(agent: str, tmp_path: Path) -> None:
    """Others who share the project may not have it."""
    done = shell(ours(agent, "project"), "/nowhere")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    fake(tmp_path / "bin", "print(sys.argv[1:], sys.stdin.read()); sys.exit(2)")
    done = shell(ours(agent, "project"), str(tmp_path / "bin"), '{"a": 1}')
    assert (done.returncode, done.stdout) == (0, f"['hook', '{agent}'] {{\"a\": 1}}\n")


def test_copilots_tools_are_not_refused_when_our_program_is_gone() -> None:
    """It takes any failure before a tool for a refusal."""
    assert shell(ours("copilot", "user"), "/nowhere").returncode == 0


def test_clines_scripts_answer_with_json_whatever_happens(here: Environment, tmp_path: Path) -> None:
    plan = connect(here, "cline", "project", PROGRAM_WORDS)
    assert sorted(os.path.basename(path) for path in plan.paths) == [
        "PostToolUse", "PreToolUse", "TaskCancel", "TaskComplete", "TaskError", "TaskResume", "TaskStart",
        "UserPromptSubmit",
    ]  # fmt: skip
    for path in plan.paths:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o755
        done = subprocess.run([path], input="{}", capture_output=True, text=True, check=True, env={"PATH": "/nowhere"})
        assert (json.loads(done.stdout), done.stderr) == ({}, "")
    fake(tmp_path / "bin", "print('{}' if sys.argv[1:] == ['hook', 'cline'] else '?')")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run([plan.paths[0]], input="{}", capture_output=True, text=True, check=True, env={"PATH": path})
    assert done.stdout == "{}\n"


def test_the_program_that_runs_is_the_one_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no isolated interpreter finds the package, the console script serves, or the interpreter as it is."""
    assert running_program({"PATH": "/nowhere"}) == [sys.executable, "-I", *ENTRY]
    monkeypatch.setattr(program, "checked_command", lambda: None)
    script = fake(tmp_path / "a b", "")
    other = fake(tmp_path / "other", "")
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert running_program({"PATH": f"{script.parent}:{other.parent}"}) == ["snapstore"]
    assert running_program({"PATH": f"{other.parent}:{script.parent}"}) == [str(script)]
    assert running_program({"PATH": "/nowhere"}) == [str(script)]
    link = tmp_path / "bin" / "snapstore"
    link.parent.mkdir()
    link.symlink_to(script)
    assert running_program({"PATH": str(link.parent)}) == ["snapstore"]
    assert installation("claude").command("user", [str(script)]) == f"'{script}' hook claude"
    inside = fake(tmp_path / "env" / "bin", "")
    put(tmp_path / "env" / "pyvenv.cfg", "home = /usr/bin\n")
    monkeypatch.setattr(sys, "argv", [str(inside)])
    assert running_program({"PATH": str(inside.parent)}) == [str(inside)], "an agent starts where it is not activated"
    link.unlink()
    link.symlink_to(inside)
    assert running_program({"PATH": str(link.parent)}) == ["snapstore"]
    monkeypatch.setattr(sys, "argv", ["/x/snapstore/__main__.py"])
    assert running_program({"PATH": str(link.parent)}) == [sys.executable, "-P", *ENTRY]


def test_a_folder_of_the_project_is_not_run_in_our_place(here: Environment, root: Path) -> None:
    """G-09. `python -m` alone would look into the current folder first: the agent's project."""
    put(root / "snapstore" / "__init__.py", "")
    put(root / "snapstore" / "__main__.py", "print('gotcha')\n")
    snap(Path(here.environ["HOME"]), "connect", "codex")
    command = commands(value_of(place(here, "codex", "user")))[0]
    done = subprocess.run(
        command.replace("hook codex", "--version"), shell=True, cwd=root, capture_output=True, text=True
    )
    assert done.stdout.startswith("snapstore ")


DRIVER = """
import { readFileSync } from "node:fs";
const { Snapstore, ...others } = await import(process.argv[2]);
if (Object.keys(others).length) throw new Error("opencode takes every export for a plugin");
const hooks = await Snapstore({ directory: "/work/project", worktree: "/work" });
const event = (type, properties) => hooks.event({ event: { type, properties } });
const parts = [{ type: "text", text: "Fix it" }, { type: "file" }, { type: "text", text: "now" },
               { type: "text", text: "hidden", synthetic: true }];
await event("session.created", { info: { id: "s1" } });
await hooks["chat.message"]({ sessionID: "s1", messageID: "m1" }, { message: { id: "m1" }, parts });
await hooks["tool.execute.before"]({ tool: "edit", sessionID: "s1", callID: "c1" }, { args: { filePath: "a" } });
await hooks["tool.execute.after"]({ tool: "edit", sessionID: "s1", callID: "c1", args: { filePath: "a" } }, {});
await event("session.created", { info: { id: "s2", parentID: "s1" } });
await event("session.created", { info: { id: "s3", parentID: "s2" } });
await hooks["chat.message"]({ sessionID: "s2" }, { message: { id: "m2" }, parts: [] });
await event("session.status", { sessionID: "s1", status: { type: "busy" } });
// Not awaited, and odd ones among them: the order stays, and nothing is thrown.
const all = [
  event("session.status", { sessionID: "s1", status: { type: "idle" } }),
  event("session.idle", { sessionID: "s1" }),
  event("session.status", {}), event("session.created"), event("file.edited", { file: "a" }), hooks.event({}),
  hooks["chat.message"](), hooks["tool.execute.before"]({}), hooks["tool.execute.after"](),
  hooks["tool.execute.before"]({ tool: "big", sessionID: "s1", callID: "c2" }, { args: { n: 1n } }),
  event("session.deleted", { info: { id: "s1" } }),
];
await Promise.all(all);
"""

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


def drive(plugin: Path, tmp_path: Path, path: str) -> subprocess.CompletedProcess[str]:
    module = shutil.copy(plugin, tmp_path / "plugin.mjs")  # node wants that name; opencode's runtime does not
    driver = put(tmp_path / "driver.mjs", DRIVER)
    node = shutil.which("node")
    assert node is not None
    return subprocess.run(
        [node, str(driver), str(module)], capture_output=True, text=True, check=False, timeout=60, env={"PATH": path}
    )


@needs_node
def test_opencodes_plugin_tells_every_event_in_order(here: Environment, tmp_path: Path) -> None:
    told = tmp_path / "told"
    code = "import time\ndata = sys.stdin.read()\ntime.sleep(0.05 if 'stop' in data else 0)\n"
    code += f"open({str(told)!r}, 'a').write(' '.join(sys.argv[1:]) + ' ' + data + '\\n')"
    program = fake(tmp_path / "with 'quotes'", code)
    connect(here, "opencode", "user", [str(program)])
    done = drive(place(here, "opencode", "user"), tmp_path, "/nowhere")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    rows = [row.partition(" {") for row in told.read_text().splitlines()]
    assert {row[0] for row in rows} == {"hook opencode"}
    at = {"directory": "/work/project"}
    edit = {"tool": "edit", "args": {"filePath": "a"}, "call_id": "c1"}
    assert [json.loads("{" + row[2]) for row in rows] == [
        {"event": "start", "session_id": "s1", **at},
        {"event": "prompt", "session_id": "s1", "prompt": "Fix it\nnow", "prompt_id": "m1", **at},
        {"event": "before", "session_id": "s1", **edit, **at},
        {"event": "after", "session_id": "s1", **edit, **at},
        {"event": "start", "session_id": "s2", "parent_id": "s1", **at},
        {"event": "start", "session_id": "s3", "parent_id": "s1", **at},
        {"event": "prompt", "session_id": "s2", "parent_id": "s1", "prompt": "", "prompt_id": "m2", **at},
        {"event": "stop", "session_id": "s1", **at},
        {"event": "end", "session_id": "s1", **at},
    ]


@needs_node
def test_opencode_goes_on_when_our_program_is_missing_or_does_not_listen(here: Environment, tmp_path: Path) -> None:
    connect(here, "opencode", "project", PROGRAM_WORDS)
    plugin = place(here, "opencode", "project")
    assert drive(plugin, tmp_path, "/nowhere").returncode == 0
    fake(tmp_path / "bin", "sys.stdin.close(); sys.exit(2)")
    done = drive(plugin, tmp_path, str(tmp_path / "bin"))
    assert (done.returncode, done.stderr) == (0, "")


def test_the_plugin_of_opencode_comes_with_the_package() -> None:
    """The builder takes every file of the package that git does not ignore."""
    plugin = Path(opencode.__file__).with_name("opencode_plugin.js")
    assert plugin.is_file()
    ignored = subprocess.run(["git", "check-ignore", "-q", plugin.name], cwd=plugin.parent, check=False)
    assert ignored.returncode != 0


# A plugin folder for Claude Code


def test_a_plugin_folder(here: Environment, root: Path, tmp_path: Path) -> None:
    before = everything(here)
    folder = tmp_path / "plugins" / "snapstore"
    plan = connect(here, "claude", "user", ["/opt/snapstore"], plugin=str(folder))
    assert plan.paths == [str(folder / ".claude-plugin/plugin.json"), str(folder / "hooks/hooks.json")]
    assert json.loads((folder / ".claude-plugin/plugin.json").read_text())["name"] == "snapstore"
    assert set(commands(value_of(folder / "hooks/hooks.json"))) == {ours("claude", "plugin")}
    assert ours("claude", "plugin").startswith("command -v snapstore "), "it may be given away"
    assert everything(here) == before
    assert connect(here, "claude", "user", ["/opt/snapstore"], plugin=str(folder)).changes == []
    manifest = folder / ".claude-plugin/plugin.json"
    older = put(manifest, manifest.read_text().replace('"version": "', '"version": "0.0.'))
    connect(here, "claude", "user", ["/opt/snapstore"], plugin=str(folder))
    assert "0.0." not in older.read_text()
    disconnect(here, "claude", SCOPES, plugin=str(folder))
    assert not (tmp_path / "plugins").exists()


def test_a_plugin_that_someone_made_their_own_keeps_what_they_added(here: Environment, tmp_path: Path) -> None:
    manifest = put(tmp_path / "p/.claude-plugin/plugin.json", '{"name": "snapstore", "keywords": ["mine"]}')
    connect(here, "claude", "user", PROGRAM_WORDS, plugin=str(tmp_path / "p"))
    disconnect(here, "claude", SCOPES, plugin=str(tmp_path / "p"))
    assert manifest.read_text() == '{"name": "snapstore", "keywords": ["mine"]}'
    assert os.listdir(tmp_path / "p") == [".claude-plugin"]


def test_another_plugins_folder_is_refused(here: Environment, root: Path) -> None:
    """G-09."""
    manifest = put(root / "p/.claude-plugin/plugin.json", '{"name": "mine"}')
    error = snap_json(root, "connect", "claude", "--plugin", "p", "--json", status=10)
    assert (error["error"], str(manifest) in error["message"]) == ("conflict", True)
    assert not (root / "p/hooks").exists()


# The commands


def test_connecting_says_what_was_written_and_what_comes_next(root: Path, here: Environment) -> None:
    path = put(place(here, "codex", "user"), "{}")
    done = snap(root, "connect", "codex")
    assert done.stdout.splitlines() == [
        "Connected Codex: each of its turns is recorded from now on.",
        f"written   {path}",
        f"backup    {path}.snapstore-backup",
        "Restart Codex. It asks whether to trust new hooks, and does not run them until you agree.",
        "Undo this with `snapstore disconnect codex`.",
    ]
    assert "already connected; nothing to do" in snap(root, "connect", "codex").stdout
    assert snap(root, "disconnect", "codex").stdout.splitlines()[1:] == [f"written   {path}"]
    assert snap(root, "disconnect", "codex").stdout == "Codex is not connected; nothing to do.\n"
    assert "--project`" in snap(root, "connect", "codex", "--project").stdout


def test_a_dry_run_prints_the_difference_and_writes_nothing(root: Path, here: Environment) -> None:
    path = put(place(here, "claude", "user"), '{\n  "model": "opus"\n}')
    before = everything(here)
    done = snap(root, "connect", "claude", "--dry-run")
    assert f"--- {path}\n+++ {path}\n" in done.stdout
    document = snap_json(root, "connect", "claude", "--dry-run", "--json")
    assert_record(ConnectRecord, document)
    assert document["patch"] == done.stdout
    assert everything(here) == before
    assert not Path(here.home).exists()
    # It is what would be written: `patch` makes the same of it.
    copy = put(root / "copy", path.read_bytes())
    if shutil.which("patch"):
        subprocess.run(["patch", "-s", str(copy)], input=done.stdout, text=True, check=True)
        snap(root, "connect", "claude")
        assert path.read_bytes() == copy.read_bytes()
    copy.unlink()
    snap(root, "connect", "claude")
    assert snap(root, "connect", "claude", "--dry-run").stdout == "Nothing would change.\n"
    assert f"+++ {path}\n" in snap(root, "disconnect", "claude", "--dry-run").stdout
    snap(root, "disconnect", "claude")
    assert everything(here) == before


def test_json_says_what_was_changed_where(root: Path, here: Environment) -> None:
    path = put(place(here, "claude", "project"), "{}")
    document = snap_json(root, "connect", "claude", "--project", "--json")
    assert_record(ConnectRecord, document)
    backup = f"{path}.snapstore-backup"
    assert document["files"] == [{"path": str(path), "change": "M", "backup": backup}]
    assert document["command"] == ours("claude", "project")
    document = snap_json(root, "connect", "claude", "--project", "--json")
    assert (document["changed"], document["files"]) == (False, [])
    assert snap_json(root, "disconnect", "claude", "--json")["files"][0]["change"] == "M"


def test_the_list_shows_where_each_agent_is_connected_and_when_it_called(root: Path, here: Environment) -> None:
    snap(root, "connect", "claude")
    snap(root, "connect", "claude", "--project")
    snap(root, "connect", "gemini")
    outdated = place(here, "gemini", "user")
    outdated.write_text(outdated.read_text().replace("AfterTool", "AfterToolOld"))
    put(place(here, "cursor", "project"), "{")
    put(Path(here.home) / "fired" / "claude", "")
    os.utime(Path(here.home) / "fired" / "claude", (1_700_000_000.25, 1_700_000_000.25))
    document = snap_json(root, "connect", "--list", "--json")
    assert_record(ConnectionsRecord, document)
    rows = {row["agent"]: row for row in document["agents"]}
    assert list(rows) == list(AGENTS)
    assert rows["claude"]["fired_at"] == "2023-11-14T22:13:20.250Z"
    assert [(row["scope"], row["tells"], row["outdated"]) for row in rows["claude"]["places"]] == [
        ("user", True, False),
        ("project", True, False),
    ]
    assert [row["outdated"] for row in rows["gemini"]["places"]] == [True]
    assert (rows["cursor"]["connected"], "line 1" in rows["cursor"]["places"][0]["problem"]) == (False, True)
    assert (rows["codex"]["connected"], rows["codex"]["places"], rows["codex"]["fired_at"]) == (False, [], None)
    shown = snap(root, "connect", "--list").stdout.splitlines()
    assert len(shown) == 10
    assert shown[0].split()[:3] == ["claude", "connected", "user"] and "called 2023-11-1" in shown[0]
    assert shown[1].split()[:2] == ["connected", "project"]
    assert shown[3].split()[:3] == ["gemini", "outdated", "user"] and "never called" in shown[3]
    assert snap(root, "connect", "--list", "codex").stdout.split() == ["codex", "not", "connected"]


def test_a_hook_whose_program_is_gone_is_outdated(here: Environment, tmp_path: Path) -> None:
    program = fake(tmp_path / "venv", "")
    connect(here, "claude", "user", [str(program)])
    assert [found.outdated for found in connections(here.home, here.cwd, here.environ)[0].places] == [False]
    program.unlink()
    assert [found.outdated for found in connections(here.home, here.cwd, here.environ)[0].places] == [True]


def test_hooks_as_a_former_version_wrote_them_are_outdated(here: Environment) -> None:
    """They start an interpreter that PYTHONPATH or a `json.py` in the project can break."""
    connect(here, "claude", "user", [sys.executable, "-m", "snapstore"])
    assert [found.outdated for found in connections(here.home, here.cwd, here.environ)[0].places] == [True]
    connect(here, "claude", "user", [sys.executable, "-I", *ENTRY])
    assert [found.outdated for found in connections(here.home, here.cwd, here.environ)[0].places] == [False]


def test_a_script_that_is_missing_makes_the_connection_outdated(here: Environment) -> None:
    plan = connect(here, "cline", "project", PROGRAM_WORDS)
    os.unlink(plan.paths[3])
    [cline] = [each for each in connections(here.home, here.cwd, here.environ) if each.agent == "cline"]
    assert [found.outdated for found in cline.places] == [True]
    assert [change.found.path for change in connect(here, "cline", "project", PROGRAM_WORDS).changes] == [plan.paths[3]]


def test_the_project_is_the_one_above_a_subfolder(root: Path, here: Environment) -> None:
    snap(root, "init")
    (root / "deep/er").mkdir(parents=True)
    snap(root / "deep/er", "connect", "claude", "--project")
    assert place(here, "claude", "project").exists()


@pytest.mark.parametrize(
    ("agent", "variable", "file"),
    [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("copilot", "COPILOT_HOME", "hooks/snapstore.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/plugins/snapstore.js"),
    ],
)
def test_agents_that_live_elsewhere_are_found_there(
    here: Environment, tmp_path: Path, agent: str, variable: str, file: str
) -> None:
    environ: Mapping[str, str] = {**here.environ, variable: str(tmp_path / "else where")}
    plan = connect(Environment(here.home, here.cwd, environ), agent, "user", PROGRAM_WORDS)
    assert plan.paths == [str(tmp_path / "else where" / file)]


def test_wishes_that_make_no_sense(root: Path) -> None:
    """G-21: refused with the reason."""
    for arguments, said in (
        (["connect"], "which agent"),
        (["connect", "aider"], "'aider' is not one of"),
        (["disconnect", "aider"], "'aider' is not one of"),
        (["disconnect"], "Missing argument"),
        (["connect", "claude", "--user", "--project"], "exclude each other"),
        (["disconnect", "claude", "--user", "--project"], "exclude each other"),
        (["connect", "claude", "--plugin", "x", "--user"], "exclude each other"),
        (["connect", "codex", "--plugin", "x"], "for claude only"),
    ):
        error = snap_json(root, *arguments, "--json", status=2)
        assert said in error["message"], (arguments, error)
    assert list(root.iterdir()) == []
    assert "absolute" in snap_json(root, "connect", "codex", "--json", status=2, CODEX_HOME="here")["message"]


def test_the_command_of_a_users_hook_runs_this_very_program(root: Path, here: Environment) -> None:
    snap(root, "connect", "claude")
    command = commands(value_of(place(here, "claude", "user")))[0]
    assert command == shlex.join([PROGRAM[0], "-I", *ENTRY, "hook", "claude"])
