"""What an operator's schema says of arguments that are left out."""

from __future__ import annotations

from typing import Any

import torch

from outvote.dialects.torch_export.nouns.node import DTYPE
from outvote.dialects.torch_export.workers.shared.tensors import callable_of

_PLAIN = (bool, int, float, str, type(None))


def defaults_of(kind: str) -> dict[str, Any]:
    """Defaults that are plain data, by the names of the arguments."""
    schema = getattr(callable_of(kind), "_schema", None)
    if schema is None:
        return {}
    told = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}
    return {name: _plain(value) for name, value in told.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, (*_PLAIN, torch.dtype))


def _plain(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return {DTYPE: str(value).removeprefix("torch.")}
    return value
