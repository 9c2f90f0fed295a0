"""The result of a forget, for the user."""

from __future__ import annotations


class Forgotten:
    """What was forgotten, or would be with a dry run."""

    __slots__ = (
        "commits",
        "copies",
        "dry_run",
        "lost_refs",
        "never",
        "new",
        "on_disk",
        "paths",
        "records",
        "refs",
        "turn",
        "unsearched",
        "versions",
    )

    def __init__(self) -> None:
        self.paths: list[bytes] = []
        self.turn: bytes | None = None
        self.versions = 0  # contents that no commit has at these paths any more
        self.commits = 0  # commits that got new ids
        self.records = 0  # records of turns that were redacted
        self.refs = 0
        self.lost_refs: list[str] = []  # refs that pointed at forgotten content directly
        self.copies: list[bytes] = []  # other paths that keep the same content; for a turn, any path
        self.on_disk: list[bytes] = []  # files as the forgotten turn left them: the next turn captures them again
        self.unsearched: list[bytes] = []  # files with too much content to search the records for all of it
        self.never: list[str] = []  # patterns that were added to never_capture
        self.new: dict[bytes, bytes] = {}  # old commit id to new commit id
        self.dry_run = False
