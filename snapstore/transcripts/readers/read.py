"""Read a conversation: its outline, then turn by turn, or only its last turns."""

from __future__ import annotations

import os

from snapstore.errors import Unknown
from snapstore.transcripts.lines import Source, document, is_blank, lines, opened, parse
from snapstore.transcripts.model import ConversationTurn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from snapstore.transcripts.outline import Outline, Span

AGENTS = ("claude", "cline", "codex", "copilot", "cursor", "gemini", "opencode", "qwen")
_FIRST_TAIL = 1 << 20
_FIRST_LINES = 100
_ROOM = 4 << 20  # bytes of lines cached between the passes
_SQLITE = b"SQLite format 3\0"


def last_turns(
    path: str | os.PathLike[str], agent: str, count: int = 1, session_id: str | None = None
) -> list[ConversationTurn]:
    """Return the last turns, oldest first, with indexes counted back from -1.

    The file is read from its end, as far as needed.
    """
    if count <= 0:
        return []
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        reach = _FIRST_TAIL
        while True:
            start = _line_start(file, size - reach) if reach < size and _has_lines(file, agent) else 0
            source = Source(file, _ROOM)
            outline = read_outline(source, path, agent, session_id, start)
            spans = outline.line()
            # A turn whose beginning is cut off has no prompt here. A reference to an earlier line may change the other
            # turns.
            whole = [span for span in spans if span.prompted] if start else spans
            if not start or (len(whole) >= count and not outline.reached_outside):
                chosen = whole[-count:]
                return [read_turn(source, outline, span, n) for n, span in enumerate(chosen, -len(chosen))]
            reach *= 4


def names_parents(agent: str) -> bool:
    """Return whether an agent's conversation names its parent in its first lines."""
    return agent not in ("cline", "opencode")


def forked_from(path: str | os.PathLike[str], agent: str) -> str | None:
    """Return the parent session that the first lines of a conversation name, or None."""
    if not names_parents(agent):
        return None
    with opened(path) as file:
        return _opening(Source(file), agent).forked_from


def first_prompt(path: str | os.PathLike[str], agent: str) -> str:
    """Return the first prompt of a conversation, if its first lines contain one."""
    with opened(path) as file:
        source = Source(file)
        outline = read_outline(source, path, agent, None) if agent == "cline" else _opening(source, agent)
        span = next((span for span in outline.line() if span.prompted), None)
        return (read_turn(source, outline, span, 1).prompt or "") if span is not None else ""


def _opening(source: Source, agent: str) -> Outline:
    outline = new_outline(agent)
    for number, (ref, raw) in enumerate(lines(source.file)):
        record = parse(raw)
        if record is not None:
            outline.feed(ref, record)
        if number >= _FIRST_LINES:
            break
    return outline


# The two passes.


def new_outline(agent: str) -> Outline:
    """Return a new outline for an agent.

    Each reader is imported separately: a hook reads one agent's file and should not wait for the other imports.
    """
    if agent == "claude":
        from snapstore.transcripts.readers.claude import ClaudeOutline

        return ClaudeOutline()
    if agent == "codex":
        from snapstore.transcripts.readers.codex import CodexOutline

        return CodexOutline()
    if agent == "gemini":
        from snapstore.transcripts.readers.gemini import GeminiOutline

        return GeminiOutline()
    if agent == "copilot":
        from snapstore.transcripts.readers.copilot import CopilotOutline

        return CopilotOutline()
    if agent == "cline":
        from snapstore.transcripts.readers.cline import ClineOutline

        return ClineOutline()
    if agent == "cursor":
        from snapstore.transcripts.readers.cursor import CursorOutline

        return CursorOutline()
    if agent == "qwen":
        from snapstore.transcripts.readers.qwen import QwenOutline

        return QwenOutline()
    if agent == "opencode":
        from snapstore.transcripts.readers.opencode import OpencodeOutline

        return OpencodeOutline()
    raise Unknown(f"snapstore cannot read the transcripts of {agent[:80]!r}", f"Known: {', '.join(AGENTS)}.")


def read_outline(
    source: Source, path: str | os.PathLike[str], agent: str, session_id: str | None, start: int = 0
) -> Outline:
    """Read the outline of a transcript (first pass), from `start` on if the format has lines."""
    file = source.file
    outline = new_outline(agent)
    outline.is_tail = start > 0
    if agent == "opencode":
        from snapstore.transcripts.readers.opencode import OpencodeOutline, read_database, read_export

        assert isinstance(outline, OpencodeOutline)
        file.seek(0)
        if file.read(len(_SQLITE)) == _SQLITE:
            read_database(outline, path, session_id)
        else:
            read_export(outline, document(file, path))
    elif agent == "cline":
        from snapstore.transcripts.readers.cline import ClineOutline

        assert isinstance(outline, ClineOutline)
        outline.describe(document(file, path))
        outline.describe_session(os.fsdecode(path))
    elif agent == "gemini" and not _has_lines(file, agent):
        from snapstore.transcripts.readers.gemini import GeminiOutline

        assert isinstance(outline, GeminiOutline)
        outline.describe(document(file, path))
    else:
        feed_lines(outline, source, start)
    return outline


def feed_lines(outline: Outline, source: Source, start: int, *, half: bool = True) -> int:
    """Read all lines from an offset; return the offset of the next line.

    A last line without a line ending is still being written, unless it is already a complete object (allowed by
    `half`). No proper prefix of a JSON object is itself a JSON object.
    """
    offset = start
    for ref, raw in lines(source.file, start):
        record = parse(raw)
        if raw[-1:] != b"\n" and raw and (record is None or not half):
            break
        if record is not None:
            outline.feed(ref, record)
            source.keep(ref, raw, record)
        elif not raw or not is_blank(raw):
            outline.feed_malformed(ref)
        offset = ref[0] + ref[1]
    return offset


def read_turn(source: Source, outline: Outline, span: Span, index: int) -> ConversationTurn:
    """Read the text of one turn (second pass)."""
    turn = ConversationTurn(index)
    turn.compacted_before = span.compacted
    filler = outline.filler(turn, span)
    for ref in span.refs:
        raw, record = source.take(ref)
        if raw:
            turn.lines.append(raw)
        if record is not None:
            filler.take(record)
    filler.finish()
    turn.prompt_id = turn.prompt_id or (span.key if span.prompted else None)
    return turn


def _line_start(file: BinaryIO, offset: int) -> int:
    """Return the start of the first line that begins at or after an offset."""
    file.seek(offset - 1)
    while chunk := file.readline(1 << 20):
        if chunk[-1:] == b"\n":
            break
    return file.tell()


def _has_lines(file: BinaryIO, agent: str) -> bool:
    """Return whether the file is a list of lines.

    Gemini's older chats are one document, usually over many lines.
    """
    if agent in ("cline", "opencode"):
        return False
    if agent != "gemini":
        return True
    file.seek(0)
    first = file.readline(_FIRST_TAIL)
    if first.endswith(b"\n") and first.strip(b"\xef\xbb\xbf \t\r\n") == b"{":
        return False  # without the newline it may be a line of which only one byte is written
    record = parse(first)
    return record is None or not isinstance(record.get("messages"), list)
