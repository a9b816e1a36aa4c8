"""Writes a result for its readers: JSON for programs, JUnit and SARIF for CI, and
Markdown and HTML for people.

A format is a module in `formats`, found there: the name of its `FILE`, and `render(result, folder)`
that returns what the file holds. The result has the form of `docs/result-json.md`; nothing here
judges, it only shows.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from outvote.core.files import write_atomically
from outvote.core.result import plain
from outvote.report import formats
from outvote.report.causes import write_causes

FIRST = "json_file"  # if a later format fails, the data is already safe on disk


def write_all(result: dict[str, Any], folder: Path) -> list[Path]:
    """Write every format into `folder`, which is made if needed, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [
        write_atomically(folder / _format(name).FILE, rendered(name, result, folder))
        for name in names()
    ]
    return [*written, *write_causes(result, folder)]


def rendered(name: str, result: dict[str, Any], folder: Path = Path()) -> str:
    """A result in one format; `folder` is where its files lie."""
    text: str = _format(name).render(plain(result), folder)
    return text


def names() -> list[str]:
    """All formats, in the order in which they are written."""
    found = [module.name for module in iter_modules(formats.__path__)]
    return sorted(found, key=lambda name: (name != FIRST, name))


def _format(name: str) -> Any:
    return import_module(f"{formats.__name__}.{name}")
