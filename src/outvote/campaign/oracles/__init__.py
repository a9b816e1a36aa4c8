"""What judges a mutant beside the comparison of its outputs, found by the folder: a file each.

A file has `NAME`; `TITLE`, what it sees, in a few words; and `create`, which is given who runs
models and the targets by name, and makes a `CampaignOracle`. The campaign shows it every mutant,
and tells a finding once by its fingerprint, however often it comes. One that has `IF_ASKED` is
used with `--oracle NAME` alone; it has `require`, which refuses targets that are not enough for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

from outvote.campaign.investigate import Conclusion
from outvote.campaign.oracle import Judged
from outvote.campaign.runner import Runner
from outvote.campaign.seeds import Seed
from outvote.core.model import Model
from outvote.core.plugins import modules_in
from outvote.core.target import Target


class CampaignOracle(Protocol):
    """Looks at what the targets made of a mutant; it may remember, and may run more."""

    def look(self, seed: Seed, model: Model, judged: Judged) -> Conclusion:
        """Findings, and fingerprints of findings that it has seen once more."""
        ...


@cache
def all_oracles() -> dict[str, Any]:
    """Every file by its name."""
    return {module.NAME: module for module in modules_in(__name__)}


def created(
    runner: Runner, targets: Mapping[str, Target], asked: str
) -> tuple[CampaignOracle, ...]:
    """One of each, for one campaign; those that cost more than they must only if asked for."""
    return tuple(
        module.create(runner, targets)
        for name, module in all_oracles().items()
        if name == asked or not getattr(module, "IF_ASKED", False)
    )
