"""Which types a model asks for: by what stands where a type is told, never by what it is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from outvote.core.model import REF, Model


def asks_for(model: Model, dtype: str) -> bool:
    """Whether an input, a layer's configuration or an argument of a call names this type."""
    return any(item.dtype == dtype for item in model.inputs) or any(
        dtype in told
        for layer in model.layers
        for told in (_under_dtype(layer.config), _under_dtype(layer.kwargs), _words(layer.args))
    )


def _under_dtype(structure: Any) -> Iterator[str]:
    """All words under keys that end in `dtype`, at any depth."""
    if isinstance(structure, Mapping):
        for key, value in structure.items():
            yield from _words(value) if str(key).endswith("dtype") else _under_dtype(value)
    elif isinstance(structure, list | tuple):
        for value in structure:
            yield from _under_dtype(value)


def _words(structure: Any) -> Iterator[str]:
    """All words, as in the arguments of `cast(x, "float64")`; references to tensors are none."""
    if isinstance(structure, str):
        yield structure
    elif isinstance(structure, Mapping):
        for key, value in structure.items():
            if key != REF:
                yield from _words(value)
    elif isinstance(structure, list | tuple):
        for value in structure:
            yield from _words(value)
