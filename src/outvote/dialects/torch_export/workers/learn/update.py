"""An optimiser of `torch.optim` fed with given gradients: its weights, and what it remembers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from outvote.core.blobs import BlobStore
from outvote.core.states import State
from outvote.core.train_protocol import ApplyGradients, GradientsApplied, Leaf, Named
from outvote.dialects.torch_export.workers.learn.modes import Mode
from outvote.dialects.torch_export.workers.shared.tensors import Tensor, as_state, as_tensor
from outvote.worker.main import Context


def optimizer_of(named: Named, parameters: Sequence[Tensor]) -> Any:
    """The optimiser of that name; rows of numbers are tuples there."""
    config = dict(named.get("config") or {})
    plain = {k: tuple(v) if isinstance(v, list) else v for k, v in config.items()}
    return getattr(torch.optim, named["class_name"])(parameters, **plain)


def apply_gradients(context: Context, mode: Mode, request: ApplyGradients) -> GradientsApplied:
    """All updates, one after the other."""
    blobs = context.blobs
    weights = [_tensor(blobs, digest).requires_grad_() for digest in request.weights]
    optimizer = optimizer_of(request.optimizer, weights)
    step = mode.updating(optimizer.step)
    context.begin(len(request.gradients))
    after = []
    for digests in request.gradients:
        for weight, digest in zip(weights, digests, strict=True):
            weight.grad = _tensor(blobs, digest)
        step()
        after.append(tuple(as_state(weight, None).array for weight in weights))
        context.step()
    return GradientsApplied(weights=tuple(after), memory=tuple(_memory(optimizer, weights)))


def _tensor(blobs: BlobStore, digest: str) -> Tensor:
    return as_tensor(State(blobs.get(digest)))


def _memory(optimizer: Any, weights: Sequence[Tensor]) -> Iterator[Leaf]:
    """Every tensor that an optimiser keeps, weight by weight."""
    kept = [
        (f"{name} of weight {place}", value)
        for place, weight in enumerate(weights)
        for name, value in sorted(optimizer.state[weight].items())
        if torch.is_tensor(value)
    ]
    for place, (name, value) in enumerate(kept):
        yield Leaf("", place, name, as_state(value, None).array)
