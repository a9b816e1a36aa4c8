"""Runs AUDEE's Algorithm 2 on targets: suspected layers of a case, and the parameters to blame.

The paper repairs the network by replacing the parameter and goes on. Here every layer is given the
tensors of the reference: that is a network in which all layers before are repaired.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from outvote.bench.steps import steps
from outvote.core.arrays import Array
from outvote.core.cuts import one_layer
from outvote.core.instances import announced
from outvote.core.model import Layer, Model
from outvote.core.outputs import Outputs
from outvote.core.protocol import Ran, RunModel
from outvote.core.states import State
from outvote.core.target import Outcome, Run
from outvote.judge.tolerance import layer_tolerance
from outvote.localize.causal import T1, T2, Accident, Cause, Effect, causes, change_rate
from outvote.localize.introduction import Introduction, deviation, introduction
from outvote.mutate.subject import Spec
from outvote.mutate.tools import Tools, tools_for
from outvote.run.pool import Pool
from outvote.run.settle import ask_all_settled
from outvote.search.genetic import GeneticSettings, Population

# A short search: it only has to bring back a difference that one input may hide.
SEARCH = GeneticSettings(population=6, elite=2, generations=2)
_FLOATS = ("float16", "bfloat16")


@dataclass(frozen=True)
class Suspect:
    """A layer whose change rate is above t1, and what its parameters have to do with it."""

    layer: Layer
    rate: float
    causes: tuple[Cause, ...]
    accidents: tuple[Accident, ...]
    same_as: str = ""  # an earlier layer with the same parameters, whose causes these are


@dataclass(frozen=True)
class Located:
    """What differs between two targets on one input."""

    reference: str
    other: str
    suspects: tuple[Suspect, ...]
    cradle: Introduction  # its list is what CRADLE would name
    failed: str = ""  # a layer that the other target could not compute: nothing behind it is known

    @property
    def pairs(self) -> list[tuple[str, str, Any]]:
        """The (layer, parameter, value) of Algorithm 2, without repetitions of a layer."""
        return [
            (suspect.layer.name, cause.parameter, cause.value)
            for suspect in self.suspects
            if not suspect.same_as
            for cause in suspect.causes
        ]


@dataclass
class Localizer:
    """Asks two targets about one layer at a time. `reader` says what changed layers become."""

    pool: Pool
    reader: str
    t1: float = T1
    t2: float = T2
    seconds: float = math.inf  # for the parameters of one layer
    tell: Callable[[str], None] = lambda text: None
    _tools: Tools | None = field(default=None, repr=False)

    def locate(self, model: Model, inputs: Sequence[Array], reference: str, other: str) -> Located:
        """All suspected layers of a model on one input, in order."""
        delta: dict[str, float] = {}
        found: list[tuple[Layer, float, tuple[State, ...]]] = []
        failed = ""
        for step in steps(self.pool, model, inputs, reference, [other]):
            name = step.layer.name
            if step.failed:
                failed = name
                break
            if other in step.own:
                delta[name] = deviation(step.own[reference], step.own[other])
            pair = step.isolated[reference], step.isolated[other]
            rate = change_rate(*pair, _tolerance(pair[0]))
            if not rate <= self.t1:
                found.append((step.layer, rate, step.given))
        suspects: list[Suspect] = []
        for layer, rate, given in found:
            self.tell(f"{layer.kind} {layer.name!r}")
            suspects.append(self._suspect(layer, rate, given, (reference, other), suspects))
        return Located(reference, other, tuple(suspects), introduction(model, delta), failed)

    def parameters(
        self,
        layer: Layer,
        given: Sequence[State],
        names: tuple[str, str],
        among: Collection[str] = (),
    ) -> tuple[list[Cause], list[Accident]]:
        """The parameters of one layer that make two targets differ on these tensors.

        `among`: the only ones that can be meant, if that is known.
        """
        tools = self.tools
        now = tools.parameters(layer)
        if now.get("dtype") not in _FLOATS:
            now.pop("dtype", None)  # fewer bits would hide the difference, not cure it
        until = time.monotonic() + self.seconds

        specs = [Spec(announced(s.array, s.batch), s.dtype, s.batch) for s in given]

        def measure(name: str, value: Any) -> Effect | None:
            if time.monotonic() > until:
                return None
            rng = np.random.default_rng(0)
            made = tools.variant(layer, {**now, name: value}, specs, rng)
            return None if made is None else self._effect(made, given, names, rng)

        meant = {name: value for name, value in now.items() if not among or name in among}
        return causes(meant, lambda name, value: tools.others(layer, name, value), measure, self.t2)

    @property
    def spoken(self) -> str:
        """The dialect of the models."""
        return self.pool.targets[self.reader].dialect

    @property
    def tools(self) -> Tools:
        if self._tools is None:
            self._tools = tools_for(self.spoken, self.pool, self.reader)
        return self._tools

    def _suspect(
        self,
        layer: Layer,
        rate: float,
        given: tuple[State, ...],
        names: tuple[str, str],
        before: Sequence[Suspect],
    ) -> Suspect:
        """Layers with the same parameters are asked once."""
        for earlier in before:
            if _alike(earlier.layer, layer):
                root = earlier.same_as or earlier.layer.name
                return Suspect(layer, rate, earlier.causes, earlier.accidents, root)
        found, accidents = self.parameters(layer, given, names)
        return Suspect(layer, rate, tuple(found), tuple(accidents))

    def _effect(
        self,
        layer: Layer,
        given: Sequence[State],
        names: tuple[str, str],
        rng: np.random.Generator,
    ) -> Effect | None:
        """The largest R that a short search on the layer's own input finds (line 14)."""
        model, arrays = one_layer(self.spoken, layer, [state.first() for state in given])
        floats = [array for array in arrays if array.dtype.kind == "f"]
        first = np.concatenate([*(a.reshape(-1) for a in floats), np.zeros(0)]).astype(np.float32)
        ordinary = first[np.isfinite(first)]
        spread = float(ordinary.std(dtype=np.float64)) if ordinary.size else 0.0
        population = Population(first, np.full(len(first), spread), SEARCH, rng)
        worst = 0.0
        while True:
            feeds = _feeds(arrays, population.ask())
            runs = self._run(model, feeds, names)
            ended = _failure(runs, names)
            if ended is not None:
                return ended if population.generation == 0 else Effect(worst)
            if not all(run.ok for run in runs.values()):
                return None  # neither can: there is no such layer
            rates = _rates(runs, names)
            worst = max(worst, float(rates.max()))
            if population.finished or worst >= self.t2 or not floats:
                return Effect(worst)
            population.tell(rates)

    def _run(
        self, model: Model, feeds: Sequence[Array], names: tuple[str, str]
    ) -> dict[str, Run[Ran]]:
        blobs = tuple(self.pool.blobs.put(feed) for feed in feeds)
        request = RunModel(model=model, inputs=blobs, batch=len(feeds[0]), steps=1)
        return ask_all_settled(self.pool, names, request)


