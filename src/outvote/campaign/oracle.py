"""What the runs of one mutant say: does it run, where do targets part, how much (LEMON, 3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from outvote.core.arrays import Array
from outvote.core.outputs import Hidden, Outputs, hidden_of, outputs_of
from outvote.core.target import Outcome, Run
from outvote.core.truth import Truth
from outvote.judge.compare import Comparison, Settings, compare_all, distance

Pair = tuple[str, str]
_SCREEN = 1e-5  # relative difference of a hidden layer that is worth a closer look


@dataclass(frozen=True)
class Judged:
    """The runs of one mutant, held against each other."""

    runs: Mapping[str, Run]
    outputs: Mapping[str, Outputs]
    hidden: Mapping[str, Hidden]
    comparisons: Sequence[Comparison]
    odd: tuple[str, ...]  # new layers on which targets differ visibly

    @property
    def valid(self) -> bool:
        """A model that no target can run is not a test of any."""
        return bool(self.outputs)

    @property
    def failed(self) -> dict[str, Run]:
        """Targets that failed where others did not; clean gaps are not failures."""
        return {
            name: run
            for name, run in self.runs.items()
            if not run.ok and run.outcome is not Outcome.UNSUPPORTED
        }

    @property
    def apart(self) -> list[Comparison]:
        return [pair for pair in self.comparisons if pair.inconsistent]

    @property
    def suspicious(self) -> bool:
        return self.valid and bool(self.failed or self.apart or self.odd)

    def mad(self) -> dict[Pair, Array]:
        """D_MAD of the first output, per input; NaN counts as nothing here."""
        return {
            pair.targets: np.nan_to_num(m.distances, nan=0.0)
            for pair in self.comparisons
            for m in pair.measured
            if m.name == "mad"
        }

    @property
    def acc(self) -> float | None:
        """ACC: D_MAD summed over inputs and pairs; None where not all targets gave outputs."""
        if not self.outputs or len(self.outputs) < len(self.runs):
            return None
        return float(sum(distances.sum() for distances in self.mad().values()))


def judge(
    runs: Mapping[str, Run], changed: Sequence[str], truth: Truth, settings: Settings
) -> Judged:
    """Compare what the targets gave for one mutant."""
    outputs, hidden = {}, {}
    for name, run in runs.items():
        if run.ok:
            outputs[name], hidden[name] = outputs_of(run), hidden_of(run)
    comparisons = compare_all(outputs, truth, settings)
    odd = tuple(layer for layer in changed if _differs(layer, hidden))
    return Judged(runs, outputs, hidden, comparisons, odd)


def _differs(layer: str, hidden: Mapping[str, Hidden]) -> bool:
    seen = [
        Outputs(tuple(a for a, _ in h.states[layer]), tuple(h.dtypes[layer]))
        for h in hidden.values()
        if layer in h.states
    ]
    return any(not distance(a, b) < _SCREEN for a, b in combinations(seen, 2))
