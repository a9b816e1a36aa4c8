"""Which functions of its backend Keras calls for a model, and the same calls on another backend.

Layers call `keras.src.backend.nn.conv` and the like, which every backend has. They are replaced by
functions that note what they are given and give; only the outermost call counts. What is given
something that is no tensor or plain value (a function, as `rnn` is) is looked into instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import keras
import numpy as np
from keras import tree
from keras.src import backend

from outvote.core.arrays import Array
from outvote.core.frames import in_packages
from outvote.core.model import Model
from outvote.core.states import State
from outvote.core.trace_protocol import TENSOR, Replayed, TracedCall
from outvote.dialects.keras.workers.keras3.backends import to_arrays, to_tensor, typed
from outvote.dialects.keras.workers.keras3.graph import Graph, Workshop

_MODULES = ("nn", "numpy", "math", "image", "linalg", "core")
_MOST_CALLS = 200
_PLAIN = (str, int, float, bool, type(None))


class _Opaque(Exception):  # noqa: N818 - no error: the call is looked into instead
    """An argument that cannot travel."""


class Tracer:
    """Notes calls while it is installed."""

    def __init__(self) -> None:
        self.calls: list[TracedCall] = []
        self._depth = 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        replaced: list[tuple[Any, str, Any]] = []
        for module in _MODULES:
            found = getattr(backend, module, None)
            if isinstance(found, ModuleType):
                replaced += self._replace(found, module)
        try:
            yield
        finally:
            for holder, name, original in replaced:
                setattr(holder, name, original)

    def _replace(self, module: ModuleType, label: str) -> list[tuple[Any, str, Any]]:
        """Every public function that the module itself defines, wherever Keras looks for it."""
        replaced: list[tuple[Any, str, Any]] = []
        for name, function in list(vars(module).items()):
            if name.startswith("_") or not inspect.isfunction(function):
                continue
            if function.__module__ != module.__name__:
                continue
            noted = self._noted(f"{label}.{name}", function)
            for holder in (module, backend):
                if getattr(holder, name, None) is function:
                    replaced.append((holder, name, function))
                    setattr(holder, name, noted)
        return replaced

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Calls from here on are not the outermost."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _noted(self, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._depth or len(self.calls) >= _MOST_CALLS:
                return function(*args, **kwargs)
            tensors: list[State] = []
            try:
                with self._inside():
                    given = _written(args, tensors), _written(kwargs, tensors)
            except _Opaque:
                return function(*args, **kwargs)
            with self._inside():
                result = function(*args, **kwargs)
                results = _states(result)
            if results and tensors:
                code = inspect.unwrap(function).__code__  # not that of a decorator
                file = in_packages(code.co_filename) or code.co_filename
                first = code.co_firstlineno
                noted = TracedCall(label, file, first, *given, tuple(tensors), results)
                self.calls.append(noted)
            return result

        return call


def trace(model: Model, workshop: Workshop, arrays: Sequence[Array]) -> tuple[TracedCall, ...]:
    """The calls of one run; layers are built before."""
    feeds = [typed(np.array(a), item.dtype) for a, item in zip(arrays, model.inputs, strict=True)]
    graph = Graph(model, workshop, lambda name: None)
    graph.forward([to_tensor(feed) for feed in feeds])
    tensors = [to_tensor(feed) for feed in feeds]
    tracer = Tracer()
    with tracer.installed():
        graph.forward(tensors)
    return tuple(tracer.calls)


def replay(calls: Sequence[TracedCall]) -> tuple[Replayed, ...]:
    return tuple(map(_replayed, calls))


def _replayed(call: TracedCall) -> Replayed:
    module, _, name = call.function.partition(".")
    function = getattr(getattr(backend, module, None), name, None)
    if function is None:
        return Replayed((), f"there is no {call.function} here")
    tensors = [to_tensor(typed(np.array(s.array), s.dtype)) for s in call.tensors]
    try:
        args, kwargs = _filled(call.args, tensors), _filled(call.kwargs, tensors)
        return Replayed(_states(function(*args, **kwargs)))
    except Exception as error:  # whatever the library raises is its answer
        return Replayed((), f"{type(error).__name__}: {error}"[:300])


def _written(value: Any, tensors: list[State]) -> Any:
    """Arguments as plain data; tensors are put aside."""
    if isinstance(value, keras.Variable):
        value = value.value
    if backend.is_tensor(value) or isinstance(value, np.ndarray):
        tensors.extend(_states(value))
        return {TENSOR: len(tensors) - 1}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple):
        return {"$tuple": [_written(item, tensors) for item in value]}
    if isinstance(value, list):
        return [_written(item, tensors) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _written(item, tensors) for key, item in value.items()}
    raise _Opaque


def _filled(value: Any, tensors: Sequence[Any]) -> Any:
    if isinstance(value, Mapping):
        if TENSOR in value:
            return tensors[value[TENSOR]]
        if "$tuple" in value:
            return tuple(_filled(item, tensors) for item in value["$tuple"])
        return {key: _filled(item, tensors) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, tensors) for item in value]
    return value


def _states(result: Any) -> tuple[State, ...]:
    """The tensors among what a function gives."""
    found = [t for t in tree.flatten(result) if backend.is_tensor(t) or isinstance(t, np.ndarray)]
    arrays, dtypes = to_arrays(found)
    states = [
        State(np.array(array), dtype=dtype)
        for array, dtype in zip(arrays, dtypes, strict=True)
        if array.dtype.kind in "biuf" or dtype == "bfloat16"
    ]
    return tuple(states)
