"""`report.html` of a check: one file that opens anywhere, with the map of layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outvote.core.files import write_atomically
from outvote.report.check import view
from outvote.report.json_file import plain
from outvote.report.page import asset, embedded, page_scripts, policy, template


def write(result: dict[str, Any], folder: Path) -> Path:
    """Write `report.html` into the folder."""
    return write_atomically(folder / "report.html", render(result))


def render(result: dict[str, Any]) -> str:
    """The page as text."""
    context = view.page(plain(result))
    scripts = page_scripts() if context["maps"] else []
    page = template("report.html").render(
        **context,
        style=asset("report.css"),
        scripts=scripts,
        policy=policy(scripts),
        data=embedded(map_data(context["maps"])),
    )
    return str(page)


def map_data(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the script needs to draw each map."""
    keys = ("fingerprint", "title", "layer", "accused", "localization")
    return [{key: finding.get(key) for key in keys} for finding in findings]
