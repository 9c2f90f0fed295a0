"""How much room each object takes in its pack: from where it lies to where the next one does."""

from __future__ import annotations

from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.git.packs import Pack


class Extents:
    def __init__(self, pack: Pack) -> None:
        self._offsets = sorted(pack.offsets().values())
        self._last = pack.size() - 20  # where the checksum begins

    def end(self, offset: int) -> int:
        at = bisect_right(self._offsets, offset)
        return self._offsets[at] if at < len(self._offsets) else self._last
