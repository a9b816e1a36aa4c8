"""New nodes behind tensors of a graph that is there, as neutral layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from outvote.core.blobs import BlobStore
from outvote.core.model import Layer, Model, Ref
from outvote.core.protocol import Form
from outvote.dialects.onnx.nouns.requests import DrawNodes, GivenTensor, NodesDrawn
from outvote.dialects.onnx.workers.draw.graph import draw_node
from outvote.dialects.onnx.workers.draw.sketch import Accept, Sketch, Unfit, Value, all_known
from outvote.dialects.onnx.workers.shared.read import read
from outvote.worker.main import Refused

_TRIES = 120
_BATCH = "batch"  # as the free dimension of instances is called while shapes are inferred


def draw_nodes(request: DrawNodes, blobs: BlobStore) -> NodesDrawn:
    """Nodes one behind the other; the same seed gives the same ones."""
    sketch = Sketch(request.opset, request.seed, request.ir, closed=True)
    for place, given in enumerate(request.given):
        sketch.take(_value(given, place))
    first = link = sketch.values[0]
    refused = 0
    while len(sketch.nodes) < request.nodes and refused < _TRIES:
        try:
            link = draw_node(sketch, link, request.kinds, _wanted(first, request.keep))[0]
        except Unfit:
            refused += 1
    if not sketch.nodes:
        raise Refused(f"no node was found for {first.dtype} {first.shape}")
    return _told(sketch, request.given, blobs, refused)


def _wanted(first: Value, keep: bool) -> Accept:
    if not keep:
        return all_known
    form = (first.dtype, first.shape)
    return lambda values: len(values) == 1 and (values[0].dtype, values[0].shape) == form


def _value(given: GivenTensor, place: int) -> Value:
    shape = tuple(
        n if n is not None else _BATCH if axis == given.batch else f"free{place}.{axis}"
        for axis, n in enumerate(given.shape)
    )
    return Value(f"given{place}", given.dtype, shape, computed=False)


def _told(
    sketch: Sketch, given: Sequence[GivenTensor], blobs: BlobStore, refused: int
) -> NodesDrawn:
    """The nodes by the reader of files; where the batch is, the sketch knows better."""
    read_again = read("drawn nodes", sketch.model().SerializeToString(), blobs, {}, {})
    known = {value.name: value for value in sketch.values}
    layers = []
    specs: dict[str, tuple[Form, ...]] = {}
    for node, layer in zip(sketch.nodes, read_again.model.layers, strict=True):
        values = [known[name] for name in node.output]
        layers.append(_placed(layer, values))
        specs[layer.name] = tuple(_form(value) for value in values)
    inputs = tuple(
        replace(item, batch=told.batch)
        for item, told in zip(read_again.model.inputs, given, strict=True)
    )
    outputs = (Ref(layers[-1].name),)
    model = Model("drawn", inputs, tuple(layers), outputs, dialect="onnx")
    return NodesDrawn(model=model, specs=specs, refused=refused)


def _placed(layer: Layer, values: Sequence[Value]) -> Layer:
    return replace(layer, batch=tuple(_batch_axis(value) for value in values))


def _batch_axis(value: Value) -> int | None:
    axes = [axis for axis, n in enumerate(value.shape) if n == _BATCH]
    return axes[0] if len(axes) == 1 else None


def _form(value: Value) -> Form:
    return tuple(n if isinstance(n, int) else None for n in value.shape), value.dtype