def _feeds(arrays: Sequence[Array], rows: Array) -> list[Array]:
    """Chromosomes as batches: genes are the floats; integers and masks stay what they were."""
    feeds = []
    taken = 0
    for array in arrays:
        if array.dtype.kind == "f":
            genes = rows[:, taken : taken + array.size]
            taken += array.size
            with np.errstate(over="ignore"):  # mutated beyond a narrow type: infinity
                feeds.append(genes.reshape(-1, *array.shape[1:]).astype(array.dtype))
        else:
            feeds.append(np.repeat(array, len(rows), axis=0))
    return feeds


def _failure(runs: Mapping[str, Run[Ran]], names: tuple[str, str]) -> Effect | None:
    """One target that fails where the other does not, or NaN from an input without any."""
    died = [r for r in runs.values() if not r.ok and r.outcome is not Outcome.UNSUPPORTED]
    if died and any(run.ok for run in runs.values()):
        return Effect(0.0, "crash")
    if not all(run.ok for run in runs.values()):
        return None
    first = [_row(runs[name], 0) for name in names]
    bad = [any(a.dtype.kind == "f" and bool(np.isnan(a).any()) for a in o.arrays) for o in first]
    return Effect(0.0, "nan") if any(bad) else None


def _rates(runs: Mapping[str, Run[Ran]], names: tuple[str, str]) -> Array:
    """R of every row; the search may lead to numbers beyond the type, which say nothing."""
    count = len(runs[names[0]].reply.outputs.arrays[0])
    rates = np.zeros(count)
    for i in range(count):
        a, b = _row(runs[names[0]], i), _row(runs[names[1]], i)
        if all(np.isfinite(array).all() for array in a.arrays if array.dtype.kind == "f"):
            rates[i] = change_rate(a, b, _tolerance(a))
    return rates


def _row(run: Run[Ran], index: int) -> Outputs:
    return run.reply.outputs.instances([index])


def _alike(a: Layer, b: Layer) -> bool:
    """Whether two layers have the same parameters on tensors and weights of the same shapes."""

    def plain(layer: Layer) -> tuple[Any, ...]:
        config = {key: value for key, value in layer.config.items() if key != "name"}
        return layer.kind, config, layer.origin, [weight.shape for weight in layer.weights]

    return plain(a) == plain(b)


def _tolerance(outputs: Outputs) -> float:
    """What needs no explanation of what a layer gives."""
    return max(map(layer_tolerance, outputs.dtypes), default=0.0)
