"""Tensors that layers are seldom given, made of ordinary layers behind a tensor.

Each way leads the end of a chain to numbers with one property. Add one to `WAYS`: a function of
the chain that gives a tensor of the same rank, or raises `Impossible`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from outvote.dialects.keras.mutate.chains import Chain
from outvote.mutate.registry import Impossible

_HUGE = 2e19  # twice: numbers above 0.85 become infinite in float32
_BACK = 1e-37  # a normal number: some libraries take smaller ones for zero


def whole_numbers(chain: Chain) -> None:
    """Integers."""
    chain.round()


def ties(chain: Chain) -> None:
    """Floats of which many are equal."""
    whole_numbers(chain)
    chain.must("Rescaling", {"scale": 1.0})


def zeros(chain: Chain) -> None:
    """Nothing but zeros."""
    chain.must("Rescaling", {"scale": 0.0})


def infinities(chain: Chain) -> None:
    """Ordinary numbers, and infinity in the place of the larger ones."""
    chain.must("Rescaling", {"scale": _HUGE})
    chain.must("Rescaling", {"scale": _HUGE})
    chain.must("Rescaling", {"scale": _BACK})


def nans(chain: Chain) -> None:
    """Zeros, and NaN in the place of the larger numbers."""
    infinities(chain)
    chain.must("Subtract", {}, also=[chain.end], joined=True)


def holes(chain: Chain) -> None:
    """A sequence with a mask that has holes."""
    if len(chain.spec.place) != 2:
        raise Impossible("only sequences have masks")
    steps, channels = chain.spec.place
    chain.must("Activation", {"activation": "relu"})
    if channels != 1:  # a step is masked where all its channels are zero
        chain.reshape((steps or 1, 1))
    chain.must("Masking", {"mask_value": 0.0})


WAYS: Sequence[Callable[[Chain], None]] = (whole_numbers, ties, zeros, infinities, nans, holes)


def prepare(chain: Chain, rng: np.random.Generator) -> None:
    """One of these ways, on a chain that has been led to its shape."""
    WAYS[int(rng.integers(len(WAYS)))](chain)
