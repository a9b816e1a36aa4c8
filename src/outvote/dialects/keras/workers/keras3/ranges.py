"""Runs a model and watches every layer: the range of its values, and where NaN comes up."""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.core.protocol import LayerRange, RangesWatched, WatchRanges
from outvote.dialects.keras.workers.keras3.backends import to_arrays, to_tensor, typed
from outvote.dialects.keras.workers.keras3.graph import Graph, States, Workshop
from outvote.worker.main import Context


def ranges(context: Context, workshop: Workshop, request: WatchRanges) -> RangesWatched:
    """The tensor that is wanted, which rows hold NaN in any layer, and what each layer gave."""
    model = request.model
    graph = Graph(model, workshop, context.enter)
    context.begin(len(model.layers))
    feeds = [np.array(context.blobs.get(digest)) for digest in request.inputs]
    states: States = {
        item.name: [to_tensor(typed(feed, item.dtype))]
        for item, feed in zip(model.inputs, feeds, strict=True)
    }
    last_use = model.last_use()
    wanted = request.wanted
    bad = np.zeros(len(feeds[0]), bool)
    told = []
    for position, layer in enumerate(model.layers):
        states[layer.name] = graph.call(layer, states)
        arrays = [a for a in to_arrays(states[layer.name])[0] if a.dtype.kind == "f"]
        told.append(_range(layer.name, layer.kind, arrays))
        for array in arrays:
            if len(array) == len(bad):
                bad |= np.isnan(array.reshape(len(array), -1)).any(axis=1)
        for name in layer.inputs:
            if last_use[name] == position and name != wanted.producer:
                del states[name]
        context.step()
    outputs, _ = to_arrays([states[wanted.producer][wanted.index]])
    return RangesWatched(layers=tuple(told), wanted=outputs[0], bad=bad)


def _range(name: str, kind: str, arrays: list[Array]) -> LayerRange:
    flat = np.concatenate([a.reshape(-1).astype(np.float64) for a in arrays] or [np.zeros(0)])
    finite = flat[np.isfinite(flat)]
    smallest, largest = (float(finite.min()), float(finite.max())) if finite.size else (None, None)
    nans, infinities = int(np.isnan(flat).sum()), int(np.isinf(flat).sum())
    return LayerRange(name, kind, smallest, largest, nans, infinities)
