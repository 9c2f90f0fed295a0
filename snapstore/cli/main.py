"""Run the console script: hooks take a fast path, other commands go through click."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from json import dumps

from snapstore.daemon.client import TERMINAL_ENCODING

_NOT_FOR_HOOKS = {"-h", "--help", "--debug"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status."""
    gc.set_threshold(100_000)  # a hook ends before there is garbage, and collecting it took a tenth of the hook's time
    _open_standard_streams()
    if argv is None:
        _speak_utf8()
    arguments = list(sys.argv[1:] if argv is None else argv)
    # An agent's hook must not fail, whatever its arguments are, so it neither uses nor imports click.
    if arguments[:1] == ["hook"] and not _NOT_FOR_HOOKS & set(arguments):
        from snapstore.cli.hook import run_hook

        return run_hook(arguments[1:])
    try:
        from snapstore.cli.app import run
    except ImportError as error:
        if "--debug" in arguments:
            raise
        return _incomplete(error, json="--json" in arguments)
    return run(arguments)


def _incomplete(error: ImportError, *, json: bool) -> int:
    """Report a library that is missing or has the wrong version, and return 1.

    Errors are usually printed by `cli/errors`, which needs libraries too.
    """
    message = f"snapstore is not installed completely: {error}"
    hint = "Install it again with the program that installed it (pip, pipx or uv), which also installs the libraries."
    if json:
        sys.stdout.write(dumps({"error": "failed", "message": message, "hint": hint}) + "\n")
    else:
        sys.stderr.write(f"snapstore: {message}\n{hint}\n")
    return 1


def _speak_utf8() -> None:
    """Restart the interpreter in UTF-8 mode if the locale is not UTF-8.

    File names are stored as text in the locale's encoding. A process in another encoding would read names that other
    processes wrote as different names: it would end a turn without the files that were named, and finish a move on
    other files. Only the standard streams keep the terminal's encoding.
    """
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:
        option = f"{TERMINAL_ENCODING}={sys.stdout.encoding}"
        os.execv(sys.executable, [sys.executable, "-X", "utf8", "-X", option, *sys.orig_argv[1:]])
    encoding = sys._xoptions.get(TERMINAL_ENCODING)
    if isinstance(encoding, str):
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(encoding=encoding, errors=stream.errors)


def _open_standard_streams() -> None:
    """Open /dev/null for each standard stream that the caller closed (`>&-`).

    Otherwise the next opened file would get the stream's number, and a command's output would land in the store.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the kernel assigns the lowest free number, which is `number`
            os.set_inheritable(number, True)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))
