"""Search for secrets in what a push or an export would send.

The search covers new files with their names and lines, records of turns, commit messages, and the names of branches,
checkpoints and machines. Nothing else is read, so the cost of a push depends on what its turns changed. Blobs are
streamed through a window, so memory is bounded for files and lines of any length. Of a binary file only the name is
searched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from snapstore.base.text import and_more, one_line
from snapstore.errors import Secret, Usage
from snapstore.git.objects.commits import Commit
from snapstore.git.objects.ids import BLOB, COMMIT, EMPTY_TREE, GITLINK
from snapstore.git.objects.notes import REFS as NOTES
from snapstore.git.objects.reachability import new_objects
from snapstore.git.ref_names import ARCHIVE, HEADS, SAFETY, TAGS
from snapstore.share.secrets.finding import FILE, MESSAGE, NAME, RECORD, REF, Finding
from snapstore.share.secrets.gitleaks import ExternalScanners
from snapstore.store.handle import StoreHandle
from snapstore.store.state import encode
from snapstore.timeline.record.redact import nested_json

_WHOLE_RECORD = 16 << 20  # a record up to this size is read as JSON, a larger one as text
_NESTED = 4 << 20  # a text in a record up to this size may itself be JSON: a raw line of a conversation
_SHOWN = 20
STATE = "allowed-secrets.json"

_HISTORY = (HEADS, TAGS, ARCHIVE, SAFETY)
_MASK = b"***"
_FIELDS = "names of fields"


def check(
    store: StoreHandle,
    new_commits: Iterable[bytes],
    new_notes: Iterable[tuple[bytes, bytes]] = (),
    allowed: Collection[str] | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    names: Mapping[str, bytes] | None = None,
    say: Callable[[str], None] | None = None,
) -> list[Finding]:
    """Return likely secrets in what would be sent, except allowed findings.

    Commits come oldest first. Records are pairs of a commit and the blob of its record. `names` are names of refs, with
    their targets, and of this machine. `allowed` defaults to the findings that the store remembers. Messages for the
    user, for example that gitleaks failed, go to `say`.
    """
    known = allowed_in(store) if allowed is None else set(allowed)
    found: dict[str, Finding] = {}
    for finding in _Check(store, progress, say or (lambda _: None)).run(new_commits, new_notes, names or {}):
        if finding.fingerprint not in known:
            found.setdefault(finding.fingerprint, finding)
    return list(found.values())


def check_refs(
    store: StoreHandle,
    refs: Mapping[str, bytes],
    known: Iterable[bytes] = (),
    progress: Callable[[int], None] | None = None,
    *,
    say: Callable[[str], None] | None = None,
) -> list[Finding]:
    """Return likely secrets in everything that refs lead to and the reader lacks.

    The records are included; `known` are the tips that the reader has.
    """
    objects, there = store.shadow.objects, list(known)
    history = {ref: oid for ref, oid in refs.items() if ref.startswith(_HISTORY)}
    commits = [oid for oid, kind, _, _ in new_objects(objects, list(history.values()), there) if kind == COMMIT]
    records = []
    for oid, kind, path, _ in new_objects(objects, [refs[ref] for ref in NOTES if ref in refs], there):
        key = path.replace(b"/", b"")
        if kind == BLOB and _is_id(key) and objects.contains(bytes.fromhex(key.decode())):
            records.append((bytes.fromhex(key.decode()), oid))
    return check(store, commits, records, progress=progress, names=history, say=say)


def refuse(findings: list[Finding], command: str = "snapstore push", done: str = "sent") -> None:
    """Raise Secret if there are findings."""
    if not findings:
        return
    listed = [f"{finding}  --allow {finding.fingerprint}" for finding in findings[:_SHOWN]]
    if len(findings) > _SHOWN:
        listed.append(f"{and_more(len(findings), _SHOWN)} (`--json` lists all)")
    what = "something that looks" if len(findings) == 1 else f"{len(findings)} things that look"
    raise Secret(
        f"nothing was {done}: it would publish {what} like a secret\n  " + "\n  ".join(listed),
        "Remove a secret from the history with `snapstore forget PATH` (or TURN), and revoke it if others may know it. "
        f"If it is not a secret, `{command} --allow {findings[0].fingerprint}` allows exactly that one"
        + (", each by its own code; --allow can be repeated." if len(findings) > 1 else "."),
        findings=findings,
    )


# Allowed findings.


class _Allowed:
    __slots__ = ("allowed",)

    def __init__(self, *, allowed: list[str]) -> None:
        self.allowed = allowed


def allowed_in(store: StoreHandle) -> set[str]:
    """Return the fingerprints of findings that were allowed in this store."""
    document = store.documents.read(_Allowed, STATE)
    return set(document.allowed) if document is not None else set()


def allow(store: StoreHandle, fingerprints: Iterable[str]) -> None:
    """Store findings as allowed, each by its fingerprint."""
    words = [word.strip().lower() for word in fingerprints]
    for word in words:
        if len(word) != 16 or not all(character in "0123456789abcdef" for character in word):
            raise Usage(
                f"{one_line(word)[:40]!r} is not the code of a finding",
                "Codes are 16 hex digits; a refused push prints them.",
            )
    with store.changing():
        document = _Allowed(allowed=sorted(allowed_in(store) | set(words)))
        store.journal.carry_out([], {STATE: encode(document)}, what="allowing a finding")


# The search.


class _Pairs(list[tuple[str, "Any"]]):
    """The fields of a JSON object in order, with duplicate names kept."""


class _Check:
    """One search of the commits, records and names of a push."""

    def __init__(self, store: StoreHandle, progress: Callable[[int], None] | None, say: Callable[[str], None]) -> None:
        from snapstore.share.secrets.scanner import Scanner

        self._say = say
        self._shadow = store.shadow
        self._progress = progress
        self._salt = store.header.id.encode()[:64]
        self._done = 0
        self._scanner = Scanner(store.shadow.objects, self._tick)
        self._masked: dict[bytes, bytes] = {}  # path: the path to show, with its secret masked

    def run(
        self, commits: Iterable[bytes], notes: Iterable[tuple[bytes, bytes]], names: Mapping[str, bytes]
    ) -> Iterator[Finding]:
        yield from self._given_names(names)
        external = ExternalScanners(self._shadow.objects, self._say)
        try:
            for oid in commits:
                commit = self._shadow.commit(oid)
                files = list(self._new_files(commit))
                named: set[bytes] = set()
                yield from self._names(oid, commit, [path for path, _, _ in files], named)
                yield from self._message(oid, commit, named)
                for rule, path, line, secret in self._scanner.files(files):
                    about = {"about": secret} if line is None else {"secret": secret}
                    external.note_known(path, secret)
                    yield self._finding(rule, FILE, oid, commit, path=path, line=line, **about)
                external.add(oid, files)
            for rule, oid, path, line, secret in external.found():
                commit = self._shadow.commit(oid)
                yield self._finding(rule, FILE, oid, commit, path=path, line=line, secret=secret)
        finally:
            external.close()
        for oid, blob in notes:
            yield from self._record(oid, blob)

    def _new_files(self, commit: Commit) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Yield path, mode and blob of each file that no parent has at its path."""
        trees = self._shadow.trees
        parents = [self._shadow.commit(parent).tree for parent in commit.parents]
        for path, _, new in trees.diff(parents[0] if parents else EMPTY_TREE, commit.tree):
            if new is not None and new[0] != GITLINK and all(trees.file(tree, path) != new for tree in parents[1:]):
                yield path, *new

    def _given_names(self, given: Mapping[str, bytes]) -> Iterator[Finding]:
        names = {name.encode("utf-8", "surrogateescape"): oid for name, oid in given.items()}
        for rule, name, _, secret in self._scanner.names(sorted(names)):
            yield Finding(
                rule=rule,
                kind=REF,
                commit=names[name],
                session="",
                turn=None,
                where=name.replace(secret, _MASK).decode("utf-8", "replace"),
                length=len(secret),
                fingerprint=self._fingerprint(rule, REF, name, secret),
            )

    def _names(self, oid: bytes, commit: Commit, paths: list[bytes], found: set[bytes]) -> Iterator[Finding]:
        for rule, path, at, secret in self._scanner.names(paths):
            found.add(secret)
            self._masked[path] = self._masked.get(path, path).replace(secret, _MASK)
            # A folder is one finding, however many files it contains.
            end = path.find(b"/", at + len(secret))
            yield self._finding(rule, NAME, oid, commit, path=path[:end] if end >= 0 else path, secret=secret)

    def _message(self, oid: bytes, commit: Commit, named: set[bytes]) -> Iterator[Finding]:
        """Search a commit message; skip secrets already found in names of its files."""
        text = f"{commit.subject}\n\n{commit.body}".encode("utf-8", "replace")
        for rule, line, secret in self._scanner.text((text,)):
            if secret not in named:
                yield self._finding(rule, MESSAGE, oid, commit, line=line, secret=secret)

    def _record(self, oid: bytes, blob: bytes) -> Iterator[Finding]:
        self._tick()
        commit = self._shadow.commit(oid)
        hits = [(where, *hit) for where, pieces in self._texts(blob) for hit in self._scanner.text(pieces)]
        hidden = [secret.decode("utf-8", "replace") for where, _, _, secret in hits if where == _FIELDS]
        for where, rule, line, secret in hits:
            for text in hidden:
                where = where.replace(text, _MASK.decode())
            yield self._finding(rule, RECORD, oid, commit, where=where, line=line, secret=secret)

    def _texts(self, blob: bytes) -> Iterator[tuple[str, Iterable[bytes]]]:
        """Yield the texts of a record, each with its place.

        A value is preceded by its field's name, like a setting in a file.
        """
        objects = self._shadow.objects
        if objects.header(blob)[1] > _WHOLE_RECORD:
            yield "the whole of it", objects.stream(blob)
            return
        data = objects.read_kind(blob, BLOB)
        try:
            waiting: list[tuple[str, str, Any]] = [("", "", json.loads(data, object_pairs_hook=_Pairs))]
        except (ValueError, RecursionError):
            # Raw lines of a conversation, each of which is JSON, or a note made by hand.
            lines = data.decode("utf-8", "surrogateescape").splitlines()
            waiting = [("", "", _Pairs([("lines", lines)]))]
        names: dict[str, None] = {}
        while waiting:
            where, key, value = waiting.pop()
            if isinstance(value, _Pairs):
                names.update(dict.fromkeys(name for name, _ in value))
                waiting += [(f"{where}.{name}" if where else name, name, below) for name, below in value]
            elif isinstance(value, list):
                waiting += [(f"{where}[{number}]", key, below) for number, below in enumerate(value)]
            elif isinstance(value, str) and value:
                nested = nested_json(value, _Pairs) if len(value) <= _NESTED else None
                if nested is not None:
                    waiting.append((where, key, nested))
                else:
                    text = f'{key}: "{value}"' if key else value
                    yield where, (text.encode("utf-8", "surrogateescape" if value.isascii() else "replace"),)
        yield _FIELDS, ("\n".join(names).encode("utf-8", "replace"),)

    def _finding(
        self, rule: str, kind: str, oid: bytes, commit: Commit, *, secret: bytes = b"", about: bytes = b"", **place: Any
    ) -> Finding:
        trailers = commit.trailers
        spot = place.get("path", oid)
        if kind == NAME:
            place["path"] = place["path"].replace(secret, _MASK)
        elif kind == FILE:
            place["path"] = self._masked.get(spot, spot)
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
        """Return a fingerprint of one secret in one place.

        The finding stays allowed while the lines around it change. Without the store, the fingerprint reveals nothing
        about the secret.
        """
        digest = blake2b(key=self._salt, digest_size=8)
        for part in (rule.encode(), kind.encode(), spot, secret):
            digest.update(b"%d:" % len(part) + part)
        return digest.hexdigest()

    def _tick(self) -> None:
        self._done += 1
        if self._progress is not None and self._done % 256 == 0:
            self._progress(self._done)


def _is_id(key: bytes) -> bool:
    return len(key) == 40 and all(byte in b"0123456789abcdef" for byte in key)
