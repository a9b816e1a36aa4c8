"""Where a target hangs that does not say so: each layer alone, on tensors of one that does not."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.core.arrays import Array
from outvote.core.cuts import one_layer
from outvote.core.instances import count_of
from outvote.core.model import Layer, Model
from outvote.core.protocol import RunModel
from outvote.core.states import State
from outvote.core.target import Outcome
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled


def first_stuck_layer(
    pool: Pool, model: Model, inputs: Sequence[Array], reference: str, target: str
) -> Layer | None:
    """The first layer in which a target hangs alone; it costs one time limit."""
    names = tuple(layer.name for layer in model.layers)
    count = max(1, count_of(inputs, [item.batch for item in model.inputs]))
    blobs = tuple(pool.blobs.put(array) for array in inputs)
    whole = RunModel(
        model=model,
        inputs=blobs,
        batch=count,
        keep=True,
        watch=names,
        rows=count,
        steps=len(names),
    )
    run = ask_settled(pool, reference, whole)
    if not run.ok:
        return None
    held: dict[str, Sequence[State]] = dict(run.reply.watched)
    for item, array in zip(model.inputs, inputs, strict=True):
        held[item.name] = [State.fed(array, item)]
    for layer in model.layers:
        given = [held[ref.producer][ref.index] for ref in layer.refs()]
        alone, arrays = one_layer(model.dialect, layer, given)
        fed = tuple(pool.blobs.put(array) for array in arrays)
        tried = pool.ask(target, RunModel(model=alone, inputs=fed, batch=count))
        if tried.outcome is Outcome.HANG:
            return layer
    return None
