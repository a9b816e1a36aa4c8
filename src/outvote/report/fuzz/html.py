"""`report.html` of a campaign: what was found and how it was bred, rates, rules, amplification."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outvote.core.files import write_atomically
from outvote.report.compare import html as compare_html
from outvote.report.json_file import plain
from outvote.report.page import asset, policy, template

_WIDTH, _HEIGHT = 720, 120


def write(result: dict[str, Any], folder: Path) -> Path:
    """Write `report.html` into the folder."""
    return write_atomically(folder / "report.html", render(result))


def render(result: dict[str, Any]) -> str:
    """The page as text. It needs no script."""
    told = plain(result)
    page: str = template("fuzz.html").render(
        result=told,
        style=asset("report.css") + asset("fuzz.css"),
        policy=policy([]),
        comparison=compare_html.view(told["comparison"]) if told["comparison"] else None,
        throughput=throughput(told),
        memory=series(told["samples"], column=3, scale=1 / 2**20),
        seconds=series(told["samples"], column=2, scale=1000.0),
        width=_WIDTH,
        height=_HEIGHT,
    )
    return page


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
