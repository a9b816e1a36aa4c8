"""Seed models by name."""

from __future__ import annotations

from pathlib import Path

from outvote.dialects.keras.zoo.catalog import ENTRIES, GROUPS, members_of

__all__ = ["members_of"]


def has(name: str) -> bool:
    """Whether there is a model or a group of that name."""
    return name in GROUPS or name in ENTRIES


def seed_file(name: str) -> tuple[Path, Path]:
    """The model and the data file of that name, built if they are not there yet."""
    from outvote.dialects.keras.zoo import seeds

    return seeds.seed_file(name)
