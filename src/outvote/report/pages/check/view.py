"""Turns a result into what the page shows; the template only places it.

Everything here is plain data of plain data: no HTML is made outside the template.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any
from urllib.parse import quote

from outvote.core.harm import most_harmful_first
from outvote.report import wording
from outvote.report.page import Page, embedded, page_scripts, sift_scripts
from outvote.report.pages.check.twins import twins

Data = dict[str, Any]

CHART_WIDTH, CHART_HEIGHT = 240, 72
HOTTEST = 4
MAP_BYTES = 300_000  # of all maps: with the libraries and 500 findings the page stays below 2 MB


def page(result: Data) -> Page:
    """All that the template needs, made from a result with only JSON's types in it."""
    findings = most_harmful_first(result["findings"])
    every = [finding for finding in findings if finding.get("localization")]
    maps = drawn(every)
    values = {
        "counts": counts(result),
        "findings": [card(finding) for finding in findings],
        "maps": maps,
        "unmapped": len(every) - len(maps),
        "matrix": matrix(result),
        "patterns": patterns(result),
        "examples": [example(item) for item in result.get("examples") or []],
        "accuracy": accuracy_columns(result["targets"]),
        "twins": twins(result),
    }
    new = [finding for finding in findings if not finding.get("known")]
    scripts = [*(page_scripts() if maps else ()), *sift_scripts(new)]
    return Page(values, scripts, map_data(maps))


def drawn(findings: list[Data]) -> list[Data]:
    """Those whose maps the page holds: the most harmful, as far as there is room; one at least."""
    sizes = accumulate(len(embedded(map_data([finding]))) for finding in findings)
    held = sum(size <= MAP_BYTES for size in sizes)
    return findings[: max(1, held)]


def map_data(findings: list[Data]) -> list[Data]:
    """What the script needs to draw each map."""
    keys = ("fingerprint", "title", "layer", "accused", "localization")
    return [{key: finding.get(key) for key in keys} for finding in findings]


def counts(result: Data) -> list[str]:
    """The verdict's figures: how much was run, how much was found."""
    targets, pairs = result["targets"], result.get("comparisons") or []
    finished = sum(target["outcome"] == "ok" for target in targets)
    lines = [f"{finished} of {len(targets)} targets finished"]
    if pairs:
        apart = sum(bool(pair["inconsistent"]) for pair in pairs)
        lines.append(f"{apart} of {len(pairs)} pairs inconsistent")
    found = len(result["findings"])
    lines.append(f"{found} finding" + ("" if found == 1 else "s"))
    return lines


def card(finding: Data) -> Data:
    """A finding with a link that stays inside the output folder: a colon cannot make a scheme."""
    repro = finding.get("repro")
    return {**finding, "link": quote(str(repro)) if repro else None}


def matrix(result: Data) -> Data | None:
    """Every pair of targets as a square table, coloured by how far apart they are."""
    pairs = result.get("comparisons") or []
    metric = wording.main_metric(pairs)
    if metric is None:
        return None
    by_pair = {frozenset(pair["targets"]): pair for pair in pairs}
    compared = {name for pair in pairs for name in pair["targets"]}
    names = [target["name"] for target in result["targets"]]
    shown = [name for name in names if name in compared]
    rows = [
        {"name": a, "cells": [cell(by_pair.get(frozenset((a, b))), metric) for b in shown]}
        for a in shown
    ]
    absent = [name for name in names if name not in compared]
    return {"metric": metric, "names": shown, "rows": rows, "absent": absent}


def cell(comparison: Data | None, metric: str) -> Data | None:
    """One square: the largest distance, its label, its colour, and every metric for the hover."""
    if comparison is None:
        return None
    value, known = wording.maximum(comparison, metric)
    label = wording.label(comparison)
    return {
        "text": wording.number(value) if known else "–",
        "label": label,
        "heat": heat(comparison) if label == "inconsistent" else 0,
        "comparison": comparison,
    }


