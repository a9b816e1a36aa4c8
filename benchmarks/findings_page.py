"""What live_findings.py and onnx_findings.py write into docs/: scripts, and the table of a page."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path


def write(page: Path, mark: str, table: str, folder: Path, scripts: Mapping[str, Path]) -> None:
    """The table between the marks of a page; the folder afresh, with the scripts by their names."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, script in scripts.items():
        shutil.copy(script, folder / f"{name}.py")
    begin, end = f"<!-- begin: {mark} -->", f"<!-- end: {mark} -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n\n{table}\n\n{end}{after}", encoding="utf-8")
