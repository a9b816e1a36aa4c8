"""Transformed models as the page shows them: who loses most, and the error along the graph."""

from __future__ import annotations

import math
from typing import Any

from outvote.report import wording

Data = dict[str, Any]

WIDTH, HEIGHT, LEFT = 720, 180, 44
LOST_MOST = 10
_LOWEST = 1e-9  # of the logarithmic axis; float32 rounds at 6e-8
_TITLES = {
    "agrees": "agrees",
    "rounding": "agrees, up to rounding",
    "precision": "as far off as its type explains",
    "spoilt": "spoilt",
}


def title(twin: Data) -> str:
    """What became of it, in words."""
    verdict = str(twin["verdict"])
    return _TITLES.get(verdict, verdict)


def worst_layers(twin: Data) -> list[Data]:
    """The layers that lose most, alone."""
    lost = [layer for layer in twin["layers"] if layer["alone"]]
    return sorted(lost, key=lambda layer: -layer["alone"])[:LOST_MOST]


def twins(result: Data) -> list[Data]:
    """Every transformation with its worst layers and its chart."""
    return [
        {
            **twin,
            "title": title(twin),
            "told": wording.answers(twin["answers"]),
            "worst": worst_layers(twin),
            "chart": _chart(twin),
        }
        for twin in result.get("twins") or []
    ]


def _chart(twin: Data) -> Data | None:
    layers = twin["layers"]
    if not layers:
        return None
    values = [v for layer in layers for v in (layer["alone"], layer["carried"]) if v]
    top = max(0, math.ceil(math.log10(max(values)))) if values else 0
    bottom = math.floor(math.log10(_LOWEST))
    step = (WIDTH - LEFT) / max(len(layers) - 1, 1)

    def height(value: float) -> float:
        part = (math.log10(max(value, _LOWEST)) - bottom) / (top - bottom)
        return round(HEIGHT * (1 - part), 1)

    def line(key: str) -> str:
        told = [(place, layer[key]) for place, layer in enumerate(layers)]
        return " ".join(
            f"{LEFT + place * step:.1f},{height(value)}"
            for place, value in told
            if value is not None
        )

    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "grid": [{"y": height(10.0**n), "text": f"1e{n}"} for n in range(bottom, top + 1, 3)],
        "alone": line("alone"),
        "carried": line("carried"),
        "count": len(layers),
    }
