"""`report.html` of `outvote explore`, `coverage` and `pollution`: gallery, curves, tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outvote.core.files import write_atomically
from outvote.report.json_file import plain
from outvote.report.page import asset, policy, template

Data = dict[str, Any]
WIDTH, HEIGHT = 420, 220
LEFT, BOTTOM = 40, 30  # room for the axes
NAMES = {"explore": "explore", "random": "random selection", "fgsm": "adversarial (FGSM)"}
TONES = {"consistent": "good", "inconsistent": "bad", "interrupted": "warn"}


def write(result: Data, folder: Path) -> Path:
    """Write `report.html` into the folder."""
    return write_atomically(folder / "report.html", render(result))


def render(result: Data) -> str:
    """The page as text."""
    result = plain(result)
    return str(
        template(f"{result['command']}.html").render(
            result=result,
            tone=TONES.get(result.get("verdict", ""), "calm"),
            charts=charts(result),
            style=asset("report.css") + asset("explore.css"),
            policy=policy([]),
        )
    )


def charts(result: Data) -> list[Data]:
    """The curves of a result, ready to be placed."""
    if result["command"] == "coverage":
        curve = {"coverage": result["coverage"]["thresholds"]}
        return [chart("Neuron coverage over the threshold", "threshold t", curve)]
    curves = (result.get("coverage") or {}).get("curves")
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


def chart(title: str, label: str, series: dict[str, list[list[float]]]) -> Data:
    """Polylines in a box; the vertical axis is a share from 0 to 1."""
    points = [point for line in series.values() for point in line]
    last = max((x for x, _ in points), default=1) or 1

    def place(point: list[float]) -> str:
        x = LEFT + (WIDTH - LEFT - 10) * point[0] / last
        y = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 10) * point[1]
        return f"{x:.1f},{y:.1f}"

    return {
        "title": title,
        "label": label,
        "last": last,
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "bottom": HEIGHT - BOTTOM,
        "grid": [
            {"y": HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 10) * part / 4, "text": f"{25 * part} %"}
            for part in range(5)
        ],
        "lines": [
            {"name": name, "points": " ".join(map(place, line)), "last": line[-1][1]}
            for name, line in series.items()
            if line
        ],
    }
