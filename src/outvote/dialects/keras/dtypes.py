"""Which types a model computes in, by what its layers say; names of layers say nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from outvote.core.model import REF, Model
from outvote.dialects.keras.layers import policy_name


def uses_float64(model: Model) -> bool:
    """Whether an input, a layer or an argument of a call asks for float64."""
    return "float64" in {name for name in _types(model) if name}


def _types(model: Model) -> Iterator[str | None]:
    yield from (item.dtype for item in model.inputs)
    for layer in model.layers:
        yield from _told(layer.config)
        yield from _told(layer.kwargs)
        yield from _positional(layer.args)


def _told(structure: Any) -> Iterator[str | None]:
    """What stands under keys that end in `dtype`, at any depth."""
    if isinstance(structure, Mapping):
        for key, value in structure.items():
            if key.endswith("dtype"):
                yield policy_name(value)
            elif key != REF:
                yield from _told(value)
    elif isinstance(structure, list | tuple):
        for value in structure:
            yield from _told(value)


def _positional(args: Any) -> Iterator[str | None]:
    """Words among the arguments of a call, as in `ops.cast(x, "float64")`; references are none."""
    if isinstance(args, str):
        yield args
    elif isinstance(args, Mapping):
        yield from _told(args)
        yield from (
            name for key, value in args.items() if key != REF for name in _positional(value)
        )
    elif isinstance(args, list | tuple):
        for value in args:
            yield from _positional(value)
