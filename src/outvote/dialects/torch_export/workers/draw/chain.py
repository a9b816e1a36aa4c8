"""Programs of a few operators, each on what the one before gives, all with arguments of samples."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from outvote.core.batch import DrawCases
from outvote.core.protocol import ModelRead
from outvote.dialects.torch_export.workers.draw.layouts import laid_out
from outvote.dialects.torch_export.workers.draw.record import recorded
from outvote.dialects.torch_export.workers.draw.samples import (
    OperatorSample,
    operators,
    samples_of,
    types_of,
)
from outvote.worker.unfit import Unfit

_USUAL = 0.5  # of the programs begin in float32
_LONG = 0.35  # of them have more than one operator
_MOST_NUMBERS = 1 << 16  # in a tensor


@dataclass(frozen=True)
class DrawnProgram:
    """A program as a model, and tensors for its inputs."""

    read: ModelRead
    feeds: Sequence[Any]


def draw_program(chance: random.Random, request: DrawCases) -> DrawnProgram:
    """A program of as many operators, and of such, as are asked for."""
    known = [name for name in request.kinds or operators() if types_of(name)]
    if not known:
        raise Unfit("there are no samples in types that travel")
    length = request.least
    while length < request.most and chance.random() < _LONG:
        length += 1
    sketch = _Sketch(chance)
    dtype = "float32" if chance.random() < _USUAL else ""
    for _ in range(length):
        fitting = [name for name in known if not dtype or dtype in types_of(name)]
        name = chance.choice(fitting or known)
        chosen = dtype if dtype in types_of(name) else chance.choice(types_of(name))
        sketch.add(chance.choice(_samples(name, chosen, request.seed)))
        dtype = chosen
    return sketch.traced(name)


def _samples(name: str, dtype: str, seed: int) -> Sequence[OperatorSample]:
    found = samples_of(name, dtype, seed)
    if not found:
        raise Unfit(f"{name} has no samples in {dtype}")
    return found


@dataclass
class _Sketch:
    """Operators as they are put together."""

    chance: random.Random
    stored: list[Any] = field(default_factory=list)
    steps: list[Callable[[Sequence[Any], Any], Any]] = field(default_factory=list)

    def add(self, sample: OperatorSample) -> None:
        """One more operator, which reads what the last one gives in the place of its input."""
        flat, form = pytree.tree_flatten((sample.input, sample.args, dict(sample.kwargs)))
        tensors = [place for place, value in enumerate(flat) if isinstance(value, torch.Tensor)]
        if self.steps and not tensors:
            raise Unfit("it reads no tensor")
        linked = tensors[0] if self.steps else None
        places = [(n, *self._stored(flat[n])) for n in tensors if n != linked]

        def step(given: Sequence[Any], before: Any) -> Any:
            filled = list(flat)
            for number, place, made in places:
                filled[number] = made(given[place])
            if linked is not None:
                filled[linked] = adapted(before, flat[linked])
            value, args, kwargs = pytree.tree_unflatten(filled, form)
            return sample.function(value, *args, **kwargs)

        self.steps.append(step)

    def _stored(self, tensor: Any) -> tuple[int, Callable[[Any], Any]]:
        """Where a tensor is kept among the inputs, and how it is made of what is kept."""
        if tensor.layout != torch.strided or tensor.numel() > _MOST_NUMBERS:
            raise Unfit("a tensor is sparse, or large")
        held, made = laid_out(tensor, self.chance)
        self.stored.append(held.detach().clone(memory_format=torch.contiguous_format))
        return len(self.stored) - 1, made

    def traced(self, name: str) -> DrawnProgram:
        def forward(*given: Any) -> list[Any]:
            found: Any = None
            for step in self.steps:
                found = step(given, found)
            return [leaf for leaf in pytree.tree_leaves(found) if isinstance(leaf, torch.Tensor)]

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return DrawnProgram(*recorded(name, forward, self.stored))
        except Unfit:
            raise
        except Exception as error:  # whatever PyTorch has against it, it is no case
            raise Unfit(f"{name}: {type(error).__name__}: {error}") from error


def adapted(value: Any, wanted: Any) -> Any:
    """The first tensor in a value, in the shape and type of another: cut, or filled with zeros."""
    tensor = next((v for v in pytree.tree_leaves(value) if isinstance(v, torch.Tensor)), None)
    if tensor is None:
        raise Unfit("there is no tensor to go on with")
    if tensor.dtype != wanted.dtype:
        tensor = tensor.to(wanted.dtype)
    if tensor.shape == wanted.shape:
        return tensor
    flat, asked = tensor.reshape(-1), wanted.numel()
    if flat.numel() > asked:
        flat = flat[:asked]
    elif flat.numel() < asked:
        flat = torch.nn.functional.pad(flat, (0, asked - flat.numel()))
    return flat.reshape(wanted.shape)
