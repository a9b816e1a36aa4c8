"""Keras on PyTorch: eager, through TorchDynamo and Inductor (`torch:compile`), on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
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
    to_tensor,
)

libraries = ("torch",)


def before_import(mode: str) -> None:
    choose_device("torch", mode)


def after_import(mode: str) -> None:
    import torch

    require_gpu("torch", mode, torch.cuda.is_available())
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    # Where Dynamo has to split a model, it must compile every piece instead of giving up.
    torch._dynamo.config.recompile_limit = 4096
    torch._dynamo.config.accumulated_recompile_limit = 4096


# What PyTorch makes of a product of float32, by device and setting.
_PRODUCTS = {"cuda": {"high": "tf32", "medium": "bf16"}, "cpu": {"medium": "bf16"}}


def precision(mode: str) -> dict[str, Any]:
    import torch

    matmul = torch.get_float32_matmul_precision()
    device = "cuda" if on_gpu("torch", mode) else "cpu"
    # Convolutions of cuDNN are TF32 unless that is forbidden, whatever is said of matrices.
    convolutions = device == "cuda" and torch.backends.cudnn.allow_tf32
    setting = "high" if matmul == "highest" and convolutions else matmul
    return {
        "matmul": matmul,
        "mkldnn": torch.backends.mkldnn.enabled,
        **computed_on(device, _PRODUCTS, "highest" if tf32_is_off() else setting),
        **_gpu(),
    }


def _gpu() -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        return {}
    steady = torch.are_deterministic_algorithms_enabled()
    return {"gpu": torch.cuda.get_device_name(), "deterministic": steady}


def set_wide(wide: bool) -> None:
    """PyTorch computes in float64 where it is asked to."""


def no_gradients() -> AbstractContextManager[Any]:
    import torch

    guard: AbstractContextManager[Any] = torch.no_grad()
    return guard


def compile_(forward: Forward, variables: Callable[[], list[Any]]) -> Program:
    import torch

    compiled = torch.compile(forward, dynamic=False)

    def program(feeds: Sequence[Array]) -> tuple[list[Array], list[str]]:
        return to_arrays(compiled([to_tensor(feed) for feed in feeds]))

    return program


def differentiate(objective: Objective, variables: Callable[[], list[Any]]) -> Gradient:
    import torch

    def program(
        feeds: Sequence[Array], constants: Sequence[Array]
    ) -> tuple[list[Array | None], list[Array]]:
        inputs = [to_tensor(feed).requires_grad_(True) for feed in feeds]
        value, results = objective(inputs, [to_tensor(constant) for constant in constants])
        if not value.requires_grad:  # nothing that is differentiable reads the inputs
            return [None] * len(feeds), to_arrays(results)[0]
        gradients = torch.autograd.grad(value, inputs, allow_unused=True)
        arrays = [None if g is None else g.numpy(force=True) for g in gradients]
        return arrays, to_arrays(results)[0]

    return program


def _in_mode(function: Any, mode: str) -> Any:
    import torch

    return torch.compile(function, dynamic=False) if mode == "compile" else function


def backward(objective: Objective, variables: Callable[[], list[Any]], mode: str) -> Backward:
    import torch

    run = _in_mode(objective, mode)

    def program(feeds: Sequence[Array], constants: Sequence[Array]) -> Pulled:
        given = [to_tensor(feed) for feed in feeds]
        moves = [is_float(feed) for feed in given]
        moved = [feed.requires_grad_(True) for feed in given if is_float(feed)]
        every = variables()
        learned = [variable.value for variable in every if variable.trainable]
        value, results = run(given, [to_tensor(constant) for constant in constants])
        found: Sequence[Any] = [None] * (len(moved) + len(learned))
        if value.requires_grad:  # otherwise it depends on nothing that is differentiable
            found = torch.autograd.grad(value, [*moved, *learned], allow_unused=True)
        return Pulled(
            value,
            results,
            spread_out(found[: len(moved)], moves),
            spread_out(found[len(moved) :], [variable.trainable for variable in every]),
            [copied(variable) for variable in every],
        )

    return program


def updated(
    update: Callable[[Sequence[Any]], None], variables: Callable[[], list[Any]], mode: str
) -> Callable[[Sequence[Any]], None]:
    import torch

    run = _in_mode(update, mode)

    def program(given: Sequence[Any]) -> None:
        with torch.no_grad():
            run(given)

    return program


@contextmanager
def for_narrow_convolutions() -> Iterator[None]:
    """oneDNN pads channels to blocks; PyTorch's own kernels are faster where they are few."""
    import torch

    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


quick = eager
fixed_shapes = False
modes = {
    "eager": eager,
    "compile": compile_,
    "cuda": eager,
    "cuda-highest": eager,
    "predict": eager,
}
