"""ONNX seeds by name: Keras' zoo exported (`onnx:lenet5`), and ONNX' own node tests.

`onnx:test_relu` is one of those, `onnx:Relu` all that hold the operator, `onnx:nodes` all.
Imports no framework.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outvote.dialects.onnx.zoo.catalog import PREFIX, exported_entries, find_members

__all__ = ["entries", "has", "members_of", "seed_file", "workshop"]


def members_of(name: str) -> tuple[str, ...]:
    """The models of a group; any other name stands for itself."""
    return find_members(name)


def has(name: str) -> bool:
    """Whether the name is one of ours: what stands behind it is known when it is looked up."""
    return name.startswith(PREFIX)


def entries(names: Sequence[str] | None = None) -> list[Any]:
    """The exported models, or those of these names and groups; node tests are no part of it."""
    return exported_entries(names)


def workshop() -> Any:
    """Builds and trains them in a worker of Keras, and exports them."""
    from outvote.dialects.onnx.zoo import work

    return work


def seed_file(name: str) -> tuple[Path, Path]:
    """The model and the data file of that name, built if they are not there yet."""
    from outvote.dialects.onnx.zoo import seeds

    return seeds.seed_file(name)
