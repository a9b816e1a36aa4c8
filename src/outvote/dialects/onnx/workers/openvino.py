"""OpenVINO's own front end for ONNX, on its CPU plug-in.

`openvino:onnx` pins f32 and fixes the sizes, `:dynamic` leaves them free, `:fast` lets the plug-in
choose the precision, `:gpu` is the plug-in for Intel's GPUs, in f32. An input that nothing reads
vanishes, and one that is not set holds whatever the memory held: every input is bound by name when
the model is read, and none may stay unbound.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from outvote.core.arrays import TEXT
from outvote.core.states import State
from outvote.dialects.onnx.nouns.types import dtype_of, is_narrow, narrowed, widened
from outvote.dialects.onnx.workers.shared.assemble import Assembled
from outvote.dialects.onnx.workers.shared.regions import Regions
from outvote.dialects.onnx.workers.shared.worker import OnnxWorker
from outvote.worker.devices import is_played, require_gpu
from outvote.worker.main import Context

_PINNED = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
_CONFIGS = {
    "fast": {"INFERENCE_NUM_THREADS": 1},
    "gpu": {"INFERENCE_PRECISION_HINT": "f32"},
}
_GAPS = re.compile(
    r"No conversion rule found|not supported|[Uu]nsupported|Not Implemented|"
    r"doesn't support|must be .*constant|only supported for"
)
# As OpenVINO calls the types that NumPy has not, or calls otherwise.
_TYPES = {
    "boolean": "bool",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e8m0": "float8_e8m0fnu",
    **{
        f"{short}{bits}": f"{long}{bits}"
        for short, long in (("i", "int"), ("u", "uint"))
        for bits in (4, 8, 16, 32, 64)
    },
}
_SWALLOWED = "originalLayersNames"
_BACK = {name: told for told, name in _TYPES.items()}


def create(context: Context) -> OnnxWorker:
    mode = context.settings.mode
    if mode == "gpu":
        require_gpu("openvino", "Intel", "GPU" in ov.Core().available_devices)
    return OnnxWorker(context, OpenVino(mode, context.blobs.folder))


class OpenVino:
    """One compiled model for each graph."""

    libraries: tuple[str, ...] = ("openvino",)

    def __init__(self, mode: str, folder: Path) -> None:
        self._config = _CONFIGS.get(mode, _PINNED)
        self._fast = mode == "fast"
        self._gpu = mode == "gpu"
        self._device = "GPU" if self._gpu and not is_played() else "CPU"
        self._folder = folder
        self.free = mode == "dynamic"
        self.fixed = not self.free

    @cached_property
    def _core(self) -> Any:
        return ov.Core()

    @property
    def divides(self) -> bool:
        """As long as it has not begun: then it has threads, and a child would not."""
        return "_core" not in self.__dict__

    def is_gap(self, error: Exception) -> bool:
        return bool(_GAPS.search(str(error)))

    def precision(self) -> dict[str, Any]:
        if not self._fast:
            return {"inference": "f32", **({"device": "gpu"} if self._gpu else {})}
        chosen = self._core.get_property("CPU", "INFERENCE_PRECISION_HINT")
        return {"inference": chosen.get_type_name()}

    def load(self, graph: Assembled) -> _Compiled:
        with graph.stored(self._folder) as model:
            read = self._core.read_model(model)
        bound = _bound(read, graph)
        compiled = self._core.compile_model(read, self._device, self._config)
        return _Compiled(compiled, graph, bound)

    def regions(self, graph: Assembled) -> Regions:
        """Nodes that became one: by what the compiled graph tells of each of its nodes."""
        with graph.stored(self._folder) as model:
            read = self._core.read_model(model)
            compiled = self._core.compile_model(read, self._device, self._config)
        order = {node.name: place for place, node in enumerate(graph.proto.graph.node)}
        found = []
        for made in compiled.get_runtime_model().get_ops():
            told = made.get_rt_info()
            names = str(told[_SWALLOWED].astype(str)) if _SWALLOWED in told else ""
            known = {name for name in names.split(",") if name in order}
            found.append(tuple(sorted(known, key=order.__getitem__)))
        return [names for names in found if len(names) > 1]


def _bound(read: Any, graph: Assembled) -> list[int]:
    """Which of the graph's inputs each input of the model is: those that nothing reads are gone.

    Where a node does nothing, what it gives and what it is given become one tensor, of two names or
    of the later one; then it is the input that is left.
    """
    places = {item.name: place for place, item in enumerate(graph.inputs)}
    labels = [{*port.get_names(), port.get_node().get_friendly_name()} for port in read.inputs]
    known = [{places[name] for name in names if name in places} for names in labels]
    left = set(places.values()).difference(*known)
    found = [place or left for place in known]
    for names, place in zip(labels, found, strict=True):
        if len(place) != 1 or found.count(place) > 1:
            told = " or ".join(sorted(names))
            raise RuntimeError(f"OpenVINO wants {told}, and it is not clear which input it is")
    return [next(iter(place)) for place in found]


class _Compiled:
    def __init__(self, compiled: Any, graph: Assembled, bound: Sequence[int]) -> None:
        self._request = compiled.create_infer_request()
        self._ports = list(zip(compiled.inputs, bound, strict=True))
        self._outputs = compiled.outputs
        if len(self._outputs) != len(graph.outputs):
            raise RuntimeError(
                f"OpenVINO gives {len(self._outputs)} outputs of {len(graph.outputs)}"
            )

    def run(self, feeds: Sequence[State]) -> list[State]:
        for port, place in self._ports:
            self._request.set_tensor(port, _given(feeds[place]))
        self._request.infer()
        return [_tensor(self._request.get_tensor(port)) for port in self._outputs]


def _given(feed: State) -> Any:
    if feed.dtype == TEXT:
        raise NotImplementedError("texts are not given to OpenVINO")
    array = np.require(feed.array, requirements=("C", "A"))
    if not is_narrow(feed.dtype):
        return ov.Tensor(array)
    kind = getattr(ov.Type, _BACK.get(feed.dtype, ""), None)
    exact = narrowed(array, feed.dtype)
    if kind is None or kind.bitwidth != 8 * exact.dtype.itemsize:
        raise NotImplementedError(f"{feed.dtype} cannot be given to OpenVINO")
    made = ov.Tensor(kind, list(array.shape))
    bits = np.dtype(f"u{exact.dtype.itemsize}")
    made.data.view(bits)[...] = exact.view(bits)
    return made


def _tensor(found: Any) -> State:
    name = _TYPES.get(_name(found.element_type))
    if name is None:
        raise NotImplementedError(f"an output is of type {_name(found.element_type)}")
    array = np.array(found.data)
    if is_narrow(name):
        exact = dtype_of(name)
        if found.element_type.bitwidth != 8 * exact.itemsize:
            raise NotImplementedError(f"an output is of type {name}")
        array = widened(array.view(np.dtype(f"u{exact.itemsize}")).view(exact))
    return State(array.reshape(tuple(found.shape)), dtype=name)


def _name(kind: Any) -> str:
    return str(kind.get_type_name())
