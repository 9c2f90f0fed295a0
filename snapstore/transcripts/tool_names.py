"""Names of tools that change no file, and of tools that remove one."""

from __future__ import annotations

# Tools that change no project file. Any other unknown tool may change any file, so the turn scans.
HARMLESS = {
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
REMOVALS = {"delete_file", "delete", "remove_file", "deletefile"}
