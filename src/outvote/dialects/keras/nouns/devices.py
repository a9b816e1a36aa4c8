"""Modes that compute on a GPU (`torch:cuda`), and what keeps the other targets off it.

All of it is said by environment variables, before a library is imported: a worker sets them for
itself, and a proof script for the processes that it starts.
"""

from __future__ import annotations

import os

GPU_MODES = {"tensorflow": "gpu", "jax": "cuda", "torch": "cuda"}  # by the libraries' own names
HIGHEST = "-highest"  # the same without TF32: float32 is computed in float32

_OFF: dict[str, dict[str, str]] = {
    "tensorflow": {"CUDA_VISIBLE_DEVICES": "-1"},
    "jax": {"JAX_PLATFORMS": "cpu"},
    "numpy": {"JAX_PLATFORMS": "cpu"},  # Keras' NumPy backend calls JAX
    "torch": {"CUDA_VISIBLE_DEVICES": ""},
}
# A library takes the whole memory of a GPU when it starts, unless it is told not to.
_ON: dict[str, dict[str, str]] = {
    "tensorflow": {"TF_FORCE_GPU_ALLOW_GROWTH": "true"},
    "jax": {"JAX_PLATFORMS": "", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    "torch": {},
}
_FULL: dict[str, dict[str, str]] = {
    "tensorflow": {"NVIDIA_TF32_OVERRIDE": "0"},
    "jax": {"JAX_DEFAULT_MATMUL_PRECISION": "highest"},
    "torch": {"NVIDIA_TF32_OVERRIDE": "0"},
}


def on_gpu(backend: str, mode: str) -> bool:
    return mode.removesuffix(HIGHEST) == GPU_MODES.get(backend)


def environment(backend: str, mode: str, played: bool = False) -> dict[str, str]:
    """What is set before the library is imported; `played`: the processor plays the GPU."""
    if not on_gpu(backend, mode):
        return dict(_OFF.get(backend, {}))
    device = _OFF if played else _ON
    return {**device[backend], **(_FULL[backend] if mode.endswith(HIGHEST) else {})}


def tf32_is_off() -> bool:
    """Whether NVIDIA's libraries are told to leave TF32 alone, whatever a framework asks."""
    return os.environ.get("NVIDIA_TF32_OVERRIDE") == "0"
