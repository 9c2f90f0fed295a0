"""Helpers that forget secrets and search for what is left. Secrets are put together at run time, never written here."""

from __future__ import annotations

import os
import random
import string
import zlib
from pathlib import Path
from typing import Any

from helpers import assert_whole, git, in_commit, line

from snapstore import Store
from snapstore.timeline.forget.forget import Forget
from snapstore.timeline.forget.report import Forgotten

SECRET = "".join(random.Random(11).choices(string.ascii_letters + string.digits, k=30)) + "x7"


def forget(store: Store, *paths: str, **options: Any) -> Forgotten:
    return Forget(store).paths([os.fsencode(path) for path in paths], **options)


def forget_turn(store: Store, commit: str, **options: Any) -> Forgotten:
    return Forget(store).turn(bytes.fromhex(commit), **options)


def holds(store: Store, needle: str) -> list[str]:
    """Return where bytes occur in the store's folder: in raw files, and in inflated objects."""
    found = []
    wanted = needle.encode()
    for folder, _, names in os.walk(store.folder):
        for name in names:
            path = os.path.join(folder, name)
            data = Path(path).read_bytes()
            if wanted in data:
                found.append(path)
            if "/objects/" in path and not name.startswith("pack-"):
                try:
                    found += [path] if wanted in zlib.decompress(data) else []
                except zlib.error:
                    pass
    listing = git(store.shadow.git_dir, "cat-file", "--batch-all-objects", "--batch", "--unordered")
    return [*found, *(["an object"] if wanted in listing else [])]


def assert_gone(store: Store, *, just_now: bool = True) -> None:
    """Assert that nothing of a secret is left, nor, right after forgetting, any unreachable object."""
    assert holds(store, SECRET) == []
    assert_whole(store)
    if not just_now:
        return
    said = git(store.shadow.git_dir, "fsck", "--full", "--unreachable", "--no-reflogs").decode()
    assert said.strip() == "", said


def states(store: Store, session: str) -> list[dict[bytes, tuple[bytes, bytes]]]:
    return [in_commit(store, commit["commit"]) for commit in line(store, session)]
