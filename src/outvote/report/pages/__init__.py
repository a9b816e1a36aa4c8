"""One module per command, found by its name: what its `report.html` and `report.md` show.

`page(result)` gives what the template of that name needs beside the result, `sections(result)` the
parts of the Markdown.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def name_of(result: dict[str, Any]) -> str:
    """The page of a result; `explore --targets` ends in a check, and is shown as one."""
    return "check" if "comparisons" in result else str(result["command"])


def page_of(result: dict[str, Any]) -> Any:
    return import_module(f"{__name__}.{name_of(result)}")
