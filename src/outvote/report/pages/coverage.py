"""The page of `coverage`: criteria, the curve over the threshold, every layer."""

from __future__ import annotations

from typing import Any

from outvote.report.curves import chart
from outvote.report.page import Page
from outvote.report.tables import code, section, table, targets_section
from outvote.report.wording import share


def page(result: dict[str, Any]) -> Page:
    curve = {"coverage": result["coverage"]["thresholds"]}
    return Page({"charts": [chart("Neuron coverage over the threshold", "threshold t", curve)]})


def sections(result: dict[str, Any]) -> list[str]:
    found = result["coverage"]
    criteria = [
        (name.replace("_", "-"), "needs training data" if value is None else share(value))
        for name, value in found["criteria"].items()
    ]
    layers = [
        (code(x["name"]), x["kind"], x["neurons"], x["covered"], share(x["covered"] / x["neurons"]))
        for x in found["layers"]
    ]
    return [
        section("Criteria", table(("criterion", "coverage"), criteria)),
        section("Layers", table(("layer", "kind", "neurons", "covered", "coverage"), layers)),
        targets_section(result["targets"]),
    ]
