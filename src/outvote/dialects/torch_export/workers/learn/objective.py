"""The number that is differentiated, as one graph with every weight as an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from outvote.core.model import Json, Layer, Model, Ref
from outvote.core.train_protocol import Named
from outvote.dialects.torch_export.nouns.node import WEIGHT, learned_of, weights_in
from outvote.dialects.torch_export.workers.shared.build import add_calls, placeholders
from outvote.dialects.torch_export.workers.shared.tensors import written_over

Key = tuple[str, str, str]
_ATEN = torch.ops.aten


@dataclass(frozen=True)
class ProgramWeight:
    """A weight of a program, at the first call that reads it; others may read the same one."""

    layer: str
    place: int
    name: str
    digest: str
    dtype: str  # told of bfloat16 alone
    is_learned: bool

    @property
    def key(self) -> Key:
        return self.name, self.digest, self.dtype


def parameters_of(model: Model) -> list[ProgramWeight]:
    """Every weight once: equal numbers under two names are two."""
    found: dict[Key, ProgramWeight] = {}
    for layer in model.layers:
        for told in weights_in(layer.kwargs):
            place, key = int(told[WEIGHT]), _key(layer, told)
            found.setdefault(
                key, ProgramWeight(layer.name, place, *key, place in learned_of(layer))
            )
    return list(found.values())


def loss_of(named: Named) -> Any:
    """The loss of `torch.nn` of that name; lists of numbers are tensors there."""
    config = dict(named.get("config") or {})
    tensors = {k: torch.tensor(v) for k, v in config.items() if isinstance(v, list)}
    return getattr(torch.nn, named["class_name"])(**{**config, **tensors})


def objective(model: Model, cotangents: Sequence[bool], loss: Named | None, wide: bool) -> Any:
    """A module of the inputs, the weights, the cotangents and the truth, in this order.

    It gives the number, then the outputs, then every weight that is not learned, as the calls
    have left it. The number is a sum in float32, or in float64 where that is asked for.
    """
    root, graph = torch.nn.Module(), torch.fx.Graph()
    held = placeholders(model, graph)
    known = parameters_of(model)
    weights = {item.key: graph.placeholder(f"w{place}") for place, item in enumerate(known)}
    given = [graph.placeholder(f"c{place}") for place in range(sum(cotangents))]
    truth = graph.placeholder("truth") if loss is not None else None

    def constant_of(layer: Layer) -> Any:
        def node(place: int, told: Json) -> Any:
            return weights[_key(layer, told)]

        return node

    add_calls(graph, model.layers, held, constant_of)
    outputs = [held[ref] for ref in model.outputs]
    terms = []
    asked = [output for output, is_there in zip(outputs, cotangents, strict=False) if is_there]
    for output, cotangent in zip(asked, given, strict=True):
        alike = graph.call_function(_ATEN.type_as.default, (cotangent, output))
        terms.append(graph.call_function(_ATEN.mul.Tensor, (output, alike)))
    if loss is not None:
        root.add_module("loss", loss_of(loss).to(torch.float64 if wide else torch.float32))
        terms.append(graph.call_module("loss", (outputs[0], truth)))
    value = None
    for term in terms:
        broad = graph.call_method("to", (term, torch.float64 if wide else torch.float32))
        added = graph.call_function(_ATEN.sum.default, (broad,))
        if value is not None:
            added = graph.call_function(_ATEN.add.Tensor, (value, added))
        value = added
    left = {**weights, **_written(model, held)}
    number = () if value is None else (value,)
    graph.output((*number, *outputs, *(left[item.key] for item in known if not item.is_learned)))
    graph.lint()
    return torch.fx.GraphModule(root, graph)


def _key(layer: Layer, told: Json) -> Key:
    weight = layer.weights[told[WEIGHT]]
    return weight.name, weight.digest, str(told.get("type", ""))


def _written(model: Model, held: Mapping[Ref, Any]) -> dict[Key, Any]:
    """Weights that a call writes over: what it gives is what they are from then on."""
    return {
        _key(layer, told): held[Ref(layer.name)]
        for layer in model.layers
        for name in written_over(layer.kind)
        for told in weights_in(layer.kwargs.get(name))
    }
