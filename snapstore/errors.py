"""The exceptions for refusals: each has a name, an exit status and a hint on the next step.

SnapstoreError
├── Usage        2   the request makes no sense
├── Conflict    10   files have changed; nothing was written
├── Busy        11   a turn is open, or another process holds the store
├── Interrupted 12   an unfinished move that could not be finished automatically
├── NoStore     13   this folder has no store
├── Corrupt     14   stored data is damaged or has another format; nothing was written
├── Unsafe      15   a path or name that must not be followed
├── Unknown     16   no such turn, branch, session, checkpoint or remote
├── Remote      17   the server refused or cannot be reached
└── Secret      18   a push that would publish a secret-looking file

A capture that cannot be completed (a full disk, an unreadable root) raises
Failed, status 1: nothing was recorded, and the files are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable


class SnapstoreError(Exception):
    """The base class of all refusals.

    `message` says what is wrong, and `hint` what to do next. `details` are extra fields of the JSON document.
    """

    name = "failed"
    status = 1
    hint = "Run again with --debug to see where it happened."

    def __init__(self, message: str, hint: str | None = None, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint if hint is not None else type(self).hint
        self.details = details


class Failed(SnapstoreError):
    hint = "Nothing was recorded and no file was changed; fix the problem and run this again."


class Usage(SnapstoreError):
    name = "usage"
    status = 2
    hint = "See `snapstore --help`."


class Conflict(SnapstoreError):
    name = "conflict"
    status = 10
    hint = "Nothing was written."


class Busy(SnapstoreError):
    name = "busy"
    status = 11
    hint = "Wait for it to finish, then run this again."


class Interrupted(SnapstoreError):
    name = "interrupted"
    status = 12
    hint = "Run `snapstore check` to see what is left to do."


class NoStore(SnapstoreError):
    name = "no-store"
    status = 13
    hint = "Run `snapstore init` in the folder to watch over."


class Corrupt(SnapstoreError):
    name = "corrupt"
    status = 14
    hint = "Run `snapstore check` to see everything that is damaged."


class Unsafe(SnapstoreError):
    name = "unsafe"
    status = 15
    hint = "Choose another path or name."


class Unknown(SnapstoreError):
    name = "unknown"
    status = 16
    hint = "Run `snapstore log` to see what there is."


class Remote(SnapstoreError):
    name = "remote"
    status = 17
    hint = "Check the address and your access, then try again."


class Secret(SnapstoreError):
    name = "secret"
    status = 18
    hint = "Remove the file from what is shared, or name it to share it on purpose."


def similar(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three known names that look like `name`, most similar first."""
    from difflib import get_close_matches  # only errors need this import

    names = list(known)
    if len(name) > 60 or len(names) > 2000:  # not a name at all, or too many names to compare
        return []
    return get_close_matches(name, names)


def did_you_mean(names: Iterable[str], otherwise: str) -> str:
    """Return a "Did you mean" hint that ends with `otherwise`.

    Without names, return `otherwise` alone.
    """
    *others, last = [f"`{name}`" for name in names] or [""]
    question = f"{', '.join(others)} or {last}" if others else last
    return f"Did you mean {question}? {otherwise}" if question else otherwise
