"""A program on an NVIDIA GPU: its constants and inputs are brought there, its results back."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from outvote.core.devices import ON_CUDA
from outvote.dialects.torch_export.workers.shared.engine import GraphCompiler, Program
from outvote.worker.devices import is_played, require_gpu

_DEVICE = "device"
_LOST = 70  # how a process ends that cannot use the GPU any more
_LACKS = re.compile(
    r"[Tt]ensor is not supported|not supported (on|for)|to be on (the )?[Cc][Pp][Uu]"
)


class OnGpu:
    """What another runtime makes of a graph, or the graph itself, on the GPU."""

    def __init__(self, mode: str, inner: GraphCompiler | None) -> None:
        os.environ.update(ON_CUDA[mode])  # before the first tensor loads CUDA
        require_gpu("torch", "NVIDIA", torch.cuda.is_available())
        self._inner = inner
        self._device = torch.device("cpu" if is_played() else "cuda")
        self.libraries: tuple[str, ...] = inner.libraries if inner is not None else ()
        self.precision: Mapping[str, Any] = _precision(mode)

    def load(self, module: Any, examples: Sequence[Any]) -> Program:
        there = _placed(module, self._device)
        inputs = [tensor.to(self._device) for tensor in examples]
        program = self._inner.load(there, inputs) if self._inner is not None else there

        def run(*tensors: Any) -> Sequence[Any]:
            try:
                found = program(*(tensor.to(self._device) for tensor in tensors))
                return [p.to("cpu") if isinstance(p, torch.Tensor) else p for p in found]
            except Exception as error:
                self._end_if_lost(error)
                raise

        return run

    def _end_if_lost(self, error: Exception) -> None:
        """After an assertion in a kernel, all that this process does on the GPU fails: it ends.

        So what comes next runs in a new one, and is not blamed for it.
        """
        try:
            synchronize(self._device)
        except Exception as lost:
            told = f"the GPU is lost to this process: {lost}, after {type(error).__name__}: {error}"
            sys.stderr.write(f"{told}\n")
            sys.stderr.flush()
            os._exit(_LOST)

    def is_gap(self, error: Exception) -> bool:
        """CUDA lacks a type, a method, or a place for a tensor that must be on the processor."""
        if _LACKS.search(str(error)):
            return True
        return self._inner is not None and self._inner.is_gap(error)


def synchronize(device: Any) -> None:
    """Wait for the GPU; an error that has made it unusable is raised again."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _placed(module: Any, device: Any) -> Any:
    """The module there, with what makes tensors of nothing: a program names the device for it.

    A view fits the strides that tensors had where the program was exported; kernels of the GPU may
    give others, so that it becomes a reshape, which a program exported there would have.
    """
    for node in module.graph.nodes:
        if node.target is torch.ops.aten.view.default:
            node.target = torch.ops.aten.reshape.default
        schema = getattr(node.target, "_schema", None)
        named = [item.name for item in schema.arguments] if schema is not None else []
        if _DEVICE in named:
            place = named.index(_DEVICE)
            if place < len(node.args):
                node.args = (*node.args[:place], device, *node.args[place + 1 :])
            else:
                node.kwargs = {**node.kwargs, _DEVICE: device}
    module.recompile()
    return module.to(device)


def _precision(mode: str) -> dict[str, Any]:
    """Convolutions of cuDNN are TF32 unless that is forbidden, whatever is said of matrices."""
    coarse = torch.backends.cudnn.allow_tf32 and not ON_CUDA[mode]
    told: dict[str, Any] = {"device": "cuda"} | ({"products": "tf32"} if coarse else {})
    if not is_played():
        steady = torch.are_deterministic_algorithms_enabled()
        told |= {"gpu": torch.cuda.get_device_name(), "deterministic": steady}
    return told
