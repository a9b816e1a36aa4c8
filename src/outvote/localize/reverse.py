"""Gradients layer by layer, from the last to the first: each layer alone, and as a chain.

Alone, every target is given the same tensors and the same cotangent, so that an innocent layer
cannot be accused of what came from above. As a chain each passes its own gradients on: CRADLE's
introduction rate, in reverse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.exercise import Exercised, do, exercised
from outvote.core.arrays import Array
from outvote.core.cuts import one_layer
from outvote.core.exercises import Exercise, Pull
from outvote.core.model import Layer, Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.protocol import CloseSession, OpenSession, StepLayer
from outvote.core.states import State
from outvote.core.target import Run
from outvote.core.train_protocol import PulledBack
from outvote.localize.introduction import Introduction, deviation, introduction
from outvote.run.pool import Ask
from outvote.run.settle import settled

Cotangents = dict[Ref, Array]


_AHEAD = 32 << 20  # bytes of gradients by which one target is ahead of the others


@dataclass(frozen=True)
class ReverseStep:
    """One layer, and what each target has in its own chain."""

    layer: Layer
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


@dataclass
class GradientChain:
    """The gradients of one target, each layer given what the one behind it has made of its own."""

    bench: Bench
    model: Model
    held: Mapping[str, Sequence[State]]
    name: str
    cotangents: Cotangents

    def step(self, layer: Layer, penalty: bool = False) -> Exercised | None:
        """The next layer, from the last one on; None where no gradient comes to it."""
        pull = pull_of(self.model, layer, self.held, self.cotangents)
        if pull is None:
            return None
        done = do(self.bench, replace(pull, penalty=penalty), [self.name])
        if self.name in done.replies:
            _pass_on(self.cotangents, layer, done.replies[self.name])
        return done


def alone_steps(chain: GradientChain, names: Sequence[str]) -> Iterator[tuple[Layer, Exercised]]:
    """All layers that a gradient of the chain comes to, each alone on every target.

    The target of the chain goes ahead by some layers, and the others take them one after the
    other. A target that fails a layer is left out from there on.
    """
    left = [name for name in names if name != chain.name]
    for taken in _stretches(chain):
        found = _follow(chain.bench, left, [done.exercise for _, done in taken])
        for place, (layer, own) in enumerate(taken):
            runs = {name: runs[place] for name, runs in found.items() if place < len(runs)}
            others = exercised(own.exercise, runs)
            replies = {**own.replies, **others.replies}
            given = {name: replies[name] for name in names if name in replies}
            yield layer, Exercised(own.exercise, given, {**own.failures, **others.failures})
            left = [name for name in left if name in others.replies]


def _stretches(chain: GradientChain) -> Iterator[list[tuple[Layer, Exercised]]]:
    """Layers that its target has done, as many at a time as little is held of."""
    taken: list[tuple[Layer, Exercised]] = []
    size = 0
    for layer in reversed(chain.model.layers):
        done = chain.step(layer)
        if done is None:
            continue
        taken.append((layer, done))
        size += sum(_size(reply) for reply in done.replies.values())
        if size > _AHEAD or not done.replies:
            yield taken
            taken, size = [], 0
        if not done.replies:
            return
    if taken:
        yield taken


def _size(reply: PulledBack) -> int:
    return sum(leaf.array.nbytes for leaf in reply.gradients if leaf.array is not None)


def _follow(
    bench: Bench, names: Sequence[str], exercises: Sequence[Exercise]
) -> dict[str, list[Run[Any]]]:
    """What each makes of them; the first that it fails is its last."""
    requests = [exercise.request(bench.pool.blobs) for exercise in exercises]
    bench.runs += len(requests)

    def talk(name: str, ask: Ask) -> list[Run[Any]]:
        runs: list[Run[Any]] = []
        for request in requests:
            runs.append(settled(ask, request, ask(request)))
            if not runs[-1].ok:
                break
        return runs

    return bench.pool.talk_to_each(names, talk)


def reverse_steps(chains: Mapping[str, GradientChain], reference: str) -> Iterator[ReverseStep]:
    """What each target has in its own chain, layer by layer, for a map."""
    running = dict(chains)
    for layer in reversed(chains[reference].model.layers):
        own = {}
        for name, chain in chains.items():
            done = chain.step(layer) if name in running else None
            if done is not None and name in done.replies:
                own[name] = done.outputs("gradient")[name]
            elif done is not None:
                del running[name]  # it failed: no more is heard of it
        if own:
            yield ReverseStep(layer, own)
        if reference not in running:
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
