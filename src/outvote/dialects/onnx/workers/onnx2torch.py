"""ONNX graphs as PyTorch modules, by onnx2torch: PyTorch's kernels compute."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from outvote.core.states import State
from outvote.dialects.onnx.workers.shared.assemble import Assembled
from outvote.dialects.onnx.workers.shared.by_numpy import to_convert
from outvote.dialects.onnx.workers.shared.worker import OnnxWorker
from outvote.worker.main import Context

_GAPS = re.compile(r"[Nn]ot implemented|[Nn]ot supported|torchvision")


def create(context: Context) -> OnnxWorker:
    torch.set_num_threads(1)
    return OnnxWorker(context, OnnxToTorch(context.blobs.folder))


class OnnxToTorch:
    """One module for each graph."""

    libraries: tuple[str, ...] = ("onnx2torch", "torch")
    fixed = False
    free = False
    divides = False  # PyTorch has threads

    def __init__(self, folder: Path) -> None:
        try:
            import torchvision.ops  # noqa: F401
        except (ImportError, RuntimeError) as error:  # missing, or built for another PyTorch
            _stand_in(str(error))
        import onnx2torch

        self._convert = onnx2torch.convert
        self._folder = folder

    def is_gap(self, error: Exception) -> bool:
        return bool(_GAPS.search(str(error)))

    def precision(self) -> dict[str, Any]:
        return {}

    def load(self, graph: Assembled) -> _Module:
        return _Module(self._convert(to_convert(graph, self._folder, "PyTorch")))


class _Module:
    def __init__(self, module: Any) -> None:
        self._module = module.eval()

    def run(self, feeds: Sequence[State]) -> list[State]:
        given = [torch.from_numpy(np.array(feed.array)) for feed in feeds]
        with torch.no_grad():
            found = self._module(*given)
        several = found if isinstance(found, tuple | list) else (found,)
        return [State(_array(tensor)) for tensor in several]


def _array(tensor: Any) -> Any:
    if not isinstance(tensor, torch.Tensor):
        raise NotImplementedError(f"an output is a {type(tensor).__name__}, no tensor")
    if tensor.dtype == torch.bfloat16:
        raise NotImplementedError("an output is bfloat16, which NumPy has not")
    return np.array(tensor.numpy())


def _stand_in(why: str) -> None:
    """What onnx2torch imports of torchvision, for two operators that are gaps then."""

    def lacking(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"this operator needs torchvision, which does not load: {why}")

    operators = types.ModuleType("torchvision.ops")
    package = types.ModuleType("torchvision")
    vars(operators).update(nms=lacking, roi_align=lacking, box_convert=lacking)
    vars(package).update(ops=operators)
    sys.modules |= {"torchvision": package, "torchvision.ops": operators}
