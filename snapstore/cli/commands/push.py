"""`snapstore push`: send this store's turns to a remote."""

from __future__ import annotations

import click

from snapstore.cli.context import Context
from snapstore.cli.options import common_options, quiet_option
from snapstore.cli.output import safe
from snapstore.cli.param_types import REMOTE
from snapstore.cli.reports.transfer import Transfer, asking, tell_push
from snapstore.errors import Usage
from snapstore.share import push as pushing
from snapstore.share.auto_push import run
from snapstore.share.remotes import Remotes
from snapstore.share.secrets import check


@click.command()
@click.argument("remote", metavar="[REMOTE]", required=False, type=REMOTE)
@click.option("--auto", is_flag=True, help="Also push every later turn there automatically, in the background.")
@click.option("--no-auto", is_flag=True, help="Stop pushing turns there automatically.")
@click.option(
    "--allow",
    metavar="WORD",
    multiple=True,
    help="Allow a finding that is not a secret, by the code that the refused push printed.",
)
@click.option(
    "--with-safety", is_flag=True, help="Also push what was on disk before forced moves. A pull does not fetch it."
)
@click.option(
    "--background", is_flag=True, help="Run as snapstore runs it after a turn: print nothing, write errors to the log."
)
@quiet_option
@common_options
def push(
    context: Context,
    *,
    remote: str | None,
    auto: bool,
    no_auto: bool,
    allow: tuple[str, ...],
    with_safety: bool,
    background: bool,
) -> int:
    """Send what is recorded here to a remote.

    Sends branches, checkpoints and the conversations of the turns. Nothing there is overwritten: a branch whose
    name is taken is stored beside it as `branch@machine`. REMOTE is a name or an address. Default: the only remote,
    or `origin`.
    """
    if auto and no_auto:
        raise Usage("--auto and --no-auto exclude each other", "Choose one.")
    with context.store() as store:
        if background:
            run(store)
            return 0
        remotes = Remotes(store)
        target = remotes.find(remote)
        if auto or no_auto:
            target = remotes.make_automatic(target.name, auto)
        if allow:
            check.allow(store, allow)
        with Transfer(context) as progress:
            pushed = pushing.push(store, target, progress=progress, ask=asking(context), with_safety=with_safety)
        if context.json:
            from snapstore.surface.records.sharing import PushRecord

            context.document(PushRecord.of(pushed))
        elif not context.quiet:
            tell_push(context.out, pushed)
            name = safe(target.name)
            if auto:
                context.out.line(
                    f"From now on every turn is pushed to {name} in the background: `push --no-auto` stops that."
                )
            elif no_auto:
                context.out.line(f"Turns are no longer pushed to {name} automatically.")
    return 0
