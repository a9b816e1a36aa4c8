"""PyTorch programs by name: `torch:resnet`; `torch:all` are all. Imports no framework."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outvote.dialects.torch_export.zoo.catalog import PREFIX, find_members, find_programs

__all__ = ["entries", "has", "members_of", "seed_file", "workshop"]


def members_of(name: str) -> tuple[str, ...]:
    """All models, or the one of that name."""
    return find_members(name)


def has(name: str) -> bool:
    """Whether the name is one of ours: what stands behind it is known when it is looked up."""
    return name.startswith(PREFIX)


def entries(names: Sequence[str] | None = None) -> list[Any]:
    """All models, or those of these names."""
    return find_programs(names)


def workshop() -> Any:
    """Builds them in a worker of PyTorch."""
    from outvote.dialects.torch_export.zoo import work

    return work


def seed_file(name: str) -> tuple[Path, Path]:
    """The program and the data file of that name, built if they are not there yet."""
    from outvote.dialects.torch_export.zoo import work

    return work.seed_file(name)
