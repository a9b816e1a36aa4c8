"""The noise floor of a model: how far its outputs move when every tensor moves by one last place.

A difference between targets within a small multiple of it is rounding, whatever its size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outvote.core.arrays import Array
from outvote.core.case import Data
from outvote.core.model import Model
from outvote.core.outputs import Outputs
from outvote.core.target import Target
from outvote.judge.compare import Comparison
from outvote.judge.distances import distance_relative, noise_of
from outvote.run.pool import Pool, Request

PROBES = (1, 2, 0)  # twice at random, once all tensors away from zero
_INPUTS_PER_PAIR = 3
_INPUTS = 8


@dataclass(frozen=True)
class NoiseFloor:
    """Relative movement of each output on the inputs that were probed."""

    inputs: tuple[int, ...]
    movement: tuple[Array, ...]  # per output, one number per probed input

    def explained(
        self, pairs: Sequence[Comparison], outputs: Mapping[str, Outputs], factor: float
    ) -> set[tuple[str, str]]:
        """The pairs whose inconsistency is rounding."""
        return {pair.targets for pair in pairs if self.explains(pair, outputs, factor)}

    def explains(self, pair: Comparison, outputs: Mapping[str, Outputs], factor: float) -> bool:
        """Whether rounding accounts for every probed input on which the pair is inconsistent."""
        if pair.mismatch is not None:
            return False
        a, b = (outputs[name] for name in pair.targets)
        probed = {index: place for place, index in enumerate(self.inputs)}
        for measured in pair.measured:
            if not measured.inconsistent:
                continue
            rows = [int(i) for i in measured.triggering if int(i) in probed]
            if not rows:
                return False
            x, y = (o.arrays[measured.output][rows] for o in (a, b))
            limit = factor * self.movement[measured.output][[probed[i] for i in rows]]
            if not (distance_relative(x, y) <= limit).all():
                return False
        return True

    def largest(self) -> float:
        return max(float(np.max(m)) for m in self.movement)


def inputs_to_probe(pairs: Sequence[Comparison]) -> tuple[int, ...]:
    """The worst inputs of each inconsistent pair."""
    found: dict[int, None] = {}
    for pair in pairs:
        for measured in pair.measured:
            if measured.inconsistent:
                found.update(dict.fromkeys(map(int, measured.triggering[:_INPUTS_PER_PAIR])))
    return tuple(found)[:_INPUTS]


def measure_noise(
    pool: Pool,
    model: Model,
    data: Data,
    indices: Sequence[int],
    outputs: Mapping[str, Outputs],
    instruments: Sequence[str],
) -> NoiseFloor | None:
    """Run the chosen inputs as they are, and thrice with every tensor moved, in one batch.

    Held against the first run of all inputs, a target whose results depend on the size of the
    batch would pass for noisy. None if no instrument could.
    """
    digests = [pool.blobs.put(array) for array in data.take(indices)]
    count = len(next(iter(outputs.values())).arrays)
    moves: list[dict[str, list[Array]]] = [{} for _ in range(count)]  # per output, by instrument
    arguments = {"model": model.to_json(), "inputs": digests, "batch": len(indices)}
    requests = [
        Request("run", {**arguments, "jitter": seed}, steps=len(model.layers))
        for seed in (None, *PROBES)
    ]
    plain, *probes = pool.ask_each(instruments, requests)
    for runs in probes:
        for name, run in runs.items():
            if not (run.ok and plain[name].ok) or len(run.arrays) != count:
                continue
            for found, moved, still in zip(moves, run.arrays, plain[name].arrays, strict=True):
                same = moved.shape == still.shape
                far = distance_relative(still, moved) if same else np.zeros(len(indices))
                found.setdefault(name, []).append(far)
    if not all(moves):
        return None
    return NoiseFloor(tuple(indices), tuple(map(noise_of, moves)))


def choose_instruments(finished: Mapping[str, Target]) -> list[str]:
    """Targets that measure noise without compiling anything; others only if there is none."""
    eager = [name for name, target in finished.items() if target.is_eager]
    quick = [name for name in eager if finished[name].backend != "jax"]  # JAX compiles each shape
    if len(quick) == 1:  # which may be the one that errs
        quick = eager
    # Theano compiles for minutes; TensorFlow, beside it, does not.
    graphs = [name for name in finished if finished[name].backend != "theano"]
    return quick or eager or graphs or list(finished)


def nudged(array: Array, rng: np.random.Generator) -> Array:
    """An array moved by about one unit in the last place of each element and of its mean size.

    Exact zeros stay: they are padding, or masked, or what a ReLU cut off, and no rounding.
    """
    if array.dtype.kind != "f":
        return array
    epsilon = np.finfo(array.dtype).eps
    with np.errstate(invalid="ignore", over="ignore"):
        wide = array.astype(np.float64)
        size = np.abs(wide)
        finite = size[np.isfinite(size)]
        mean = finite.mean() if finite.size else 0.0
        moved = wide + epsilon * (size + mean) * rng.choice([-1.0, 1.0], size=array.shape)
        return np.where(np.isfinite(wide) & (wide != 0), moved, wide).astype(array.dtype)
