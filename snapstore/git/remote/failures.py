"""Translate git's error output into snapstore's errors.

git's messages are in English here: see `environment` in `git_runner.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from snapstore.errors import Corrupt, Failed, Remote, SnapstoreError, Unsafe
from snapstore.git.remote.connection import ConnectionFailed, NotAtomic, RedirectRefused

_LONGEST = 500
_UNTOLD = re.compile(
    r"hint: |warning: |Done$|To |From |Everything up-to-date|POST git-|Enumerating|Counting|Compressing|Total "
    r"|Delta compression|and the repository exists\.$|Please make sure you have the correct access rights"
    r"|error: failed to push some refs|remote:$|remote: (Enumerating|Counting|Compressing|Total|Resolving)"
    r"|(remote: )?(Another git process|an editor opened|are terminated then|may have crashed|remove the file manually)"
)
_HELPER = "Set up a git credential helper that knows it (see `git help credentials`), then run this again."
_TRUST = "If you trust this server, name its certificate, or its issuer's, in git's setting http.sslCAInfo."
_OTHER_HOST = "Check the host name in the address; the certificate is for another host."
_FILES = "Check the files that http.sslCAInfo, http.sslCert and http.sslKey name, or GIT_SSL_CAINFO and the like."
_NOTHING = "Nothing was imported."

_FENCED = re.compile(r"fatal: transport '([^']+)' not allowed$")
_HOSTILE_TREE = re.compile(r"object [0-9a-f]{40}: (hasDot|hasDotdot|hasDotgit|fullPathname): ", re.I)
_DAMAGED = re.compile(
    r"fsck error|COLLISION FOUND|pack is corrupted|pack has (bad|junk)|unresolved delta|inflate|unknown object type"
    r"|(bad|invalid) (pack|object|delta)|delta base|serious (deflate|inflate)|out of memory|over limit"
    r"|pack signature|pack version|is corrupt|did not send all necessary objects|not a tree|failed to apply delta"
    r"|missing (blob|tree|commit)|premature end of pack|failed to validate delta|pack too large|read error on input",
    re.I,
)
_DISK = re.compile(
    r"(No space left on device|Disk quota exceeded|File too large|Read-only file system|Input/output error)"
)
_WRITING = re.compile(
    r"^(error|fatal): (unable to (create|write)|cannot (create|store|write|fsync)|write error|file write)"
)
_CUT = re.compile(
    r"early EOF|hung up|unexpected disconnect|RPC failed|disconnect while reading|unexpected flush|expected"
)
_UNREACHABLE = re.compile(
    r"unable to (connect|look up|access)|Could not resolve|Failed to connect|Connection (refused|reset|closed)"
    r"|connect to host|Could not read from remote|No route to host|Network is unreachable|timed out|Empty reply"
    r"|transfer closed|Recv failure|SSL|TLS|TLSv|schannel|Proxy|proxy|SOCKS"
)
_UNREADABLE_CERTIFICATE = re.compile(
    r"error (setting|reading|adding) (certificate|ca cert|.*trust)|could not load (PEM|client)|Problem with the SSL CA"
    r"|problem with the local SSL cert",
    re.I,
)
_UNREADABLE = re.compile(r"unable to (read|unpack)|is corrupt|missing (blob|tree|commit)|bad (object|tree)|not our ref")
_PASSING = re.compile(
    r"early EOF|hung up|unexpected disconnect|RPC failed|Connection (refused|reset|closed)|Empty reply|Recv failure"
    r"|transfer closed|returned error: (429|50[234])"
)


def failure(who: str, said: Iterable[str], status: int) -> SnapstoreError:
    """Return the error for git's messages about a remote.

    `who` is the remote's address without secrets.
    """
    lines = list(said)
    text = "\n".join(lines)
    ours = [line for line in lines if not line.startswith("remote: ")]
    words = summary(lines)
    fenced = next(filter(None, map(_FENCED.match, ours)), None)
    if fenced is not None:
        return RedirectRefused(who, fenced[1])
    if "does not support --atomic" in text:
        return NotAtomic(f"{who} cannot update several refs at once")
    if _HOSTILE_TREE.search(text):
        return Unsafe(f"{who} sent a tree with a name that must not be followed: {words}", _NOTHING)
    if any(_WRITING.match(line) or _DISK.search(line) for line in ours) and _DISK.search(text):
        return Failed(f"the store cannot be written: {_DISK.search(text)[1]}")  # type: ignore[index]
    return _refused_access(who, text, words) or _broken_transfer(who, text, words) or _other(who, words, status)


def refused(who: str) -> str:
    """Return the message for a remote that refuses a password."""
    return f"{who} refused the password"


def _refused_access(who: str, text: str, words: str) -> SnapstoreError | None:
    if "Authentication failed" in text:
        return Remote(refused(who), "Check what your credential helper has stored for it.")
    if re.search(r"could not read (Username|Password)|terminal prompts disabled|unable to read askpass", text):
        return Remote(f"{who} asks for a password", _HELPER)
    if _UNREADABLE_CERTIFICATE.search(text):
        return Remote(f"the certificates of your git configuration cannot be read: {words}", _FILES)
    if re.search(r"certificate subject name|no alternative certificate|host ?name .* does not match", text, re.I):
        return Remote(f"{who} could not prove its identity, and nothing was sent to it: {words}", _OTHER_HOST)
    if re.search(r"certificate (problem|verification)|verify (the )?(peer|result|cert)", text, re.I):
        return Remote(f"{who} could not prove its identity, and nothing was sent to it: {words}", _TRUST)
    if "returned error: 403" in text:
        return Remote(f"{who} denied access: {words}", "Ask for access to it.")
    if re.search(
        r"' not found|returned error: (404|410)|not appear to be a git repo|does not exist|not exported"
        r"|not valid: is this a git repo|[Nn]ot a git repository|unable to update url base from redirection",
        text,
    ):
        return Remote(f"there is no repository at {who}: {words}", "Check the address.")
    return None


def _broken_transfer(who: str, text: str, words: str) -> SnapstoreError | None:
    passing = bool(_PASSING.search(text))
    if _CUT.search(text) and not _UNREACHABLE.search(text):
        return ConnectionFailed(f"{who} broke off in the middle: {words}", "Try again.", again=passing)
    if _UNREACHABLE.search(text):
        return ConnectionFailed(
            f"{who} cannot be reached: {words}", "Check the address and the network.", again=passing
        )
    if "bad object worktrees/" in text:  # of the store: another process is adding or removing a worktree
        return ConnectionFailed(f"git cannot use the store for now: {words}", "Try again.", again=True)
    if _DAMAGED.search(text):
        return Corrupt(f"what came from {who} is damaged: {words}", _NOTHING)
    return None


def unpacking(who: str, said: Iterable[str]) -> SnapstoreError:
    """Return the error for a push whose pack was not stored.

    Either the local objects are damaged, or the server failed.
    """
    lines = list(said)
    ours = [line for line in lines if not line.startswith("remote: ")]
    if any(_UNREADABLE.search(line) for line in ours):
        words = summary(line for line in ours if _UNREADABLE.search(line))
        return Corrupt(f"the turns to push are incomplete: {words}", "Nothing was pushed. Run `snapstore check`.")
    return Remote(f"{who} could not store what was sent: {summary(lines)}", "Read its message, then push again.")


def _other(who: str, words: str, status: int) -> SnapstoreError:
    return Remote(f"{who} cannot be used: {words or f'git ended with {status}'}", "Read its message, then try again.")


def summary(lines: Iterable[str]) -> str:
    """Return the lines of git's output that matter to a person, on one line."""
    kept = [line for line in lines if not _UNTOLD.match(line)]
    return " / ".join(dict.fromkeys(kept[-6:]))[:_LONGEST]
