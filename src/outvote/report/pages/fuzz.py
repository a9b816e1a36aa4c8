"""The page of `fuzz`: what was found and how it was bred, rates, rules, amplification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outvote.core.causes import place_told
from outvote.core.harm import most_harmful_first
from outvote.report.page import Page, sift_scripts
from outvote.report.pages import report as comparison
from outvote.report.pages.check.markdown import known_findings
from outvote.report.tables import code, escape, section, table
from outvote.report.wording import duration, number, share

_WIDTH, _HEIGHT = 720, 120


def page(result: dict[str, Any]) -> Page:
    """Findings, rates and series as lines, and the comparison with the other strategy."""
    rival = result["comparison"]
    findings = most_harmful_first(result["findings"])
    return Page(
        {
            "findings": findings,
            "comparison": comparison.values(rival) if rival else None,
            "throughput": throughput(result),
            "memory": series(result["samples"], column=3, scale=1 / 2**20),
            "seconds": series(result["samples"], column=2, scale=1000.0),
            "width": _WIDTH,
            "height": _HEIGHT,
        },
        sift_scripts([finding for finding in findings if not finding.get("known")]),
    )


def throughput(result: dict[str, Any]) -> dict[str, Any] | None:
    """Mutants per minute as a line, and a mark where each finding was first seen."""
    points = result["throughput"]
    if not points:
        return None
    top = max(rate for _, rate in points) or 1.0
    end = points[-1][0]
    return {
        "top": top,
        "end": end,
        "line": " ".join(_point(at / end, rate / top) for at, rate in points),
        "marks": [
            {"x": round(f["first_at"] / end * _WIDTH, 1), "title": f["title"]}
            for f in result["findings"]
            if f["first_at"] <= end
        ],
    }


def series(samples: Sequence[Sequence[Any]], column: int, scale: float) -> dict[str, Any] | None:
    """The same model over the campaign, one line per target."""
    if len(samples) < 2:
        return None
    top = max(row[column] for row in samples) or 1
    last = max(row[0] for row in samples) or 1
    lines: dict[str, list[str]] = {}
    for row in samples:
        lines.setdefault(row[1], []).append(_point(row[0] / last, row[column] / top))
    return {"top": top * scale, "lines": {name: " ".join(p) for name, p in lines.items()}}


def _point(x: float, y: float) -> str:
    return f"{x * _WIDTH:.1f},{_HEIGHT - y * _HEIGHT:.1f}"


def sections(result: dict[str, Any]) -> list[str]:
    """The same tables in Markdown."""
    rival = result["comparison"]
    return [
        _counts(result),
        section("Causes", _causes(result)),
        section("Findings", _findings(result)),
        known_findings(result),
        section("Not looked into", table(("looks like", "times"), result["waiting"])),
        section("Bugs by target and kind", _bugs(result)),
        section("As the papers count", _counts_of_papers(result["counts"])),
        section("Amplification", _amplification(result)),
        section("Rules", _rules(result)),
        *(comparison.sections(rival) if rival else []),
    ]


def _counts(result: dict[str, Any]) -> str:
    seeds = ", ".join(seed["name"] for seed in result["seeds"])
    targets = ", ".join(target["name"] for target in result["targets"])
    return escape(
        f"Strategy {result['strategy']}, seeds {seeds}, targets {targets}. {result['valid']} of "
        f"{result['tested']} mutants were valid; {result['rounding']} differed by rounding only; "
        f"{result['flaky']} failures did not repeat."
    )


def _causes(result: dict[str, Any]) -> list[str]:
    rows = [
        (
            code(cause["cause"]),
            cause["triage"],
            cause["symptom"],
            cause["accused"] or "nobody",
            place_told(cause["place"]),
            ", ".join(cause["layers"]),
            cause["count"],
            cause["title"],
        )
        for cause in result["causes"]
    ]
    headings = ("cause", "verdict", "symptom", "accused", "where", "layers", "times", "told by")
    return table(headings, rows)


def _findings(result: dict[str, Any]) -> list[str]:
    rows = [
        (
            code(f["fingerprint"]),
            f["triage"],
            f["kind"],
            f["count"],
            " → ".join(step["rule"] or step["new"] for step in f["lineage"]),
            f["title"],
        )
        for f in most_harmful_first(result["findings"])
        if not f["known"]
    ]
    return table(("finding", "verdict", "kind", "times", "bred by", "what"), rows)


def _bugs(result: dict[str, Any]) -> list[str]:
    keys = ("target", "kind", "by_mutants", "by_seeds", "initial_only")
    rows = [(*(bug[key] for key in keys), number(bug["mutants"])) for bug in result["bugs"]]
    headings = ("first shown by mutants", "by seeds", "by seeds only", "mutants until then")
    return table(("target", "kind", *headings), rows)


def _counts_of_papers(counts: dict[str, Any]) -> list[str]:
    """LEMON's bugs and what each cost, AUDEE's inconsistencies: coarser than our findings."""
    lemon, audee = counts["lemon"], counts["audee"]
    per_bug = ["–", "–"]
    if lemon["bugs"]:
        per_bug = [number(lemon["mutants_per_bug"]), duration(lemon["seconds_per_bug"])]
    rows = [
        ("bugs: target and layer class (LEMON)", len(lemon["bugs"])),
        ("of these, shown by mutants only", lemon["mutants_only"]),
        ("of these, shown by initial models only", lemon["initial_only"]),
        ("mutants per bug", per_bug[0]),
        ("time per bug", per_bug[1]),
        ("networks with their weights (AUDEE)", audee["networks"]),
        ("inconsistent ones", audee["inconsistencies"]),
    ]
    return table(("count", "figure"), rows)


def _amplification(result: dict[str, Any]) -> list[str]:
    headings = ("seed", "pair", "inconsistencies", "mutants only", "mean D_MAD", "amplification")
    rows = [
        (
            a["seed"],
            " / ".join(a["targets"]),
            a["inconsistencies"],
            a["mutants_only"],
            f"{_mean(a['initial_mean'])} → {_mean(a['mutants_mean'])}",
            share(a["amplification"]),
        )
        for a in result["amplification"]
    ]
    return table(headings, rows)


def _rules(result: dict[str, Any]) -> list[str]:
    keys = ("rule", "tested", "valid", "amplified", "findings")
    rows = [[rule[key] for key in keys] for rule in result["rules"]]
    return table(("rule", "mutants", "valid", "amplified", "findings"), rows)


def _mean(value: float | None) -> str:
    return "–" if value is None else number(value)
