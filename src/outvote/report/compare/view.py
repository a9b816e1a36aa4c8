"""The tables of a comparison of strategies, in words; Markdown and HTML show the same ones."""

from __future__ import annotations

from typing import Any

from outvote.report.wording import duration, number, share, spread

Table = tuple[list[str], list[list[str]]]  # headings, rows

_PAIR_FIGURES = (
    ("only mutants", "mutants_only", number),
    ("only seeds", "initial_only", number),
    ("amplification", "amplification", share),
    ("findings", "findings", number),
)


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
