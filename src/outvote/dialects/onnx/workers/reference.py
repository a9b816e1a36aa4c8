"""ONNX' own reference implementation in NumPy: a witness, not the judge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from outvote.core.states import State
from outvote.dialects.onnx.nouns.types import CODES, as_texts, narrowed, widened
from outvote.dialects.onnx.workers.shared.assemble import Assembled
from outvote.dialects.onnx.workers.shared.custom import classes_of
from outvote.dialects.onnx.workers.shared.worker import OnnxWorker
from outvote.worker.main import Context

_GAPS = re.compile(
    r"No registered implementation|No implementation for operator|not implemented|"
    r"Unknown activation function"
)


def create(context: Context) -> OnnxWorker:
    return OnnxWorker(context, ReferenceRuntime(context.blobs.folder, classes_of(context)))


class ReferenceRuntime:
    """One evaluator for each graph."""

    libraries: tuple[str, ...] = ("onnx", "numpy")
    fixed = False
    free = False
    divides = True

    def __init__(self, folder: Path, operators: Sequence[Any] = ()) -> None:
        self._folder = folder
        self._operators = list(operators)

    def is_gap(self, error: Exception) -> bool:
        return bool(_GAPS.search(str(error)))

    def precision(self) -> dict[str, Any]:
        return {}

    def load(self, graph: Assembled) -> _Evaluator:
        with graph.stored(self._folder) as model:
            source = graph.proto if isinstance(model, bytes) else onnx.load(str(model))
            return _Evaluator(ReferenceEvaluator(source, new_ops=self._operators), graph)


class _Evaluator:
    def __init__(self, evaluator: Any, graph: Assembled) -> None:
        self._evaluator = evaluator
        self._names = [item.name for item in graph.inputs]
        self._outputs = list(graph.outputs)

    def run(self, feeds: Sequence[State]) -> list[State]:
        given = {
            name: narrowed(feed.array, feed.dtype)
            for name, feed in zip(self._names, feeds, strict=True)
        }
        with np.errstate(all="ignore"):
            return [_tensor(value) for value in self._evaluator.run(self._outputs, given)]


def _tensor(value: Any) -> State:
    if isinstance(value, list) or value is None:
        raise NotImplementedError("an output is a sequence or an optional, no tensor")
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        return State(as_texts(array))
    if array.dtype.name not in CODES:
        raise NotImplementedError(f"an output holds {array.dtype.name}: no numbers")
    return State(widened(array), dtype=array.dtype.name)
