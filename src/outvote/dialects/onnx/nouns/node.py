"""A node of an ONNX graph as a Layer: where its operator, constants and outputs are to be found.

    kind      operator, behind its domain where that is not ONNX' own: `com.microsoft::Gelu`
    args      inputs in order: a tensor, a constant of the graph, or None where one is left out
    kwargs    what sub-graphs of the node read from outside them, by the name they call it
    config    attributes, as they were written; those left out have the operator's defaults
    weights   constants, told of in args and config by their place: {"$weight": 0}

Sub-graphs and functions are plain data too: their tensors have names instead of references.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from outvote.core.model import REF, Json, Layer, Ref

WEIGHT = "$weight"  # {"$weight": place, "type": of a narrow type alone}
STRINGS = "$strings"  # {"$strings": [...], "shape": [...]}: a constant of texts
GRAPH = "$graph"  # {"$graph": {...}}: a sub-graph
ATTRIBUTE = "$attribute"  # {"$attribute": name, "type": "INT"}: inside a function, what it is given
EMPTY = "$empty"  # {"$empty": "INTS"}: a list without elements, which cannot show its type
BYTES = "$bytes"  # {"$bytes": base64}: a text that is none
TYPE = "$type"  # {"$type": base64}: a type, as protobuf


@dataclass(frozen=True)
class Origin:
    """What a node needs of the model it stands in, so that it can be taken out of it."""

    opset: Mapping[str, int]  # version by domain
    ir: int = 8
    outputs: tuple[int, ...] = (0,)  # which of the operator's outputs the node has
    functions: Sequence[Json] = field(default_factory=list)  # that the model brings itself

    def to_json(self) -> dict[str, Json]:
        told: dict[str, Json] = {"opset": dict(self.opset), "ir": self.ir}
        if self.outputs != (0,):
            told["outputs"] = list(self.outputs)
        if self.functions:
            told["functions"] = list(self.functions)
        return told


def origin_of(layer: Layer) -> Origin:
    told = layer.origin
    return Origin(
        told.get("opset", {}),
        int(told.get("ir", 8)),
        tuple(told.get("outputs", (0,))),
        told.get("functions", []),
    )


def with_origin(layer: Layer, origin: Origin) -> Layer:
    return replace(layer, origin=origin.to_json())


def kind_of(domain: str, operator: str) -> str:
    return f"{domain}::{operator}" if domain not in ("", "ai.onnx") else operator


def operator_of(kind: str) -> tuple[str, str]:
    """Domain and name of the operator that a kind of layer stands for."""
    domain, _, operator = kind.rpartition("::")
    return domain, operator


def opset_of(layer: Layer) -> int:
    """The version of the operator's set that the model asks for; 0 where it does not say."""
    domain, _ = operator_of(layer.kind)
    found = origin_of(layer).opset
    return int(found.get(domain, found.get("ai.onnx", 0) if not domain else 0))


def ref(producer: str, index: int = 0) -> Json:
    """A tensor, as it stands among a layer's arguments."""
    return {REF: [producer, index]}


def tensors_of(origin: Origin, name: str) -> list[Ref]:
    """What a layer gives, in order."""
    return [Ref(name, index) for index in range(len(origin.outputs))]


def constants_in(structure: Json) -> Iterator[Mapping[str, Json]]:
    """Every mention of a constant inside arguments, attributes and what is nested in them."""
    if isinstance(structure, Mapping):
        if WEIGHT in structure:
            yield structure
        else:
            for value in structure.values():
                yield from constants_in(value)
    elif isinstance(structure, list | tuple):
        for value in structure:
            yield from constants_in(value)
