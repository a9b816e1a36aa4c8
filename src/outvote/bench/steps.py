"""Runs one input through several targets, layer by layer, and hands over each layer.

Only tensors that a later layer still needs are held, and those of the layers that targets are
ahead by, so that memory does not grow with depth.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from outvote.core.arrays import Array
from outvote.core.model import Layer, Model
from outvote.core.outputs import Outputs
from outvote.core.protocol import CallLayer, CloseSession, OpenSession, StepLayer, Stepped
from outvote.core.states import State
from outvote.core.target import Outcome, Run
from outvote.run.pool import Ask, Pool, asker
from outvote.run.settle import ask_all_settled, ask_in_session, settled
from outvote.run.stretch import Stretch


@dataclass(frozen=True)
class Step:
    """What every target made of one layer.

    `own`: from its own tensors, errors of earlier layers included. `isolated`: from the
    reference's tensors, so that only this layer can differ. `failed`: could not compute that.
    `lost`: targets whose session is gone, through no fault of this layer; no more is heard of them.
    `ended`: why the layer could not take a target's own tensors, though it took the reference's.
    """

    layer: Layer
    given: tuple[State, ...]
    own: Mapping[str, Outputs]
    isolated: Mapping[str, Outputs]
    failed: Mapping[str, Run] = field(default_factory=dict)
    lost: Mapping[str, Run] = field(default_factory=dict)
    ended: Mapping[str, str] = field(default_factory=dict)


def steps(
    pool: Pool, model: Model, inputs: Sequence[Array], reference: str, others: Sequence[str]
) -> Iterator[Step]:
    """Every layer in order. A target that fails a layer is left out from there on.

    Where the reference fails, the last step holds nothing but that. A worker that died between two
    steps, as when its noise was measured, has lost its session: it is opened again in a fresh one,
    which goes on from the tensors that it is given. Where that cannot be done, it is lost.
    """
    pairs = zip(model.inputs, inputs, strict=True)
    feeds = tuple(State.fed(array, item) for item, array in pairs)
    opening = OpenSession(model=model, inputs=feeds)
    opened = ask_all_settled(pool, [reference, *others], opening)
    if not opened[reference].ok:
        yield Step(model.layers[0], (), {}, {}, {}, {reference: opened[reference]})
        return
    alive = [name for name in others if opened[name].ok]
    lost = {name: opened[name] for name in others if not opened[name].ok}
    walk = _Walk(asker(pool, reference), model, opening)
    stretch = Stretch()
    while walk.position < len(model.layers):
        began = time.monotonic()
        taken = walk.through(stretch)
        requests = [StepLayer(layer=one.layer.name, given=one.given) for one in taken]
        found = ask_in_session(pool, alive, requests, opening)
        stretch = stretch.after(time.monotonic() - began, sum(one.size for one in taken))
        for place, one in enumerate(taken):
            runs = {name: runs[place] for name, runs in found.items() if place < len(runs)}
            step = _step(pool, reference, one, runs)
            yield replace(step, lost={**lost, **step.lost})
            lost = {}
            alive = [name for name in alive if name not in {**step.failed, **step.lost}]
        if walk.ended is not None:
            told = {reference: walk.ended}
            is_lost = walk.ended.outcome is Outcome.LOST
            layer = model.layers[walk.position]
            yield Step(layer, (), {}, {}, {} if is_lost else told, told if is_lost else {})
            return
    pool.ask_all([reference, *alive], CloseSession())


@dataclass(frozen=True)
class _Taken:
    """A layer that the reference has computed: from what, and what it gave."""

    layer: Layer
    given: tuple[State, ...]
    states: Sequence[State]

    @property
    def size(self) -> int:
        return sum(state.array.nbytes for state in self.states)


@dataclass
class _Walk:
    """The reference's way through the layers; only tensors that are still needed are held."""

    ask: Ask
    model: Model
    opening: OpenSession
    position: int = 0
    ended: Run | None = None  # why it goes no further

    def __post_init__(self) -> None:
        pairs = zip(self.model.inputs, self.opening.inputs, strict=True)
        self._held: dict[str, Sequence[State]] = {item.name: [state] for item, state in pairs}
        self._last_use = self.model.last_use()
        self._afresh = False  # whether the reference's own tensors went with a worker

    def through(self, stretch: Stretch) -> list[_Taken]:
        """The next layers, as far as it can compute them."""
        taken: list[_Taken] = []
        size = 0
        for layer in self.model.layers[self.position :]:
            given = tuple(self._held[ref.producer][ref.index] for ref in layer.refs())
            run = self._stepped(layer, given)
            if not run.ok:
                self.ended = run
                break
            states = self._held[layer.name] = run.reply.isolated or run.reply.own or ()
            taken.append(_Taken(layer, given, states))
            for producer in layer.inputs:
                if self._last_use[producer] == self.position:
                    del self._held[producer]
            self.position += 1
            size += taken[-1].size
            if stretch.is_over(len(taken), size):
                break
        return taken

    def _stepped(self, layer: Layer, given: tuple[State, ...]) -> Run[Stepped]:
        request = StepLayer(layer=layer.name, given=given if self._afresh else None)
        run = self.ask(request)
        if run.ok:
            return run
        self._afresh = True
        return settled(self.ask, StepLayer(layer=layer.name, given=given), run, self.opening)


