"""`snapstore forget`: permanently remove files or a turn from the history."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import click

from snapstore.api import Session
from snapstore.base.text import files_text
from snapstore.cli.context import Context
from snapstore.cli.options import common_options
from snapstore.cli.output import BOLD, DIM, GREEN, LISTED, YELLOW, Output, path_text, safe
from snapstore.cli.param_types import TARGET_OR_FILE
from snapstore.cli.paths import below
from snapstore.cli.questions.confirm import agreed
from snapstore.errors import Unknown, Unsafe, Usage
from snapstore.share import replace_forgotten
from snapstore.share.replace_forgotten import RemoteResult
from snapstore.store.conversations import Conversations
from snapstore.timeline.forget.forget import Forget
from snapstore.timeline.forget.report import Forgotten
from snapstore.timeline.forget.selection import files_of, turn_of


@click.command()
@click.argument("target", metavar="[PATH|TURN]", required=False, type=TARGET_OR_FILE)
@click.option("--dry-run", is_flag=True, help="Only show what would be forgotten.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--copies", is_flag=True, help="Also forget the same content under other names, now or earlier.")
@click.option("--recapture", is_flag=True, help="Record the files again from the next turn on, if they exist.")
@click.option(
    "--remotes",
    is_flag=True,
    help="Also replace this machine's refs on the remotes. Without a target: for what was forgotten earlier. "
    "This is the only forced push.",
)
@common_options
def forget(
    context: Context, *, target: str | None, dry_run: bool, yes: bool, copies: bool, recapture: bool, remotes: bool
) -> int:
    """Permanently remove files or a turn from everything recorded.

    TARGET is a file, a folder, a pattern or one turn: history is rewritten without it, and the old objects are
    deleted. No file on disk is touched. `5` is a turn, `./5` a file.
    """
    if target is None and (copies or recapture or not remotes):
        raise Usage("what should be forgotten?", "Name a file, a folder, a pattern or a turn; see `forget --help`.")
    session = context.reading()
    with session.store as store:
        try:
            with context.progress("Looking through history") as progress:
                run = _selection(session, Forget(store, progress), target, copies=copies, recapture=recapture)
                planned = run(True)
        except Unknown:
            if target is not None and not (remotes and replace_forgotten.is_due(store)):
                raise
            done, reached = (
                Forgotten(),
                replace_forgotten.survey(store) if dry_run else replace_forgotten.replace(store),
            )
            done.dry_run = dry_run
            _answer(context, session, done, reached)
            return 1 if any(one.error for one in reached) else 0
        reached = replace_forgotten.survey(store)
        if dry_run:
            _answer(context, session, planned, reached)
            return 0
        if not yes and not _agreed(context, planned, reached):
            context.err.line("Nothing was changed.")
            return 1
        with context.progress("Forgetting") as progress:
            store.progress = progress
            done = run(False)
            if remotes:
                reached = replace_forgotten.replace(store)
        _answer(context, session, done, reached)
    return 1 if any(one.error for one in reached) else 0


def _selection(
    session: Session, forgetting: Forget, target: str | None, *, copies: bool, recapture: bool
) -> Callable[[bool], Forgotten]:
    if target is None:
        raise Unknown("nothing here matches")
    root = session.store.root
    try:
        path: bytes | None = below(root, target)
    except Unsafe:
        path = None
    with session.store.lock:  # a concurrent forget would remove objects that were just read
        session.store.shadow.objects.refresh()
        turn = turn_of(session, target, path)
        if turn is None and path is not None:
            names, patterns = files_of(session, target, path, below(root, "."))
    if turn is not None:
        if copies or recapture:
            raise Usage("--copies and --recapture are for files", "Leave them out for a turn.")
        return lambda dry_run: forgetting.turn(turn, dry_run=dry_run)
    if path is None:
        raise Unsafe(f"{target!r} is not below {os.fsdecode(root)}", "Name files of this project, or a turn.")
    return lambda dry_run: forgetting.paths(names, patterns, copies=copies, recapture=recapture, dry_run=dry_run)


def _agreed(context: Context, planned: Forgotten, reached: list[RemoteResult]) -> bool:
    err = context.err if context.err.terminal else context.out
    if context.json or not (err.terminal and sys.stdin.isatty()):
        raise Usage("this cannot be undone", "Add `--yes` to continue, or look first with `--dry-run`.")
    _tell(err, planned, reached)
    return agreed(err, "This cannot be undone. Continue? [y/N] ")


def _answer(context: Context, session: Session, forgotten: Forgotten, reached: list[RemoteResult]) -> None:
    elsewhere = _elsewhere(session, forgotten)
    if context.json:
        from snapstore.surface.records.forgetting import ForgetRecord

        context.document(ForgetRecord.of(forgotten, reached, elsewhere))
        return
    _tell(context.out, forgotten, reached)
    for text in elsewhere:
        context.out.line(f"May still have a copy: {safe(text)}", DIM)
    if forgotten.dry_run:
        context.out.line("Nothing was changed.")


def _tell(out: Output, forgotten: Forgotten, reached: list[RemoteResult]) -> None:
    if forgotten.paths or forgotten.turn:
        _tell_here(out, forgotten)
    elif not reached:
        out.line("No remote can have a copy.")
    for one in reached:
        for row in one.lines():
            out.line(safe(row), YELLOW if one.error or not one.done else DIM)


def _tell_here(out: Output, forgotten: Forgotten) -> None:
    number = len(forgotten.paths)
    files = files_text(number)
    what = f"the turn, with what it did to {files}" if forgotten.turn else f"{files} in {_versions(forgotten)}"
    out.line(f"{'Would forget' if forgotten.dry_run else out.paint('✓', GREEN) + ' Forgot'} {what}", BOLD)
    for path in forgotten.paths[:LISTED]:
        out.line(f"  {path_text(path)}")
    out.rest(number)
    verb = "will get" if forgotten.dry_run else "got"
    commits = f"1 commit {verb} a new id" if forgotten.commits == 1 else f"{forgotten.commits:,} commits {verb} new ids"
    told = "1 record" if forgotten.records == 1 else f"{forgotten.records:,} records"
    records = f", {told} {'to clean' if forgotten.dry_run else 'cleaned'}" if forgotten.records else ""
    out.line(f"{commits}{records}. No file on disk is touched.", DIM)
    for pattern in forgotten.never[:LISTED]:
        out.line(f"Never captured again: {safe(pattern)} (`config set never_capture` changes that)")
    for path in forgotten.copies[:LISTED]:
        if forgotten.turn:
            stays = (
                f"Other turns have the same version of {path_text(path)} and keep it: forget the file or those turns."
            )
        else:
            stays = f"The same content is also recorded as {path_text(path)}: `--copies` forgets that too."
        out.line(stays, YELLOW)
    for name in forgotten.lost_refs[:LISTED]:
        out.line(f"{safe(name)} points to nothing else and is removed too.", YELLOW)
    for path in forgotten.unsearched[:LISTED]:
        out.line(
            f"{path_text(path)} holds more text than snapstore searches for in prompts and replies: some may remain.",
            YELLOW,
        )
    for path in forgotten.on_disk[:LISTED]:
        out.line(f"{path_text(path)} is still as the turn left it: the next turn records it again.", YELLOW)


def _versions(forgotten: Forgotten) -> str:
    return "1 version" if forgotten.versions == 1 else f"{forgotten.versions:,} versions"


def _elsewhere(session: Session, forgotten: Forgotten) -> list[str]:
    """Return the places out of reach that may still have the forgotten content."""
    store = session.store
    found = [
        f"{known.agent}'s own file of the conversation, {known.transcript}"
        for known in Conversations(store).agent_sessions()
        if known.transcript and os.path.exists(known.transcript)
    ]
    repo = store.user_repo()
    if repo is not None and forgotten.turn is None:
        found.append("your own git repository, if it was committed there")
    return [*found[:LISTED], "backups, clones and copies of the store that were made before"]
