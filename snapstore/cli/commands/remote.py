"""`snapstore remote add|list|remove`: manage the remotes that share turns."""

from __future__ import annotations

import click

from snapstore.cli.context import Context
from snapstore.cli.options import CommandGroup, common_options, level_options
from snapstore.cli.output import BOLD, DIM, path_text, safe
from snapstore.cli.param_types import REMOTE
from snapstore.git.remote.urls import parse
from snapstore.share.remotes import Remote, Remotes
from snapstore.share.server.machine import known_name


@click.group(cls=CommandGroup, default="list")
@level_options
def remote() -> None:
    """Manage the git repositories through which turns are shared.

    `remote` alone lists them.
    """


@remote.command("list")
@common_options
def listed(context: Context) -> int:
    """List the remotes of this store."""
    with context.store() as store:
        found = Remotes(store).list()
        if context.json:
            from snapstore.surface.records.sharing import RemotesRecord

            context.document(RemotesRecord.of(found, known_name(store)))
            return 0
        out = context.out
        width = max((len(remote.name) for remote in found), default=0)
        for remote in found:
            auto = out.paint("  pushed automatically", DIM) if remote.auto else ""
            out.line(f"{out.paint(f'{safe(remote.name):<{width}}', BOLD)}  {path_text(remote.shown)}{auto}")
        if not found:
            out.line("No remote. Add one: `snapstore remote add origin URL`", DIM)
    return 0


@remote.command()
@click.argument("name", metavar="NAME")
@click.argument("url", metavar="URL")
@click.option("--auto", is_flag=True, help="Push every turn there automatically, in the background.")
@common_options
def add(context: Context, *, name: str, url: str, auto: bool) -> int:
    """Add a remote: a name for the address of a git repository.

    The repository must be empty or hold this project's turns. The address is a path, or an https, ssh, git or file
    address.
    """
    parse(url)
    with context.store() as store:
        remote = Remotes(store).add(name, url, auto=auto)
        automatic = "; every turn is pushed there automatically" if remote.auto else ""
        _tell(context, remote, f"Added remote {safe(remote.name)}: {path_text(remote.shown)}{automatic}.")
    return 0


@remote.command()
@click.argument("name", metavar="NAME", type=REMOTE)
@common_options
def remove(context: Context, *, name: str) -> int:
    """Remove a remote. Nothing on the server changes."""
    with context.store() as store:
        remote = Remotes(store).remove(name)
        _tell(context, remote, f"Removed remote {safe(name)}. Nothing changed there, and what was pulled stays.")
    return 0


def _tell(context: Context, remote: Remote, text: str) -> None:
    if context.json:
        from snapstore.surface.records.sharing import RemoteChangeRecord

        context.document(RemoteChangeRecord.of(text, remote))
    elif not context.quiet:
        context.out.line(text)
