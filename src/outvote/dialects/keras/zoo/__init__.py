"""Seed models by name: those of LEMON and AUDEE, and two of ours. Imports no framework."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outvote.dialects.keras.zoo.catalog import ENTRIES, GROUPS, ZooEntry, find_entries, members_of

__all__ = ["members_of"]


def has(name: str) -> bool:
    """Whether there is a model or a group of that name."""
    return name in GROUPS or name in ENTRIES


def entries(names: Sequence[str] | None = None) -> list[ZooEntry]:
    """All models, or those of these names and groups."""
    return list(ENTRIES.values()) if names is None else find_entries(names)


def workshop() -> Any:
    """Builds and trains them in a worker."""
    from outvote.dialects.keras.zoo import work

    return work


def seed_file(name: str) -> tuple[Path, Path]:
    """The model and the data file of that name, built if they are not there yet."""
    from outvote.dialects.keras.zoo import seeds

    return seeds.seed_file(name)
