"""A model as a graph of PyTorch's own (`torch.fx`), which compilers and converters take."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from outvote.core.model import Json, Layer, Model, Ref
from outvote.dialects.torch_export.nouns.node import learned_of, paths_of
from outvote.dialects.torch_export.workers.shared.tensors import (
    Weights,
    arguments,
    as_written,
    callable_of,
    may_write,
    written_over,
)

LAYER = "layer"  # of a node's meta: the name of the layer that it is the call of


def graph_module(
    model: Model, wanted: Sequence[Ref], weights: Weights, trains: bool = False
) -> Any:
    """A module that gives these tensors, as a tuple; `trains`: what it learns are parameters.

    Equal numbers are one constant, but where they may change: a mean that is moved may start as
    the offset does.
    """
    root, graph = torch.nn.Module(), torch.fx.Graph()
    held = placeholders(model, graph)
    constants: dict[tuple[str, str, str], Any] = {}

    def constant_of(layer: Layer) -> Any:
        fetch = weights.of(layer)
        learned = learned_of(layer) if trains else ()

        def node(place: int, told: Json) -> Any:
            weight = layer.weights[place]
            changes = place in learned or may_write(layer)
            key = weight.digest, str(told.get("type", "")), weight.name if changes else ""
            if key not in constants:
                name, tensor = f"w{len(constants)}", fetch(place, told)
                if place in learned:
                    root.register_parameter(name, torch.nn.Parameter(tensor))
                else:
                    root.register_buffer(name, tensor)
                constants[key] = graph.get_attr(name)
            return constants[key]

        return node

    add_calls(graph, model.layers, held, constant_of)
    graph.output(tuple(held[r] for r in wanted))
    graph.lint()
    return torch.fx.GraphModule(root, graph).eval()


def placeholders(model: Model, graph: Any) -> dict[Ref, Any]:
    """What stands for the inputs of a model in a graph."""
    return {
        Ref(item.name): graph.placeholder(f"x{place}") for place, item in enumerate(model.inputs)
    }


def add_calls(
    graph: Any,
    layers: Iterable[Layer],
    held: dict[Ref, Any],
    constant_of: Callable[[Layer], Callable[[int, Json], Any]],
) -> None:
    """Every layer in a graph; what each gives is noted in `held`."""
    for layer in layers:
        named = arguments(layer, held.__getitem__, constant_of(layer))
        returned = _call(graph, layer, named)
        returned.meta[LAYER] = layer.name
        for index, path in enumerate(paths_of(layer)):
            part = returned
            for step in path:
                part = graph.call_function(operator.getitem, (part, step))
            held[Ref(layer.name, index)] = part


def _call(graph: Any, layer: Layer, named: Mapping[str, Any]) -> Any:
    copied = {
        name: graph.call_function(torch.ops.aten.clone.default, (named[name],))
        for name in written_over(layer.kind)
        if name in named
    }
    given, more = as_written(layer.kind, {**named, **copied})
    return graph.call_function(callable_of(layer.kind), given, more)
