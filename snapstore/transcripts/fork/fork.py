"""Fork Claude Code conversations: a new session file with turns 1..N of another.

The agent resumes the new file. The old file is only read. A line of the fork is the old line byte for byte, except for
the session id, the parent line and the origin (`forkedFrom`). Ids of lines stay the same, as they do with the agent's
own /branch.
"""

from __future__ import annotations

import os
import re
from io import BytesIO

from xxhash import xxh3_128

from snapstore.base.text import counted
from snapstore.errors import Busy, Unsafe
from snapstore.transcripts.fork.file import Line, dumped
from snapstore.transcripts.fork.file import write_fork as write_fork
from snapstore.transcripts.fork.tree import ForkTree
from snapstore.transcripts.lines import Source, clean, opened
from snapstore.transcripts.locate import checked_id
from snapstore.transcripts.outline import get
from snapstore.transcripts.readers.read import feed_lines, read_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator
    from typing import Any, BinaryIO

    from snapstore.transcripts.fork.chain import Piece, TranscriptLine

_NO_RESULT = "No result was recorded: the call was interrupted."
_LONGEST_TITLE = 80
_BRANCH = re.compile(r"(.*) \(Branch(?: (\d{1,6}))?\)", re.DOTALL)
_ENVELOPE = ("userType", "entrypoint", "cwd", "version", "gitBranch", "timestamp")


def fork_lines(
    lines: Iterable[bytes],
    *,
    new_id: str,
    up_to: str | None = None,
    title: str | None = None,
    parent: str | None = None,
) -> list[bytes]:
    """Return the lines of a fork, made from the lines of a conversation.

    The lines come from a whole file, or from turns stored elsewhere. The fork ends with the turn that `up_to` names
    (its prompt's uuid or promptId, or any line of the turn). Without `up_to`, the fork ends at the end of the
    conversation's current line. `parent` is the session the fork comes from; by default the lines name it. Raises
    Unknown if there is no such turn.
    """
    file = BytesIO(b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines))
    plan = _Plan(file, checked_id(new_id), up_to, title)
    return list(plan.lines(file, parent or plan.tree.session_id))


def fork_conversation(
    path: str | os.PathLike[str], *, up_to: str | None, new_id: str, title: str | None = None
) -> Fork:
    """Prepare a fork of a conversation after the turn `up_to` (see `fork_lines`).

    `Fork.write` writes the file.

    Raises Unknown if there is no such file or turn (the caller falls back to the whole conversation, G-19), and Unsafe
    for an id or a file that leads elsewhere.
    """
    return Fork(os.fspath(path), new_id, up_to, title)


def rewind_alias(original_id: str, now: str, taken: Container[str] = ()) -> str:
    """Return `{originalId}-rewind-{timestamp}` (S1-17), the name that users see.

    `now` is ISO 8601.
    """
    alias = checked_id(f"{original_id}-rewind-{re.sub(r'[^0-9A-Za-z]', '', now)}")
    found, number = alias, 1
    while found in taken:
        number += 1
        found = f"{alias}-{number}"
    return found


def branch_title(title: str) -> str:
    """Return the title of a fork (S1-52); a fork of a fork gets the next number."""
    match = _BRANCH.fullmatch(title)
    return f"{match[1]} (Branch {int(match[2] or 1) + 1})" if match else f"{title} (Branch)"


class Fork:
    """A fork that is ready to be written; `path` is None until then.

    `parent` is the session the fork comes from. `lines` and `turns` count the content. `compacted`: the fork ends
    before a compaction, so the agent gets the full conversation again instead of its summary; the caller decides
    whether to allow that (S1-47). `notices` list what could not be copied unchanged.
    """

    __slots__ = (
        "_digest",
        "_given",
        "_plan",
        "_size",
        "compacted",
        "id",
        "lines",
        "notices",
        "parent",
        "path",
        "source",
        "title",
        "turns",
    )

    def __init__(self, source: str, id: str, up_to: str | None, title: str | None) -> None:
        self.id = checked_id(id)
        self.source = source
        self.path: str | None = None
        self._given = up_to, title
        with opened(source) as file:
            self._read(file)
        try:
            self.parent: str | None = checked_id(os.path.basename(source).removesuffix(".jsonl"))
        except Unsafe:
            self.parent = self._plan.tree.session_id

    def _read(self, file: BinaryIO) -> None:
        up_to, title = self._given
        self._size = os.fstat(file.fileno()).st_size
        self._digest = _digest(file, self._size)  # first: any change during the reading is detected afterwards
        self._plan = plan = _Plan(file, self.id, up_to, title)
        self.title = plan.title
        self.lines = len(plan.cut.pieces) + len(plan.extra_lines)
        self.turns = len(plan.cut.turns)
        self.compacted = plan.cut.compacted
        self.notices = plan.notices()

    def write(self, folder: str | None = None) -> str:
        """Write the fork next to its conversation, or into `folder`; return its path.

        A conversation that has grown is read once more. The write is refused as Busy, and leaves no file, if the
        conversation is rewritten meanwhile or grows within the turns of the fork (S1-65).
        """
        folder = folder if folder is not None else os.path.dirname(os.path.abspath(self.source))
        with opened(self.source) as file:
            if self._has_grown(file):
                self._read(file)

            def check() -> None:
                before = self._plan.cut.places()
                if self._has_grown(file):
                    self._read(file)
                if self._plan.cut.places() != before:
                    raise _busy()

            self.path = write_fork(folder, self.id, self._plan.lines(file, self.parent), check)
        return self.path

    def _has_grown(self, file: BinaryIO) -> bool:
        """Return whether something was appended since the reading.

        Raises Busy for any other change.
        """
        now = os.fstat(file.fileno())
        try:
            named = os.stat(self.source)
        except OSError as error:
            raise _busy() from error
        same = (now.st_dev, now.st_ino) == (named.st_dev, named.st_ino) and now.st_size >= self._size
        if not same or _digest(file, self._size) != self._digest:
            raise _busy()
        return now.st_size > self._size


