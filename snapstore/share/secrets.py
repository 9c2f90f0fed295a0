"""Looks for secrets in what a push would send: new files with their lines, records of turns, commit messages.

Nothing else is read, so a push of one turn costs what that turn changed. Blobs stream through a window: memory is
bounded whatever their size, and however long a line. A binary file is judged by its name alone.
"""

from __future__ import annotations

import json
import os
from hashlib import blake2b

from snapstore.errors import Secret, Usage
from snapstore.git.commits import one_line, quote
from snapstore.git.objects import BLOB, EMPTY_TREE, GITLINK
from snapstore.timeline.documents import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import Any

    from snapstore.git.commits import Commit
    from snapstore.timeline.store import Store

_WHOLE_RECORD = 16 << 20  # a record up to this size is read as JSON, a larger one as text
_NESTED = 4 << 20  # a text inside a record up to this size may be JSON itself: a raw line of a conversation
_SHOWN = 20
STATE = "allowed-secrets.json"

FILE, RECORD, MESSAGE = "file", "record", "message"


class Finding:
    """One secret-looking thing in one place. It never holds the secret."""

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
        self.kind = kind  # file, record (what is remembered of a turn) or message (of its commit)
        self.commit = commit
        self.session = session
        self.turn = turn  # None for a baseline or edits
        self.fingerprint = fingerprint
        self.path = path
        self.where = where  # the field of a record
        self.line = line  # from 1; None for a file that is one by its name
        self.length = length  # bytes of the secret

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "rule": self.rule,
            "kind": self.kind,
            "session": self.session,
            "turn": self.turn,
            "commit": self.commit.hex(),
            "path": os.fsdecode(self.path) if self.path is not None else None,
            "where": self.where,
            "line": self.line,
            "masked": f"({self.length} characters)" if self.length else None,
            "fingerprint": self.fingerprint,
        }
        return shown

    def __str__(self) -> str:
        turn = f"turn {self.turn}" if self.turn is not None else f"commit {self.commit.hex()[:8]}"
        if self.kind == FILE:
            assert self.path is not None
            place = quote(self.path) + (f", line {self.line}" if self.line is not None else "")
        elif self.kind == RECORD:
            place = f"the record ({one_line(self.where)}" + (f", line {self.line})" if self.line is not None else ")")
        else:
            place = "the commit message"
        size = f", {self.length} characters" if self.length else ""
        return f"{place}, {turn} of session {one_line(self.session)}: {self.rule}{size}"


