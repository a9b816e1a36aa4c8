"""Keras on NumPy: plain and slow; its convolutions are JAX's."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from outvote.dialects.keras.workers.keras3.backends import eager

libraries = ("numpy", "jax")
modes = {"eager": eager, "predict": eager}


def before_import(mode: str) -> None:
    from outvote.dialects.keras.workers.keras3.backends import jax

    jax.before_import(mode)


def after_import(mode: str) -> None:
    """NumPy needs no settings."""


def precision(mode: str) -> dict[str, Any]:
    return {}


def set_wide(wide: bool) -> None:
    from outvote.dialects.keras.workers.keras3.backends import jax

    jax.set_wide(wide)


def no_gradients() -> AbstractContextManager[Any]:
    return nullcontext()
