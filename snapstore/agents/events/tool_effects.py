"""Determine what a tool call may do to files, from its name and arguments."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# Tools that change no project file. Any other unknown tool may change any file, so the turn scans.
_HARMLESS = {
    *(
        "read",
        "read_file",
        "read_files",
        "read_many_files",
        "readfile",
        "notebookread",
        "view",
        "view_image",
        "ls",
        "list",
        "list_dir",
    ),
    *("list_directory", "list_files", "list_code_definition_names", "glob", "grep", "grep_search", "file_search"),
    *("search_files", "search_file_content", "codebase_search", "codesearch", "semantic_search", "lsp", "read_lints"),
    *("search_codebase", "fetch_web_content", "ask_question"),
    *("webfetch", "web_fetch", "websearch", "web_search", "google_web_search", "fetch", "fetch_webpage"),
    *("todowrite", "todoread", "todo_write", "write_todos", "update_plan", "update_todo", "think", "report_intent"),
    *("askuserquestion", "ask_user", "ask_followup_question", "question", "attempt_completion", "plan_mode_respond"),
    *("enterplanmode", "exitplanmode", "plan_exit", "skill", "toolsearch", "listmcpresources", "readmcpresource"),
    *("bashoutput", "taskoutput", "taskstop", "killshell", "killbash", "read_bash", "stop_bash"),
    *("request_user_input", "get_goal", "create_goal", "update_goal", "tool_search", "clock__curr_time"),
    *("list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"),
    # A subagent's own tool calls are reported separately, and so are those of a script that calls tools.
    *("functions.exec", "spawn_agent", "wait_agent", "close_agent", "resume_agent", "send_input", "followup_task"),
    *("send_message", "list_agents", "interrupt_agent"),
    *("task", "agent", "taskcreate", "taskupdate", "tasklist", "taskget", "sendmessage", "wait"),
}
_REMOVALS = {"delete_file", "delete", "remove_file", "deletefile"}


class Effect:
    """The files a call names (`paths`), and whether it may change others (`scans`)."""

    __slots__ = ("paths", "scans")

    def __init__(self, paths: list[str], scans: bool) -> None:
        self.paths = paths
        self.scans = scans


def effect(name: str, input: Any) -> Effect:
    kind = name.lower()
    if kind in _HARMLESS:
        return Effect([], False)
    from snapstore.transcripts.apply_patch import BEGIN, named_files
    from snapstore.transcripts.model import EDIT, SHELL, WRITE
    from snapstore.transcripts.tool_calls import classify

    calls = classify(None, name, input)
    paths = list(dict.fromkeys(call.file_path for call in calls if call.file_path))
    if not paths:
        return Effect([], True)  # a shell, or an unknown tool or arguments
    if "patch" in kind or calls[0].type == SHELL:
        text = next((value for value in _texts(input) if BEGIN in value), "")
        return Effect(list(dict.fromkeys([*paths, *named_files(text)])), not text)
    sure = kind in _REMOVALS or all(call.type in (EDIT, WRITE) and call.file_path for call in calls)
    return Effect(paths if sure else [], not sure)


def _texts(input: Any) -> list[str]:
    if isinstance(input, str):
        return [input]
    values = list(input.values()) if isinstance(input, dict) else []
    texts = [text for value in values for text in (value if isinstance(value, list) else [value])]
    return [text for text in texts if isinstance(text, str)]
