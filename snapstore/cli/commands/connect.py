"""`snapstore connect`: make an agent's own hooks call snapstore."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import click

from snapstore.agents.install import connect as connecting
from snapstore.agents.install.connect import SCOPES, Connected, Connection, Environment, Plan
from snapstore.agents.install.locations import installation, running_program
from snapstore.agents.install.patch import unified
from snapstore.agents.known.registry import AGENTS
from snapstore.base.text import timestamp
from snapstore.cli.context import Context
from snapstore.cli.options import Callback, common_options
from snapstore.cli.output import BOLD, DIM, GREEN, YELLOW, ago, path_text, safe
from snapstore.cli.param_types import FOLDER, SuggestingChoice
from snapstore.cli.paths import shell_word
from snapstore.cli.reports.patch import print_patch
from snapstore.errors import Usage
from snapstore.store import locations

WHICH = f"{', '.join(AGENTS[:-1])} or {AGENTS[-1]}"
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would change in which file, and write nothing."
)


def scope_options(function: Callback) -> Callback:
    """Add the options that choose which of an agent's settings to change."""
    for option in (
        click.option(
            "--plugin",
            metavar="DIR",
            type=FOLDER,
            help="For claude: write a plugin folder for `claude --plugin-dir DIR` instead of settings.",
        ),
        click.option("--project", is_flag=True, help="In the project's settings, which others may share."),
        click.option("--user", is_flag=True, help="In your own settings, for all projects."),
    ):
        function = option(function)
    return function


@click.command(
    help=f"""Connect an agent: its own hooks record each turn.

    AGENT is {WHICH}. By default, the hooks go into your own settings. What is in them stays, a backup is written beside
    the file, and `disconnect` removes exactly what was added.
    """
)
@click.argument("agent", metavar="[AGENT]", required=False, type=SuggestingChoice(AGENTS))
@scope_options
@dry_run_option
@click.option("--list", "listed", is_flag=True, help="List what is connected, where, and when its hooks last ran.")
@common_options
def connect(
    context: Context,
    *,
    agent: str | None,
    user: bool,
    project: bool,
    plugin: str | None,
    dry_run: bool,
    listed: bool,
) -> int:
    scopes = one_scope(user=user, project=project, plugin=plugin)
    place = here()
    if listed:
        return _list(context, connecting.connections(place.home, place.cwd, place.environ), agent)
    if agent is None:
        raise Usage("which agent?", f"Name one of {', '.join(AGENTS)}; `snapstore connect --list` shows them.")
    program = running_program(place.environ)
    plan = connecting.connect(place, agent, scopes[0], program, plugin=plugin, dry_run=dry_run)
    installed = installation(agent)
    after = installed.after if plugin is None else f"Start it with `{installed.plugin.format(plan_folder(plugin))}`."
    if told(context, plan, dry_run=dry_run, after=after):
        return 0
    out = context.out
    if not plan.changes:
        out.line(f"{installed.title} is already connected; nothing to do.")
        out.line(f"{out.paint('in        ', DIM)}{path_text(plan.paths[0])}")
        return 0
    out.line(f"{out.paint('Connected', GREEN)} {installed.title}: each of its turns is recorded from now on.")
    written(context, plan)
    out.line(safe(after), DIM)
    scope = f" --plugin {plan_folder(plugin)}" if plugin is not None else " --project" if project else ""
    out.line(f"Undo this with `{out.program} disconnect {agent}{scope}`.", DIM)
    return 0


def here() -> Environment:
    return Environment(locations.home_folder(), os.getcwd(), os.environ)


def one_scope(*, user: bool, project: bool, plugin: str | None) -> Sequence[str]:
    """Return the requested scope, else every scope with the most common first."""
    if user + project + (plugin is not None) > 1:
        raise Usage("--user, --project and --plugin exclude each other", "Choose one of them.")
    return ["user"] if user else ["project"] if project else SCOPES


def plan_folder(plugin: str) -> str:
    return shell_word(plugin)


def told(context: Context, plan: Plan, *, dry_run: bool, after: str) -> bool:
    """Print the JSON document or the dry run's patch, if one was requested.

    Returns False if neither was requested, and the caller prints the report.
    """
    if not context.json and not dry_run:
        return False
    lines = unified(plan.changes)
    if context.json:
        from snapstore.surface.records.agents import ConnectRecord

        context.document(ConnectRecord.of(plan, after, lines if dry_run else None))
    elif lines:
        print_patch(context.out, lines)
    else:
        context.out.line("Nothing would change.")
    return True


def written(context: Context, plan: Plan) -> None:
    """Print the files that were written or removed, and their backups."""
    out = context.out
    for change in plan.changes:
        verb = "removed" if change.after is None else "written"
        out.line(f"{out.paint(f'{verb:<10}', DIM)}{out.paint(path_text(change.found.path), BOLD)}")
        if change.backup is not None:
            out.line(f"{out.paint('backup    ', DIM)}{path_text(change.backup)}")
    for note in plan.notes:
        out.line(safe(note), YELLOW)


def _list(context: Context, found: list[Connection], agent: str | None) -> int:
    found = [connection for connection in found if agent in (None, connection.agent)]
    if context.json:
        from snapstore.surface.records.agents import ConnectionsRecord

        context.document(ConnectionsRecord.of(found))
        return 0
    out = context.out
    now = time.time()
    for connection in found:
        fired = "never called" if connection.fired is None else f"called {ago(timestamp(connection.fired), now)}"
        name = f"{connection.agent:<10}"
        if not connection.places:
            out.line(f"{out.paint(name, DIM)}{out.paint('not connected', DIM)}")
            continue
        for at, place in enumerate(connection.places):
            shown = out.paint(name, BOLD) if at == 0 else " " * 10
            out.line(f"{shown}{_state(context, place)}  {out.paint(fired, DIM)}  {path_text(place.path)}")
            if place.problem:
                out.line(f"{' ' * 10}{safe(place.problem)}", YELLOW)
        for what, number in connection.not_known.items():
            out.line(f"{' ' * 10}{safe(f'not known: {what}, seen {number}x')}", YELLOW)
    return 0


def _state(context: Context, place: Connected) -> str:
    state = "unreadable" if place.problem else "outdated" if place.outdated else "connected"
    return context.out.paint(f"{state:<11}{place.scope:<8}", GREEN if state == "connected" else YELLOW)
