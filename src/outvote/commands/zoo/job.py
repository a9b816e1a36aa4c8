"""What `zoo` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ListJob:
    """Which models are there?"""


@dataclass(frozen=True)
class BuildJob:
    """Write models with random weights, and inputs that fit."""

    names: tuple[str, ...]
    out: Path
    seed: int = 0
    size: int | None = None  # side of images, length of sequences
    target: str | None = None


@dataclass(frozen=True)
class TrainJob:
    """Build models, then train them."""

    build: BuildJob
    data: str | None = None  # a file, or keras:NAME
    epochs: int | None = None
    count: int | None = None
