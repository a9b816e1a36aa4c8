"""The page of `nan`: the range of every layer, on what the search led to."""

from __future__ import annotations

from typing import Any

from outvote.report.page import Page
from outvote.report.tables import code, section, table, targets_section

_HEADINGS = ("layer", "kind", "smallest", "largest", "NaN", "infinite")


def page(result: dict[str, Any]) -> Page:
    return Page()


def sections(result: dict[str, Any]) -> list[str]:
    rows = [
        (
            code(x["layer"]),
            x["layer_kind"],
            *("–" if x[k] is None else f"{x[k]:.3g}" for k in ("smallest", "largest")),
            x["nans"],
            x["infinities"],
        )
        for x in result["layers"]
    ]
    lines = table(_HEADINGS, rows)
    if result["case"]:
        lines.append(f"The model and its inputs: {code(result['case'] + '/')}")
    return [
        section("Every layer, on what the search led to", lines),
        targets_section(result["targets"]),
    ]
