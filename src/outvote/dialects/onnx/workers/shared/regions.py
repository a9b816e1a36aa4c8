"""Which nodes of a graph an optimiser made one of: by the tensors that are left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Regions = list[tuple[str, ...]]


def regions_between(original: Any, optimised: Any) -> Regions:
    """For each node of the optimised graph, the nodes of the original that it stands for.

    It stands for what leads from tensors that there still are to those that it gives. Where that
    is a single node, nothing was fused.
    """
    makers = {name: node for node in original.node for name in node.output if name}
    left = {value.name for value in optimised.input}
    left |= {name for node in optimised.node for name in node.output if name}
    order = {node.name: place for place, node in enumerate(original.node)}
    found = []
    for node in optimised.node:
        names = _behind([name for name in node.output if name in makers], makers, left)
        found.append(tuple(sorted(names, key=order.__getitem__)))
    return [names for names in found if len(names) > 1]


def _behind(made: Sequence[str], makers: Any, left: set[str]) -> set[str]:
    """The nodes behind these tensors, as far as to tensors that are left."""
    found: set[str] = set()
    waiting = list(made)
    while waiting:
        node = makers.get(waiting.pop())
        if node is None or node.name in found:
            continue
        found.add(node.name)
        waiting += [name for name in node.input if name not in left]
    return found
