"""The noise floor: how far results move when every tensor moves by about one last place.

A difference between targets within a small multiple of it is rounding, whatever its size. There
is one measure, for whole models, specimens and single layers: the same probes, and more of them
where it is close. Workers move the tensors of a graph themselves; where that would take another
slow compilation, or there is no graph but a session, what goes in and comes out is moved here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

import numpy as np

from outvote.core.arrays import Array
from outvote.core.case import Case
from outvote.core.dialect import dialect
from outvote.core.instances import count_of
from outvote.core.model import Layer, Model
from outvote.core.outputs import Outputs
from outvote.core.protocol import RunModel
from outvote.core.target import Target
from outvote.judge.compare import Comparison, Settings, mismatch_of
from outvote.judge.distances import looks, noise_of
from outvote.judge.rounding import Rounding
from outvote.judge.tolerance import ELEMENT, MORE_PROBES, PLACE, PROBES
from outvote.run.pool import Pool
from outvote.run.settle import ask_each_settled

_WORST = 8  # inputs that are measured first: where a fault is, these settle it

Seed = int | None  # of a probe; None: nothing is moved
Ask = Callable[[Sequence[Seed]], list[dict[str, Outputs]]]
"""What instruments give for each seed; who fails is left out."""


def measured(
    rounding: Rounding,
    outputs: Mapping[str, Outputs],
    ask: Ask,
    plain: Mapping[str, Outputs] | None,
    rounds: Sequence[Sequence[int]] = (PROBES, MORE_PROBES),
) -> Rounding:
    """The limits raised by the noise floor, for results of targets that are held to them.

    `plain` is what the instruments gave for the same tensors, unmoved; None: it is asked for.
    Nothing is raised where no instrument gives a result. A further round of probes is asked for
    where it is close.
    """
    still = ask([None])[0] if plain is None else plain
    moves: dict[str, list[list[Array]]] = {}
    for seeds in rounds:
        for moved in ask(seeds):
            for name, found in moved.items():
                if name in still and mismatch_of(still[name], found) is None:
                    moves.setdefault(name, []).append(_movement(still[name], found))
        rounding = rounding.with_noise(_floor(moves))
        if not rounding.is_close(outputs):
            break
    return rounding


def _movement(still: Outputs, moved: Outputs) -> list[Array]:
    sides = zip(still.rows, moved.rows, still.dtypes, strict=True)
    return [looks(x, y, dtype) for x, y, dtype in sides]


def _floor(moves: Mapping[str, Sequence[Sequence[Array]]]) -> list[Array]:
    """Of each output; instruments whose outputs have the form of the first one's take part."""
    if not moves:
        return []
    form = [m.shape for m in next(iter(moves.values()))[0]]
    alike = {n: found for n, found in moves.items() if [m.shape for m in found[0]] == form}
    return [
        noise_of({name: [probe[place] for probe in found] for name, found in alike.items()})
        for place in range(len(form))
    ]


def asking(
    pool: Pool,
    model: Model,
    inputs: Sequence[Array],
    instruments: Sequence[str],
    exact: bool = False,
) -> Ask:
    """Runs a model, all inputs in one batch: in smaller ones a target may give other results."""
    slow = any(pool.targets[name].compiles_slowly for name in instruments)

    def request(seed: Seed) -> RunModel:
        pairs = zip(inputs, model.inputs, strict=True)
        moved = [nudged(a, seed, item.dtype) for a, item in pairs] if slow else inputs
        return RunModel(
            model=model,
            inputs=tuple(pool.blobs.put(array) for array in moved),
            batch=max(1, count_of(inputs, [item.batch for item in model.inputs])),
            jitter=None if slow else seed,
            exact=exact,
            steps=len(model.layers),
        )

    def ask(seeds: Sequence[Seed]) -> list[dict[str, Outputs]]:
        answers = ask_each_settled(pool, instruments, [request(seed) for seed in seeds])
        found = [{n: run.reply.outputs for n, run in runs.items() if run.ok} for runs in answers]
        if not slow:
            return found
        return [nudged_all(some, seed) for some, seed in zip(found, seeds, strict=True)]

    return ask


