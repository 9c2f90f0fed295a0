"""`snapstore config`: what can be set, what is in force, and where it stands."""

from __future__ import annotations

from snapstore.cli.options import QUIET, Command, Family, Operand
from snapstore.cli.output import BOLD, DIM, YELLOW, path_text, safe
from snapstore.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.cli.context import Context
    from snapstore.records.settings import Setting
    from snapstore.timeline.config import Problem
    from snapstore.timeline.store import Store


def listed(context: Context) -> int:
    import textwrap

    from snapstore.records.settings import SETTINGS
    from snapstore.timeline import config

    with context.store() as store:
        said, problems = _read(store)
        rows = [_row(store, setting, said) for setting in SETTINGS]
        if context.json:
            from snapstore.records.base import dump
            from snapstore.records.config import ConfigRecord

            found = [problem.as_json() for problem in problems]
            document = {"file": config.path_of(store), "settings": rows, "problems": found}
            context.document(dump(ConfigRecord, document))
            return 0
        out = context.out
        width = max(min(out.size()[0], 100) - 2, 30) if out.terminal else 98
        for row in rows:
            shown = out.paint(safe(row["text"]) or "(empty)", *([YELLOW] if row["set"] else []))
            default = out.paint(f"  unless set {row['default_text'] or '(empty)'}", DIM) if row["set"] else ""
            out.line(f"{out.paint(row['key'], BOLD)} = {shown}{default}")
            for line in textwrap.wrap(row["help"], width):
                out.line(f"  {line}", DIM)
        for problem in problems:
            context.say(f"{problem}. {problem.hint}")
        out.line(f"Set in {path_text(config.path_of(store))}, or with `snapstore config set KEY VALUE`.", DIM)
    return 0


def get(context: Context, *, key: str) -> int:
    from snapstore.records.settings import BY_NAME
    from snapstore.timeline import config

    name = config.known(key)
    with context.store() as store:
        row = _row(store, BY_NAME[name], _read(store)[0] if context.json else {})
        if context.json:
            context.document(_record(row))
        elif isinstance(row["value"], list):
            for one in row["value"]:
                context.out.line(safe(one))
        else:
            context.out.line(safe(row["text"]))
    return 0


def put(context: Context, *, key: str, values: tuple[str, ...]) -> int:
    from snapstore.records.settings import BY_NAME
    from snapstore.timeline import config

    name = config.known(key)
    setting = BY_NAME[name]
    if not isinstance(setting.default, list) and len(values) > 1:
        raise Usage(f"{name} has one value", f"`snapstore config set {name} VALUE`.")
    try:
        value = setting.convert(list(values) if isinstance(setting.default, list) else values[0])
    except ValueError as error:
        raise Usage(f"{name}: {error}", setting.help, key=name) from None
    return _set(context, setting, value)


def unset(context: Context, *, key: str) -> int:
    from snapstore.records.settings import BY_NAME
    from snapstore.timeline import config

    return _set(context, BY_NAME[config.known(key)], None)


def _set(context: Context, setting: Setting, value: Any) -> int:
    with context.store() as store:
        before = getattr(store.header, setting.name)
        store.configure(**{setting.name: value})
        row = _row(store, setting, {} if value is None else {setting.name: value})
        if context.json:
            context.document(_record(row))
        elif not context.quiet:
            was = f", formerly {safe(setting.spell(before)) or '(empty)'}" if before != row["value"] else ""
            context.out.line(f"{setting.name} is {safe(row['text']) or '(empty)'}{was}.")
    return 0


def _read(store: Store) -> tuple[dict[str, Any], list[Problem]]:
    """What the file says, and every fault in it."""
    import os

    from snapstore.records.config import faults
    from snapstore.timeline import config

    return config.read(store.folder, faults) if os.path.lexists(config.path_of(store)) else ({}, [])


def _row(store: Store, setting: Setting, said: dict[str, Any]) -> dict[str, Any]:
    value = getattr(store.header, setting.name)
    return {
        "key": setting.name,
        "value": value,
        "text": setting.spell(value),
        "default": setting.default,
        "default_text": setting.spell(setting.default),
        "set": setting.name in said,
        "help": setting.help,
    }


def _record(row: dict[str, Any]) -> dict[str, Any]:
    from snapstore.records.base import dump
    from snapstore.records.config import SettingRecord

    return dump(SettingRecord, row)


COMMAND = Family(
    "config",
    "List, read and set how a store is kept.",
    (
        Command("list", listed, "List every setting, its value and what it means. The same as `config` alone."),
        Command("get", get, "Print the value of one setting.", operands=(Operand("key", "KEY", required=True),)),
        Command(
            "set",
            put,
            "Set a setting. A size (100MB, 2GiB), a duration (90d), a number, true or false, or patterns, one a word.",
            options=(QUIET,),
            operands=(
                Operand("key", "KEY", required=True),
                Operand("values", "VALUE…", required=True, many=True),
            ),
        ),
        Command(
            "unset",
            unset,
            "Leave a setting to its default again.",
            options=(QUIET,),
            operands=(Operand("key", "KEY", required=True),),
        ),
    ),
    default="list",
)
