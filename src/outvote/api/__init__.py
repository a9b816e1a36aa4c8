"""outvote from Python: every command is a function here, under its own name.

from outvote import api

result = api.check(model, x, y, targets=["tensorflow", "jax", "torch"])
print(result)
"""

from outvote.api.campaign import BackgroundCampaign, campaign, follow, fuzz
from outvote.api.result import Exploration, Result, TargetTable
from outvote.api.verbs import (
    bisect,
    check,
    coverage,
    explore,
    localize,
    nan,
    pollution,
    targets,
)
from outvote.core.errors import UsageError
from outvote.core.events import (
    Broken,
    CaseRun,
    FindingMet,
    Finished,
    MutantsTested,
    StageBegun,
    StageEnded,
    Started,
    TargetDown,
    TargetUp,
)

__all__ = [
    "BackgroundCampaign",
    "Broken",
    "CaseRun",
    "Exploration",
    "FindingMet",
    "Finished",
    "MutantsTested",
    "Result",
    "StageBegun",
    "StageEnded",
    "Started",
    "TargetDown",
    "TargetTable",
    "TargetUp",
    "UsageError",
    "bisect",
    "campaign",
    "check",
    "coverage",
    "explore",
    "follow",
    "fuzz",
    "localize",
    "nan",
    "pollution",
    "targets",
]
