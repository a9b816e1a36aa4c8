"""A table in Markdown, as the reports of campaigns use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """The lines of a Markdown table, and an empty one."""
    if not rows:
        return ["None.", ""]
    told = [" | ".join(_cell(value) for value in row) for row in rows]
    rule = "|".join("---" for _ in headings)
    return [f"| {' | '.join(headings)} |", f"|{rule}|", *(f"| {row} |" for row in told), ""]


def _cell(value: Any) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
