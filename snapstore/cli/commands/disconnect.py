"""`snapstore disconnect`: remove snapstore's hooks from an agent's settings."""

from __future__ import annotations

import click

from snapstore.agents.install import connect
from snapstore.agents.install.locations import installation
from snapstore.agents.known.registry import AGENTS
from snapstore.cli.commands.connect import WHICH, dry_run_option, here, one_scope, scope_options, told, written
from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.param_types import SuggestingChoice


@click.command(
    help=f"""Remove snapstore's hooks from an agent's settings.

    Removes exactly what `connect` added, in every place. AGENT is {WHICH}.
    """
)
@click.argument("agent", metavar="AGENT", type=SuggestingChoice(AGENTS))
@scope_options
@dry_run_option
@common_options
def disconnect(context: Context, *, agent: str, user: bool, project: bool, plugin: str | None, dry_run: bool) -> int:
    scopes = one_scope(user=user, project=project, plugin=plugin)
    plan = connect.disconnect(here(), agent, scopes, plugin=plugin, dry_run=dry_run)
    title = installation(agent).title
    after = f"Restart {title} if it is running."
    if told(context, plan, dry_run=dry_run, after=after):
        return 0
    if not plan.changes:
        context.out.line(f"{title} is not connected{'' if len(scopes) > 1 else ' there'}; nothing to do.")
        return 0
    context.out.line(f"Disconnected {title}: its turns are no longer recorded. What was recorded stays.")
    written(context, plan)
    return 0
