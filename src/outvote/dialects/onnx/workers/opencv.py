"""OpenCV's dnn module, its new engine, with kernels of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx

from outvote.core.arrays import TEXT
from outvote.core.states import State
from outvote.dialects.onnx.nouns.types import CODES, NAMES, is_narrow
from outvote.dialects.onnx.workers.shared.assemble import Assembled
from outvote.dialects.onnx.workers.shared.worker import OnnxWorker
from outvote.worker.main import Context

# A layer tells its types with `getTypes`: it fails for those that it has not.
_GAPS = re.compile(
    r"not supported|[Uu]nsupported|only \w+ is supported|[Nn]ot implemented|"
    r"StsNotImplemented|\(-213:|::getTypes\(|(?:type|depth)\(\) == CV_"
)


def create(context: Context) -> OnnxWorker:
    cv2.setNumThreads(1)
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    return OnnxWorker(context, OpenCv(context.blobs.folder))


class OpenCv:
    """One net for each graph."""

    libraries: tuple[str, ...] = ("opencv-python-headless", "opencv-python")
    fixed = True
    free = False
    divides = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def is_gap(self, error: Exception) -> bool:
        return bool(_GAPS.search(str(error)))

    def precision(self) -> dict[str, Any]:
        return {}

    def load(self, graph: Assembled) -> _Net:
        narrow = [i for i in graph.inputs if is_narrow(i.dtype) or i.dtype == TEXT]
        if narrow:
            raise NotImplementedError(f"{narrow[0].dtype} cannot be given to OpenCV")
        typed = _typed(graph)
        try:
            with typed.stored(self._folder) as model:
                net = _read(model)
        except cv2.error as error:  # so it says that there is something it has not
            raise NotImplementedError(str(error)) from error
        if net.empty():
            kinds = ", ".join(sorted({node.op_type for node in typed.proto.graph.node}))
            raise NotImplementedError(f"OpenCV has no layers for some of these operators: {kinds}")
        return _Net(net, typed)


def _read(model: Any) -> Any:
    source = str(model) if not isinstance(model, bytes) else np.frombuffer(model, np.uint8)
    engine = getattr(cv2.dnn, "ENGINE_NEW", None)  # since 5
    if engine is None:
        return cv2.dnn.readNetFromONNX(source)
    return cv2.dnn.readNetFromONNX(source, engine=engine)


class _Net:
    def __init__(self, net: Any, graph: Assembled) -> None:
        self._net = net
        self._names = [item.name for item in graph.inputs]
        self._read = {name for node in graph.proto.graph.node for name in node.input}
        self._outputs = list(graph.outputs)
        self._declared = {value.name: value.type.tensor_type for value in graph.proto.graph.output}

    def run(self, feeds: Sequence[State]) -> list[State]:
        given = dict(zip(self._names, feeds, strict=True))
        if not all(feed.array.size for feed in feeds):
            raise NotImplementedError("OpenCV has no tensors without elements")
        for name, feed in given.items():
            if name in self._read:
                self._net.setInput(np.require(feed.array, requirements=("C",)), name)
        found = self._net.forward(self._outputs)
        return [self._tensor(*pair) for pair in zip(self._outputs, found, strict=True)]

    def _tensor(self, name: str, found: Any) -> State:
        """An output. OpenCV knows neither numbers without a dimension nor, going out, float16."""
        if found is None:
            raise NotImplementedError("OpenCV has no tensors without elements")
        array = np.asarray(found)
        declared = self._declared[name]
        if array.size == 1 and declared.HasField("shape") and not declared.shape.dim:
            array = array.reshape(())
        meant = NAMES.get(declared.elem_type)
        if (array.dtype.name, meant) in (("float32", "float16"), ("uint8", "bool")):
            array = array.astype(meant)
        return State(array, dtype=array.dtype.name)


def _typed(graph: Assembled) -> Assembled:
    """The graph with types and shapes of its outputs, which OpenCV wants to be told."""
    if graph.content is not None:  # and so they are told already
        return graph
    proto = onnx.shape_inference.infer_shapes(graph.proto)
    for value in proto.graph.output:
        held = value.type.tensor_type
        held.elem_type = held.elem_type or CODES["float32"]
        held.shape.SetInParent()
    return replace(graph, proto=proto, content=None)
