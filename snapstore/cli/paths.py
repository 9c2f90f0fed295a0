"""Conversion between typed paths and paths below the root."""

from __future__ import annotations

import os

from snapstore.base.text import quote
from snapstore.errors import Unsafe, Usage

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-")


def below(root: bytes, path: str) -> bytes:
    """Return a typed path relative to the root, or b"" for the root itself."""
    if not path:  # most likely an unset variable of a script, not a request for the whole folder
        raise Usage("an empty argument names no file", "Use `.` for the current folder.")
    full = os.path.abspath(os.fsencode(path))
    folder, name = os.path.split(full)
    real = os.path.join(os.path.realpath(folder), name)
    top = root.rstrip(b"/")
    if real.rstrip(b"/") == top or os.path.realpath(full) == root:
        return b""
    if not real.startswith(top + b"/"):
        raise Unsafe(f"{path!r} is not below {os.fsdecode(root)}", "Name files of this project.")
    return real[len(top) + 1 :]


def from_here(root: bytes, path: bytes) -> str:
    """Return a path below the root as a shell word, relative to the current folder."""
    try:
        here = os.path.relpath(os.path.join(root, path), os.getcwdb())
    except OSError:  # the current folder is gone
        here = os.path.join(root, path)
    return shell_word(here)


def shell_word(text: str | bytes) -> str:
    """Quote text as one shell word that is safe to print on a terminal.

    Text with control characters becomes $'…', which bash and zsh read.
    """
    data = os.fsencode(text)
    if data and not set(data) - _PLAIN:
        return data.decode()
    shown = os.fsdecode(data)
    if shown.isprintable():
        return "'" + shown.replace("'", "'\\''") + "'"
    return "$'" + quote(data)[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"
