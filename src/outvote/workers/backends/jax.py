"""Keras on JAX: op by op (`jax`), or the whole model through XLA (`jax:jit`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from outvote.core.arrays import Array
from outvote.workers.backends import Forward, Program, eager, to_arrays

libraries = ("jax", "jaxlib")


def before_import(mode: str) -> None:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )


def after_import() -> None:
    """JAX is set up by its environment alone."""


def precision(mode: str) -> dict[str, Any]:
    import jax

    return {
        "x64": bool(jax.config.jax_enable_x64),
        "matmul": str(jax.config.jax_default_matmul_precision or "default"),
    }


def no_gradients() -> AbstractContextManager[Any]:
    return nullcontext()


def jit(forward: Forward, variables: Callable[[], list[Any]]) -> Program:
    """One XLA program; weights are arguments, because constants would be folded for minutes."""
    import jax
    import keras

    def pure(values: Sequence[Any], feeds: Sequence[Any]) -> list[Any]:
        mapping = list(zip(variables(), values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return forward(feeds)

    compiled = jax.jit(pure)

    def program(feeds: Sequence[Array]) -> tuple[list[Array], list[str]]:
        values = [variable.value for variable in variables()]
        return to_arrays(compiled(values, list(feeds)))

    return program


modes = {"eager": eager, "jit": jit}
