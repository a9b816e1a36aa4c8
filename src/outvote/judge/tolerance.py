"""What rounding may explain."""

from __future__ import annotations

import numpy as np

from outvote.core.outputs import Outputs

_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def base_tolerance(dtype: str, places: float) -> float:
    """A relative distance of so many units in the last place; for integers, any at all."""
    if dtype not in _EPSILON:
        return float(np.finfo(np.float64).tiny)
    return _EPSILON[dtype] * places


BEYOND_ROUNDING = 32  # times what rounding may explain: digits that are lost do not add up to that


def model_tolerance(dtype: str) -> float:
    """What a whole model may differ by without being asked why: 1e-5 in float32."""
    return base_tolerance(dtype, 84 if dtype in ("float32", "float64") else 16)


_LAST_PLACES = 8


def tolerance_of(outputs: Outputs) -> float:
    """What one layer may differ by without a look at its noise: less than a whole model."""
    return max((base_tolerance(dtype, _LAST_PLACES) for dtype in outputs.dtypes), default=0.0)
