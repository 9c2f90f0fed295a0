"""Branch titles for people who read the store with git (M-15).

A branch's title is its first prompt, stored as the branch's git description. Descriptions follow their branches when
the journal moves refs. If a description cannot be written, the log says why, and the change goes on.
"""

from __future__ import annotations

from collections.abc import Callable

from snapstore.git import branch_descriptions
from snapstore.git.ref_names import ARCHIVE, DELETED, HEADS, PRUNED
from snapstore.git.refs import classify_moves
from snapstore.git.repository import Shadow
from snapstore.store.journal import RefMove

Log = Callable[[str], None]
# Prefixes of refs that hold a branch: listed, archived, deleted or pruned.
_PLACES = (HEADS, ARCHIVE, DELETED, PRUNED)
CONFIG = "../store.git/config"  # the journal's name for the file; the journal writes it along with state files


def follow(shadow: Shadow, log: Log, moves: list[RefMove]) -> None:
    """Move descriptions along with renamed branches, and remove those of deleted ones."""
    travels, _, lost = classify_moves(move for move in moves if move[0].startswith(_PLACES))
    if travels or lost:
        _log_errors(log, lambda: branch_descriptions.follow(shadow.git_dir, dict(travels), lost))


def describe(shadow: Shadow, log: Log, branch: str, prompt: str) -> None:
    """Describe a branch by its first prompt, unless it has a description."""
    title = branch_descriptions.title_of(prompt)
    _log_errors(log, lambda: branch_descriptions.describe(shadow.git_dir, branch, title))


def redacted(shadow: Shadow, change: Callable[[str], str | None]) -> dict[str, bytes | None]:
    """Return the store's git config for the journal, with each description changed."""
    text = branch_descriptions.rewritten(shadow.git_dir, change)
    return {} if text is None else {CONFIG: text.encode("utf-8", "replace")}


def _log_errors(log: Log, work: Callable[[], None]) -> None:
    try:
        work()
    except Exception as error:  # of any kind: the turn or the move is already recorded
        log(f"a branch description could not be written: {type(error).__name__}: {error}")
