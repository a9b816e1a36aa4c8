"""Which operators are drawn, and by whom; of the others, why they are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from outvote.dialects.onnx.nouns.attributes import values_of
from outvote.dialects.onnx.nouns.operators import Operator
from outvote.dialects.onnx.workers.draw import (
    arithmetic,
    movement,
    normalisation,
    sequences,
    vision,
    windows,
)
from outvote.dialects.onnx.workers.draw.node import TYPES, Drawer, by_schema
from outvote.dialects.onnx.workers.draw.sketch import operator_in
from outvote.dialects.onnx.workers.shared.schemas import operators

_FAMILIES = (arithmetic, movement, normalisation, sequences, vision, windows)
DRAWERS: Mapping[str, Drawer] = {
    name: drawer for family in _FAMILIES for name, drawer in family.TABLE.items()
}
_CHANCE = "gives other numbers every time"
NOT_DRAWN: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "Bernoulli",
            "Multinomial",
            "RandomNormal",
            "RandomNormalLike",
            "RandomUniform",
            "RandomUniformLike",
        ),
        _CHANCE,
    ),
    **dict.fromkeys(("If", "Loop", "Scan", "SequenceMap"), "takes a sub-graph"),
    "Constant": "reads nothing: constants are drawn with the nodes that read them",
    "ImageDecoder": "reads files",
    "TfIdfVectorizer": "reads a vocabulary",
}


def drawer_of(kind: str) -> Drawer:
    """Who draws nodes of a kind."""
    return DRAWERS.get(kind, by_schema)


def why_not(operator: Operator) -> str:
    """Why no node of an operator is drawn; empty where some are."""
    if operator.domain:
        return f"belongs to {operator.domain}"
    if operator.deprecated:
        return "was given up"
    if operator.name in NOT_DRAWN:
        return NOT_DRAWN[operator.name]
    for slot in (*operator.inputs, *operator.outputs):
        if slot.option != "optional" and not any(name in TYPES for name in slot.types):
            return "reads or gives no tensor of numbers"
    for found in operator.attributes:
        if found.required and values_of(operator.name, found.name) is None:
            return f"no values are known for its attribute {found.name}"
    return ""


def told_operators(opset: int) -> dict[str, Operator]:
    """All operators of a version, each with the reason why it is not drawn."""
    return {
        kind: replace(operator, not_drawn=why_not(operator))
        for kind, operator in operators(opset).items()
    }


@cache
def drawable(opset: int) -> tuple[str, ...]:
    """The kinds of which nodes are drawn in a version of the set."""
    return tuple(kind for kind, operator in operators(opset).items() if not why_not(operator))


@cache
def readers_of(opset: int, dtype: str) -> tuple[str, ...]:
    """Of these, those that can read a tensor of a type."""
    return tuple(
        kind
        for kind in drawable(opset)
        if any(dtype in slot.types for slot in operator_in(kind, opset).inputs)
    )
