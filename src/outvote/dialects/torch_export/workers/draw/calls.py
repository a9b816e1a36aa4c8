"""New calls behind a tensor of a program, with arguments of PyTorch's own samples."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from outvote.core.blobs import BlobStore
from outvote.core.model import REF, Input, Json, Layer, Model, Weight, find_refs
from outvote.core.protocol import Form
from outvote.core.states import State
from outvote.dialects.torch_export.nouns.node import WEIGHT
from outvote.dialects.torch_export.nouns.requests import CallsDrawn, DrawCalls
from outvote.dialects.torch_export.workers.draw.forms import numbers_for, tried
from outvote.dialects.torch_export.workers.draw.record import recorded
from outvote.dialects.torch_export.workers.draw.samples import (
    OperatorSample,
    operators,
    samples_of,
    types_of,
)
from outvote.dialects.torch_export.workers.shared.engine import CallEngine
from outvote.dialects.torch_export.workers.shared.tensors import as_state, as_tensor
from outvote.worker.main import Refused
from outvote.worker.unfit import Unfit

_TRIES = 200  # draws that do not work out, before a place is given up
_INSTANCES = 2
Step = Callable[[Any], Any]


def draw_calls(request: DrawCalls, engine: CallEngine, blobs: BlobStore) -> CallsDrawn:
    """The first draw that fits."""
    chance = random.Random(request.seed)  # noqa: S311 - no secret
    for vain in range(_TRIES):
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                model, specs = _drawn(chance, request, engine, blobs)
        except Unfit:
            continue
        return CallsDrawn(model=model, specs=specs, refused=vain)
    raise Refused(f"no call was found in {_TRIES} draws that fits {request.given}")


def _drawn(
    chance: random.Random, request: DrawCalls, engine: CallEngine, blobs: BlobStore
) -> tuple[Model, dict[str, tuple[Form, ...]]]:
    item = request.given
    numbers = numbers_for(item)
    start = as_tensor(State.fed(numbers[:_INSTANCES] if item.batch == 0 else numbers, item))
    steps: list[Step] = []
    value = start
    try:
        for _ in range(request.calls):
            steps.append(_step(_sample(chance, value), value))
            value = steps[-1](value)
        if not request.keep:
            steps.append(lambda last: _led_back(last, request.wanted, item.batch == 0))
        read, feeds = recorded("drawn", lambda x: [_through(steps, x)], [start])
    except Unfit:
        raise
    except Exception as error:  # whatever PyTorch has against it, it does not fit
        raise Unfit(f"{type(error).__name__}: {error}") from error
    first, *others = read.model.inputs
    held = {i.name: as_state(t, None) for i, t in zip(others, feeds[1:], strict=True)}
    layers = tuple(_held(layer, held, blobs) for layer in read.model.layers)
    given = Input(first.name, item.shape, item.dtype, item.batch)
    model, specs = tried(engine, replace(read.model, inputs=(given,), layers=layers))
    end = model.outputs[0]
    if specs[end.producer][end.index] != request.wanted or model.batch_axis(end) != item.batch:
        raise Unfit("it gives another form")
    return model, specs


def _through(steps: Sequence[Step], value: Any) -> Any:
    for step in steps:
        value = step(value)
    return value


def _sample(chance: random.Random, value: Any) -> OperatorSample:
    dtype = str(value.dtype).removeprefix("torch.")
    fitting = [name for name in operators() if dtype in types_of(name)]
    if not fitting:
        raise Unfit(f"there are no samples in {dtype}")
    found = samples_of(chance.choice(fitting), dtype, 0)
    if not found:
        raise Unfit(f"there are no samples in {dtype}")
    return chance.choice(found)


def _step(sample: OperatorSample, value: Any) -> Step:
    """The call of a sample on another tensor than its own.

    What has the shape of its own gets the shape of one instance of the other.
    """
    flat, form = pytree.tree_flatten((sample.input, sample.args, dict(sample.kwargs)))
    tensors = [place for place, part in enumerate(flat) if isinstance(part, torch.Tensor)]
    if not tensors:
        raise Unfit("it reads no tensor")
    first, *others = tensors
    for place in others:
        if flat[place].shape == flat[first].shape:
            flat[place] = _tiled(flat[place], (1, *value.shape[1:]))

    def call(given: Any) -> Any:
        own, args, kwargs = pytree.tree_unflatten([*flat[:first], given, *flat[first + 1 :]], form)
        found = pytree.tree_leaves(sample.function(own, *args, **kwargs))
        tensor = next((part for part in found if isinstance(part, torch.Tensor)), None)
        if tensor is None:
            raise Unfit("it gives no tensor")
        return tensor

    return call


def _tiled(tensor: Any, shape: Sequence[int]) -> Any:
    asked = math.prod(shape)
    if not tensor.numel():
        raise Unfit("it has no numbers")
    flat = tensor.detach().reshape(-1)
    return flat.repeat(-(-asked // flat.numel()))[:asked].reshape(shape).clone()


def _led_back(value: Any, wanted: Form, has_batch: bool) -> Any:
    """Another type, laid flat, cut or filled with zeros, folded anew; no call tells the batch."""
    shape, dtype = wanted
    axis = int(has_batch)
    place = [int(size or 0) for size in shape[axis:]]
    if value.ndim < axis:
        raise Unfit("it has no instances")
    value = value.to(getattr(torch, dtype))
    if list(value.shape[axis:]) == place:
        return value
    flat = value.flatten(axis) if value.ndim > axis else value.unsqueeze(axis)
    have, asked = flat.shape[axis], math.prod(place)
    if have > asked:
        flat = flat.narrow(axis, 0, asked)
    elif have < asked:
        flat = torch.nn.functional.pad(flat, (0, asked - have))
    return flat.unflatten(axis, place)


def _held(layer: Layer, constants: dict[str, State], blobs: BlobStore) -> Layer:
    """The call with what it read besides the first input as constants of its own."""
    weights: list[Weight] = []

    def told(value: Json) -> Json:
        if isinstance(value, list):
            return [told(part) for part in value]
        read = next(find_refs(value), None) if isinstance(value, dict) and REF in value else None
        if read is None or read.producer not in constants:
            return value
        state = constants[read.producer]
        weights.append(Weight(read.producer, blobs.put(state.array), state.array.shape))
        kind = {"type": "bfloat16"} if state.dtype == "bfloat16" else {}
        return {WEIGHT: len(weights) - 1, **kind}

    kwargs = {name: told(value) for name, value in layer.kwargs.items()}
    return replace(layer, kwargs=kwargs, weights=tuple(weights))
