"""Follows a transcript while its agent writes it (G-20)."""

from __future__ import annotations

import os

from snapstore.errors import Usage
from snapstore.transcripts.lines import Source, opened
from snapstore.transcripts.model import Conversation, ConversationTurn
from snapstore.transcripts.readers.read import described, feed_lines, filled, new_outline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

_CHECKED = 4096  # bytes compared at the beginning and before the offset to detect a rewritten file


class Follower:
    """Reads what was appended since the last `poll`; starts over on another file.

    Only complete lines are read. The follower keeps positions, not text: a turn is read when it is requested.
    """

    def __init__(self, path: str | os.PathLike[str], agent: str) -> None:
        if agent == "opencode":
            raise Usage("opencode's conversations are in a database, which has no end to follow")
        self._path = path
        self._agent = agent
        self.offset = 0
        self.started_over = False
        self._file_id: tuple[int, int] | None = None
        self._marks = (b"", b"")
        self._outline = new_outline(agent)

    def poll(self) -> int:
        """Read what is new and return the number of new bytes.

        `started_over` says whether the file was rewritten or truncated since the last call. Turns returned before are
        then no longer valid.
        """
        with opened(self._path) as file:
            status = os.fstat(file.fileno())
            identity = (status.st_dev, status.st_ino)
            self.started_over = self.offset > 0 and not self._is_same(file, identity, status.st_size)
            if self.started_over:
                self.offset = 0
                self._outline = new_outline(self._agent)
            before = self.offset
            self.offset = feed_lines(self._outline, Source(file), self.offset, half=False)
            self._file_id = identity
            self._marks = self._read_marks(file)
            return self.offset - before

    def conversation(self) -> Conversation:
        """Return everything read so far."""
        with opened(self._path) as file:
            source, spans = Source(file), self._outline.line()
            conversation = described(self._outline)
            conversation.turns = [filled(source, self._outline, span, n) for n, span in enumerate(spans, 1)]
            return conversation

    def last_turn(self) -> ConversationTurn | None:
        spans = self._outline.line()
        if not spans:
            return None
        with opened(self._path) as file:
            return filled(Source(file), self._outline, spans[-1], len(spans))

    def _is_same(self, file: BinaryIO, identity: tuple[int, int], size: int) -> bool:
        """Return whether the file is still the one read before.

        A rewrite may keep the inode, and the size may stay equal or grow, so the bytes at the start and before the
        offset are compared.
        """
        return identity == self._file_id and size >= self.offset and self._read_marks(file) == self._marks

    def _read_marks(self, file: BinaryIO) -> tuple[bytes, bytes]:
        file.seek(0)
        first = file.read(min(_CHECKED, self.offset))
        file.seek(max(self.offset - _CHECKED, 0))
        return first, file.read(min(_CHECKED, self.offset))
