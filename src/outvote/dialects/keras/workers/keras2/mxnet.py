"""Computes a symbolic graph of keras-mxnet with all its weights.

MXNet keeps the moving mean and variance of a BatchNorm as auxiliary states, apart from the
arguments. `K.function` of keras-mxnet 2.2.4.3 fills the arguments alone, so that there every
BatchNormalization divides by the root of epsilon; its `predict` fills both, and so does this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mxnet as mx
from keras.backend import mxnet_backend

from outvote.core.arrays import Array

Tensor = Any


def function(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor]
) -> Callable[[list[Array]], list[Array]]:
    """What `K.function` is on other backends, for inference."""

    def computed(output: Tensor, arrays: Sequence[Array]) -> Array:
        given = {item.name: array for item, array in zip(inputs, arrays, strict=True)}
        used = output.symbol.list_arguments()
        shapes = {name: array.shape for name, array in given.items() if name in used}
        executor = output.symbol.simple_bind(mx.cpu(), grad_req="null", **shapes)
        values = {**mxnet_backend.dfs_get_bind_values(output), **given}
        for places in (executor.arg_dict, executor.aux_dict):
            for name, place in places.items():
                if name in values:
                    place[:] = values[name]
        result: Array = executor.forward(is_train=False)[0].asnumpy()
        return result

    return lambda arrays: [computed(output, arrays) for output in outputs]
