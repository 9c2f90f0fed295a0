"""`snapstore push`: our turns to a remote."""

from __future__ import annotations

from snapstore.cli.options import QUIET, Command, Operand, Option
from snapstore.cli.output import safe
from snapstore.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.cli.context import Context


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
    from snapstore.cli.sharing import Transfer, asking, tell_push
    from snapstore.share import push as pushing
    from snapstore.share.remotes import Remotes

    if auto and no_auto:
        raise Usage("--auto and --no-auto exclude each other", "Choose one.")
    with context.store() as store:
        if background:
            from snapstore.share.autopush import run

            run(store)
            return 0
        remotes = Remotes(store)
        target = remotes.find(remote)
        if auto or no_auto:
            target = remotes.make_automatic(target.name, auto)
        if allow:
            from snapstore.share import secrets

            secrets.allow(store, allow)
        with Transfer(context) as progress:
            pushed = pushing.push(store, target, progress=progress, ask=asking(context), with_safety=with_safety)
        if context.json:
            from snapstore.records.base import dump
            from snapstore.records.sharing import PushRecord

            context.document(dump(PushRecord, pushed.as_json()))
        elif not context.quiet:
            tell_push(context.out, pushed)
            name = safe(target.name)
            if auto:
                context.out.line(f"Every turn goes to {name} from now on, in the background: `push --no-auto` ends it.")
            elif no_auto:
                context.out.line(f"Turns no longer go to {name} by themselves.")
    return 0


COMMAND = Command(
    "push",
    push,
    "Send what is recorded here to a remote. Branches, checkpoints and what was said in the turns. Nothing there is "
    "overwritten: a branch that meets another one of its name goes beside it as `branch@machine`. REMOTE is a name or "
    "an address; the only one, or `origin`, unless said.",
    options=(
        Option("auto", "--auto", "From now on push every turn there by itself, in the background."),
        Option("no_auto", "--no-auto", "No longer."),
        Option(
            "allow",
            "--allow",
            "Allow a finding that is no secret, by the word that the refused push printed.",
            metavar="WORD",
            many=True,
        ),
        Option("with_safety", "--with-safety", "Also what was on disk before forced moves. Nobody pulls that."),
        Option("background", "--background", "What is started after a turn. Says nothing; errors go to the log."),
        QUIET,
    ),
    operands=(Operand("remote", "[REMOTE]"),),
)