def check(
    store: Store,
    new_commits: Iterable[bytes],
    new_notes: Iterable[tuple[bytes, bytes]] = (),
    allowed: Collection[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Finding]:
    """What looks like a secret in the commits (oldest first) and records (commit, blob of its record) that a push
    would send, without the findings that are allowed: those given, else those the store remembers."""
    known = allowed_in(store) if allowed is None else set(allowed)
    found: dict[str, Finding] = {}
    for finding in _Check(store, progress).run(new_commits, new_notes):
        if finding.fingerprint not in known:
            found.setdefault(finding.fingerprint, finding)
    return list(found.values())


def refuse(findings: list[Finding], command: str = "snapstore push") -> None:
    """Raises Secret where there is a finding."""
    if not findings:
        return
    listed = [str(finding) for finding in findings[:_SHOWN]]
    if len(findings) > _SHOWN:
        listed.append(f"… and {len(findings) - _SHOWN} more")
    what = "something that looks" if len(findings) == 1 else f"{len(findings)} things that look"
    word = findings[0].fingerprint
    raise Secret(
        f"nothing was sent: it would publish {what} like a secret\n  " + "\n  ".join(listed),
        "Take it out of the history with `snapstore forget PATH` (or TURN), and change what is known already. "
        f"If it is no secret: `{command} --allow {word}` allows exactly this one"
        + (", and each has its own word." if len(findings) > 1 else "."),
        findings=[finding.as_json() for finding in findings],
    )


# What is allowed.


class _Allowed:
    __slots__ = ("allowed",)

    def __init__(self, *, allowed: list[str]) -> None:
        self.allowed = allowed


def allowed_in(store: Store) -> set[str]:
    """The findings that were allowed in this store."""
    document = store.documents.read(_Allowed, STATE)
    return set(document.allowed) if document is not None else set()


def allow(store: Store, fingerprints: Iterable[str]) -> None:
    """Remembers findings as allowed, each by its fingerprint."""
    words = [word.strip().lower() for word in fingerprints]
    for word in words:
        if len(word) != 16 or not all(character in "0123456789abcdef" for character in word):
            raise Usage(f"{one_line(word)[:40]!r} is no finding's word", "A refused push prints them: 16 hex digits.")
    with store.changing():
        document = _Allowed(allowed=sorted(allowed_in(store) | set(words)))
        store.journal.carry_out([], {STATE: encode(document)}, what="allowing a finding")


# The look.


class _Check:
    def __init__(self, store: Store, progress: Callable[[int], None] | None) -> None:
        from snapstore.share.looking import Look

        self._shadow = store.shadow
        self._progress = progress
        self._salt = store.header.id.encode()[:64]
        self._done = 0
        self._look = Look(store.shadow.objects, self._tick)

    def run(self, commits: Iterable[bytes], notes: Iterable[tuple[bytes, bytes]]) -> Iterator[Finding]:
        for oid in commits:
            commit = self._shadow.commit(oid)
            yield from self._message(oid, commit)
            for rule, path, line, secret in self._look.files(list(self._new_files(commit))):
                named = line is None
                about = {"about": secret} if named else {"secret": secret}
                yield self._finding(rule, FILE, oid, commit, path=path, line=line, **about)
        for oid, blob in notes:
            yield from self._record(oid, blob)

    def _new_files(self, commit: Commit) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Path, mode and blob of what no parent has there."""
        trees = self._shadow.trees
        parents = [self._shadow.commit(parent).tree for parent in commit.parents]
        for path, _, new in trees.diff(parents[0] if parents else EMPTY_TREE, commit.tree):
            if new is not None and new[0] != GITLINK and all(trees.file(tree, path) != new for tree in parents[1:]):
                yield path, *new

    def _message(self, oid: bytes, commit: Commit) -> Iterator[Finding]:
        text = f"{commit.subject}\n\n{commit.body}".encode("utf-8", "replace")
        for rule, line, secret in self._look.text((text,)):
            yield self._finding(rule, MESSAGE, oid, commit, line=line, secret=secret)

    def _record(self, oid: bytes, blob: bytes) -> Iterator[Finding]:
        self._tick()
        commit = self._shadow.commit(oid)
        for where, pieces in self._texts(blob):
            for rule, line, secret in self._look.text(pieces):
                yield self._finding(rule, RECORD, oid, commit, where=where, line=line, secret=secret)

    def _texts(self, blob: bytes) -> Iterator[tuple[str, Iterable[bytes]]]:
        """The texts in a record, each with its place. A value stands with its name, as a setting would in a file."""
        objects = self._shadow.objects
        if objects.header(blob)[1] > _WHOLE_RECORD:
            yield "the whole of it", objects.stream(blob)
            return
        data = objects.read_kind(blob, BLOB)
        try:
            waiting: list[tuple[str, str, Any]] = [("", "", json.loads(data))]
        except (ValueError, RecursionError):
            yield "the whole of it", (data,)
            return
        while waiting:
            where, key, value = waiting.pop()
            if isinstance(value, dict):
                waiting += [(f"{where}.{name}" if where else name, name, below) for name, below in value.items()]
            elif isinstance(value, list):
                waiting += [(f"{where}[{number}]", key, below) for number, below in enumerate(value)]
            elif isinstance(value, str) and value:
                nested = _parsed(value)
                if nested is not None:
                    waiting.append((where, key, nested))
                else:
                    text = f'{key}: "{value}"' if key else value
                    yield where, (text.encode("utf-8", "surrogateescape" if value.isascii() else "replace"),)

    def _finding(
        self, rule: str, kind: str, oid: bytes, commit: Commit, *, secret: bytes = b"", about: bytes = b"", **place: Any
    ) -> Finding:
        trailers = commit.trailers
        spot = place["path"] if kind == FILE else oid
        return Finding(
            rule=rule,
            kind=kind,
            commit=oid,
            session=trailers.get("Session", ""),
            turn=commit.number("Turn"),
            length=len(secret),
            fingerprint=self._fingerprint(rule, kind, spot, secret or about),
            **place,
        )

    def _fingerprint(self, rule: str, kind: str, spot: bytes, secret: bytes) -> str:
        """Of one secret in one place: it stays allowed while the lines around it change, and tells nothing of it to
        one who does not know the store."""
        digest = blake2b(key=self._salt, digest_size=8)
        for part in (rule.encode(), kind.encode(), spot, secret):
            digest.update(b"%d:" % len(part) + part)
        return digest.hexdigest()

    def _tick(self) -> None:
        self._done += 1
        if self._progress is not None and self._done % 256 == 0:
            self._progress(self._done)


def _parsed(text: str) -> Any:
    """What a text says that is JSON itself."""
    if text[:1] not in ("{", "[") or len(text) > _NESTED:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None
