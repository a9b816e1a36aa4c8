"""How long each layer of a model takes on a target: which one makes it slow."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.core.arrays import Array
from outvote.core.model import Model
from outvote.core.states import State, pack, unpack
from outvote.run.pool import Pool, Request


def layer_seconds(pool: Pool, name: str, model: Model, inputs: Sequence[Array]) -> dict[str, float]:
    """Seconds by layer, without building and compiling; layers from a failure on are left out.

    A step builds and compiles the layer; calling it once more on the same tensors does not.
    """
    if not pool.ask(name, Request("open", {"model": model.to_json()}, inputs)).ok:
        return {}
    held: dict[str, list[State]] = {
        item.name: [(array, None)] for item, array in zip(model.inputs, inputs, strict=True)
    }
    found = {}
    for layer in model.layers:
        stepped = pool.ask(name, Request("step", {"layer": layer.name, "given": None}))
        if not stepped.ok:
            break
        held[layer.name] = unpack(stepped.reply["own"], stepped.arrays)
        header, arrays = pack([held[ref.producer][ref.index] for ref in layer.refs()])
        called = pool.ask(name, Request("call", {"layer": layer.name, "given": header}, arrays))
        if not called.ok:
            break
        found[layer.name] = float(called.reply["seconds"])
    pool.ask(name, Request("close", {}))
    return found
