"""What `targets` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from outvote.core.target import Target


@dataclass(frozen=True)
class HealthJob:
    """Which targets work? Those that the user named are built and started in any case."""

    targets: tuple[Target, ...]
    named: bool = False
    links: tuple[str, ...] = ()  # folders or pages of wheels, for environments


@dataclass(frozen=True)
class Environments:
    """What has pip built?"""


@dataclass(frozen=True)
class Removal:
    """Delete an environment by its key, or `all`."""

    key: str
