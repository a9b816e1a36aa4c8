"""A kind of layer, and parameters for it, drawn freely: nothing has to fit behind it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Ref
from outvote.dialects.keras.mutate.catalogue import Kind
from outvote.dialects.keras.mutate.chains import Chain
from outvote.dialects.keras.mutate.parameters import parameter
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.registry import Impossible

_TRIES = 6
_DRAWN = 0.7  # of the parameters: more than usual, for nothing has to fit
_CORNERS = 0.33


def drawn_kind(tools: KerasTools, rng: np.random.Generator) -> Kind:
    """A kind with more parameters has more to try, so it comes more often.

    All parameters are drawn at once, so that it takes only about the logarithm of their number to
    meet every pair of values.
    """
    kinds = list(tools.catalogue.kinds.values())
    weights = np.array([1.0 + np.log2(1 + len(kind.parameters)) for kind in kinds])
    return kinds[int(rng.choice(len(kinds), p=weights / weights.sum()))]


def draw_last(
    chain: Chain,
    kind: Kind,
    tools: KerasTools,
    rng: np.random.Generator,
    also: Sequence[Ref],
    dtype: str | None = None,
) -> None:
    """Put a layer of that kind at the end, a third with a corner of one parameter (AUDEE)."""
    for _ in range(_TRIES):
        parameters = kind.draw(chain.spec.place, rng, tools.catalogue.activations, False, _DRAWN)
        rows = {name: parameter(kind.name, name) for name in kind.parameters}
        corners = {name: row.corners for name, row in rows.items() if row and row.corners}
        if corners and rng.random() < _CORNERS:
            name = str(rng.choice(sorted(corners)))
            parameters[name] = corners[name][int(rng.integers(len(corners[name])))]
        if dtype is not None:
            parameters["dtype"] = dtype
        if chain.add(kind.name, parameters, also, kind.joined, last=True):
            return
    raise Impossible(f"{kind.name} at {chain.spec}")
