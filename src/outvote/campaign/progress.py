"""How far a campaign has come, for those who watch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from outvote.core.events import MutantsTested


@dataclass(frozen=True)
class Progress:
    """What a person wants to see while it runs."""

    tested: int = 0
    valid: int = 0
    rounding: int = 0
    seconds: float = 0.0
    findings: int = 0
    best: float = 0.0  # the largest ACC of a mutant over its seed's
    rules: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # used, succeeded
    share: float = 0.0  # of the budget
    last: str = ""  # title of the newest finding
    kinds: int = 0  # of layers that could be drawn and were run
    values: int = 0  # classes of parameters' values that were run

    @property
    def told(self) -> MutantsTested:
        """The same for those who follow the store."""
        return MutantsTested(
            self.tested,
            self.valid,
            self.findings,
            seconds=round(self.seconds, 3),
            share=round(self.share, 4),
            kinds=self.kinds,
            values=self.values,
        )


Onlooker = Callable[[Progress], None]
