"""What Inductor computes in one loop, as its scheduler has it when all is fused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._inductor import config

from outvote.dialects.torch_export.workers.shared.build import LAYER


def regions_between(
    module: Any, examples: Sequence[Any], load: Callable[..., Any]
) -> list[tuple[str, ...]]:
    """Layers of a module that are computed at once, in its order; `load` compiles it."""
    calls = {node.name: node.meta[LAYER] for node in module.graph.nodes if LAYER in node.meta}
    fused: list[set[str]] = []

    def note(nodes: list[Any]) -> list[Any]:
        fused.extend(set(_sources(node)) for node in nodes)
        return nodes

    # What was compiled before is not scheduled again.
    with config.patch(_post_fusion_custom_pass=note, fx_graph_cache=False), torch.no_grad():
        load(module, examples)(*examples)
    told = (tuple(layer for name, layer in calls.items() if name in names) for names in fused)
    return [layers for layers in told if len(layers) > 1]


def _sources(node: Any) -> Iterator[str]:
    """The calls that a loop goes back to; what others compute is one call by itself."""
    for part in node.get_nodes():
        if part.node is not None and not part.is_extern():
            for origin in part.node.get_origins():
                for source in origin.meta.get("from_node", ()):
                    while source.from_node:
                        source = source.from_node[-1]
                    yield source.name
