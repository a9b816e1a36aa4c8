"""Numbers for mutants: each is given to one that is stored, and none is left out."""

from __future__ import annotations

import heapq
from collections.abc import Iterable


class Numbers:
    """Gives out the smallest number that nobody has."""

    def __init__(self, taken: Iterable[int]) -> None:
        held = set(taken)
        self._next = max(held) + 1
        self._free = sorted(set(range(1, self._next)) - held)

    def take(self) -> int:
        if self._free:
            return heapq.heappop(self._free)
        self._next += 1
        return self._next - 1

    def give_back(self, number: int) -> None:
        """Nothing came of it: its rule did not apply."""
        heapq.heappush(self._free, number)