def heat(comparison: Data) -> int:
    """1 at the threshold, one more for each power of ten beyond it; NaN is the hottest."""
    hottest = 1
    for metric in comparison.get("metrics", []):
        if not metric["inconsistent"]:
            continue
        distance, threshold = metric.get("maximum"), metric.get("threshold")
        if distance is None:
            return HOTTEST
        if threshold and distance > threshold:
            hottest = max(hottest, 2 + int(math.log10(distance / threshold)))
    return min(hottest, HOTTEST)


def patterns(result: Data) -> Data | None:
    """CRADLE's inconsistency patterns as histograms, those of inconsistent pairs apart."""
    uniques = result.get("unique_inconsistencies") or []
    charts = [
        chart(pair, metric, unique_id(uniques, pair, metric))
        for pair in result.get("comparisons") or []
        for metric in pair.get("metrics", [])
        if metric.get("pattern") and metric["pattern"].get("counts")
    ]
    if not charts:
        return None
    return {
        "inconsistent": [c for c in charts if c["inconsistent"]],
        "consistent": [c for c in charts if not c["inconsistent"]],
        "uniques": len(uniques),
    }


def unique_id(uniques: list[Data], pair: Data, metric: Data) -> Any:
    """The id of the unique inconsistency that this pair's pattern belongs to, or None."""
    for unique in uniques:
        same = unique["metric"] == metric["name"] and unique["pattern"] == metric["pattern"]
        if same and sorted(pair["targets"]) in [sorted(names) for names in unique["pairs"]]:
            return unique["id"]
    return None


def chart(pair: Data, metric: Data, unique: Any) -> Data:
    """One histogram. Heights are logarithmic: the bin of equal answers dwarfs all others."""
    bins, counted = metric["pattern"]["bins"], metric["pattern"]["counts"]
    tallest = math.log1p(max([*counted, 1]))
    step = CHART_WIDTH / max(len(bins), 1)
    bars = []
    for place, (name, count) in enumerate(zip(bins, counted, strict=True)):
        height = max(CHART_HEIGHT * math.log1p(count) / tallest, 2 if count else 0)
        bars.append(
            {
                "x": round(place * step + step * 0.1, 1),
                "middle": round(place * step + step / 2, 1),
                "y": round(CHART_HEIGHT - height, 1),
                "width": round(step * 0.8, 1),
                "height": round(height, 1),
                "bin": name,
                "count": count,
            }
        )
    return {
        "pair": pair["targets"],
        "metric": metric["name"],
        "output": metric.get("output") or 0,
        "inconsistent": metric["inconsistent"],
        "triggering": metric.get("triggering"),
        "threshold": metric.get("threshold"),
        "unique": unique,
        "bars": bars,
        "words": ", ".join(f"{b['bin']}: {b['count']}" for b in bars),
    }


def example(item: Data) -> Data:
    """One input with each target's answer; bars of one input share a scale."""
    picture = item.get("picture")
    scores = [
        abs(score)
        for answer in item["answers"]
        for _, score in answer.get("top") or []
        if score is not None
    ]
    full = max([1.0, *scores])  # probabilities fill the bar at 1, raw scores at the largest
    return {
        **item,
        "picture": picture if str(picture).startswith("data:image/") else None,
        "answers": [answer_bars(answer, item.get("truth"), full) for answer in item["answers"]],
    }


def answer_bars(answer: Data, truth: Any, full: float) -> Data:
    bars = [
        {
            "name": name,
            "score": score,
            "width": round(100 * max(score or 0, 0) / full, 1),
            "truth": truth is not None and str(name) == str(truth),
        }
        for name, score in (answer.get("top") or [])[:5]
    ]
    values = [wording.number(value) for value in answer.get("values") or []]
    return {"target": answer["target"], "bars": bars, "values": wording.some(values)}


def accuracy_columns(targets: list[Data]) -> list[str]:
    """Which top-k accuracies the table of targets shows: the smallest k and the largest."""
    known = {k for target in targets for k in target.get("accuracy") or {}}
    ordered = sorted(known, key=int)
    return ordered[:1] + ordered[-1:] if len(ordered) > 1 else ordered
