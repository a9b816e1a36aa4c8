"""A neutral Model as a symbolic graph of Keras 2, and that graph as a function of arrays."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import backend as K  # noqa: N812 - its name in all code of Keras 2
from keras import layers as keras_layers

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import REF, Layer, Model
from outvote.core.states import State
from outvote.dialects.keras.workers.keras2 import layers as keras2_layers

Tensor = Any
Program = Callable[[Sequence[State]], tuple[State, ...]]


def forget() -> None:
    """Drop every graph made so far, and stay in inference."""
    if hasattr(K, "clear_session"):
        K.clear_session()
    K.set_learning_phase(0)


class SymbolicBuilder:
    """Makes layers with their weights and calls them symbolically; a shared layer is made once."""

    def __init__(self, blobs: BlobStore, enter: Callable[[str], None]) -> None:
        self._blobs = blobs
        self._enter = enter
        self._made: dict[str, Any] = {}
        self._noted: set[int] = set()  # objects whose weights are known
        self._pending: list[tuple[Any, Array]] = []

    def fill(self) -> None:
        """Give all weights their values: at once, because each time costs TensorFlow a session."""
        if self._pending:
            K.batch_set_value(self._pending)
        self._pending = []

    def call(self, layer: Layer, states: Mapping[str, Sequence[Tensor]]) -> list[Tensor]:
        """The symbolic outputs of one layer."""
        self._enter(layer.name)
        made = self._layer(layer)
        args = [_filled(argument, states) for argument in _listed(layer.args)]
        given = {key: value for key, value in layer.kwargs.items() if value is not None}
        given.pop("training", None)
        if len(args) != 1 or given:
            raise NotImplementedError(
                f"layer {layer.name!r} ({layer.kind}) is called in a way that Keras 2 has not: "
                f"{len(args)} arguments, {', '.join(given) or 'no keywords'}"
            )
        try:
            outputs = made(args[0])
        except RuntimeError as error:  # so Keras 2 says that a backend lacks a layer, or so:
            silent = isinstance(error, NotImplementedError) and not str(error)
            if not silent and "backend" not in str(error):
                raise
            told = str(error) or f"Keras {keras.__version__} has no {layer.kind} on {K.backend()}"
            raise NotImplementedError(told) from error
        self._note_weights(made, layer)
        return list(outputs) if isinstance(outputs, list | tuple) else [outputs]

    def _layer(self, layer: Layer) -> Any:
        name = layer.shares or layer.name
        if name not in self._made:
            self._made[name] = keras2_layers.make(
                layer.kind, layer.origin.get("module"), layer.config
            )
        return self._made[name]

    def _note_weights(self, made: Any, layer: Layer) -> None:
        """Once per object: by whichever of its calls comes first here."""
        if id(made) in self._noted:
            return
        self._noted.add(id(made))
        shapes = [tuple(K.int_shape(w)) for w in made.weights]
        wanted = [weight.shape for weight in layer.weights]
        if shapes != wanted:
            raise NotImplementedError(
                f"layer {layer.name!r} ({layer.kind}) has weights of shapes {shapes} in Keras 2, "
                f"but the model holds {wanted}"
            )
        if wanted:
            arrays = [np.array(self._blobs.get(w.digest)) for w in layer.weights]
            self._pending += zip(made.weights, _as_loaded(made, arrays), strict=True)


def _as_loaded(made: Any, arrays: list[Array]) -> list[Array]:
    """Weights as Keras loads them from a file that TensorFlow wrote.

    Theano convolves where the others correlate, so that Keras turns its kernels on loading.
    """
    if K.backend() != "theano":
        return arrays
    if importlib.util.find_spec("keras.engine.saving") is not None:  # since 2.2
        module = importlib.import_module("keras.engine.saving")
    else:
        module = importlib.import_module("keras.engine.topology")
    loaded: list[Array] = module.preprocess_weights_for_loading(made, arrays, "2", "tensorflow")
    return loaded


def whole(
    model: Model, builder: SymbolicBuilder, feeds: Sequence[Array], jitter: int | None
) -> Program:
    """The model as one function; with `jitter`, every tensor is moved by about one last place."""
    inputs = [_input(feed, item.dtype) for feed, item in zip(feeds, model.inputs, strict=True)]
    states: dict[str, list[Tensor]] = {}
    for place, (item, tensor) in enumerate(zip(model.inputs, inputs, strict=True)):
        states[item.name] = _moved([tensor], jitter, place)
    for place, layer in enumerate(model.layers):
        states[layer.name] = _moved(builder.call(layer, states), jitter, 100 + place)
    builder.fill()
    outputs = [states[ref.producer][ref.index] for ref in model.outputs]
    return _program(inputs, outputs)


def alone(layer: Layer, builder: SymbolicBuilder, given: Sequence[State]) -> Program:
    """One layer as a function of its input tensors."""
    states: dict[str, dict[int, Tensor]] = {}
    inputs: list[Tensor] = []
    for ref, state in zip(layer.refs(), given, strict=True):
        tensor = _input(state.array, state.dtype)
        inputs.append(tensor)
        if state.mask is not None:
            raise NotImplementedError("masks are not translated to Keras 2")
        states.setdefault(ref.producer, {})[ref.index] = tensor
    outputs = builder.call(layer, states)  # type: ignore[arg-type]
    builder.fill()
    return _program(inputs, outputs)


def _program(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Program:
    function = _function(list(inputs), [_copied(tensor) for tensor in outputs])

    def program(states: Sequence[State]) -> tuple[State, ...]:
        results = function([state.array for state in states])
        return tuple(State(np.asarray(result)) for result in results)

    return program


def _function(inputs: list[Tensor], outputs: list[Tensor]) -> Any:
    if K.backend() == "mxnet":
        module = importlib.import_module(f"{__package__}.mxnet")
        return module.function(inputs, outputs)
    return K.function(inputs, outputs)


def _input(array: Array, dtype: str) -> Tensor:
    if dtype not in ("float32", "int32", "int64", "bool", "uint8"):
        raise NotImplementedError(f"an input of {dtype} is not translated to Keras 2")
    return keras_layers.Input(batch_shape=(None, *array.shape[1:]), dtype=dtype)


def _copied(tensor: Tensor) -> Tensor:
    """Theano refuses an output that is an input too, as a layer without effect makes it."""
    is_input = K.backend() == "theano" and getattr(tensor, "owner", None) is None
    return tensor + 0 if is_input else tensor


def _moved(tensors: Sequence[Tensor], jitter: int | None, place: int) -> list[Tensor]:
    if jitter is None:
        return list(tensors)
    seed = jitter * 10_007 + place
    return [_jittered(tensor, seed, away=not jitter) for tensor in tensors]


def _jittered(tensor: Tensor, seed: int, away: bool) -> Tensor:
    """Moved as keras_graph.jittered does it: one pattern of signs for all, or away from zero."""
    if "float" not in K.dtype(tensor):
        return tensor
    shape = [1 if i == 0 or n is None else int(n) for i, n in enumerate(K.int_shape(tensor))]
    drawn = np.random.default_rng(seed).choice([-1.0, 1.0], size=shape).astype("float32")
    signs = np.ones_like(drawn) if away else drawn

    def move(x: Tensor) -> Tensor:
        size = K.abs(x)
        step = (2.0**-23 * signs) * (size + K.mean(size))
        return x + (K.sign(x) * step if away else step * K.abs(K.sign(x)))  # zeros stay

    return keras_layers.Lambda(move, output_shape=lambda given: given)(tensor)


def _filled(structure: Any, states: Mapping[str, Any]) -> Any:
    """Call arguments with tensors in the place of references."""
    if isinstance(structure, Mapping):
        if REF in structure:
            producer, index = structure[REF]
            return states[producer][index]
        if "$tuple" in structure:
            return [_filled(item, states) for item in structure["$tuple"]]
    if isinstance(structure, list | tuple):
        return [_filled(item, states) for item in structure]
    raise NotImplementedError(f"Keras 2 takes tensors as arguments of a layer, not {structure!r}")


def _listed(args: Any) -> list[Any]:
    return list(args["$tuple"] if isinstance(args, Mapping) else args)
