"""The hook files of each agent, and what we write into them."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import shutil
import sys

from snapstore.agents.capabilities import capability
from snapstore.agents.install.hook_file import HookFile
from snapstore.agents.install.own_file import Manifest, OwnFile
from snapstore.base import own_command as own_program
from snapstore.errors import Unsafe, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Entry = Callable[[str], dict[str, Any]]
    Content = HookFile | OwnFile | Manifest

USER, PROJECT, PLUGIN = "user", "project", "plugin"

# A project's file is shared with people who may not have snapstore.
_GUARD = "command -v snapstore >/dev/null 2>&1 && "
# A shared file cannot name an interpreter, so -I is not possible. An empty variable counts as unset.
_CLEAN = "PYTHONHOME= PYTHONPATH= "
_ALWAYS_WELL = "; exit 0"
_TELL = " --tell"

_WRITING = "Edit|Write|MultiEdit|NotebookEdit"
_LONG, _SHORT = 120, 60  # seconds; a prompt or a stop may scan a large tree


class Installation:
    """Where an agent looks for hooks.

    `user` is a folder below the home folder; the environment variable `variable`, if set, replaces it. `inside` is a
    path below either. `project` is a path below the project. `after` tells the user what to do next.
    """

    __slots__ = ("after", "agent", "content", "files", "inside", "project", "title", "user", "variable")

    def __init__(
        self,
        agent: str,
        content: HookFile | OwnFile,
        *,
        user: str,
        project: str,
        files: Sequence[str],
        variable: str = "",
        inside: str = "",
        after: str = "",
    ) -> None:
        self.agent = agent
        self.title = capability(agent).name
        self.content = content
        self.user = user
        self.variable = variable
        self.inside = inside
        self.project = project
        self.files = files
        self.after = after or f"Restart {self.title} if it is running."

    @property
    def executable(self) -> bool:
        return self.agent == "cline"

    @property
    def can_tell(self) -> bool:
        return self.agent == "claude"

    def places(self, scope: str, base: str, environ: Mapping[str, str]) -> list[tuple[str, Content]]:
        """Return the files and their contents.

        `base` is the project's folder, or the plugin's.
        """
        if scope == PLUGIN:
            manifest = os.path.join(base, ".claude-plugin", "plugin.json")
            return [(manifest, Manifest()), (os.path.join(base, "hooks", "hooks.json"), self.content)]
        folder = os.path.join(base, self.project) if scope == PROJECT else self._user_folder(environ)
        return [(os.path.join(folder, name), self.content) for name in self.files]

    def _user_folder(self, environ: Mapping[str, str]) -> str:
        chosen = environ.get(self.variable, "") if self.variable else ""
        folder = chosen or os.path.join(user_home(environ), self.user)
        if not os.path.isabs(folder):
            raise Usage(
                f"{self.variable} is {chosen!r}, which is not an absolute path",
                f"Set {self.variable} to an absolute path, as {self.title} needs it too.",
            )
        return os.path.join(folder, self.inside)

    def command(self, scope: str, program: Sequence[str], *, tell: bool = False) -> str:
        """Return the command that the agent is to run."""
        program = ["snapstore"] if scope != USER else program
        words = [*program, "hook", self.agent]
        shown = ("" if scope == USER else _CLEAN) + shlex.join(words) + (_TELL if tell else "")
        try:
            shown.encode()
        except UnicodeEncodeError:
            raise Unsafe(
                f"the path of this program is not UTF-8, and {self.title} could not run it: {program[0]!r}",
                "Install snapstore in another folder.",
            ) from None
        if self.agent == "opencode":
            return json.dumps(words, ensure_ascii=False)
        if self.agent == "cline":
            return f"command -v {shlex.quote(program[0])} >/dev/null 2>&1 && {shown} || echo '{{}}'"
        if scope != USER:
            return f"{_GUARD}{shown}{_ALWAYS_WELL}"
        return shown + (_ALWAYS_WELL if self.agent == "copilot" else "")  # Copilot treats any failure as a refusal


def user_home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or os.path.expanduser("~")


def running_program(environ: Mapping[str, str]) -> list[str]:
    """Return the words that start the running program from any folder and environment."""
    return own_program.checked_command() or _script(environ)


def _script(environ: Mapping[str, str]) -> list[str]:
    """Return the words that start a program no isolated interpreter finds.

    A source tree on PYTHONPATH is an example.
    """
    script = os.path.abspath(sys.argv[0])
    if os.path.basename(script) != "snapstore" or not os.access(script, os.X_OK):
        return own_program.own_command()
    found = shutil.which("snapstore", path=environ.get("PATH"))
    if found is None or not os.path.isabs(found) or not os.path.samefile(found, script) or _in_environment(found):
        return [script]
    return ["snapstore"]


def _in_environment(program: str) -> bool:
    """Return whether $PATH has the program only inside an active virtual environment.

    Most agents are started without an active virtual environment.
    """
    return os.path.exists(os.path.join(os.path.dirname(os.path.dirname(program)), "pyvenv.cfg"))


def program_of(command: str) -> str:
    """Return the program that a command of ours starts."""
    if command.startswith("["):
        return str(json.loads(command)[0])
    words = shlex.split(command)
    return words[2] if words[:2] == ["command", "-v"] else words[0]


def is_outdated(command: str) -> bool:
    """Return whether an earlier version of snapstore wrote this command.

    The caller's environment can break such a command.
    """
    words = json.loads(command) if command.startswith("[") else shlex.split(command)
    return own_program.FORMER_ENTRY in itertools.pairwise(words)


def tells(command: str) -> bool:
    return command.removesuffix(_ALWAYS_WELL).endswith(_TELL)


def _is_ours(agent: str) -> Callable[[str], bool]:
    def ours(command: str) -> bool:
        try:
            bare = command.removeprefix(_GUARD).removeprefix(_CLEAN).removesuffix(_ALWAYS_WELL).removesuffix(_TELL)
            words = shlex.split(bare)
        except ValueError:
            return False
        program, said = words[:-2], words[-2:]
        if said != ["hook", agent] or not program:
            return False
        if len(program) == 1:
            return os.path.basename(program[0]) == "snapstore"
        return own_program.starts_snapstore(program[1:])

    return ours


def _group(matcher: str = "", **more: object) -> Entry:
    """Return a function that makes an entry for Claude Code, Codex and Gemini."""

    def make(command: str) -> dict[str, Any]:
        handler = {"type": "command", "command": command, **more}
        return {**({"matcher": matcher} if matcher else {}), "hooks": [handler]}

    return make


def _gemini(seconds: int, matcher: str = "") -> Entry:
    return _group(matcher, name="snapstore", timeout=seconds * 1000)


def _copilot(seconds: int) -> Entry:
    return lambda command: {"type": "command", "bash": command, "timeoutSec": seconds}


def _cursor(command: str) -> dict[str, Any]:
    return {"command": command}


_CLINE = "TaskStart TaskResume UserPromptSubmit PreToolUse PostToolUse TaskComplete TaskError TaskCancel"
_JS_COMMAND = "const command = "


def _opencode_text(command: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), "opencode_plugin.js"), encoding="utf-8") as file:
        text = file.read()
    return text.replace(f'{_JS_COMMAND}["snapstore", "hook", "opencode"];', f"{_JS_COMMAND}{command};")


def _opencode_command(text: str) -> str:
    return text.partition(_JS_COMMAND)[2].partition(";\n")[0]


def _cline_text(command: str) -> str:
    return f"#!/bin/sh\n{command}\nexit 0\n"


def _cline_command(text: str) -> str:
    return text.partition("\n")[2].partition("\n")[0]


_ALL = (
    Installation(
        "claude",
        HookFile(
            {
                "SessionStart": _group(),
                "UserPromptSubmit": _group(timeout=_LONG),
                "PreToolUse": _group(f"^({_WRITING}|Bash|PowerShell|mcp__.*)$"),
                "PostToolUse": _group(f"^({_WRITING})$"),
                "Stop": _group(timeout=_LONG),
                "StopFailure": _group(),
                "SessionEnd": _group(timeout=_SHORT),
            },
            _is_ours("claude"),
        ),
        variable="CLAUDE_CONFIG_DIR",
        user=".claude",
        project=".claude",
        files=("settings.json",),
        after="Restart Claude Code, and accept the folder's trust question if it asks.",
    ),
    Installation(
        "codex",
        HookFile(
            {
                **{event: _group() for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse")},
                "Stop": _group(),
                "SessionEnd": _group(timeout=3),  # the maximum that Codex allows
            },
            _is_ours("codex"),
        ),
        variable="CODEX_HOME",
        user=".codex",
        project=".codex",
        files=("hooks.json",),
        after="Restart Codex. It asks whether to trust new hooks, and does not run them before you say so.",
    ),
    Installation(
        "gemini",
        HookFile(
            {
                "SessionStart": _gemini(_SHORT),
                "BeforeAgent": _gemini(_LONG),
                "BeforeTool": _gemini(_SHORT, "*"),
                "AfterTool": _gemini(_SHORT, "*"),
                "AfterAgent": _gemini(_LONG),
                "SessionEnd": _gemini(_SHORT),
            },
            _is_ours("gemini"),
        ),
        user=".gemini",
        project=".gemini",
        files=("settings.json",),
        after="Restart Gemini CLI. It may warn once about new hooks of a project.",
    ),
    Installation(
        "opencode",
        OwnFile(_opencode_text, _opencode_command, comment="//"),
        variable="XDG_CONFIG_HOME",
        user=".config",
        inside="opencode/plugins",
        project=".opencode/plugins",
        files=("snapstore.js",),
    ),
    Installation(
        "cursor",
        HookFile(
            dict.fromkeys(
                (
                    "sessionStart",
                    "beforeSubmitPrompt",
                    "afterFileEdit",
                    "afterShellExecution",
                    "postToolUse",
                    "stop",
                    "sessionEnd",
                ),
                _cursor,
            ),
            _is_ours("cursor"),
            extras={"version": 1},
        ),
        user=".cursor",
        project=".cursor",
        files=("hooks.json",),
    ),
    Installation(
        "copilot",
        HookFile(
            {
                "sessionStart": _copilot(_SHORT),
                "userPromptSubmitted": _copilot(_LONG),
                "preToolUse": _copilot(_SHORT),
                "postToolUse": _copilot(_SHORT),
                "agentStop": _copilot(_LONG),
                "sessionEnd": _copilot(_SHORT),
            },
            _is_ours("copilot"),
            field="bash",
            extras={"version": 1},
        ),
        variable="COPILOT_HOME",
        user=".copilot",
        inside="hooks",
        project=".github/hooks",
        files=("snapstore.json",),
    ),
    Installation(
        "cline",
        OwnFile(_cline_text, _cline_command, comment="#"),
        user="Documents/Cline/Hooks",
        project=".cline/hooks",
        files=_CLINE.split(),
        after="Restart Cline, and see in its settings that hooks are enabled.",
    ),
)
INSTALLATIONS: dict[str, Installation] = {installation.agent: installation for installation in _ALL}