class _Plan:
    """One reading of a conversation, and the fork made from it."""

    def __init__(self, file: BinaryIO, new_id: str, up_to: str | None, title: str | None) -> None:
        self.new_id = new_id
        self.tree = ForkTree()
        source = Source(file)
        feed_lines(self.tree, source, 0)
        self.cut = self.tree.fork(up_to, new_id)
        self.title = (title or "").strip() or branch_title(self._own_title(source))
        self.extra_lines = list(self._make_extra_lines(source))

    def _own_title(self, source: Source) -> str:
        if self.tree.title:
            return clean(self.tree.title)
        for span in self.cut.turns[:1]:
            prompt = (read_turn(source, self.tree, span, 1).prompt or "").strip()
            if prompt:
                return prompt.splitlines()[0][:_LONGEST_TITLE].strip()
        return "Conversation"

    def _make_extra_lines(self, source: Source) -> Iterator[bytes]:
        """Yield the lines outside the tree that a fork needs."""
        kept = {piece.uuid for piece in self.cut.pieces}
        for ref, leaf in self.tree.summaries:
            if leaf in kept:
                yield Line(source.take(ref)[0]).changed({})
        made: list[dict[str, Any]] = []
        if self.tree.replacements:
            made.append({"type": "content-replacement", "replacements": self.tree.replacements})
        made.append({"type": "custom-title", "customTitle": self.title})
        for record in made:
            yield dumped({**record, "sessionId": self.new_id}).encode() + b"\n"

    def notices(self) -> list[str]:
        found = []
        lost = sum(piece.call is not None and piece.source is None for piece in self.cut.pieces)
        if lost:
            calls = counted(lost, "tool call has", "tool calls have")
            found.append(f"{calls} no recorded result; the fork says so in its place")
        if self.tree.unknown_kinds:
            found.append(f"lines of unknown kinds were left out: {', '.join(sorted(self.tree.unknown_kinds))}")
        if self.tree.malformed:
            found.append(f"{counted(self.tree.malformed, 'unreadable line was', 'unreadable lines were')} left out")
        return found

    def lines(self, file: BinaryIO, parent: str | None) -> Iterator[bytes]:
        """Yield the fork's lines one at a time, so that memory holds only the longest."""
        kept = {piece.uuid for piece in self.cut.pieces}
        above: str | None = None
        for piece in self.cut.pieces:
            line = _line(file, piece.node)
            if piece.call is not None:
                yield self._result(piece, piece.call, line.fields, file)
            else:
                changes = self._changes(piece, line.fields, parent)
                if piece.node.boundary and line.fields.get("logicalParentUuid") not in kept:
                    changes["logicalParentUuid"] = above
                yield line.changed(changes)
            above = piece.uuid
        yield from self.extra_lines

    def _changes(self, piece: Piece, fields: dict[str, Any], parent: str | None) -> dict[str, Any]:
        changes: dict[str, Any] = {"parentUuid": piece.parent, "isSidechain": False, "sessionId": self.new_id}
        changes["forkedFrom"] = {"sessionId": parent, "messageUuid": piece.uuid}
        if piece.answers is not None and len(piece.answers) < len(piece.node.answers):
            waiting = set(piece.answers)
            blocks = []
            for block in _content(fields):
                id = get(block, "tool_use_id")
                if get(block, "type") != "tool_result" or id in waiting:
                    blocks.append(block)
                    waiting.discard(id)
            changes["message"] = {**(fields.get("message") or {}), "content": blocks}
        return changes

    def _result(self, piece: Piece, call: str, fields: dict[str, Any], file: BinaryIO) -> bytes:
        """Return a line with a result for a call that has none where the fork needs it."""
        block: Any = {"type": "tool_result", "tool_use_id": call, "is_error": True, "content": _NO_RESULT}
        if piece.source is not None:
            blocks = _content(_line(file, piece.source).fields)
            block = next((block for block in blocks if get(block, "tool_use_id") == call), block)
        record = {
            "parentUuid": piece.parent,
            "isSidechain": False,
            **{name: fields[name] for name in _ENVELOPE if name in fields},
            "sessionId": self.new_id,
            "type": "user",
            "message": {"role": "user", "content": [block]},
            "uuid": piece.uuid,
            "sourceToolAssistantUUID": piece.node.uuid,
        }
        return dumped(record).encode() + b"\n"


def _line(file: BinaryIO, node: TranscriptLine) -> Line:
    assert isinstance(node.ref, tuple)
    file.seek(node.ref[0])
    line = Line(file.read(node.ref[1]))
    if line.fields.get("uuid") != node.uuid:
        raise _busy()
    return line


def _content(fields: dict[str, Any]) -> list[Any]:
    found = get(fields, "message", "content")
    return found if isinstance(found, list) else []


def _busy() -> Busy:
    return Busy(
        "the conversation changed while it was being forked; no fork was written",
        "Wait for the agent to finish its turn, then run the command again.",
    )


def _digest(file: BinaryIO, size: int) -> bytes:
    """Hash the first `size` bytes on disk, bypassing the file object's buffer."""
    state = xxh3_128()
    at = 0
    while at < size and (chunk := os.pread(file.fileno(), min(size - at, 1 << 20), at)):
        state.update(chunk)
        at += len(chunk)
    return state.digest()
