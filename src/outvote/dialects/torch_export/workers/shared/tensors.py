"""Tensors of PyTorch and of the driver, and arguments of a call with tensors in them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import REF, Json, Layer, Ref
from outvote.core.states import State
from outvote.dialects.torch_export.nouns.node import (
    DEVICE,
    MARKS,
    SIZE,
    SIZE_FUNCTIONS,
    WEIGHT,
    operator_parts,
    paths_of,
)

Tensor = Any
_MODULES = {"_operator": operator, "torch": torch, "math": math}


@cache
def callable_of(kind: str) -> Callable[..., Any]:
    """What computes a layer; the only place where a name of a file becomes something to call."""
    if kind in SIZE_FUNCTIONS:
        module, name = kind.split(".")
        return getattr(_MODULES[module], name)  # type: ignore[no-any-return]
    namespace, name, overload = operator_parts(kind)
    try:
        found = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    except (AttributeError, RuntimeError) as error:
        raise NotImplementedError(f"PyTorch {torch.__version__} has no operator {kind}") from error
    if not isinstance(found, torch._ops.OpOverload):
        raise NotImplementedError(f"{kind} is no operator of PyTorch")
    return found  # type: ignore[no-any-return]


def arguments(
    layer: Layer, read: Callable[[Ref], Any], weight: Callable[[int, Json], Any]
) -> dict[str, Any]:
    """The arguments of a call by name; `read` and `weight` say what stands for tensors."""

    def made(told: Json) -> Any:
        if isinstance(told, Mapping):
            if REF in told:
                return read(Ref(*told[REF]))
            if WEIGHT in told:
                return weight(int(told[WEIGHT]), told)
            if SIZE in told:
                return read(Ref(*told[SIZE][REF]))
            ((mark, value),) = told.items()
            if mark not in MARKS:
                raise ValueError(f"an argument of {layer.name!r} is not understood: {mark!r}")
            return torch.device("cpu") if mark == DEVICE else getattr(torch, value)
        return [made(item) for item in told] if isinstance(told, list | tuple) else told

    return {name: made(told) for name, told in {**layer.config, **layer.kwargs}.items()}


def called(layer: Layer, named: Mapping[str, Any]) -> Any:
    """What the operator of a layer returns; what it writes over is a copy."""
    copied = {name: named[name].clone() for name in written_over(layer.kind) if name in named}
    given, more = as_written(layer.kind, {**named, **copied})
    return callable_of(layer.kind)(*given, **more)


def as_written(kind: str, named: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by place, as far as the operator takes them so, and the others by name."""
    if kind in SIZE_FUNCTIONS:
        return tuple(named.values()), {}
    schema = callable_of(kind)._schema  # type: ignore[attr-defined]
    leading = []
    for argument in schema.arguments:
        if argument.kwarg_only or argument.name not in named:
            break
        leading.append(argument.name)
    rest = {name: value for name, value in named.items() if name not in leading}
    return tuple(named[name] for name in leading), rest


@cache
def written_over(kind: str) -> tuple[str, ...]:
    """The arguments that an operator writes over: others may read them too."""
    schema = getattr(callable_of(kind), "_schema", None)
    arguments = schema.arguments if schema is not None and schema.is_mutable else ()
    plain = (a for a in arguments if str(a.type) == "Tensor" and a.alias_info is not None)
    return tuple(a.name for a in plain if a.alias_info.is_write)


def parts(layer: Layer, returned: Any) -> list[Any]:
    """The tensors that a layer gives, in order."""
    found = []
    for path in paths_of(layer):
        part = returned
        for index in path:
            part = part[index]
        found.append(part)
    return found


def sizes_among(layer: Layer) -> set[Ref]:
    """The references of a layer that are numbers, not tensors."""

    def found(told: Json) -> list[Ref]:
        if isinstance(told, Mapping):
            return [Ref(*told[SIZE][REF])] if SIZE in told else []
        return [r for item in told for r in found(item)] if isinstance(told, list | tuple) else []

    return {r for told in layer.kwargs.values() for r in found(told)}


def as_tensor(state: State) -> Tensor:
    """A tensor of its own, which may be written over."""
    tensor = torch.from_numpy(np.array(state.array, order="C"))
    return tensor.to(torch.bfloat16) if state.dtype == "bfloat16" else tensor


def as_number(state: State) -> Any:
    return state.array.item()


def as_state(value: Any, axis: int | None) -> State:
    """What a call gave, for the driver: a size is a number without dimensions."""
    if not isinstance(value, torch.Tensor):
        return State(np.asarray(value), batch=None)
    dtype = str(value.dtype).removeprefix("torch.")
    plain = value.detach().to("cpu")
    plain = plain.float() if value.dtype == torch.bfloat16 else plain
    array: Array = np.array(plain.resolve_conj().resolve_neg().numpy())
    there = axis is not None and axis < array.ndim
    return State(array, None, dtype, axis if there else None)


class Weights:
    """Constants of models as tensors; those of the last model are kept."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._held: dict[tuple[str, str], Tensor] = {}

    def of(self, layer: Layer) -> Callable[[int, Json], Tensor]:
        def tensor(place: int, told: Json) -> Tensor:
            digest, dtype = layer.weights[place].digest, str(told.get("type", ""))
            if (digest, dtype) not in self._held:
                array = np.asarray(self._blobs.get(digest))
                state = State(array, dtype=dtype or array.dtype.name)
                self._held[digest, dtype] = as_tensor(state)
            found = self._held[digest, dtype]
            return found.clone() if may_write(layer) else found

        return tensor

    def keep_only(self, layers: Sequence[Layer]) -> None:
        wanted = {weight.digest for layer in layers for weight in layer.weights}
        self._held = {key: held for key, held in self._held.items() if key[0] in wanted}


_STATISTICS = ("batch_norm", "instance_norm")  # in training they move their running means


def may_write(layer: Layer) -> bool:
    """Whether a call may change the numbers of a constant that it reads."""
    function = callable_of(layer.kind)
    schema = getattr(function, "_schema", None)
    return (schema is not None and schema.is_mutable) or any(n in layer.kind for n in _STATISTICS)
