"""Which rules a campaign may use."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.campaign.job import FuzzJob
from outvote.campaign.probes.prober import PROBES
from outvote.core.errors import UsageError
from outvote.mutate.registry import Rule, all_rules
from outvote.search.strategy import group_of


def chosen_rules(names: Sequence[str], spoken: str) -> dict[str, Rule]:
    """The named rules, or all, for models of that dialect."""
    known = all_rules(spoken)
    unknown = [name for name in names if name not in known and name not in PROBES]
    if unknown:
        told = ", ".join([*known, *PROBES])
        raise UsageError(f"there is no rule {unknown[0]!r}; the rules are {told}")
    return {name: known[name] for name in (names or known) if name in known}


def rules_of(job: FuzzJob) -> list[str]:
    """The rules that a campaign may use: those that were named, as far as its strategy has them."""
    named = sorted(job.rules or [*all_rules(job.dialect), *PROBES])
    group = "lemon" if job.strategy == "random" else job.strategy
    found = [name for name in named if group in (group_of(name), "mixed")]
    if not found:
        raise UsageError(
            f"the strategy {job.strategy} has none of the rules {', '.join(job.rules)}; "
            "choose --strategy mixed, or other --rules"
        )
    return found
