"""`snapstore import`: make a session from a conversation that was not recorded."""

from __future__ import annotations

import os
import time

import click

from snapstore.agents.import_session import Import, TurnToImport, importable, locate, prepare
from snapstore.api import Store
from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.output import BOLD, DIM, YELLOW, Output, ago, files_text, first_line, path_text, safe, shorten
from snapstore.cli.param_types import FILE, TRANSCRIPT_AGENT
from snapstore.cli.paths import shell_word
from snapstore.cli.reports.transfer import Transfer, tell_pull
from snapstore.errors import Usage
from snapstore.git.remote.bundles import is_bundle
from snapstore.share.pull import pull
from snapstore.share.remotes import Remote
from snapstore.store import locations
from snapstore.store.state import check_name
from snapstore.timeline.record.import_turns import refuse_known

_PROMPT = 50  # columns
_NAMED = 4  # unknown items of a turn listed before "… and N more"


@click.command("import")
@click.argument("transcript", metavar="[TRANSCRIPT]", required=False, type=FILE)
@click.option(
    "--agent",
    metavar="NAME",
    type=TRANSCRIPT_AGENT,
    help="The agent that wrote the transcript, if snapstore cannot tell.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be imported.")
@click.option(
    "--list", "listed", is_flag=True, help="List the conversations that Claude Code has kept for this project."
)
@common_options
def import_(context: Context, *, transcript: str | None, agent: str | None, dry_run: bool, listed: bool) -> int:
    """Make a session from a conversation.

    TRANSCRIPT is an agent's file or the id of its session. A file written by `export` is imported like a pull. A
    change is recorded if the transcript and the disk show the file before and after it; other changes are listed as
    unknown. No file on disk changes. Creates the store if there is none.
    """
    if listed:
        return _list(context)
    if transcript is None:
        raise Usage("which conversation?", "Give a transcript or a session id; `snapstore import --list` shows them.")
    if is_bundle(transcript):
        return _bundle(context, transcript, dry_run=dry_run)
    home = locations.home_folder()
    known = locations.find(home, ".")
    path, whose, session_id = locate(transcript, agent, os.getcwd())
    with prepare(path, whose, session_id, known or locations.natural_root("."), home) as found:
        name = check_name(context.session) if context.session else found.session_name()
        for warning in found.warnings:
            context.say(warning)
        commits: list[bytes] = []
        verified, moved_on = found.verified, found.moved_on
        if known is not None or not dry_run:
            with _store(context) as store:
                refuse_known(store, name)
                recorded = found.recorded_in(store)
                if recorded is not None:
                    context.say(f"session {recorded} already recorded this conversation, or a part of it")
                if not dry_run:
                    imported = found.carry_out(store, name)
                    commits, verified, moved_on = imported.commits, imported.verified, imported.moved_on
    if context.json:
        from snapstore.surface.records.agents import ImportRecord

        context.document(ImportRecord.of(found, name, commits, verified=verified, moved_on=moved_on, preview=dry_run))
        return 0
    out = context.out
    for number, turn in enumerate(found.turns, 1):
        _row(out, number, turn)
    _summary(out, found, name, verified, moved_on, dry_run)
    return 0


def _bundle(context: Context, file: str, *, dry_run: bool) -> int:
    """Import a file that `export` wrote elsewhere, like a pull."""
    if dry_run:
        raise Usage("--dry-run is for transcripts", f"`git bundle list-heads {file}` shows what is in a bundle.")
    with context.store() as store:
        with Transfer(context) as progress:
            pulled = pull(store, Remote("", os.path.abspath(file)), progress=progress)
        if context.json:
            from snapstore.surface.records.sharing import PullRecord

            context.document(PullRecord.of(pulled))
        else:
            tell_pull(context.out, pulled)
    return 0


def _list(context: Context) -> int:
    """List the conversations that can be imported, and which are already recorded.

    A row looks like `6f1c2a34-…  2h ago  Add a login form`.
    """
    root = locations.find(locations.home_folder(), ".")
    if root is None:
        found = importable(None, os.getcwd())
    else:
        with Store.open(".", say=context.say) as store:
            found = importable(store, os.getcwd())
    if context.json:
        from snapstore.surface.records.agents import ImportableRecord

        context.document(ImportableRecord.of(found))
        return 0
    out, now = context.out, time.time()
    for entry in found:
        prompt = first_line(entry.prompt) or "(no prompt)"
        where = f"  {out.paint('recorded as ' + safe(entry.session), DIM)}" if entry.session else ""
        when = out.paint(f"{ago(entry.modified, now):>9}", DIM)
        out.line(f"{safe(entry.id)}  {when}  {shorten(prompt, _PROMPT)}{where}")
    if not found:
        out.line("Claude Code has kept no conversation of this folder.")
    return 0


def _store(context: Context) -> Store:
    """Open the store, creating it if there is none.

    A new store's own baseline belongs to the session `shell`, as with `snapstore init`.
    """
    with context.progress("Taking the first snapshot") as progress:
        store = Store.open(".", create=True, say=context.say, progress=progress)
    store.progress = None
    return store


def _row(out: Output, number: int, turn: TurnToImport) -> None:
    """Print a turn, like `   3  Add a login function  2 files, 1 change unknown`."""
    prompt = shorten(first_line(turn.prompt) or "(no prompt)", _PROMPT)
    known = files_text(len(turn.changes)) if turn.changes else "no file"
    things = "1 change" if len(turn.unknown) == 1 else f"{len(turn.unknown)} changes"
    unknown = out.paint(f", {things} unknown:", YELLOW) if turn.unknown else ""
    out.line(f"{out.paint(f'{number:>4}', BOLD)}  {prompt}  {out.paint(known, DIM)}{unknown}")
    for path, why in turn.unknown[:_NAMED]:
        out.line(f"      {path_text(path)}: {safe(why)}" if path else f"      {safe(why)}", DIM)
    out.rest(len(turn.unknown), _NAMED, indent="      ")


def _summary(
    out: Output, found: Import, name: str, verified: list[bytes], moved_on: list[bytes], preview: bool
) -> None:
    turns = "1 turn" if len(found.turns) == 1 else f"{len(found.turns):,} turns"
    verb = "Would import" if preview else "Imported"
    out.line(f"{verb} {turns} of {found.agent} as session {safe(name)}. No file was changed.")
    if verified:
        be, them = ("is", "it") if len(verified) == 1 else ("are", "them")
        out.line(f"{files_text(len(verified))} {be} on disk as the last turn left {them}: `undo` reverts {them}.")
    if moved_on:
        have, them = ("has", "it") if len(moved_on) == 1 else ("have", "them")
        named = ", ".join(path_text(path) for path in moved_on[:_NAMED]) + (", …" if len(moved_on) > _NAMED else "")
        out.line(
            f"{files_text(len(moved_on))} {have} changed since ({named}): `undo` will not touch {them} without asking."
        )
    if found.left_out_branches:
        turns = "1 turn" if found.left_out_turns == 1 else f"{found.left_out_turns:,} turns"
        out.line(f"Left out: {turns} on other branches of the conversation.")
    if not preview:
        out.line(f"See it with `{out.program} log --session {shell_word(name)}`.", DIM)
