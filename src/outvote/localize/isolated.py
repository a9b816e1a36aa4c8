"""The sturdier localisation: each layer alone, fed with one reference's tensors on all targets.

Error that an earlier layer made cannot accuse an innocent one, and the targets can vote on every
layer. A difference counts only when it is beyond what rounding of the layer's input explains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from outvote.bench.noise import nudged
from outvote.bench.stepping import Step, call_alone
from outvote.core.model import Layer
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.core.target import Target
from outvote.judge.compare import Settings, distance, mismatch_of, only_width_differs
from outvote.judge.distances import noise_of
from outvote.judge.refusals import Answers, vote_on
from outvote.judge.tolerance import tolerance_of
from outvote.judge.vote import Vote
from outvote.run.pool import Pool

_PROBES = 2


@dataclass(frozen=True)
class Deed:
    """What one outvoted target did: how its result differs from the majority's, and how far."""

    kind: str  # inconsistency, nan, shape or crash
    distance: float
    triage: str = "bug"


@dataclass(frozen=True)
class Fault:
    """A layer on which targets differ though they were given the same tensors."""

    layer: Layer
    given: tuple[State, ...]
    outputs: Mapping[str, Outputs]
    kind: str  # inconsistency, nan, shape or crash
    distance: float
    tolerance: float
    vote: Vote
    failures: Mapping[str, str]
    deeds: Mapping[str, Deed] = field(default_factory=dict)  # by outvoted target

    def deed_of(self, name: str | None) -> Deed:
        """What a target is accused of; where nobody is, what there is to see."""
        return self.deeds.get(name or "", Deed(self.kind, self.distance))

    @property
    def is_refused(self) -> bool:
        """Whether the majority gave no result: it refuses what others accept."""
        return self.vote.decided and all(name in self.failures for name in self.vote.majority)


def judge_step(
    pool: Pool, step: Step, reference: str, targets: Mapping[str, Target], settings: Settings
) -> tuple[dict[str, float], float, Fault | None]:
    """Distances of all targets to the reference on this layer, the tolerance, and the fault."""
    distances = {
        name: distance(step.isolated[reference], outputs)
        for name, outputs in step.isolated.items()
        if name != reference
    }
    tolerance = tolerance_of(step.isolated[reference])
    unclear = any(not d < tolerance for d in distances.values())
    if unclear and all(np.isfinite(d) for d in distances.values()):
        names = list(step.isolated)
        noise = noise_floor(pool, names, step.layer, step.given, step.isolated)
        tolerance = max(tolerance, settings.noise_factor * noise)
        unclear = any(not d < tolerance for d in distances.values())
    if not unclear and not step.failed:
        return distances, tolerance, None
    return distances, tolerance, _fault(step, distances, tolerance, targets)


def noise_floor(
    pool: Pool,
    names: Sequence[str],
    layer: Layer,
    given: Sequence[State],
    plain: Mapping[str, Outputs],
) -> float:
    """How far a layer's output moves when its input moves by one unit in the last place."""
    movements: dict[str, list[float]] = {}
    for seed in range(_PROBES):
        rng = np.random.default_rng(seed)
        moved = [(nudged(array, rng), mask) for array, mask in given]
        for name, outputs in call_alone(pool, names, layer, moved).items():
            movements.setdefault(name, []).append(distance(plain[name], outputs))
    return float(noise_of(movements)) if movements else 0.0


def _fault(
    step: Step, distances: Mapping[str, float], tolerance: float, targets: Mapping[str, Target]
) -> Fault:
    agreements = [
        (a, b)
        for a, b in combinations(step.isolated, 2)
        if distance(step.isolated[a], step.isolated[b]) < tolerance
    ]
    answers = Answers([array for array, _ in step.given], step.isolated, step.failed)
    voted = vote_on(answers, agreements, targets, step.layer.kind)
    finite = [d for d in distances.values() if np.isfinite(d)]
    worst = max(finite, default=0.0)
    if any(np.isnan(d) for d in distances.values()):
        kind, worst = "nan", float("nan")
    elif any(np.isinf(d) for d in distances.values()):
        kind = "shape" if _mismatched(step) else "inconsistency"
    else:
        kind = "inconsistency" if worst >= tolerance else "crash"
    failures = {name: run.message for name, run in step.failed.items()}
    deeds = {name: _deed(step, name, voted) for name in voted.outvoted}
    return Fault(
        step.layer, step.given, step.isolated, kind, worst, tolerance, voted, failures, deeds
    )


def _deed(step: Step, name: str, voted: Vote) -> Deed:
    if name in step.failed:
        return Deed("crash", 0.0)
    own = step.isolated[name]
    winners = [step.isolated[winner] for winner in voted.majority if winner in step.isolated]
    if not winners or mismatch_of(winners[0], own) is not None:
        harmless = bool(winners) and only_width_differs(winners[0], own)
        return Deed("shape", 0.0, "difference" if harmless else "bug")
    apart = distance(winners[0], own)
    return Deed("nan" if np.isnan(apart) else "inconsistency", apart)


def _mismatched(step: Step) -> bool:
    pairs = combinations(step.isolated.values(), 2)
    return any(mismatch_of(a, b) is not None for a, b in pairs)
