"""What `explore --targets` is asked to do; between models it is an ExploreJob."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from outvote.core.target import Target
from outvote.explore.job import ExploreJob
from outvote.findings.gate import STRICT, Gate


@dataclass(frozen=True)
class BetweenTargets:
    """One model: inputs on which its implementations differ most, judged as by `check`."""

    search: ExploreJob
    targets: tuple[Target, ...]
    out: Path
    gate: Gate = STRICT
