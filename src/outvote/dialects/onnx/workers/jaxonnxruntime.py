"""ONNX graphs as JAX functions, by jaxonnxruntime: XLA's kernels compute."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxonnxruntime import call_onnx
from jaxonnxruntime import config as converter

from outvote.core.states import State
from outvote.dialects.onnx.nouns.types import CODES, is_narrow
from outvote.dialects.onnx.workers.shared.assemble import Assembled
from outvote.dialects.onnx.workers.shared.by_numpy import to_convert
from outvote.dialects.onnx.workers.shared.worker import OnnxWorker
from outvote.worker.main import Context

_GAPS = re.compile(r"[Nn]ot implemented|[Nn]ot supported|[Uu]nsupported|not registered")


def create(context: Context) -> OnnxWorker:
    jax.config.update("jax_enable_x64", True)  # or int64 would become int32
    # A function is made for each run (see below), so sizes that a graph computes may be constants.
    converter.update("jaxort_only_allow_initializers_as_static_args", False)
    return OnnxWorker(context, JaxOnnxRuntime(context.blobs.folder))


class JaxOnnxRuntime:
    """One function for each graph and the shapes that it is fed."""

    libraries: tuple[str, ...] = ("jaxonnxruntime", "jax", "jaxlib")
    fixed = True
    free = False
    divides = False  # XLA has threads

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def is_gap(self, error: Exception) -> bool:
        return bool(_GAPS.search(str(error)))

    def precision(self) -> dict[str, Any]:
        return {}

    def load(self, graph: Assembled) -> _Function:
        return _Function(to_convert(graph, self._folder, "JAX"), graph)


class _Function:
    """It is made when it is first run: which numbers are constants shows then."""

    def __init__(self, proto: Any, graph: Assembled) -> None:
        self._proto = proto
        self._names = [item.name for item in graph.inputs]

    def run(self, feeds: Sequence[State]) -> list[State]:
        given = {n: np.array(f.array) for n, f in zip(self._names, feeds, strict=True)}
        function, parameters = call_onnx.call_onnx_model(self._proto, given)
        found = function(parameters, given)
        return [_tensor(np.asarray(value)) for value in found]


def _tensor(array: Any) -> State:
    if array.dtype.name not in CODES or is_narrow(array.dtype.name):
        raise NotImplementedError(f"an output holds {array.dtype.name}")
    return State(array)
