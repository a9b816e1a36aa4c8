"""What the runs of one mutant say: does it run, where do targets part, how much (LEMON, 3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.outputs import Outputs
from outvote.core.protocol import Ran
from outvote.core.states import State
from outvote.core.target import Outcome, Run
from outvote.core.truth import Truth
from outvote.judge.compare import Comparison, Settings, compare_all, distance
from outvote.judge.observation import kind_of
from outvote.judge.tolerance import screen_tolerance

Pair = tuple[str, str]
Hidden = Mapping[str, Sequence[State]]  # what layers inside a model gave


@dataclass(frozen=True)
class Judged:
    """The runs of one mutant, held against each other."""

    runs: Mapping[str, Run]
    outputs: Mapping[str, Outputs]
    hidden: Mapping[str, Hidden]
    comparisons: Sequence[Comparison]
    odd: Mapping[str, str]  # new layers on which targets differ visibly: who leaves whom, and how

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
        """ACC: D_MAD summed over inputs and pairs; None where no two targets gave outputs.

        A pair of which one has a gap adds nothing, so that a gap alone never amplifies.
        """
        if len(self.outputs) < 2:
            return None
        return float(sum(distances.sum() for distances in self.mad().values()))


def judge(
    runs: Mapping[str, Run[Ran]], changed: Sequence[str], truth: Truth, settings: Settings
) -> Judged:
    """Compare what the targets gave for one mutant."""
    outputs, hidden = {}, {}
    for name, run in runs.items():
        if run.ok:
            outputs[name], hidden[name] = run.reply.outputs, run.reply.watched
    comparisons = compare_all(outputs, truth, settings)
    partings = {layer: parting(_seen(layer, hidden)) for layer in changed}
    odd = {layer: parted for layer, parted in partings.items() if parted}
    return Judged(runs, outputs, hidden, comparisons, odd)


def parting(seen: Mapping[str, Outputs]) -> str:
    """Which targets leave the largest group that agrees, and how; empty where all agree."""
    groups: list[list[str]] = []
    for name in seen:
        home = (g for g in groups if not any(_apart(seen[other], seen[name]) for other in g))
        own = next(home, None)
        if own is None:
            groups.append([name])
        else:
            own.append(name)
    most = max(groups, key=len, default=[])
    return "; ".join(
        f"{', '.join(group)}: {_apart(seen[most[0]], seen[group[0]])}"
        for group in groups
        if group is not most
    )


def _seen(layer: str, hidden: Mapping[str, Hidden]) -> dict[str, Outputs]:
    return {name: Outputs.of(found[layer]) for name, found in hidden.items() if layer in found}


def _apart(a: Outputs, b: Outputs) -> str:
    """How two targets differ on a hidden layer, instance by instance; empty where they agree."""
    if distance(a, b) < screen_tolerance(a):
        return ""
    if a.dtypes == b.dtypes or len(a.arrays) != len(b.arrays):
        return kind_of(a, b)
    typed = replace(b, dtypes=a.dtypes)  # as if of the same types
    alike = distance(a, typed) < max(screen_tolerance(a), screen_tolerance(b))
    return "type" if alike else kind_of(a, typed)
