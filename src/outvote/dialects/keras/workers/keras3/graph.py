"""Builds Keras layers from a neutral Model and walks the graph with them."""

from __future__ import annotations

import inspect
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from outvote.core.blobs import BlobStore
from outvote.core.model import REF, Layer, Model, digest_of
from outvote.dialects.keras.workers.keras3.backends import taken_over
from outvote.dialects.keras.workers.keras3.memory import Memory
from outvote.dialects.keras.workers.keras3.safety import refuse_code
from outvote.dialects.keras.workers.keras3.versions import fitted
from outvote.worker.main import Refused

Tensor = Any
States = dict[str, list[Tensor]]

_LAYER_CACHE_ENTRIES = 4096
_LAYER_CACHE_BYTES = 2 << 30
_OUTPUT_CACHE_BYTES = 512 << 20
_SPARE_BYTES = 16 << 20  # of weights that a file need not hold
_SPARE_RATIO = 8  # float64 in the place of 8 bits


class Workshop:
    """Builds layer objects and keeps them by content, so that a mutant rebuilds only its change."""

    def __init__(self, blobs: BlobStore, allow_code: bool, custom: Mapping[str, Any]) -> None:
        self._blobs = blobs
        self._allow_code = allow_code
        self._custom = custom
        self._cache: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def layer(self, layer: Layer, call: Callable[[Any], object]) -> Any:
        """The layer object with its weights. `call` runs it once if only a call can build it.

        Where a configuration tells no type, Keras' default one makes it another object.
        """
        key = digest_of(layer.object_digest, keras.config.floatx())
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key][0]
        made = self._make(layer, call)
        size = sum(int(np.prod(w.shape)) * 4 for w in layer.weights)
        self._cache[key] = (made, size)
        self._bytes += size
        while len(self._cache) > _LAYER_CACHE_ENTRIES or (
            self._bytes > _LAYER_CACHE_BYTES and len(self._cache) > 1
        ):
            self._bytes -= self._cache.popitem(last=False)[1][1]
        return made

    def _make(self, layer: Layer, call: Callable[[Any], object]) -> Any:
        with zeros_for_weights():
            made = self.revive(spec_of(layer))
            if len(getattr(made, "weights", ())) != len(layer.weights):
                call(made)
        variables = list(getattr(made, "weights", ()))
        if [tuple(v.shape) for v in variables] != [w.shape for w in layer.weights]:
            raise ValueError(
                f"layer {layer.name!r} ({layer.kind}) has weights of shapes "
                f"{[tuple(v.shape) for v in variables]} here, "
                f"but the model holds {[w.shape for w in layer.weights]}"
            )
        for variable, weight in zip(variables, layer.weights, strict=True):
            value = np.array(self._blobs.get(weight.digest))
            variable.assign(taken_over(value, variable.dtype))
        _finalize(made)
        return made

    def revive(self, spec: Any) -> Any:
        """A Keras object from its serialised form, under the user's rules on code."""
        if not self._allow_code:
            refuse_code(spec, self._custom)
        return keras.saving.deserialize_keras_object(
            fitted(spec), custom_objects=dict(self._custom), safe_mode=not self._allow_code
        )


def _finalize(made: Any) -> None:
    """Preprocessing layers derive what they compute with from their weights, on request."""
    parts = made._flatten_layers() if hasattr(made, "_flatten_layers") else ()
    for part in parts:
        if isinstance(part, keras.layers.Normalization):
            part.finalize_state()


def spec_of(layer: Layer) -> dict[str, Any]:
    return {
        "class_name": layer.kind,
        "module": layer.origin.get("module"),
        "registered_name": layer.origin.get("registered"),
        "config": dict(layer.config),
        "build_config": dict(layer.origin["build"]) if layer.origin.get("build") else None,
    }


@contextmanager
def zeros_for_weights(held: int | None = None) -> Iterator[None]:
    """Build weights as zeros: initialisers cost most of a build and are overwritten anyway.

    `held` is how many bytes of weights a file brings: a model that asks for far more is refused
    before they are made.
    """
    original = keras.layers.Layer.add_weight
    zeros = _zeros if keras.backend.backend() == "jax" else "zeros"
    made = 0

    def add_weight(self: Any, shape: Any = None, initializer: Any = None, *a: Any, **k: Any) -> Any:
        nonlocal made
        made += 4 * math.prod(shape if isinstance(shape, list | tuple) else [shape or 1])
        if held is not None and made > _SPARE_BYTES + _SPARE_RATIO * held:
            raise Refused(
                f"the model asks for more than {made:,} bytes of weights, but its file holds "
                f"{held:,}"
            )
        return original(self, shape, zeros, *a, **k)

    keras.layers.Layer.add_weight = add_weight
    try:
        yield
    finally:
        keras.layers.Layer.add_weight = original


