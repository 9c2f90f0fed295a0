"""A text index of many nodes, fast enough to be searched with every letter typed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate


class Words:
    """The case-folded texts of nodes.

    All texts are joined into one string, so that ten thousand prompts are searched with `str.find`.
    """

    def __init__(self, texts: dict[bytes, str] | None = None) -> None:
        self.texts = texts if texts is not None else {}
        self._oids: list[bytes] = []
        self._starts: list[int] = []
        self._all = ""

    def add(self, texts: dict[bytes, str]) -> None:
        self.texts |= texts

    def holding(self, wanted: str) -> Iterator[bytes]:
        """Yield the nodes whose text contains `wanted`, a single line that is not empty."""
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
