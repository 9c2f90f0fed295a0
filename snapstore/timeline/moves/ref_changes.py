"""Compute the ref moves of branch changes: the cursor and HEAD follow renames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from snapstore.git.ref_names import ARCHIVE, HEADS, cursor_ref
from snapstore.git.refs import Refs, RefValue
from snapstore.timeline.history.operations import RefMove

Rename = tuple[str, str]  # old and new ref name


class RefChanges:
    """A session's refs as they would be after a series of changes."""

    def __init__(self, refs: Refs, session: str, branch: str) -> None:
        self._refs = refs
        self._cursor = cursor_ref(session)
        self._heads = f"{HEADS}{session}/"
        self._archive = f"{ARCHIVE}{session}/"
        self._after: dict[str, RefValue] = {}
        self.branch = branch  # the current branch

    def value(self, name: str) -> RefValue:
        return self._after[name] if name in self._after else self._refs.value(name)

    def names(self, prefix: str) -> list[str]:
        found = {*self._refs.list(prefix), *(name for name in self._after if name.startswith(prefix))}
        return sorted(name for name in found if self.value(name) is not None)

    def rename(self, renames: Iterable[Rename], made: Mapping[str, bytes], gone: Iterable[str] = ()) -> None:
        """Rename refs, all at once; add the refs in `made` and delete those in `gone`."""
        ways = dict(renames)
        arrived = {target: self.value(source) for source, target in ways.items()} | dict(made)
        leaving: dict[str, RefValue] = dict.fromkeys([*ways, *gone])
        followers = {name: self._follow(name, ways) for name in (self._cursor, "HEAD")}
        branch = self._branch_after(ways)
        self._after.update(leaving | arrived | followers)
        self.branch = branch

    def _current_ref(self) -> str:
        """Return the ref of the current branch, which may be archived."""
        listed = self._heads + self.branch
        return listed if self.value(listed) is not None else self._archive + self.branch

    def put_on_branch(self, branch: str) -> None:
        """Put the cursor and HEAD on the tip of another branch."""
        self.branch = branch
        self._after[self._cursor] = self._after["HEAD"] = self._heads + branch

    def put_on_node(self, oid: bytes) -> None:
        """Put the cursor on a node of the current branch, its tip or one before it."""
        tip = self.value(self._heads + self.branch)
        self._after[self._cursor] = self._heads + self.branch if tip == oid else oid

    def _branch_after(self, ways: Mapping[str, str]) -> str:
        """Return the name of the current branch after the renames."""
        target = ways.get(self._current_ref(), "")
        return target.rpartition("/")[2] if target.startswith((self._heads, self._archive)) else self.branch

    def _follow(self, name: str, ways: Mapping[str, str]) -> RefValue:
        """Return the value of the cursor or HEAD after the renames.

        A HEAD whose branch leaves the list goes to the current branch. A cursor at the tip of a branch that enters the
        list refers to that branch from then on.
        """
        value = self.value(name)
        target = ways.get(value if isinstance(value, str) else self._current_ref())
        if target is None or (not isinstance(value, str) and value != self.value(self._current_ref())):
            return value
        if target.startswith(self._heads):
            return target
        return self._heads + self._branch_after(ways) if isinstance(value, str) else value

    def moves(self) -> list[RefMove]:
        """Return one move per ref, in a safe order.

        New names come first and old names last, so that no node is ever without a ref, and the cursor never refers to a
        missing branch.
        """
        found = [(name, self._refs.value(name), value) for name, value in self._after.items()]
        changed = [move for move in found if move[1] != move[2]]
        return sorted(changed, key=_order)


def _order(move: RefMove) -> int:
    _, old, new = move
    return 0 if old is None else 3 if new is None else 2 if isinstance(new, str) else 1
