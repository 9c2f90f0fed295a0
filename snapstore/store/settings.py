"""All settings: names, help, defaults, and how values are parsed and written.

This module must not import pydantic: every hook loads it with a store's header, and pydantic loads slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Convert = Callable[[Any], Any]

DAY = 86400
_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": DAY, "w": 7 * DAY}
_LARGEST = 2**63 - 1
_LONGEST = 10**10  # seconds: about three hundred years
_MOST = 10**9 - 1
_GLOBS = 1000
_GLOB = 4095
_SHOWN = 60


class Setting:
    """One setting.

    `convert` takes a value from a person or a TOML file and raises ValueError with a sentence for people. `spell` is
    the inverse.
    """

    __slots__ = ("convert", "default", "help", "name", "spell")

    def __init__(self, name: str, convert: Convert, spell: Callable[[Any], str], default: Any, help: str) -> None:
        self.name = name
        self.convert = convert
        self.spell = spell
        self.default = default
        self.help = help


def shown(value: Any) -> str:
    """Return a value for use in a sentence, shortened if it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number with too many digits, or deeply nested lists
        return "this value"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def size(value: Any) -> int:
    """Parse a size in bytes: `100MB`, `1.5GiB`, `0`."""
    try:
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        plain = value.strip().lower().removesuffix("b")
        digits = plain.rstrip("kmgti")
        number = float(digits) * _BYTES[plain[len(digits) :]]
        if not 0 <= number <= _LARGEST:
            raise ValueError
    except (AttributeError, KeyError, ValueError):
        raise ValueError(f"{shown(value)} is not a size; write 100MB, 2GiB, or 0 for no limit") from None
    return int(number)


def duration(value: Any) -> int:
    """Parse a duration in seconds: `90d`, `2w`, `10m`, `0`."""
    try:
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        plain = value.strip().lower()
        digits = plain.rstrip("smhdw")
        number = int(digits) * _SECONDS[plain[len(digits) :]]
        if not (digits.isascii() and digits.isdecimal()) or number > _LONGEST:
            raise ValueError
    except (AttributeError, KeyError, ValueError):
        raise ValueError(f"{shown(value)} is not a duration; write 90d, 12h, 10m, or 0") from None
    return number


def days(value: Any) -> int:
    """Parse a number of days: `90`, `90d`, `12w`."""
    try:
        if not isinstance(value, str) or value.strip().isdecimal():
            return number(value)
        return -(-duration(value) // DAY)
    except ValueError:
        raise ValueError(f"{shown(value)} is not a number of days; write 90, 12w, or 0 for never") from None


def number(value: Any) -> int:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal() and len(value) <= 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise ValueError(f"{shown(value)} is not a whole number; write 20, or 0 for no limit")
    return value


def flag(value: Any) -> bool:
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    found = words.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ValueError(f"{shown(value)} is neither true nor false")
    return found


def globs(value: Any) -> list[str]:
    """Parse one pattern or a list of patterns, as lines of a `.gitignore` file."""
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or len(found) > _GLOBS or not all(_is_glob(one) for one in found):
        raise ValueError(f'{shown(value)} is not a list of patterns; write ["*.pem", "secrets/"], or [] for none')
    return list(found)


def _is_glob(text: object) -> bool:
    return isinstance(text, str) and len(text.strip()) > 0 and len(text) <= _GLOB and text.isprintable()


def name(value: Any) -> str:
    plain = value.strip() if isinstance(value, str) else None
    if plain is None or len(plain) > 60 or not all(c.isascii() and (c.isalnum() or c in "._-") for c in plain):
        raise ValueError(f"{shown(value)} is not a name; use at most 60 letters, digits, `.`, `_` and `-`")
    if plain.startswith((".", "-")) or plain.endswith((".", ".lock")) or ".." in plain:
        raise ValueError(f"{shown(value)} is not a name that git accepts; begin and end it with a letter")
    return plain


def spell_size(value: int) -> str:
    for unit in ("TiB", "TB", "GiB", "GB", "MiB", "MB", "kB"):
        factor = _BYTES[unit.lower().removesuffix("b")]
        if value and value % factor == 0:
            return f"{value // factor}{unit}"
    return str(value)


def spell_duration(value: int) -> str:
    for unit in "dhm":
        if value and value % _SECONDS[unit] == 0:
            return f"{value // _SECONDS[unit]}{unit}"
    return f"{value}s" if value else "0"


def spell_flag(value: bool) -> str:
    return "true" if value else "false"


def spell_globs(value: list[str]) -> str:
    return " ".join(value)


SETTINGS = (
    Setting(
        "max_file_size",
        size,
        spell_size,
        100 * 10**6,
        "Larger files are left out of scans and listed; a file that an agent names is always captured. 0: no limit.",
    ),
    Setting(
        "max_branches",
        number,
        str,
        20,
        "How many branches a session lists; above it, the oldest without a checkpoint are archived. 0: no limit.",
    ),
    Setting("warn_branches", number, str, 15, "Warn when a session lists this many branches. 0: never."),
    Setting(
        "never_capture",
        globs,
        spell_globs,
        [],
        "Files that are never captured, whatever happens: patterns as in .gitignore.",
    ),
    Setting(
        "max_store_size",
        size,
        spell_size,
        0,
        "Maximum size of the store. Warns from 80 %; above the maximum, removes what `prune` may remove. 0: no limit.",
    ),
    Setting(
        "prune_after_days",
        days,
        str,
        90,
        "How long archived and deleted branches are kept. 0: forever.",
    ),
    Setting(
        "gc_auto",
        flag,
        spell_flag,
        True,
        "Whether the store is packed automatically, in the background after a turn, when that is worth it.",
    ),
    Setting(
        "gc_grace",
        duration,
        spell_duration,
        14 * DAY,
        "How long objects are kept after nothing refers to them any more.",
    ),
    Setting(
        "save_every",
        duration,
        spell_duration,
        0,
        "While a turn is open, save the files it named this often. 0: only at its end.",
    ),
    Setting(
        "auto_merge",
        flag,
        spell_flag,
        True,
        "Whether a move merges files that you edited since, where the edits and the move concern different lines.",
    ),
    Setting(
        "tell_agents",
        flag,
        spell_flag,
        True,
        "Whether an agent is told, with its next prompt, that turns it remembers were undone.",
    ),
    Setting("auto_push", flag, spell_flag, False, "Whether every turn is pushed in the background once it ends."),
    Setting(
        "machine_name",
        name,
        str,
        "",
        "The name of this machine on a server. Empty: its host name.",
    ),
    Setting(
        "daemon",
        flag,
        spell_flag,
        True,
        "Whether hooks and turns leave a warm process behind, so that the next commands start quickly.",
    ),
)
BY_NAME = {setting.name: setting for setting in SETTINGS}
