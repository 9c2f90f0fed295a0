"""opencode's hooks: the plugin `opencode_plugin.js` sends one document per event."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from snapstore.agents.events.event import END, PROMPT, START, STOP, Event
from snapstore.agents.events.payload import AFTER, BEFORE, text, tool_events
from snapstore.agents.known.agent import WHOLE, Agent, Conversations, Forking, HookFiles, Script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.agents.events.payload import Payload


def events(payload: Payload, environ: Mapping[str, str]) -> list[Event]:
    name = text(payload, "event")
    parent = text(payload, "parent_id")
    common: dict[str, Any] = {
        "agent": "opencode",
        # The work of a subagent's session is part of the turn that started the subagent.
        "session_id": parent or text(payload, "session_id"),
        "cwd": text(payload, "directory"),
        "prompt_id": "" if parent else text(payload, "prompt_id"),
    }
    if name in ("before", "after"):
        kind = BEFORE if name == "before" else AFTER
        return tool_events(kind, text(payload, "tool"), payload.get("args"), common)
    if parent:
        return []
    if name == "prompt":
        return [Event(PROMPT, prompt=text(payload, "prompt"), **common)]
    if name == "stop":
        return [Event(STOP, status="done", **{**common, "prompt_id": ""})]
    if name == "start":
        return [Event(START, source="startup", **common)]
    if name == "end":
        return [Event(END, **common)]
    return []


def _is_fork(session_id: str, cwd: str) -> bool | None:
    from snapstore.errors import SnapstoreError
    from snapstore.transcripts.locate import find_transcript
    from snapstore.transcripts.readers.opencode import is_fork

    try:
        return is_fork(find_transcript("opencode", session_id, cwd), session_id)
    except SnapstoreError:
        return None


_COMMAND = "const command = "


def _plugin(command: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), "opencode_plugin.js"), encoding="utf-8") as file:
        text = file.read()
    return text.replace(f'{_COMMAND}["snapstore", "hook", "opencode"];', f"{_COMMAND}{command};")


def _command_in(text: str) -> str:
    return text.partition(_COMMAND)[2].partition(";\n")[0]


def _command(words: Sequence[str], shown: str) -> str:
    return json.dumps(words, ensure_ascii=False)


AGENT = Agent(
    name="opencode",
    title="opencode",
    events=events,
    hooks=HookFiles(
        content=Script(make=_plugin, find=_command_in, comment="//"),
        variable="XDG_CONFIG_HOME",
        user=".config",
        inside="opencode/plugins",
        project=".opencode/plugins",
        files=("snapstore.js",),
        after="Restart opencode if it is running. It installs its npm package for plugins into its folder and waits "
        "for that: once, or without the registry at each start.",
        command=_command,
    ),
    forking=Forking(
        way=WHOLE,
        resume="opencode --session {}",
        fork="opencode --session {} --fork",
        fresh="opencode",
        notice="opencode forks the whole conversation: `/undo` in it takes messages back.",
    ),
    conversations=Conversations(parts=("/opencode/opencode.db",), in_one_file=True, is_fork=_is_fork),
)
