"""Translation of git's globs into regular expressions.

Callers pass the part of a rule that begins with its first wildcard, as Latin-1 text with one character per byte.
"""

from __future__ import annotations

import re

_CLASS = re.compile(r"\[:([^\]]*):\]").match

# Git's character classes, independent of the locale: ASCII only, and neither \v nor \f is a space.
_DIGIT, _UPPER, _LOWER, _GRAPH = (set(range(*ends)) for ends in ((48, 58), (65, 91), (97, 123), (33, 127)))
_POSIX = {
    "alnum": _DIGIT | _UPPER | _LOWER,
    "alpha": _UPPER | _LOWER,
    "blank": set(b" \t"),
    "cntrl": {*range(32), 127},
    "digit": _DIGIT,
    "graph": _GRAPH,
    "lower": _LOWER,
    "print": _GRAPH | {32},
    "punct": _GRAPH - _DIGIT - _UPPER - _LOWER,
    "space": set(b" \t\n\r"),
    "upper": _UPPER,
    "xdigit": set(b"0123456789abcdefABCDEF"),
}


def _bracket(glob: str, at: int, fold: bool) -> tuple[str, int]:
    """Translate the bracket expression whose `[` is just before `at`.

    Return the regular expression and the position after the bracket expression.
    """
    negated = glob[at] in "!^"
    at += negated
    start = at
    members: set[int] = set()
    low = -1  # the start of a range if `-` follows; none after a range or a [:class:]
    while (char := glob[at]) != "]" or at == start:
        if char == "-" and low >= 0 and glob[at + 1] != "]":
            at += 2 if glob[at + 1] == "\\" else 1
            members.update(span := set(range(low, ord(glob[at]) + 1)))
            members.update(each + 32 for each in span & _UPPER if fold)
            low = -1
        elif named := _CLASS(glob, at):
            members |= _POSIX[named[1]] | (_LOWER if fold and named[1] == "upper" else set())
            at = named.end() - 1
            low = -1
        else:
            at += char == "\\"
            low = ord(glob[at])
            members.add(low)
        at += 1
    members = members | {47} if negated else members - {47}  # no class matches a slash
    if not members:
        raise LookupError(glob)
    listed = "".join(f"\\x{each:02x}" for each in sorted(members))
    return f"[^{listed}]" if negated else f"[{listed}]", at + 1


_EARLY = {"[^/]*": "(?>[^/]*?", "(?:.*/)?": "(?>(?:.*?/)??", ".*": "(?>.*?"}


def translate(glob: str, fold: bool = False) -> tuple[str, int]:
    """Return the glob as a regular expression, and how many slashes it spans.

    The number of slashes is -1 (any number) if the glob contains `**`.

    With `fold` the expression is for text in lower case, as under `core.ignorecase`. As in git, letters and ranges are
    then folded, but a letter after a backslash or a single letter in brackets is not. Such a capital matches nothing.

    A glob with many stars must not make a scan hang. Of several stars between two slashes, only the last one needs to
    backtrack, because the text before it may as well match as early as possible. The same holds for several `**/`. So
    all but the last become atomic groups, which never backtrack.

    Raise LookupError for a glob that git accepts but that matches nothing: an unclosed bracket, an unknown class, a
    trailing backslash. The code then reads past the end of the glob or looks up an unknown class.
    """
    out: list[str] = []
    slashes, leaps = 0, False
    star = leap = -1  # positions in `out` of the last star of this component and the last `**/`
    at, end = 0, len(glob)
    while at < end:
        char = glob[at]
        at += 1
        if char == "*":
            wide = at == 1 or glob[at - 2] == "/"
            run = at
            while at < end and glob[at] == "*":
                at += 1
            if wide and at > run and (at == end or glob.startswith(("/", "\\/"), at)):
                leaps = True
                if leap >= 0:
                    out[leap] = _EARLY[out[leap]]
                    out.append(")")
                # Before a plain slash, `**` also matches zero folders; before an escaped slash it does not.
                bare = glob.startswith("/", at)
                leap = len(out)
                out.append("(?:.*/)?" if bare else ".*")
                at += bare
            else:
                if star >= 0:
                    out[star] = _EARLY[out[star]]
                    out.append(")")
                star = len(out)
                out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[":
            group, at = _bracket(glob, at, fold)
            out.append(group)
        else:
            if char == "\\":
                char = glob[at]
                at += 1
            elif fold and "A" <= char <= "Z":
                char = char.lower()
            if char == "/":
                slashes += 1
                star = -1
            out.append(re.escape(char))
    return "".join(out), -1 if leaps else slashes
