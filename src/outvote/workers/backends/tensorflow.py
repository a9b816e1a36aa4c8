"""Keras on TensorFlow: eager, as a graph (what `predict` does), through XLA, without oneDNN."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from outvote.core.arrays import Array
from outvote.workers.backends import Forward, Program, eager, to_arrays

libraries = ("tensorflow",)


def before_import(mode: str) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    os.environ.setdefault("TF_DETERMINISTIC_OPS", "1")
    if mode == "no-onednn":
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"


def after_import() -> None:
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def precision(mode: str) -> dict[str, Any]:
    return {"onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "library default")}


def set_wide(wide: bool) -> None:
    """TensorFlow computes in float64 where it is asked to."""


def no_gradients() -> AbstractContextManager[Any]:
    return nullcontext()


def graph(forward: Forward, variables: Callable[[], list[Any]], xla: bool = False) -> Program:
    import tensorflow as tf

    traced = tf.function(forward, jit_compile=xla, autograph=False)

    def program(feeds: Sequence[Array]) -> tuple[list[Array], list[str]]:
        return to_arrays(traced([tf.constant(feed) for feed in feeds]))

    return program


modes = {
    "eager": eager,
    "no-onednn": eager,
    "graph": graph,
    "xla": partial(graph, xla=True),
}
