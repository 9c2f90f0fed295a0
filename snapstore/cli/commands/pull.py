"""`snapstore pull`: fetch others' turns from a remote."""

from __future__ import annotations

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options, quiet_option
from snapstore.cli.param_types import REMOTE
from snapstore.cli.reports.transfer import Transfer, asking, tell_pull
from snapstore.share import pull as pulling
from snapstore.share.remotes import Remotes


@click.command()
@click.argument("remote", metavar="[REMOTE]", required=False, type=REMOTE)
@quiet_option
@common_options
def pull(context: Context, *, remote: str | None) -> int:
    """Fetch what others have pushed.

    Their sessions and branches are listed with their machine. You can look at them, compare them, go to them and
    continue them. No file changes, and nothing of yours does. REMOTE is a name or an address. Default: the only
    remote, or `origin`.
    """
    with context.store() as store:
        target = Remotes(store).find(remote)
        with Transfer(context) as progress:
            pulled = pulling.pull(store, target, progress=progress, ask=asking(context))
        if context.json:
            from snapstore.surface.records.sharing import PullRecord

            context.document(PullRecord.of(pulled))
        elif not context.quiet:
            tell_pull(context.out, pulled)
    return 0
