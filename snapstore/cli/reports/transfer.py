"""Progress, prompts and reports for commands that talk to a server."""

from __future__ import annotations

import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from snapstore.base.text import turns_text
from snapstore.cli.context import Context
from snapstore.cli.output import BOLD, DIM, YELLOW, Output, safe
from snapstore.git.ref_names import ARCHIVE, TAGS
from snapstore.share.pull import Pulled
from snapstore.share.sending import Pushed
from snapstore.share.server.names_there import split

PATIENCE = 1.0
LISTED = 12
_WORDS = {"sending": "Sending", "receiving": "Receiving", "checking": "Checking"}


class Transfer:
    """A progress line for transfers, shown on a terminal after one second."""

    def __init__(self, context: Context) -> None:
        self._out = context.err
        self._wanted = context.err.terminal and not context.json and not context.quiet
        self._start = time.monotonic()
        self._last = 0.0
        self._shown = False

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._wanted or now - self._start < PATIENCE or now - self._last < 0.1:
            return
        self._last, self._shown = now, True
        of = f" of {total:,}" if total else ""
        self._out.ask(f"\r\033[K{safe(_WORDS.get(what, what))[:60]} {done:,}{of} objects")

    def __enter__(self) -> Transfer:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._shown:
            self._out.ask("\r\033[K")


def asking(context: Context) -> Callable[[str, bool], str | None] | None:
    """Return a function that asks at the terminal for a user name or a password.

    Returns None without a terminal or with --json.
    """
    if context.json or not (sys.stdin.isatty() and context.err.terminal):
        return None

    def ask(what: str, secret: bool) -> str | None:
        try:
            with _unseen() if secret else nullcontext():
                context.err.ask(f"{safe(what)}: ")
                answer = sys.stdin.readline()
            if secret:
                context.err.ask("\n")
            return answer.rstrip("\n") or None
        except KeyboardInterrupt:
            return None

    return ask


@contextmanager
def _unseen() -> Iterator[None]:
    """Turn off the terminal's echo.

    getpass would ask on the warm process's terminal, not on the caller's.
    """
    before = termios.tcgetattr(0)
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    try:
        termios.tcsetattr(0, termios.TCSADRAIN, silent)
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def named(ref: str) -> str:
    """Return a ref's name as `session/branch`, like addresses."""
    parts = split(ref)
    if parts is None:
        return safe(ref)
    kind = {TAGS: "checkpoint ", ARCHIVE: "archived "}.get(f"{parts[0]}/", "")
    return safe(f"{kind}{parts[1]}/{parts[2]}")


def tell_remarks(out: Output, remarks: Sequence[str]) -> None:
    """Print which searches for secrets could not be done.

    Otherwise a user would think that everything was searched.
    """
    for remark in remarks:
        out.line(safe(remark), YELLOW)


def tell_push(out: Output, pushed: Pushed) -> None:
    where = safe(pushed.remote.name or pushed.remote.shown)
    tell_remarks(out, pushed.remarks)
    if not pushed.updates:
        out.line(f"Nothing to push: {where} has everything." if not pushed.objects else f"Records pushed to {where}.")
        return
    out.line(f"Pushed {turns_text(pushed.turns)} to {out.paint(where, BOLD)}.")
    for update in pushed.updates[:LISTED]:
        mark = "+" if update.old is None else " "
        here = named(update.ref) if update.ref else safe(update.there)
        there = named(update.there)
        out.line(f"  {mark} {here}" + (out.paint(f"  as {there}", YELLOW) if there != here else ""))
    out.rest(len(pushed.updates))


def tell_pull(out: Output, pulled: Pulled, more: str = " No file was changed.") -> None:
    where = safe(pulled.remote.name or pulled.remote.shown)
    if pulled.empty:
        out.line(f"{where} is empty: nothing has been pushed there yet.")
        return
    if pulled.updates:
        out.line(f"Pulled {turns_text(pulled.turns)} from {out.paint(where, BOLD)}.{more}")
    else:
        out.line(f"Nothing new at {where}.")
    for update in pulled.updates[:LISTED]:
        whose = (update.machine.name, update.machine.person) if update.machine is not None else ()
        who = ", ".join(safe(text) for text in whose if text)
        mark = "+" if update.old is None else " "
        about = f"{turns_text(update.turns)}  {who}".rstrip()
        out.line(f"  {mark} {named(update.ref)}  {out.paint(about, DIM)}")
    out.rest(len(pulled.updates))
    for ref in pulled.dropped[:LISTED]:
        out.line(f"  - {named(ref)}  was renamed or archived there", DIM)
    for ref in pulled.gone[:LISTED]:
        out.line(f"  {named(ref)} was rewound or deleted there; the copy here is kept", YELLOW)
    if pulled.refused:
        records = "record there was" if pulled.refused == 1 else "records there were"
        out.line(f"  {pulled.refused:,} {records} invalid and left out", YELLOW)
