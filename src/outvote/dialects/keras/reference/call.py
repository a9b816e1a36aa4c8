"""One call of one layer, with tensors in place: what every formula of the reference is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import REF, Json, Layer
from outvote.core.states import State
from outvote.dialects.keras.layers import is_inert, policy_name

_FLOATS = frozenset(
    "float16 bfloat16 float32 float64 mixed_float16 mixed_bfloat16 int64 int32".split()
)


class NotCovered(Exception):  # noqa: N818 - a limit of the reference, not an error of anyone
    """There is no formula for this kind, this parameter or this argument."""


@dataclass(frozen=True)
class Call:
    """A layer's parameters, its weights, and its arguments with tensors in place.

    Every parameter must be read (or be named as irrelevant): one that a formula does not know
    may change the result, so the call is not covered.
    """

    kind: str
    config: Mapping[str, Json]
    weights: tuple[Array, ...]
    args: tuple[Any, ...]  # tensors are States: (tensor, mask)
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    _read: set[str] = field(default_factory=set)

    def get(self, name: str, default: Json = None) -> Json:
        """A parameter; the default is Keras' own, for files that leave it out."""
        self._read.add(name)
        return self.config.get(name, default)

    def irrelevant(self, names: str) -> None:
        """Parameters that change how, or how fast, but not what is computed."""
        self._read.update(names.split())

    def only(self, name: str, *values: Json) -> Json:
        """A parameter that is covered for these values alone; the first is the default."""
        value = self.get(name, values[0])
        if value not in values:
            raise NotCovered(f"{self.kind}({name}={value!r})")
        return value

    def require_all_read(self) -> None:
        """Refuse a parameter that no formula looked at: it may matter."""
        for name, value in self.config.items():
            known = name in self._read or is_inert(name)
            if not known and value is not None:
                raise NotCovered(f"{self.kind}({name}={value!r})")

    def arguments(self, *names: str) -> list[Any]:
        """The call's arguments in the order of these names; None where one is not given."""
        if len(self.args) > len(names):
            raise NotCovered(f"{self.kind} called with {len(self.args)} arguments")
        bound = dict(zip(names, self.args, strict=False))
        for name, value in self.kwargs.items():
            if value is None or (name == "training" and (value is False or self._never_drops)):
                continue
            if name not in names or name in bound:
                raise NotCovered(f"{self.kind} called with {name}")
            bound[name] = value
        return [bound.get(name) for name in names]

    @property
    def _never_drops(self) -> bool:
        """Whether it does in training what it does at inference: it could drop, and drops none."""
        rates = [self.config.get(name) for name in ("dropout", "recurrent_dropout")]
        return "dropout" in self.config and not any(rates)

    def input(self) -> Array:
        """The one tensor that the layer reads; its mask does not matter to the layer."""
        return tensor(self.arguments("inputs")[0])

    def floats(self) -> Array:
        """The one tensor that the layer reads, in float64."""
        return wide(self.input())

    def unpack(self, *wanted: bool) -> list[Array | None]:
        """The weights that are there, None for the others; refuses any other number of them."""
        if len(self.weights) != sum(wanted):
            raise NotCovered(f"{self.kind} with {len(self.weights)} weights")
        queue = iter(self.weights)
        return [next(queue) if there else None for there in wanted]


def call_of(layer: Layer, weights: Sequence[Array], given: Sequence[State]) -> Call:
    """The call that a layer of a model makes; `given` are the tensors it reads, in call order."""
    module, registered = layer.origin.get("module"), layer.origin.get("registered")
    if module not in (None, "keras.layers") or registered not in (None, layer.kind):
        raise NotCovered(f"{layer.kind} of {module or registered}")
    tensors = iter(given)
    args = tuple(_filled(item, tensors) for item in layer.args)
    kwargs = {name: _filled(item, tensors) for name, item in layer.kwargs.items()}
    return _checked(Call(layer.kind, layer.config, _wide_all(weights), args, kwargs))


def nested(spec: Json, weights: Sequence[Array], *args: Any, **kwargs: Any) -> Call:
    """A call of a layer that stands, serialised, among the parameters of another."""
    if not isinstance(spec, Mapping) or spec.get("module") != "keras.layers":
        raise NotCovered(f"a layer inside that is not of Keras: {spec!r}")
    return _checked(Call(spec["class_name"], spec["config"], _wide_all(weights), args, kwargs))


def tensor(argument: Any) -> Array:
    """The tensor of an argument that must be one."""
    if not is_state(argument):
        raise NotCovered("an argument that is no tensor")
    found: Array = argument[0]
    return found


def mask_of(argument: Any) -> Array | None:
    """The mask that travels with a tensor."""
    found: Array | None = argument[1] if is_state(argument) else None
    return found


def is_state(argument: Any) -> bool:
    return isinstance(argument, tuple)


def wide(array: Array) -> Array:
    """Any numbers as float64."""
    return array.astype(np.float64)


def _wide_all(weights: Sequence[Array]) -> tuple[Array, ...]:
    return tuple(wide(weight) for weight in weights)


def _checked(call: Call) -> Call:
    """Quantised layers compute something else than their formula says."""
    policy = policy_name(call.config.get("dtype"))
    if policy is not None and policy not in _FLOATS:
        raise NotCovered(f"{call.kind}(dtype={policy!r})")
    return call


def _filled(structure: Any, tensors: Iterator[State]) -> Any:
    if isinstance(structure, Mapping):
        if REF in structure:
            state = next(tensors)
            mask = None if state.mask is None else np.asarray(state.mask, bool)
            return np.asarray(state.array), mask
        if "$tuple" in structure:
            return [_filled(item, tensors) for item in structure["$tuple"]]
        raise NotCovered("an argument that is an object")
    if isinstance(structure, list | tuple):
        return [_filled(item, tensors) for item in structure]
    return structure
