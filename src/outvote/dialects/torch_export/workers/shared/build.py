"""A model as a graph of PyTorch's own (`torch.fx`), which compilers and converters take."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from outvote.core.model import Json, Layer, Model, Ref
from outvote.dialects.torch_export.nouns.node import paths_of
from outvote.dialects.torch_export.workers.shared.tensors import (
    Weights,
    arguments,
    as_written,
    callable_of,
    written_over,
)


def graph_module(model: Model, wanted: Sequence[Ref], weights: Weights) -> Any:
    """A module that gives these tensors, as a tuple."""
    root, graph = torch.nn.Module(), torch.fx.Graph()
    held: dict[Ref, Any] = {
        Ref(item.name): graph.placeholder(f"x{place}") for place, item in enumerate(model.inputs)
    }
    constants: dict[tuple[str, str], Any] = {}

    def constant_of(layer: Layer) -> Any:
        fetch = weights.of(layer)

        def node(place: int, told: Json) -> Any:
            key = (layer.weights[place].digest, str(told.get("type", "")))
            if key not in constants:
                name = f"w{len(constants)}"
                root.register_buffer(name, fetch(place, told))
                constants[key] = graph.get_attr(name)
            return constants[key]

        return node

    for layer in model.layers:
        named = arguments(layer, held.__getitem__, constant_of(layer))
        returned = _call(graph, layer, named)
        for index, path in enumerate(paths_of(layer)):
            part = returned
            for step in path:
                part = graph.call_function(operator.getitem, (part, step))
            held[Ref(layer.name, index)] = part
    graph.output(tuple(held[r] for r in wanted))
    graph.lint()
    return torch.fx.GraphModule(root, graph).eval()


def _call(graph: Any, layer: Layer, named: Mapping[str, Any]) -> Any:
    copied = {
        name: graph.call_function(torch.ops.aten.clone.default, (named[name],))
        for name in written_over(layer.kind)
        if name in named
    }
    given, more = as_written(layer.kind, {**named, **copied})
    return graph.call_function(callable_of(layer.kind), given, more)
