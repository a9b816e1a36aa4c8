"""Masks in a functional model: what Keras computes by itself is no part of the neutral graph.

Keras writes the mask that travels with a tensor into the call of the layer that reads it, and the
operations that made it into the graph. Every Keras does so anew for the layers that are called, so
both are left out: another version, or another backend, shall compute masks in its own way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from keras import Layer, tree
from keras.src.backend import KerasTensor

from outvote.dialects.keras.workers.keras3.graph import get_mask
from outvote.worker.names import named_once


def is_travelling(name: str, value: Any, node: Any) -> bool:
    """Whether an argument of a call is the mask that would come with the tensors anyway."""
    if not (name == "mask" or name.endswith("_mask")) or not isinstance(node.operation, Layer):
        return False
    masks = [item for item in tree.flatten(value) if item is not None]
    carried = any(get_mask(tensor) is not None for tensor in node.arguments.keras_tensors)
    return carried and bool(masks) and all(map(_is_made_by_operations, masks))


def nodes_of_masks(functional: Any) -> set[int]:
    """The nodes of a graph that nobody needs who is told of masks by the tensors themselves."""
    nodes = [node for nodes in functional._nodes_by_depth.values() for node in nodes]
    needed: set[int] = set()
    queue = list(functional.outputs)
    while queue:
        node = _node_of(queue.pop())
        if id(node) in needed:
            continue
        needed.add(id(node))
        given = node.arguments
        kept = {k: v for k, v in given.kwargs.items() if not is_travelling(k, v, node)}
        queue += [t for t in tree.flatten((given.args, kept)) if isinstance(t, KerasTensor)]
    return {id(node) for node in nodes if not node.is_input} - needed


def name_apart(outputs: Sequence[Any]) -> None:
    """No operation with the name of another: those that compute masks are named by Keras."""
    found = {id(operation): operation for operation in _operations(outputs)}
    taken: set[str] = set()
    for operation in sorted(found.values(), key=lambda one: not isinstance(one, Layer)):
        name = named_once(taken, operation.name)
        if name != operation.name:
            operation.name = name


def _operations(outputs: Sequence[Any]) -> Iterator[Any]:
    done: set[int] = set()
    queue = list(outputs)
    while queue:
        node = _node_of(queue.pop())
        if id(node) not in done:
            done.add(id(node))
            yield node.operation
            queue += node.arguments.keras_tensors


def _is_made_by_operations(mask: Any) -> bool:
    """Not by a layer, nor given to the model: as Keras computes masks, and hardly anybody else."""
    return isinstance(mask, KerasTensor) and not isinstance(_node_of(mask).operation, Layer)


def _node_of(tensor: Any) -> Any:
    history = tensor._keras_history
    return history.operation._inbound_nodes[history.node_index]
