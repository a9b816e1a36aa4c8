"""How long each layer of a model takes on a target: which one makes it slow."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.core.arrays import Array
from outvote.core.model import Model
from outvote.core.protocol import CallLayer, CloseSession, OpenSession, StepLayer
from outvote.core.states import State
from outvote.run.pool import Pool


def layer_seconds(pool: Pool, name: str, model: Model, inputs: Sequence[Array]) -> dict[str, float]:
    """Seconds by layer, without building and compiling; layers from a failure on are left out.

    A step builds and compiles the layer; calling it once more on the same tensors does not.
    """
    feeds = tuple(map(State, inputs))
    if not pool.ask(name, OpenSession(model=model, inputs=feeds)).ok:
        return {}
    held: dict[str, Sequence[State]] = {
        item.name: [state] for item, state in zip(model.inputs, feeds, strict=True)
    }
    found = {}
    for layer in model.layers:
        stepped = pool.ask(name, StepLayer(layer=layer.name))
        if not stepped.ok or stepped.reply.own is None:
            break
        held[layer.name] = stepped.reply.own
        given = tuple(held[ref.producer][ref.index] for ref in layer.refs())
        called = pool.ask(name, CallLayer(layer=layer.name, given=given))
        if not called.ok:
            break
        found[layer.name] = called.inside
    pool.ask(name, CloseSession())
    return found
