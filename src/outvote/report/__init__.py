"""Writes a result for its readers: JSON for programs, JUnit and SARIF for CI, and
Markdown and HTML for people.

Each format is one module with `write(result, folder)`. The result has the form of
`docs/result-json.md`; nothing here judges, it only shows.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

# JSON comes first: if a later format fails, the data is already safe on disk.
FORMATS = ("json_file", "check.markdown", "check.html", "junit", "sarif")
OWN_FORMATS = {
    "fuzz": ("json_file", "fuzz.markdown", "fuzz.html", "junit", "sarif"),
    "bisect": ("json_file", "check.markdown", "check.html"),
    "report": ("json_file", "compare.markdown", "compare.html"),
}


def write_all(result: dict[str, Any], folder: Path) -> list[Path]:
    """Write every format into `folder`, which is made if needed, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    modules = [
        import_module(f"{__name__}.{name}") for name in OWN_FORMATS.get(result["command"], FORMATS)
    ]
    return [module.write(result, folder) for module in modules]
