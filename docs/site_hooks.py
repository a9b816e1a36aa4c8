"""Hooks of mkdocs: pages of the repository's root are pages of the site, and links lead there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "ARCHITECTURE.md": "architecture.md",
}
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, and the licence that the first one links."""
    for name, page in PAGES.items():
        text = _led((ROOT / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "LICENSE.txt", content=(ROOT / "LICENSE").read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **more: Any) -> str:
    """Links that leave docs/ lead to the same page of the site."""
    return _led(markdown)


def _led(text: str) -> str:
    return _LINK.sub(lambda found: found[1] + _place(found[2]) + found[3], text)


def _place(link: str) -> str:
    name = link.removeprefix("../")
    if name == "LICENSE":
        return "LICENSE.txt"
    return PAGES.get(name) or link.removeprefix("docs/")
