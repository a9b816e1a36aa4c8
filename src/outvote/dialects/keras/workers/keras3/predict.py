"""A model as most people run it: Keras' own functional model, through `model.predict`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from keras import tree

from outvote.core.arrays import Array
from outvote.dialects.keras.workers.keras3.backends import Program
from outvote.dialects.keras.workers.keras3.graph import Graph
from outvote.dialects.keras.workers.keras3.neutral import functional


def predicted(graph: Graph) -> Program:
    """All instances as one batch, compiled as Keras chooses to."""
    model = functional(graph)

    def program(feeds: Sequence[Array]) -> tuple[list[Array], list[str]]:
        count = len(feeds[0])
        if count:
            given = model.predict(list(feeds), batch_size=count, verbose=0)
        else:  # `predict` counts batches, and there is none
            given = model.predict_on_batch(list(feeds))
        arrays = [np.asarray(array) for array in tree.flatten(given)]
        return arrays, [array.dtype.name for array in arrays]

    return program
