"""What judges a mutant beside the comparison of its outputs, found by the folder: a file each.

A file has `NAME`; `TITLE`, what it sees, in a few words; and `create`, which is given who runs
models and the targets by name, and makes a `CampaignOracle`. The campaign shows it every mutant,
and tells a finding once by its fingerprint, however often it comes.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

from outvote.campaign.investigate import Conclusion
from outvote.campaign.oracle import Judged
from outvote.campaign.runner import Runner
from outvote.campaign.seeds import Seed
from outvote.core.model import Model
from outvote.core.target import Target


class CampaignOracle(Protocol):
    """Looks at what the targets made of a mutant; it may remember, and may run more."""

    def look(self, seed: Seed, model: Model, judged: Judged) -> Conclusion:
        """Findings, and fingerprints of findings that it has seen once more."""
        ...


@cache
def all_oracles() -> dict[str, Any]:
    """Every file by its name."""
    found: dict[str, Any] = {}
    for item in pkgutil.iter_modules(__path__):
        module: Any = importlib.import_module(f"{__name__}.{item.name}")
        found[module.NAME] = module
    return found


def created(runner: Runner, targets: Mapping[str, Target]) -> tuple[CampaignOracle, ...]:
    """One of each, for one campaign."""
    return tuple(module.create(runner, targets) for module in all_oracles().values())
