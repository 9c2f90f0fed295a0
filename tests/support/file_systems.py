"""Real file systems of other kinds, for what the one below the temporary folder cannot hold or do.

Each is made in an image and mounted through a loop device, or is a tmpfs; it needs root, and is gone when the test is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}
KINDS = ("tmpfs", *_MAKE)
_MAKE["exfat-fuse"] = ["mkfs.exfat"]  # keeps neither permissions nor links, so not for every test
_SIZE = 320 << 20  # the least that mkfs.xfs makes is 300 MB; the image is sparse


@contextmanager
def mounted(kind: str, folder: Path) -> Iterator[Path]:
    """Mount a new file system of this kind; skip the test if that is impossible."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system needs root")
    place, image = folder / f"mounted-{kind}", folder / f"{kind}.image"
    place.mkdir(parents=True)
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", "size=512m", "tmpfs", str(place)]
    else:
        make = _MAKE[kind]
        if shutil.which(make[0]) is None:
            pytest.skip(f"{make[0]} is not installed")
        with image.open("wb") as file:
            file.truncate(_SIZE)
        subprocess.run([*make, str(image)], check=True, capture_output=True)
        command = ["mount", "-t", kind, "-o", "loop", str(image), str(place)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a {kind} cannot be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        if subprocess.run(["umount", str(place)], capture_output=True).returncode != 0:
            subprocess.run(["umount", "-l", str(place)], check=True)  # a test that failed has left a file open in it
        image.unlink(missing_ok=True)
