"""Commits: a message for people, trailers for snapstore, an author per turn.

The author lets `git blame` tell which turn, or the user, changed a line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dulwich import objects

from snapstore.base.text import and_more, one_line, quote
from snapstore.errors import Corrupt
from snapstore.git.objects.ids import COMMIT
from snapstore.git.objects.store import Objects

TRAILER = "Snapstore-"
SUBJECT_LENGTH = 200
LISTED_FILES = 50
LONGEST_PROMPT = 65_536  # characters of the prompt in a message; the record of the turn has the whole prompt
LONGEST_ANSWER = 400
LONGEST_NUMBER = 18
KINDS = frozenset(("baseline", "turn", "edits", "revert", "apply", "restore"))
_LAST_SECOND = 253_402_300_799  # of the year 9999: a later time cannot be real
_NOT_IN_IDENTITIES = str.maketrans("", "", "<>")


@dataclass(frozen=True, slots=True)
class Identity:
    """The author or committer of a commit."""

    name: str
    email: str

    def line(self) -> bytes:
        """Return the name and address in a commit's format."""
        name, email = (one_line(text).translate(_NOT_IN_IDENTITIES) for text in (self.name, self.email))
        return f"{name.strip() or 'unknown'} <{email.replace(' ', '')}>".encode("utf-8", "replace")


@dataclass(slots=True)
class Commit:
    """A commit as read. The trailers are only snapstore's own: see `split_trailers`."""

    tree: bytes
    parents: tuple[bytes, ...]
    author: str
    seconds: int
    subject: str
    body: str
    trailers: Mapping[str, str]

    @property
    def kind(self) -> str:
        """Return the kind of node. A commit made with git counts as a turn.

        Such a commit has no kind, or an arbitrary one.
        """
        kind = self.trailers.get("Kind", "turn")
        return kind if kind in KINDS else "turn"

    def number(self, name: str) -> int | None:
        value = self.trailers.get(name, "")
        # Anyone can write a trailer. A value of five thousand digits is not a number that snapstore wrote.
        return int(value) if value.isdecimal() and len(value) <= LONGEST_NUMBER else None


def encode(
    tree: bytes,
    parents: Sequence[bytes],
    author: Identity,
    committer: Identity,
    seconds: int,
    message: str,
) -> bytes:
    """Return a commit's data, encoded by dulwich."""
    made = objects.Commit()
    made.tree = objects.sha_to_hex(objects.RawObjectID(tree))
    made.parents = [objects.sha_to_hex(objects.RawObjectID(parent)) for parent in parents]
    made.author, made.committer = author.line(), committer.line()
    made.author_time = made.commit_time = seconds
    made.author_timezone = made.commit_timezone = 0
    made.message = message.encode("utf-8", "replace")
    return made.as_raw_string()


def read(store: Objects, oid: bytes) -> Commit:
    return parse(store.read_kind(oid, COMMIT), oid)


def parse(data: bytes, oid: bytes) -> Commit:
    head, _, message = data.decode("utf-8", "replace").partition("\n\n")
    tree, parents, author, seconds = b"", [], "", 0
    try:
        for line in head.split("\n"):
            key, _, value = line.partition(" ")
            if key == "tree":
                tree = bytes.fromhex(value)
            elif key == "parent":
                parents.append(bytes.fromhex(value))
            elif key == "author":
                who, _, stamp = value.rpartition("> ")
                author, seconds = f"{who}>", int(stamp.split(" ")[0])
    except ValueError:
        tree = b""
    if len(tree) != 20:
        raise Corrupt(f"commit {oid.hex()} is damaged", object=oid.hex())
    seconds = min(max(seconds, 0), _LAST_SECOND)
    text, trailers = split_trailers(message)
    subject, _, body = text.partition("\n")
    return Commit(tree, tuple(parents), author, seconds, subject, body.strip("\n"), trailers)


def message(
    prompt: str, changes: Sequence[tuple[str, bytes]], trailers: Mapping[str, object], *, answer: str = ""
) -> str:
    """Return a commit message: prompt, short answer, changed files, trailers.

    The subject is the first line of the prompt, and the other lines of the prompt follow. A first line that is too long
    for a subject is repeated in full. The trailers are the last paragraph.
    """
    lines = [_printable(line) for line in prompt[:LONGEST_PROMPT].splitlines()]
    if len(prompt) > LONGEST_PROMPT:
        lines.append("… (the whole prompt is in the record of the turn)")
    first = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    subject = lines[first].strip() if lines[first:] else "(no prompt)"
    rest = lines[first + 1 :]
    if len(subject) > SUBJECT_LENGTH:
        rest = lines[first:]
        subject = subject[: SUBJECT_LENGTH - 1] + "…"
    paragraphs = [subject, "\n".join(rest).strip("\n"), brief(answer)]
    listed = [f"{letter} {quote(path)}" for letter, path in changes[:LISTED_FILES]]
    if len(changes) > LISTED_FILES:
        listed.append(and_more(len(changes), LISTED_FILES))
    paragraphs.append("\n".join(listed))
    paragraphs.append("\n".join(f"{TRAILER}{key}: {one_line(str(value))}" for key, value in trailers.items()))
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def brief(answer: str) -> str:
    """Return the first paragraph of an answer, shortened and on one line.

    The result is empty if the answer is empty.
    """
    paragraph = answer.strip()[:LONGEST_ANSWER].partition("\n\n")[0]
    text = " ".join(one_line(paragraph).split())
    if not text:
        return ""
    return f"Answer: {text}" + (" …" if len(paragraph) < len(answer.strip()) else "")


def _printable(line: str) -> str:
    """Return a line that any terminal can show, with its indentation."""
    kept = "".join(c if c.isprintable() else " " for c in line.expandtabs(4))
    return kept.encode("utf-8", "replace").decode("utf-8").rstrip()


def split_trailers(text: str) -> tuple[str, dict[str, str]]:
    """Split a message into its text and snapstore's trailers.

    Only the last paragraph counts, and only if every line is a snapstore trailer. So a prompt cannot forge a trailer.
    """
    body, separator, last = text.rstrip("\n").rpartition("\n\n")
    lines = last.split("\n")
    if not separator or not all(line.startswith(TRAILER) and ": " in line for line in lines):
        return text, {}
    return body, {key: value for key, _, value in (line[len(TRAILER) :].partition(": ") for line in lines)}
