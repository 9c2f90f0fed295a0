"""`snapstore run`: record a turn around any command."""

from __future__ import annotations

import os
import resource
import signal
import sys
from shlex import join
from typing import Any

import click

from snapstore.api import Session
from snapstore.cli.context import Context
from snapstore.cli.errors import report
from snapstore.cli.options import common_options, quiet_option
from snapstore.cli.reports.summary import summary
from snapstore.errors import Failed, NoStore, SnapstoreError
from snapstore.timeline.history.history import History

# Signals that are meant for the command when they are sent to this process alone.
PASSED_ON = {
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTSTP,
    signal.SIGCONT,
}


class CommandNotFound(SnapstoreError):
    name = "command-not-found"
    status = 127
    hint = "Check its spelling and $PATH. The turn was cancelled."


class CommandNotExecutable(SnapstoreError):
    name = "command-not-executable"
    status = 126
    hint = "Make it executable, or name the program that runs it. The turn was cancelled."


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", metavar="-- CMD…", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("-m", "--prompt", metavar="PROMPT", help="What was asked for. Default: the command itself.")
@click.option("--agent", metavar="NAME", help="Who makes the turn. Default: the command's name.")
@quiet_option
@common_options
def run(context: Context, *, command: tuple[str, ...], prompt: str | None, agent: str | None) -> int:
    """Record a turn around any command.

    The command's exit status and signals are passed on. With --json, its standard output goes to standard error.
    Creates the store if there is none.
    """
    session = context.recording(create=True)
    with session.store:
        session.begin(
            prompt if prompt is not None else _as_typed(command),
            agent=agent or os.path.basename(command[0]) or "agent",
            hold=True,
        )
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED_ON, signal.SIGCHLD})
        # An ignored signal is discarded even while this process waits for it, and children of a daemon inherit ignored
        # signals. The command's end would then go unnoticed, so the handlers are set before the command starts.
        for number in (signal.SIGCHLD, signal.SIGCONT):
            signal.signal(number, lambda *_: None)
        child = _start(context, session, command, before)
        # From here on signals stay blocked, so that the turn is recorded however the command ended.
        ended = _wait(child)
        status = os.waitstatus_to_exitcode(ended)
        shown = status if status >= 0 else 128 - status  # the status a shell shows for a signal
        try:
            _record(context, session, shown, died=status < 0)
        except (SnapstoreError, OSError) as error:
            known = error if isinstance(error, SnapstoreError) else SnapstoreError(str(error))
            known.details["exit_status"] = shown
            if _still_open(session):
                known.hint = (
                    f"The command ran (status {shown}) and its turn is still open: do not run it again. Fix the "
                    "cause, then record the turn with `snapstore turn end`."
                )
            elif isinstance(error, Failed | NoStore):
                known.hint = f"The command ran (status {shown}); what it changed is on disk, but was not recorded."
            failed = report(known, json=context.json, debug=context.debug)
            status = status or failed
    if status < 0:
        _die_by(-status)
    return shown if status < 0 else status


def _still_open(session: Session) -> bool:
    try:
        return session.store.open_turn(session.name) is not None
    except (SnapstoreError, OSError):
        return False


def _as_typed(command: tuple[str, ...]) -> str:
    return join(command)


def _start(context: Context, session: Session, command: tuple[str, ...], mask: set[Any]) -> int:
    sys.stdout.flush()
    actions = [(os.POSIX_SPAWN_DUP2, 2, 1)] if context.json else []  # standard output holds only the document
    try:
        return os.posix_spawnp(
            command[0],
            command,
            {**os.environ, "SNAPSTORE_SESSION": session.name},
            file_actions=actions,
            setsigmask=mask,
            setsigdef={signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD},  # ignored here, not in the command
        )
    except (OSError, ValueError) as error:
        session.cancel()
        if isinstance(error, FileNotFoundError) or not isinstance(error, OSError):
            raise CommandNotFound(f"{command[0]!r}: command not found", command=command[0]) from None
        raise CommandNotExecutable(f"{command[0]!r}: {error.strerror}", command=command[0]) from None


def _wait(child: int) -> int:
    """Wait for the command as a shell would, and return its wait status.

    A signal typed at the terminal reaches the command directly, because the command is in the same process group. A
    signal sent to this process alone is passed on. When the command stops (Ctrl-Z), this process stops too, or the
    shell would never get the terminal back.
    """
    waited = {*PASSED_ON, signal.SIGCHLD}
    while True:
        arrived, typed = _next_signal(waited)
        if arrived != signal.SIGCHLD:
            if not typed:
                _send(child, arrived)
            continue
        pid, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
        if not pid:
            continue
        if not os.WIFSTOPPED(status):
            return status
        if _in_foreground():
            os.kill(os.getpid(), signal.SIGSTOP)
            _send(child, signal.SIGCONT)


def _next_signal(waited: set[signal.Signals]) -> tuple[int, bool]:
    """Return the next signal, and whether the terminal sent it to the whole group."""
    if sys.platform == "linux":
        info = signal.sigwaitinfo(waited)
        return info.si_signo, info.si_code > 0
    taken = signal.sigwait(waited)  # sigwait does not tell the sender: at a terminal the signal was most likely typed
    return taken, _in_foreground() and taken in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)


def _in_foreground() -> bool:
    for fd in (0, 1, 2):
        try:
            return os.tcgetpgrp(fd) == os.getpgrp()
        except OSError:
            continue
    return False


def _send(child: int, number: int) -> None:
    try:
        os.kill(child, number)
    except ProcessLookupError:
        pass


def _record(context: Context, session: Session, exit_status: int, *, died: bool) -> None:
    oid = session.end(status="interrupted" if died else "done", exit_status=exit_status)
    if context.quiet and not context.json:
        return
    node = History(session).node(oid)
    if context.json:
        from snapstore.surface.records.nodes import NodeRecord

        context.document(NodeRecord.of(node))
        context.out.flush()
    else:
        summary(context.err, node, lead="snapstore: ")


def _die_by(number: int) -> None:
    """End this process by the signal that killed the command.

    The waiting process then sees the command's own end. No core is dumped here: the command has left its own.
    """
    sys.stdout.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
