"""The lines of Python that build a graph and what it is fed: needs onnx and numpy alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import REF, Input, Json, Layer, Model, Ref
from outvote.core.source import keywords, literal
from outvote.dialects.onnx.nouns.node import WEIGHT, operator_of, origin_of, tensors_of
from outvote.dialects.onnx.nouns.types import CODES, is_narrow
from outvote.triage.scripts import ScriptArrays

_LINE = 100


class Unwritable(Exception):  # noqa: N818 - a limit of the script, not an error
    """The graph holds what cannot be typed: sub-graphs, functions, types that NumPy lacks."""


@dataclass
class GraphSource:
    """The lines that set `feeds` and `model`.

    Names come from a file that nobody vouches for: tensors and constants are numbered.
    `outputs`: what the model gives, where that is to be announced; `free`: sizes of inputs are
    not. `compact`: in as few lines as there can be.
    """

    model: Model
    given: Sequence[Array]
    blobs: BlobStore
    outputs: Sequence[Array] = ()
    free: bool = False
    compact: bool = False
    arrays: ScriptArrays = field(default_factory=ScriptArrays)
    _names: dict[Ref, str] = field(default_factory=dict)
    _constants: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        model = self.model
        if any(is_narrow(item.dtype) for item in model.inputs):
            raise Unwritable
        names = [f"x{i}" for i in range(len(self.given))]
        self._names = {Ref(i.name): n for i, n in zip(model.inputs, names, strict=True)}
        nodes = [self._node(layer, number) for number, layer in enumerate(model.layers)]
        inputs = [self._input(*pair) for pair in zip(model.inputs, self.given, strict=True)]
        opset = {d: v for layer in model.layers for d, v in origin_of(layer).opset.items()}
        imports = ", ".join(f"helper.make_opsetid({d!r}, {v})" for d, v in opset.items())
        ir = max(origin_of(layer).ir for layer in model.layers)
        held = self._listed(self._constants)
        apart = bool(self._constants) and not self.compact
        parts = ["nodes", "'graph'", "inputs", f"[{', '.join(self._announced())}]"]
        parts += ["constants" if apart else held] if self._constants else []
        return [
            *self._feeds(names),
            f"nodes = {self._listed(nodes)}",
            f"inputs = {self._listed(inputs)}",
            *([f"constants = {held}"] if apart else []),
            f"graph = helper.make_graph({', '.join(parts)})",
            f"model = helper.make_model(graph, opset_imports=[{imports}], ir_version={ir})",
        ]

    def _feeds(self, names: Sequence[str]) -> list[str]:
        found = {n: self.arrays.source(a) for n, a in zip(names, self.given, strict=True)}
        line = f"feeds = {{{', '.join(f'{name!r}: {text}' for name, text in found.items())}}}"
        if self.compact or len(line) <= _LINE or len(found) == 1:
            return [line]
        lines = [f"{name} = {text}" for name, text in found.items()]
        return [*lines, f"feeds = {{{', '.join(f'{name!r}: {name}' for name in found)}}}"]

    def _input(self, item: Input, array: Array) -> str:
        sizes = [None] * array.ndim if self.free else list(array.shape)
        name = self._names[Ref(item.name)]
        return f"helper.make_tensor_value_info({name!r}, {CODES[item.dtype]}, {sizes})"

    def _announced(self) -> list[str]:
        """The outputs by name; by type and shape too, where those are to be announced."""
        names = [self._names[read] for read in dict.fromkeys(self.model.outputs)]
        if len(self.outputs) != len(names):
            return [f"onnx.ValueInfoProto(name={name!r})" for name in names]
        return [
            f"helper.make_tensor_value_info({name!r}, {CODES[array.dtype.name]}, "
            f"{list(array.shape)})"
            for name, array in zip(names, self.outputs, strict=True)
        ]

    def _node(self, layer: Layer, number: int) -> str:
        origin = origin_of(layer)
        if layer.kwargs or origin.functions:
            raise Unwritable
        reads = [self._argument(layer, item) for item in layer.args]
        gives = [""] * (max(origin.outputs) + 1)
        for place, found in zip(origin.outputs, tensors_of(origin, layer.name), strict=True):
            gives[place] = self._names[found] = f"y{number}" if not place else f"y{number}_{place}"
        domain, operator = operator_of(layer.kind)
        named = {name: self._attribute(layer, value) for name, value in layer.config.items()}
        if domain:
            named["domain"] = repr(domain)
        more = "".join(f", {text}" for text in keywords(named))
        return f"helper.make_node({operator!r}, {reads}, {gives}{more})"

    def _argument(self, layer: Layer, item: Json) -> str:
        if item is None:
            return ""
        if REF in item:
            return self._names[Ref(*item[REF])]
        name = f"w{len(self._constants)}"
        self._constants.append(self._constant(layer, item, name))
        return name

    def _attribute(self, layer: Layer, value: Json) -> str:
        if isinstance(value, Mapping):
            return self._constant(layer, value, "")
        if isinstance(value, list | tuple) and any(isinstance(one, Mapping) for one in value):
            raise Unwritable
        return literal(list(value) if isinstance(value, tuple) else value)

    def _constant(self, layer: Layer, item: Mapping[str, Any], name: str) -> str:
        if WEIGHT not in item or "type" in item:
            raise Unwritable
        array = np.asarray(self.blobs.get(layer.weights[item[WEIGHT]].digest))
        return f"numpy_helper.from_array({self.arrays.source(array)}, {name!r})"

    def _listed(self, items: Sequence[str]) -> str:
        """On one line, if it is read at a glance."""
        line = f"[{', '.join(items)}]"
        if self.compact or len(line) <= _LINE or len(items) == 1:
            return line
        return "[\n" + "".join(f"    {item},\n" for item in items) + "]"
