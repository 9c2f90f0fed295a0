"""Connect and disconnect agents: add our hooks to their files, or remove them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from snapstore.agents.events.not_known import counts
from snapstore.agents.install.hook_file import HookFile
from snapstore.agents.install.jsonc import Unreadable
from snapstore.agents.install.locations import (
    PLUGIN,
    PROJECT,
    USER,
    Content,
    Installation,
    installation,
    is_outdated,
    program_of,
    user_home,
)
from snapstore.agents.install.own_file import OwnFile
from snapstore.agents.install.safe_files import BACKUP, Change, Found, carry_out, look
from snapstore.agents.known.registry import AGENTS, load_all
from snapstore.base import files as durable
from snapstore.base.own_command import compile_bytecode
from snapstore.errors import Conflict, Corrupt, SnapstoreError, Unsafe, Usage
from snapstore.store import locations as places
from snapstore.store.lock import StoreLock

T = TypeVar("T")

SCOPES = (USER, PROJECT)


class Environment:
    """The folder of the stores, the current folder, and the environment."""

    __slots__ = ("cwd", "environ", "home")

    def __init__(self, home: str, cwd: str, environ: Mapping[str, str]) -> None:
        self.home = home
        self.cwd = cwd
        self.environ = environ

    def project(self) -> str:
        """Return the root of the store for this folder, or the root a new one would have."""
        return os.fsdecode(places.find(self.home, self.cwd) or places.natural_root(self.cwd))


class Plan:
    """The file changes that connect or disconnect an agent; none if up to date.

    `traces` are files that stay unchanged; leftovers of a killed run next to them are removed.
    """

    __slots__ = ("agent", "changes", "command", "notes", "paths", "scopes", "traces")

    def __init__(self, agent: str, scopes: Sequence[str], command: str) -> None:
        self.agent = agent
        self.scopes = scopes
        self.command = command
        self.paths: list[str] = []
        self.changes: list[Change] = []
        self.traces: list[Change] = []
        self.notes: list[str] = []


class Connected:
    """One place where an agent is connected.

    `outdated`: connecting again would change the file, or the program it names is gone. `problem`: why the state of the
    file is unknown.
    """

    __slots__ = ("outdated", "path", "problem", "scope", "tells")

    def __init__(
        self, scope: str, path: str, *, outdated: bool = False, tells: bool = False, problem: str = ""
    ) -> None:
        self.scope = scope
        self.path = path
        self.outdated = outdated
        self.tells = tells
        self.problem = problem


class Connection:
    """Where an agent is connected, and when its hook last ran, if known.

    `fired` is in seconds since the epoch. `not_known` counts events and tools of the agent that are not known here.
    """

    __slots__ = ("agent", "fired", "not_known", "places")

    def __init__(self, agent: str, places: list[Connected], fired: float | None, not_known: dict[str, int]) -> None:
        self.agent = agent
        self.places = places
        self.fired = fired
        self.not_known = not_known


def connect(
    here: Environment,
    agent: str,
    scope: str,
    program: Sequence[str],
    *,
    plugin: str | None = None,
    dry_run: bool = False,
) -> Plan:
    installed = installation(agent)
    _check_plugin(installed, plugin)
    scope = PLUGIN if plugin is not None else scope

    def plan() -> Plan:
        made = Plan(agent, [scope], installed.command(scope, program))
        for found, content in _found(here, installed, scope, plugin):
            made.paths.append(found.path)
            after = _merged(found, content, made.command)
            if after != found.data:
                known = found.data is None or _command(found, content) is not None
                keep = isinstance(content, HookFile) and not known
                made.changes.append(Change(found, after, mode=_mode(installed, scope), keep=keep))
        return made

    if not dry_run:
        compile_bytecode()
    return _done(here, plan, dry_run)


def disconnect(
    here: Environment, agent: str, scopes: Sequence[str], *, plugin: str | None = None, dry_run: bool = False
) -> Plan:
    installed = installation(agent)
    _check_plugin(installed, plugin)
    wanted = [PLUGIN] if plugin is not None else list(scopes)

    def plan() -> Plan:
        made = Plan(agent, wanted, "")
        for scope in wanted:
            for found, content in _found(here, installed, scope, plugin, may_be_home=len(wanted) > 1):
                change = _removal(found, content, made.notes)
                if change is not None:
                    (made.traces if change.after == found.data else made.changes).append(change)
        return made

    return _done(here, plan, dry_run)


def _check_plugin(installed: Installation, plugin: str | None) -> None:
    if plugin is not None and not installed.plugin:
        able = ", ".join(known.name for known in load_all() if known.hooks.plugin)
        raise Usage(f"--plugin is for {able} only: {installed.title} has no plugin folders", "Omit --plugin.")


def connections(home: str, cwd: str, environ: Mapping[str, str]) -> list[Connection]:
    """Return every agent, with the places where it is connected."""
    here = Environment(home, cwd, environ)
    return [
        Connection(agent, list(_connected(here, agent)), _fired(home, agent), counts(home, agent)) for agent in AGENTS
    ]


def _connected(here: Environment, agent: str) -> Iterator[Connected]:
    installed = installation(agent)
    for scope in SCOPES:
        path = ""
        try:
            files = []
            for found, content in _found(here, installed, scope, None, may_be_home=True):
                path = path or found.path
                files.append((found, content, _command(found, content)))
            commands = [command for _, _, command in files if command is not None]
            if commands:
                current = all(_merged(found, content, commands[0]) == found.data for found, content, _ in files)
                gone = scope == USER and not shutil.which(program_of(commands[0]), path=here.environ.get("PATH"))
                outdated = gone or not current or any(map(is_outdated, commands))
                yield Connected(scope, path, outdated=outdated, tells=installed.tells)
        except SnapstoreError as error:
            yield Connected(scope, path, problem=error.message)


def _fired(home: str, agent: str) -> float | None:
    try:
        return os.stat(f"{home}/fired/{agent}").st_mtime
    except OSError:
        return None


def _found(
    here: Environment, installed: Installation, scope: str, plugin: str | None, *, may_be_home: bool = False
) -> Iterator[tuple[Found, Content]]:
    """Yield an agent's files in one scope.

    A project's file must lie inside the project: whoever wrote the project may have planted a symbolic link.
    """
    base, within = "", None
    if scope == PLUGIN:
        assert plugin is not None
        base = os.path.abspath(os.path.join(here.cwd, plugin))
    elif scope == PROJECT:
        base = within = here.project()
        if os.path.realpath(base) == os.path.realpath(user_home(here.environ)):
            if may_be_home:
                return
            raise Unsafe("this project is your home folder, whose settings are for all projects", "Use --user.")
    for path, content in installed.places(scope, base, here.environ):
        yield look(path, within), content


def _done(here: Environment, plan: Callable[[], Plan], dry_run: bool) -> Plan:
    if dry_run:
        return plan()
    notes = os.path.join(here.home, "connected")
    durable.make_folders(notes)
    with StoreLock(os.path.join(notes, "lock")):
        made = plan()
        carry_out([*made.changes, *made.traces], notes)
    return made


def _removal(found: Found, content: Content, notes: list[str]) -> Change | None:
    """Return the change that removes our hooks from a file, or None.

    If the file is still exactly what connecting made from its backup (or from no file), the original is restored byte
    for byte.
    """
    if found.data is None:
        return Change(found, None)
    backup = look(found.target + BACKUP) if isinstance(content, HookFile) else None
    kept = backup.data if backup is not None else None
    command = _command(found, content)
    if command is None:  # perhaps with a backup that a killed run left
        return Change(found, found.data, drop=True) if kept is not None and kept == found.data else None
    if not isinstance(content, HookFile):
        text = _ask(found, content, content.without)
        return None if text is not None else Change(found, None)
    if kept is not None and _would_make(content, kept, command) == found.data:
        return Change(found, kept, drop=True)
    if kept is not None:
        notes.append(f"{found.path} has changed since it was connected; the original is in {found.target}{BACKUP}")
    if content.merged(None, command).encode() == found.data:
        return Change(found, None)
    return Change(found, _ask(found, content, content.without).encode())


def _would_make(content: HookFile, before: bytes, command: str) -> bytes | None:
    try:
        return content.merged(before.decode(), command).encode()
    except ValueError:
        return None


def _command(found: Found, content: Content) -> str | None:
    """Return the command our hooks in a file run, or None if it has none of ours."""
    return None if found.data is None else _ask(found, content, content.connected)


def _merged(found: Found, content: Content, command: str) -> bytes:
    return _ask(found, content, lambda text: content.merged(text, command)).encode()


def _ask(found: Found, content: Content, question: Callable[..., T]) -> T:
    """Call a method of a content with the file's text; errors name the file and the line."""
    try:
        text = found.data if found.data is None else found.data.decode("utf-8", _strictness(content))
        return question(text)
    except UnicodeDecodeError as error:
        assert found.data is not None
        line = found.data.count(b"\n", 0, error.start) + 1
        raise _corrupt(found, line, "this is not UTF-8") from None
    except Unreadable as error:
        raise _corrupt(found, error.line, error.message) from None
    except Conflict as error:
        raise Conflict(f"{found.path}: {error.message}", error.hint) from None


def _strictness(content: Content) -> str:
    return "replace" if isinstance(content, OwnFile) else "strict"  # a file that is not ours need not be text


def _corrupt(found: Found, line: int, message: str) -> Corrupt:
    return Corrupt(
        f"{found.path}, line {line}: {message}",
        "Nothing was written. Fix that line, then run this again.",
        line=line,
    )


def _mode(installed: Installation, scope: str) -> int:
    if installed.executable:
        return 0o755
    return 0o600 if scope == USER else 0o666