def _zeros(shape: Any, dtype: Any = None) -> Any:
    """For JAX, which would compile its own zeros for every shape."""
    return taken_over(np.zeros(shape, keras.backend.standardize_dtype(dtype)))


class OutputCache:
    """Layer outputs by Merkle digest, bounded in bytes, oldest out first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[list[Tensor], int]] = OrderedDict()
        self._bytes = 0
        self.hits = 0

    def get(self, key: str) -> list[Tensor] | None:
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        self.hits += 1
        return self._kept[key][0]

    def put(self, key: str, tensors: list[Tensor]) -> None:
        size = sum(int(np.prod(t.shape)) * 4 for t in tensors)
        if key in self._kept or size > _OUTPUT_CACHE_BYTES:
            return
        self._kept[key] = (tensors, size)
        self._bytes += size
        while self._bytes > _OUTPUT_CACHE_BYTES:
            self._bytes -= self._kept.popitem(last=False)[1][1]


class Graph:
    """A model whose layers can be called on this backend.

    Not `learning`: what a call in training leaves in a layer, as BatchNormalization's moving
    statistics, is taken back at once.
    """

    def __init__(
        self,
        model: Model,
        workshop: Workshop,
        enter: Callable[[str], None],
        learning: bool = False,
    ) -> None:
        self.model = model
        self._learning = learning
        self._workshop = workshop
        self._enter = enter
        self._last_use = model.last_use()
        self._made: dict[str, tuple[Any, Memory]] = {}

    def call(self, layer: Layer, states: States) -> list[Tensor]:
        """The outputs of one layer on the given tensors; a stateful one begins with zeros."""
        self._enter(layer.name)
        args, kwargs = self.filled(layer, states)
        given = [states[ref.producer][ref.index] for ref in layer.refs()]
        if layer.name not in self._made:
            with _masks_stay(given):
                self._keep(layer, lambda new: new(*args, **asked_for(new, kwargs)))
        made, memory = self._made[layer.name]
        kwargs = asked_for(made, kwargs)
        memory.clear(_batch(layer, states))
        learns = self._learning or not kwargs.get("training")
        with _masks_stay(given), nullcontext() if learns else _statistics_stay(made):
            return list(tree.flatten(made(*args, **kwargs)))

    def made(self, name: str) -> Any:
        """The object of a layer that was made."""
        return self._made[name][0]

    def prepare(self, batch: int) -> None:
        """Make room for the states of a batch: inside a trace it would be too late."""
        for _, memory in self._made.values():
            memory.clear(batch)

    def filled(self, layer: Layer, states: States) -> tuple[Any, Any]:
        """What a layer is called with, tensors in the place of references."""
        return self._fill(layer.args, states), self._fill(layer.kwargs, states)

    def make_all(self, feeds: Callable[[], Sequence[Tensor]]) -> None:
        """Make every layer object now: inside a trace it would be too late."""
        if any(layer.weights and not layer.origin.get("build") for layer in self.model.layers):
            self.forward(feeds())
        for layer in self.model.layers:
            if layer.name not in self._made:
                self._keep(layer, lambda new: None)

    def make_one(self, layer: Layer, call: Callable[[], object]) -> None:
        """Make one layer object before it is traced."""
        if layer.weights and not layer.origin.get("build"):
            call()
        elif layer.name not in self._made:
            self._keep(layer, lambda new: None)

    def variables(self) -> list[Any]:
        """All variables of the layers made so far, each once."""
        found = {
            id(variable): variable
            for made, _ in self._made.values()
            for variable in getattr(made, "variables", ())
        }
        return list(found.values())

    def forward(
        self,
        feeds: Sequence[Tensor],
        *,
        jitter: int | None = None,
        still: Collection[str] = (),
        after: Callable[[], None] | None = None,
    ) -> list[Tensor]:
        """The model's outputs. Tensors are dropped after their last use.

        `jitter` moves what layers give, except those that are to be `still`.
        """
        states: States = {
            item.name: [feed] for item, feed in zip(self.model.inputs, feeds, strict=True)
        }
        for position, layer in enumerate(self.model.layers):
            outputs = self.call(layer, states)
            if jitter is not None and layer.name not in still:
                outputs = [jittered(t, jitter and jitter + position + 1) for t in outputs]
            states[layer.name] = outputs
            for name in layer.inputs:
                if self._last_use[name] == position:
                    del states[name]
            if after is not None:
                after()
        return [states[ref.producer][ref.index] for ref in self.model.outputs]

    def forward_cached(
        self,
        feeds: Sequence[Tensor],
        feeds_digest: str,
        cache: OutputCache,
        watch: Sequence[str] = (),
    ) -> tuple[list[Tensor], list[list[Tensor]]]:
        """The model's outputs, recomputing only what no earlier model computed on these feeds.

        Also what the layers to `watch` gave, hidden ones included.
        """
        digests = self.model.digests()
        states: States = {
            item.name: [feed] for item, feed in zip(self.model.inputs, feeds, strict=True)
        }
        wanted = {ref.producer for ref in self.model.outputs} | set(watch)
        todo: list[Layer] = []
        for layer in reversed(self.model.layers):
            if layer.name not in wanted:
                continue
            kept = cache.get(digests[layer.name] + feeds_digest)
            if kept is not None:
                states[layer.name] = kept
                continue
            todo.append(layer)
            wanted.update(layer.inputs)
        for layer in reversed(todo):
            states[layer.name] = self.call(layer, states)
            cache.put(digests[layer.name] + feeds_digest, states[layer.name])
        outputs = [states[ref.producer][ref.index] for ref in self.model.outputs]
        return outputs, [states[name] for name in watch]

    def _keep(self, layer: Layer, call: Callable[[Any], object]) -> None:
        made = self._workshop.layer(layer, call)
        self._made[layer.name] = made, Memory(made)

    def _fill(self, structure: Any, states: States) -> Any:
        """Call arguments with tensors in the place of references."""
        if isinstance(structure, Mapping):
            if REF in structure:
                producer, index = structure[REF]
                return states[producer][index]
            if "$tuple" in structure:
                return tuple(self._fill(item, states) for item in structure["$tuple"])
            if "$object" in structure:
                return self._workshop.revive(structure["$object"])
            return {key: self._fill(value, states) for key, value in structure.items()}
        if isinstance(structure, list | tuple):
            return [self._fill(item, states) for item in structure]
        return structure


def _batch(layer: Layer, states: States) -> int | None:
    """How many instances a layer is given; None while that is unknown."""
    first = next(layer.refs(), None)
    if first is None:
        return None
    shape = tuple(states[first.producer][first.index].shape)
    return int(shape[0]) if shape and shape[0] is not None else None


def jittered(tensor: Tensor, seed: int) -> Tensor:
    """The tensor moved by about one unit in the last place, up or down at random.

    Seed 0 moves all away from zero: in a chain of single numbers, random moves may cancel.
    The step is relative to the element and to the mean size of the tensor: a sum of many terms
    that cancel is rounded relative to its terms, not to its small result. Exact zeros stay: they
    are padding, or masked, or what a ReLU cut off, and no rounding.
    """
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    if "float" not in dtype:
        return tensor
    wide = "float64" if dtype == "float64" else "float32"
    # One pattern for all instances of a batch: its size may be unknown while compiling.
    shape = [1 if i == 0 or n is None else int(n) for i, n in enumerate(tensor.shape)]
    values = ops.cast(tensor, wide)
    drawn = np.random.default_rng(seed).choice([-1.0, 1.0], size=shape)
    # A tensor, for PyTorch multiplies by no array where gradients are asked for.
    signs = ops.convert_to_tensor(drawn, dtype=wide) if seed else ops.sign(values)
    size = ops.abs(values)
    size = ops.where(ops.isfinite(size), size, ops.zeros_like(size))  # NaN moves no other element
    epsilon = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}.get(dtype, 2.0**-52)
    step = epsilon * (size + ops.mean(size)) * signs
    moved = ops.cast(values + ops.where(values == 0, ops.zeros_like(step), step), dtype)
    mask = get_mask(tensor)
    if mask is not None:
        set_mask(moved, mask)
    return moved


def asked_for(made: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Without the mask of what is read, which a layer alone is told, where it asks for none."""
    asks = inspect.signature(getattr(made, "call", made)).parameters.values()
    takes = any(p.name == "mask" or p.kind is inspect.Parameter.VAR_KEYWORD for p in asks)
    return {key: value for key, value in kwargs.items() if takes or key != "mask"}


@contextmanager
def _statistics_stay(made: Any) -> Iterator[None]:
    """Put back the weights of a layer that are not learned: the next call must find them again."""
    before = [(v, ops.copy(v)) for v in getattr(made, "non_trainable_variables", ())]
    yield
    for variable, value in before:
        variable.assign(value)


@contextmanager
def _masks_stay(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Put back the masks that a layer takes off what it is given, as MultiHeadAttention does.

    Who reads the tensor after it, or in the next run, would compute something else.
    """
    masks = [get_mask(tensor) for tensor in tensors]
    yield
    for tensor, mask in zip(tensors, masks, strict=True):
        if mask is not None and get_mask(tensor) is None:
            set_mask(tensor, mask)


def get_mask(tensor: Tensor) -> Tensor | None:
    from keras.src import backend

    if hasattr(backend, "get_keras_mask"):  # since 3.6; NumPy's arrays take no attributes
        return backend.get_keras_mask(tensor)
    return getattr(tensor, "_keras_mask", None)


def set_mask(tensor: Tensor, mask: Tensor) -> None:
    from keras.src import backend

    if hasattr(backend, "set_keras_mask"):  # since 3.6
        backend.set_keras_mask(tensor, mask)
    else:
        tensor._keras_mask = mask
