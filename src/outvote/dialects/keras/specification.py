"""What Keras' documentation rules out: ids beyond those that a layer was told there are."""

from __future__ import annotations

import numpy as np

from outvote.core.model import Layer
from outvote.core.specimen import Specimen
from outvote.run.pool import Pool

_COUNTS = {"CategoryEncoding": "num_tokens", "Embedding": "input_dim"}


def link(layer: Layer) -> str | None:
    """No page: a name says as much."""
    return None


def refusal(pool: Pool, worker: str, specimen: Specimen) -> str | None:
    """Which ids of what is read are none; the documentation alone is asked."""
    fed = {
        item.name: array for item, array in zip(specimen.model.inputs, specimen.inputs, strict=True)
    }
    for layer in specimen.model.layers:
        count = layer.config.get(_COUNTS.get(layer.kind, ""))
        ids = fed.get(next(iter(layer.inputs), ""))
        if count is None or ids is None:
            continue
        beyond = ids[(ids < 0) | (ids >= count)]
        if beyond.size:
            told = np.ravel(beyond)[0]
            return f"{layer.kind} is documented for ids from 0 to {count - 1}, and {told} is none"
    return None
