"""`snapstore disconnect`: an agent's hooks as they were before."""

from __future__ import annotations

from snapstore.agents import AGENTS
from snapstore.cli.commands.connect import DRY_RUN, PLUGIN, PROJECT, USER, WHICH, here, one_scope, told, written
from snapstore.cli.options import Command, Operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.cli.context import Context


def disconnect(context: Context, *, agent: str, user: bool, project: bool, plugin: str | None, dry_run: bool) -> int:
    from snapstore.agents import connecting
    from snapstore.agents.installations import INSTALLATIONS

    scopes = one_scope(user=user, project=project, plugin=plugin)
    plan = connecting.disconnect(here(), agent, scopes, plugin=plugin, dry_run=dry_run)
    title = INSTALLATIONS[agent].title
    after = f"Restart {title} if it is running."
    if told(context, plan, dry_run=dry_run, after=after):
        return 0
    if not plan.changes:
        context.out.line(f"{title} is not connected{'' if len(scopes) > 1 else ' there'}; nothing to do.")
        return 0
    context.out.line(f"Disconnected {title}: its turns are no longer recorded. What was recorded stays.")
    written(context, plan)
    return 0


COMMAND = Command(
    "disconnect",
    disconnect,
    f"Take our hooks out of an agent's settings. Exactly what `connect` put there, wherever it did. AGENT is {WHICH}.",
    options=(USER, PROJECT, PLUGIN, DRY_RUN),
    operands=(Operand("agent", "AGENT", required=True, choices=AGENTS),),
)
