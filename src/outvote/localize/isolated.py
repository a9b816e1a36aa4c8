"""The sturdier localisation: each layer alone, fed with one reference's tensors on all targets.

Error that an earlier layer made cannot accuse an innocent one, and the targets can vote on every
layer. A difference counts only when it is beyond what rounding of the layer's input explains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from outvote.bench.noise import (
    Ask,
    Seed,
    choose_instruments,
    measured,
    moves_only,
    nudged,
    nudged_all,
)
from outvote.bench.steps import Step, call_alone
from outvote.core.model import Layer
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.core.target import Target
from outvote.judge.compare import Settings, distance, only_width_differs
from outvote.judge.observation import Observation, kind_of, kind_of_failure, observed
from outvote.judge.precision import Coarser, coarser
from outvote.judge.rounding import Rounding, layer_rounding
from outvote.judge.tolerance import terms_of
from outvote.judge.vote import Vote
from outvote.run.pool import Pool


@dataclass(frozen=True)
class Deed:
    """What one outvoted target did: how its result differs from the majority's, and how far."""

    kind: str  # inconsistency, nan, shape, crash or hang
    distance: float
    triage: str = "bug"


@dataclass(frozen=True)
class Fault:
    """A layer on which targets differ though they were given the same tensors."""

    layer: Layer
    given: tuple[State, ...]
    outputs: Mapping[str, Outputs]
    kind: str  # inconsistency, nan, shape, crash or hang
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
    pool: Pool, step: Step, targets: Mapping[str, Target], settings: Settings
) -> tuple[Rounding, Fault | None]:
    """What rounding explains on this layer, and the fault that it does not."""
    given = [state.array for state in step.given]
    terms = terms_of([step.layer], given)
    rounding = layer_rounding(step.isolated.values(), terms, settings.noise_factor)
    apart = [gap for gap in rounding.gaps(step.isolated).values() if not gap.explained]
    if not apart and not step.failed:
        return rounding, None  # all agree
    spoken = next(iter(targets.values())).dialect
    if any(math.isfinite(gap.distance) for gap in apart) and not moves_only(spoken, [step.layer]):
        names = choose_instruments({name: targets[name] for name in step.isolated})
        ask = asking_alone(pool, names, step.layer, step.given)
        plain = {name: step.isolated[name] for name in names}
        rounding = measured(rounding, step.isolated, ask, plain)
    seen = observed(given, step.isolated, step.failed, rounding, targets, step.layer.kind)
    if seen.kind is None:
        return rounding, None
    return rounding, _fault(step, seen, _declared(pool, seen))


def _declared(pool: Pool, seen: Observation) -> dict[str, Coarser]:
    """Who of the outvoted says that it computes in fewer bits."""
    hellos = pool.start(seen.vote.outvoted)
    told = {name: coarser(run.reply.precision) for name, run in hellos.items() if run.ok}
    return {name: setting for name, setting in told.items() if setting is not None}


def asking_alone(pool: Pool, names: Sequence[str], layer: Layer, given: Sequence[State]) -> Ask:
    """Calls a layer inside open sessions, its tensors moved here."""

    def ask(seeds: Sequence[Seed]) -> list[dict[str, Outputs]]:
        found = []
        for seed in seeds:
            moved = [state.but(nudged(state.array, seed, state.dtype)) for state in given]
            found.append(nudged_all(call_alone(pool, names, layer, moved), seed))
        return found

    return ask


def _fault(step: Step, seen: Observation, declared: Mapping[str, Coarser]) -> Fault:
    failures = {name: run.message for name, run in step.failed.items()}
    deeds = {name: _deed(step, name, seen, declared.get(name)) for name in seen.vote.outvoted}
    return Fault(
        step.layer,
        step.given,
        step.isolated,
        seen.kind or "",
        math.nan if seen.kind == "nan" else seen.distance,
        seen.tolerance,
        seen.vote,
        failures,
        deeds,
    )


def _deed(step: Step, name: str, seen: Observation, setting: Coarser | None) -> Deed:
    if name in step.failed:
        return Deed(kind_of_failure(step.failed[name]), 0.0)
    own = step.isolated[name]
    winners = [step.isolated[winner] for winner in seen.vote.majority if winner in step.isolated]
    if not winners:
        return Deed("shape", 0.0)  # a result where the others refuse
    kind = kind_of(winners[0], own)
    if kind == "shape":
        harmless = only_width_differs(winners[0], own)
        return Deed(kind, 0.0, "difference" if harmless else "bug")
    times = seen.rounding.gap(winners[0], own).times
    own_precision = kind == "inconsistency" and setting and setting.explains(times, step.layer)
    return Deed(kind, distance(winners[0], own), "precision" if own_precision else "bug")
