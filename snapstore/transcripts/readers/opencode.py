"""Read opencode's transcripts: the output of `opencode export`, or its database.

Both contain messages with parts.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager

from snapstore.errors import Corrupt, Unknown
from snapstore.transcripts.lines import dump, parse
from snapstore.transcripts.outline import Filler, Outline, get, moment, string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from snapstore.transcripts.lines import Ref
    from snapstore.transcripts.model import ConversationTurn
    from snapstore.transcripts.outline import Span

_FORKED = re.compile(r" \(fork #\d+\)$")
_HINT = "List opencode's sessions with `opencode session list`."


class OpencodeOutline(Outline):
    agent = "opencode"

    def __init__(self) -> None:
        super().__init__()
        self._reverted: str | None = None

    def describe(self, info: Any) -> None:
        self.session_id = string(info, "id")
        self.forked_from = string(info, "parentID")
        self.cwd = string(info, "directory")
        self.title = string(info, "title")
        self._reverted = string(info, "revert", "messageID")

    def feed(self, ref: Ref, record: dict[str, Any]) -> None:
        role = string(record, "info", "role")
        parts = _parts(record)
        if any(get(part, "type") == "compaction" for part in parts):
            self.compact()
        if role == "user" and any(_is_typed(part) for part in parts):
            self.start(string(record, "info", "id"))
        elif role not in ("user", "assistant"):
            self.unknown += 1
        self.keep(ref, spoken=role == "assistant")

    def cut_undone(self) -> None:
        """Cut off undone turns.

        Undone turns stay in opencode's list until the next prompt. The session's `revert` field names the first undone
        message.
        """
        place = next((number for number, span in enumerate(self.spans) if span.key == self._reverted), None)
        if self._reverted is not None and place is not None:
            self.cut(place)

    def filler(self, turn: ConversationTurn, span: Span) -> Filler:
        return OpencodeFiller(turn, span)


def _parts(record: dict[str, Any]) -> list[Any]:
    parts = record.get("parts")
    return parts if isinstance(parts, list) else []


def _is_typed(part: Any) -> bool:
    return get(part, "type") in ("text", "file") and not get(part, "synthetic") and not get(part, "ignored")


class OpencodeFiller(Filler):
    def take(self, record: dict[str, Any]) -> None:
        info = record.get("info")
        id, role = string(info, "id"), string(info, "role")
        at = moment(get(info, "time", "created"))
        self.time(at)
        self.time(moment(get(info, "time", "completed")))
        if string(info, "error", "name") == "MessageAbortedError":
            self.turn.interrupted = True
        if role == "user" and id == self.span.key:
            typed = [part for part in _parts(record) if _is_typed(part)]
            self.prompt("\n".join(text for part in typed if (text := string(part, "text"))), id, at)
        for part in _parts(record) if role == "assistant" else []:
            kind = get(part, "type")
            if kind == "text":
                self.reply(part.get("text"), id, at)
            elif kind == "reasoning":
                self.think(part.get("text"))
            elif kind == "tool":
                self._tool(part)

    def _tool(self, part: dict[str, Any]) -> None:
        state = part.get("state")
        self.call(part.get("callID"), part.get("tool"), get(state, "input"))
        status = get(state, "status")
        if status in ("completed", "error"):
            text = string(state, "output") or string(state, "error")
            failed = status == "error" or get(state, "metadata", "exit") not in (None, 0)  # of a command
            self.result(part.get("callID"), text, failed, get(state, "metadata"))


# The sources of messages.


def read_export(outline: OpencodeOutline, document: dict[str, Any]) -> None:
    """Read the document that `opencode export` prints."""
    if document and not isinstance(document.get("messages"), list):
        raise Corrupt("not an export of opencode: it has no list of messages", "Make one with `opencode export`.")
    outline.describe(document.get("info"))
    for message in document.get("messages", []):
        if isinstance(message, dict):
            outline.feed(dump(message), message)
        else:
            outline.malformed += 1
    outline.cut_undone()


def read_database(outline: OpencodeOutline, path: str | os.PathLike[str], session_id: str | None) -> None:
    """Read a session from the database while opencode may be writing.

    The database is opened read-only, but not `immutable`, which would ignore the write-ahead log.
    """
    if session_id is None:
        raise Unknown("opencode's database has many sessions, and none was named", _HINT)
    with _reading(path) as connection:
        connection.execute("begin")  # one state of the database for all queries
        outline.describe(_session(connection, session_id))
        for message in _messages(connection, session_id):
            outline.feed(dump(message), message)
    outline.cut_undone()


@contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[Any]:
    import sqlite3
    from urllib.parse import quote

    try:
        connection = sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro", uri=True, timeout=5)
    except sqlite3.Error as error:
        raise Corrupt(f"cannot open opencode's database: {error}", _HINT) from error
    try:
        connection.execute("pragma query_only = on")
        yield connection
    except sqlite3.Error as error:
        raise Corrupt(f"cannot read opencode's database: {error}", _HINT) from error
    finally:
        connection.close()


def is_fork(path: str | os.PathLike[str], session_id: str) -> bool:
    """Return whether a session of the database is a fork, which only its title tells."""
    with _reading(path) as connection:
        return _FORKED.search(str(_session(connection, session_id).get("title"))) is not None


def _session(connection: Any, session_id: str) -> dict[str, Any]:
    cursor = connection.execute("select * from session where id = ?", (session_id,))
    row = cursor.fetchone()
    if row is None:
        raise Unknown(f"opencode has no session {session_id[:80]!r}", _HINT)
    fields = dict(zip((column[0] for column in cursor.description), row, strict=True))
    names = {"id": "id", "parent_id": "parentID", "directory": "directory", "title": "title"}
    return {new: fields.get(old) for old, new in names.items()} | {"revert": _json(fields.get("revert"))}


def _messages(connection: Any, session_id: str) -> Iterator[dict[str, Any]]:
    parts: dict[str, list[dict[str, Any]]] = {}
    query = "select id, message_id, data from part where session_id = ? order by id"
    for id, message_id, data in connection.execute(query, (session_id,)):
        if not isinstance(id, str) or not isinstance(message_id, str):
            continue
        parts.setdefault(message_id, []).append({**(_json(data) or {}), "id": id, "messageID": message_id})
    for id, data in connection.execute("select id, data from message where session_id = ? order by id", (session_id,)):
        if isinstance(id, str):
            yield {"info": {**(_json(data) or {}), "id": id, "sessionID": session_id}, "parts": parts.get(id, [])}


def _json(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    return parse(value) if isinstance(value, bytes) else None