def nudged_all(outputs: Mapping[str, Outputs], seed: Seed) -> dict[str, Outputs]:
    """Results moved as a worker moves them: they are tensors of the graph too."""
    return {
        name: Outputs(
            tuple(nudged(a, seed, t) for a, t in zip(found.arrays, found.dtypes, strict=True)),
            found.dtypes,
            found.batch,
        )
        for name, found in outputs.items()
    }


def choose_instruments(finished: Mapping[str, Target]) -> list[str]:
    """Targets that measure noise without compiling anything; others only if there is none."""
    eager = [name for name, target in finished.items() if target.is_eager]
    quick = [name for name in eager if "compiles_per_shape" not in finished[name].costs]
    if len(quick) == 1:  # which may be the one that errs
        quick = eager
    graphs = [name for name in finished if "compiles_for_minutes" not in finished[name].costs]
    return quick or eager or graphs or list(finished)


def moves_only(spoken: str, layers: Sequence[Layer], covered: bool = False) -> bool:
    """Whether layers of a dialect compare, cut off and move numbers, and compute none.

    Given the same tensors they give the same: there is no rounding that noise could tell of.
    `covered`: a formula gives their result.
    """
    reference = dialect(spoken).reference
    return reference is not None and all(reference.is_exact(x.kind, covered) for x in layers)


def nudged(array: Array, seed: Seed, dtype: str = "") -> Array:
    """An array moved by about one unit in the last place of each element and of its mean size.

    Seed 0 moves all away from zero. Exact zeros stay: they are padding, or masked, or what a
    ReLU cut off, and no rounding.
    """
    if seed is None or array.dtype.kind != "f":
        return array
    epsilon = PLACE.get(dtype) or np.finfo(array.dtype).eps
    with np.errstate(invalid="ignore", over="ignore"):
        wide = array.astype(np.float64)
        size = np.abs(wide)
        finite = size[np.isfinite(size)]
        mean = finite.mean() if finite.size else 0.0
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=array.shape)
        moved = wide + epsilon * (size + mean) * (signs if seed else np.sign(wide))
        return np.where(np.isfinite(wide) & (wide != 0), moved, wide).astype(array.dtype)


# Whole models: every input that differs is measured.


