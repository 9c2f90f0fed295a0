"""The settings of a store: `config.toml` for people, and a copy in the header.

Reading TOML is too slow for a hook. So the header holds the values and the stat of the file they came from, and the
file is read again only if its stat differs. Errors in the file stop no command: they are reported, and the last good
values are used.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from snapstore.base import files
from snapstore.base.text import counted
from snapstore.errors import Failed, Unknown, Usage, similar
from snapstore.store.settings import BY_NAME, SETTINGS, shown
from snapstore.store.state import Header

Judge = Callable[[dict[str, Any]], dict[str, str]]

FILE = "config.toml"
_LARGEST = 1 << 16
_DOTS = 64  # per line, outside quotes: the TOML reader's time grows with the square of their number
_MOST_UNKNOWN = 10  # unknown keys that are reported one by one
_WIDTH = 100


class Problem:
    """A part of the file that cannot be used, with a hint on how to fix it."""

    __slots__ = ("hint", "key", "line", "message")

    def __init__(self, message: str, hint: str, *, line: int | None = None, key: str | None = None) -> None:
        self.message = message
        self.hint = hint
        self.line = line
        self.key = key

    def __str__(self) -> str:
        where = f"{FILE}, line {self.line}" if self.line else FILE
        return f"{where}: {self.message}"


class Configured(Protocol):
    """The part of a store's handle that this module needs."""

    folder: str
    state: str
    header: Header
    say: Callable[[str], None]


def path_of(store: Configured) -> str:
    return f"{store.folder}/{FILE}"


def faults(data: dict[str, Any]) -> dict[str, str]:
    """Return an error message per invalid key, an empty one for an unknown key.

    `surface.records.config` does the same with pydantic, which takes too long to load for a hook.
    """
    found: dict[str, str] = {}
    for key, value in data.items():
        try:
            if key in BY_NAME:
                BY_NAME[key].convert(value)
            else:
                found[key] = ""
        except ValueError as error:
            found[key] = str(error)
    return found


def read(folder: str, judge: Judge = faults) -> tuple[dict[str, Any], list[Problem]]:
    """Return the file's valid values, and the problems of the others."""
    try:
        text = _text(folder)
    except OSError as error:
        return {}, [Problem(f"the file cannot be read: {error.strerror}", "Replace it with a file that you can read.")]
    except ValueError:
        return {}, [Problem("the file is not UTF-8 text", "Save it as UTF-8; `snapstore config` lists the settings.")]
    return parse(text, judge)


def parse(text: str, judge: Judge = faults) -> tuple[dict[str, Any], list[Problem]]:
    """Parse the text of the file, whatever its content, within a short time."""
    import tomllib

    hint = "The file is TOML: `key = value`, text in quotes, comments after `#`."
    bare = re.sub(r"""\"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?""", "", text)
    if any(line.count(".") > _DOTS for line in bare.splitlines()):
        return {}, [Problem("a key is too long", hint)]
    try:
        data = tomllib.loads(text)
        wrong = judge(data)
        values = {key: BY_NAME[key].convert(value) for key, value in data.items() if key not in wrong}
    except tomllib.TOMLDecodeError as error:
        message, _, where = str(error).partition(" (at ")
        line = re.match(r"line (\d+)", where)
        number = int(line[1]) if line else len(text.splitlines())  # otherwise at the end of the file
        return {}, [Problem(message.lower()[:_WIDTH], hint, line=number)]
    except RecursionError:
        return {}, [Problem("a value is nested too deeply", hint)]
    except Exception as error:  # a number with too many digits, for example: no turn may fail because of this file
        return {}, [Problem(f"the file cannot be parsed: {error}", hint)]
    return values, _problems(text, wrong)


def _problems(text: str, wrong: dict[str, str]) -> list[Problem]:
    found: list[Problem] = []
    lines = text.splitlines()
    unknown = [key for key in wrong if key not in BY_NAME]
    for key in [key for key in wrong if key in BY_NAME] + unknown[:_MOST_UNKNOWN]:
        setting = BY_NAME.get(key)
        message = f"{key}: {wrong[key]}" if setting else f"there is no setting {shown(key)}"
        hint = f"The default is {setting.spell(setting.default) or 'empty'}." if setting else suggestion(key)
        found.append(Problem(message, hint, line=_line_of(lines, key), key=key))
    found.sort(key=lambda problem: problem.line or len(lines))
    if len(unknown) > _MOST_UNKNOWN:
        more = f"{counted(len(unknown) - _MOST_UNKNOWN, 'more unknown key')}"
        found.append(Problem(more, suggestion(""), key=unknown[_MOST_UNKNOWN]))
    return found


def refresh(store: Configured, found: list[int] | None) -> list[Problem]:
    """Load the file, whose stat is `found`, into the header; return its problems."""
    header = store.header
    values, problems = read(store.folder) if found is not None else ({}, [])
    broken = {problem.key for problem in problems}
    if None not in broken:  # otherwise nothing could be read: keep all values
        for setting in SETTINGS:
            if setting.name not in broken:
                setattr(header, setting.name, values.get(setting.name, setting.default))
    header.config = found
    for problem in problems:
        store.say(f"{problem}. {problem.hint} The previous value stays in force.")
    return problems


