"""Keras on TensorFlow: eager, a graph (what `predict` does), XLA, a GPU, or without oneDNN."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from outvote.core.arrays import Array
from outvote.dialects.keras.nouns.devices import on_gpu, tf32_is_off
from outvote.dialects.keras.workers.keras3.backends import (
    Backward,
    Forward,
    Gradient,
    Objective,
    Program,
    Pulled,
    choose_device,
    computed_on,
    copied,
    eager,
    is_float,
    require_gpu,
    spread_out,
    to_arrays,
)

libraries = ("tensorflow",)


def before_import(mode: str) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    choose_device("tensorflow", mode)
    os.environ.setdefault("TF_DETERMINISTIC_OPS", "1")
    if mode == "no-onednn":
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"


def after_import(mode: str) -> None:
    import tensorflow as tf

    require_gpu("tensorflow", mode, bool(tf.config.list_physical_devices("GPU")))
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def precision(mode: str) -> dict[str, Any]:
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    device = "gpu" if on_gpu("tensorflow", mode) else "cpu"
    allowed = tf.config.experimental.tensor_float_32_execution_enabled() and not tf32_is_off()
    return {
        "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "library default"),
        **computed_on(device, {"gpu": {"tf32": "tf32"}}, "tf32" if allowed else "f32"),
        **({"gpu": _name_of(gpus[0]), "deterministic": True} if gpus else {}),
    }


def _name_of(gpu: Any) -> str:
    import tensorflow as tf

    return str(tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name))


def set_wide(wide: bool) -> None:
    """TensorFlow computes in float64 where it is asked to."""


def no_gradients() -> AbstractContextManager[Any]:
    return nullcontext()


def graph(
    forward: Forward,
    variables: Callable[[], list[Any]],
    xla: bool = False,
    any_size: bool = False,
) -> Program:
    import tensorflow as tf

    traced = tf.function(forward, jit_compile=xla, autograph=False, reduce_retracing=any_size)

    def program(feeds: Sequence[Array]) -> tuple[list[Array], list[str]]:
        return to_arrays(traced([tf.constant(feed) for feed in feeds]))

    return program


def differentiate(objective: Objective, variables: Callable[[], list[Any]]) -> Gradient:
    import tensorflow as tf

    def traced(feeds: Sequence[Any], constants: Sequence[Any]) -> Any:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(feeds)
            value, results = objective(feeds, constants)
        return tape.gradient(value, feeds), results

    compiled = tf.function(traced, autograph=False, reduce_retracing=True)

    def program(
        feeds: Sequence[Array], constants: Sequence[Array]
    ) -> tuple[list[Array | None], list[Array]]:
        given = [tf.constant(feed) for feed in feeds], [tf.constant(c) for c in constants]
        gradients, results = compiled(*given)
        return [None if g is None else g.numpy() for g in gradients], to_arrays(results)[0]

    return program


def _in_mode(function: Any, mode: str) -> Any:
    """A function of tensors as a mode runs it."""
    import tensorflow as tf

    if mode not in ("graph", "xla"):
        return function
    return tf.function(function, jit_compile=mode == "xla", autograph=False)


def backward(objective: Objective, variables: Callable[[], list[Any]], mode: str) -> Backward:
    import tensorflow as tf

    def traced(feeds: Sequence[Any], constants: Sequence[Any]) -> Any:
        learned = [variable.value for variable in variables() if variable.trainable]
        moved = [feed for feed in feeds if is_float(feed)]
        with tf.GradientTape() as tape:
            tape.watch(moved)
            value, results = objective(feeds, constants)
        found = tape.gradient(value, [*moved, *learned])
        # Those of embeddings are rows with their numbers.
        dense = [None if g is None else tf.convert_to_tensor(g) for g in found]
        return value, results, dense[: len(moved)], dense[len(moved) :]

    run = _in_mode(traced, mode)

    def program(feeds: Sequence[Array], constants: Sequence[Array]) -> Pulled:
        given = [tf.constant(feed) for feed in feeds]
        value, results, by_moved, by_learned = run(given, [tf.constant(c) for c in constants])
        every = variables()
        return Pulled(
            value,
            results,
            spread_out(by_moved, [is_float(feed) for feed in given]),
            spread_out(by_learned, [variable.trainable for variable in every]),
            [copied(variable) for variable in every],
        )

    return program


def updated(
    update: Callable[[Sequence[Any]], None], variables: Callable[[], list[Any]], mode: str
) -> Callable[[Sequence[Any]], None]:
    found: Callable[[Sequence[Any]], None] = _in_mode(update, mode)
    return found


def some_rows(values: Array, rows: Array, shape: Sequence[int]) -> Any:
    """The gradient of an embedding as TensorFlow hands it to optimisers."""
    import tensorflow as tf

    return tf.IndexedSlices(tf.constant(values), tf.constant(rows), tf.constant(list(shape)))


quick = partial(graph, any_size=True)
fixed_shapes = False
modes = {
    "eager": eager,
    "no-onednn": eager,
    "graph": graph,
    "xla": partial(graph, xla=True),
    "gpu": eager,
    "gpu-highest": eager,
    "predict": partial(graph, xla=True),
}
