"""What a forget tells of itself."""

from __future__ import annotations


class Forgotten:
    """What went, or with a dry run would go."""

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
        self.versions = 0  # contents that no commit holds any more at these paths
        self.commits = 0  # that have other ids now
        self.records = 0  # of turns from which something was taken out
        self.refs = 0
        self.lost_refs: list[str] = []  # that led to a forgotten content itself
        self.copies: list[bytes] = []  # where the same content is that was not forgotten: other paths; for a turn, any
        self.on_disk: list[bytes] = []  # as the forgotten turn left them: the next turn takes them in again
        self.unsearched: list[bytes] = []  # whose content was too much to look for all of it in what was said
        self.never: list[str] = []  # patterns that were added to never_capture
        self.new: dict[bytes, bytes] = {}  # what became of commits
        self.dry_run = False
