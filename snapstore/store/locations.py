"""Where stores are kept, and which root a store belongs to.

There is no registry: a store's folder is named by the hash of its root's real path. The store of a folder is found by
trying the folder and each of its parents.
"""

from __future__ import annotations

import os
import stat
import sys

from xxhash import xxh3_64_hexdigest

from snapstore.errors import Unsafe, Usage
from snapstore.worktree.usergit import repository


def home_folder() -> str:
    """Return $SNAPSTORE_HOME, or `snapstore` in the platform's folder for user data.

    The rules of platformdirs are written out here, because every hook needs them and importing platformdirs takes twice
    as long as starting an interpreter. A test compares the results (test_stores_live_where_platformdirs_says).
    """
    chosen = os.environ.get("SNAPSTORE_HOME")
    if chosen:
        chosen = os.path.expanduser(chosen)
        if not os.path.isabs(chosen):  # a relative path would mean another place in every folder
            raise Usage(f"SNAPSTORE_HOME is {chosen!r}, which is not an absolute path", "Set it to an absolute path.")
        return os.path.realpath(chosen)
    if sys.platform == "darwin":
        data = os.path.expanduser("~/Library/Application Support")
    else:
        data = os.environ.get("XDG_DATA_HOME", "").strip()
        if not os.path.isabs(data):
            data = os.path.expanduser("~/.local/share")
    return os.path.realpath(os.path.join(data, "snapstore"))


def root_hash(root: bytes) -> str:
    return xxh3_64_hexdigest(root)


def store_folder(home: str, root: bytes) -> str:
    name = os.fsdecode(os.path.basename(root)) or "root"
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)[:60].lstrip(".-") or "root"
    return f"{home}/{plain}-{root_hash(root)}"


def stores_below(home: str, root: bytes) -> bytes | None:
    """Return the stores' folder relative to a root, or None if it lies elsewhere."""
    top, folder = root.rstrip(b"/") + b"/", os.fsencode(home)
    return folder[len(top) :] if folder.startswith(top) else None


def find(home: str, start: str) -> bytes | None:
    """Return the nearest root, walking up from a folder, that has a store."""
    folder = os.fsencode(os.path.realpath(start))
    while True:
        if os.path.isdir(store_folder(home, folder)):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def natural_root(start: str) -> bytes:
    """Return the default root of a new store: the top of the checkout, or the folder."""
    folder = os.fsencode(os.path.realpath(start))
    repo = repository.find_repo(folder)
    return repo.top if repo is not None else folder


def refuse_root(home: str, root: bytes) -> None:
    """Raise Unsafe for a root that is almost certainly a mistake."""
    anyway = f"Choose a project folder, or run `snapstore init --anyway {os.fsdecode(root)}` if you are sure."
    if not os.path.isdir(root):
        raise Unsafe(f"{os.fsdecode(root)} is not a folder", "Choose an existing folder.")
    user_home = os.fsencode(os.path.realpath(os.path.expanduser("~")))
    if root == b"/" or user_home == root or user_home.startswith(root.rstrip(b"/") + b"/"):
        what = "the whole machine" if root == b"/" else "your home folder"
        raise Unsafe(f"{os.fsdecode(root)} is {what}: a store there would capture everything", anyway)
    outer = find(home, os.fsdecode(os.path.dirname(root)))
    if outer is not None:
        raise Unsafe(
            f"{os.fsdecode(root)} lies inside {os.fsdecode(outer)}, which already has a store",
            "Use that store (every command finds it from here), or run `snapstore init --anyway .`.",
        )
    real_home = os.fsencode(home)
    if root == real_home or root.startswith(real_home + b"/"):
        raise Unsafe("snapstore keeps its stores in this folder", "Choose another folder.")


def refuse_foreign(folder: str) -> None:
    """Raise Unsafe for a store that another user owns or can write to."""
    st = os.stat(folder)
    if st.st_uid != os.geteuid():
        raise Unsafe(
            f"the store {folder} belongs to another user",
            "Log in as that user, or set SNAPSTORE_HOME to a folder of your own.",
        )
    if st.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unsafe(
            f"other users can write to the store {folder}",
            f"Make sure that they have not changed it, then run `chmod 700 {folder}`.",
        )
    if st.st_mode & 0o077:
        os.chmod(folder, 0o700)
