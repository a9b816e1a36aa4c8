"""One `causes/<cause>/report.md` for each cause: the text of its best finding, and the others."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from outvote.core.files import write_atomically
from outvote.report.tables import code, escape


def write_causes(result: dict[str, Any], folder: Path) -> list[Path]:
    """What a maintainer is sent. A cause whose finding has no text yet has none either."""
    findings = {finding["fingerprint"]: finding for finding in result["findings"]}
    _remove_old(folder / "causes")
    written = []
    for cause in result.get("causes", []):
        text = folder / "findings" / cause["told_by"] / "report.md"
        if text.is_file():
            path = folder / "causes" / cause["cause"] / "report.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            told = text.read_text(encoding="utf-8").rstrip() + "\n" + _more(cause, findings)
            written.append(write_atomically(path, told))
    return written


def _more(cause: dict[str, Any], findings: dict[str, Any]) -> str:
    lines = []
    others = [findings[name] for name in cause["findings"] if name != cause["told_by"]]
    if others:
        lines += ["", "## Also shown by", ""]
        lines += [f"- {code(other['fingerprint'])} {escape(other['title'])}" for other in others]
    return "\n".join(lines) + "\n" if lines else ""


def _remove_old(folder: Path) -> None:
    """Causes of an earlier report would pass for this one's."""
    for old in folder.glob("*"):
        if re.fullmatch("[0-9a-f]{12}", old.name) and (old / "report.md").is_file():
            shutil.rmtree(old)
