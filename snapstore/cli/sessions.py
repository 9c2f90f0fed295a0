"""`snapstore sessions`: whose turns are here, and which conversations they came from."""

from __future__ import annotations

from snapstore.cli.options import Command
from snapstore.cli.output import BOLD, CYAN, DIM, Output, ago, first_line, safe, shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context
    from snapstore.timeline.lineage import SessionLine


def sessions(context: Context) -> int:
    from snapstore.timeline.lineage import read_sessions

    with context.store() as store:
        active = store.active_session()
        found = read_sessions(store)
        if context.json:
            from snapstore.records.agents import SessionsRecord
            from snapstore.records.base import dump

            context.document(dump(SessionsRecord, {"sessions": [line.as_json(active) for line in found]}))
            return 0
        for line in found:
            _session(context.out, line, line.name == active, store.clock())
    return 0


def _session(out: Output, line: SessionLine, active: bool, now: float) -> None:
    """The session, and below it the agent's own sessions as a tree of forks."""
    turns = "1 turn" if line.turns == 1 else f"{line.turns:,} turns"
    mark = out.paint("@", CYAN) if active else " "
    about = "cannot be read: `snapstore check`"
    if line.last_active:
        about = f"{turns}, {ago(line.last_active, now)}{whose(line.owner)}"
    head = f"{mark} {out.paint(safe(line.name), BOLD)}  {out.paint(about, DIM)}  "
    plain = 2 + len(line.name) + 2 + len(about) + 2
    prompt = first_line(line.prompt)
    out.line((head + (shorten(prompt, max(out.size()[0] - plain, 12)) if out.terminal else prompt)).rstrip())
    ids = {one["sessionId"] for one in line.conversations}
    tops = [one for one in line.conversations if one["parentSessionId"] not in ids]
    _tree(out, line.conversations, tops, "    ")


def whose(owner: dict[str, str] | None) -> str:
    """` · laptop, Ada`: the machine and person of what is not ours."""
    if owner is None:
        return ""
    return " · " + ", ".join(safe(text) for text in (owner["name"], owner.get("person", "")) if text)


def _tree(out: Output, every: list[dict[str, Any]], level: list[dict[str, Any]], lead: str) -> None:
    pending = [(one, lead, one is level[-1]) for one in reversed(level)]
    while pending:  # forks of forks, however deep
        one, lead, is_last = pending.pop()
        name = safe(one["sessionId"])
        text = out.paint(name, CYAN) if one["current"] else name
        said = ["current"] if one["current"] else []
        if one["parentSessionId"]:
            said.append(f"forked after turn {one['rewindFromTurn'] or 0}")
        if one["title"]:
            said.append(safe(first_line(one["title"])))
        about = " · ".join(said)
        if out.terminal:
            about = shorten(about, max(out.size()[0] - len(lead) - len(name) - 6, 12))
        out.line(f"{lead}{'└─' if is_last else '├─'} {text}  {out.paint(about, DIM)}".rstrip())
        below = [other for other in every if other["parentSessionId"] == one["sessionId"] and other is not one]
        inner = lead + ("   " if is_last else "│  ")
        pending += [(other, inner, other is below[-1]) for other in reversed(below)]


COMMAND = Command(
    "sessions",
    sessions,
    "List the sessions recorded here. Below each the agent's own: which was forked from which, and after which turn.",
)
