"""`snapstore pull`: others' turns from a remote."""

from __future__ import annotations

from snapstore.cli.options import QUIET, Command, Operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.cli.context import Context


def pull(context: Context, *, remote: str | None) -> int:
    from snapstore.cli.sharing import Transfer, asking, tell_pull
    from snapstore.share import pull as pulling
    from snapstore.share.remotes import Remotes

    with context.store() as store:
        target = Remotes(store).find(remote)
        with Transfer(context) as progress:
            pulled = pulling.pull(store, target, progress=progress, ask=asking(context))
        if context.json:
            from snapstore.records.base import dump
            from snapstore.records.sharing import PullRecord

            context.document(dump(PullRecord, pulled.as_json()))
        elif not context.quiet:
            tell_pull(context.out, pulled)
    return 0


COMMAND = Command(
    "pull",
    pull,
    "Bring in what others have pushed. Their sessions and branches are listed with their machine, and can be looked "
    "at, compared, gone to and continued; no file changes, and nothing of yours. REMOTE is a name or an address; the "
    "only one, or `origin`, unless said.",
    options=(QUIET,),
    operands=(Operand("remote", "[REMOTE]"),),
)
