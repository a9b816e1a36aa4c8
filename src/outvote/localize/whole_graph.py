"""Where a difference begins that only the whole graph shows: a search over cut-off models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from outvote.core.arrays import Array
from outvote.core.cuts import owned
from outvote.core.model import Layer, Model, Ref
from outvote.core.outputs import outputs_of
from outvote.judge.compare import Settings, distance
from outvote.judge.tolerance import model_tolerance
from outvote.run.pool import Pool, Request


def first_deviating_layer(
    pool: Pool, model: Model, inputs: Sequence[Array], targets: tuple[str, str], settings: Settings
) -> Layer | None:
    """The first layer whose output differs when the model is cut off after it; None if none does.

    Each cut is compiled as one graph. The search halves the model, so that it takes a difference
    to stay once it is there, as differences do that reach the output.
    """
    digests = [pool.blobs.put(array) for array in inputs]
    tolerance = settings.tolerance or model_tolerance("float32")

    def deviates(position: int) -> bool:
        cut = prefix(model, position)
        arguments = {"model": cut.to_json(), "inputs": digests, "batch": len(inputs[0])}
        runs = pool.ask_all(targets, Request("run", arguments, steps=len(cut.layers)))
        if not all(run.ok for run in runs.values()):
            return False
        a, b = (outputs_of(runs[n]) for n in targets)
        return not distance(a, b) < tolerance

    low, high = 0, len(model.layers) - 1
    if not deviates(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if deviates(middle):
            high = middle
        else:
            low = middle + 1
    return model.layers[low]


def prefix(model: Model, position: int) -> Model:
    """The model cut off after one layer: what that layer needs, and no more."""
    needed = {model.layers[position].name}
    kept: list[Layer] = []
    for layer in reversed(model.layers[: position + 1]):
        if layer.name in needed:
            kept.append(layer)
            needed.update(layer.inputs)
    end = Ref(model.layers[position].name)
    return replace(model, layers=owned(reversed(kept)), outputs=(end,))
