"""The command line that starts snapstore again, isolated from the environment.

`-I` ignores the PYTHON* variables, the current folder and the user's site-packages, so a `json.py` in the project is
not imported. `-c` with one line saves a third of the interpreter's start time compared with `-m`, which imports `runpy`
and `pkgutil` first.
"""

from __future__ import annotations

import os
import sys

ENTRY = ("-c", "from snapstore.__main__ import main; raise SystemExit(main())")
ISOLATED = ("-I",)
WITH_USER_SITE = ("-E", "-P")  # like -I, but finds packages that `pip install --user` installed
OLD_ENTRY = ("-m", "snapstore")  # written by earlier versions
ENTRIES = (ENTRY, OLD_ENTRY)
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def own_command() -> list[str]:
    """Return the command line that starts this program again, without testing it."""
    return [sys.executable, *_own_flags(), *ENTRY]


def _own_flags() -> tuple[str, ...]:
    """Return the strictest flags that are certain to find this package."""
    flags = sys.flags
    if flags.isolated or _is_in_prefix():
        return ISOLATED
    return WITH_USER_SITE if flags.ignore_environment and flags.safe_path else ("-P",)


def _is_in_prefix() -> bool:
    """Return whether the package is in the interpreter's prefix, where `-I` searches."""
    parent = os.path.dirname(PACKAGE)
    return parent.startswith(os.path.join(sys.prefix, "")) and parent not in os.environ.get("PYTHONPATH", "").split(":")


def checked_command() -> list[str] | None:
    """Return the strictest command line that starts this program, after testing it.

    Return None if none works.
    """
    for flags in (ISOLATED, WITH_USER_SITE):
        if sys.executable and _finds_us(flags):
            return [sys.executable, *flags, *ENTRY]
    return None


def _finds_us(flags: tuple[str, ...]) -> bool:
    """Return whether an interpreter with these flags imports this very package."""
    import subprocess

    code = "import os, snapstore; os.write(1, os.fsencode(os.path.dirname(os.path.abspath(snapstore.__file__))))"
    try:
        done = subprocess.run(
            [sys.executable, *flags, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0 and os.fsdecode(done.stdout) == PACKAGE


def starts_snapstore(arguments: list[str]) -> bool:
    """Return whether these interpreter arguments start any version of snapstore."""
    entry = tuple(arguments[-2:])
    return entry in ENTRIES and all(flag in ("-I", "-E", "-P") for flag in arguments[:-2])


def compile_bytecode() -> None:
    """Compile the package to bytecode, so that no hook has to.

    Failures are ignored: without bytecode everything works, only more slowly.
    """
    import compileall

    if not os.access(PACKAGE, os.W_OK):
        return
    try:
        compileall.compile_dir(PACKAGE, quiet=2)
    except Exception:
        pass
