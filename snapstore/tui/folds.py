"""The rows of a snapshot with some runs unfolded, and the line of each node."""

from __future__ import annotations

from snapstore.surface.tree_layout import Row
from snapstore.tui.snapshot import Snapshot


class Folds:
    """The fold state of runs, which outlives a snapshot: opened runs stay open.

    Opening or closing one run costs the same in a small tree and in a large one.
    """

    def __init__(self) -> None:
        self.lines: list[Row] = []
        self._snapshot: Snapshot | None = None
        self._all_open = False
        self._others: set[bytes] = set()  # keys of the runs whose state differs from `_all_open`
        self._places: dict[bytes, int] | None = None

    def load(self, snapshot: Snapshot, visible: bytes | None) -> None:
        """Load a snapshot, and open the run that hides the node `visible`."""
        self._snapshot = snapshot
        around = snapshot.runs.get(visible) if visible is not None else None
        if around is not None and not self._is_open(around):
            self._change(around)
        if not self._others:
            self._take(list(snapshot.unfolded if self._all_open else snapshot.rows))
            return
        lines: list[Row] = []
        for row in snapshot.rows:
            if row.folded and self._is_open(row):
                lines += _unfolded(row)
            else:
                lines.append(row)
        self._take(lines)

    def place(self, key: bytes | None) -> int | None:
        """Return the line of a node, or of a folded run by its key."""
        if self._places is None:
            self._places = {
                row.node.oid if row.node is not None else key_of(row): at
                for at, row in enumerate(self.lines)
                if is_selectable(row)
            }
        return self._places.get(key) if key is not None else None

    def reveal(self, oid: bytes) -> int | None:
        """Return the line of a node, unfolding its run if needed; None if it is not drawn."""
        place = self.place(oid)
        if place is None and self._snapshot is not None and oid in self._snapshot.runs:
            self.load(self._snapshot, oid)
            place = self.place(oid)
        return place

    def toggle(self, at: int) -> int | None:
        """Unfold the run in a line, or fold the run around its node.

        Returns the line to select afterwards.
        """
        row = self._around(at)
        if row is None:
            return None
        self._change(row)
        lines, node = self.lines, self.lines[at].node
        if node is None:
            lines[at : at + 1] = _unfolded(row)
            self._take(lines)
            return at
        first = at - row.folded.index(node)
        lines[first : first + len(row.folded)] = [row]
        self._take(lines)
        return first

    def toggle_all(self, at: int) -> int | None:
        """Unfold every run, or fold all if every run is open.

        Returns the line to select afterwards.
        """
        if self._snapshot is None:
            return None
        row, around = self.lines[at], self._around(at)
        self._all_open = bool(self._others) or not self._all_open
        self._others = set()
        self.load(self._snapshot, None)
        stay = row.node if row.node is not None else around.folded[0] if around is not None else None
        # A linear search costs less than building the map of all places.
        places = (at for at, row in enumerate(self.lines) if row is around or (row.node is stay and stay is not None))
        return next(places, None)

    def _around(self, at: int) -> Row | None:
        row = self.lines[at]
        if row.node is None or self._snapshot is None:
            return row if row.folded else None
        return self._snapshot.runs.get(row.node.oid)

    def _is_open(self, row: Row) -> bool:
        return (key_of(row) in self._others) != self._all_open

    def _change(self, row: Row) -> None:
        self._others ^= {key_of(row)}

    def _take(self, lines: list[Row]) -> None:
        self.lines, self._places = lines, None


def key_of(row: Row) -> bytes:
    """Return the key of a run: its oldest node, which a growing run keeps."""
    return row.folded[-1].oid


def is_selectable(row: Row) -> bool:
    """Return whether a row can be selected. The joins of branches cannot."""
    return row.node is not None or bool(row.folded)


def _unfolded(row: Row) -> list[Row]:
    return [Row(row.depth, node) for node in row.folded]
