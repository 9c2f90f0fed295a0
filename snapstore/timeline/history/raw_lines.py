"""Store the raw lines of a turn's conversation apart from the turn's record.

A record (`refs/notes/turns`) is for reading. The lines as the agent wrote them are a note of their own
(`refs/notes/transcripts`), byte for byte, so that `git log --notes=turns` shows a turn and not a transcript. Records of
earlier versions contain their lines. So does a record whose lines could not be told apart again in one text.
"""

from __future__ import annotations

from typing import Any

from snapstore.git.repository import Shadow

LINES = "lines"
_BARE = "bare_lines"  # in a record: its lines had no newline at the end


def take_out(record: dict[str, Any]) -> tuple[dict[str, Any], bytes | None]:
    """Return a record without its lines, and the lines as one text.

    The text is None if the lines stay in the record.
    """
    lines = record.get(LINES)
    if not lines or not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        return record, None
    ends = [line.find("\n") for line in lines]
    rest = {key: value for key, value in record.items() if key not in (LINES, _BARE)}
    if all(end < 0 for end in ends):
        rest[_BARE] = True
        lines = [f"{line}\n" for line in lines]
    elif not all(end == len(line) - 1 for line, end in zip(lines, ends, strict=True)):
        return record, None
    try:
        return rest, "".join(lines).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate, which JSON can hold and UTF-8 cannot
        return record, None


def put_back(record: dict[str, Any], text: bytes | None) -> dict[str, Any]:
    """Return a record with its lines put back."""
    if text is None:
        return record
    lines = text.decode("utf-8", "surrogateescape").split("\n")
    last = lines.pop()
    if not record.get(_BARE):
        lines = [f"{line}\n" for line in lines]
    whole = {key: value for key, value in record.items() if key != _BARE}
    return {**whole, LINES: [*lines, last] if last else lines}


def with_lines(shadow: Shadow, commit: bytes, record: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a commit with its raw lines."""
    return put_back(record, shadow.transcript(commit))
