"""Keras on OpenVINO: always one compiled graph.

The CPU plug-in may choose bf16 or f16 by itself; `openvino` pins f32, `openvino:fast` does not.
Shapes are fixed when compiling; `openvino:dynamic` leaves the batch free, as `predict` does, which
takes other paths through the plug-in (some of which fail, so that it is a target of its own).
`openvino:gpu` computes on an Intel GPU, in f32 too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.keras.workers.keras3.backends import Forward, Program
from outvote.worker.devices import is_played, require_gpu

libraries = ("openvino",)
_PINNED = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
_FAST = {"INFERENCE_NUM_THREADS": 1}
_ON_GPU = {"INFERENCE_PRECISION_HINT": "f32"}


def before_import(mode: str) -> None:
    """OpenVINO is set up per compiled model."""


def after_import(mode: str) -> None:
    """OpenVINO is set up per compiled model."""
    import openvino as ov

    if mode == "gpu":
        require_gpu("openvino", "Intel", "GPU" in ov.Core().available_devices)


def precision(mode: str) -> dict[str, Any]:
    if mode not in ("fast", "predict"):
        return {"inference": "f32", **({"device": "gpu"} if mode == "gpu" else {})}
    import openvino as ov

    chosen = ov.Core().get_property("CPU", "INFERENCE_PRECISION_HINT")
    return {"inference": chosen.get_type_name()}


def set_wide(wide: bool) -> None:
    """OpenVINO takes float64, gives float64, and computes in float32 whatever it is asked."""


def no_gradients() -> AbstractContextManager[Any]:
    return nullcontext()


def compiled(
    forward: Forward,
    variables: Callable[[], list[Any]],
    config: dict[str, Any] = _PINNED,
    free_batch: bool = False,
    device: str = "CPU",
) -> Program:
    """One graph per input signature."""
    ready: dict[Any, tuple[Any, list[str]]] = {}

    def program(feeds: Sequence[Array]) -> tuple[list[Array], list[str]]:
        shapes = [[-1, *f.shape[1:]] if free_batch and f.ndim else list(f.shape) for f in feeds]
        key = str([(feed.dtype.name, shape) for feed, shape in zip(feeds, shapes, strict=True)])
        if key not in ready:
            ready[key] = _build(forward, feeds, shapes, config, device)
        model, names = ready[key]
        results = model(list(feeds))
        return [_array(results[i], names[i]) for i in range(len(names))], names

    return program


def _build(
    forward: Forward,
    feeds: Sequence[Array],
    shapes: Sequence[list[int]],
    config: dict[str, Any],
    device: str,
) -> tuple[Any, list[str]]:
    import keras
    import openvino as ov
    import openvino.opset15 as opset
    from keras.src.backend.openvino.core import OPENVINO_DTYPES, OpenVINOKerasTensor

    parameters = [
        opset.parameter(shape=shape, dtype=OPENVINO_DTYPES[feed.dtype.name])
        for feed, shape in zip(feeds, shapes, strict=True)
    ]
    outputs = forward([OpenVINOKerasTensor(p.output(0)) for p in parameters])
    names = [keras.backend.standardize_dtype(t.dtype) for t in outputs]
    results = [opset.result(t.output) for t in map(_as_node, outputs)]
    model = ov.Model(results=results, parameters=parameters)
    return ov.compile_model(model, device, config), names


def _as_node(tensor: Any) -> Any:
    """Some layers hand back a plain array; OpenVINO wants a node."""
    from keras import ops

    return tensor if hasattr(tensor, "output") else ops.convert_to_tensor(tensor)


def _array(result: Any, dtype: str) -> Array:
    data = np.array(result)
    if dtype == "bfloat16":
        import ml_dtypes

        return data.view(ml_dtypes.bfloat16)
    return data


modes = {
    "eager": compiled,
    "dynamic": partial(compiled, free_batch=True),
    "fast": partial(compiled, config=_FAST),
    "gpu": partial(compiled, config=_ON_GPU, device="CPU" if is_played() else "GPU"),
    "predict": partial(compiled, config=_FAST, free_batch=True),
}