class TooLarge(Usage):
    """The file would exceed the maximum size."""


def change(store: Configured, values: Mapping[str, Any]) -> bytes:
    """Return the file's text with some settings changed; None sets the default.

    All other text is kept, including comments. A new file explains every setting.
    """
    try:
        text = _text(store.folder)
    except FileNotFoundError:
        text = template(store.header)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Failed(f"{path_of(store)} cannot be read: {why}", "Move it away, then run this again.") from None
    before, problems = parse(text)
    if any(problem.key is None for problem in problems):
        raise Usage(f"{problems[0]}", f"Fix {path_of(store)} first. {problems[0].hint}", line=problems[0].line)
    for key, value in values.items():
        text = _put(text, key, None if value is None else f"{key} = {_toml(BY_NAME[key].spell, value)}")
    if len(text.encode()) > _LARGEST:
        raise TooLarge(f"{path_of(store)} would be larger than {_LARGEST:,} bytes", "Set fewer or shorter values.")
    wanted = {key: value for key, value in {**before, **values}.items() if value is not None}
    if parse(text)[0] != wanted:  # a layout that `_put` cannot change
        raise Failed(
            f"{path_of(store)} could not be changed automatically, because of its unusual layout",
            f"Set {', '.join(values)} in that file by hand.",
        )
    return text.encode()


def journal_entry(store: Configured, text: bytes) -> dict[str, bytes | None]:
    """Return the file for the journal, by its real path if it is a link.

    First replace the file with its own content, as a test: a change in the journal that cannot be finished would stop
    every turn.
    """
    path = os.path.realpath(path_of(store))
    try:
        if os.path.exists(path):
            with open(path, "rb") as file:
                files.write(path, file.read())
        else:
            files.write(f"{path}.new", b"")  # the file is created under this name first
            os.unlink(f"{path}.new")
    except OSError as error:
        raise Failed(
            f"{path_of(store)} cannot be written: {error.strerror}",
            "Nothing was changed. Make the file and its folder writable, then run this again.",
        ) from None
    return {os.path.relpath(path, store.state): text}


def setting_name(key: str) -> str:
    """Return the name of the setting for a key; raise Unknown with a suggestion."""
    plain = key.strip().replace("-", "_")
    if plain not in BY_NAME:
        raise Unknown(f"there is no setting {shown(key)}", suggestion(key), key=key)
    return plain


def suggestion(key: str) -> str:
    found = similar(key.lower().replace("-", "_"), BY_NAME)
    return f"Did you mean {found[0]}?" if found else f"The settings are {', '.join(BY_NAME)}."


def _text(folder: str) -> str:
    """Read the file; raise ValueError or OSError. Never block on a special file."""
    fd = os.open(f"{folder}/{FILE}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise OSError(errno.EFBIG, f"larger than {_LARGEST:,} bytes")
    return data.decode("utf-8")


def template(header: Header) -> str:
    """Return the text of a new file, which explains every setting."""
    lines = ["# The settings of this store. `snapstore config` lists the values in force."]
    for setting in SETTINGS:
        lines += ["", *_folded(setting.help)]
        value = getattr(header, setting.name)
        row = f"{setting.name} = {_toml(setting.spell, value)}"
        lines.append(row if value != setting.default else f"# {row}")
    return "\n".join(lines) + "\n"


def _folded(text: str) -> Iterable[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH)]


def _toml(spell: Any, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_quoted(one) for one in value)}]"
    text = spell(value)
    return str(text) if isinstance(value, int) and text.isdecimal() else _quoted(text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _put(text: str, key: str, row: str | None) -> str:
    """Return the text with a key's line replaced by a row, or commented out."""
    lines = text.splitlines()
    at = _place(lines, rf"{re.escape(key)}\s*=")
    if at is None:
        if row is None:
            return text
        at = _place(lines, rf"#\s*{re.escape(key)}\s*=")  # the comment that shows the default
        if at is None:
            tables = _place(lines, r"\[")  # keys after a table header belong to that table
            at = tables if tables is not None else len(lines)
            lines.insert(at, "")
        lines[at] = row
    else:
        default = BY_NAME[key].default
        lines[at : _end(lines, at)] = [row or f"# {key} = {_toml(BY_NAME[key].spell, default)}"]
    return "\n".join(lines) + "\n"


def _place(lines: list[str], pattern: str) -> int | None:
    known = re.compile(pattern)
    return next((at for at, line in enumerate(lines) if known.match(line.lstrip())), None)


def _end(lines: list[str], at: int) -> int:
    """Return the number of the line after a value; a list may span several lines."""
    import tomllib

    for end in range(at + 1, len(lines) + 1):
        try:
            tomllib.loads("\n".join(lines[at:end]))
        except tomllib.TOMLDecodeError:
            continue
        return end
    return at + 1


def _line_of(lines: list[str], key: str) -> int | None:
    place = _place(lines, rf"[\"']?{re.escape(key)}[\"']?\s*[=.]|\[+\s*{re.escape(key)}\s*[\].]")
    return None if place is None else place + 1
