"""Gradients layer by layer, from the last to the first: each layer alone, and as a chain.

Alone, every target is given the same tensors and the same cotangent, so that an innocent layer
cannot be accused of what came from above. As a chain each passes its own gradients on: CRADLE's
introduction rate, in reverse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.exercise import Exercised, do
from outvote.core.arrays import Array
from outvote.core.cuts import one_layer
from outvote.core.exercises import Pull
from outvote.core.model import Layer, Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.protocol import CloseSession, OpenSession, StepLayer
from outvote.core.states import State
from outvote.core.target import Run
from outvote.core.train_protocol import PulledBack
from outvote.localize.introduction import Introduction, deviation, introduction

Cotangents = dict[Ref, Array]


@dataclass(frozen=True)
class ReverseStep:
    """One layer: alone on every target, and what each has in its own chain."""

    layer: Layer
    alone: Exercised
    own: Mapping[str, Outputs]


def hidden_of(
    bench: Bench, model: Model, inputs: Sequence[Array], name: str
) -> tuple[dict[str, tuple[State, ...]], Run | None]:
    """What every layer gives on one target; the run that failed, where one did."""
    feeds = tuple(State.fed(a, item) for a, item in zip(inputs, model.inputs, strict=True))
    held: dict[str, tuple[State, ...]] = {
        item.name: (feed,) for item, feed in zip(model.inputs, feeds, strict=True)
    }
    opened = bench.pool.ask(name, OpenSession(model=model, inputs=feeds))
    if not opened.ok:
        return held, opened
    for layer in model.layers:
        run = bench.pool.ask(name, StepLayer(layer=layer.name))
        if not run.ok or run.reply.own is None:
            return held, run
        held[layer.name] = run.reply.own
    bench.pool.ask(name, CloseSession())
    return held, None


def pull_of(
    model: Model, layer: Layer, held: Mapping[str, Sequence[State]], cotangents: Cotangents
) -> Pull | None:
    """The vector-Jacobian product of a layer; None where no gradient comes to it."""
    outputs = held[layer.name]
    refs = [Ref(layer.name, place) for place in range(len(outputs))]
    if not any(ref in cotangents for ref in refs):
        return None
    given = [held[ref.producer][ref.index] for ref in layer.refs()]
    alone, arrays = one_layer(model.dialect, layer, given)
    return Pull(
        replace(alone, outputs=tuple(refs)),
        tuple(arrays),
        tuple(
            cotangents.get(ref, np.zeros_like(state.array))
            if state.array.dtype.kind == "f"
            else None
            for ref, state in zip(refs, outputs, strict=True)
        ),
    )


def reverse_steps(
    bench: Bench,
    model: Model,
    held: Mapping[str, Sequence[State]],
    seeds: Mapping[str, Array],
    reference: str,
) -> Iterator[ReverseStep]:
    """All layers that a gradient comes to. `seeds`: of the first output, by target."""
    end = model.outputs[0]
    chains: dict[str, Cotangents] = {name: {end: seed} for name, seed in seeds.items()}
    for layer in reversed(model.layers):
        pull = pull_of(model, layer, held, chains[reference])
        if pull is None:
            continue
        alone = do(bench, pull, list(chains))
        own = {}
        for name in [name for name in chains if name in alone.replies]:
            mine = pull_of(model, layer, held, chains[name])
            done = alone if name == reference or mine is None else do(bench, mine, [name])
            if name in done.replies:
                own[name] = done.outputs("gradient")[name]
                _pass_on(chains[name], layer, done.replies[name])
        for name in [name for name in chains if name not in own]:
            del chains[name]  # it failed: no more is heard of it
        yield ReverseStep(layer, alone, own)
        if reference not in chains:
            return


def _pass_on(chain: Cotangents, layer: Layer, reply: PulledBack) -> None:
    """Add the gradients of what a layer reads to those of its other readers."""
    refs = list(layer.refs())
    for leaf in reply.gradients:
        if leaf.layer or leaf.array is None or leaf.place >= len(refs):
            continue
        ref = refs[leaf.place]
        chain[ref] = chain[ref] + leaf.array if ref in chain else leaf.array


@dataclass(frozen=True)
class ReverseMap:
    """CRADLE's map of gradients: of each target against the reference."""

    reference: str
    introductions: Mapping[str, Introduction]


def reverse_map(model: Model, reference: str, steps: Sequence[ReverseStep]) -> ReverseMap:
    others = list(dict.fromkeys(name for step in steps for name in step.own if name != reference))
    found = {}
    for name in others:
        delta = {
            step.layer.name: deviation(step.own[reference], step.own[name])
            for step in steps
            if name in step.own and reference in step.own
        }
        found[name] = introduction(model, delta, back=True)
    return ReverseMap(reference, found)
