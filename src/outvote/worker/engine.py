"""Runs of models by an engine that takes a whole graph at once, and single layers of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from outvote.core import protocol as ask
from outvote.core.model import Layer, Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.states import State
from outvote.worker.jitter import moved
from outvote.worker.main import Context
from outvote.worker.portions import first_rows, joined, portions


class Engine(Protocol):
    """What a library is asked for."""

    def whole(self, model: Model, feeds: Sequence[State], shown: Sequence[Ref] = ()) -> list[State]:
        """The model's outputs, then the tensors to be shown."""
        ...

    def stepped(
        self, model: Model, feeds: Sequence[State], jitter: int, after: Callable[[], None]
    ) -> list[State]:
        """The model's outputs, layer by layer, every tensor moved by one unit in the last place."""
        ...


def run_model(
    context: Context,
    engine: Engine,
    request: ask.RunModel,
    tensors: Callable[[Layer], Sequence[Ref]],
) -> ask.Ran:
    """Run a model on stored inputs, batch by batch; `jitter` (a seed) moves every tensor.

    `tensors` says what a layer gives.
    """
    model = request.model
    data = [context.blobs.get(digest) for digest in request.inputs]
    watched = {name: tensors(model.layer(name)) for name in request.watch}
    shown = [ref for refs in watched.values() for ref in refs]
    divided = portions(model, data, request.batch)
    context.begin(len(divided) * (1 if request.jitter is None else len(model.layers)))

    def run(feeds: Sequence[State], shown: Sequence[Ref] = ()) -> list[State]:
        if request.jitter is not None:
            return engine.stepped(model, feeds, request.jitter, context.step)
        found = engine.whole(model, feeds, shown)
        context.step()
        return found

    first, *rest = divided
    found = [run(first, shown), *(run(feeds) for feeds in rest)]
    outputs = [joined([part[place] for part in found]) for place in range(len(model.outputs))]
    hidden = iter(found[0][len(outputs) :])
    seen = {
        name: tuple(first_rows(next(hidden), request.rows) for _ in refs)
        for name, refs in watched.items()
    }
    return ask.Ran(outputs=Outputs.of(outputs), watched=seen)


def stepped(
    alone: Callable[[Layer, Sequence[State]], list[State]],
    model: Model,
    feeds: Sequence[State],
    jitter: int,
    after: Callable[[], None],
) -> list[State]:
    """The model's outputs, each layer `alone`, every tensor moved by one unit in the last place."""
    last_use = model.last_use()
    held: dict[str, list[State]] = {
        item.name: [moved(feed, jitter and jitter * 10_007 + place)]
        for place, (item, feed) in enumerate(zip(model.inputs, feeds, strict=True))
    }
    for position, layer in enumerate(model.layers):
        given = [held[r.producer][r.index] for r in layer.refs()]
        seed = jitter and jitter * 10_007 + 100 + position
        held[layer.name] = [moved(tensor, seed) for tensor in alone(layer, given)]
        for name in layer.inputs:
            if last_use[name] == position:
                del held[name]
        after()
    return [held[r.producer][r.index] for r in model.outputs]
