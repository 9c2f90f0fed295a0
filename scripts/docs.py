"""Write the parts of docs/ that the program knows by itself. A test compares them with the files.

`docs/commands.md` is generated as a whole. In the other pages only the text between two marks is generated.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from snapstore.cli.app import ALIASES, SECTIONS, application  # noqa: E402
from snapstore.cli.options import move_options, travel_options  # noqa: E402
from snapstore.share.secrets import rules  # noqa: E402
from snapstore.store.settings import SETTINGS  # noqa: E402
from snapstore.surface.records import (  # noqa: E402
    agents,
    branches,
    config,
    errors,
    forgetting,
    keeping,
    moves,
    nodes,
    setup,
    sharing,
    status,
)

DOCS = PROJECT / "docs"

COMMANDS_HEAD = """\
<!-- Written by scripts/docs from the program's own help. Do not edit: change the help, then run scripts/docs. -->

# Commands

`snapstore COMMAND --help` prints the same text in the terminal. The [guide](guide.md) shows the commands at work,
explains how a turn is addressed and what a conflict is, and [json.md](json.md) lists the exit statuses.
"""

# What each command prints with `--json`.
DOCUMENTS = (
    ("status", status.StatusRecord),
    ("log", nodes.LogRecord),
    ("run, turn end", nodes.NodeRecord),
    ("turn begin, turn touch, turn cancel", status.OpenTurnRecord),
    ("show", nodes.ShowRecord),
    ("diff", nodes.DiffRecord),
    ("tree", branches.TreeRecord),
    ("undolist", branches.UndolistRecord),
    ("sessions", agents.SessionsRecord),
    ("undo, redo, goto, earlier, later, switch, revert, apply, restore, fork, ops undo", moves.MoveRecord),
    ("ops list", moves.OperationsRecord),
    ("recover", moves.RecoveryRecord),
    ("branches", branches.BranchesRecord),
    ("branch, checkpoint", branches.ChangeRecord),
    ("branch delete --preview", branches.DeletePreviewRecord),
    ("compare", branches.CompareRecord),
    ("checkpoints", branches.CheckpointsRecord),
    ("remote list", sharing.RemotesRecord),
    ("remote add, remote remove", sharing.RemoteChangeRecord),
    ("push", sharing.PushRecord),
    ("pull", sharing.PullRecord),
    ("clone, init --from URL", sharing.AttachRecord),
    ("export", sharing.ExportRecord),
    ("import", agents.ImportRecord),
    ("import --list", agents.ImportableRecord),
    ("du", keeping.DiskUseRecord),
    ("stats", keeping.UseRecord),
    ("check", status.CheckRecord),
    ("gc", keeping.GcRecord),
    ("prune", keeping.PruneRecord),
    ("forget", forgetting.ForgetRecord),
    ("init", status.InitRecord),
    ("connect, disconnect", agents.ConnectRecord),
    ("connect --list", agents.ConnectionsRecord),
    ("config list", config.ConfigRecord),
    ("config get, config set, config unset", config.SettingRecord),
    ("shell-init, completion", setup.ScriptRecord),
    ("daemon status", setup.DaemonRecord),
    ("daemon stop", setup.DaemonStopRecord),
    ("help", setup.HelpRecord),
    ("version", setup.VersionRecord),
    ("ui", setup.ServerRecord),
    ("any command that fails", errors.ErrorRecord),
)
# What the documents are made of.
PARTS = (
    ("a file of a node", nodes.FileRecord),
    ("`renamed_from` of a file", nodes.RenameRecord),
    ("a file left out", nodes.LeftOutRecord),
    ("a node in `tree`", branches.TreeNodeRecord),
    ("a branch", branches.BranchRecord),
    ("a checkpoint", branches.CheckpointRecord),
    ("a conflict", moves.ConflictRecord),
    ("`fork` of a move", moves.ForkRecord),
    ("an operation", moves.OperationRecord),
    ("an agent's session", agents.AgentSessionRecord),
    ("`conversation` of `status`", status.ConversationRecord),
    ("a remote", sharing.RemoteRecord),
    ("a finding that stops a push", sharing.FindingRecord),
)


# Commands


def commands_page() -> str:
    """Return docs/commands.md."""
    ctx = click.Context(application)
    common = [option for option in _options(application) if option.name != "version"]
    version = [_row(option) for option in _options(application) if option.name == "version"]
    travel = _added_by(travel_options)
    move = _added_by(move_options)
    lines = [COMMANDS_HEAD, "## Options of every command", ""]
    lines += _table(("option", "meaning"), [*map(_row, common), ("`-h`, `--help`", "Show the help."), *version])
    lines += ["## Options of every move", ""]
    lines += ["`revert`, `apply`, `restore`, `discard` and `ops undo` take these options:", "", *_option_table(move)]
    lines += ["`undo`, `redo`, `goto`, `earlier`, `later`, `switch` and `fork` take them too, and these:", ""]
    lines += _option_table([option for option in travel if option.name not in {one.name for one in move}])
    shared = {option.name for option in (*common, *travel)}
    for title, names in SECTIONS.items():
        lines += [f"## {title}", ""]
        for name in names:
            command = application.get_command(ctx, name)
            assert command is not None
            lines += _command(command, name, shared)
    return "\n".join(lines).rstrip() + "\n"


def _command(command: click.Command, name: str, shared: set[str]) -> Iterator[str]:
    is_group = isinstance(command, click.Group)
    yield from (f"### `{name}`", "", *_help(command), "")
    if is_group:
        if default := getattr(command, "default", ""):
            yield from (f"`{name}` alone is `{name} {default}`.", "")
        for below, one in command.commands.items():
            yield from (f"#### `{name} {below}`", "", *_help(one), "", *_details(one, f"{name} {below}", shared))
    else:
        yield from _details(command, name, shared)


def _details(command: click.Command, name: str, shared: set[str]) -> Iterator[str]:
    aliases = [alias for alias, target in ALIASES.items() if target == name]
    usage = " ".join(command.collect_usage_pieces(click.Context(command, info_name=name)))
    yield from ("```", *(f"snapstore {word} {usage}" for word in (name, *aliases)), "```", "")
    options = _options(command)
    moves_too = {"preview", "ours", "theirs"} <= {option.name for option in options}
    left_out = shared if moves_too else {"folder", "session", "json", "debug"}
    if moves_too:
        yield from ("Also the [options of every move](#options-of-every-move).", "")
    if own := [option for option in options if option.name not in left_out]:
        yield from _option_table(own)


def _help(command: click.Command) -> list[str]:
    return [line.strip() for line in inspect.cleandoc(command.help or "").splitlines() if line != "\b"]


def _options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option) and not param.hidden]


def _added_by(decorator: Callable[[Callable[..., int]], Callable[..., int]]) -> list[click.Option]:
    return _options(click.command()(decorator(lambda: 0)))


def _option_table(options: Iterable[click.Option]) -> list[str]:
    return _table(("option", "meaning"), map(_row, options))


def _row(option: click.Option) -> tuple[str, str]:
    return _flags(option), _sentence(option.help)


def _flags(option: click.Option) -> str:
    """Return the flags as `--help` shows them; the value stands behind the last."""
    flags = [*option.opts, *option.secondary_opts]
    value = "" if option.is_flag else option.metavar or option.type.name.upper()
    joint = " " if value and not value.startswith("[") else ""
    return ", ".join(f"`{flag}`" for flag in [*flags[:-1], f"{flags[-1]}{joint}{value}"])


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())


# Tables within pages


def settings_table() -> list[str]:
    """Return the table of docs/settings.md."""
    rows = ((f"`{one.name}`", f"`{one.spell(one.default) or 'empty'}`", _sentence(one.help)) for one in SETTINGS)
    return _table(("setting", "default", "meaning"), rows)


def rules_table() -> list[str]:
    """Return the table of docs/secrets.md. Some rules consist of two patterns."""
    texts: dict[str, list[str]] = {}
    for rule in (*rules.NAMES, *rules.LINES):
        texts.setdefault(rule.name, []).append(rule.help)
    return _table(("rule", "what it finds"), ((f"`{name}`", "; ".join(texts[name])) for name in texts))


def documents_table() -> list[str]:
    """Return the table of documents of docs/json.md."""
    named = (
        (", ".join(f"`{one}`" if " that " not in one else one for one in names.split(", ")), record)
        for names, record in DOCUMENTS
    )
    return _table(("command", "fields"), ((names, _fields(record)) for names, record in named))


def parts_table() -> list[str]:
    """Return the table of what documents are made of."""
    return _table(("part", "fields"), ((name, _fields(record)) for name, record in PARTS))


def _fields(record: type[nodes.NodeRecord]) -> str:
    return ", ".join(f"`{field.serialization_alias or name}`" for name, field in record.model_fields.items())


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    cells = [head, ("---",) * len(head), *rows]
    return [*(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells), ""]


def with_tables(page: str, tables: dict[str, list[str]]) -> str:
    """Return a page with the text between each pair of marks replaced."""
    for name, lines in tables.items():
        begin, end = f"<!-- {name}: written by scripts/docs -->\n", f"<!-- end of {name} -->\n"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"the marks of the table of {name} are missing")
        page = before + begin + "\n" + "\n".join(lines) + "\n" + end + after
    return page


PAGES: dict[str, dict[str, Callable[[], list[str]]]] = {
    "settings.md": {"settings": settings_table},
    "secrets.md": {"rules": rules_table},
    "json.md": {"documents": documents_table, "parts": parts_table},
}


def pages() -> dict[str, str]:
    """Return every page with generated parts, as it should be."""
    made = {"commands.md": commands_page()}
    for name, tables in PAGES.items():
        made[name] = with_tables((DOCS / name).read_text(), {one: make() for one, make in tables.items()})
    return made


if __name__ == "__main__":
    for page_name, text in pages().items():
        (DOCS / page_name).write_text(text)
