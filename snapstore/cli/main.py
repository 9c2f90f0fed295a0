"""Run the program: a hook goes a short way of its own, everything else through click."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from snapstore.daemon.client import SAID_IN

_NOT_FOR_HOOKS = {"-h", "--help", "--debug"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status. This is the console script."""
    gc.set_threshold(100_000)  # a hook is over before there is garbage: looking for it was a tenth of its time
    _open_standard_streams()
    if argv is None:
        _speak_utf8()
    arguments = list(sys.argv[1:] if argv is None else argv)
    # An agent's hook must not fail, whatever its words: it does not go through click, and does not import it.
    if arguments[:1] == ["hook"] and not _NOT_FOR_HOOKS & set(arguments):
        from snapstore.cli.hook import run_hook

        return run_hook(arguments[1:])
    from snapstore.cli.app import run

    return run(arguments)


def _speak_utf8() -> None:
    """Names of files are written down as text, as the locale spells them. One that is not UTF-8 would read what others
    wrote as other names: it would end a turn without the files that were named, and finish a move elsewhere. So we
    start again in Python's own UTF-8; only what is said on a terminal stays in its encoding."""
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:
        said = f"{SAID_IN}={sys.stdout.encoding}"
        os.execv(sys.executable, [sys.executable, "-X", "utf8", "-X", said, *sys.orig_argv[1:]])
    said_in = sys._xoptions.get(SAID_IN)
    if isinstance(said_in, str):
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(encoding=said_in, errors=stream.errors)


def _open_standard_streams() -> None:
    """A caller may have closed them (`>&-`). Then the next file opened would be taken for one, and a command's output
    would land in the store."""
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest free number: this one
            os.set_inheritable(number, True)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))
