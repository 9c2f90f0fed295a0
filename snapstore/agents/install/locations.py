"""List the hook files of each agent, and what we write into them."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence

from snapstore.agents.install.hook_file import HookFile
from snapstore.agents.install.own_file import Manifest, OwnFile
from snapstore.agents.known.agent import Agent, Script
from snapstore.agents.known.registry import load
from snapstore.base import own_command as own_program
from snapstore.errors import Unsafe, Usage

Content = HookFile | OwnFile | Manifest

USER, PROJECT, PLUGIN = "user", "project", "plugin"

# A project's file is shared with people who may not have snapstore.
_GUARD = "command -v snapstore >/dev/null 2>&1 && "
# A shared file cannot name an interpreter, so -I is not possible. An empty variable counts as unset.
_CLEAN = "PYTHONHOME= PYTHONPATH= "
_ALWAYS_WELL = "; exit 0"
_TELL = " --tell"  # of a former version; agents are told by default


class Installation:
    """The hook files of one agent, with their contents."""

    __slots__ = ("_hooks", "agent", "content", "title")

    def __init__(self, agent: Agent) -> None:
        self.agent = agent.name
        self.title = agent.title
        self._hooks = agent.hooks
        self.content = _content(agent)

    @property
    def after(self) -> str:
        """Return what the user has to do after connecting."""
        return self._hooks.after or f"Restart {self.title} if it is running."

    @property
    def executable(self) -> bool:
        return isinstance(self._hooks.content, Script) and self._hooks.content.executable

    @property
    def tells(self) -> bool:
        return bool(self._hooks.tells_at)

    @property
    def plugin(self) -> str:
        """Return the command that starts the agent with a plugin folder, `{}`, or ""."""
        return self._hooks.plugin

    def places(self, scope: str, base: str, environ: Mapping[str, str]) -> list[tuple[str, Content]]:
        """Return the files and their contents.

        `base` is the project's folder, or the plugin's.
        """
        if scope == PLUGIN:
            manifest = os.path.join(base, ".claude-plugin", "plugin.json")
            return [(manifest, Manifest()), (os.path.join(base, "hooks", "hooks.json"), self.content)]
        folder = os.path.join(base, self._hooks.project) if scope == PROJECT else self._user_folder(environ)
        return [(os.path.join(folder, name), self.content) for name in self._hooks.files]

    def _user_folder(self, environ: Mapping[str, str]) -> str:
        variable = self._hooks.variable
        chosen = environ.get(variable, "") if variable else ""
        folder = chosen or os.path.join(user_home(environ), self._hooks.user)
        if not os.path.isabs(folder):
            raise Usage(
                f"{variable} is {chosen!r}, which is not an absolute path",
                f"Set {variable} to an absolute path, which {self.title} needs too.",
            )
        return os.path.join(folder, self._hooks.inside)

    def command(self, scope: str, program: Sequence[str]) -> str:
        """Return the command that the agent is to run."""
        program = ["snapstore"] if scope != USER else program
        words = [*program, "hook", self.agent]
        shown = ("" if scope == USER else _CLEAN) + shlex.join(words)
        try:
            shown.encode()
        except UnicodeEncodeError:
            raise Unsafe(
                f"the path of this program is not UTF-8, and {self.title} could not run it: {program[0]!r}",
                "Install snapstore in another folder.",
            ) from None
        if self._hooks.command is not None:
            return self._hooks.command(words, shown)
        if scope != USER:
            return f"{_GUARD}{shown}{_ALWAYS_WELL}"
        return shown + (_ALWAYS_WELL if self._hooks.failure_refuses else "")


def installation(agent: str) -> Installation:
    """Return the hook files of a known agent."""
    return Installation(load(agent))


def _content(agent: Agent) -> HookFile | OwnFile:
    content = agent.hooks.content
    if isinstance(content, Script):
        return OwnFile(content.make, content.find, comment=content.comment)
    return HookFile(content.entries, _is_ours(agent.name), field=content.field, extras=content.extras)


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
    return own_program.OLD_ENTRY in itertools.pairwise(words)


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
