"""A store's git config, and the versions of dulwich that can read it."""

from __future__ import annotations

import os
import re

import dulwich
from dulwich.config import ConfigFile

from snapstore.base.files import sync_folder, write_all

# pyproject.toml has the same bounds, but pip changes a library for another program's sake and only warns.
OLDEST, TOO_NEW = (1, 2, 18), (1, 3)
if not OLDEST <= dulwich.__version__[:3] < TOO_NEW:
    have, oldest, too_new = (".".join(map(str, version)) for version in (dulwich.__version__, OLDEST, TOO_NEW))
    raise ImportError(f"dulwich {have} is installed, but snapstore needs {oldest} or later, below {too_new}")

_THRESHOLD = re.compile(rb"^(\s*bigfilethreshold\s*=\s*)(\d{1,9})([kmg])(?=\s*$)", re.IGNORECASE | re.MULTILINE)


def read_config(git_dir: str) -> ConfigFile:
    return ConfigFile.from_path(f"{git_dir}/config", expand_includes=False)


def has_units(git_dir: str) -> bool:
    """Return whether the config gives a size with a unit.

    Earlier versions wrote such a size, and then dulwich refuses to open the repository.
    """
    try:
        with open(f"{git_dir}/config", "rb") as file:
            return _THRESHOLD.search(file.read()) is not None
    except OSError:
        return False


def write_out_units(git_dir: str) -> None:
    """Rewrite a size with a unit as a number of bytes, and change nothing else.

    The file is edited line by line, since dulwich's writer drops comments and quotes. Call under the store's lock.
    """
    path = f"{git_dir}/config"
    with open(path, "rb") as file:
        text = file.read()
    fd = os.open(f"{path}.snapstore", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, _THRESHOLD.sub(_in_bytes, text))
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(f"{path}.snapstore", path)
    sync_folder(git_dir)


def _in_bytes(line: re.Match[bytes]) -> bytes:
    return line[1] + str(int(line[2]) << {b"k": 10, b"m": 20, b"g": 30}[line[3].lower()]).encode()
