"""Lets targets do an exercise of training and holds what they give against each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.noise import Seed, choose_instruments, measured, nudged
from outvote.core.arrays import Array
from outvote.core.dialect import dialect
from outvote.core.exercises import Exercise, PartTold, Pull
from outvote.core.model import Model
from outvote.core.outputs import Outputs
from outvote.core.specimen import Specimen
from outvote.core.target import Outcome, Run
from outvote.judge.observation import Observation, observed
from outvote.judge.rounding import Rounding, layer_rounding, model_rounding
from outvote.judge.tolerance import (
    LAYER_PLACES,
    LOST_DIGITS,
    MORE_PROBES,
    PLACE,
    PROBES,
    base_tolerance,
    terms_of,
)
from outvote.run.settle import ask_all_settled, ask_each_settled


@dataclass(frozen=True)
class Exercised:
    """What targets made of an exercise; those that cannot do such things are left out."""

    exercise: Exercise
    replies: Mapping[str, Any]
    failures: Mapping[str, Run]
    # What was measured of its noise, by seed: the same for all parts.
    moved: dict[tuple[Seed, bool], Exercised] = field(
        default_factory=dict, compare=False, repr=False
    )

    def told(self, part: str) -> dict[str, PartTold]:
        """One part, by target."""
        return {name: self.exercise.told(part, reply) for name, reply in self.replies.items()}

    def outputs(self, part: str) -> dict[str, Outputs]:
        return {name: told.outputs for name, told in self.told(part).items()}

    def names(self, part: str) -> tuple[str, ...]:
        """What the arrays of a part are; every target names the same."""
        return next((told.names for told in self.told(part).values()), ())


def do(bench: Bench, exercise: Exercise, names: Sequence[str], exact: bool = False) -> Exercised:
    """The exercise on these targets."""
    bench.runs += 1
    runs = ask_all_settled(bench.pool, names, exercise.request(bench.pool.blobs, exact))
    return exercised(exercise, runs)


def do_each(
    bench: Bench, exercises: Sequence[Exercise], names: Sequence[str], exact: bool = False
) -> list[Exercised]:
    """Several, one after the other; each target goes on to its next without waiting."""
    bench.runs += len(exercises)
    requests = [exercise.request(bench.pool.blobs, exact) for exercise in exercises]
    found = ask_each_settled(bench.pool, names, requests)
    return [exercised(*pair) for pair in zip(exercises, found, strict=True)]


def exercised(exercise: Exercise, runs: Mapping[str, Run]) -> Exercised:
    """What became of an exercise."""
    gaps = [name for name, run in runs.items() if run.outcome is Outcome.UNSUPPORTED]
    return Exercised(
        exercise,
        {name: run.reply for name, run in runs.items() if run.ok},
        {name: run for name, run in runs.items() if not run.ok and name not in gaps},
    )


def do_wide(bench: Bench, exercise: Exercise, names: Sequence[str]) -> Exercised:
    """The exercise in float64, on those of the targets that can."""
    able = [name for name in names if bench.targets[name].can("float64")]
    return do(bench, wide_of(bench, exercise), able, exact=True)


def wide_of(bench: Bench, exercise: Exercise) -> Exercise:
    return exercise.wide(lambda *given: _wide(bench, *given))


def _wide(bench: Bench, model: Model, inputs: tuple[Array, ...]) -> tuple[Model, tuple[Array, ...]]:
    widening = dialect(model.dialect).widening
    if widening is None:
        return model, inputs
    found = widening.float64_of(Specimen(model, inputs), bench.pool.blobs)
    return found.model, found.inputs


def observe(
    bench: Bench, done: Exercised, part: str, *, whole: bool = False, kind: str | None = None
) -> Observation:
    """One part of what targets gave, held against each other; `kind` of layer tells the votes.

    `whole`: of a whole model, where rounding of many layers adds up.
    """
    outputs = done.outputs(part)
    rounding = rounding_of(bench, done, part, whole)
    if _is_open(rounding, outputs):
        rounding = _with_noise(bench, done, part, rounding, whole)
    if part == "gradient" and not whole and _is_open(rounding, outputs):
        rounding = _with_terms(bench, done, rounding)
    given = done.exercise.inputs if isinstance(done.exercise, Pull) else ()
    return observed(given, outputs, done.failures, rounding, bench.targets, kind)


def _is_open(rounding: Rounding, outputs: Mapping[str, Outputs]) -> bool:
    """Whether numbers are apart by more than is explained."""
    gaps = rounding.gaps(outputs).values()
    return any(not gap.explained and math.isfinite(gap.distance) for gap in gaps)


def rounding_of(bench: Bench, done: Exercised, part: str, whole: bool = False) -> Rounding:
    """What needs no explanation; a gradient that is exactly 0 has the floor of the whole case."""
    outputs = done.outputs(part)
    if whole:
        found = model_rounding(outputs.values(), bench.settings)
    else:
        terms = _terms(done.exercise)
        found = layer_rounding(outputs.values(), terms, bench.settings.noise_factor)
    return replace(found, floors=_floors(outputs)) if part == "gradient" else found


def _floors(outputs: Mapping[str, Outputs]) -> tuple[float, ...]:
    """A few last places of the largest gradient of the case, by whoever gives the least."""
    some = next(iter(outputs.values()), None)
    scale = min(map(_largest_of, outputs.values()), default=0.0)
    return tuple(base_tolerance(d, LAYER_PLACES) * scale for d in some.dtypes) if some else ()


def _with_terms(bench: Bench, done: Exercised, rounding: Rounding) -> Rounding:
    """The floors of a case that is zero as a whole: what is left of its terms is rounding.

    In float64 that shrinks as the last place does, and so tells how large the terms are that
    cancel; a gradient that is not zero stays as it is.
    """
    outputs = done.outputs("gradient")
    wide = wide_of(bench, done.exercise)
    able = [name for name in outputs if bench.targets[name].can("float64")]
    moved = [wide.changed(partial(nudged, seed=seed)) for seed in (None, *PROBES)]
    runs = do_each(bench, moved, able, exact=True)
    found = [outs for run in runs for outs in run.outputs("gradient").values()]
    left = max((_largest_of(outs) for outs in found), default=0.0)
    given = max(map(_largest_of, outputs.values()))
    types = next(iter(outputs.values())).dtypes
    shares = [PLACE.get(dtype, 1.0) / PLACE["float64"] for dtype in types]
    floors = [
        max(floor, LAYER_PLACES * left * share)
        if share > 1 and left * share < LOST_DIGITS * LAYER_PLACES * given
        else floor
        for floor, share in zip(rounding.floors, shares, strict=True)
    ]
    return replace(rounding, floors=tuple(floors))


def _largest_of(outputs: Outputs) -> float:
    return max(map(_largest, outputs.arrays), default=0.0)


def _largest(array: Array) -> float:
    sizes = np.abs(array.astype(np.float64))
    return float(np.where(np.isfinite(sizes), sizes, 0.0).max(initial=0.0))


def _terms(exercise: Exercise) -> int:
    """How many numbers are added at most: of a layer forward, of a batch and its places back."""
    if not isinstance(exercise, Pull):
        return 1
    given = exercise.truth if exercise.truth is not None else exercise.inputs[0]
    back = [array for array in (*exercise.cotangents, given) if array is not None]
    sums = [array.size // max(1, array.shape[-1] if array.ndim else 1) for array in back]
    return max([terms_of(exercise.model.layers, exercise.inputs), *sums])


def _with_noise(
    bench: Bench, done: Exercised, part: str, rounding: Rounding, whole: bool
) -> Rounding:
    """Measured by moving what goes in; of a whole model, what every layer gives as well."""
    outputs = done.outputs(part)
    instruments = choose_instruments({name: bench.targets[name] for name in outputs})

    def ask(seeds: Sequence[Seed]) -> list[dict[str, Outputs]]:
        new = [seed for seed in seeds if (seed, whole) not in done.moved]
        moves = [
            moved_by(bench, done.exercise, instruments, seed)
            if whole
            else done.exercise.changed(partial(nudged, seed=seed))
            for seed in new
        ]
        for seed, moved in zip(new, do_each(bench, moves, instruments), strict=True):
            done.moved[seed, whole] = moved
        return [done.moved[seed, whole].outputs(part) for seed in seeds]

    # A whole model is looked into where that does not explain it.
    rounds = (PROBES,) if whole else (PROBES, MORE_PROBES)
    plain = {name: outputs[name] for name in instruments}
    return measured(rounding, outputs, ask, plain, rounds)


def moved_by(bench: Bench, exercise: Exercise, names: Sequence[str], seed: Seed) -> Exercise:
    """Of a whole model: with everything that goes in moved, and what every layer gives as well."""
    moved = exercise.changed(partial(nudged, seed=seed))
    quick = all(bench.targets[name].is_eager for name in names)  # others would compile it anew
    return replace(moved, jitter=seed) if quick and isinstance(moved, Pull) else moved
