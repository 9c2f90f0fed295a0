"""Find the parts of a text that are worth searching for secrets with regular expressions.

A regular expression takes many times as long as a search for one fixed string. So each byte is first translated into a
letter for its class, and then one word of these letters is searched for.
"""

from __future__ import annotations

import re

# Only letters, or only digits: not machine-made.
is_plain = re.compile(rb"[A-Za-z_.:/-]+|[0-9.,:-]+").fullmatch

_RUN = 20  # every token contains a run of at least this many letters, digits and `_-+/`
_BEFORE = 96  # bytes before a value that contain its mark and whatever else the rule needs
_NEAR = 56  # the same for tokens
_DIGITS = b"0123456789"


def _shape(**classes: str) -> bytes:
    """Return a table that translates each byte to the letter of its class or a blank."""
    of = {byte: ord(letter) for letter, members in classes.items() for byte in members.encode()}
    return bytes(of.get(byte, 0x20) for byte in range(256))


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORDS = _shape(w=_LETTERS + _LETTERS.upper() + "0123456789_-+/")
_VALUES = bytes(0x71 if byte in b"\"'`" else 0x20 if byte in b" \t\n\r\v\f\\" else 0x77 for byte in range(256))
# A pattern that begins with a plain letter is faster than `find` here, because `find` searches for the last letter.
_IN_QUOTES = re.compile(rb"q(?=w{8,256} {0,3}q)").finditer  # a quote within a string has a backslash before it


def around_tokens(data: bytes) -> bytes:
    """Return the long words of a text, except plain names, with what precedes them.

    All tokens are in the result, and most of the text is not.
    """
    shape = data.translate(_WORDS)
    pieces: list[bytes] = []
    done = 0
    at = shape.find(b"w" * _RUN)
    while at >= 0:
        end = shape.find(b" ", at + _RUN)
        end = end if end >= 0 else len(data)
        word = data[at:end]
        if word != word.lower() or len(word.translate(None, _DIGITS)) != len(word):
            start = max(done, at - _NEAR)
            if start > done:
                pieces.append(b"\n")
            done = end + 2  # some rules also need what follows
            pieces.append(data[start:done])
        at = shape.find(b"w" * _RUN, end)
    return b"".join(pieces)


def around_values(data: bytes) -> bytes:
    """Return the values that are assigned in quotes, with what precedes them."""
    shape = data.translate(_VALUES)
    pieces: list[bytes] = []
    for quote in _IN_QUOTES(shape):
        at = quote.start()
        if data[max(0, at - 12) : at].rstrip(b"\\").rstrip()[-1:] in (b"=", b":", b">"):
            end = shape.index(b"q", at + 9)
            if not is_plain(data, at + 1, end):
                pieces.append(data[max(0, at - _BEFORE) : end + 1])
    return b"\n".join(pieces)
