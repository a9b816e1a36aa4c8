"""What the driver asks of workers of this wing alone: nodes new, illegal and fused; examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outvote.core.model import Model
from outvote.core.protocol import File, Form, LayerAttempted, Reply, Request


@dataclass(frozen=True)
class GivenTensor:
    """A tensor that new nodes may read; None in a shape is free."""

    shape: tuple[int | None, ...]
    dtype: str
    batch: int | None


@dataclass(frozen=True, kw_only=True)
class NodesDrawn(Reply):
    """New nodes as a model of their own, whose inputs are the tensors that were given."""

    model: Model
    specs: Mapping[str, tuple[Form, ...]]
    refused: int  # nodes that inference would not have


@dataclass(frozen=True, kw_only=True)
class DrawNodes(Request[NodesDrawn], deed="draw nodes"):
    """Nodes one behind the other; the first reads the first of the tensors.

    `keep`: each gives what the first tensor is, in shape and type.
    """

    given: tuple[GivenTensor, ...]
    opset: int
    ir: int
    seed: int
    nodes: int = 1
    keep: bool = False
    kinds: tuple[str, ...] = ()  # all, if none is named


@dataclass(frozen=True, kw_only=True)
class FormsInferred(Reply):
    """Forms of what every node gives, and the batch axes."""

    specs: Mapping[str, tuple[Form, ...]]
    batch: Mapping[str, tuple[int | None, ...]]


@dataclass(frozen=True, kw_only=True)
class InferForms(Request[FormsInferred], deed="infer shapes"):
    """What ONNX' checker and inference say of a model; what they refuse is refused."""

    model: Model


@dataclass(frozen=True, kw_only=True)
class AttemptNode(Request[LayerAttempted], deed="try illegal values"):
    """Run a model of one node that should be refused, on numbers of our own."""

    model: Model


@dataclass(frozen=True)
class Example:
    """One of ONNX' own node tests: a model, and a data file with inputs and answers."""

    name: str
    operators: tuple[str, ...]
    model: File
    data: File


@dataclass(frozen=True, kw_only=True)
class ExamplesBuilt(Reply):
    """Those that can be seeds, and why the others cannot."""

    examples: tuple[Example, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class BuildExamples(Request[ExamplesBuilt], deed="build ONNX' node tests"):
    """All node tests of the installed onnx; `only`: those whose name holds a word."""

    only: str = ""
