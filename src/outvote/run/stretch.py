"""How many layers targets compute before they wait for each other."""

from __future__ import annotations

from dataclasses import dataclass

_SECONDS = 0.25  # that targets may be ahead of who looks at their layers
_BYTES = 256 << 10  # that one target gives in these layers


@dataclass(frozen=True)
class Stretch:
    """Small layers many at a time, so that nobody waits for nothing; large or slow ones few.

    So little is held, and little done in vain where the first fault is all that is wanted.
    """

    layers: int = 1

    def is_over(self, layers: int, size: int) -> bool:
        """Whether enough was computed: a large layer may come where small ones did before."""
        return layers >= self.layers or size >= _BYTES

    def after(self, seconds: float, size: int) -> Stretch:
        """The next one, by what the last one took."""
        cost = max(seconds / _SECONDS, size / _BYTES, 0.5)  # at most twice as many
        return Stretch(max(1, int(self.layers / cost)))
