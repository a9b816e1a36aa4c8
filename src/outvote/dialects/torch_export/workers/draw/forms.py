"""What calls give, seen by running them: shapes, types, and whether instances stay apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Input, Layer, Model
from outvote.core.protocol import Form
from outvote.core.states import State
from outvote.dialects.torch_export.nouns.node import tensors_of
from outvote.dialects.torch_export.workers.shared.engine import CallEngine
from outvote.worker.unfit import Unfit

# Instances of two runs: the first of the one is the last of the other.
_ROWS = ((0, 1), (2, 3, 0))
_DRAWN = 4
_NEAR = 1e-4


def tried(engine: CallEngine, model: Model) -> tuple[Model, dict[str, tuple[Form, ...]]]:
    """The model with the batch axes of its layers, and their forms; raises Unfit.

    An instance must get the same numbers whatever lies beside it, and wherever it lies.
    """
    held = [numbers_for(item, place) for place, item in enumerate(model.inputs)]
    found = [_run(engine, model, held, rows) for rows in _ROWS[: 1 + _has_batch(model)]]
    outer = next((item.shape[0] for item in model.inputs if item.batch == 0), None)
    layers, specs = [], {}
    for layer in model.layers:
        told = [_told([run[layer.name][place] for run in found], outer) for place in _places(layer)]
        layers.append(replace(layer, batch=tuple(axis for _, axis in told)))
        specs[layer.name] = tuple(form for form, _ in told)
    return replace(model, layers=tuple(layers)), specs


def numbers_for(item: Input, seed: int = 0) -> Array:
    """Numbers for an input; where it has a batch, of some instances."""
    rng = np.random.default_rng(seed)
    shape = (_DRAWN, *item.shape[1:]) if item.batch == 0 else item.shape
    sizes = tuple(size for size in shape if size is not None)
    if len(sizes) != len(shape) or item.batch not in (None, 0):
        raise Unfit(f"{item.name} has free sizes besides a batch in front")
    dtype = "float32" if item.dtype == "bfloat16" else item.dtype
    if "float" in dtype:
        return rng.normal(size=sizes).astype(dtype)
    return rng.integers(0, 2, sizes).astype(dtype)


def _has_batch(model: Model) -> bool:
    return any(item.batch == 0 for item in model.inputs)


def _places(layer: Layer) -> range:
    return range(len(tensors_of(layer)))


def _run(
    engine: CallEngine, model: Model, held: Sequence[Array], rows: Sequence[int]
) -> dict[str, list[State]]:
    pairs = zip(model.inputs, held, strict=True)
    feeds = [State.fed(a[list(rows)] if item.batch == 0 else a, item) for item, a in pairs]
    shown = [ref for layer in model.layers for ref in tensors_of(layer)]
    states = engine.whole(model, feeds, shown)[len(model.outputs) :]
    found: dict[str, list[State]] = {}
    for ref, state in zip(shown, states, strict=True):
        found.setdefault(ref.producer, []).append(state)
    return found


def _told(seen: Sequence[State], outer: int | None) -> tuple[Form, int | None]:
    """The form of a tensor as one run or two show it, and its batch axis."""
    first, last = seen[0].array, seen[-1].array
    if first.shape == last.shape:
        if not _same(first, last):
            raise Unfit("it gives one tensor for all instances, made of them")
        return (tuple(first.shape), seen[0].dtype), None
    counts = [len(rows) for rows in _ROWS]
    if [first.shape[0], last.shape[0]] != counts or first.shape[1:] != last.shape[1:]:
        raise Unfit("its sizes do not follow the batch")
    if not _same(first[0], last[-1]):
        raise Unfit("it mixes instances")
    return ((outer, *first.shape[1:]), seen[0].dtype), 0


def _same(a: Array, b: Array) -> bool:
    """Whether numbers are equal but for rounding: batches of other sizes are summed otherwise."""
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    return bool(np.allclose(a, b, rtol=_NEAR, atol=_NEAR, equal_nan=True))
