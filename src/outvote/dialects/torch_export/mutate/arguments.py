"""Other values of a call's arguments: by what kind of value it is, since running decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_COUNTS = (0, 1, 2, 3, -1)
_NUMBERS = (0.0, 1.0, 0.5, -1.0, 2.0, 1e-5, 1e-3, 1e3)
_WORDS: Mapping[str, tuple[str, ...]] = {
    "approximate": ("none", "tanh"),
    "mode": ("constant", "reflect", "replicate", "circular"),
    "rounding_mode": ("trunc", "floor"),
}


def other_values(name: str, value: Any) -> list[Any]:
    """Values of the same kind, simple ones first; legal or not shows when the call is tried."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [word for word in _WORDS.get(name, ()) if word != value]
    if isinstance(value, int):
        return [n for n in dict.fromkeys((*_COUNTS, value + 1, value - 1)) if n != value]
    if isinstance(value, float):
        return [n for n in _NUMBERS if n != value]
    if isinstance(value, list | tuple) and value and all(type(n) is int for n in value):
        return [
            [*value[:place], other, *value[place + 1 :]]
            for place, n in enumerate(value)
            for other in _COUNTS
            if other != n
        ]
    return []
