"""Which targets run a mutant: those that compile for every new shape take turns.

On layers of their own, each of another shape, such a target takes longer than all others together,
who would wait for it. It runs every second (or eighth) of them, and everything that is looked into,
so that the others get through more in the same time. It hangs on the mutant's number alone: the
same campaign is the same again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from outvote.core.target import Target

# By cost: of so many mutants it runs one.
PERIODS: Mapping[str, int] = {
    "compiles_per_shape": 2,
    "compiles_slowly": 8,
    "compiles_for_minutes": 8,
}


def all_wait(targets: Sequence[Target]) -> bool:
    """Whether everything is run by a target that compiles: too few libraries do not."""
    return any(_period(target) > 1 for target in targets) and len(_quick_libraries(targets)) < 2


def _quick_libraries(targets: Sequence[Target]) -> set[str]:
    return {target.library for target in targets if _period(target) == 1}


def who_runs(number: int, targets: Sequence[Target]) -> list[str]:
    """Names of the targets whose turn it is; all, where no two libraries would be left for each."""
    periods = {target.name: _period(target) for target in targets}
    if len(_quick_libraries(targets)) < 2:
        return list(periods)
    return [name for place, name in enumerate(periods) if (number + place) % periods[name] == 0]


def _period(target: Target) -> int:
    return max((PERIODS.get(cost, 1) for cost in target.costs), default=1)
