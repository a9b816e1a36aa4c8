"""The page of `report`: strategies side by side, in the same tables for Markdown and HTML."""

from __future__ import annotations

from typing import Any

from outvote.report.page import Page
from outvote.report.tables import section, table
from outvote.report.wording import duration, number, share, spread

Table = tuple[list[str], list[list[str]]]  # headings, rows

_WIDTH, _HEIGHT = 720, 120
_PAIR_FIGURES = (
    ("only mutants", "mutants_only", number),
    ("only seeds", "initial_only", number),
    ("amplification", "amplification", share),
    ("findings", "findings", number),
)


def page(result: dict[str, Any]) -> Page:
    """The tables, and findings over time. It needs no script."""
    return Page({"comparison": values(result)})


def values(result: dict[str, Any]) -> dict[str, Any]:
    """What the pieces of compare_parts.html show."""
    return {
        "strategies": strategies_table(result),
        "pairs": pairs_table(result),
        "campaigns": campaigns_table(result),
        "found": found_over_time(result),
    }


def sections(result: dict[str, Any]) -> list[str]:
    """The tables in Markdown; the report of a campaign shows them too."""
    return [
        section("Strategies", table(*strategies_table(result))),
        section("Strategies by pair", table(*pairs_table(result))),
        section("Campaigns", table(*campaigns_table(result))),
    ]


def pairs_table(result: dict[str, Any]) -> Table:
    """LEMON's table 6: for every pair a row per strategy."""
    headings = ["pair", "strategy", *(title for title, _, _ in _PAIR_FIGURES)]
    rows = [
        [
            " / ".join(pair["targets"]),
            group["strategy"],
            *(spread(group[key], form) for _, key, form in _PAIR_FIGURES),
        ]
        for pair in result["pairs"]
        for group in pair["strategies"]
    ]
    return headings, rows


def strategies_table(result: dict[str, Any]) -> Table:
    """All pairs and seeds together: a row per strategy."""
    headings = ["strategy", "campaigns", *(title for title, _, _ in _PAIR_FIGURES)]
    rows = [
        [
            group["strategy"],
            str(group["campaigns"]),
            *(spread(group[key], form) for _, key, form in _PAIR_FIGURES),
            spread(group["largest"]),
            spread(group["tested"]),
            spread(group["seconds"], duration),
        ]
        for group in result["strategies"]
    ]
    return [*headings, "largest D_MAD", "mutants", "time"], rows


def campaigns_table(result: dict[str, Any]) -> Table:
    """Every campaign by itself: a row each."""
    headings = ["campaign", "strategy", "seed", *(title for title, _, _ in _PAIR_FIGURES)]
    rows = [
        [
            campaign["folder"],
            campaign["strategy"],
            str(campaign["seed"]),
            *(
                "–" if campaign[key] is None else form(campaign[key])
                for _, key, form in _PAIR_FIGURES
            ),
            number(campaign["largest"]),
            str(campaign["tested"]),
            duration(campaign["seconds"]),
        ]
        for campaign in result["campaigns"]
    ]
    return [*headings, "largest D_MAD", "mutants", "time"], rows


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
