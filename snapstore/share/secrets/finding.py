"""Describe a finding of the search for secrets, without the secret itself."""

from __future__ import annotations

from snapstore.base.text import one_line, quote

FILE, NAME, RECORD, MESSAGE, REF = "file", "name", "record", "message", "ref"


class Finding:
    """One likely secret in one place, without the secret."""

    __slots__ = ("commit", "fingerprint", "kind", "length", "line", "path", "rule", "session", "turn", "where")

    def __init__(
        self,
        *,
        rule: str,
        kind: str,
        commit: bytes,
        session: str,
        turn: int | None,
        fingerprint: str,
        path: bytes | None = None,
        where: str = "",
        line: int | None = None,
        length: int = 0,
    ) -> None:
        self.rule = rule
        # file, name (of a file or folder), record (of a turn), message (of its commit), or ref
        self.kind = kind
        self.commit = commit
        self.session = session
        self.turn = turn  # None for a baseline or edits
        self.fingerprint = fingerprint
        self.path = path  # with the secret masked, if the name contains it
        self.where = where  # the field of a record, or a ref's name with the secret masked
        self.line = line  # from 1; None for a file that is a secret by its name
        self.length = length  # bytes of the secret

    def __str__(self) -> str:
        turn = f"turn {self.turn}" if self.turn is not None else f"commit {self.commit.hex()[:8]}"
        if self.kind == FILE:
            assert self.path is not None
            place = quote(self.path) + (f", line {self.line}" if self.line is not None else "")
        elif self.kind == NAME:
            assert self.path is not None
            place = f"the name {quote(self.path)}"
        elif self.kind == REF:
            return f"the name {one_line(self.where)}: {self.rule}, {self.length} characters"
        elif self.kind == RECORD:
            place = f"the record ({one_line(self.where)}" + (f", line {self.line})" if self.line is not None else ")")
        else:
            place = "the commit message"
        size = f", {self.length} characters" if self.length else ""
        return f"{place}, {turn} of session {one_line(self.session)}: {self.rule}{size}"
