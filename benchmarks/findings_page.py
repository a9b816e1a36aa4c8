"""What live_findings.py and onnx_findings.py write into docs/: scripts, and the table of a page."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path


def write(page: Path, mark: str, table: str, folder: Path, scripts: Mapping[str, Path]) -> None:
    """The table between the marks of a page, and its scripts by their names in the folder.

    Scripts that no row of the page links any more are removed.
    """
    for name, script in scripts.items():
        shutil.copy(script, folder / f"{name}.py")
    begin, end = f"<!-- begin: {mark} -->", f"<!-- end: {mark} -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    text = f"{before}{begin}\n\n{table}\n\n{end}{after}"
    page.write_text(text, encoding="utf-8")
    for script in folder.glob("*.py"):
        if f"({folder.name}/{script.name})" not in text:
            script.unlink()
