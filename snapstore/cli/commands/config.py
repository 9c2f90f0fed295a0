"""`snapstore config`: list, read and change settings."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Any

import click

from snapstore.api import Store
from snapstore.cli.context import Context
from snapstore.cli.options import CommandGroup, common_options, level_options, quiet_option
from snapstore.cli.output import BOLD, DIM, YELLOW, path_text, safe
from snapstore.cli.param_types import SETTING
from snapstore.errors import Usage
from snapstore.store import config as settings_file
from snapstore.store.config import Problem
from snapstore.store.settings import BY_NAME, SETTINGS, Setting

if TYPE_CHECKING:
    from snapstore.surface.records.config import SettingRecord


@click.group(cls=CommandGroup, default="list")
@level_options
def config() -> None:
    """List, read and change the settings of a store."""


@config.command("list")
@common_options
def listed(context: Context) -> int:
    """List every setting, its value and what it means.

    The same as `config` alone.
    """
    with context.store() as store:
        said, problems = _read(store)
        rows = [_row(store, setting, said) for setting in SETTINGS]
        if context.json:
            from snapstore.surface.records.config import ConfigRecord

            context.document(ConfigRecord.of(settings_file.path_of(store), rows, problems))
            return 0
        out = context.out
        width = max(min(out.size()[0], 100) - 2, 30) if out.terminal else 98
        for row in rows:
            shown = out.paint(safe(row.text) or "(empty)", *([YELLOW] if row.set else []))
            default = out.paint(f"  default {row.default_text or '(empty)'}", DIM) if row.set else ""
            out.line(f"{out.paint(row.key, BOLD)} = {shown}{default}")
            for line in textwrap.wrap(row.help, width):
                out.line(f"  {line}", DIM)
        for problem in problems:
            context.say(f"{problem}. {problem.hint}")
        out.line(f"Set in {path_text(settings_file.path_of(store))}, or with `snapstore config set KEY VALUE`.", DIM)
    return 0


@config.command()
@click.argument("key", metavar="KEY", type=SETTING)
@common_options
def get(context: Context, *, key: str) -> int:
    """Print the value of one setting."""
    setting = BY_NAME[settings_file.setting_name(key)]
    with context.store() as store:
        value = getattr(store.header, setting.name)
        if context.json:
            context.document(_row(store, setting, _read(store)[0]))
        elif isinstance(value, list):
            for one in value:
                context.out.line(safe(one))
        else:
            context.out.line(safe(setting.spell(value)))
    return 0


@config.command("set")
@click.argument("key", metavar="KEY", type=SETTING)
@click.argument("values", metavar="VALUE…", nargs=-1, required=True, type=click.UNPROCESSED)
@quiet_option
@common_options
def put(context: Context, *, key: str, values: tuple[str, ...]) -> int:
    """Set a setting.

    A value is a size (100MB, 2GiB), a duration (90d), a number, true or false, or patterns, one per argument.
    """
    name = settings_file.setting_name(key)
    setting = BY_NAME[name]
    if not isinstance(setting.default, list) and len(values) > 1:
        raise Usage(f"{name} has one value", f"`snapstore config set {name} VALUE`.")
    try:
        value = setting.convert(list(values) if isinstance(setting.default, list) else values[0])
    except ValueError as error:
        raise Usage(f"{name}: {error}", setting.help, key=name) from None
    return _set(context, setting, value)


@config.command()
@click.argument("key", metavar="KEY", type=SETTING)
@quiet_option
@common_options
def unset(context: Context, *, key: str) -> int:
    """Reset a setting to its default."""
    return _set(context, BY_NAME[settings_file.setting_name(key)], None)


def _set(context: Context, setting: Setting, value: Any) -> int:
    with context.store() as store:
        before = getattr(store.header, setting.name)
        store.configure(**{setting.name: value})
        if context.json:
            context.document(_row(store, setting, {} if value is None else {setting.name: value}))
        elif not context.quiet:
            now = getattr(store.header, setting.name)
            was = f", was {safe(setting.spell(before)) or '(empty)'}" if before != now else ""
            context.out.line(f"{setting.name} is {safe(setting.spell(now)) or '(empty)'}{was}.")
    return 0


def _read(store: Store) -> tuple[dict[str, Any], list[Problem]]:
    """Return the settings in the store's file, and every fault in the file."""
    from snapstore.surface.records.config import faults

    return settings_file.read(store.folder, faults) if os.path.lexists(settings_file.path_of(store)) else ({}, [])


def _row(store: Store, setting: Setting, said: dict[str, Any]) -> SettingRecord:
    from snapstore.surface.records.config import SettingRecord

    return SettingRecord.of(setting, getattr(store.header, setting.name), is_set=setting.name in said)
