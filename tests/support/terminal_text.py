"""Text that would harm a terminal, and commands run on one."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import struct
import subprocess
import termios
from pathlib import Path

from commands import PROGRAM

# An escape sequence, a title change, C1 control sequence, carriage return, backspace, direction marks, a line break.
HOSTILE = "a\x1b[31mred\x1b]0;title\x07b\x9b2Jc\rover\bd\u202egnp.exe\u2066e\u2028f\x7f"

HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]")

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(folder: Path, *arguments: str, columns: int = 100, lines: int = 30, **environment: str) -> str:
    """Run snapstore on a terminal of this size and return what it writes."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**kept, "TERM": "xterm-256color", **environment},
    )
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 65536):
            seen += piece
    except OSError as error:  # how Linux says that the last writer is gone
        if error.errno != errno.EIO:
            raise
    finally:
        os.close(ours)
        process.wait(timeout=60)
    return seen.decode().replace("\r\n", "\n")
