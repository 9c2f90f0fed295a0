"""A `git repack` that stands still at a chosen moment.

git runs its own programs from its exec path. A small program called `git` in a folder that takes its place stops where
pack-objects would begin (the packs to delete are listed by then), or where it has ended (what is reachable is decided,
and nothing is deleted yet), until it is told to go on.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from pathlib import Path

from helpers import plain_environment

LISTED, PACKED = "listed", "packed"

_PROGRAM = """\
#!/bin/sh
export GIT_EXEC_PATH={exec_path}
stop() {{ echo here > {here}; read line < {go_on}; }}
if [ "$1" != pack-objects ]; then exec {git} "$@"; fi
{before}
{git} "$@"
status=$?
{after}
exit $status
"""


class PausedGit:
    """Used as a context: `git ARGUMENTS` runs up to the moment, and at the end of the block to its own end, if it was
    not told to `go_on` before."""

    def __init__(self, folder: Path, git_dir: str, moment: str, *arguments: str) -> None:
        place = folder / f"paused-{moment}-{os.urandom(4).hex()}"
        place.mkdir()
        self._here, self._go_on = place / "here", place / "go_on"
        os.mkfifo(self._here)
        os.mkfifo(self._go_on)
        exec_path = subprocess.run(["git", "--exec-path"], capture_output=True, check=True, text=True).stdout.strip()
        git = shutil.which("git")
        program = place / "git"
        stops = {LISTED: ("stop", ""), PACKED: ("", "stop")}[moment]
        names = {"exec_path": exec_path, "git": git, "here": self._here, "go_on": self._go_on}
        program.write_text(_PROGRAM.format(**names, before=stops[0], after=stops[1]))
        program.chmod(0o755)
        self._command = ["git", "--git-dir", git_dir, *arguments]
        self._environment = plain_environment({"GIT_EXEC_PATH": str(place)})
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PausedGit:
        # Open at both ends: nobody waits for the other side of a pipe.
        self._heard = os.open(self._here, os.O_RDWR)
        self._said = os.open(self._go_on, os.O_RDWR)
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment,
        )
        ready, _, _ = select.select([self._heard], [], [], 60)
        if not ready:
            self._process.kill()
            raise AssertionError(f"git did not come so far: {self._process.communicate()}")
        return self

    def go_on(self) -> None:
        """Lets git go on, and waits for its end. Again, it does nothing."""
        if self._process is None:
            return
        os.write(self._said, b"on\n")
        out, err = self._process.communicate(timeout=60)
        status, self._process = self._process.returncode, None
        assert status == 0, (out, err)

    def __exit__(self, *exception: object) -> None:
        try:
            self.go_on()
        finally:
            os.close(self._heard)
            os.close(self._said)
