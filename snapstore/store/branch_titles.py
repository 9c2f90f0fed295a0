"""A branch's title for people who read the store with git: its first prompt, as the description of the branch (M-15).

Descriptions follow their branches wherever refs move, through the journal, and only save people time: where one cannot
be written the change itself stands, and a line in the log says why.
"""

from __future__ import annotations

from snapstore.git import branch_descriptions
from snapstore.git.refs import travels_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from snapstore.store.handle import StoreHandle
    from snapstore.store.journal import RefMove

# Where a branch can be: listed, or out of the list in one way or the other.
_PLACES = tuple(f"refs/{place}/" for place in ("heads", "snapstore/archive", "snapstore/deleted", "snapstore/pruned"))
CONFIG = "../store.git/config"  # as the journal names it, which writes it along with state files


def follow(store: StoreHandle, moves: list[RefMove]) -> None:
    """Move descriptions along with branches that have another name now, and remove those of branches that are gone."""
    travels, _, lost = travels_in(move for move in moves if move[0].startswith(_PLACES))
    if travels or lost:
        _tried(store, lambda: branch_descriptions.follow(store.shadow.git_dir, dict(travels), lost))


def describe(store: StoreHandle, branch: str, prompt: str) -> None:
    """Describe a branch by its first prompt, unless it has a description."""
    _tried(
        store, lambda: branch_descriptions.describe(store.shadow.git_dir, branch, branch_descriptions.title_of(prompt))
    )


def without(store: StoreHandle, change: Callable[[str], str | None]) -> dict[str, bytes | None]:
    """Return the store's configuration for the journal, with what is forgotten taken out of descriptions."""
    text = branch_descriptions.rewritten(store.shadow.git_dir, change)
    return {} if text is None else {CONFIG: text.encode("utf-8", "replace")}


def _tried(store: StoreHandle, work: Callable[[], None]) -> None:
    try:
        work()
    except Exception as error:  # of whatever kind: the turn or the move is recorded
        store.log(f"a branch description could not be written: {type(error).__name__}: {error}")
