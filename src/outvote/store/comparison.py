"""Campaigns of several strategies side by side: guided against random (LEMON, table 6).

Several campaigns of one strategy are repetitions: their figures become a mean and a deviation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import mean, stdev
from typing import Any

from outvote.core.errors import UsageError
from outvote.core.result import head

# What has to be the same, or the figures say nothing about the strategies.
_ALIKE = ("targets", "inputs", "mad_threshold", "rules", "breed_known")

Result = Mapping[str, Any]


def compared(campaigns: Mapping[str, Result], created: str) -> dict[str, Any]:
    """The results of campaigns (docs/result-json.md), by the name to show, as one result."""
    if len(campaigns) < 2:
        raise UsageError(
            f"a comparison needs two campaigns; received {', '.join(campaigns) or 'none'}"
        )
    _require_alike(campaigns)
    groups: dict[str, list[Result]] = {}
    for result in campaigns.values():
        groups.setdefault(result["strategy"], []).append(result)
    strategies = [_strategy(name, results) for name, results in groups.items()]
    return {
        **head(
            "report",
            [],
            None,
            created=created,
            seconds=sum(result["seconds"] for result in campaigns.values()),
            verdict=None,
            summary=_summary(strategies),
            interrupted=any(result["interrupted"] for result in campaigns.values()),
            warnings=_warnings(campaigns),
        ),
        "settings": _settings(next(iter(campaigns.values()))),
        "campaigns": [_campaign(name, result) for name, result in campaigns.items()],
        "strategies": strategies,
        "pairs": [_pair(pair, groups) for pair in _pairs(campaigns.values())],
    }


def _require_alike(campaigns: Mapping[str, Result]) -> None:
    (first, one), *others = ((name, _settings(result)) for name, result in campaigns.items())
    for name, other in others:
        for key in one:
            if one[key] != other[key]:
                raise UsageError(
                    f"{first} and {name} cannot be compared, their {key} differ: {one[key]} and "
                    f"{other[key]}; compare campaigns that differ in --strategy and --seed alone"
                )


def _settings(result: Result) -> dict[str, Any]:
    seeds = [f"{seed['name']} ({seed['layers']} layers)" for seed in result["seeds"]]
    return {"seeds": seeds, **{key: result["settings"][key] for key in _ALIKE}}


def _warnings(campaigns: Mapping[str, Result]) -> list[str]:
    found = [f"{name} was stopped early" for name, r in campaigns.items() if r["interrupted"]]
    for (first, one), (second, other) in combinations(campaigns.items(), 2):
        if _identity(one) == _identity(other):
            found.append(
                f"{first} and {second} made the same choices ({one['strategy']}, --seed "
                f"{one['settings']['seed']}): no repetition; give each its own --seed"
            )
    budgets = {name: _budget(result) for name, result in campaigns.items()}
    if len(set(budgets.values())) > 1:
        told = ", ".join(f"{name} {budget}" for name, budget in budgets.items())
        found.append(f"the budgets differ: {told}")
    return found


def _identity(result: Result) -> tuple[str, int]:
    return result["strategy"], result["settings"]["seed"]


def _budget(result: Result) -> str:
    units = {"mutants": "mutants", "seconds": "s", "coverage": "of the layer kinds"}
    budget = result["settings"]["budget"]
    return " or ".join(f"{budget[k]:g} {unit}" for k, unit in units.items() if budget[k])


def _campaign(name: str, result: Result) -> dict[str, Any]:
    own = _figures(result)
    found = sorted(round(f["first_at"], 3) for f in _real(result))
    return {
        "folder": name,
        "strategy": result["strategy"],
        "seed": result["settings"]["seed"],
        "interrupted": result["interrupted"],
        **own,
        "found_at": found,
    }


def _strategy(name: str, results: Sequence[Result]) -> dict[str, Any]:
    figures = [_figures(result) for result in results]
    return {
        "strategy": name,
        "campaigns": len(results),
        **{key: _spread(figure[key] for figure in figures) for key in figures[0]},
    }


def _figures(result: Result) -> dict[str, Any]:
    """What one campaign came to, over all its seeds and pairs."""
    return {
        **_counted(result["amplification"]),
        "findings": len(_real(result)),
        "tested": result["tested"],
        "seconds": result["time"]["breeding"],
    }


def _pair(pair: Sequence[str], groups: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """A row of the table: one pair of targets, and what each strategy came to there."""
    rows = []
    for name, results in groups.items():
        figures = [
            {
                **_counted([r for r in result["amplification"] if r["targets"] == list(pair)]),
                "findings": sum(_concerns(f, pair) for f in _real(result)),
            }
            for result in results
        ]
        spread = {key: _spread(figure[key] for figure in figures) for key in figures[0]}
        rows.append({"strategy": name, **spread})
    return {"targets": list(pair), "strategies": rows}


def _pairs(results: Iterable[Result]) -> list[tuple[str, ...]]:
    found = (tuple(row["targets"]) for result in results for row in result["amplification"])
    return list(dict.fromkeys(found))


def _counted(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Totals over seeds; the amplification is their average (LEMON, section 5.2)."""
    rates = [row["amplification"] for row in rows if row["amplification"] is not None]
    return {
        "mutants_only": sum(row["mutants_only"] for row in rows),
        "initial_only": sum(row["initial_only"] for row in rows),
        "amplification": mean(rates) if rates else None,
        "largest": max((row["largest"] for row in rows), default=0.0),
    }


def _real(result: Result) -> list[Mapping[str, Any]]:
    return [finding for finding in result["findings"] if finding["triage"] != "precision"]


def _concerns(finding: Mapping[str, Any], pair: Sequence[str]) -> bool:
    """Whether a finding is about this pair: one of the two is accused, or both took part."""
    if finding["accused"] is not None:
        return finding["accused"] in pair
    return set(pair) <= set(finding["targets"])


def _spread(values: Iterable[float | None]) -> dict[str, Any]:
    """Mean and standard deviation of the campaigns that have such a figure."""
    known = [float(value) for value in values if value is not None]
    return {
        "mean": mean(known) if known else None,
        "deviation": stdev(known) if len(known) > 1 else None,
    }


def _summary(strategies: Sequence[Mapping[str, Any]]) -> str:
    told = ", ".join(
        f"{s['strategy']} {s['mutants_only']['mean']:.3g} "
        f"({s['campaigns']} campaign{'s' * (s['campaigns'] > 1)})"
        for s in strategies
    )
    return f"Inconsistencies that only mutants show: {told}."
