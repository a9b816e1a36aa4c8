"""`report.md` of a comparison of strategies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outvote.core.files import write_atomically
from outvote.report.compare.view import campaigns_table, pairs_table, strategies_table
from outvote.report.tables import escape, table


def write(result: dict[str, Any], folder: Path) -> Path:
    """Write `report.md` into the folder."""
    return write_atomically(folder / "report.md", render(result))


def render(result: dict[str, Any]) -> str:
    """The report as Markdown."""
    lines = [
        f"# {escape(result['summary'])}",
        "",
        *[f"Warning: {escape(warning)}.\n" for warning in result["warnings"]],
        "",
        *tables(result),
    ]
    return "\n".join(lines)


def tables(result: dict[str, Any]) -> list[str]:
    """What the report of a campaign shows too."""
    return [
        "## Strategies",
        "",
        *table(*strategies_table(result)),
        "## Strategies by pair",
        "",
        *table(*pairs_table(result)),
        "## Campaigns",
        "",
        *table(*campaigns_table(result)),
    ]
