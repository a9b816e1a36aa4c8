"""What stateful layers remember from call to call: nothing here, every call begins with zeros.

An answer must not hang on what was computed before it: inputs are taken out of their batch, layers
are called alone on another target's tensors, noise is measured by calling again. Compiled targets
(JAX, OpenVINO) carry no state from one call to the next anyway.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import tree


class Memory:
    """The states of all stateful layers inside one layer object, a set for each batch size.

    Compiled programs hold on to the variables that they were traced with, so that a set is kept
    and not made anew when its batch size comes back.
    """

    def __init__(self, made: Any) -> None:
        parts = made._flatten_layers() if hasattr(made, "_flatten_layers") else ()
        self._parts = [p for p in parts if isinstance(p, keras.layers.RNN) and p.stateful]
        self._sets: dict[int, list[Any]] = {}

    def clear(self, batch: int | None) -> None:
        """Zeros, for a batch of that size; a size that is unknown while tracing changes nothing."""
        if not self._parts or batch is None:
            return
        if batch not in self._sets:
            self._sets[batch] = [_fresh(part, batch) for part in self._parts]
        for part, states in zip(self._parts, self._sets[batch], strict=True):
            _set_plainly(part, "states", states)
            _set_plainly(part, "_expected_batch_size", batch)
            for variable in tree.flatten(states):
                variable.assign(np.zeros(variable.shape, keras.backend.floatx()))


def _fresh(part: Any, batch: int) -> Any:
    part._create_state_variables(batch)
    return part.states


def _set_plainly(part: Any, name: str, value: Any) -> None:
    """Past Keras' and PyTorch's bookkeeping, which would take states for weights."""
    object.__setattr__(part, name, value)
