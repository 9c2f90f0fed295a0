"""Simulated agents: each sends its documented payloads through real `snapstore hook` processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from snapstore import Store
from snapstore.store.conversations import Conversations

ID = "3f2a9c1d-5b7e-4c11-9a55-0d6f1e2b3c4d"
OTHER_ID = "8e1b7f00-1111-4222-8333-444455556666"


def hook(
    agent: str, payload: dict[str, Any] | bytes, *words: str, env: dict[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Run one hook process and return its output. It must exit with 0 and print nothing on standard error."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    done = subprocess.run(
        [sys.executable, "-m", "snapstore", "hook", agent, *words],
        input=data,
        capture_output=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b"", done.stderr.decode()
    return done.stdout.decode()


class Agent:
    """An agent in a project. `write` and `run` change files for real, with the events before and after."""

    name = ""
    answers = ""  # what its hooks must print

    def __init__(self, root: Path, id: str = ID) -> None:
        self.root = root
        self.id = id
        self.turn = 0
        self.told = ""  # what the last hook told the agent
        self.env: dict[str, str] = {}

    @property
    def session(self) -> str:
        return f"{self.name}-{self.id.removeprefix(self.name + '-')[:8].strip('.-')}"

    def say(self, payload: dict[str, Any]) -> None:
        said = hook(self.name, payload, env=self.env, cwd=self.root).strip()
        self.told = ""
        if said != self.answers:  # a prompt after an undo
            self.told = json.loads(said)["hookSpecificOutput"]["additionalContext"]
            assert self.told.startswith("The user has undone your last")

    def start(self, source: str = "startup") -> None:
        raise NotImplementedError

    def prompt(self, text: str) -> None:
        raise NotImplementedError

    def before(self, tool: str, arguments: dict[str, Any]) -> None:
        """Do nothing for agents that report tools only after they ran."""

    def after(self, tool: str, arguments: dict[str, Any]) -> None:
        raise NotImplementedError

    def stop(self, reply: str = "Done.") -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def write_call(self, path: str, text: str) -> tuple[str, dict[str, Any]]:
        return "Write", {"file_path": str(self.root / path), "content": text}

    def shell_call(self, command: str) -> tuple[str, dict[str, Any]]:
        return "Bash", {"command": command}

    def write(self, path: str, text: str) -> None:
        call = self.write_call(path, text)
        self.before(*call)
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)
        self.after(*call)

    def run(self, command: str, deed: Callable[[], object]) -> None:
        call = self.shell_call(command)
        self.before(*call)
        deed()
        self.after(*call)

    def whole_turn(self, prompt: str, writes: Iterable[tuple[str, str]], reply: str = "Done.") -> None:
        self.prompt(prompt)
        for path, text in writes:
            self.write(path, text)
        self.stop(reply)


class Claude(Agent):
    name = "claude"

    def __init__(self, root: Path, id: str = ID) -> None:
        super().__init__(root, id)
        self.env = {"CLAUDE_PROJECT_DIR": str(root), "CLAUDECODE": "1"}
        self.cwd = root
        self.transcript = ""

    def event(self, name: str, **fields: Any) -> None:
        common = {"session_id": self.id, "transcript_path": self.transcript, "cwd": str(self.cwd)}
        numbered = {"prompt_id": f"prompt-{self.turn}"} if self.turn else {}
        self.say({**common, "hook_event_name": name, "permission_mode": "default", **numbered, **fields})

    def start(self, source: str = "startup") -> None:
        self.event("SessionStart", source=source, model="model")

    def prompt(self, text: str) -> None:
        self.turn += 1
        self.event("UserPromptSubmit", prompt=text)

    def before(self, tool: str, arguments: dict[str, Any]) -> None:
        self.event("PreToolUse", tool_name=tool, tool_input=arguments, tool_use_id="toolu_1")

    def after(self, tool: str, arguments: dict[str, Any]) -> None:
        self.event("PostToolUse", tool_name=tool, tool_input=arguments, tool_use_id="toolu_1", tool_response={})

    def stop(self, reply: str = "Done.") -> None:
        self.event("Stop", stop_hook_active=False, last_assistant_message=reply, background_tasks=[])

    def end(self) -> None:
        self.event("SessionEnd", reason="prompt_input_exit")


class Qwen(Claude):
    name = "qwen"

    def __init__(self, root: Path, id: str = ID) -> None:
        super().__init__(root, id)
        self.env = {"QWEN_PROJECT_DIR": str(root)}

    def write_call(self, path: str, text: str) -> tuple[str, dict[str, Any]]:
        return "write_file", {"file_path": str(self.root / path), "content": text}

    def shell_call(self, command: str) -> tuple[str, dict[str, Any]]:
        return "run_shell_command", {"command": command}


class Codex(Agent):
    name = "codex"

    def event(self, name: str, **fields: Any) -> None:
        common = {"session_id": self.id, "transcript_path": None, "cwd": str(self.root), "model": "model"}
        self.say({**common, "hook_event_name": name, "permission_mode": "default", **fields})

    def start(self, source: str = "startup") -> None:
        self.event("SessionStart", source=source)

    def prompt(self, text: str) -> None:
        self.turn += 1
        self.event("UserPromptSubmit", turn_id=f"t{self.turn}", prompt=text)

    def write_call(self, path: str, text: str) -> tuple[str, dict[str, Any]]:
        body = "".join(f"+{line}\n" for line in text.splitlines())
        return "apply_patch", {"command": f"*** Begin Patch\n*** Add File: {path}\n{body}*** End Patch\n"}

    def before(self, tool: str, arguments: dict[str, Any]) -> None:
        self.event("PreToolUse", turn_id=f"t{self.turn}", tool_name=tool, tool_input=arguments, tool_use_id="c1")

    def after(self, tool: str, arguments: dict[str, Any]) -> None:
        fields = {"turn_id": f"t{self.turn}", "tool_use_id": "c1", "tool_response": "ok"}
        self.event("PostToolUse", tool_name=tool, tool_input=arguments, **fields)

    def stop(self, reply: str = "Done.") -> None:
        self.event("Stop", turn_id=f"t{self.turn}", stop_hook_active=False, last_assistant_message=reply)

    def end(self) -> None:
        self.event("SessionEnd", reason="other")


class Gemini(Agent):
    name = "gemini"
    answers = "{}"

    def __init__(self, root: Path, id: str = ID) -> None:
        super().__init__(root, id)
        self.env = {"GEMINI_PROJECT_DIR": str(root), "GEMINI_SESSION_ID": id, "GEMINI_CWD": str(root)}

    def event(self, name: str, **fields: Any) -> None:
        common = {"session_id": self.id, "transcript_path": "", "cwd": str(self.root)}
        self.say({**common, "hook_event_name": name, "timestamp": "2026-08-22T10:00:00.000Z", **fields})

    def start(self, source: str = "startup") -> None:
        self.event("SessionStart", source=source)

    def prompt(self, text: str) -> None:
        self.last = text
        self.event("BeforeAgent", prompt=text)

    def write_call(self, path: str, text: str) -> tuple[str, dict[str, Any]]:
        return "write_file", {"file_path": str(self.root / path), "content": text}

    def shell_call(self, command: str) -> tuple[str, dict[str, Any]]:
        return "run_shell_command", {"command": command}

    def before(self, tool: str, arguments: dict[str, Any]) -> None:
        self.event("BeforeTool", tool_name=tool, tool_input=arguments)

    def after(self, tool: str, arguments: dict[str, Any]) -> None:
        answer = {"llmContent": "ok", "returnDisplay": "ok"}
        self.event("AfterTool", tool_name=tool, tool_input=arguments, tool_response=answer)

    def stop(self, reply: str = "Done.") -> None:
        self.event("AfterAgent", prompt=self.last, prompt_response=reply, stop_hook_active=False)

    def end(self) -> None:
        self.event("SessionEnd", reason="exit")


class Opencode(Agent):
    """What the plugin sends."""

    name = "opencode"

    def __init__(self, root: Path, id: str = "ses_3f2a9c1d") -> None:
        super().__init__(root, id)

    def event(self, name: str, **fields: Any) -> None:
        self.say({"event": name, "session_id": self.id, "directory": str(self.root), **fields})

    def start(self, source: str = "startup") -> None:
        self.event("start")

    def prompt(self, text: str) -> None:
        self.turn += 1
        self.event("prompt", prompt=text, prompt_id=f"msg_{self.turn}")

    def write_call(self, path: str, text: str) -> tuple[str, dict[str, Any]]:
        return "write", {"filePath": str(self.root / path), "content": text}

    def shell_call(self, command: str) -> tuple[str, dict[str, Any]]:
        return "bash", {"command": command}

    def before(self, tool: str, arguments: dict[str, Any]) -> None:
        self.event("before", tool=tool, args=arguments, call_id="call_1")

    def after(self, tool: str, arguments: dict[str, Any]) -> None:
        self.event("after", tool=tool, args=arguments, call_id="call_1")

    def stop(self, reply: str = "Done.") -> None:
        self.event("stop")

    def end(self) -> None:
        self.event("end")


class Cursor(Agent):
    name = "cursor"

    def event(self, name: str, **fields: Any) -> None:
        common = {"conversation_id": self.id, "generation_id": f"g{self.turn}", "model": "model"}
        where = {"workspace_roots": [str(self.root)], "cursor_version": "2.0", "transcript_path": None}
        self.say({**common, **where, "hook_event_name": name, **fields})

    def start(self, source: str = "startup") -> None:
        self.event("sessionStart", session_id=self.id)

    def prompt(self, text: str) -> None:
        self.turn += 1
        self.event("beforeSubmitPrompt", prompt=text, attachments=[])

    def after(self, tool: str, arguments: dict[str, Any]) -> None:
        if tool == "Bash":
            self.event("afterShellExecution", command=arguments["command"], output="", duration=3)
        else:
            self.event("afterFileEdit", file_path=arguments["file_path"], edits=[{"old_string": "", "new_string": "x"}])

    def stop(self, reply: str = "Done.") -> None:
        self.event("stop", status="completed", loop_count=0)

    def end(self) -> None:
        self.event("sessionEnd", session_id=self.id, reason="completed", duration_ms=5)


class Copilot(Agent):
    name = "copilot"

    def event(self, **fields: Any) -> None:
        self.say({"sessionId": self.id, "timestamp": 1755856800000, "cwd": str(self.root), **fields})

    def start(self, source: str = "new") -> None:
        self.event(source=source, initialPrompt="")

    def prompt(self, text: str) -> None:
        self.event(prompt=text)

    def write_call(self, path: str, text: str) -> tuple[str, dict[str, Any]]:
        return "create", {"path": str(self.root / path), "file_text": text}

    def shell_call(self, command: str) -> tuple[str, dict[str, Any]]:
        return "bash", {"command": command}

    def before(self, tool: str, arguments: dict[str, Any]) -> None:
        self.event(toolName=tool, toolArgs=json.dumps(arguments))

    def after(self, tool: str, arguments: dict[str, Any]) -> None:
        answer = {"resultType": "success", "textResultForLlm": "ok"}
        self.event(toolName=tool, toolArgs=json.dumps(arguments), toolResult=answer)

    def stop(self, reply: str = "Done.") -> None:
        self.event(transcriptPath="", stopReason="end_turn", stop_hook_active=False)

    def end(self) -> None:
        self.event(reason="complete")


class Cline(Agent):
    name = "cline"
    answers = "{}"

    def __init__(self, root: Path, id: str = "1755856800000") -> None:
        super().__init__(root, id)

    def event(self, name: str, **fields: Any) -> None:
        common = {"hookName": name, "clineVersion": "4.0", "timestamp": "1755856800000", "taskId": self.id}
        self.say({**common, "workspaceRoots": [str(self.root)], "userId": "u", **fields})

    def start(self, source: str = "startup") -> None:
        self.event("TaskStart" if source == "startup" else "TaskResume")

    def prompt(self, text: str) -> None:
        self.event("UserPromptSubmit", userPromptSubmit={"prompt": text, "attachments": []})

    def write_call(self, path: str, text: str) -> tuple[str, dict[str, Any]]:
        return "write_to_file", {"path": path, "content": text}

    def shell_call(self, command: str) -> tuple[str, dict[str, Any]]:
        return "execute_command", {"command": command}

    def before(self, tool: str, arguments: dict[str, Any]) -> None:
        self.event("PreToolUse", tool_call={"id": "1", "name": tool, "input": arguments})

    def after(self, tool: str, arguments: dict[str, Any]) -> None:
        self.event("PostToolUse", tool_result={"id": "1", "name": tool, "input": arguments, "output": "ok"})

    def stop(self, reply: str = "Done.") -> None:
        self.event("TaskComplete")

    def end(self) -> None:
        self.event("TaskCancel")


def plant_fork(agent: Agent, id: str) -> None:
    """Plant an agent session that continues the same conversation, as `fork` does."""
    with Store.open(agent.root) as store:
        conversations = Conversations(store)
        known = conversations.agent_session(agent.id)
        assert known is not None
        known.id, known.parent, known.process = id, agent.id, None
        store.journal.carry_out([], conversations.agent_session_file(known), what="test")


AGENTS: list[type[Agent]] = [Claude, Codex, Gemini, Opencode, Cursor, Copilot, Cline, Qwen]
