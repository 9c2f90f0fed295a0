"""Search the files that a push would send with gitleaks, if it is installed.

Gitleaks runs once per push. The new files are written to a private folder that is removed afterwards. Each file is in a
folder of its own under its own name, because gitleaks skips some names (lock files), and because no file of the project
may act as the configuration of gitleaks. If gitleaks fails, the push goes on and says so.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from shutil import rmtree, which
from tempfile import mkdtemp
from typing import Any, NamedTuple

from snapstore.base.text import one_line
from snapstore.git.objects.ids import LINK
from snapstore.git.objects.store import Objects

LIMIT = 60.0  # seconds that gitleaks may take
MOST = 64 << 20  # bytes per push that gitleaks searches
LARGEST = 4 << 20  # bytes of one file
MANY = 5000  # files
_LEFT_OUT = frozenset({"generic-api-key"})  # any long word after a `key`: finds something in every second file
_HAS_DIR = re.compile(rb"^ +dir ", re.MULTILINE).search  # a command listed by the help from 8.19 on
_SAFE = re.compile(rb"(?!\.git)[A-Za-z0-9_.@+-]{1,100}").fullmatch


class Leak(NamedTuple):
    """One finding of gitleaks, in the file with the given number."""

    number: int
    rule: str
    line: int
    secret: bytes


class Gitleaks:
    """One run of the program: `add` the files, then `ask`."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._program = which("gitleaks")
        self._say = say
        self._folder = ""
        self._size = 0
        self._count = 0
        self.is_full = False

    @property
    def is_installed(self) -> bool:
        return self._program is not None

    def add(self, path: bytes, data: bytes) -> int | None:
        """Add a file; return its number, or None if there is no room for it."""
        if len(data) > LARGEST or self._count >= MANY or self._size + len(data) > MOST:
            self.is_full = True
            return None
        try:
            self._folder = self._folder or mkdtemp(prefix="snapstore-gitleaks-")
            name = path.rpartition(b"/")[2]
            place = f"{self._folder}/files/{self._count}"
            os.makedirs(place, 0o700)
            with open(f"{place}/{os.fsdecode(name) if _SAFE(name) else 'file'}", "xb") as file:
                file.write(data)
        except OSError as error:
            self.is_full = True
            self._say(f"gitleaks was not asked about every file: {error.strerror or error}")
            return None
        self._size += len(data)
        self._count += 1
        return self._count - 1

    def ask(self) -> list[Leak]:
        """Run gitleaks and return its findings; if it fails, say so and return none."""
        if not self._folder:
            return []
        try:
            leaks = sorted(self._leaks())
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._say(
                f"gitleaks was asked too and gave no answer ({_why(error)}): only snapstore's own rules were used"
            )
            return []
        if self.is_full:
            self._say("gitleaks was not asked about every file: some are very large, or there are very many")
        return leaks

    def close(self) -> None:
        """Remove the files that were written for gitleaks."""
        if self._folder:
            rmtree(self._folder, ignore_errors=True)

    def _leaks(self) -> Iterator[Leak]:
        report = f"{self._folder}/report.json"
        source = f"{self._folder}/files"
        # The help tells the commands. The version does not help: Debian's builds have none.
        has_dir = _HAS_DIR(self._run("--help").stdout)
        command = ["dir", source] if has_dir else ["detect", "--no-git", "--source", source]
        options = ["--report-format", "json", "--report-path", report, "--no-banner", "--log-level", "error"]
        done = self._run(*command, *options, "--exit-code", "0")
        if done.returncode != 0:
            raise ValueError(f"status {done.returncode}")
        with open(report, "rb") as file:
            found = json.load(file)
        for item in found or ():  # some versions write `null` for no findings
            leak = _leak(item, source)
            if leak is not None:
                yield leak

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        assert self._program is not None
        return subprocess.run(
            [self._program, *arguments],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )


def _leak(item: Any, source: str) -> Leak | None:
    """Parse one entry of a report; raise ValueError for a malformed one."""
    try:
        rule, secret, line = str(item["RuleID"]), str(item["Secret"]), int(item["StartLine"])
        number = int(os.path.relpath(os.path.join(source, item["File"]), source).split(os.sep)[0])
    except (KeyError, TypeError, ValueError):
        raise ValueError("its report could not be read") from None
    if rule in _LEFT_OUT or not secret:
        return None
    return Leak(number, rule, line, secret.encode("utf-8", "surrogateescape"))


def _why(error: Exception) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"nothing within {LIMIT:g} seconds"
    return str(getattr(error, "strerror", None) or error)


class ExternalScanners:
    """Collects what other programs find in the new files of a push."""

    def __init__(self, objects: Objects, say: Callable[[str], None]) -> None:
        self._objects = objects
        self._gitleaks = Gitleaks(say)
        self._asked: list[tuple[bytes, bytes]] = []  # commit and path per file number
        self._seen: set[tuple[bytes, bytes]] = set()
        self._known: dict[bytes, list[bytes]] = {}  # path: secrets that were found already

    def note_known(self, path: bytes, secret: bytes) -> None:
        """Note what our own rules found, so that nothing is reported twice."""
        self._known.setdefault(path, []).append(secret)

    def add(self, commit: bytes, files: Iterable[tuple[bytes, bytes, bytes]]) -> None:
        """Add the new files of a commit, each with path, mode and blob."""
        for path, mode, blob in files if self._gitleaks.is_installed else ():
            if mode == LINK or (path, blob) in self._seen:
                continue
            self._seen.add((path, blob))
            data = self._objects.read_small(blob, LARGEST)
            if data is None:
                self._gitleaks.is_full = True
            elif data and b"\0" not in data[:8000] and self._gitleaks.add(path, data) is not None:
                self._asked.append((commit, path))

    def found(self) -> Iterator[tuple[str, bytes, bytes, int, bytes]]:
        """Yield rule, commit, path, line and secret of each new finding."""
        for leak in self._gitleaks.ask():
            if not 0 <= leak.number < len(self._asked):
                continue
            commit, path = self._asked[leak.number]
            known = self._known.setdefault(path, [])
            if not any(leak.secret in secret or secret in leak.secret for secret in known):
                known.append(leak.secret)
                yield f"gitleaks: {one_line(leak.rule)[:80]}", commit, path, leak.line, leak.secret

    def close(self) -> None:
        """Remove the files that were written for other programs."""
        self._gitleaks.close()
