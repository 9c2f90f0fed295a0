"""Find the files where agents keep their conversations.

A session id is validated before it is compared or joined into a path.
"""

from __future__ import annotations

import os
import re
import unicodedata

from snapstore.base.agent_folders import conversation_folders
from snapstore.errors import SnapstoreError, Unknown, Unsafe
from snapstore.transcripts.lines import document, open_file, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_LONGEST_SLUG = 200
_HEAD = 1 << 16


def find_transcript(
    agent: str,
    session_id: str,
    cwd: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> str:
    """Return the path of an agent session's transcript.

    Raises Unknown if there is none, and Unsafe for an id or a file that leads elsewhere.
    """
    checked_id(session_id)
    environ = os.environ if environ is None else environ
    user = os.path.abspath(home) if home is not None else os.path.expanduser("~")
    if agent not in _LAYOUTS:
        raise Unknown(
            f"snapstore does not know where {agent[:80]!r} keeps its transcripts", f"Known: {', '.join(_LAYOUTS)}."
        )
    base, candidates = _LAYOUTS[agent](user, environ, session_id, os.fspath(cwd) if cwd is not None else None)
    for path in candidates:
        if os.path.isfile(path):
            return _inside(base, path)
    raise Unknown(
        f"{agent} has no transcript of session {session_id}",
        "Transcripts may be switched off, or this one was deleted. If you have the file, give its path.",
        session=session_id,
    )


def checked_id(session_id: str) -> str:
    """Validate a session id, which becomes part of a path (S1-63).

    Nothing in the id may lead to another folder.
    """
    if not _ID.fullmatch(session_id) or ".." in session_id:
        raise Unsafe(f"not a session id: {session_id[:80]!r}", "Give the id as the agent shows it.")
    return session_id


def claude_slug(cwd: str) -> str:
    """Return the name of a project's folder, up to 200 characters.

    After 200 characters the name continues with a hash, which Claude Code and its SDK compute differently.
    """
    real = unicodedata.normalize("NFC", os.path.realpath(cwd))
    return re.sub(r"[^A-Za-z0-9]", "-", real)[:_LONGEST_SLUG]


def claude_folder(
    cwd: str, home: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None
) -> str:
    """Return the folder where Claude Code keeps a project's sessions.

    Raises Unknown if Claude Code has kept no session of the project so far.
    """
    environ = os.environ if environ is None else environ
    user = os.path.abspath(home) if home is not None else os.path.expanduser("~")
    for folder in _claude_folders(_claude_base(user, environ), environ, cwd):
        if os.path.isdir(folder):
            return folder
    raise Unknown(f"Claude Code has kept no session of {cwd}", "Start it there once, then fork again.")


def claude_sessions(
    cwd: str, home: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return a project's sessions: {sessionId, fullPath} per file, plus index fields.

    The fields created, modified, messageCount and firstPrompt come from sessions-index.json. The index is a cache that
    newer versions no longer write.
    """
    environ = os.environ if environ is None else environ
    user = os.path.abspath(home) if home is not None else os.path.expanduser("~")
    found: dict[str, dict[str, Any]] = {}
    for folder in _claude_folders(_claude_base(user, environ), environ, cwd):
        known = _index(folder)
        for name in _names(folder):
            id = name.removesuffix(".jsonl")
            if name != id and _ID.fullmatch(id) and id not in found:
                found[id] = {**known.get(id, {}), "sessionId": id, "fullPath": os.path.join(folder, name)}
    return list(found.values())


def _index(folder: str) -> dict[str, dict[str, Any]]:
    path = os.path.join(folder, "sessions-index.json")
    try:
        with open_file(path) as file:
            entries = document(file, path).get("entries")
    except (SnapstoreError, OSError, ValueError):  # the index is a cache; the files alone are enough
        return {}
    listed = entries if isinstance(entries, list) else []
    return {
        entry["sessionId"]: entry
        for entry in listed
        if isinstance(entry, dict) and isinstance(entry.get("sessionId"), str)
    }


# One layout per agent: its folder, and the possible paths of the file, most likely first.


def _claude_base(user: str, environ: Mapping[str, str]) -> str:
    return conversation_folders("claude", user, environ)[0]


def _claude_folders(base: str, environ: Mapping[str, str], cwd: str) -> Iterator[str]:
    override = environ.get("CLAUDE_CODE_PROJECT_DIR_NAME")
    if override and environ.get("CLAUDE_CONFIG_DIR") and _ID.fullmatch(override):
        yield os.path.join(base, override)
    slug = claude_slug(cwd)
    if len(slug) < _LONGEST_SLUG:
        yield os.path.join(base, slug)
    else:
        yield from (os.path.join(base, name) for name in _names(base) if name.startswith(slug))


def _claude(user: str, environ: Mapping[str, str], id: str, cwd: str | None) -> tuple[str, Iterator[str]]:
    base = _claude_base(user, environ)

    def candidates() -> Iterator[str]:
        for folder in _claude_folders(base, environ, cwd) if cwd is not None else ():
            yield os.path.join(folder, f"{id}.jsonl")
        for name in _names(base):  # like `claude --resume`: a session may have been started in another folder
            yield os.path.join(base, name, f"{id}.jsonl")

    return base, candidates()


def _codex(user: str, environ: Mapping[str, str], id: str, cwd: str | None) -> tuple[str, Iterator[str]]:
    sessions, archive = conversation_folders("codex", user, environ)

    def candidates() -> Iterator[str]:
        days = [sessions]
        for _ in range(3):  # year, month, day; newest first
            days = [os.path.join(day, name) for day in days for name in reversed(_names(day))]
        for folder in [*days, archive]:
            for name in _names(folder):
                if name.startswith("rollout-") and name.endswith(f"-{id}.jsonl"):
                    yield os.path.join(folder, name)
                elif name.startswith("rollout-") and name.endswith(f"-{id}.jsonl.zst"):
                    raise Unknown(
                        f"the rollout of session {id} is compressed", f"Unpack it first: zstd -d -k {name}", session=id
                    )

    return os.path.dirname(sessions), candidates()


def _gemini(user: str, environ: Mapping[str, str], id: str, cwd: str | None) -> tuple[str, Iterator[str]]:
    (base,) = conversation_folders("gemini", user, environ)

    def candidates() -> Iterator[str]:
        for project in _names(base):
            folder = os.path.join(base, project, "chats")
            for name in reversed(_names(folder)):
                stem = name.removesuffix("l").removesuffix(".json")
                if stem == name or not (stem.endswith(f"-{id[:8]}") or stem == id):
                    continue
                path = os.path.join(folder, name)
                if _gemini_session(path) in (id, None):  # the name has only the first eight characters of the id
                    yield path

    return base, candidates()


def _gemini_session(path: str) -> str | None:
    """Return the session id in the file, or None if its beginning has none."""
    try:
        with open_file(path) as file:
            head = file.read(_HEAD)
    except (SnapstoreError, OSError):
        return None
    record = parse(head.partition(b"\n")[0])
    if record is not None and isinstance(record.get("sessionId"), str):
        return str(record["sessionId"])
    found = re.search(rb'"sessionId"\s*:\s*"([A-Za-z0-9._-]+)"', head)
    return found[1].decode() if found else None


def _cline(user: str, environ: Mapping[str, str], id: str, cwd: str | None) -> tuple[str, Iterator[str]]:
    (base,) = conversation_folders("cline", user, environ)
    return base, iter([os.path.join(base, id, f"{id}.messages.json")])


def _copilot(user: str, environ: Mapping[str, str], id: str, cwd: str | None) -> tuple[str, Iterator[str]]:
    (base,) = conversation_folders("copilot", user, environ)
    return base, iter([os.path.join(base, id, "events.jsonl")])


def _cursor(user: str, environ: Mapping[str, str], id: str, cwd: str | None) -> tuple[str, Iterator[str]]:
    (base,) = conversation_folders("cursor", user, environ)

    def candidates() -> Iterator[str]:
        slug = re.sub(r"[^A-Za-z0-9]+", "-", os.path.realpath(cwd)).strip("-") if cwd is not None else None
        for name in sorted(_names(base), key=lambda name: name != slug):
            folder = os.path.join(base, name, "agent-transcripts")
            yield os.path.join(folder, id, f"{id}.jsonl")
            yield os.path.join(folder, f"{id}.jsonl")

    return base, candidates()


def _opencode(user: str, environ: Mapping[str, str], id: str, cwd: str | None) -> tuple[str, Iterator[str]]:
    (base,) = conversation_folders("opencode", user, environ)
    return base, iter([os.path.join(base, "opencode.db")])


def _qwen(user: str, environ: Mapping[str, str], id: str, cwd: str | None) -> tuple[str, Iterator[str]]:
    (base,) = conversation_folders("qwen", user, environ)
    return base, (os.path.join(base, name, "chats", f"{id}.jsonl") for name in _names(base))


_LAYOUTS = {
    "claude": _claude,
    "cline": _cline,
    "codex": _codex,
    "copilot": _copilot,
    "cursor": _cursor,
    "gemini": _gemini,
    "opencode": _opencode,
    "qwen": _qwen,
}


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _inside(base: str, path: str) -> str:
    """Return the path; refuse one that a link leads out of the folder.

    A link among the transcripts must not make another file look like a transcript. The folder itself may be a link.
    """
    real, top = os.path.realpath(path), os.path.realpath(base)
    if os.path.commonpath([real, top]) != top:
        raise Unsafe(f"{path} leads to {real}, outside of {base}")
    return path