def _step(pool: Pool, reference: str, taken: _Taken, runs: Mapping[str, Run[Stepped]]) -> Step:
    """What the others made of a layer, beside what the reference did."""
    own = {reference: Outputs.of(taken.states)}
    isolated = dict(own)
    for name, run in runs.items():
        if run.ok and not _is_feigned(pool, name, run.reply.isolated):
            isolated[name] = Outputs.of(run.reply.isolated or ())
            if run.reply.own is not None:
                own[name] = Outputs.of(run.reply.own)
    ended = {n: run.reply.own_error for n, run in runs.items() if run.ok and not run.reply.own}
    failed, gone = _sorted_out(runs)
    return Step(taken.layer, taken.given, own, isolated, failed, gone, ended)


def _is_feigned(pool: Pool, name: str, states: Sequence[State] | None) -> bool:
    return pool.targets[name].does_feign(state.dtype for state in states or ())


def _sorted_out(runs: Mapping[str, Run]) -> tuple[dict[str, Run], dict[str, Run]]:
    """What failed, and what was never asked because its session is gone.

    A gap is no failure: what a target lacks alone it may have among others.
    """
    bad = {
        name: run
        for name, run in runs.items()
        if not run.ok and run.outcome is not Outcome.UNSUPPORTED
    }
    lost = {name: run for name, run in bad.items() if run.outcome is Outcome.LOST}
    return {name: run for name, run in bad.items() if name not in lost}, lost


def call_alone(
    pool: Pool, names: Sequence[str], layer: Layer, given: Sequence[State]
) -> dict[str, Outputs]:
    """One layer on given tensors, inside an open session; targets that fail are left out."""
    runs = pool.ask_all(names, CallLayer(layer=layer.name, given=tuple(given)))
    return {name: Outputs.of(run.reply.outputs) for name, run in runs.items() if run.ok}


def alone(pool: Pool, names: Sequence[str], model: Model, given: Sequence[State]) -> Step:
    """A model of one layer, given its tensors, on each target; the session stays open."""
    layer = model.layers[0]
    opening = OpenSession(model=model, inputs=tuple(s.bare() for s in given))
    opened = ask_all_settled(pool, names, opening)
    ready = [name for name in names if opened[name].ok]
    request = CallLayer(layer=layer.name, given=tuple(given))
    runs = ask_all_settled(pool, ready, request, opening=opening)
    failed: dict[str, Run] = {name: run for name, run in opened.items() if not run.ok}
    failed |= {name: run for name, run in runs.items() if not run.ok}
    outputs = {
        n: Outputs.of(run.reply.outputs)
        for n, run in runs.items()
        if run.ok and not _is_feigned(pool, n, run.reply.outputs)
    }
    return Step(layer, tuple(given), {}, outputs, failed)
