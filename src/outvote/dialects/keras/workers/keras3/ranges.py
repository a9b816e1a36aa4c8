"""Runs a model and watches every layer: the range of its values, and where NaN comes up."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Model
from outvote.dialects.keras.workers.keras3.backends import to_arrays, to_tensor
from outvote.dialects.keras.workers.keras3.graph import Graph, States, Workshop
from outvote.worker.main import Context, Reply


def ranges(context: Context, model: Any, inputs: list[str], wanted: list[Any]) -> Reply:
    """The tensor that is wanted, which rows hold NaN in any layer, and what each layer gave.

    A layer is told as [name, kind, smallest and largest finite value, NaNs, infinities].
    """
    parsed = Model.from_json(model)
    workshop = _workshop(context)
    graph = Graph(parsed, workshop, context.enter)
    context.begin(len(parsed.layers))
    feeds = [np.array(context.blobs.get(digest)) for digest in inputs]
    states: States = {
        item.name: [to_tensor(feed)] for item, feed in zip(parsed.inputs, feeds, strict=True)
    }
    last_use = parsed.last_use()
    producer, index = wanted
    bad = np.zeros(len(feeds[0]), bool)
    told = []
    for position, layer in enumerate(parsed.layers):
        states[layer.name] = graph.call(layer, states)
        arrays = [a for a in to_arrays(states[layer.name])[0] if a.dtype.kind == "f"]
        told.append([layer.name, layer.kind, *_range(arrays)])
        for array in arrays:
            if len(array) == len(bad):
                bad |= np.isnan(array.reshape(len(array), -1)).any(axis=1)
        for name in layer.inputs:
            if last_use[name] == position and name != producer:
                del states[name]
        context.step()
    outputs, _ = to_arrays([states[producer][index]])
    return {"layers": told}, [outputs[0], bad.astype(np.uint8)]


def _range(arrays: list[Array]) -> list[float | int | None]:
    flat = np.concatenate([a.reshape(-1).astype(np.float64) for a in arrays] or [np.zeros(0)])
    finite = flat[np.isfinite(flat)]
    smallest, largest = (float(finite.min()), float(finite.max())) if finite.size else (None, None)
    return [smallest, largest, int(np.isnan(flat).sum()), int(np.isinf(flat).sum())]


@functools.cache
def _workshop(context: Context) -> Workshop:
    """Layers are kept between requests; one worker has one context."""
    return Workshop(context.blobs, bool(context.settings["allow_code"]), {})
