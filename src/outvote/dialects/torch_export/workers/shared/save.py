"""Writes a neutral model as a `.pt2` archive: PyTorch exports the graph that it is."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from outvote.core.blobs import BlobStore
from outvote.core.model import Input, Model
from outvote.core.states import State
from outvote.dialects.torch_export.workers.shared.build import graph_module
from outvote.dialects.torch_export.workers.shared.tensors import Weights, as_tensor

_FREE = 2  # the size of a free dimension while it is exported: 0 and 1 would be taken as fixed


def save(model: Model, blobs: BlobStore, path: Path) -> Path:
    """The archive; free dimensions stay free where the graph lets them."""
    module = graph_module(model, model.outputs, Weights(blobs), trains=True)
    examples = tuple(_example(item) for item in model.inputs)
    free = tuple(
        {axis: torch.export.Dim.AUTO for axis, size in enumerate(item.shape) if size is None}
        for item in model.inputs
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, about its own parts
        program = torch.export.export(module, examples, dynamic_shapes=free)
        torch.export.save(program, path)
    return path


def _example(item: Input) -> Any:
    shape = [size if size is not None else _FREE for size in item.shape]
    dtype = "float32" if item.dtype == "bfloat16" else item.dtype
    return as_tensor(State(np.ones(shape, dtype), dtype=item.dtype))
