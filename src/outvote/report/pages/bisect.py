"""The page of `bisect`: what each release that was tried made of the case."""

from __future__ import annotations

from typing import Any

from outvote.report.page import Page
from outvote.report.tables import code, section, table, targets_section
from outvote.report.wording import number

_HEADINGS = ("release", "outcome", "distance to reference", "message")


def page(result: dict[str, Any]) -> Page:
    releases = result["bisect"]["releases"]
    skipped = sum(row["state"] == "skipped" for row in releases)
    return Page(
        {"counts": [f"{len(releases) - skipped} releases tried", f"{skipped} skipped"]},
    )


def sections(result: dict[str, Any]) -> list[str]:
    found = result["bisect"]
    rows = [
        (
            code(row["version"]),
            row["state"],
            "–" if row["distance"] is None else number(row["distance"]),
            row["message"][:200],
        )
        for row in found["releases"]
    ]
    return [
        section(f"Releases of {found['package']}", table(_HEADINGS, rows)),
        targets_section(result["targets"]),
    ]
