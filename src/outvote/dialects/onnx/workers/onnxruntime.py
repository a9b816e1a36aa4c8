"""ONNX Runtime's CPU kernels, with its graph optimiser off (the default) up to full; or CUDA's."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from outvote.core.arrays import Array
from outvote.core.devices import ON_CUDA
from outvote.core.states import State
from outvote.dialects.onnx.nouns.types import (
    CODES,
    NAMES,
    as_texts,
    from_raw,
    is_narrow,
    narrowed,
    raw_bytes,
    widened,
)
from outvote.dialects.onnx.workers.shared.assemble import Assembled
from outvote.dialects.onnx.workers.shared.custom import library_of
from outvote.dialects.onnx.workers.shared.regions import Regions, regions_between
from outvote.dialects.onnx.workers.shared.worker import OnnxWorker
from outvote.worker.devices import is_played, require_gpu
from outvote.worker.main import Context

_LEVELS = {
    "eager": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_SILENT = 4
_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
_GAPS = re.compile(
    r"NOT_IMPLEMENTED|NotImplemented|Opset \d+ is under development|"
    r"is not a registered function/op|Unsupported model IR version|Unrecognized attribute: |"
    r"(?:is|are|was|not yet|currently) not supported|[Nn]ot supported (?:for|with|yet)"
)


def create(context: Context) -> OnnxWorker:
    mode = context.settings.mode
    if mode in ON_CUDA:
        require_gpu("onnxruntime", "NVIDIA", _CUDA in ort.get_available_providers())
        os.environ.update(ON_CUDA[mode])  # before the first session loads CUDA
    runtime = OnnxRuntime(context.settings.mode, context.blobs.folder, library_of(context))
    return OnnxWorker(context, runtime)


class OnnxRuntime:
    """One session for each graph."""

    libraries: tuple[str, ...] = ("onnxruntime",)
    fixed = False
    free = False
    divides = True

    def __init__(self, mode: str, folder: Path, library: Path | None = None) -> None:
        self._mode, self._library = mode, library
        self._options = self._new_options()
        self._folder = folder

    def _new_options(self) -> Any:
        options = ort.SessionOptions()
        level = _LEVELS.get(self._mode, _LEVELS["eager"])
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _SILENT
        if self._library is not None:
            options.register_custom_ops_library(str(self._library))
        return options

    def is_gap(self, error: Exception) -> bool:
        return bool(_GAPS.search(str(error)))

    @property
    def _providers(self) -> list[str]:
        """What CUDA has no kernels for is computed by the processor."""
        return [_CUDA, _CPU] if self._mode in ON_CUDA and not is_played() else [_CPU]

    def precision(self) -> dict[str, Any]:
        if self._mode not in ON_CUDA:
            return {}
        return {"device": "cuda"} | ({} if ON_CUDA[self._mode] else {"products": "tf32"})

    def load(self, graph: Assembled) -> _Session:
        with graph.stored(self._folder) as model:
            source = model if isinstance(model, bytes) else str(model)
            session = ort.InferenceSession(source, self._options, providers=self._providers)
        return _Session(session, graph)

    def regions(self, graph: Assembled) -> Regions:
        """Nodes that became one: by the graph as the optimiser leaves it."""
        with tempfile.TemporaryDirectory() as folder, graph.stored(self._folder) as model:
            path = Path(folder) / "optimised.onnx"
            options = self._new_options()
            options.optimized_model_filepath = str(path)
            source = model if isinstance(model, bytes) else str(model)
            ort.InferenceSession(source, options, providers=self._providers)
            optimised = onnx.load(str(path), load_external_data=False)
        return regions_between(graph.proto.graph, optimised.graph)


class _Session:
    def __init__(self, session: Any, graph: Assembled) -> None:
        self._session = session
        self._names = [item.name for item in graph.inputs]
        self._outputs = list(graph.outputs)
        # Optimisers may drop inputs that nothing reads.
        self._wanted = {item.name for item in session.get_inputs()}
        plain = {f"tensor({name})" for name in _PLAIN}
        self._plain = all(item.type in plain for item in session.get_outputs())

    def run(self, feeds: Sequence[State]) -> list[State]:
        given = {n: f for n, f in zip(self._names, feeds, strict=True) if n in self._wanted}
        if self._plain and not any(is_narrow(feed.dtype) for feed in given.values()):
            found = self._session.run(self._outputs, {n: f.array for n, f in given.items()})
            return [_plain(np.asarray(array)) for array in found]
        values = {name: _value(feed) for name, feed in given.items()}
        return list(map(_tensor, self._session.run_with_ort_values(self._outputs, values)))


# As ONNX Runtime calls the types that NumPy has.
_PLAIN = """string float double float16 bool
    int8 int16 int32 int64 uint8 uint16 uint32 uint64""".split()


def _plain(array: Array) -> State:
    return State(as_texts(array) if array.dtype.kind in "OSU" else array)


def _value(feed: State) -> Any:
    if not is_narrow(feed.dtype):
        return ort.OrtValue.ortvalue_from_numpy(feed.array)
    code = CODES[feed.dtype]
    exact = narrowed(feed.array, feed.dtype)
    bits = np.dtype(f"u{exact.dtype.itemsize}")
    if len(raw_bytes(feed.array, feed.dtype)) != exact.nbytes:
        raise NotImplementedError(f"{feed.dtype} cannot be given to ONNX Runtime from Python")
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(exact.view(bits), code)


def _tensor(value: Any) -> State:
    if not value.is_tensor():
        raise NotImplementedError(f"an output is a {value.data_type()}, no tensor")
    code = value.element_type()
    name = NAMES.get(code)
    if name is None:
        raise NotImplementedError(f"an output is a {value.data_type()}: not a number")
    if not is_narrow(name):
        return _plain(np.asarray(value.numpy()))
    raw = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return State(widened(from_raw(raw, name, value.shape())), dtype=name)
