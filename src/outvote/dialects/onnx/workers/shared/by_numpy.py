"""Graphs for libraries that convert them and are given tensors by NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

from outvote.core.arrays import TEXT
from outvote.dialects.onnx.nouns.types import is_narrow
from outvote.dialects.onnx.workers.shared.assemble import Assembled


def to_convert(graph: Assembled, folder: Path, library: str) -> Any:
    """The whole graph with its shapes inferred; an input of a type that NumPy lacks is a gap."""
    lacking = [i for i in graph.inputs if is_narrow(i.dtype) or i.dtype == TEXT]
    if lacking:
        raise NotImplementedError(f"{lacking[0].dtype} cannot be given to {library} from NumPy")
    with graph.stored(folder) as model:
        proto = graph.proto if isinstance(model, bytes) else onnx.load(str(model))
    return onnx.shape_inference.infer_shapes(proto)
