"""A graph that a tool has transformed, on ONNX Runtime with its optimiser off.

The transformation stands in `twins`, under the name of the mode. Whatever graph is run, whole, cut
off or a node alone, is transformed first; so localisation and minimiser show what the tool does.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from outvote.core.model import digest_of
from outvote.core.states import State
from outvote.dialects.onnx.nouns.types import NAMES, narrowed
from outvote.dialects.onnx.workers.onnxruntime import OnnxRuntime
from outvote.dialects.onnx.workers.shared.assemble import Assembled
from outvote.dialects.onnx.workers.shared.custom import library_of
from outvote.dialects.onnx.workers.shared.runtime import Program
from outvote.dialects.onnx.workers.shared.worker import OnnxWorker
from outvote.worker.main import Context

_TOOLS = {"simplified": "onnxsim", "slim": "onnxslim", "opset": "onnx"}
_PRECISION = {"fp16": "f16", "int8": "int8", "qdq": "int8"}
_CALIBRATED = ("qdq",)  # made anew for other numbers
_GAPS = re.compile(r"[Nn]ot supported|[Uu]nsupported|[Nn]ot implemented|No Adapter|NotImplemented")


def create(context: Context) -> OnnxWorker:
    runtime = OnnxRuntime("eager", context.blobs.folder, library_of(context))
    return OnnxWorker(context, Twin(context.settings.mode, runtime, context.folder))


class Twin:
    """Transforms every graph, and lets ONNX Runtime run what comes of it."""

    fixed = False
    free = False
    divides = False  # nobody knows what threads the tools have

    def __init__(self, name: str, runtime: OnnxRuntime, folder: Path) -> None:
        tool = _TOOLS.get(name)
        self.libraries = (*([tool] if tool else []), *runtime.libraries)
        self._name = name
        self._module = importlib.import_module(f"outvote.dialects.onnx.workers.twins.{name}")
        self._runtime = runtime
        self._folder = folder

    def is_gap(self, error: Exception) -> bool:
        return self._runtime.is_gap(error)

    def precision(self) -> dict[str, Any]:
        coarse = _PRECISION.get(self._name)
        return {"inference": coarse} if coarse else {}

    def load(self, graph: Assembled) -> _Transformed:
        if graph.external:
            raise NotImplementedError("the model is too large to be transformed in memory")
        return _Transformed(self, graph)

    def made(self, graph: Assembled, feeds: Sequence[State]) -> tuple[Assembled, tuple[str, ...]]:
        """What the tool makes of a graph, and which of the tensors to be shown are gone."""
        plain = onnx.ModelProto()
        plain.CopyFrom(graph.proto)
        del plain.graph.output[graph.own :]
        plain = _typed(plain)
        given = {
            item.name: narrowed(feed.array, feed.dtype)
            for item, feed in zip(graph.inputs, feeds, strict=True)
        }
        proto = self._transformed(plain, given)
        made = {name for node in proto.graph.node for name in node.output}
        shown = list(dict.fromkeys(graph.outputs[graph.own :]))
        kept = [name for name in shown if name in made]
        own = [item.name for item in proto.graph.output]
        if len(own) != graph.own:
            raise RuntimeError(f"the transformed graph gives {len(own)} outputs of {graph.own}")
        proto.graph.output.extend(onnx.ValueInfoProto(name=n) for n in kept if n not in own)
        outputs = (*own, *kept)
        gone = tuple(name for name in shown if name not in made)
        inputs = _inputs(graph, proto)
        return replace(graph, proto=proto, inputs=inputs, outputs=outputs, content=None), gone

    def loaded(self, graph: Assembled) -> Program:
        return self._runtime.load(graph)

    @property
    def is_calibrated(self) -> bool:
        return self._name in _CALIBRATED

    def _transformed(self, proto: onnx.ModelProto, feeds: Mapping[str, Any]) -> onnx.ModelProto:
        try:
            found: onnx.ModelProto = self._module.transformed(proto, feeds, self._folder)
        except Exception as error:
            text = f"{self._name}: {type(error).__name__}: {error}"
            raise (NotImplementedError if _GAPS.search(text) else RuntimeError)(text) from error
        return found


class _Transformed:
    """A graph that is transformed when it is first run: some tools want to see numbers."""

    def __init__(self, twin: Twin, graph: Assembled) -> None:
        self._twin = twin
        self._graph = graph
        self._types = _types(graph.proto)
        self._seen = ""
        self._program: Program | None = None
        self._gone: tuple[str, ...] = ()
        self._names: tuple[str, ...] = ()

    def run(self, feeds: Sequence[State]) -> list[State | None]:
        program = self._made_for(feeds)
        found = program.run(feeds)
        own = self._graph.own
        hidden = dict(zip(self._names[own:], found[own:], strict=True))
        told = [*zip(self._graph.outputs, found[:own], strict=False)]
        told += [(name, hidden.get(name)) for name in self._graph.outputs[own:]]
        return [self._as_it_was(name, state) for name, state in told]

    def _made_for(self, feeds: Sequence[State]) -> Program:
        seen = _digest(feeds) if self._twin.is_calibrated else ""
        if self._program is None or seen != self._seen:
            made, self._gone = self._twin.made(self._graph, feeds)
            self._names, self._seen = made.outputs, seen
            self._program = self._twin.loaded(made)
        return self._program

    def _as_it_was(self, name: str, state: State | None) -> State | None:
        """A tensor in the type that it has in the original: narrower floats were meant for it."""
        wanted = self._types.get(name)
        if state is None or wanted not in ("float32", "float64"):
            return state
        narrower = "float" in state.dtype and state.dtype != wanted
        return State(state.array.astype(wanted)) if narrower else state


def _inputs(graph: Assembled, proto: onnx.ModelProto) -> tuple[Any, ...]:
    """The inputs under the names that the tool has left them with, in their order."""
    constants = {item.name for item in proto.graph.initializer}
    left = [item.name for item in proto.graph.input if item.name not in constants]
    if len(left) != len(graph.inputs):
        return graph.inputs
    return tuple(replace(item, name=name) for item, name in zip(graph.inputs, left, strict=True))


def _typed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A graph whose outputs say their types, as tools want them; others know no better."""
    with suppress(Exception):  # operators that ONNX does not know
        return onnx.shape_inference.infer_shapes(proto)
    return proto


def _types(proto: onnx.ModelProto) -> dict[str, str]:
    """The types of the tensors of a graph, as far as they can be inferred."""
    inferred = _typed(proto)
    values = [*inferred.graph.value_info, *inferred.graph.output]
    return {
        item.name: NAMES[item.type.tensor_type.elem_type]
        for item in values
        if item.type.tensor_type.elem_type in NAMES
    }


def _digest(feeds: Sequence[State]) -> str:
    return digest_of([[feed.dtype, feed.array.tobytes().hex()] for feed in feeds])
