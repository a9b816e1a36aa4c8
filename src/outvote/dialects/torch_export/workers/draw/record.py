"""Calls of operators as they happen, told as a model, by the names of the operators' schemas.

They are those that `torch.export` writes: as they are before PyTorch takes any of them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.schema_check_mode import SchemaCheckMode
from torch.utils._python_dispatch import TorchDispatchMode

from outvote.core.model import Input, Json, Layer, Model, Ref
from outvote.core.protocol import Form, ModelRead
from outvote.dialects.torch_export.nouns.node import (
    DEVICE,
    DTYPE,
    FORMAT,
    LAYOUT,
    PATHS,
    SCALAR_TYPES,
    is_woven,
    kind_of,
    operator_parts,
    ref,
)
from outvote.worker.unfit import Unfit

_TYPES = frozenset(SCALAR_TYPES.values())
_UNSET = ("empty", "new_empty", "resize")  # give memory as they find it
_MARKS = ((torch.dtype, DTYPE), (torch.layout, LAYOUT), (torch.memory_format, FORMAT))
_PLAIN = (bool, int, float, str, type(None))


def recorded(
    name: str, function: Callable[..., Sequence[Any]], feeds: Sequence[Any]
) -> tuple[ModelRead, list[Any]]:
    """What a function does with tensors, and all that it reads: constants become inputs."""
    recorder = _Recorder(feeds)
    with torch.no_grad(), enable_python_dispatcher(), recorder:
        given = function(*feeds)
    return recorder.model(name, given), recorder.feeds


class _Recorder(SchemaCheckMode):  # type: ignore[misc]
    """Sees every call, and lets it happen.

    PyTorch lets three classes look before it takes calls apart; this is the one for onlookers.
    """

    def __init__(self, feeds: Sequence[Any]) -> None:
        TorchDispatchMode.__init__(self, torch._C.DispatchKey.PreDispatch)
        self.feeds: list[Any] = []
        self._inputs: list[Input] = []
        self._layers: list[Layer] = []
        self._specs: dict[str, tuple[Form, ...]] = {}
        self._refs: dict[int, Ref] = {}  # tensors, by their ids
        self._held: list[Any] = []  # so that an id stays that of its tensor
        for tensor in feeds:
            self._feed(tensor)

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        _require_plain(function)
        given = zip(function._schema.arguments, args, strict=False)
        told = {item.name: self._argument(value) for item, value in given}
        told |= {name: self._argument(value) for name, value in kwargs.items()}
        returned = function(*args, **kwargs)
        self._note(kind_of(str(function)), told, returned)
        return returned

    def model(self, name: str, given: Sequence[Any]) -> ModelRead:
        fed = {item.name for item in self._inputs}
        found = [self._refs[id(tensor)] for tensor in given if id(tensor) in self._refs]
        outputs = tuple(shown for shown in dict.fromkeys(found) if shown.producer not in fed)
        if not outputs:
            raise Unfit("it gives no tensor that it computes")
        shapes = [list(self._specs[shown.producer][shown.index][0]) for shown in outputs]
        inputs, layers = tuple(self._inputs), tuple(self._layers)
        model = Model(name, inputs, layers, outputs, "torch_export")
        return ModelRead(model=model, output_shapes=shapes, specs=self._specs)

    def _feed(self, tensor: Any) -> Ref:
        shape, dtype = _form(tensor)
        place = Ref(f"x{len(self._inputs)}")
        self._inputs.append(Input(place.producer, shape, dtype, None))
        self.feeds.append(tensor)
        self._refs[id(tensor)] = place
        return place

    def _note(self, kind: str, told: dict[str, Json], returned: Any) -> None:
        kwargs = {name: value for name, value in told.items() if is_woven(value)}
        config = {name: value for name, value in told.items() if name not in kwargs}
        found = list(_tensors(returned, []))
        if not found:
            raise Unfit(f"{kind} gives no tensor")
        paths = [path for path, _ in found]
        name = self._unused(operator_parts(kind)[1])
        origin = {} if paths == [[]] else {PATHS: paths}
        none = (None,) * len(paths)
        self._layers.append(Layer(name, kind, config, [], kwargs, origin=origin, batch=none))
        self._specs[name] = tuple(_form(tensor) for _, tensor in found)
        for place, (_, tensor) in enumerate(found):
            self._refs[id(tensor)] = Ref(name, place)
            self._held.append(tensor)

    def _unused(self, stem: str) -> str:
        number = sum(operator_parts(layer.kind)[1] == stem for layer in self._layers)
        return f"{stem}_{number}" if number else stem

    def _argument(self, given: Any) -> Json:
        if isinstance(given, torch.Tensor):
            found = self._refs.get(id(given)) or self._feed(given)
            return ref(found.producer, found.index)
        if isinstance(given, list | tuple):
            return [self._argument(item) for item in given]
        if isinstance(given, torch.device):
            return {DEVICE: "cpu"}
        for kind, mark in _MARKS:
            if isinstance(given, kind):
                return {mark: str(given).removeprefix("torch.")}
        if not isinstance(given, _PLAIN):
            raise Unfit(f"an argument is a {type(given).__name__}")
        return given


def _require_plain(function: Any) -> None:
    """An operator that computes what it gives from what it reads, and does nothing else."""
    if not isinstance(function, torch._ops.OpOverload):
        raise Unfit(f"{function} is no operator")
    if function._schema.is_mutable:
        raise Unfit(f"{function} writes over what it reads")
    if torch.Tag.nondeterministic_seeded in function.tags:
        raise Unfit(f"{function} draws numbers")
    if function._schema.name.split("::")[1].startswith(_UNSET):
        raise Unfit(f"{function} gives memory as it finds it")


def _tensors(given: Any, path: list[int]) -> Iterator[tuple[list[int], Any]]:
    """The tensors in what an operator returns, and where."""
    if isinstance(given, torch.Tensor):
        yield path, given
    elif isinstance(given, list | tuple):
        for index, item in enumerate(given):
            yield from _tensors(item, [*path, index])


def _form(tensor: Any) -> Form:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in _TYPES or tensor.layout != torch.strided:
        raise Unfit(f"a tensor is {tensor.layout} and of {dtype}")
    return tuple(tensor.shape), dtype