@dataclass(frozen=True)
class NoiseFloor:
    """What rounding explains of a model's outputs, on the inputs that were measured."""

    inputs: tuple[int, ...]
    rounding: Rounding  # its rows are these inputs

    def left(self, pair: Comparison, outputs: Mapping[str, Outputs]) -> tuple[int, ...]:
        """The inputs that make a pair inconsistent without being explained, worst first.

        An input that was not measured is not explained. None are left where they are too few to
        make the pair inconsistent.
        """
        return self._left(pair, outputs, only_measured=False)

    def settles(self, pair: Comparison, outputs: Mapping[str, Outputs]) -> bool:
        """Whether the measured inputs show that rounding does not explain a pair."""
        return bool(self._left(pair, outputs, only_measured=True))

    def _left(
        self, pair: Comparison, outputs: Mapping[str, Outputs], only_measured: bool
    ) -> tuple[int, ...]:
        left: dict[int, None] = {}
        for found in pair.measured:
            if found.inconsistent:
                known = np.isin(found.triggering, self.inputs)
                beyond = self._beyond(pair, found.output, found.triggering, outputs)
                rows = found.triggering[beyond & known if only_measured else beyond | ~known]
                if len(rows) >= found.needed:
                    left.update(dict.fromkeys(map(int, rows)))
        return tuple(left)

    def _beyond(
        self, pair: Comparison, output: int, rows: Array, outputs: Mapping[str, Outputs]
    ) -> Array:
        """Which of some inputs are farther apart than the floor explains, where it was measured."""
        place = {index: place for place, index in enumerate(self.inputs)}
        limits = self.rounding.limits(output, len(self.inputs))
        a, b = (outputs[name] for name in pair.targets)
        far = looks(a.rows[output][rows], b.rows[output][rows], a.dtypes[output])
        allowed = limits[:, [place.get(int(row), 0) for row in rows]]
        beyond: Array = ~((far < allowed) | (far == 0)).all(axis=0)
        return beyond

    def explained(
        self, pairs: Sequence[Comparison], outputs: Mapping[str, Outputs]
    ) -> set[tuple[str, str]]:
        """The pairs whose inconsistency is rounding."""
        alike = [pair for pair in pairs if pair.mismatch is None]
        return {pair.targets for pair in alike if not self.left(pair, outputs)}

    def is_close(self, outputs: Mapping[str, Outputs]) -> bool:
        """Whether more probes may explain what these do not."""
        return self.rounding.is_close({n: _rows(o, self.inputs) for n, o in outputs.items()})

    def largest(self) -> float:
        return self.rounding.moved

    def limit(self, index: int) -> float | None:
        """The relative distance that rounding explains on one input; None: not measured."""
        if index not in self.inputs:
            return None
        row = self.inputs.index(index)
        outputs = range(len(self.rounding.base))
        return max(float(self.rounding.limits(i, len(self.inputs))[0, row]) for i in outputs)

    def joined(self, more: NoiseFloor) -> NoiseFloor:
        """With further inputs."""
        sides = zip(self.rounding.noise, more.rounding.noise, strict=True)
        noise = [np.concatenate([a, b], axis=1) for a, b in sides]
        return NoiseFloor(self.inputs + more.inputs, self.rounding.with_noise(noise))


def measure_noise(
    pool: Pool,
    case: Case,
    outputs: Mapping[str, Outputs],
    pairs: Sequence[Comparison],
    instruments: Sequence[str],
    settings: Settings,
    batch: int,
    rounds: Sequence[Sequence[int]] = (PROBES, MORE_PROBES),
) -> NoiseFloor | None:
    """The noise on every input on which pairs differ, the worst first, batch by batch.

    A pair that has inputs enough that rounding does not explain needs no more of them. None if no
    instrument gives a result.
    """
    pairs = [pair for pair in pairs if pair.mismatch is None]
    floor: NoiseFloor | None = None
    undecided = pairs
    while todo := _to_measure(undecided, floor, _WORST if floor is None else batch):
        rows = {name: _rows(found, todo) for name, found in outputs.items()}
        ask = asking(pool, case.model, case.data.take(todo), instruments)
        rounding = measured(_noise_alone(rows, settings), rows, ask, None, rounds)
        if not rounding.is_measured:
            break
        found = NoiseFloor(tuple(todo), rounding)
        floor = found if floor is None else floor.joined(found)
        undecided = [pair for pair in pairs if not floor.settles(pair, outputs)]
    return floor


def _noise_alone(outputs: Mapping[str, Outputs], settings: Settings) -> Rounding:
    """Limits that are the noise's alone: what needed no explanation is not asked here."""
    count = max((len(found.arrays) for found in outputs.values()), default=0)
    return Rounding(((0.0, ELEMENT),) * count, (), settings.noise_factor)


def _to_measure(pairs: Sequence[Comparison], floor: NoiseFloor | None, most: int) -> list[int]:
    """The next inputs: of every pair and metric in turn the worst that was not measured."""
    known = set(floor.inputs) if floor else set()
    queues = [
        [int(row) for row in found.triggering if int(row) not in known]
        for pair in pairs
        for found in pair.measured
        if found.inconsistent
    ]
    turns = (row for turn in zip_longest(*queues) for row in turn if row is not None)
    return list(islice(dict.fromkeys(turns), most))


def _rows(outputs: Outputs, rows: Sequence[int]) -> Outputs:
    return outputs.instances(rows)
