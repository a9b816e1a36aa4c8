"""A number of a model that can be differentiated, made ready by a mode, and what it is run on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from outvote.core.blobs import BlobStore
from outvote.core.model import Model, Ref
from outvote.core.states import State
from outvote.core.train_protocol import Named
from outvote.dialects.torch_export.workers.learn.modes import Mode
from outvote.dialects.torch_export.workers.learn.objective import (
    ProgramWeight,
    objective,
    parameters_of,
)
from outvote.dialects.torch_export.workers.shared.engine import with_numbers
from outvote.dialects.torch_export.workers.shared.tensors import (
    Tensor,
    as_number,
    as_tensor,
    sizes_among,
)


@dataclass(frozen=True)
class Given:
    """The tensors of one run."""

    feeds: Sequence[Tensor]
    weights: Sequence[Tensor]
    constants: Sequence[Tensor] = ()  # cotangents, and the truth

    @property
    def all(self) -> list[Tensor]:
        return [*self.feeds, *self.weights, *self.constants]


@dataclass(frozen=True)
class Came:
    """What a run gave; no number: there is nothing to differentiate."""

    value: Tensor | None
    outputs: Sequence[Tensor]
    kept: Sequence[Tensor]  # weights that are not learned, as they were left


class NumberProgram:
    """Runs forward with whatever its mode makes of the graph, and backward by autograd."""

    def __init__(
        self,
        mode: Mode,
        model: Model,
        given: Given,
        cotangents: Sequence[bool] = (),
        loss: Named | None = None,
    ) -> None:
        self._mode = mode
        self._outputs = len(model.outputs)
        self._has_number = any(cotangents) or loss is not None
        self.parameters = parameters_of(model)
        wide = any(item.dtype == "float64" for item in model.inputs)
        module = objective(model, cotangents, loss, wide)
        self._run = mode.load(module, [tensor.clone() for tensor in given.all])

    def forward(self, given: Given) -> Came:
        with torch.enable_grad():
            found = list(self._run(*given.all))
        value = found.pop(0) if self._has_number else None
        return Came(value, found[: self._outputs], found[self._outputs :])

    def gradients(self, came: Came, leaves: Sequence[Tensor]) -> list[Tensor | None]:
        """Of the number by each leaf; None where it does not depend on it."""
        if came.value is None or not came.value.requires_grad or not leaves:
            return [None] * len(leaves)
        with self._mode.backward():
            found = torch.autograd.grad(came.value, list(leaves), allow_unused=True)
        return [g.to_dense() if g is not None and g.is_sparse else g for g in found]


def fed(model: Model, digests: Sequence[str], blobs: BlobStore) -> list[State]:
    pairs = zip(model.inputs, digests, strict=True)
    return [State.fed(blobs.get(digest), item) for item, digest in pairs]


def weight_tensors(parameters: Sequence[ProgramWeight], blobs: BlobStore) -> list[Tensor]:
    """A tensor of its own for every weight."""
    return [as_tensor(State(blobs.get(p.digest), dtype=p.dtype)) for p in parameters]


def without_sizes(model: Model, feeds: Sequence[State]) -> Model:
    """The model with sizes that it is fed with as plain numbers: no tensor stands for them."""
    known = {Ref(i.name): feed for i, feed in zip(model.inputs, feeds, strict=True)}

    def plain(layer: Any) -> Any:
        numbers = {r: as_number(known[r]) for r in sizes_among(layer) if r in known}
        return with_numbers(layer, numbers) if numbers else layer

    return replace(model, layers=tuple(map(plain, model.layers)))
