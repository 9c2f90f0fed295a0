"""`snapstore init`: create the store of a folder."""

from __future__ import annotations

import os
from typing import Any

import click

from snapstore.api import Store
from snapstore.cli.commands.clone import told
from snapstore.cli.context import Context
from snapstore.cli.options import common_options, quiet_option
from snapstore.cli.output import BOLD, DIM, LISTED, YELLOW, files_text, path_text, safe, size_text
from snapstore.cli.param_types import FOLDER, MAX_BRANCHES, MAX_FILE_SIZE
from snapstore.cli.reports.transfer import Transfer, asking
from snapstore.git.ref_names import cursor_ref
from snapstore.share import clone
from snapstore.store import locations
from snapstore.store.handle import DEFAULT_SESSION
from snapstore.store.settings import BY_NAME
from snapstore.store.state import check_name
from snapstore.timeline.record.create_store import adopt_store, create_store


@click.command()
@click.argument("directory", metavar="[DIR]", required=False, type=FOLDER)
@click.option("--adopt", is_flag=True, help="The folder was moved here: attach its existing store.")
@click.option(
    "--from",
    "source",
    metavar="URL",
    help="Join the project shared at URL: its turns are pulled, and what is on disk here is recorded on top of "
    "them. With --adopt: the folder's old path.",
)
@click.option("--anyway", is_flag=True, help="Allow your home folder, /, or a folder inside another store's root.")
@click.option(
    "--max-file-size",
    metavar="SIZE",
    type=MAX_FILE_SIZE,
    help="Leave out larger files, unless an agent names them. Default: 100MB; 0: no limit. Also changes an "
    "existing store.",
)
@click.option(
    "--max-branches",
    metavar="N",
    type=MAX_BRANCHES,
    help="How many branches a session lists. Default: 20; 0: no limit. Above it, the oldest branches without a "
    "checkpoint are archived when a turn starts a branch. Also changes an existing store.",
)
@quiet_option
@common_options
def init(
    context: Context,
    *,
    directory: str | None,
    adopt: bool,
    source: str | None,
    anyway: bool,
    max_file_size: int | None,
    max_branches: int | None,
) -> int:
    """Start watching over a folder.

    Creates its store, outside the folder, and takes the first snapshot. Without DIR: the top of the git checkout
    you are in, or the current folder.
    """
    home = locations.home_folder()
    found = None if directory is not None else locations.find(home, ".")
    if directory is not None:
        root = os.fsencode(os.path.realpath(directory))
        if os.path.isdir(locations.store_folder(home, root)):
            found = root
    else:
        root = found if found is not None and not adopt else locations.natural_root(".")
    session = check_name(context.session or DEFAULT_SESSION)
    limits = {"max_file_size": max_file_size, "max_branches": max_branches}
    asked: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
    adopted: str | None = None
    if source is not None and not adopt:
        return _attach(context, home, root, source, anyway=anyway, **asked)
    if adopt:
        if not anyway:
            locations.refuse_root(home, root)
        adopted = adopt_store(home, root, source, anyway=anyway)
    elif found is None:
        with context.progress("Taking the first snapshot") as progress:
            create_store(home, root, anyway=anyway, session=session, warn=context.say, progress=progress, **asked)
    with Store.open(os.fsdecode(root), say=context.say) as store:
        made = found is None and not adopt
        changed = any(limit != getattr(store.header, name) for name, limit in asked.items())
        if changed:
            store.configure(**asked)
        _report(context, store, created=made, adopted=adopted, changed=changed)
    return 0


def _attach(context: Context, home: str, root: bytes, url: str, *, anyway: bool, **settings: Any) -> int:
    """Join a project that is already shared."""
    with Transfer(context) as progress:
        done = clone.attach(
            home, root, url, anyway=anyway, say=context.say, progress=progress, ask=asking(context), **settings
        )
    told(context, done)
    return 0


def _report(context: Context, store: Store, *, created: bool, adopted: str | None, changed: bool) -> None:
    session = store.session(None)
    oid = store.shadow.refs.read(cursor_ref(session.name))
    store.cache.load()
    left_out = store.left_out()
    files = sum(1 for _ in store.shadow.trees.walk(store.shadow.commit(oid).tree)) if oid else 0
    if context.json:
        from snapstore.surface.records.status import InitRecord

        context.document(InitRecord.of(store, created=created, adopted_from=adopted, files=files))
        return
    if context.quiet:
        return
    out = context.out
    shown = out.paint(path_text(store.root), BOLD)
    if adopted is not None:
        out.line(f"Watching over {shown} again, which was {path_text(adopted)} before.")
    elif created:
        out.line(f"Watching over {shown} from now on.")
    else:
        out.line(f"Watching over {shown} already{'' if changed else '; nothing to do'}.")
    limit, most = store.header.max_file_size, store.header.max_branches
    out.line(f"{out.paint('recorded  ', DIM)}{files_text(files)}")
    if limit != BY_NAME["max_file_size"].default or changed:
        out.line(f"{out.paint('limit     ', DIM)}{f'{size_text(limit)} per file' if limit else 'none'}")
    if most != BY_NAME["max_branches"].default or changed:
        out.line(f"{out.paint('branches  ', DIM)}{f'at most {most:,} listed' if most else 'all listed'}")
    if left_out:
        out.line(f"{out.paint('left out  ', DIM)}{out.paint(files_text(len(left_out)), YELLOW)}")
        for path, why in list(left_out.items())[:LISTED]:
            out.line(f"  {path_text(path)}  {out.paint(safe(why), DIM)}")
        out.rest(len(left_out), after=" (snapstore status --json)")
    out.line(f"{out.paint('store     ', DIM)}{path_text(store.folder)}")
    out.line("Next: `snapstore run -- CMD…` records what a command changes.", DIM)
