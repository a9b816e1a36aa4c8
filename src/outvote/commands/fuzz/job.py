"""What `fuzz` is asked to do: begin a campaign, go on with one, or go through one again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outvote.campaign.job import FuzzJob
from outvote.config import Config
from outvote.findings.gate import STRICT, Gate
from outvote.fleet.address import Address


@dataclass(frozen=True)
class NewCampaign:
    """A campaign in an empty folder and, where there is a rival, the same with its strategy."""

    job: FuzzJob
    out: Path
    rival: str | None = None  # a strategy that gets the same budget
    links: tuple[str, ...] = ()  # folders or pages of wheels, for environments
    gate: Gate = STRICT
    cluster: Address | None = None  # whose crews run it; None: this process does


@dataclass(frozen=True)
class Resumption:
    """More of the campaign in a folder, with its own budget or a new one."""

    out: Path
    config: Config  # in which the campaign's targets are looked up, beside the built-in ones
    changes: Mapping[str, Any] = field(default_factory=dict)  # fields of its job: budget, limits
    links: tuple[str, ...] = ()
    gate: Gate = STRICT
    cluster: Address | None = None


@dataclass(frozen=True)
class Replay:
    """The campaign of another folder once more: its strategy is told the same in the same order."""

    of: Path
    out: Path
    config: Config
    links: tuple[str, ...] = ()
    gate: Gate = STRICT
    cluster: Address | None = None
