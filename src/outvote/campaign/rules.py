"""Which rules a campaign may use."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.campaign.job import FuzzJob
from outvote.campaign.probes.prober import GROUP, PROBES
from outvote.campaign.turns import all_wait
from outvote.core.errors import UsageError
from outvote.mutate.registry import Rule, all_rules
from outvote.search.layers import REFILLING
from outvote.search.registry import find_strategy

FREE = "FREE"  # no rule of mutation: the dialect draws the whole case, in bulk


def chosen_rules(names: Sequence[str], spoken: str) -> dict[str, Rule]:
    """The named rules, or all, for models of that dialect."""
    known = all_rules(spoken)
    unknown = [name for name in names if name not in known and name not in PROBES]
    if unknown:
        told = ", ".join([*known, *PROBES])
        raise UsageError(f"there is no rule {unknown[0]!r}; the rules are {told}")
    return {name: known[name] for name in (names or known) if name in known}


def rules_of(job: FuzzJob) -> dict[str, str]:
    """The rules that a campaign may use, those named as far as its strategy has them, by group.

    The same layer on other numbers is worth a try of its own where new layers cost far more, or
    where somebody names it.
    """
    if job.in_bulk:
        return {FREE: "layers"}
    groups = {name: rule.GROUP for name, rule in all_rules(job.dialect).items()}
    groups.update(dict.fromkeys(PROBES, GROUP))
    wanted = set(find_strategy(job.strategy).GROUPS)
    if not job.rules and not all_wait(job.targets):
        wanted -= {REFILLING}
    found = {name: groups[name] for name in job.rules or groups if groups[name] in wanted}
    if not found:
        raise UsageError(
            f"the strategy {job.strategy} has none of the rules {', '.join(job.rules)}; "
            "choose --strategy mixed, or other --rules"
        )
    return found
