"""What a person sees of `outvote nan` at the end."""

from __future__ import annotations

from typing import Any

from outvote.commands.nan.job import NanJob
from outvote.commands.terminal import Screen, table


def show(result: dict[str, Any], job: NanJob, screen: Screen) -> None:
    """Every layer's range, and where numbers ended."""
    rows = [
        [
            layer["layer"],
            layer["layer_kind"],
            *("" if layer[k] is None else f"{layer[k]:.3g}" for k in ("smallest", "largest")),
            *(str(layer[k]) for k in ("nans", "infinities")),
        ]
        for layer in result["layers"]
    ]
    headings = ("layer", "kind", "smallest", "largest", "NaN", "infinite")
    screen.print(table("Layers, on the last population", headings, rows))
    screen.warnings(result)
    screen.verdict(result, job.out, "STOPPED" if result["interrupted"] else "")
