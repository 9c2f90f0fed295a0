"""The command line: one file a command, each a description (its options, its operands) and a function.

`import click` costs three interpreter starts, and `turn` runs inside an agent's hooks, so a small parser reads the
descriptions first. What it does not understand (a mistake, `--help`, a shell asking for completions) goes to click,
which is built from the same descriptions and knows how to explain.
"""

from __future__ import annotations

import os
import sys
from gc import set_threshold  # the module's name is that of a command, which takes it once it is loaded
from io import TextIOWrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_SAID = "snapstore_said_in"


def main(argv: Sequence[str] | None = None) -> int:
    """The console script. Gives the exit status."""
    set_threshold(100_000)  # a hook is over before there is garbage: looking for it was a tenth of its time
    _open_standard_streams()
    if argv is None:
        _speak_utf8()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if "_SNAPSTORE_COMPLETE" not in os.environ:
        from snapstore.cli.parser import parse

        request = parse(arguments)
        if request is not None:
            from snapstore.cli.context import carry_out

            return carry_out(*request)
    from snapstore.cli.app import run

    return run(arguments)


def _speak_utf8() -> None:
    """Names of files are written down as text, as the locale spells them. One that is not UTF-8 would read what others
    wrote as other names: it would end a turn without the files that were named, and finish a move elsewhere. So we
    start again in Python's own UTF-8; only what is said on a terminal stays in its encoding."""
    if sys.getfilesystemencoding() != "utf-8" and sys.executable:
        said = f"{_SAID}={sys.stdout.encoding}"
        os.execv(sys.executable, [sys.executable, "-X", "utf8", "-X", said, *sys.orig_argv[1:]])
    said_in = sys._xoptions.get(_SAID)
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
