"""`report.html`: one file that opens anywhere. What it shows is the business of `pages`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outvote.report import wording
from outvote.report.page import asset, embedded, policy, template
from outvote.report.pages import name_of, page_of

FILE = "report.html"


def render(result: dict[str, Any], folder: Path) -> str:
    """The page as text."""
    page = page_of(result).page(result)
    made = template(f"{name_of(result)}.html").render(
        **page.values,
        result=result,
        word=wording.word(result),
        tone=wording.tone(result),
        style=asset("report.css"),
        scripts=page.scripts,
        policy=policy(list(page.scripts)),
        data=embedded(page.data),
    )
    return str(made)
