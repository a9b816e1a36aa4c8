"""The page of `explore`: a gallery of what was found, coverage beside the baselines, retraining."""

from __future__ import annotations

from typing import Any

from outvote.report.curves import chart
from outvote.report.page import Page
from outvote.report.tables import section, table, targets_section
from outvote.report.wording import number, share

NAMES = {"explore": "explore", "random": "random selection", "fgsm": "adversarial (FGSM)"}


def page(result: dict[str, Any]) -> Page:
    return Page({"charts": charts(result)})


def charts(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Coverage over the threshold, and as inputs are added."""
    curves = result["coverage"]["curves"]
    if not curves:
        return []
    over = {NAMES[name]: curve["thresholds"] for name, curve in curves.items()}
    growth = {NAMES[name]: curve["growth"] for name, curve in curves.items()}
    tests = next(iter(curves.values()))["tests"]
    threshold = result["coverage"]["threshold"]
    return [
        chart(f"Coverage by {tests} inputs, over the threshold", "threshold t", over),
        chart(f"Coverage as inputs are added, t = {threshold:g}", "inputs", growth),
    ]


def sections(result: dict[str, Any]) -> list[str]:
    return [
        section("Models", _models(result)),
        _baselines(result),
        _retraining(result["retraining"]),
        targets_section(result["targets"]),
    ]


def _models(result: dict[str, Any]) -> list[str]:
    left = result["differences"]["per_model"]
    rows = [
        (m["model"], left[m["model"]], m["neurons"], share(m["coverage"]))
        for m in result["coverage"]["models"]
    ]
    return table(("model", "differences", "neurons", "covered"), rows)


def _baselines(result: dict[str, Any]) -> str:
    rows = [
        (NAMES[name], c["tests"], share(c["growth"][-1][1]), result["baselines"].get(name, ""))
        for name, c in result["coverage"]["curves"].items()
    ]
    headings = ("inputs", "how many", "neurons covered", "split the models")
    return section("Beside the baselines", table(headings, rows)) if rows else ""


def _retraining(done: dict[str, Any] | None) -> str:
    if done is None:
        return ""
    rows = [
        (run["model"], run["added"], share(run["before"]), share(run["accuracy"][-1]))
        for run in done["runs"]
    ]
    title = f"Retraining with {number(done['added'])} inputs"
    return section(title, table(("model", "added", "accuracy before", "after"), rows))
