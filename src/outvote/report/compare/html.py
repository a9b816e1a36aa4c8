"""`report.html` of a comparison of strategies: the tables, and findings over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outvote.core.files import write_atomically
from outvote.report.compare.view import campaigns_table, pairs_table, strategies_table
from outvote.report.json_file import plain
from outvote.report.page import asset, policy, template

_WIDTH, _HEIGHT = 720, 120


def write(result: dict[str, Any], folder: Path) -> Path:
    """Write `report.html` into the folder."""
    return write_atomically(folder / "report.html", render(result))


def render(result: dict[str, Any]) -> str:
    """The page as text. It needs no script."""
    told = plain(result)
    page: str = template("compare.html").render(
        result=told,
        style=asset("report.css") + asset("fuzz.css"),
        policy=policy([]),
        comparison=view(told),
    )
    return page


def view(result: dict[str, Any]) -> dict[str, Any]:
    """What the pieces of compare_parts.html show."""
    return {
        "strategies": strategies_table(result),
        "pairs": pairs_table(result),
        "campaigns": campaigns_table(result),
        "found": found_over_time(result),
    }


def found_over_time(result: dict[str, Any]) -> dict[str, Any] | None:
    """Findings known after so many seconds: a line per campaign, a colour per strategy."""
    campaigns = result["campaigns"]
    top = max(len(campaign["found_at"]) for campaign in campaigns)
    end = max([at for c in campaigns for at in c["found_at"]], default=0.0)
    if not top or not end:
        return None
    names = [group["strategy"] for group in result["strategies"]]
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "top": top,
        "end": end,
        "names": names,
        "lines": [
            {
                "colour": names.index(campaign["strategy"]),
                "folder": campaign["folder"],
                "points": _stairs(campaign["found_at"], top, end),
            }
            for campaign in campaigns
        ],
    }


def _stairs(found_at: list[float], top: int, end: float) -> str:
    """A step up at every finding; the line goes on to the last one of any campaign."""
    points = [(0.0, 0)]
    for count, at in enumerate(found_at):
        points += [(at, count), (at, count + 1)]
    points.append((end, len(found_at)))
    return " ".join(f"{x / end * _WIDTH:.1f},{_HEIGHT - y / top * _HEIGHT:.1f}" for x, y in points)
