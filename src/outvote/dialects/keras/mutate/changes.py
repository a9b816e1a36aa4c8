"""Other values for a few parameters of a layer that is there, about half of them corners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from outvote.dialects.keras.mutate.catalogue import Kind
from outvote.dialects.keras.mutate.parameters import parameter
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.mutate.values import Draw
from outvote.dialects.keras.mutate.variants import same

_CORNERS = 0.5
_OF_THE_DATA = ("input_dim", "num_tokens", "vocabulary")  # other values would not fit the inputs


def changed_parameters(
    kind: Kind,
    before: Mapping[str, Any],
    place: Sequence[int | None],
    tools: KerasTools,
    rng: np.random.Generator,
    most: int,
) -> dict[str, Any]:
    """New values for up to so many parameters, the type among them."""
    own = [name for name in kind.parameters if name not in _OF_THE_DATA]
    names = [*own, *(["dtype"] if "dtype" in before else [])]
    if not names:
        return {}
    count = int(rng.integers(1, min(most, len(names)) + 1))
    draw = Draw(kind.name, tuple(place), rng, tools.catalogue.activations, False, dict(before))
    changed: dict[str, Any] = {}
    for name in rng.choice(names, count, replace=False):
        row = parameter(kind.name, str(name))
        if row is None:
            continue
        corner = row.corners and draw.chance(_CORNERS)
        value = draw.one_of(*row.corners) if corner else row.draw(draw)
        if not same(value, before.get(str(name))):
            changed[str(name)] = value
    return changed
