"""How long to wait for a target, by what the others needed for the same request."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from outvote.core.target import Run, Target

_LEAST = 30.0  # seconds: a busy machine, a first compilation
_TIMES = 20.0  # as long as the slowest of the others
_SLOWLY = frozenset({"compiles_slowly", "compiles_for_minutes"})


@dataclass
class SharedPatience:
    """One request to several targets: who has answered lets the others hurry.

    A target that does not move while another has long finished is stuck, and need not be waited
    for as long as one that nobody can be held against. Targets that take minutes to compile are.
    """

    longest: float  # what the user allows
    compiles: bool = False  # the request: whole models are compiled, which nobody sees inside of
    _slowest: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, run: Run) -> None:
        """One has answered."""
        if run.ok:
            with self._lock:
                self._slowest = max(self._slowest or 0.0, run.seconds)

    def seconds(self, target: Target) -> float:
        """What is left to the others."""
        slowest = self._slowest
        slowly = _SLOWLY | {"compiles"} if self.compiles else _SLOWLY
        if slowest is None or target.costs & slowly:
            return self.longest
        return min(self.longest, max(_LEAST, _TIMES * slowest))
