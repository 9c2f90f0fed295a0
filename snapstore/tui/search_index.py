"""The words of many nodes, to be looked through with every letter that is typed."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Words:
    """What is known of nodes, whatever its case. As one text, ten thousand prompts are looked through in no time."""

    def __init__(self, texts: dict[bytes, str] | None = None) -> None:
        self.texts = texts if texts is not None else {}
        self._oids: list[bytes] = []
        self._starts: list[int] = []
        self._all = ""

    def add(self, texts: dict[bytes, str]) -> None:
        self.texts |= texts

    def holding(self, wanted: str) -> Iterator[bytes]:
        """The nodes that a text of one line, and not an empty one, is found in."""
        if len(self._oids) != len(self.texts):
            self._oids = list(self.texts)
            lengths = (len(text) + 1 for text in self.texts.values())
            self._starts = list(accumulate(lengths, initial=0))
            self._all = "\n".join(self.texts.values())
        at = self._all.find(wanted)
        while at >= 0:
            place = bisect_right(self._starts, at) - 1
            yield self._oids[place]
            at = self._all.find(wanted, self._starts[place + 1])
