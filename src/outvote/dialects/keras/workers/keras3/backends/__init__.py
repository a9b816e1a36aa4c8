"""One file per Keras backend: its settings before import, its precision, its modes.

A backend module offers `before_import(mode)`, `after_import(mode)`, `libraries`, `precision(mode)`,
`set_wide(wide)` for models in float64, `no_gradients()` and `modes`: a compiler for each mode.
A compiler takes `forward` (tensors in, tensors out) and returns a function from NumPy arrays to
`(arrays, dtype names)`.

A backend with automatic differentiation also offers `differentiate(objective, variables)`,
`quick`, a compiler for many passes over batches of any size, and `fixed_shapes`, whether it
compiles anew for every size of a batch. `outvote explore` needs them. For training there are
`backward(objective, variables, mode)`, gradients by inputs and variables as a mode finds them, and
`updated(update, variables, mode)`, an update of variables in that mode; `updates_by_values` where
Keras' trainer has optimisers give new values instead of assigning them. One that compiles op by op
offers `hear_of_compiled(told)`, which calls `told` for every piece of code.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from outvote.core.arrays import Array
from outvote.dialects.keras.nouns import devices
from outvote.worker import devices as worker_devices
from outvote.worker.devices import is_played

Tensor = Any
Forward = Callable[[Sequence[Tensor]], list[Tensor]]
Program = Callable[[Sequence[Array]], tuple[list[Array], list[str]]]
"""A compiled or eager function of arrays."""
Objective = Callable[[Sequence[Tensor], Sequence[Tensor]], tuple[Tensor, list[Tensor]]]
"""Inputs and constants to a number, and tensors that are wanted besides."""
Gradient = Callable[[Sequence[Array], Sequence[Array]], tuple[list[Array | None], list[Array]]]
"""Inputs and constants to the gradients of that number by the inputs, and those tensors."""


@dataclass(frozen=True)
class Pulled:
    """What a number depends on: its gradients, None where the library gives none.

    `after` are the values of all variables when it was computed.
    """

    value: Tensor
    results: Sequence[Tensor]
    by_feeds: Sequence[Tensor | None]
    by_variables: Sequence[Tensor | None]
    after: Sequence[Array]


Backward = Callable[[Sequence[Array], Sequence[Array]], Pulled]
"""Inputs and constants to a number and its gradients by inputs and variables."""


def eager(forward: Forward, variables: Callable[[], list[Any]]) -> Program:
    """Call every layer at once, as `model(x)` does."""

    def program(feeds: Sequence[Array]) -> tuple[list[Array], list[str]]:
        return to_arrays(forward([to_tensor(feed) for feed in feeds]))

    return program


def choose_device(backend: str, mode: str) -> None:
    """Let a library see the GPU only where the mode is about it; before it is imported."""
    os.environ.update(devices.environment(backend, mode, is_played()))


def require_gpu(backend: str, mode: str, seen: bool) -> None:
    """Refuse a mode on a GPU where the library sees none."""
    if devices.on_gpu(backend, mode):
        worker_devices.require_gpu(backend, "NVIDIA", seen)


def computed_on(
    device: str, products: Mapping[str, Mapping[str, str]], setting: str
) -> dict[str, str]:
    """What `precision` tells of a device, and of its products of float32 where they are coarser.

    `products` says by device and setting what they are computed in: tf32, bf16, f16.
    """
    coarser = products.get(device, {}).get(setting, "f32")
    told = {} if device == "cpu" else {"device": device}
    return told if coarser == "f32" else {**told, "products": coarser}


def to_tensor(array: Array) -> Tensor:
    """A tensor of the array's own type: by itself Keras would narrow float64 to float32."""
    from keras import ops

    return ops.convert_to_tensor(taken_over(array), dtype=array.dtype.name)


def taken_over(array: Array, dtype: str = "") -> Tensor:
    """The array as its backend takes it as it is: Keras on JAX compiles a cast for every shape.

    `dtype`: the type that its numbers are of, where it travelled in another.
    """
    import keras

    if keras.backend.backend() != "jax":
        return array
    import jax

    return jax.device_put(typed(array, dtype))


def typed(array: Array, dtype: str) -> Array:
    """Numbers that travelled as float32 in the type that they are of: NumPy has no bfloat16."""
    if dtype != "bfloat16":
        return array
    import ml_dtypes

    return array.astype(ml_dtypes.bfloat16)


def to_arrays(tensors: Sequence[Tensor]) -> tuple[list[Array], list[str]]:
    import keras
    import numpy as np

    names = [keras.backend.standardize_dtype(t.dtype) for t in tensors]
    return [np.asarray(keras.ops.convert_to_numpy(t)) for t in tensors], names


@contextmanager
def floats(wide: bool) -> Iterator[None]:
    """What Keras makes where it is told no type is float64, too, if the request is exact.

    Its default policy for layers is made of its default type once, and kept: it is set as well.
    """
    import keras

    if not wide:
        yield
        return
    usual, policy = keras.config.floatx(), keras.mixed_precision.dtype_policy()
    keras.config.set_floatx("float64")
    keras.mixed_precision.set_dtype_policy("float64")
    try:
        yield
    finally:
        keras.config.set_floatx(usual)
        keras.mixed_precision.set_dtype_policy(policy)


@contextmanager
def clipping(border: float | None) -> Iterator[None]:
    """What Keras keeps away from 0 by, where it takes logarithms and divides."""
    import keras

    usual = keras.config.epsilon()
    keras.config.set_epsilon(usual if border is None else border)
    try:
        yield
    finally:
        keras.config.set_epsilon(usual)


def copied(variable: Any) -> Array:
    """The value of a variable now: what the library hands out changes with the variable."""
    import keras
    import numpy as np

    return np.array(keras.ops.convert_to_numpy(variable))


def is_float(tensor: Tensor) -> bool:
    import keras

    return "float" in keras.backend.standardize_dtype(tensor.dtype)


def spread_out(found: Sequence[Tensor | None], wanted: Sequence[bool]) -> list[Tensor | None]:
    """What was found for those that were wanted, in their places among all."""
    left = iter(found)
    return [next(left) if want else None for want in wanted]
