"""Turn an exception into a message, a hint and an exit status.

No traceback is shown without `--debug`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from traceback import format_exc
from typing import TextIO

from snapstore.cli.context import CommonOptions
from snapstore.cli.output import DIM, RED, Output, OutputFailed, reporting_write_errors, safe, safe_lines
from snapstore.errors import Failed, Secret, SnapstoreError

BROKEN_PIPE, INTERRUPTED = 128 + 13, 128 + 2  # the statuses a shell shows for SIGPIPE and SIGINT


class Unexpected(SnapstoreError):
    """A bug in snapstore."""


def guarded(action: Callable[[], int], common: CommonOptions) -> int:
    """Run an action and return its exit status.

    Every exception is reported, as JSON or with a traceback if the common options say so.
    """
    try:
        if common.json:  # imported early: after an error there may be no descriptor left to import it with
            import snapstore.surface.records.errors  # noqa: F401
        status = action()
        with reporting_write_errors():
            sys.stdout.flush()
        return status
    except SnapstoreError as error:
        return report(error, json=common.json, debug=common.debug)
    except KeyboardInterrupt:
        silence()
        try:
            Output(sys.stderr).line("\nsnapstore: interrupted; `snapstore status` shows where you are", DIM)
        except (OSError, SnapstoreError):
            pass
        return INTERRUPTED
    except BrokenPipeError:
        silence()
        return BROKEN_PIPE
    except OSError as error:
        where = f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, str | bytes) else ""
        if not common.json:
            silence()  # standard output itself may have failed, and would fail again at exit
        return report(Failed(f"{error.strerror or error}{where}"), json=common.json, debug=common.debug)
    except Exception as error:
        text = str(error).strip() or "no further details"
        return report(Unexpected(f"unexpected: {type(error).__name__}: {text}"), json=common.json, debug=common.debug)


def report(error: SnapstoreError, *, json: bool = False, debug: bool = False) -> int:
    """Print an error with its hint, and return its exit status."""
    err = Output(sys.stderr)
    try:
        if debug:
            for line in safe_lines(format_exc()):
                err.line(line, DIM)
        if json and not isinstance(error, OutputFailed) and _printed_as_json(error):
            pass
        else:
            lines = safe_lines(error.message)
            if not isinstance(error, Secret):  # only Secret has a list; other line breaks come from foreign text
                lines = [" ".join(lines)]
            err.line(f"{err.paint('snapstore:', RED)} {lines[0]}")
            for line in lines[1:]:
                err.line(line)
            if error.hint:
                err.line(safe(error.hint), DIM)
    except (BrokenPipeError, OutputFailed):
        pass
    if isinstance(error, OutputFailed):
        silence()
    return error.status


def _printed_as_json(error: SnapstoreError) -> bool:
    """Print the error as a JSON document and return whether that succeeded.

    On failure the caller prints the error as text.
    """
    from snapstore.surface.records.base import document
    from snapstore.surface.records.errors import ErrorRecord

    try:
        out = Output(sys.stdout)
        out.document(document(ErrorRecord.of(error)))
        out.flush()
    except (BrokenPipeError, OutputFailed):
        silence()
        return False
    return True


def silence(stream: TextIO | None = None) -> None:
    """Redirect a stream to /dev/null so that the flush at exit cannot fail."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())
    except (OSError, ValueError):
        pass
